"""Generalization bounds of fitted models on random laws with finitely many atoms.

On these laws a risk is a finite sum. No bound may be violated more often than its δ, and none
has been so far. That the tries can tell is shown by bounds without their complexity, which fail.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning

from attacks import Outcome
from fenchel import (
    SVR,
    ExpectileRegressor,
    KernelRidge,
    Lasso,
    NonNegativeRegressor,
    QuantileRegressor,
    Ridge,
)
from fenchel.bounds import bound
from fenchel.kernels import Gaussian, Laplacian
from fenchel.online import OnlineLasso, OnlineRidge

IN_CI = 120
IN_FULL = 500

_CONTROL = 400  # tries, below which all shortened bounds may hold by chance (3 in 100 fail)


class _Law(NamedTuple):
    """Atoms (m, d), their probabilities, two targets at each, and the chance of the second."""

    atoms: Any
    probability: Any
    targets: Any
    chance: Any

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        rows = rng.choice(len(self.atoms), n, p=self.probability)
        second = rng.random(n) < self.chance[rows]
        return self.atoms[rows], self.targets[rows, second.astype(int)]

    def risk(self, predict: Any, loss: Any) -> float:
        """Expected loss of a prediction, exactly."""
        prediction = np.reshape(predict(self.atoms), (len(self.atoms), -1))
        first, second = (loss(self.targets[:, [j]] - prediction) for j in (0, 1))
        return float(self.probability @ ((1.0 - self.chance) * first + self.chance * second))


def attack(count: int, seed: int) -> Outcome:
    """Random laws, sizes, estimators and forms of the bound."""
    outcome = Outcome()
    failed: dict[float, int] = {}
    tried: dict[float, int] = {}
    short = 0
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        delta = float(rng.choice([0.05, 0.5]))
        risk, result, mean, name = _tried(rng, delta)
        complexity = result.terms["complexity"] + result.terms.get("offset", 0.0)
        violated, needed = risk > result.value, risk > result.value - complexity
        tried[delta] = tried.get(delta, 0) + 1
        failed[delta] = failed.get(delta, 0) + violated
        short += needed
        how = "violated" if violated else "holds by its complexity" if needed else "holds"
        outcome.counts[f"{name}: {how}"] += 1
        if abs(mean - result.terms["empirical risk"]) > 1e-9 * (1.0 + mean):
            outcome.failures.append(f"seed [{seed}, {k}] {name}: mean loss {mean:g}, {result!r}")
    for delta, number in failed.items():
        most = delta * tried[delta] + 4.0 * np.sqrt(delta * (1.0 - delta) * tried[delta])
        if number > most:
            outcome.failures.append(
                f"seed {seed}: {number} of {tried[delta]} bounds with delta={delta:g} are violated"
            )
    if count >= _CONTROL and short == 0:
        outcome.failures.append(f"seed {seed}: no try would tell a bound without complexity")
    return outcome


def _tried(rng: np.random.Generator, delta: float) -> tuple[float, Any, float, str]:
    """The risk, its bound, the mean loss of the sample, and what was fitted."""
    m, d = int(rng.choice([5, 50, 1500])), int(rng.choice([1, 5, 30, 300]))
    n = int(rng.choice([8, 60, 400]))
    atoms = rng.choice([-1.0, 1.0], (m, d)) if rng.random() < 0.5 else rng.uniform(-1, 1, (m, d))
    signal = np.clip(atoms[:, 0] * rng.integers(2), -1.0, 1.0)[:, None]
    noise = rng.uniform(0.0, 1.0, (m, 2)) * [-1.0, 1.0] if rng.random() < 0.5 else [-1.0, 1.0]
    targets = signal + noise + rng.choice([0.0, 7.0])
    chance = rng.uniform(0.0, 1.0, m) if rng.random() < 0.3 else np.full(m, 0.5)
    law = _Law(atoms, rng.dirichlet(np.ones(m)), targets, chance)
    name, model, loss, radius = _model(rng, float(np.sqrt(d)))
    if isinstance(model, NonNegativeRegressor):
        law = law._replace(targets=targets - targets.min())
    low, high = float(law.targets.min()), float(law.targets.max())
    X, y = law.draw(rng, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # of feature maps that were cut off
        model.fit(X, y)
    clip, empirical = bool(rng.random() < 0.7), bool(rng.random() < 0.2)
    known = {"radius": radius, "clip": clip, "empirical": empirical, "delta": delta}
    result = bound(model, X, y, target_bound=(low, high), **known)

    def predict(rows: Any) -> Any:
        prediction = model.predict(rows)
        return np.clip(prediction, low, high) if clip else prediction

    mean = float(np.mean(loss(y[:, None] - np.reshape(predict(X), (n, -1)))))
    return law.risk(predict, loss), result, mean, name


def _model(rng: np.random.Generator, length: float) -> tuple[str, Any, Any, float | None]:
    """An estimator with its loss as the textbook has it, and the radius of its rows."""
    kernel = [Gaussian(1.0), Laplacian(0.01)][rng.integers(2)]
    alpha = float(10.0 ** rng.integers(-6, 1))
    shared = {"kernel": kernel, "alpha": alpha, "fit_intercept": bool(rng.random() < 0.7)}
    levels = np.sort(rng.choice(np.arange(1, 20) / 20.0, 3, replace=False))
    tau, epsilon = float(levels[0]), 0.3
    offset = {"fit_intercept": shared["fit_intercept"]}

    def pinball(r: Any, t: Any = levels) -> Any:
        return np.maximum(t * r, (t - 1.0) * r).sum(axis=1)

    def beyond(r: Any) -> Any:
        return np.maximum(np.abs(r) - epsilon, 0.0)[:, 0]

    def square(r: Any) -> Any:
        return r[:, 0] ** 2

    gamma = float(rng.choice([0.0, 1.0, np.inf]))
    cases: list[tuple[str, Any, Any, float | None]] = [
        ("ridge, kernel", KernelRidge(**shared), square, None),
        ("ridge", Ridge(alpha, **offset), square, length),
        ("ridge, scikit-learn", linear_model.Ridge(alpha, **offset), square, length),
        ("ridge, online", OnlineRidge(alpha, **offset), square, length),
        ("lasso", Lasso(alpha, **offset), square, 1.0),
        ("lasso, bounded", Lasso(radius=float(rng.choice([0.1, 1.0])), **offset), square, 1.0),
        ("lasso, online", OnlineLasso(alpha, **offset), square, 1.0),
        ("svr", SVR(epsilon=epsilon, **shared), beyond, None),
        (
            "svr, squared",
            SVR("squared_epsilon_insensitive", epsilon=epsilon, **shared),
            lambda r: beyond(r) ** 2,
            None,
        ),
        (
            "svr, huber",
            SVR("huber", kappa=0.5, **shared),
            lambda r: np.where(abs(r) < 0.5, 0.5 * r**2, 0.5 * (abs(r) - 0.25))[:, 0],
            None,
        ),
        ("quantiles", QuantileRegressor(levels, level_gamma=gamma, **shared), pinball, None),
        (
            "quantile with a tube",
            QuantileRegressor(tau, epsilon=epsilon, **shared),
            lambda r: pinball(r - np.clip(r, -epsilon, epsilon), tau),
            None,
        ),
        (
            "expectiles",
            ExpectileRegressor(levels, level_gamma=gamma, **shared),
            lambda r: (0.5 * np.abs(levels - (r < 0.0)) * r**2).sum(axis=1),
            None,
        ),
        ("non-negative", NonNegativeRegressor(alpha=alpha, kernel=Gaussian(1.0)), square, None),
    ]
    return cases[rng.integers(len(cases))]
