"""Normal distributions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import ndtr, ndtri

from fenchel._typing import ArrayLike, FloatArray
from fenchel.distributions.base import Distribution


class NormalDistribution(Distribution):
    r"""Normal distributions, one for each row.

    .. math:: \mathrm{CRPS} = \sigma \Bigl(z (2 \Phi(z) - 1) + 2 \varphi(z)
              - \frac{1}{\sqrt{\pi}}\Bigr), \qquad z = \frac{y - \mu}{\sigma}

    Parameters
    ----------
    loc : array-like of shape (n,)
        Means μ.
    scale : array-like of shape (n,)
        Standard deviations σ > 0; inf is allowed.

    References
    ----------
    Gneiting, Raftery, Westveld, Goldman (2005), Calibrated probabilistic forecasting using
    ensemble model output statistics and minimum CRPS estimation, (5).

    Examples
    --------
    >>> from fenchel.distributions import NormalDistribution
    >>> pair = NormalDistribution([0.0, 10.0], [1.0, 2.0])
    >>> pair.interval(0.95).round(2)
    array([[-1.96,  1.96],
           [ 6.08, 13.92]])
    >>> pair.cdf([0.0, 12.0]).round(3)
    array([0.5  , 0.841])
    """

    def __init__(self, loc: ArrayLike, scale: ArrayLike) -> None:
        self.loc = np.atleast_1d(np.asarray(loc, dtype=np.float64))
        self.scale = np.atleast_1d(np.asarray(scale, dtype=np.float64))
        if self.loc.ndim != 1 or self.loc.shape != self.scale.shape:
            raise ValueError(
                f"loc and scale must have one number for each row, got shapes {self.loc.shape} "
                f"and {self.scale.shape}"
            )
        if not np.all(self.scale > 0.0):
            raise ValueError("scale must be > 0 for each row, got a value that is not")

    def __len__(self) -> int:
        return len(self.loc)

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(self.loc[rows], self.scale[rows])

    def __repr__(self) -> str:
        return f"NormalDistribution of {len(self)} rows"

    def mean(self) -> FloatArray:
        """Return the means, (n,)."""
        return self.loc.copy()

    def var(self) -> FloatArray:
        """Return the variances, (n,)."""
        return np.square(self.scale)

    def _standard(self, y: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):  # infinite values over infinite deviations
            z = (y - self.loc[:, None]) / self.scale[:, None]
        return np.where(np.isinf(y), y, z)

    def _cdf(self, y: FloatArray) -> FloatArray:
        return np.asarray(ndtr(self._standard(y)))

    def _pdf(self, y: FloatArray) -> FloatArray:
        return np.exp(self._log_prob(y))

    def _log_prob(self, y: FloatArray) -> FloatArray:
        exponent = -0.5 * np.square(self._standard(y))
        return exponent - np.log(np.sqrt(2.0 * np.pi) * self.scale)[:, None]

    def _ppf(self, levels: FloatArray) -> FloatArray:
        z = np.broadcast_to(ndtri(levels), (len(self), levels.shape[1]))
        move = np.multiply(self.scale[:, None], z, out=np.zeros(z.shape), where=z != 0.0)
        return self.loc[:, None] + move

    def _crps(self, y: FloatArray) -> FloatArray:
        z = self._standard(y)
        density = np.exp(-0.5 * np.square(z)) / np.sqrt(2.0 * np.pi)
        unit = z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi)
        return np.asarray(self.scale[:, None] * unit)
