"""A fit that fails or is interrupted leaves the last one as it was."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel import (
    SVR,
    ConeRegressor,
    DensityEstimator,
    ExpectileRegressor,
    FunctionalRegressor,
    HeteroscedasticRegressor,
    KernelRidge,
    Lasso,
    NonCrossingQuantileRegressor,
    NonNegativeRegressor,
    QuantileRegressor,
)
from fenchel.estimator import CertifiedEstimator
from fenchel.model_selection import ConformalRegressor, PathSearchCV
from regression_cases import BRIEFLY

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(0.0, 3.0, (30, 1))
Y = np.exp(np.sin(X[:, 0])) + 0.1 * RANDOM.uniform(0.0, 1.0, 30)
PAIRS = np.column_stack([Y, 1.0 + Y])
CASES = [
    (QuantileRegressor([0.1, 0.9], learn=BRIEFLY), {"levels": [0.1, 0.5, 0.9]}, Y),
    (ExpectileRegressor([0.1, 0.9], learn=False), {"levels": 0.5}, Y),
    (KernelRidge(learn=False), {"alpha": 0.1}, Y),
    (Lasso(alpha=0.1), {"alpha": 0.2}, Y),
    (FunctionalRegressor(learn=BRIEFLY), {"loss": "huber"}, PAIRS),
    (NonNegativeRegressor(), {"loss": "poisson"}, Y),
    (HeteroscedasticRegressor(), {"max_std": 3.0}, Y),
    (NonCrossingQuantileRegressor([0.1, 0.9], learn=False), {"levels": [0.1, 0.5, 0.9]}, Y),
    (ConeRegressor("monotone", learn=False), {"cone": "non_negative"}, PAIRS),
    (ConeRegressor(generators=np.eye(2), learn=False), {"generators": None}, PAIRS),
    (DensityEstimator(), {"alpha": 0.1}, None),
    (PathSearchCV(KernelRidge(), {"alpha": 3}, cv=2), {"param_grid": {"alpha": 4}}, Y),
    (
        ConformalRegressor(KernelRidge(learn=False), coverage=0.8, random_state=0),
        {"coverage": 0.5},
        Y,
    ),
]


@pytest.mark.parametrize(("model", "other", "y"), CASES, ids=lambda case: type(case).__name__)
def test_an_interrupted_refit(model, other, y, monkeypatch):
    model.fit(X, y)
    state, before = vars(model).copy(), model.predict(X) if y is not None else model.score(X)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    model.set_params(**other)
    with monkeypatch.context() as patch:
        patch.setattr(CertifiedEstimator, "_keep_end", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(np.tile(X[:12], 2), None if y is None else y[:12])
    assert {k: v for k, v in vars(model).items() if k not in other} == {
        k: v for k, v in state.items() if k not in other
    }
    after = model.predict(X) if y is not None else model.score(X)
    np.testing.assert_array_equal(after, before)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [QuantileRegressor, ExpectileRegressor])
def test_a_refused_refit_keeps_rows_and_levels(kind):
    model = kind([0.1, 0.9], alpha=1e-3).fit(X, Y)
    before = model.predict(X)
    model.set_params(levels=[0.1, 0.5, 0.9], solver="none")
    with pytest.raises(ValueError, match="solver must be one of"):
        model.fit(X[:9], Y[:9])
    np.testing.assert_array_equal(model.predict(X), before)
    np.testing.assert_array_equal(model.levels_, [0.1, 0.9])
    assert model.crossing_loss(X) >= 0.0


@pytest.mark.parametrize("solver", ["newton", "fista"])
def test_a_warm_start_brings_no_intercept_where_there_is_none(solver):
    targets = np.column_stack([Y, 5.0 + Y])
    fixed = {"epsilon": 0.3, "alpha": 0.1, "learn": False}
    model = SVR(solver="newton", warm_start=True, **fixed).fit(X, targets)
    model.set_params(solver=solver, fit_intercept=False).fit(X, targets)
    cold = SVR(fit_intercept=False, **fixed).fit(X, targets)
    np.testing.assert_array_equal(model.offset_, 0.0)
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-4)


@pytest.mark.slow
def test_predictions_and_scores_are_of_the_fit_and_not_of_changed_parameters():
    far = np.array([[50.0]])
    model = HeteroscedasticRegressor(max_std=2.0).fit(X, Y)
    before = model.predict(far, return_std=True)
    model.set_params(max_std=10.0)
    np.testing.assert_array_equal(model.predict(far, return_std=True), before)
    model = NonNegativeRegressor().fit(X, Y)
    score = model.score(X, Y)
    assert model.set_params(loss="poisson").score(X, Y) == score
