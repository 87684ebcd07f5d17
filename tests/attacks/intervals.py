"""Shares of training rows below quantile curves, and their order, on random fits.

What is certain follows from the certificate alone. Were more than the share τ of the rows below
h - ε - t, lowering the offset by t would gain t for each such share beyond τ; as nothing gains
more than the gap, that share is at most τ + gap / t, for every t > 0. Likewise upwards.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from attacks import Outcome
from fenchel import ExpectileRegressor, NonCrossingQuantileRegressor, QuantileRegressor
from fenchel.kernels import Gaussian, Laplacian

IN_CI = 120
IN_FULL = 3000

_SLACKS = np.geomspace(1e-10, 1.0, 21)  # of the spread of y
_ROUNDING = 1e-10  # of predictions, which are sums of numbers larger than they are


def attack(count: int, seed: int) -> Outcome:
    """Random rows, weights, levels, couplings and tubes."""
    outcome = Outcome()
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        X, y, weight = _rows(rng)
        model = _model(rng, float(np.std(y)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap says how far it is
            warnings.simplefilter("ignore", UserWarning)  # of feature maps that were cut off
            model.fit(X, y, weight)
        weight = np.ones(len(y)) if weight is None else weight
        wrong, what = _judged(model, X, y, weight, rng)
        outcome.counts[what] += 1
        outcome.failures += [
            f"seed [{seed}, {k}] n={len(y)} {_written(model)}: {line}" for line in wrong
        ]
    return outcome


def _written(model: Any) -> str:
    """On one line."""
    return " ".join(repr(model).split())


def _rows(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    n = int(rng.integers(2, 70))
    X = rng.uniform(-1.0, 1.0, (n, int(rng.integers(1, 4))))
    if rng.random() < 0.3:
        X = np.round(2.0 * X) / 2.0  # repeated rows
    noise = [
        rng.standard_normal(n),
        rng.standard_t(1.2, n),
        rng.exponential(size=n) * (1.2 + X[:, 0]),
        rng.integers(0, 3, n).astype(float),
        np.zeros(n),
    ][rng.integers(5)]
    y = 10.0 ** rng.integers(-3, 4) * (np.sin(3.0 * X[:, 0]) * rng.integers(2) + noise)
    weight = None
    if rng.random() < 0.4:
        weight = rng.choice([0.0, 0.5, 1.0, 3.0], n)
        weight[rng.integers(n)] = 1.0
    return X, y, weight


def _model(rng: np.random.Generator, spread: float) -> Any:
    levels = rng.choice(np.arange(1, 40) / 40.0, int(rng.integers(1, 6)), replace=False)
    if rng.random() < 0.7:
        levels = np.unique(np.append(levels, [0.1, 0.9]))
    rng.shuffle(levels)
    kernel = [Gaussian(0.7), Laplacian(0.4), "linear"][rng.integers(3)]
    alpha = 10.0 ** rng.integers(-5, 2)
    kind = rng.integers(10)
    if kind == 0:
        return NonCrossingQuantileRegressor(levels, alpha=alpha, kernel=kernel)
    shared = {
        "kernel": kernel,
        "alpha": alpha / max(spread, 1e-9),
        "level_gamma": float(rng.choice([0.0, 0.0, 0.5, 3.0, np.inf])),
        "epsilon": spread * float(rng.choice([0.0, 0.0, 0.1, 0.5, 2.0])),
        "fit_intercept": bool(rng.random() < 0.9),
    }
    if kind == 1:
        return ExpectileRegressor(levels, **shared)
    order = "train" if shared["epsilon"] == 0.0 and rng.random() < 0.3 else None
    return QuantileRegressor(levels, non_crossing=order, **shared)


def _judged(model: Any, X: Any, y: Any, weight: Any, rng: Any) -> tuple[list[str], str]:
    """What is wrong, and the kind of try."""
    train = X[weight > 0.0]
    far = np.vstack([X, rng.uniform(-5.0, 5.0, (200, X.shape[1]))])
    if isinstance(model, NonCrossingQuantileRegressor):
        return _crossed(model, far, 0.0), "in order everywhere, by non-negative distances"
    wrong, size = [], _ROUNDING * (float(np.abs(y).max()) or 1.0)
    if model.level_gamma == 0.0:
        wrong += _crossed(model, far, size)
    elif getattr(model, "non_crossing", None):
        wrong += _crossed(model, train, size)
    if isinstance(model, ExpectileRegressor):
        return wrong, f"expectiles, gamma {model.level_gamma:g}"
    if model.fit_intercept:
        wrong += _shares(model, X, y, weight / weight.sum())
    if model.epsilon > 0.0:
        wrong += _not_refused(model, X)
    order = ", in order" if model.non_crossing else ""
    tube = ", with a tube" if model.epsilon > 0.0 else ""
    offset = "" if model.fit_intercept else ", no offset"
    return wrong, f"quantiles, gamma {model.level_gamma:g}{order}{tube}{offset}"


def _crossed(model: Any, X: Any, allowed: float) -> list[str]:
    curves = np.reshape(model.predict(X), (len(X), -1))[:, np.argsort(model.levels_)]
    amount = float(-np.diff(curves, axis=1).min(initial=0.0))
    return [f"curves cross by {amount:g}"] if amount > allowed else []


def _shares(model: Any, X: Any, y: Any, share: Any) -> list[str]:
    order = np.argsort(model.levels_)
    levels = model.levels_[order]
    residual = y[:, None] - np.reshape(model.predict(X), (len(X), -1))[:, order]
    spread, size = float(np.std(y)), float(np.abs(y).max())
    rounding = 1e-13 * size  # of residuals, and hence of objectives
    gap = max(model.certificate_.gap, 0.0) + rounding
    wrong = []
    for t in _SLACKS * spread:
        if t <= 100.0 * rounding:
            continue
        loss = gap / (t - rounding) + 1e-9
        below = share @ (residual < -model.epsilon - t)
        most = share @ (residual <= model.epsilon + t)
        if model.non_crossing and len(levels) > 1:  # the lowest ones together, and the highest
            below, tops = np.cumsum(below), np.cumsum(levels)
            most, floors = np.cumsum(most[::-1])[::-1], np.cumsum(levels[::-1])[::-1]
        else:
            tops = floors = levels
        if np.any(below > tops + loss) or np.any(most < floors - loss):
            wrong.append(
                f"shares {below} to {most} for levels {levels}, within {t:g} at gap {gap:g}"
            )
        if {0.1, 0.9} <= set(model.levels_.tolist()) and model.epsilon == 0.0:
            wrong += _held(model, X, y, share, t, loss)
    return wrong[:1]


def _held(model: Any, X: Any, y: Any, share: Any, t: float, loss: float) -> list[str]:
    """The interval of levels 0.1 and 0.9 holds 80 %; between others, if curves are in order."""
    if model.non_crossing and (model.levels_.min() < 0.1 or model.levels_.max() > 0.9):
        return []
    low, high = model.predict_interval(X, 0.8).T
    held = float(share @ ((low - t <= y) & (y <= high + t)))
    return [] if held >= 0.8 - 2.0 * loss else [f"the interval of 80 % holds {held:g}"]


def _not_refused(model: Any, X: Any) -> list[str]:
    if not {0.1, 0.9} <= set(model.levels_.tolist()):
        return []
    try:
        model.predict_interval(X, 0.8)
    except ValueError as error:
        return [] if "epsilon must be 0" in str(error) else [f"refused by {error}"]
    return ["an interval was given in spite of the tube"]
