"""Accelerated proximal gradient for least squares with a norm as penalty or bound."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import LinearOperator, eigsh

from fenchel._threads import threads_that_pay
from fenchel._typing import FloatArray
from fenchel._validation import CheckedWhenMade
from fenchel.certificate import Callback, Certified
from fenchel.design import column_copies, column_squares
from fenchel.norm_problem import NormProblem
from fenchel.solvers.accelerated import Accelerated, Moving
from fenchel.solvers.base import Solution, solution_of
from fenchel.solvers.loop import Iterate, Loop
from fenchel.solvers.some_columns import on_some_columns

REMEDY = "increase max_iter or tol, or scale the columns of X"
_DENSE = 500  # up to this size the largest eigenvalue is cheap
_ROUND = 500  # steps with some columns, before it looks at all
_MARGIN = 0.9  # of the tolerance: what rounding may cost where many rows are turned into few


@dataclass(frozen=True)
class NormFista(CheckedWhenMade):
    r"""FISTA with adaptive restart on the primal, for any norm with a prox.

    .. math:: W^+ = \operatorname{prox}_{\|\cdot\| \alpha/L}
              \left(V + \tfrac{1}{Lm} X^\top (Y - XV)\right)

    V is W^+ with momentum and L the largest eigenvalue of XᵀX/m. If the penalty is a sum over
    groups, L is that of columns divided by their lengths, times the squares of the lengths, and
    units do not matter; the lengths are the largest of each group unless q is 1 or 2. For a bound,
    the prox is the projection on the ball. For such a sum and more than 500 columns, steps are of
    the groups that matter, as long as these have less than all columns.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Maximum number of gradient steps.
    check : int
        Number of steps between certificates.

    References
    ----------
    Beck, Teboulle (2009); O'Donoghue, Candès (2015) for the restart.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.norm_problem import NormProblem
    >>> from fenchel.norms import GroupNorm
    >>> from fenchel.solvers import NormFista
    >>> X, y = np.array([[1.0, 0.5], [-1.0, 0.5], [0.0, -1.0]]), np.array([[2.0], [-2.0], [0.0]])
    >>> absolute = GroupNorm(np.arange(2), q=1.0, p=1.0)
    >>> problem = NormProblem(X, y, 3.0, absolute, strength=0.1)
    >>> NormFista().solve(problem).weights.round(3)[:, 0]
    array([1.85, 0.  ])
    """

    tol: float = 1e-6
    max_iter: int = 20_000
    check: int = 20

    def requires(self, problem: NormProblem) -> str | None:
        """Return None, unless the problem has no norm."""
        if problem.unpenalized:
            return "needs a strength > 0; LeastSquares solves the problem without penalty"
        return None

    def solve(
        self,
        problem: NormProblem,
        warm_start: FloatArray | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the best certified weights."""
        start = problem.zero() if warm_start is None else warm_start
        return solved_on_fewer_rows(problem, self.iterates(problem, start), self.tol, callback)

    def iterates(
        self, problem: NormProblem, start: FloatArray, before: int = 0
    ) -> Iterator[Iterate[Certified]]:
        """Yield points, certified on d + outputs rows if those are fewer.

        Steps are counted from ``before``.
        """
        small, most = problem.reduced(), before + self.max_iter
        start = small.inside(start)
        start, before = yield from on_some_columns(
            small, start, self.tol, most, self._solved, before
        )
        yield from self._on_all(small, start, before, most)

    def _solved(
        self, part: NormProblem, own: FloatArray, tol: float, most: int
    ) -> tuple[FloatArray, int]:
        """Weights of a part, and the number of steps."""
        loop: Loop[Certified] = Loop(tol)
        best = loop.run(self._on_all(part, own, 0, min(most, _ROUND)))
        return best.weights, max(loop.count, 1)

    def _on_all(
        self, problem: NormProblem, start: FloatArray, before: int, most: int
    ) -> Generator[Iterate[Certified], None, tuple[FloatArray, int]]:
        """Yield points, with all columns in each step; return the last weights and the steps."""
        with threads_that_pay(problem.features.size // 10_000):  # products with few columns
            yield Iterate(before, problem.certify(start))
            sizes, weights, done = _sizes(problem), start, 0
            features, targets, count = problem.features, problem.targets, problem.count

            def step(ahead: Moving) -> Moving:
                gradient = features.T @ (targets - features @ ahead[0]) / count
                return (problem.nearest(ahead[0] + sizes * gradient, sizes),)

            for done, ahead in Accelerated(
                step, (start,), check=self.check, max_iter=most - before, weight=1.0 / sizes
            ):
                weights = problem.inside(ahead)
                yield Iterate(before + done, problem.certify(weights))
            return weights, before + done


def solved_on_fewer_rows(
    problem: NormProblem,
    iterates: Iterator[Iterate[Certified]],
    tol: float,
    callback: Callback | None,
) -> Solution:
    """Run an algorithm that certifies points on fewer rows; certify the best point on all."""
    loop: Loop[Certified] = Loop(_MARGIN * tol, callback)
    best = problem.certify(loop.run(iterates).weights)
    status = replace(loop, tol=tol).status(REMEDY, gap=best.certificate.relative_gap)
    return solution_of(loop, status, best)


def _sizes(problem: NormProblem) -> float | FloatArray:
    """Step size, or one for each row of W, (d, 1): shorter for large columns.

    Units of columns then do not matter, or those of groups if their rows need the same step.
    """
    features, tiny = problem.features, np.finfo(float).tiny
    if not problem.is_sum_of_groups:
        return problem.count / max(_curvature(features), tiny)
    each = problem.norm.has_steps_of_rows
    squares = column_squares(features) if each else problem.largest_squares()
    squares[squares == 0.0] = 1.0
    equal = column_copies(features, np.arange(len(squares)), np.sqrt(squares))
    return (problem.count / (max(_curvature(equal), tiny) * squares))[:, None]


def _curvature(features: Any) -> float:
    """The largest eigenvalue of XᵀX, from above.

    Lanczos iterations find it to one part in a thousand from below, so that is taken one percent
    larger.
    """
    rows, columns = features.shape
    size = min(rows, columns)
    if size <= _DENSE:
        tall = features if columns <= rows else features.T
        gram = tall.T @ (tall @ np.eye(size))
        return float(eigvalsh(gram, subset_by_index=[size - 1, size - 1])[0])

    def square(v: FloatArray) -> FloatArray:
        return features.T @ (features @ v.ravel())

    product = LinearOperator((columns, columns), square, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(columns)
    return 1.01 * float(eigsh(product, 1, v0=start, tol=1e-3, return_eigenvectors=False)[0])
