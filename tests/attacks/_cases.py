"""Random data for the attacks on certificates: sizes, scales, shifts, ties, weights."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Data:
    """What an estimator is fitted to, and new rows."""

    X: np.ndarray
    y: np.ndarray | None
    weight: np.ndarray | None
    fresh: np.ndarray
    more: dict[str, Any] = field(default_factory=dict)
    """Further arguments of ``fit``."""
    before: dict[str, Any] = field(default_factory=dict)
    """Other parameters, of a first fit from which the second one starts."""


@dataclass(frozen=True)
class Fit:
    """How a fit ended."""

    warned: bool
    error: Exception | None = None

    @property
    def refused(self) -> bool:
        """Whether the solver said that it cannot solve the problem."""
        return "cannot solve this problem" in str(self.error)


def one_of(rng: np.random.Generator, options: Any) -> Any:
    """One of a sequence, itself."""
    return options[int(rng.integers(len(options)))]


def chance(rng: np.random.Generator, share: float) -> bool:
    """True in this share of cases."""
    return bool(rng.random() < share)


def size(rng: np.random.Generator, most: int = 400) -> int:
    """Mostly small, and evenly many of each order of magnitude."""
    return int(np.exp(rng.uniform(0.0, np.log(most if chance(rng, 0.08) else 50))).round())


def rows(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Training rows and new ones, often degenerate in some way."""
    new = 5
    X = rng.normal(size=(n + new, d)) if chance(rng, 0.5) else rng.uniform(size=(n + new, d))
    if chance(rng, 0.15):
        X = np.round(X * 3.0)  # many duplicates
    elif chance(rng, 0.1):
        X[rng.integers(0, n, n // 2)] = X[0]
    if d > 1 and chance(rng, 0.1):
        X[:, 1] = 2.0 * X[:, 0]
    if chance(rng, 0.08):
        X[:, -1] = 3.0
    if chance(rng, 0.15):  # first, so that five digits are the most that a shift takes
        X = X + one_of(rng, [1e4, 1e5]) * (np.abs(X).max() if chance(rng, 0.5) else 1.0)
    if chance(rng, 0.15):
        X = X * 10.0 ** rng.uniform(-8.0, 8.0)
    return X[:n], X[n:]


def targets(rng: np.random.Generator, X: np.ndarray, columns: int = 1) -> np.ndarray:
    """Targets with something to learn, ties, outliers, at any scale; (n, columns)."""
    n = len(X)
    spread = np.ptp(X, axis=0)
    unit = (X - X.min(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    y = np.sin(3.0 * unit.sum(axis=1))[:, None] * rng.normal(size=columns)
    y = y + rng.normal(size=(n, columns)) * rng.choice([0.0, 0.1, 1.0])
    kind = rng.random()
    if kind < 0.1:
        y = np.round(2.0 * y)
    elif kind < 0.15:
        y = np.full((n, columns), rng.normal())
    elif kind < 0.25:
        y[rng.random(n) < 0.1] *= 1e3
    if chance(rng, 0.2):
        y = y * 10.0 ** rng.uniform(-8.0, 8.0)
    if chance(rng, 0.15):
        y = y + one_of(rng, [1e2, 1e4, 1e6]) * (float(np.abs(y).max()) or 1.0)
    return y


def weights(rng: np.random.Generator, n: int) -> np.ndarray | None:
    """None, counts, with zeros, or over many decades."""
    kind = rng.random()
    if kind < 0.55 or n < 3:
        return None
    if kind < 0.7:
        weight = rng.integers(0, 4, n).astype(float)
        weight[int(rng.integers(n))] = 1.0
        return weight
    return np.asarray(10.0 ** rng.uniform(-rng.uniform(0.0, 12.0), 0.0, n))


def fit(model: Any, data: Data) -> Fit:
    """Fit, and note warnings; an error is that of a refused solver."""
    weight = {} if data.weight is None else {"sample_weight": data.weight}
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            if data.before:
                own = {name: model.get_params(deep=False)[name] for name in data.before}
                model.set_params(**data.before).fit(data.X, data.y, **weight, **data.more)
                model.set_params(**own)
                caught.clear()
            model.fit(data.X, data.y, **weight, **data.more)
        except Exception as error:  # of any kind: the attack says which
            return Fit(False, error)
    return Fit(bool(caught))
