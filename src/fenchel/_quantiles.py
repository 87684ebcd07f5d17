"""Weighted quantiles that are one of the values."""

from __future__ import annotations

import numpy as np

from fenchel._typing import FloatArray

_ROUNDING = 1e-12  # of shares: 0.07 * 100 is 7 and not 8


def least_quantile(values: FloatArray, weight: FloatArray | None, level: float) -> float:
    """Return the smallest value with at least a share ``level`` of the weight at or below it.

    The smallest minimizer of the pinball loss of this level.

    Parameters
    ----------
    values : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
        Weights, >= 0; None for equal ones.
    level : float
        In [0, 1].

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel._quantiles import least_quantile
    >>> least_quantile(np.array([3.0, 1.0, 2.0, 4.0]), None, 0.5)
    2.0
    >>> least_quantile(np.array([3.0, 1.0, 2.0, 4.0]), np.array([9.0, 1.0, 1.0, 1.0]), 0.5)
    3.0
    """
    level *= 1.0 - _ROUNDING
    if weight is None:
        place = max(int(np.ceil(level * len(values))) - 1, 0)
        return float(np.partition(values, place)[place])
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    place = int(np.searchsorted(reached, level * reached[-1]))
    return float(values[order[min(place, len(order) - 1)]])


def median(values: FloatArray, weight: FloatArray | None) -> float:
    """Return the mean of the smallest and the largest value that minimizes the absolute loss.

    The median of the values, each repeated as often as its weight says.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel._quantiles import median
    >>> median(np.array([3.0, 1.0, 2.0, 4.0]), None)
    2.5
    >>> median(np.array([3.0, 1.0]), np.array([2.0, 1.0]))
    3.0
    """
    low = least_quantile(values, weight, 0.5)
    return 0.5 * (low - least_quantile(-values, weight, 0.5))
