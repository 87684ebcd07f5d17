"""Step sizes and their schedules, and the detection of divergence."""

from __future__ import annotations

import numpy as np

from fenchel._compiling import njit
from fenchel._typing import FloatArray

SCHEDULES = ("constant", "inverse_sqrt", "inverse")
ROWS, AVERAGED, LARGEST_CURVATURE, LARGEST_TARGET, SQUARES = range(5)  # places in ``track``
ABSURD = 1e3  # errors of so many times the largest target are no predictions


@njit(cache=True, nogil=True, error_model="numpy")
def rate(pace: FloatArray, t: float) -> float:
    """η_t/η of row t = 1, 2, …; ``pace`` is (step or nan, schedule, delay, averaged from row)."""
    if pace[1] == 0.0:
        return 1.0
    slower = 1.0 + (t - 1.0) / pace[2]
    return 1.0 / np.sqrt(slower) if pace[1] == 1.0 else 1.0 / slower


@njit(cache=True, nogil=True, error_model="numpy")
def next_step(track: FloatArray, pace: FloatArray, curvature: float, y: float, own: bool) -> float:
    """Count a row, and return the step for it: by its own curvature, or by the largest so far."""
    track[ROWS] += 1.0
    track[LARGEST_CURVATURE] = max(track[LARGEST_CURVATURE], curvature)
    track[LARGEST_TARGET] = max(track[LARGEST_TARGET], abs(y))
    step = pace[0]
    if np.isnan(step):
        bend = curvature if own else track[LARGEST_CURVATURE]
        step = 0.5 / bend if bend > 0.0 else 0.0
    return step * rate(pace, track[ROWS])


def make_pace(step: float | None, schedule: str, delay: float, average: bool | int) -> FloatArray:
    """Turn the parameters into numbers for the compiled loops."""
    start = np.inf if average is False else float(average)
    base = np.nan if step is None else float(step)
    return np.array([base, SCHEDULES.index(schedule), float(delay), start])
