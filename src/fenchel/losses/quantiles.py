"""Quantiles of columns; weighted quantiles are in :mod:`fenchel._quantiles`."""

from __future__ import annotations

import numpy as np

from fenchel._compiling import njit
from fenchel._threads import in_threads
from fenchel._typing import FloatArray, IntArray
from fenchel.design import RowBlocks

_SAME = 1e-9  # of shares: a level that is a multiple of 1 / n is one up to rounding
_MANY = 20_000  # values, from where a sample says between which two a quantile is
_SAMPLE = 4096
_AWAY = 5.0  # standard deviations of a share in the sample: one quantile in a million is missed


def middle_quantiles(values: FloatArray, levels: FloatArray) -> FloatArray:
    """Return a quantile of each column, the midpoint if the quantile is an interval.

    It is the midpoint of the minimizers of the pinball loss at the level of the column.

    Parameters
    ----------
    values : ndarray of shape (n, p)
    levels : ndarray of shape (p,)
        In (0, 1).

    Returns
    -------
    ndarray of shape (p,)

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses.quantiles import middle_quantiles
    >>> values = np.array([[3.0, 3.0], [1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    >>> middle_quantiles(values, np.array([0.5, 0.7]))
    array([2.5, 3. ])
    """
    n = len(values)
    places = n * levels
    last = np.rint(places).astype(np.intp)
    between = (np.abs(places - last) <= _SAME * n) & (last > 0) & (last < n)
    last = np.where(between, last, np.clip(np.ceil(places) - 1, 0, n - 1).astype(np.intp))
    first = last - between
    low, high = _ordered(values, first, last)
    return np.where(between, 0.5 * (low + high), high)


def order_statistic(values: FloatArray, place: int) -> FloatArray:
    """Return the value of each column that is at a place, from 0, of its increasing order.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses.quantiles import order_statistic
    >>> order_statistic(np.array([[3.0, 7.0], [1.0, 8.0], [2.0, 9.0]]), 1)
    array([2., 8.])
    """
    places = np.full(values.shape[1], place)
    return _ordered(values, places, places)[1]


def _ordered(values: FloatArray, first: IntArray, last: IntArray) -> tuple[FloatArray, FloatArray]:
    """The values of each column at two neighbouring or equal places of its order."""
    around = _around(values, first, last)

    def pair(j: int) -> tuple[float, float]:
        some, below = around[j]
        ends = first[j] - below, last[j] - below
        parts = np.partition(some, ends)
        return parts[ends[0]], parts[ends[1]]

    columns = range(len(first))
    few = len(values) < _MANY  # threads would take longer to wake up
    pairs = [pair(j) for j in columns] if few else in_threads(pair, columns)
    low, high = np.array(pairs, dtype=float).reshape(-1, 2).T
    return low, high


def _around(values: FloatArray, first: IntArray, last: IntArray) -> list[tuple[FloatArray, int]]:
    """Of each column, values among which are these in their order, and how many are below.

    Of many, those between two of a sample of the rows: the few that are left are sorted.
    """
    n = len(values)
    if n < _MANY:
        return [(column, 0) for column in values.T]
    sample = np.sort(values[:: n // _SAMPLE], axis=0)
    m = len(sample)
    middle, away = 0.5 * (first + last) * (m / n), 0.5 * _AWAY * np.sqrt(m) + 1.0
    columns = np.arange(len(first))
    end = np.full((1, len(columns)), np.inf)
    padded = np.vstack([-end, sample, end])
    low = padded[np.maximum(np.floor(middle - away).astype(np.intp) + 1, 0), columns]
    high = padded[np.minimum(np.ceil(middle + away).astype(np.intp) + 1, m + 1), columns]

    def task(rows: slice) -> list[tuple[FloatArray, int]]:
        found = []
        for j in columns:
            column = values[rows, j].copy()
            size, below = _keep_between(column, low[j], high[j])
            found.append((column[:size].copy(), below))
        return found

    parts = RowBlocks(*values.shape).map(task)
    result = []
    for j in columns:
        some = np.concatenate([part[j][0] for part in parts])
        below = sum(part[j][1] for part in parts)
        inside = below <= first[j] and last[j] < below + len(some)
        result.append((some, below) if inside else (values[:, j], 0))
    return result


@njit(cache=True, nogil=True)
def _keep_between(values: FloatArray, low: float, high: float) -> tuple[int, int]:
    """Move values between two others to the start: how many these are, and how many are below."""
    kept = below = 0
    for i in range(len(values)):  # without branches, which could not be foreseen
        value = values[i]
        values[kept] = value
        kept += (value >= low) & (value <= high)
        below += value < low
    return kept, below
