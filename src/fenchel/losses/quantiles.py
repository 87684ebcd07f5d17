"""Quantiles of columns; weighted quantiles are in :mod:`fenchel._quantiles`."""

from __future__ import annotations

import numpy as np

from fenchel._compiling import njit
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
    found = np.empty(len(levels))
    for j, (some, below) in enumerate(_around(values, first, last)):
        ends = first[j] - below, last[j] - below
        parts = np.partition(some, ends)
        found[j] = parts[ends[1]] if not between[j] else 0.5 * (parts[ends[0]] + parts[ends[1]])
    return found


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
