"""Calibration scores, and quantiles of scores and pooled predictions, also with weights."""

from __future__ import annotations

import numpy as np

from fenchel._typing import FloatArray

# Shares are compared with the coverage up to this, so that 0.07 * 100 is 7 and not 8.
ROUNDING = 1e-12


def scores_of(side: str, y: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """How far each target is outside of its interval, with one end or two."""
    if side == "two-sided":
        return np.maximum(low - y, y - high)
    return low - y if side == "lower" else y - high


def rank(coverage: float, n: int) -> int:
    """⌈coverage (n + 1)⌉: the rank of the bound among n scores and a new one."""
    return int(np.ceil(coverage * (n + 1) * (1.0 - ROUNDING)))


def score_quantile(
    scores: FloatArray,
    coverage: float,
    weight: FloatArray | None = None,
    new_weight: FloatArray | None = None,
) -> FloatArray:
    """The smallest score whose share reaches the coverage, for each new row: (m,), or (1,).

    The share of a set of rows is its weight divided by the weight of all rows and the new one,
    whose score is infinite. If all weights are one, it is the score of the :func:`rank`.
    """
    if weight is None or new_weight is None:
        weight, new_weight = np.ones(len(scores)), np.ones(1)
    order = np.argsort(scores)
    reached = np.cumsum(weight[order])
    needed = coverage * (weight.sum() + new_weight) * (1.0 - ROUNDING)
    return np.append(scores[order], np.inf)[np.searchsorted(reached, needed)]


def pool_quantile(
    values: FloatArray,
    coverage: float,
    share: FloatArray | None = None,
    total: FloatArray | float = 0.0,
) -> FloatArray:
    """Quantile of each row of (m, n), with shares (n,) or (m, n) of a total (m,) or scalar."""
    n = values.shape[1]
    if share is None:
        place = rank(coverage, n)
        if place > n:
            return np.full(len(values), np.inf)
        return np.asarray(np.partition(values, place - 1, axis=1)[:, place - 1])
    order = np.argsort(values, axis=1)
    mine = np.take_along_axis(np.broadcast_to(share, values.shape), order, axis=1)
    needed = np.broadcast_to(coverage * total * (1.0 - ROUNDING), len(values))
    place = np.sum(np.cumsum(mine, axis=1) < needed[:, None], axis=1)
    padded = np.column_stack(
        [np.take_along_axis(values, order, axis=1), np.full(len(values), np.inf)]
    )
    return np.asarray(np.take_along_axis(padded, place[:, None], axis=1)[:, 0])
