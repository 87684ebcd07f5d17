"""Steps that stay or fall, and when to call them too long."""

from __future__ import annotations

import numpy as np
from numba import njit

from fenchel._typing import FloatArray

SCHEDULES = ("constant", "inverse_sqrt", "inverse")
ABSURD = 1e3  # errors of so many times the largest target are no predictions


@njit(cache=True, nogil=True, error_model="numpy")
def rate(pace: FloatArray, t: float) -> float:
    """η_t/η of row t = 1, 2, …; ``pace`` is (step or nan, schedule, delay, averaged from row)."""
    if pace[1] == 0.0:
        return 1.0
    slower = 1.0 + (t - 1.0) / pace[2]
    return 1.0 / np.sqrt(slower) if pace[1] == 1.0 else 1.0 / slower


def make_pace(step: float | None, schedule: str, delay: float, average: bool | int) -> FloatArray:
    """Turn the parameters into numbers for the compiled loops."""
    start = np.inf if average is False else float(average)
    base = np.nan if step is None else float(step)
    return np.array([base, SCHEDULES.index(schedule), float(delay), start])
