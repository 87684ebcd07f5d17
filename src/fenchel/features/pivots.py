"""Which rows are pivots: those with the largest residuals, and of equal ones by what they hold."""

from __future__ import annotations

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.design import RowBlocks
from fenchel.features.gram import Gram

_EQUAL = 1e-12  # of the largest diagonal entry; sums of a few hundred squares are off by less
_SHARE = 0.1  # of a residual: small ones are not all equal


def slack(gram: Gram, size: float) -> float:
    """By how much a residual may differ from one of this size by rounding."""
    return min(_EQUAL * gram.largest, _SHARE * size)


def largest(
    gram: Gram, left: FloatArray, level: float | FloatArray, blocks: RowBlocks
) -> int | None:
    """Row of the largest residual above ``level``, of equal ones that in the middle."""
    least = float(level) if np.ndim(level) == 0 else 0.0
    large = left if np.ndim(level) == 0 else np.where(left > level, left, 0.0)
    sizes = blocks.map(lambda rows: float(large[rows].max()))
    size = max(sizes)
    if size <= least:
        return None
    cut = size - min(slack(gram, size), 0.5 * (size - least))  # no residual below the level
    near = [
        rows.start + np.flatnonzero(large[rows] >= cut)
        for rows, most in zip(blocks, sizes, strict=True)
        if most >= cut
    ]
    return gram.middle.nearest(near[0] if len(near) == 1 else np.concatenate(near))


def candidates(gram: Gram, left: FloatArray, level: float | FloatArray, number: int) -> IntArray:
    """So many different rows with the largest residuals above ``level``, in lexicographic order.

    Where some of equal ones are too many, those at equal steps of that order.
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
