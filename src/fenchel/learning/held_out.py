"""Offsets computed from rows that a fit has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import isotonic_regression

from fenchel._clock import OutOfTime
from fenchel._typing import FloatArray, IntArray
from fenchel.certificate import Callback, Progress
from fenchel.learning.rows import effective_number, held_out_folds
from fenchel.losses import Loss
from fenchel.solvers.loop import time_left

_FOLDS = 5
_ALL_FOLDS = 2000  # different rows up to which each fold is held out; of more, one is
_ENOUGH = 0.1  # of these must be in it, groups and weights counted, or more folds are held out

NEAR = 1e-2
"""Relative gap of fits that suffices for held-out rows: the choice of rows matters more."""

Residuals = Callable[[IntArray, IntArray], FloatArray | None]
"""Maps held-out rows and all others to residuals (m, p) of the former, by a fit to the latter.

Returns None if that fit stops far from its optimum.
"""


def held_out_shift(
    rows: FloatArray,
    targets: FloatArray,
    weight: FloatArray,
    loss: Loss,
    residuals: Residuals,
    of_fit: Callable[[], FloatArray],
    groups: IntArray | None = None,
) -> FloatArray | None:
    r"""Shift of the offsets that minimizes the loss on rows that fits have not seen, (p,).

    .. math:: \operatorname*{argmin}_\delta \sum_F \sum_{i \in F} s_i\,
              \ell(y_i - h_{-F}(x_i) - b_{-F} - \delta)

    over five folds F of rows, assigned by content, with :math:`h_{-F}, b_{-F}` the fit to the rows
    outside F. With more than 2000 distinct rows, F is one of the five folds, or as many as hold
    200 rows in effect: of few groups, or of rows with very unequal weights, one holds too few. The
    shift is then corrected by how these folds differ from all rows: the minimizer for their
    residuals in the fit to all rows, less that for all residuals of this fit, is subtracted, times
    :math:`\sum_i s_i / \sum_{i \notin F} s_i`. For the mean of a constant the shift is then zero,
    as with all folds. ``of_fit`` gives these residuals, (n, p), up to a constant. Their levels
    themselves are not used, since a flexible function comes near to its rows and their levels are
    then too close to each other. A fold without residuals is left out; None is returned if all
    are. If all rows are in one fold (because they are equal, or there are several in each cell of
    a table of factors and few targets, or of zeros among others), the shift is zero.

    Quantiles are those for new rows, which are slightly farther out if rows are few: see
    :meth:`fenchel.losses.Pinball.offset_for_new_rows`. The number of rows is that of distinct
    rows, and :math:`(\sum_i s_i)^2 / \sum_i s_i^2` if weights differ. With ``groups``, whose rows
    are in one fold, it is the number of groups.

    Folds are assigned by the content of ``rows`` and ``targets``; ``loss`` is minimized.
    """
    fold_of, n_different = held_out_folds(rows, targets, _FOLDS, weight, groups)
    enough = _ENOUGH * _ALL_FOLDS if n_different > _ALL_FOLDS else np.inf

    def number_of(chosen: IntArray) -> float:
        of_groups = None if groups is None else groups[chosen]
        return effective_number(rows[chosen], targets[chosen], weight[chosen], of_groups)

    inside, found, n_fits = [], [], 0
    for k in range(_FOLDS):
        if n_fits and number_of(np.flatnonzero(fold_of < k)) >= enough:
            break
        held, outside = np.flatnonzero(fold_of == k), np.flatnonzero(fold_of != k)
        if len(held) == 0 or len(outside) == 0:
            continue
        n_fits += 1
        try:
            own = residuals(held, outside)
        except OutOfTime:
            break
        if own is not None:
            inside.append(held)
            found.append(own)
    if not inside:
        return None if n_fits else np.zeros(loss.n_outputs or targets.shape[1])
    chosen = np.concatenate(inside)
    shift = loss.offset_for_new_rows(np.concatenate(found), weight[chosen], number_of(chosen))
    if len(chosen) < len(fold_of):  # a fold has more noise than all rows: take out what is known
        whole = of_fit()
        excess = loss.minimizing_offset(whole[chosen], weight[chosen])
        excess = excess - loss.minimizing_offset(whole, weight)
        shift = shift - excess / (1.0 - weight[chosen].sum() / (len(inside) * weight.sum()))
    return shift


def in_order(shift: FloatArray, levels: FloatArray, room: FloatArray | float = 0.0) -> FloatArray:
    """The shifts nearest to the given ones that keep the curves in order, (p,).

    A higher level moves up by at least as much as the one below it, except for the ``room``
    (p - 1,) between the two at all x, in increasing order of the levels.
    """
    order = np.argsort(levels)
    raised = np.zeros(len(order))
    raised[1:] = np.cumsum(np.broadcast_to(room, len(order) - 1))
    moved = np.empty(len(order))
    moved[order] = isotonic_regression(shift[order] + raised) - raised
    return moved


@dataclass
class HalfTime:
    """A callback that calls another one, and stops when half of the time is used."""

    watch: Callback

    def __post_init__(self) -> None:
        self._kept = 0.5 * time_left(self.watch)

    def __call__(self, progress: Progress) -> object:
        answer = self.watch(progress)
        if not answer and self.seconds_left() <= 0.0:
            return "max_time is over, but for what held-out rows need; increase max_time or tol"
        return answer

    def seconds_left(self) -> float:
        """Seconds left of the half."""
        left = time_left(self.watch)
        return left if np.isinf(left) else max(left - self._kept, 0.0)


def why_not(watch: Callback | None) -> str:
    """Reason why there are no offsets from held-out rows."""
    if (reason := getattr(watch, "reason", None)) is not None:
        return str(reason)
    late = time_left(watch) <= 0.0
    return "max_time is over" if late else "no fit to a part of the rows has converged"
