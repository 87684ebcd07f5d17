"""Prior on length scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray

_COMMON = 0.3  # of the strength, on what all scales have in common


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
