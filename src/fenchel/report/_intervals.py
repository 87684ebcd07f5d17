"""Prediction intervals: coverage, width, and calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.inspection import (
    calibrated_estimator,
    certified_model,
    intervals_of,
    rows_for_final,
    statistic_of,
)
from fenchel.metrics import (
    calibration_band,
    interval_coverage,
    mean_interval_score,
    mean_interval_width,
    mean_pinball_loss,
    mean_squared_pinball_loss,
    quantile_coverage,
)
from fenchel.report._levels import CONFIDENCE


@dataclass(frozen=True)
class Calibrated:
    """How intervals were calibrated: the method and the number of rows."""

    method: str
    n_rows: int


@dataclass(frozen=True)
class LevelInside:
    """A level of the model inside calibrated intervals, before calibration."""

    level: float
    observed: float
    loss: float


@dataclass(frozen=True)
class IntervalScores:
    """Coverage of intervals on some rows, with the band that chance explains."""

    coverage: float  # asked for
    side: str
    observed: float
    low: float
    high: float
    width: float
    score: float  # of one end its pinball loss
    n_rows: int
    n_infinite: int  # with an end that is infinite, though it was asked for
    calibrated: Calibrated | None
    levels: tuple[LevelInside, ...]
    has_expectiles: bool  # at these levels, and not quantiles

    @property
    def inside(self) -> bool:
        """Whether the observed coverage is inside the band."""
        return self.low <= self.observed <= self.high

    @property
    def two_sided(self) -> bool:
        """Whether both ends were requested, so that there is a width."""
        return self.side == "two-sided"


def interval_scores(
    estimator: Any, model: Any, X: Any, y: FloatArray, scored: IntArray
) -> IntervalScores | None:
    """Evaluate the intervals of a model on the scored rows; None if it has none."""
    found = intervals_of(estimator)
    if found is None or y.shape[1] > 1:
        return None
    ends, targets = found.ends(X)[scored], y[scored, 0]
    calibrated = _calibrated(model)
    n_calibration = None if calibrated is None else calibrated.n_rows
    band = calibration_band(
        [found.coverage], len(targets), CONFIDENCE, n_calibration=n_calibration
    )
    side = getattr(model, "side", "two-sided")
    wanted = {"lower": ends[:, :1], "upper": ends[:, 1:]}.get(side, ends)
    if side == "two-sided":
        score = mean_interval_score(targets, ends, found.coverage)
    else:
        level = found.coverage if side == "upper" else 1.0 - found.coverage
        score = float(mean_pinball_loss(targets, wanted, level))
    return IntervalScores(
        coverage=found.coverage,
        side=side,
        observed=interval_coverage(targets, ends),
        low=float(band[0, 0]),
        high=float(band[1, 0]),
        width=mean_interval_width(ends),
        score=score,
        n_rows=len(targets),
        n_infinite=int(np.isinf(wanted).any(axis=1).sum()),
        calibrated=calibrated,
        levels=_levels_inside(estimator, model, X, scored, targets),
        has_expectiles=_has_expectiles(estimator),
    )


def _calibrated(model: Any) -> Calibrated | None:
    if not hasattr(model, "n_calibration_"):
        return None
    return Calibrated(model.method, int(model.n_calibration_))


def _levels_inside(
    estimator: Any, model: Any, X: Any, scored: IntArray, y: FloatArray
) -> tuple[LevelInside, ...]:
    """Shares and losses of the levels of the model inside, in increasing order."""
    inside, levels = calibrated_estimator(estimator), getattr(model, "levels_", None)
    if inside is None or levels is None:
        return ()
    predicted = np.asarray(inside.predict(rows_for_final(estimator, X)), dtype=np.float64)
    curves = predicted.reshape(len(predicted), -1)[scored]
    mean = mean_squared_pinball_loss if _has_expectiles(estimator) else mean_pinball_loss
    losses = np.asarray(mean(y, curves, levels, multioutput="raw_values"))
    columns = np.column_stack([levels, quantile_coverage(y, curves), losses])
    return tuple(LevelInside(*column) for column in columns[np.argsort(levels)].tolist())


def _has_expectiles(estimator: Any) -> bool:
    return statistic_of(certified_model(estimator)) == "expectiles"
