"""Predictions of a model along one feature, with intervals if it has them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fenchel._typing import FloatArray
from fenchel.inspection import Intervals, feature_slice, intervals_of, partial_dependence

_POINTS = 40  # at which intervals are averaged: they may take ten times as long as predictions


class Along(NamedTuple):
    """Predictions on a grid of one feature, as ``predict`` shapes them; ends (n_points, 2)."""

    grid: FloatArray
    predicted: Any
    ends: FloatArray | None
    coverage: float | None
    values: FloatArray
    """The feature in all rows."""
    name: str
    note: str


def typical(estimator: Any, X: Any, feature: int | str | None, grid_resolution: int) -> Along:
    """With the other features at their typical values."""
    path, intervals = feature_slice(X, feature, grid_resolution), intervals_of(estimator)
    predicted = estimator.predict(path.rows)
    ends = None if intervals is None else intervals.ends(path.rows)
    coverage = None if intervals is None else intervals.coverage
    return Along(path.grid, predicted, ends, coverage, path.values, path.name, path.note)


def average(
    estimator: Any, X: Any, feature: int | str | None, grid_resolution: int, **sample: Any
) -> Along:
    """Averaged over rows, each with its own other features."""
    made = partial_dependence(
        estimator.predict, X, feature, grid_resolution=grid_resolution, **sample
    )
    note = f"averaged over the other features of {made.n_rows} rows"
    intervals, ends, coverage = intervals_of(estimator), None, None
    if intervals is not None:
        coverage = intervals.coverage
        few = min(grid_resolution, _POINTS)
        around = partial_dependence(
            lambda rows: _distances(intervals, rows), X, feature, grid_resolution=few, **sample
        )
        distances = [_between(made.grid, around.grid, each) for each in around.curves.T]
        ends = made.curves[:, [0]] + np.column_stack(distances)
    return Along(made.grid, made.curves, ends, coverage, made.values, made.name, note)


def _distances(intervals: Intervals, rows: Any) -> FloatArray:
    """Of the ends from the prediction: between points of a grid they change less than ends."""
    prediction = np.asarray(intervals.estimator.predict(rows), dtype=np.float64)
    return intervals.ends(rows) - prediction.reshape(-1, 1)


def _between(grid: FloatArray, known: FloatArray, values: FloatArray) -> FloatArray:
    """Linear between known points; all infinite where one of these is, as ends mostly are."""
    if not np.isfinite(values).all():
        return np.full(len(grid), values[~np.isfinite(values)][0])
    return np.interp(grid, known, values)
