"""Calibration and crossings of quantile levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel.kernels import OperatorKernel
from fenchel.metrics import calibration_band, crossing_amounts, quantile_coverage
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
        """Whether an observed share is inside the band; rows on the curve may count either way."""
        return self.below <= self.high and self.observed >= self.low


@dataclass(frozen=True)
class Crossings:
    """Number of rows where curves of neighbouring levels cross, and the largest amount."""

    rows: int
    n_rows: int
    largest: float
    guarantee: str

    @property
    def share(self) -> float:
        """Share of the rows."""
        return self.rows / self.n_rows


def calibration(
    levels: FloatArray, predictions: FloatArray, y: FloatArray
) -> tuple[Calibration, ...]:
    """Nominal and observed levels, with a central binomial interval around each."""
    low, high = calibration_band(levels, len(y), CONFIDENCE)
    observed = quantile_coverage(y, predictions)
    below = quantile_coverage(y, predictions, strict=True)
    columns = np.column_stack([levels, observed, below, low, high])[np.argsort(levels)]
    return tuple(Calibration(*column) for column in columns.tolist())


def crossings(model: Any, predictions: FloatArray) -> Crossings:
    """Count the rows where curves cross by more than rounding errors."""
    amounts = crossing_amounts(predictions, model.levels_)
    slack = _ROUNDING * float(np.abs(predictions).max(initial=0.0))
    crossed = np.any(amounts > slack, axis=1)
    largest = float(amounts.max(initial=0.0)) if np.any(crossed) else 0.0
    return Crossings(int(crossed.sum()), len(amounts), largest, _guarantee(model))


def _guarantee(model: Any) -> str:
    """What is known about crossings at other rows."""
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
        "This model does not prevent crossings. The count is for the rows of this report; "
        "other rows may differ."
    )


def too_far_out(levels: FloatArray, n_rows: int) -> list[float]:
    """Levels beyond which fewer than ten of this number of rows are expected."""
    return [float(t) for t in np.sort(levels) if n_rows * min(t, 1.0 - t) < LEAST_ROWS - 1e-9]
