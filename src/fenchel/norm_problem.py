"""Least squares with a norm as penalty or constraint, and certificates of weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular, svd, svdvals

from fenchel._threads import dot
from fenchel._typing import FloatArray, IntArray
from fenchel.certificate import Certificate, Certified
from fenchel.design import CentredRows, are_many, column_squares, fewer_rows
from fenchel.norms import GroupNorm

# What one entry of X may be off, of the largest of its column: half an ulp as it was given and
# half an ulp as its mean was taken off, four times over for computations before.
_ENTRY = 4 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Range:
    """Numerical range of X = U M, with orthonormal columns U (m, r) and M (r, d)."""

    basis: FloatArray
    matrix: FloatArray

    @cached_property
    def _factors(self) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
        """Rows of Mᵀ in the order of their sizes, and the factors of these with their pivots."""
        tall = self.matrix.T
        # sorted by size, each row has a small error relative to itself (Cox, Higham 1998)
        rows = np.argsort(-np.abs(tall).max(axis=1, initial=0.0), kind="stable")
        return rows, *qr(tall[rows], mode="economic", pivoting=True)

    def shortest(self, targets: FloatArray) -> FloatArray:
        """Return the weights (d, p) of minimum norm that best approximate targets (m, p)."""
        rows, orthonormal, triangle, order = self._factors
        inside = (self.basis.T @ targets)[order]
        weights = np.empty((self.matrix.shape[1], targets.shape[1]))
        weights[rows] = orthonormal @ solve_triangular(triangle, inside, trans="T")
        return weights


@dataclass(frozen=True, eq=False)
class NormProblem:
    r"""Least squares with a norm as penalty or constraint, for centred and weighted rows.

    .. math:: P(W) = \frac{1}{2m} \|Y - XW\|^2 + \alpha \|W\|, \qquad
              D(\theta) = \frac1m \left(\langle\theta, Y\rangle - \tfrac12\|\theta\|^2\right)
              \quad\text{where}\quad \|X^\top\theta\|_* \le \alpha m

    .. math:: P(W) = \frac{1}{2m} \|Y - XW\|^2
              \quad\text{where}\quad \|W\| \le \Lambda, \qquad
              D(\theta) = \frac1m \left(\langle\theta, Y\rangle - \tfrac12\|\theta\|^2
              - \Lambda \|X^\top\theta\|_*\right)

    The best multiple of the residuals of any W is a feasible dual point. For :math:`\alpha = 0`,
    least squares without penalty, the dual point is the part of the residuals orthogonal to the
    range of X.

    Parameters
    ----------
    features, targets : ndarray of shape (rows, d) and (rows, outputs)
        X and Y; X may be :class:`fenchel.design.SparseRows`.
    count : float
        m.
    norm : GroupNorm
        The norm ‖·‖, with its dual norm.
    strength : float
        α, or Λ if ``constrained``.
    constrained : bool
        Whether the norm is a constraint. If False, it is a penalty.
    root : ndarray of shape (rows, 1), optional
        Square roots of the weights of the rows. If given, X and Y are orthogonal to it.
    sizes : ndarray of shape (d,), optional
        Largest entries of the columns before centring, which determine the rounding errors of
        X; by default those of X.
    rows : CentredRows, optional
        What X and Y are made of, which keeps what several problems need.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.norm_problem import NormProblem
    >>> from fenchel.norms import GroupNorm
    >>> from fenchel.solvers import NormFista
    >>> X, y = np.array([[1.0, 0.5], [-1.0, 0.5], [0.0, -1.0]]), np.array([[2.0], [-2.0], [0.0]])
    >>> norm = GroupNorm(np.arange(2), q=1.0, p=1.0)
    >>> solution = NormFista().solve(NormProblem(X, y, 3.0, norm, strength=0.1))
    >>> solution.weights.round(3)[:, 0]
    array([1.85, 0.  ])
    """

    features: Any
    targets: FloatArray
    count: float
    norm: GroupNorm
    strength: float
    constrained: bool = False
    root: FloatArray | None = None
    sizes: FloatArray | None = None
    rows: CentredRows | None = None

    @classmethod
    def of(
        cls, rows: CentredRows, norm: GroupNorm, strength: float, constrained: bool = False
    ) -> NormProblem:
        """Return the problem of centred and weighted rows."""
        features, targets = rows.weighted
        root = rows.root if rows.fit_intercept else None
        data = features, targets, len(targets)
        return cls(*data, norm, strength, constrained, root, rows.sizes, rows)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.targets.shape[1]

    @property
    def unpenalized(self) -> bool:
        """Whether there is neither penalty nor constraint."""
        return self.strength == 0.0 and not self.constrained

    @property
    def baseline(self) -> float:
        """Objective of the best constant model: the unit of relative gaps."""
        return dot(self.targets, self.targets) / (2.0 * self.count)

    @property
    def singular_values(self) -> FloatArray:
        """Singular values of X."""
        return np.asarray(svdvals(self.features, check_finite=False))

    @cached_property
    def range(self) -> Range:
        """Range of X, without directions that are rounding errors.

        The columns are divided by ``sizes``. A singular value is treated as positive if it exceeds
        those of a matrix of rounding errors, and max(m, d) · 2.2e-16 times the largest.
        """
        columns = self.features.shape[1]
        sizes = np.abs(self.features).max(axis=0) if self.sizes is None else self.sizes
        sizes = np.where(sizes > 0.0, sizes, 1.0)
        left, values, right = svd(self.features / sizes, full_matrices=False, check_finite=False)
        relative = max(self.count, columns) * np.finfo(float).eps * values[0]
        rank = np.count_nonzero(values > max(relative, _ENTRY * np.sqrt(self.count * columns)))
        return Range(left[:, :rank], values[:rank, None] * right[:rank] * sizes)

    def penalty(self, weights: FloatArray) -> float:
        """Return the penalty term of the objective."""
        return 0.0 if self.constrained else self.strength * self.norm.value(weights)

    def zero(self) -> FloatArray:
        """Return weights of zero, (d, outputs)."""
        return np.zeros((self.features.shape[1], self.n_outputs))

    def certify(self, weights: FloatArray) -> Certified:
        """Return W with its certificate; the dual point is the best multiple of its residuals."""
        residual = self.targets - self.features @ weights
        if self.unpenalized:
            return self._certify_least_squares(weights, residual)
        size = self.norm.dual.value(self.features.T @ residual) / self.count
        square = dot(residual, residual) / self.count
        earned = dot(residual, self.targets) / self.count
        primal, limit = 0.5 * square + self.penalty(weights), np.inf
        if self.constrained:
            earned -= self.strength * size
        elif size > 0.0:
            limit = self.strength / size
        best = earned / square if square > 0.0 else 0.0
        multiple = min(max(best, 0.0), limit)
        lower = multiple * (earned - 0.5 * multiple * square)
        certificate = Certificate(primal, lower, self.baseline, self._feasibility(residual))
        return Certified(multiple * residual, weights, np.zeros(self.n_outputs), certificate)

    def _certify_least_squares(self, weights: FloatArray, residual: FloatArray) -> Certified:
        """The dual point has to meet Xᵀθ = 0: residuals without their part in the range."""
        basis = self.range.basis
        inside = basis @ (basis.T @ residual)
        theta = residual - inside
        primal, gap = (dot(v, v) / (2.0 * self.count) for v in (residual, inside))
        left_over = float(np.linalg.norm(self.features.T @ theta))
        size = float(np.linalg.norm(self.features) * np.linalg.norm(theta))
        feasibility = left_over / size if size > 0.0 else 0.0
        certificate = Certificate(primal, primal - gap, self.baseline, feasibility)
        return Certified(theta, weights, np.zeros(self.n_outputs), certificate)

    def _feasibility(self, residual: FloatArray) -> float:
        """What the dual point leaves of the constraint of the intercept, relatively."""
        if self.root is None:
            return 0.0
        total = (self.root * np.abs(residual)).sum(axis=0)
        left = np.abs((self.root * residual).sum(axis=0))
        return float(np.max(np.divide(left, total, out=left, where=total > 0.0)))

    def multiplier(self, weights: FloatArray) -> float:
        """Return the α at which W solves the penalized form, if W is a solution."""
        if not self.constrained:
            return self.strength
        pull = self.features.T @ (self.targets - self.features @ weights)
        return self.norm.dual.value(pull) / self.count

    @property
    def is_sum_of_groups(self) -> bool:
        """Whether the penalty is a sum over groups, which may then have steps of their own."""
        return self.norm.p == 1.0 and not self.constrained

    def by_rows(self) -> NormProblem:
        """Return the problem with a group for each row of W, if the norm sums all entries."""
        if not self.norm.is_sum:
            return self
        labels = np.arange(self.features.shape[1])
        return replace(self, norm=GroupNorm(labels, self.norm.q, self.norm.p))

    def largest_squares(self) -> FloatArray:
        """Return for each column the largest sum of squares of a column in its group, (d,)."""
        squares = np.zeros(len(self.norm.rows_before) - 1)
        np.maximum.at(squares, self.norm.labels, column_squares(self.features))
        return squares[self.norm.labels]

    def nearest(self, point: FloatArray, step: float | FloatArray) -> FloatArray:
        """Return the prox of the penalty, or the projection on the ball.

        If the penalty is a sum over groups, there may be a step for each row of W, (d, 1); see
        :meth:`GroupNorm.prox`.
        """
        if self.constrained:
            return self.norm.project(point, self.strength)
        return self.norm.prox(point, step * self.strength)

    def inside(self, weights: FloatArray) -> FloatArray:
        """Return the weights, projected on the ball if rounding errors have left it."""
        size = self.norm.value(weights) if self.constrained else 0.0
        return weights * (self.strength / size) if size > self.strength else weights

    def of_columns(self, columns: IntArray) -> NormProblem:
        """Return the problem with some columns of an array X, of whole groups."""
        part = np.asfortranarray(self.features[:, columns])
        labels = np.unique(self.norm.labels[columns], return_inverse=True)[1]
        norm = GroupNorm(labels, self.norm.q, self.norm.p)
        return replace(self, features=part, norm=norm, sizes=None)

    def output(self, j: int) -> NormProblem:
        """Return the problem of one output, with the same strength."""
        return self if self.n_outputs == 1 else replace(self, targets=self.targets[:, j : j + 1])

    def reduced(self) -> NormProblem:
        """The equivalent problem on d + outputs rows, if those are fewer."""
        if not are_many(self.features, self.n_outputs):
            return self
        kept = self._kept
        features, targets = kept.fewer if kept else fewer_rows(self.features, self.targets)
        return replace(self, features=features, targets=targets, root=None)

    @property
    def products(self) -> FloatArray:
        """Products of all columns of X, (d, d)."""
        kept = self._kept
        return kept.products if kept else np.asarray(self.features.T @ self.features)

    @property
    def pulled(self) -> FloatArray:
        """Products of the columns of X and Y, (d, outputs)."""
        kept = self._kept
        return kept.pulled if kept else np.asarray(self.features.T @ self.targets)

    @property
    def _kept(self) -> CentredRows | None:
        """The rows that this problem is made of, if it is of all their columns and outputs."""
        own = self.features, self.targets
        same = self.rows is not None and all(map(is_, self.rows.weighted, own))
        return self.rows if same else None


__all__ = ["NormProblem"]

__dir__ = __all__.copy
