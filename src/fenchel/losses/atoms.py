"""The standard losses: squared, absolute, pinball, squared pinball, Huber, and length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import COUNT, POSITIVE, check_levels, shown
from fenchel.losses.base import Loss
from fenchel.losses.box import BoxQuadratic
from fenchel.losses.radial import Radial


class Squared(BoxQuadratic):
    r"""Half the squared length of the residual.

    .. math:: \ell(\xi) = \tfrac12 \|\xi\|_2^2, \qquad \ell^*(\beta) = \tfrac12 \|\beta\|_2^2

    Elicits the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Squared
    >>> Squared().value(np.array([[3.0, 4.0]]))
    array([12.5])
    """

    statistic = "mean"

    def __init__(self) -> None:
        super().__init__(-np.inf, np.inf, 1.0, 1.0)

    def huber(self, kappa: float, norm: int = 1) -> Loss:
        """Return the Huber loss, the infimal convolution with ``kappa`` times a norm."""
        if self.epsilon != 0.0:
            raise ValueError("huber is for the squared loss itself, not an insensitive version")
        if norm not in (1, 2):
            raise ValueError(f"norm must be 1 or 2, got {shown(norm)}")
        return Huber(kappa) if norm == 1 else Radial(1.0, check_kappa(kappa))


class Absolute(BoxQuadratic):
    r"""Sum of the absolute residuals.

    .. math:: \ell(\xi) = \|\xi\|_1, \qquad \ell^*(\beta) = \chi(\|\beta\|_\infty \le 1)

    Elicits the median, output by output.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Absolute
    >>> Absolute().value(np.array([[3.0, -4.0]]))
    array([7.])
    """

    statistic = "median"

    def __init__(self) -> None:
        super().__init__(-1.0, 1.0, 0.0, 0.0)


class _OfLevels(BoxQuadratic):
    """A loss with a level for each output of each target."""

    levels: FloatArray
    n_targets: int

    def _read(self, levels: float | Sequence[float] | FloatArray, n_targets: int) -> FloatArray:
        """Keep levels and the number of targets; return the level of each output."""
        self.levels, self.n_targets = check_levels(levels), int(COUNT(n_targets, "n_targets"))
        return np.repeat(self.levels, self.n_targets)

    def _arguments(self) -> str:
        levels = ", ".join(f"{level:g}" for level in self.levels).join("[]")
        return levels if self.n_targets == 1 else f"{levels}, n_targets={self.n_targets}"

    def rearranged(self, offset: FloatArray) -> FloatArray:
        """In the order of the levels; see docs/mathematics.md, parallel curves."""
        arranged = np.empty((len(self.levels), self.n_targets))
        arranged[np.argsort(self.levels)] = np.sort(offset.reshape(arranged.shape), axis=0)
        return arranged.ravel()


class Pinball(_OfLevels):
    r"""Pinball loss, summed over levels.

    .. math:: \ell(\xi) = \sum_j \max(\tau_j \xi_j, (\tau_j - 1) \xi_j), \qquad
              \ell^*(\beta) = \chi(\tau_j - 1 \le \beta_j \le \tau_j)

    Elicits the quantiles at these levels.

    Parameters
    ----------
    levels : float or sequence of float
        Levels in (0, 1), one per output.
    n_targets : int, default=1
        Number of targets, each with all levels. The outputs are the targets at the first level,
        then the targets at the second level, and so on.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Pinball
    >>> Pinball([0.25, 0.75]).value(np.array([[1.0, -1.0]]))
    array([0.5])
    >>> Pinball([0.25, 0.75]).insensitive(2.0).value(np.array([[1.0, -1.0]]))
    array([0.])
    >>> Pinball([0.25, 0.75], n_targets=2).value(np.array([[1.0, 8.0, -1.0, 0.0]]))
    array([2.5])
    """

    statistic = "quantiles"

    def __init__(self, levels: float | Sequence[float] | FloatArray, n_targets: int = 1) -> None:
        each = self._read(levels, n_targets)
        super().__init__(each - 1.0, each, 0.0, 0.0)

    def offset_for_new_rows(
        self, residual: FloatArray, sample_weight: FloatArray, n_rows: float
    ) -> FloatArray:
        r"""Return the order statistic of number :math:`\tau_j (n + 1/3) + 1/3` of n residuals.

        Fractional numbers are interpolated linearly: the result is the mean of the quantiles at
        all levels from :math:`1 / n` below that number over n up to it. It is approximately
        median-unbiased for the quantile of the population, for any distribution. The minimizer of
        the mean loss has number :math:`\tau_j n`, rounded up; with few residuals this puts
        the outer quantiles too close to each other.

        References
        ----------
        Hyndman, Fan (1996), Sample quantiles in statistical packages, The American Statistician
        50(4), definition 8.
        """
        _, each, _, _ = self.parameters(residual.shape[1])
        high = np.clip((each * (n_rows + 1.0 / 3.0) + 1.0 / 3.0) / n_rows, 1.0 / n_rows, 1.0)
        columns = zip(residual.T, high, strict=True)
        return np.array(
            [_mean_of_levels(r, sample_weight, b - 1.0 / n_rows, b) for r, b in columns]
        )


class SquaredPinball(_OfLevels):
    r"""Squared pinball loss, summed over levels.

    .. math:: \ell(\xi) = \tfrac12 \sum_j |\tau_j - 1(\xi_j < 0)|\, \xi_j^2, \qquad
              \ell^*(\beta) = \tfrac12 \sum_j \beta_j^2 / |\tau_j - 1(\beta_j < 0)|

    Elicits the expectiles at these levels.

    Parameters
    ----------
    levels, n_targets
        As in :class:`Pinball`.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import SquaredPinball
    >>> SquaredPinball(0.9).value(np.array([[1.0], [-1.0]]))
    array([0.45, 0.05])
    """

    statistic = "expectiles"

    def __init__(self, levels: float | Sequence[float] | FloatArray, n_targets: int = 1) -> None:
        each = self._read(levels, n_targets)
        super().__init__(-np.inf, np.inf, 1.0 / (1.0 - each), 1.0 / each)


class Huber(BoxQuadratic):
    r"""Huber loss: quadratic up to kappa, linear beyond, summed over outputs.

    .. math:: \ell = \tfrac12 \|\cdot\|_2^2 \,\square\, \kappa \|\cdot\|_1, \qquad
              \ell^*(\beta) = \tfrac12 \|\beta\|_2^2 + \chi(\|\beta\|_\infty \le \kappa)

    Parameters
    ----------
    kappa : float
        Residual at which the loss becomes linear, in the units of y.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Huber
    >>> Huber(1.0).value(np.array([[0.5], [3.0]]))
    array([0.125, 2.5  ])
    """

    statistic = "Huber location"

    def __init__(self, kappa: float = 1.0) -> None:
        self.kappa = check_kappa(kappa)
        super().__init__(-self.kappa, self.kappa, 1.0, 1.0)

    def _arguments(self) -> str:
        return f"{self.kappa:g}"

    def rescaled(self, scale: float) -> Self:
        """Return the Huber loss with the threshold in the new units."""
        new = super().rescaled(scale)
        new.kappa = self.kappa / scale
        return new


class L2Norm(Radial):
    r"""Euclidean length of the residual.

    .. math:: \ell(\xi) = \|\xi\|_2, \qquad \ell^*(\beta) = \chi(\|\beta\|_2 \le 1)

    Elicits the spatial median.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import L2Norm
    >>> L2Norm().insensitive(1.0).value(np.array([[3.0, 4.0]]))
    array([4.])
    """

    statistic = "spatial median"

    def __init__(self) -> None:
        super().__init__(0.0, 1.0)

    def _arguments(self) -> str:
        return ""


def check_kappa(kappa: float) -> float:
    """Return kappa as a float, or raise an error that says what is allowed."""
    return POSITIVE(kappa, "kappa")


def _mean_of_levels(values: FloatArray, weight: FloatArray, low: float, high: float) -> float:
    """Mean of the quantiles of all levels between two."""
    order = np.argsort(values)
    ends = np.cumsum(weight[order])
    ends = np.concatenate([[0.0], ends / ends[-1]]).clip(low, high)
    return float(np.average(values[order], weights=np.diff(ends)))
