"""Levels: whether quantiles are what they say, and whether curves cross."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from fenchel._typing import FloatArray
from fenchel.kernels import OperatorKernel
from fenchel.model_selection import ConformalQuantileRegressor
from fenchel.positive import NonCrossingQuantileRegressor

CONFIDENCE = 0.95
LEAST_ROWS = 10.0  # expected beyond a level, below which its curve rests on very few rows
_ROUNDING = 1e-10


@dataclass(frozen=True)
class Calibration:
    """One level: shares of rows at or below and strictly below, and the band of the first."""

    level: float
    observed: float
    below: float
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the band holds an observed share; rows on the curve count either way."""
        return self.below <= self.high and self.observed >= self.low


@dataclass(frozen=True)
class Crossings:
    """How many rows have curves of neighbouring levels out of order, and by how much at most."""

    rows: int
    n_rows: int
    largest: float
    guarantee: str

    @property
    def share(self) -> float:
        """As a share of the rows."""
        return self.rows / self.n_rows


def levels_of(model: Any) -> FloatArray | None:
    """Levels of the columns of its predictions; None for models that predict targets."""
    levels = getattr(model, "levels_", None)
    if levels is None or isinstance(model, ConformalQuantileRegressor):
        return None  # the latter has levels of the model inside, and predicts one number
    return np.asarray(levels, dtype=np.float64)


def calibration(
    levels: FloatArray, predictions: FloatArray, y: FloatArray
) -> tuple[Calibration, ...]:
    """Nominal against observed levels, with a central binomial interval around each."""
    n, tail = len(y), 0.5 * (1.0 - CONFIDENCE)
    found = []
    for level, curve in sorted(zip(levels, predictions.T, strict=True), key=lambda p: p[0]):
        low, high = (float(binom.ppf(part, n, level)) / n for part in (tail, 1.0 - tail))
        observed, below = float(np.mean(y <= curve)), float(np.mean(y < curve))
        found.append(Calibration(float(level), observed, below, low, high))
    return tuple(found)


def crossings(model: Any, predictions: FloatArray) -> Crossings:
    """Count the rows where curves cross by more than rounding."""
    ordered = predictions[:, np.argsort(model.levels_)]
    steps = ordered[:, :-1] - ordered[:, 1:]
    slack = _ROUNDING * float(np.abs(predictions).max(initial=0.0))
    crossed = np.any(steps > slack, axis=1)
    largest = max(float(steps.max(initial=0.0)), 0.0) if np.any(crossed) else 0.0
    return Crossings(int(crossed.sum()), len(ordered), largest, _guarantee(model))


def _guarantee(model: Any) -> str:
    """What is known of other rows than these."""
    loss = getattr(model, "loss_", None)
    if loss is not None and loss.cone is not None:
        return (
            "The order of the curves is a constraint of the fit, so it is guaranteed at the rows "
            "of the fit, up to rounding. It is not guaranteed at other rows."
        )
    if isinstance(model, NonCrossingQuantileRegressor):
        return (
            "The distances of neighbouring curves are functions that cannot be negative, so that "
            "the curves cross nowhere."
        )
    scalar = not isinstance(getattr(model, "kernel", None), OperatorKernel)
    if scalar and getattr(model, "level_gamma", None) == 0.0:
        offsets = np.asarray(model.offset_)[np.argsort(model.levels_)]
        if np.all(np.diff(offsets) >= 0.0):
            return (
                "The curves are parallel (level_gamma is 0) and their offsets are in order, so "
                "that they cross nowhere."
            )
    return (
        "Nothing in this model forbids crossing. The count is of the rows of this report, and "
        "says nothing certain of others."
    )


def too_far_out(levels: FloatArray, n_rows: int) -> list[float]:
    """Levels beyond which fewer than ten of so many rows are expected."""
    return [float(t) for t in np.sort(levels) if n_rows * min(t, 1.0 - t) < LEAST_ROWS - 1e-9]


__all__ = [
    "CONFIDENCE",
    "LEAST_ROWS",
    "Calibration",
    "Crossings",
    "calibration",
    "crossings",
    "levels_of",
    "too_far_out",
]
