"""Prior on length scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray

_COMMON = 0.3  # of the strength, on what all scales have in common
_SPREAD = 3.0  # variance of the prior of Hvarfner et al. (2024)
# Length scales: those of four or nine columns and of their ranks. For losses with bounded
# slopes a few targets far from all others raise the loss of 40 rows of six columns.
_FEW, _FEW_OF_OTHERS = 8, 18
# Chance moves the mean of squares more than that of absolute values.
_OF_SQUARES, _OF_OTHERS = 4.0, 2.0
_ROWS_EACH, _MOST = 20.0, 2.0  # rows for each scale, below which it is up to twice as strong


@dataclass(frozen=True)
class Prior:
    r"""Penalty on the logarithms of length scales: prefers equal ones first, wide ones second.

    .. math:: s_C \Bigl(\sum_j (z_j - \bar z)^2 + 0.3\, m\, \bar z^2\Bigr),
              \qquad z = \theta - c

    over the m length scales, with c the expected value of each and :math:`s_C = s \max(q C, 1)^w`
    for a held-out loss C in units of that of a constant. Among many columns, some agree with the
    targets of all folds by chance. What they gain is a share of the loss, and so is the penalty of
    targets that are mostly noise, where w is one.

    Parameters
    ----------
    centre : ndarray of shape (m,)
    scales : ndarray of shape (m,)
        Which coordinates are length scales; the others are not penalized.
    strength : float
        The number s.
    power : float
        The number w, from 0 to 1.
    times : float
        The number q.
    """

    centre: FloatArray
    scales: npt.NDArray[np.bool_]
    strength: float
    power: float = 0.0
    times: float = 1.0

    @classmethod
    def of(
        cls,
        centre: FloatArray,
        scales: npt.NDArray[np.bool_],
        strength: float,
        n_rows: int,
        bounded: bool,
    ) -> Self:
        """The prior of that strength for a number of rows, and a loss of bounded slopes or not."""
        n_scales = max(int(scales.sum()), 1)
        few = _FEW_OF_OTHERS if bounded else _FEW
        power = max(0.0, 1.0 - (few / n_scales) ** 2)
        crowded = min(max(_ROWS_EACH * n_scales / n_rows, 1.0), _MOST)
        times = crowded * (_OF_OTHERS if bounded else _OF_SQUARES)
        share = strength * n_rows**-1.5 / _SPREAD
        return cls(centre, scales, share, power, times)

    def __call__(self, theta: FloatArray, loss: float) -> tuple[float, FloatArray, float]:
        """Value, gradient, and derivative with respect to the loss."""
        away = (theta - self.centre)[self.scales]
        gradient = np.zeros(len(theta))
        if not len(away):
            return 0.0, gradient, 0.0
        large = self.times * loss > 1.0
        strength = self.strength * (self.times * loss) ** self.power if large else self.strength
        common = float(away.mean())
        apart = away - common
        value = float(apart @ apart) + _COMMON * len(away) * common**2
        gradient[self.scales] = 2.0 * strength * (apart + _COMMON * common)
        slope = self.power * strength * value / loss if large else 0.0
        return strength * value, gradient, slope
