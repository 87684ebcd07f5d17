"""Many columns: problems of those that matter, until the certificate of all is good."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.certificate import Certified
from fenchel.design import SparseRows
from fenchel.norm_problem import NormProblem
from fenchel.solvers.loop import Iterate

MANY = 500
_FIRST = 100
# Times the gap of all columns, to which the problem of some is solved. Of 0.003 to 0.1, this was
# among the fastest for eight problems of the Lasso, with 300 to 2000 rows and 400 to 20 000
# columns.
_ROUGH = 0.03

Solve = Callable[[NormProblem, FloatArray, float, int], tuple[FloatArray, int]]
"""From a problem, weights, a gap to reach and a number of steps, to weights and steps."""


def on_some_columns(
    problem: NormProblem,
    weights: FloatArray,
    tol: float,
    most: int,
    solve: Solve,
    steps: int = 0,
) -> Generator[Iterate[Certified], None, tuple[FloatArray, int]]:
    """Yield points for an array of many columns; return the last weights and the steps so far.

    The columns are those of groups with weights and of the steepest slopes. It ends where they
    would be all.

    Parameters
    ----------
    problem : NormProblem
        Problem whose penalty is a sum over groups.
    weights : ndarray of shape (d, outputs)
        Starting point.
    tol : float
        Relative gap to reach.
    most : int
        Maximum number of steps.
    solve : callable
        Solves problems of some columns.
    steps : int, default=0
        Steps that were taken before.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.norm_problem import NormProblem
    >>> from fenchel.norms import GroupNorm
    >>> from fenchel.solvers.some_columns import on_some_columns
    >>> problem = NormProblem(np.eye(3), np.ones((3, 1)), 3.0, GroupNorm(np.arange(3), 1, 1), 0.1)
    >>> list(on_some_columns(problem, problem.zero(), 1e-6, 10, solve=None))  # three are not many
    []
    """
    size, d = _FIRST, len(weights)
    many = d > MANY and problem.is_sum_of_groups
    if not many or isinstance(problem.features, SparseRows):
        return weights, steps
    problem = problem.by_rows()
    certified = problem.certify(weights)
    yield Iterate(steps, certified)
    while steps < most:
        gap = certified.certificate.relative_gap
        columns = _steepest(problem, weights, size)
        if len(columns) == d:
            break
        rough = max(tol, _ROUGH * gap)
        part = problem.of_columns(columns)
        found, more = solve(part, weights[columns], rough, most - steps)
        weights, steps = problem.zero(), steps + more
        weights[columns] = found
        certified = problem.certify(weights)
        yield Iterate(steps, certified)
        if rough == tol or not certified.certificate.relative_gap < gap:
            size = 2 * len(columns)  # these can do no more
    return weights, steps


def _steepest(problem: NormProblem, weights: FloatArray, size: int) -> IntArray:
    """Columns of the groups that have weights and of those of the steepest slopes.

    They are ``size`` or more, and twice as many as have weights.
    """
    norm = problem.norm
    slopes = problem.features.T @ (problem.targets - problem.features @ weights)
    pull = norm.dual.lengths(slopes)
    used = norm.lengths(weights) > 0.0
    pull[used] = np.inf
    columns_of = np.diff(norm.rows_before)
    size = max(size, 2 * int(columns_of[used].sum()))
    order = np.argsort(-pull, kind="stable")
    number = 1 + int(np.searchsorted(np.cumsum(columns_of[order]), size))
    return np.flatnonzero(np.isin(norm.labels, order[:number]))
