"""Kernel estimators with scalar kernels, every fit before the judge of certificates."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.gaussian_process.kernels as sk

from attacks import Outcome, _cases
from attacks._cases import Data, chance, one_of
from attacks._trials import Case, of_kernels, tries
from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel import kernels as k
from fenchel import losses as l
from fenchel.features import KernelRows
from fenchel.learning import Learning
from judge import losses as own

IN_CI, IN_FULL = 520, 5200
SHARES = 48
SOLVERS = (
    "augmented_lagrangian",
    "closed_form",
    "conic",
    "conjugate_gradients",
    "fista",
    "newton",
    "pdcd",
    "smo",
    "splitting",
)
SLOW = ("augmented_lagrangian", "fista", "pdcd", "smo", "splitting")


def a_kernel(rng: np.random.Generator, X: np.ndarray) -> Any:
    """A kernel that suits rows of this size, or one whose widths are read off the data."""
    spread = float(np.ptp(X, axis=0).max()) or 1.0
    largest = float(np.abs(X).max()) or 1.0
    width = spread * 10.0 ** rng.uniform(-1.5, 1.0)
    gain = 10.0 ** rng.uniform(-1.0, 0.5) / largest**2
    return one_of(
        rng,
        [
            None,
            "matern52",
            k.Gaussian(width),
            k.Gaussian(width * rng.uniform(0.3, 3.0, X.shape[1])),
            k.Laplacian(width),
            k.Matern(width, nu=1.5),
            k.Matern(width, nu=2.5),
            k.Linear(),
            sk.RBF(width),
            0.01 * sk.Matern(width, nu=1.5) + sk.DotProduct(largest),
            k.Polynomial(int(rng.integers(1, 5)), gain, float(one_of(rng, [0.0, 1.0]))),
            k.Gaussian(width) + k.Linear(),
            k.Laplacian(width) * k.Gaussian(2.0 * width),
            k.Matern(width, nu=1.5) ** 2,
            k.Gaussian(width) + k.Polynomial(2, gain, 1.0) * k.Laplacian(width),
        ],
    )


def _what_learns(rng: np.random.Generator, given: Any, features: Any) -> dict[str, Any]:
    """Parameters of a fit that learns some of what it needs, in a few steps."""
    kernels = [
        None,
        "matern32",
        given,
        k.WithRanks(k.Matern(nu=2.5)),
        0.5 * k.Gaussian() + 1e-2 * k.Linear(),
    ]
    rules = {"max_evaluations": 3, "n_folds": int(rng.integers(2, 4)), "n_rows": 30}
    parameters = {"learn": Learning(**rules), "kernel": one_of(rng, kernels)}
    if features == "fourier":
        parameters["kernel"] = k.Matern()
    return parameters if chance(rng, 0.3) else {**parameters, "alpha": None}


def _levels(rng: np.random.Generator) -> Any:
    kind = rng.random()
    if kind < 0.4:
        return float(one_of(rng, [0.5, 0.1, 0.01, 0.9, 0.999]))
    levels = one_of(rng, [[0.1, 0.5, 0.9], [0.25, 0.75], [0.9, 0.1, 0.5, 0.3], [0.49, 0.5]])
    return levels


def _of_levels(rng: np.random.Generator, size: float, common: dict[str, Any]) -> tuple[Any, ...]:
    levels = _levels(rng)
    array = np.atleast_1d(levels)
    gamma = float(one_of(rng, [0.0, 1.0, 1.0, 100.0, np.inf]))
    epsilon = float(one_of(rng, [0.0, 0.0, 0.1, 1.0])) * size
    between = np.subtract.outer(array, array) ** 2
    coupling = np.eye(len(array)) if np.isinf(gamma) else np.exp(-gamma * between)
    common = {**common, "level_gamma": gamma}
    if chance(rng, 0.4):
        loss = own.squared_pinball(array, epsilon)
        return ExpectileRegressor(levels, epsilon=epsilon, **common), loss, coupling
    if len(array) > 1 and chance(rng, 0.25):
        loss = own.Ordered(array, 0.0)
        return QuantileRegressor(levels, non_crossing="train", **common), loss, coupling
    return (
        QuantileRegressor(levels, epsilon=epsilon, **common),
        own.pinball(array, epsilon),
        coupling,
    )


def _svr(rng: np.random.Generator, size: float, p: int, common: dict[str, Any]) -> tuple[Any, ...]:
    from own_losses import LogCosh

    epsilon, kappa = (size * 10.0 ** rng.uniform(-2.0, 0.5) for _ in range(2))
    level = float(one_of(rng, [0.5, 0.05, 0.8]))
    name = one_of(
        rng,
        [
            "epsilon_insensitive",
            "squared_epsilon_insensitive",
            "huber",
            "squared",
            "absolute",
            "pinball",
            "squared_pinball",
        ],
    )
    given = {"epsilon": epsilon, "kappa": kappa, "level": level, **common}
    if chance(rng, 0.65):
        return SVR(name, **given), own.named(name, epsilon, kappa, level), np.eye(p)
    loss, judged = one_of(
        rng,
        [
            (LogCosh(kappa), own.LogCosh(kappa)),
            (l.Huber(kappa), own.huber_by_output(kappa)),
            (l.L2Norm(), own.Length(0.0, 1.0)),
            (l.Absolute().insensitive(epsilon), own.box(-1, 1, 0, 0, epsilon)),
            (l.Huber(kappa).insensitive(epsilon), own.box(-kappa, kappa, 1, 1, epsilon)),
        ],
    )
    return SVR(loss, **given), judged, np.eye(p)


def _ridge(rng: np.random.Generator, p: int, common: dict[str, Any]) -> tuple[Any, ...]:
    if p == 1 or chance(rng, 0.4):
        return KernelRidge(**common), own.named("squared"), np.eye(p)
    root = rng.normal(size=(p, int(rng.integers(1, p + 1))))
    coupling = root @ root.T * 10.0 ** rng.uniform(-3.0, 3.0)
    return KernelRidge(coupling=coupling, **common), own.named("squared"), coupling


def case(seed: int, index: int) -> Case:
    """One estimator and its data, unfitted."""
    rng = np.random.default_rng([seed, index])
    n, d = _cases.size(rng), int(rng.integers(1, 9))
    kind = one_of(rng, ["levels", "levels", "svr", "svr", "ridge"])
    p = 1 if kind == "levels" or chance(rng, 0.5) else int(rng.integers(2, 5))
    X, fresh = _cases.rows(rng, n, d)
    y = _cases.targets(rng, X, p)
    size = float(np.abs(y - np.median(y, axis=0)).mean()) or 1.0
    kernel = a_kernel(rng, X)
    alpha = 10.0 ** rng.uniform(-8.0, 2.0)
    if chance(rng, 0.6) and kind != "ridge":
        alpha /= size
    common = {
        "kernel": kernel,
        "alpha": alpha,
        "learn": False,
        "fit_intercept": chance(rng, 0.7),
        "tol": float(one_of(rng, [1e-3, 1e-6, 1e-6, 1e-6, 1e-9])),
        "solver": "auto" if chance(rng, 0.55) else one_of(rng, SOLVERS),
        "features": one_of(rng, ["auto"] * 8 + ["cholesky", "kernel_rows", "nystroem", "fourier"]),
    }
    if common["solver"] in SLOW:
        common["max_iter"] = 100
    if common["features"] in ("nystroem", "fourier") or chance(rng, 0.04):
        common["rank"] = int(rng.integers(1, 2 * n + 2))
    if common["features"] == "fourier" and not isinstance(kernel, (k.Gaussian, k.Matern)):
        common["kernel"] = k.Gaussian()
    if common["features"] == "kernel_rows":
        common.pop("rank", None)
        if chance(rng, 0.5):
            common["features"] = KernelRows(stored=False)
    if n <= 40 and chance(rng, 0.15):
        common |= _what_learns(rng, kernel, common["features"])
    if kind == "levels":
        model, loss, coupling = _of_levels(rng, size, common)
    elif kind == "svr":
        model, loss, coupling = _svr(rng, size, p, common)
    else:
        model, loss, coupling = _ridge(rng, p, common)
    if isinstance(loss, own.Ordered):
        loss = own.Ordered(loss.levels, 1e-11 * float(np.abs(y).max()))
    y = y[:, 0] if p == 1 else y
    if chance(rng, 0.05) and common["features"] in ("auto", "cholesky"):
        width = float(np.ptp(X, axis=0).max()) or 1.0
        given = one_of(rng, [sk.RBF(width), sk.Matern(0.3 * width, nu=0.5), sk.DotProduct(0.0)])
        X, fresh = given(X), given(fresh, X)
        model.set_params(kernel="precomputed")
    before = {"alpha": alpha * 30.0} if chance(rng, 0.1) else {}
    model.set_params(warm_start=bool(before))
    return Case(model, Data(X, y, _cases.weights(rng, n), fresh, before=before), loss, coupling)


def attack(count: int, seed: int) -> Outcome:
    """Fit so many estimators, and judge them."""
    return tries("certificates", case, of_kernels, count, seed)
