"""scikit-learn's own checks, without expected failures."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor

# Where a check asks for a score it sets alpha = 0.01, strong for losses of slope below 1: the
# Huber loss gets a kappa (and the tube an epsilon) with which a good score is possible then.
ESTIMATORS = [
    QuantileRegressor(),
    QuantileRegressor(epsilon=0.02),
    ExpectileRegressor(),
    KernelRidge(),
    SVR(),
    SVR(loss="squared_epsilon_insensitive"),
    SVR(loss="huber", epsilon=1.35),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_tags(estimator):
    tags = estimator.__sklearn_tags__()
    assert tags.estimator_type == "regressor"
    assert tags.target_tags.multi_output == isinstance(estimator, (SVR, KernelRidge))
    assert not tags.input_tags.sparse
    assert not tags.input_tags.pairwise
    pairwise = estimator.set_params(kernel="precomputed").__sklearn_tags__().input_tags.pairwise
    estimator.set_params(kernel=None)
    assert pairwise
