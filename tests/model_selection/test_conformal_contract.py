"""scikit-learn's own checks of the conformal wrappers, without expected failures."""

from __future__ import annotations

import numpy as np
import pytest

from contract_cases import with_checks
from fenchel import KernelRidge, QuantileRegressor
from fenchel.model_selection import ConformalQuantileRegressor, ConformalRegressor
from regression_cases import BRIEFLY

ESTIMATORS = [
    ConformalRegressor(KernelRidge(learn=BRIEFLY)),
    ConformalRegressor(KernelRidge(learn=False), method="cv+", side="lower", cv=3),
    ConformalRegressor(KernelRidge(learn=False), method="jackknife+"),
    ConformalQuantileRegressor(QuantileRegressor(learn=BRIEFLY)),
    ConformalQuantileRegressor(QuantileRegressor(alpha=1e-4, learn=False), method="cv+", cv=3),
]


@pytest.mark.filterwarnings("ignore:.* infinitely wide")  # the checks have few rows
@with_checks(*ESTIMATORS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_a_model_of_several_levels_is_for_the_other_wrapper():
    X = np.linspace(0.0, 1.0, 40)[:, None]
    model = ConformalRegressor(QuantileRegressor([0.1, 0.5, 0.9], learn=False))
    with pytest.raises(ValueError, match=r"got one with the levels \[0.1, 0.5, 0.9\]: Conformal"):
        model.fit(X, X[:, 0])
    one = ConformalRegressor(QuantileRegressor(0.5, learn=False)).fit(X, X[:, 0])
    assert one.predict(X).shape == (40,)
