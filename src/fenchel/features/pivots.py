"""Choice of pivots: rows with the largest residuals; ties are broken by their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numba.extending import register_jitable

from fenchel._threads import in_threads
from fenchel._typing import FloatArray, IntArray
from fenchel.features.gram import Gram

_EQUAL = 1e-12  # of the largest diagonal entry; sums of a few hundred squares are off by less
_SHARE = 0.1  # of a residual: small ones are not all equal


def slack(gram: Gram, size: float) -> float:
    """Largest rounding error of a residual of this size."""
    return _slack(gram.largest, size)


@register_jitable
def _slack(largest: float, size: float) -> float:
    return min(_EQUAL * largest, _SHARE * size)


@register_jitable
def least_tied(largest: float, size: float, level: float) -> float:
    """Residuals from here on tie with the largest, ``size``; all of them are above ``level``.

    ``largest`` is the largest diagonal entry of the matrix.
    """
    return size - min(_slack(largest, size), 0.5 * (size - level))


def extremes(left: FloatArray, level: float | FloatArray, rows: slice) -> tuple[float, float]:
    """Smallest residual of some rows (NaN if any is), and the largest above the level."""
    here = left[rows]
    return float(here.min()), float(_above(here, level, rows).max())


def _above(here: FloatArray, level: float | FloatArray, rows: slice) -> FloatArray:
    """Residuals of some rows, 0 where they are not above a level of their own."""
    return here if isinstance(level, float) else np.where(here > level[rows], here, 0.0)


def largest(
    gram: Gram,
    left: FloatArray,
    level: float | FloatArray,
    blocks: Iterable[slice],
    sizes: Sequence[float],
) -> int | None:
    """Row of the largest residual above ``level``; among ties, the one nearest the middle.

    ``sizes`` are the largest residuals of the blocks of rows, from :func:`extremes`.
    """
    least, size = level if isinstance(level, float) else 0.0, max(sizes)
    if size <= least:
        return None
    cut = least_tied(gram.largest, size, least)
    tied = [rows for rows, most in zip(blocks, sizes, strict=True) if most >= cut]

    def near(rows: slice) -> IntArray:
        return rows.start + np.flatnonzero(_above(left[rows], level, rows) >= cut)

    return gram.middle.nearest(in_threads(near, tied))


def candidates(gram: Gram, left: FloatArray, level: float | FloatArray, number: int) -> IntArray:
    """Return ``number`` distinct rows with the largest residuals above ``level``.

    In lexicographic order. If too many rows tie, those at equal steps of this order are taken.
    """
    large = np.where(left > level, left, 0.0)
    size = number
    while True:
        least = _largest_but(large, size)
        found = np.flatnonzero((large > 0.0) & (large >= least - slack(gram, least)))
        found = gram.middle.distinct(found)
        if len(found) >= number or least <= 0.0:
            break
        size *= 4  # some are repeats
    large = large[found]
    least = _largest_but(large, number)
    chosen = large > least + slack(gram, least)
    tied = np.flatnonzero((large >= least - slack(gram, least)) & ~chosen)
    free = min(number - int(chosen.sum()), len(tied))
    chosen[tied[np.linspace(0, len(tied) - 1, free).astype(np.intp)]] = True
    return found[chosen]


def _largest_but(values: FloatArray, number: int) -> float:
    """The smallest of so many largest values, zero if there are fewer."""
    place = len(values) - number
    return float(np.partition(values, place)[place]) if place > 0 else 0.0
