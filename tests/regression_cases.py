"""Data, estimators and bounds that the tests of kernel regressors share."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.learning import Learning

# Few folds and steps of learning, where what is checked does not depend on how good they are.
BRIEFLY = Learning(n_folds=2, max_evaluations=2)
LEVELS = [0.1, 0.5, 0.9]
TOL = 1e-8
ALL = [QuantileRegressor, ExpectileRegressor, SVR, KernelRidge]
everyone = pytest.mark.parametrize("estimator", ALL, ids=lambda e: e.__name__)
with_levels = pytest.mark.parametrize(
    "estimator", [QuantileRegressor, ExpectileRegressor], ids=lambda e: e.__name__
)
with_targets = pytest.mark.parametrize("estimator", [SVR, KernelRidge], ids=lambda e: e.__name__)


def data(n=80, d=2, seed=0, n_targets=None):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, d))
    noise = rng.normal(size=n if n_targets is None else (n, n_targets))
    signal = np.sin(3.0 * X[:, 0]) + 0.5 * X[:, -1]
    spread = 0.2 + 0.3 * (X[:, 0] + 1.0)
    if n_targets is None:
        return X, signal + spread * noise
    return X, signal[:, None] * np.arange(1, n_targets + 1) + spread[:, None] * noise


X, Y = data()
_, Y2 = data(n_targets=2)
WEIGHT = np.random.default_rng(1).uniform(0.2, 2.0, 80)


@cache
def by_default(estimator):
    """The estimator fitted with its defaults, once in a process: nobody may change it."""
    return estimator().fit(X, Y)


def uncertainty(model):
    """How far predictions on rows with k(x, x) <= 1 may be from the optimum's, offset aside.

    By strong convexity alpha ½‖V - V*‖² <= gap, and |h(x)| <= ‖V‖ sqrt(k(x, x) B_jj).
    """
    gap = max(model.certificate_.gap, model.tol * 1e-3) / model.alpha_
    return np.sqrt(2.0 * gap) * np.sqrt(np.diag(model.coupling_).max())


MODELS = {
    "quantiles": QuantileRegressor(LEVELS, alpha=1e-3, learn=False),
    "quantiles, one": QuantileRegressor(0.3, alpha=1e-3, learn=False),
    "quantiles, insensitive": QuantileRegressor(LEVELS, alpha=1e-3, learn=False, epsilon=0.3),
    "quantiles, through zero": QuantileRegressor(
        LEVELS, alpha=1e-3, learn=False, fit_intercept=False
    ),
    "quantiles, rough": QuantileRegressor(LEVELS, alpha=1e-3, learn=False, kernel="laplacian"),
    "expectiles": ExpectileRegressor(LEVELS, alpha=1e-3, learn=False),
    "expectiles, insensitive": ExpectileRegressor(LEVELS, alpha=1e-3, learn=False, epsilon=0.3),
    "svr": SVR(alpha=1e-3, learn=False, epsilon=0.2),
    "svr, squared": SVR("squared_epsilon_insensitive", alpha=1e-3, learn=False, epsilon=0.2),
    "svr, huber": SVR("huber", alpha=1e-3, learn=False, kappa=0.2),
    "svr, rough": SVR(alpha=1e-3, learn=False, epsilon=0.2, kernel="laplacian"),
    "ridge": KernelRidge(alpha=1e-3, learn=False),
    "ridge, through zero": KernelRidge(alpha=1e-3, learn=False, fit_intercept=False),
    "ridge, rough": KernelRidge(alpha=1e-3, learn=False, kernel="matern12"),
}
some_model = pytest.mark.parametrize("name", MODELS)
