"""Proximal point steps by Newton's method, for least squares with Euclidean norms of groups."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fenchel._threads import threads_that_pay
from fenchel._typing import AnyArray, FloatArray
from fenchel.certificate import Certified
from fenchel.design import SparseRows
from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm
from fenchel.solvers.loop import Iterate
from fenchel.solvers.norm_fista import NormFista

_GRADIENT_STEPS = 100  # at least, before: many problems need no more, and others begin nearer
# Times the products of a Newton step over those of a gradient step. Measured for 100 to 2500 rows,
# these gradient steps take 0.1 to 1.1 of the time of thirty Newton steps.
_WORTH = 6.0
_LARGEST_SYSTEM = 2500  # rows times outputs; a step takes half a second
# Of seven problems with 30 to 1000 rows and 200 to 20 000 columns, a first factor of 100 to 1000
# and ten times as much from step to step were among the fastest.
_FIRST, _GROWTH, _LARGEST = 100.0, 10.0, 1e6
_CLOSE = 0.3  # what a proximal point step may be off, in its own length
_FEW, _MOST = 10, 30  # Newton steps of one of them: the next may be longer; it was too long
_DECREASE, _SHORTEST = 1e-4, 1e-8  # of line searches
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class NormNewton(NormFista):
    r"""Proximal point steps, each by a semismooth Newton method on its dual.

    .. math:: W^+ = \operatorname{prox}_{\|\cdot\| \alpha m, S}(W + S X^\top \theta), \qquad
              \theta = Y - X W^+

    θ minimizes a convex function of as many numbers as Y has, with a Lipschitz gradient, whose
    generalized Hessian is I + X J S Xᵀ with the Jacobian J of the prox. S is a factor, the same
    for all groups but for the square of the largest column of each, so that units of groups do
    not matter; the factor grows tenfold from step to step. For a bound, the prox is the projection
    on the ball in the metric of S.

    It is for norms that sum the Euclidean norms of groups, and for up to 2500 rows times outputs,
    after rows are reduced to as many as there are columns and outputs. Gradient steps come first,
    and solve all other problems. As these, steps are of the groups that matter.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Maximum number of steps, of both kinds together.
    check : int
        Number of gradient steps between certificates.

    References
    ----------
    Zhang, Zhang, Sun, Toh (2020), An efficient Hessian based algorithm for solving large-scale
    sparse group Lasso problems.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.norm_problem import NormProblem
    >>> from fenchel.norms import GroupNorm
    >>> from fenchel.solvers import NormNewton
    >>> X, y = np.array([[1.0, 0.5], [-1.0, 0.5], [0.0, -1.0]]), np.array([[2.0], [-2.0], [0.0]])
    >>> groups = GroupNorm(np.arange(2), q=2.0, p=1.0)
    >>> problem = NormProblem(X, y, 3.0, groups, strength=0.1)
    >>> NormNewton().solve(problem).weights.round(3)[:, 0]
    array([1.85, 0.  ])
    """

    def requires(self, problem: NormProblem) -> str | None:
        """Return None for a sum of Euclidean norms, unless there is no norm."""
        if problem.norm.q != 2.0 or problem.norm.p != 1.0:
            return "needs a sum of Euclidean norms of groups; NormFista takes any norm"
        return super().requires(problem)

    def _on_all(
        self, problem: NormProblem, start: FloatArray, before: int, most: int
    ) -> Generator[Iterate[Certified], None, tuple[FloatArray, int]]:
        """Yield points, with all columns in each step; return the last weights and the steps."""
        first = min(before + _gradient_steps(problem), most) if _pays(problem) else most
        weights, count = yield from super()._on_all(problem, start, before, first)
        if count < most:
            with threads_that_pay(len(problem.features)):
                for found in _ProximalPoint(problem, weights).steps():
                    weights, count = problem.inside(found), count + 1
                    yield Iterate(count, problem.certify(weights))
                    if count == most:
                        break
        return weights, count


def _pays(problem: NormProblem) -> bool:
    """Whether systems of all rows are worth their time."""
    dense = not isinstance(problem.features, SparseRows)
    return dense and problem.targets.size <= _LARGEST_SYSTEM


def _gradient_steps(problem: NormProblem) -> int:
    """How many come first: in at most about the time that thirty Newton steps would take."""
    (n, d), k, p = problem.features.shape, len(problem.norm.rows_before) - 1, problem.n_outputs
    newton = n * n * d + (n * p) ** 2 * (k + n * p / 3.0)
    return max(_GRADIENT_STEPS, int(_WORTH * newton / (4.0 * n * d * p)))


class _At(NamedTuple):
    """What a dual point gives."""

    dual: FloatArray
    pulled: FloatArray
    """W + S Xᵀθ, (d, outputs)."""
    unit: FloatArray
    """Its groups, each divided by its length; (d, outputs)."""
    kept: FloatArray
    """The share of their lengths that the prox leaves the groups, (groups,)."""
    weights: FloatArray
    """The prox, (d, outputs)."""
    on_sphere: bool
    """Whether the prox is the projection on the sphere of a ball."""
    value: float
    """Of the function that θ minimizes."""
    gradient: FloatArray


class _ProximalPoint:
    """The steps of a problem from some weights."""

    def __init__(self, problem: NormProblem, weights: FloatArray) -> None:
        self._problem, self._weights = problem, weights
        self._norm: GroupNorm = problem.norm
        first = self._norm.order[self._norm.rows_before[:-1]]  # a row of each group
        squares = problem.largest_squares()[first]
        self._squares = np.where(squares > 0.0, squares, 1.0)
        self._unit = float(np.linalg.norm(problem.targets))

    def steps(self) -> Iterator[FloatArray]:
        """Weights after each Newton step, until even short proximal point steps cannot be made.

        Where one is lost in rounding errors, which grow with factors, or takes too long, factors
        as large are not tried again.
        """
        factor, largest = _FIRST, _LARGEST
        while largest >= 1.0:
            residual = self._problem.targets - self._problem.features @ self._weights
            at, moved = self._at(residual, factor), 0
            while moved < _MOST and not self._is_near(at, factor, _EPS * factor * self._unit):
                after = self._searched(at, factor)
                if after is None:
                    break
                at, moved = after, moved + 1
                yield at.weights
            made = self._is_near(at, factor)
            if not made:
                largest = factor / _GROWTH
            if made or moved < _MOST:
                self._weights = at.weights
            factor = min(_GROWTH * factor if moved <= _FEW else factor, largest)

    def _is_near(self, at: _At, factor: float, rounding: float = 0.0) -> bool:
        """Whether a proximal point step is close enough to the exact one."""
        allowed = max(_CLOSE * self._length(at, factor), rounding)
        return float(np.linalg.norm(at.gradient)) <= allowed

    def _length(self, at: _At, factor: float) -> float:
        """How far a proximal point step goes."""
        change = (at.weights - self._weights) ** 2 * self._each(self._squares / factor)
        return float(np.sqrt(change.sum()))

    def _each(self, values: FloatArray) -> FloatArray:
        """The value of its group for each row of W, (d, 1)."""
        return values[self._norm.labels][:, None]

    def _at(self, dual: FloatArray, factor: float, pulled: FloatArray | None = None) -> _At:
        """What a dual point gives."""
        metric = factor / self._squares
        if pulled is None:
            pulled = self._weights + self._each(metric) * (self._problem.features.T @ dual)
        lengths = self._norm.lengths(pulled)
        strength = self._multiplier(lengths, metric)
        left = np.maximum(lengths - strength * metric, 0.0)
        longer = np.where(lengths > 0.0, lengths, 1.0)
        kept, unit = left / longer, pulled / self._each(longer)
        weights = self._each(left) * unit
        earned = float(((lengths - 0.5 * left) * left / metric).sum())
        if not self._problem.constrained:
            earned -= strength * float(left.sum())
        value = float(np.vdot(dual, 0.5 * dual - self._problem.targets)) + earned
        on_sphere = self._problem.constrained and strength > 0.0
        gradient = dual - self._problem.targets + self._problem.features @ weights
        return _At(dual, pulled, unit, kept, weights, on_sphere, value, gradient)

    def _multiplier(self, lengths: FloatArray, metric: FloatArray) -> float:
        """What each group that is not zero loses of its length, over its metric."""
        problem = self._problem
        if not problem.constrained:
            return problem.strength * problem.count
        if lengths.sum() <= problem.strength:
            return 0.0
        order = np.argsort(-lengths / metric, kind="stable")
        lengths, metric = lengths[order], metric[order]
        levels = (np.cumsum(lengths) - problem.strength) / np.cumsum(metric)
        return float(levels[np.flatnonzero(lengths > levels * metric)[-1]])

    def _searched(self, at: _At, factor: float) -> _At | None:
        """The point after a Newton step, or None where it is lost in rounding errors.

        Those of values are as large as factors, so slopes decide as well (Hager, Zhang 2005).
        """
        direction = self._direction(at, factor)
        slope = float(np.vdot(at.gradient, direction))
        metric = self._each(factor / self._squares)
        change = metric * (self._problem.features.T @ direction)
        share = 1.0
        while share > _SHORTEST:
            after = self._at(at.dual + share * direction, factor, at.pulled + share * change)
            lower = after.value <= at.value + _DECREASE * share * slope
            if lower or np.vdot(after.gradient, direction) <= (2.0 * _DECREASE - 1.0) * slope:
                return after
            share *= 0.5
        return None

    def _direction(self, at: _At, factor: float) -> FloatArray:
        """Newton's direction, (rows, outputs), with the Jacobian of the prox.

        Of a group with the share k of its length left it is k I + (1 - k) u uᵀ, u the unit vector
        along it; on the sphere of a ball, S u uᵀ / tr S of all groups is taken off. So the Hessian
        is a matrix A of rows, the same for all outputs, and C M Cᵀ with one column for each group.
        It is factored whole: by Woodbury's identity, digits are lost where factors are large.
        """
        alive = at.kept > 0.0
        if not alive.any():
            return -at.gradient
        kept, metric = at.kept[alive], factor / self._squares[alive]
        matrix, columns = self._parts(at, alive, np.sqrt(metric))
        inner = np.diag(1.0 - kept)
        if at.on_sphere:
            inner -= np.sqrt(np.outer(metric, metric)) / metric.sum()
        whole = np.kron(matrix, np.eye(at.gradient.shape[1])) + columns @ inner @ columns.T
        factors = cho_factor(whole, lower=True, overwrite_a=True, check_finite=False)
        found = cho_solve(factors, -at.gradient.ravel(), check_finite=False)
        return np.asarray(found.reshape(at.gradient.shape))

    def _parts(self, at: _At, alive: AnyArray, roots: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A = I + Σ k S X Xᵀ over groups that are not zero, and C, √S X u of each of them."""
        norm, features = self._norm, self._problem.features
        rows = norm.order[alive[norm.labels[norm.order]]]
        sizes = np.diff(norm.rows_before)[alive]
        part = features[:, rows] * np.repeat(roots, sizes)
        shares = part * np.repeat(np.sqrt(at.kept[alive]), sizes)
        matrix = shares @ shares.T
        matrix.flat[:: len(matrix) + 1] += 1.0
        starts = np.cumsum(sizes) - sizes
        each = [np.add.reduceat(part * unit, starts, axis=1) for unit in at.unit[rows].T]
        return matrix, np.stack(each, axis=1).reshape(-1, len(sizes))
