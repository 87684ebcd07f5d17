"""Kernel estimators with operator-valued kernels, every fit before the judge of certificates."""

from __future__ import annotations

from typing import Any

import numpy as np

from attacks import Outcome, _cases
from attacks._cases import Data, chance, one_of
from attacks._trials import Case, of_kernels, tries
from attacks.certificates import a_kernel
from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel import kernels as k
from judge import losses as own

IN_CI, IN_FULL = 120, 1200
SOLVERS = ("conic", "fista", "newton")


def an_operator(rng: np.random.Generator, X: np.ndarray, p: int) -> Any:
    """A kernel with values in the (p, p) matrices."""
    kind, d = rng.random(), X.shape[1]
    if kind < 0.5:
        return _decomposable(rng, X, p)
    if kind < 0.8:
        return _decomposable(rng, X, p) + _decomposable(rng, X, p)
    shared = rng.normal(size=(p, d, d)) if chance(rng, 0.6) else np.stack([np.eye(d)] * p)
    width = (float(np.ptp(X, axis=0).max()) or 1.0) * 10.0 ** rng.uniform(-1.0, 0.5)
    inner = one_of(rng, ["gaussian", k.Gaussian(width), k.Laplacian(width), k.Linear()])
    turned = k.Transformable(inner, list(shared))
    return turned if chance(rng, 0.6) else turned + _decomposable(rng, X, p)


def _decomposable(rng: np.random.Generator, X: np.ndarray, p: int) -> Any:
    root = rng.normal(size=(p, int(rng.integers(1, p + 1)))) * 10.0 ** rng.uniform(-2.0, 1.0)
    return k.Decomposable(a_kernel(rng, X), root @ root.T)


def case(seed: int, index: int) -> Case:
    """One estimator and its data, unfitted."""
    rng = np.random.default_rng([seed, index])
    n, d = min(_cases.size(rng), 120), int(rng.integers(1, 9))
    X, fresh = _cases.rows(rng, n, d)
    kind = one_of(rng, ["quantiles", "expectiles", "svr", "ridge"])
    p = 3 if kind in ("quantiles", "expectiles") else int(rng.integers(1, 5))
    y = _cases.targets(rng, X, 1 if kind in ("quantiles", "expectiles") else p)
    size = float(np.abs(y - np.median(y, axis=0)).mean()) or 1.0
    alpha = 10.0 ** rng.uniform(-8.0, 2.0)
    if chance(rng, 0.6) and kind != "ridge":
        alpha /= size
    common = {
        "kernel": an_operator(rng, X, p),
        "alpha": alpha,
        "fit_intercept": chance(rng, 0.7),
        "tol": float(one_of(rng, [1e-3, 1e-6, 1e-6, 1e-9])),
        "solver": "auto" if chance(rng, 0.6) else one_of(rng, SOLVERS),
        "features": one_of(rng, ["auto", "cholesky"]),
    }
    if common["solver"] == "fista":
        common["max_iter"] = 100
    if chance(rng, 0.05):
        common["rank"] = int(rng.integers(1, n * p + 1))
    levels = one_of(rng, [[0.1, 0.5, 0.9], [0.5, 0.4, 0.999]])
    epsilon = float(one_of(rng, [0.0, 0.1, 1.0])) * size
    if kind == "quantiles" and chance(rng, 0.3):
        model = QuantileRegressor(levels, non_crossing="train", **common)
        loss: Any = own.Ordered(np.array(levels), 1e-11 * float(np.abs(y).max()))
    elif kind == "quantiles":
        model, loss = (
            QuantileRegressor(levels, epsilon=epsilon, **common),
            own.pinball(levels, epsilon),
        )
    elif kind == "expectiles":
        model = ExpectileRegressor(levels, epsilon=epsilon, **common)
        loss = own.squared_pinball(levels, epsilon)
    elif kind == "svr":
        name = one_of(rng, ["epsilon_insensitive", "squared_epsilon_insensitive", "huber"])
        model, loss = SVR(name, epsilon=epsilon, kappa=1.0, **common), own.named(name, epsilon)
    else:
        model, loss = KernelRidge(**common), own.named("squared")
    y = y[:, 0] if y.shape[1] == 1 else y
    return Case(model, Data(X, y, _cases.weights(rng, n), fresh), loss, np.eye(p))


def attack(count: int, seed: int) -> Outcome:
    """Fit so many estimators, and judge them."""
    return tries("operator_valued", case, of_kernels, count, seed)
