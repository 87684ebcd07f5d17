"""scikit-learn's own checks, without expected failures."""

from __future__ import annotations

import pytest

from contract_cases import with_checks
from fenchel import (
    SVR,
    ExpectileRegressor,
    GroupLasso,
    KernelRidge,
    Lasso,
    LinearRegression,
    QuantileRegressor,
    Ridge,
)
from regression_cases import BRIEFLY

# Where a check asks for a score it sets alpha = 0.01, strong for losses of slope below 1: the
# Huber loss gets a kappa (and the tube an epsilon) with which a good score is possible then.
# Learning is checked once for each class; with its default folds and steps it takes minutes.
ESTIMATORS = [
    QuantileRegressor(learn=BRIEFLY),
    QuantileRegressor(epsilon=0.02, learn=False),
    ExpectileRegressor(learn=BRIEFLY),
    KernelRidge(learn=BRIEFLY),
    SVR(learn=BRIEFLY),
    SVR(loss="squared_epsilon_insensitive", learn=False),
    SVR(loss="huber", kappa=1.35, learn=False),
]

LINEAR = [LinearRegression(), Ridge(), Lasso(), GroupLasso(), GroupLasso(q=1, p=2)]
ON_A_BALL = [Lasso(radius=50.0), GroupLasso(radius=50.0)]


@with_checks(*ESTIMATORS, *LINEAR)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@with_checks(*ON_A_BALL)
def test_scikit_learn_contract_of_constrained_forms(estimator, check):
    if check.func.__name__ == "check_regressors_train":
        pytest.skip("sets alpha where there is a radius, which is refused")
    check(estimator)


@pytest.mark.parametrize("estimator", LINEAR + ON_A_BALL, ids=repr)
def test_tags_of_linear_models(estimator):
    tags = estimator.__sklearn_tags__()
    assert tags.estimator_type == "regressor"
    assert tags.target_tags.multi_output
    assert tags.input_tags.sparse


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_tags(estimator):
    tags = estimator.__sklearn_tags__()
    assert tags.estimator_type == "regressor"
    assert tags.target_tags.multi_output
    assert tags.input_tags.sparse
    assert not tags.input_tags.pairwise
    pairwise = estimator.set_params(kernel="precomputed").__sklearn_tags__().input_tags.pairwise
    estimator.set_params(kernel=None)
    assert pairwise
