"""Prior on length scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray

_COMMON = 0.3  # of the strength, on what all scales have in common
_SPREAD = 3.0  # variance of the prior of Hvarfner et al. (2024)
_OF_SQUARES = 4.0  # chance moves their mean more than that of absolute values
_MANY_SCALES = 24  # those of twelve columns and their ranks
_ROWS_EACH, _MOST = 20.0, 2.0  # rows for each of many, below which it is up to twice as strong


@dataclass(frozen=True)
class Prior:
    r"""Penalty on the logarithms of length scales: prefers equal ones first, wide ones second.

    .. math:: s \sum_j (z_j - \bar z)^2 + 0.3\, s\, m\, \bar z^2, \qquad z = \theta - c

    over the m length scales, with c the expected value of each.

    Parameters
    ----------
    centre : ndarray of shape (m,)
    scales : ndarray of shape (m,)
        Which coordinates are length scales; the others are not penalized.
    strength : float
    """

    centre: FloatArray
    scales: npt.NDArray[np.bool_]
    strength: float

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient."""
        away = (theta - self.centre)[self.scales]
        gradient = np.zeros(len(theta))
        if not len(away):
            return 0.0, gradient
        common = float(away.mean())
        apart = away - common
        value = float(apart @ apart) + _COMMON * len(away) * common**2
        gradient[self.scales] = 2.0 * self.strength * (apart + _COMMON * common)
        return self.strength * value, gradient


def share_for(bounded: bool, n_rows: int, n_scales: int) -> float:
    """The strength for a prior of one: larger for squares, and for many scales on few rows.

    Parameters
    ----------
    bounded : bool
        Whether the slopes of the loss are bounded.
    n_rows : int
    n_scales : int
        Number of length scales that are learned.
    """
    times = 1.0 if bounded else _OF_SQUARES
    if n_scales > _MANY_SCALES:
        times *= min(max(_ROWS_EACH * n_scales / n_rows, 1.0), _MOST)
    return float(times * n_rows**-1.5 / _SPREAD)
