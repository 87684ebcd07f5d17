"""Offsets from rows that a fit has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fenchel._typing import FloatArray
from fenchel.certificate import Callback, Progress
from fenchel.learning import folds_by_content
from fenchel.losses import Loss
from fenchel.problem import Problem
from fenchel.solvers import Solution, WarmStart
from fenchel.solvers.loop import time_left

_FOLDS = 5
_ALL_FOLDS = 2000  # rows up to which each fold is held out; of more, the rows of one are enough

_NEAR = 1e-2  # of the loss of the best constant: less than the choice of rows is worth


def held_out_shift(
    problem: Problem,
    solution: Solution,
    rows: FloatArray,
    loss: Loss,
    solve: Callable[[Problem, WarmStart], Solution],
) -> FloatArray | None:
    r"""What to add to offsets for the least loss on rows that fits have not seen, (p,).

    .. math:: \operatorname*{argmin}_\delta \sum_F \sum_{i \in F} s_i\,
              \ell(y_i - h_{-F}(x_i) - b_{-F} - \delta)

    over five folds F of rows by what they hold, with :math:`h_{-F}, b_{-F}` the fit to the rows
    outside of F; of more than 2000 rows F is one of the five. Levels of training rows are too
    near to each other where a function can come near to these rows. A fold whose fit stops far
    from its optimum is left out; None where that is so for all. Where all rows are in one fold,
    being equal, there is nothing to add.

    ``rows`` are what folds are told by, ``loss`` is the one to minimize, and ``solve`` solves the
    problem of some rows from a start.
    """
    fold_of = folds_by_content(rows, problem.targets, _FOLDS)
    n_used = 1 if problem.n_rows > _ALL_FOLDS else _FOLDS
    near = _NEAR * solution.certificate.unit
    inside, residuals, n_fits = [], [], 0
    for k in range(n_used):
        held, outside = np.flatnonzero(fold_of == k), np.flatnonzero(fold_of != k)
        if len(held) == 0 or len(outside) == 0:
            continue
        n_fits += 1
        part = replace(problem, radius=None).subset(outside)  # the penalty of the fit in a ball
        if part.baseline == 0.0:  # a constant without loss, of which there is no relative gap
            inside.append(held)
            residuals.append(problem.targets[held] - part.best_constant)
            continue
        start = WarmStart(solution.dual[outside], solution.offset, problem.alpha)
        found = solve(part, start)
        if not (found.status.converged or found.certificate.gap <= near):
            continue
        design = problem.design
        # a dual point that is feasible to the tolerance may stand for a function far from these
        weights = design.from_subset(outside, found.weights)
        values = design.predict(held, design.directions(weights))
        inside.append(held)
        residuals.append(problem.targets[held] - values - found.offset)
    if not inside:
        return None if n_fits else np.zeros(problem.n_outputs)
    chosen = np.concatenate(inside)
    return loss.minimizing_offset(np.concatenate(residuals), problem.sample_weight[chosen])


@dataclass(frozen=True)
class InTime:
    """A callback that tells nobody of certificates, and stops when the time of another is over."""

    watch: Callback | None

    def __call__(self, progress: Progress) -> bool:
        return self.seconds_left() <= 0.0

    def seconds_left(self) -> float:
        """Of the other one."""
        return time_left(self.watch)


@dataclass
class HalfTime:
    """A callback that hands on to another one, and stops when half of its time is over."""

    watch: Callback

    def __post_init__(self) -> None:
        self._kept = 0.5 * time_left(self.watch)

    def __call__(self, progress: Progress) -> object:
        answer = self.watch(progress)
        if not answer and self.seconds_left() <= 0.0:
            return "max_time is over, but for what held-out rows need; increase max_time or tol"
        return answer

    def seconds_left(self) -> float:
        """Of the half."""
        left = time_left(self.watch)
        return left if np.isinf(left) else max(left - self._kept, 0.0)


def why_not(watch: Callback | None) -> str:
    """Why there are no offsets of held-out rows."""
    if (reason := getattr(watch, "reason", None)) is not None:
        return str(reason)
    late = time_left(watch) <= 0.0
    return "max_time is over" if late else "no fit to a part of the rows has converged"
