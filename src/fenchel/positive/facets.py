"""Least squares with functions in a cone that is given by its facets."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.optimize import linprog

from fenchel._threads import threads_that_pay
from fenchel._typing import FloatArray, IntArray
from fenchel.losses import Squared
from fenchel.positive.losses import Residual
from fenchel.problem import Certificate
from fenchel.solvers import Callback, Progress, Status

_INNER = 1e-9
_RELAXED = 1.8
_CHECK = 10
_APART = 5.0  # ratio of the two residuals at which the penalty is changed
_LIGHTER = 0.1  # the weight of the one in the matrices, which costs less gap


@dataclass(frozen=True, eq=False)
class FacetProblem:
    r"""Vectors of functions whose combinations are non-negative everywhere.

    .. math:: \min_{A_1, \dots, A_p}\; \frac12 \sum_i c_i \|y_i - f(x_i)\|^2
              + \mathrm{trace\_penalty} \sum_t \operatorname{tr} B_t
              + \frac{\mathrm{alpha}}{2} \sum_s \|A_s\|_F^2, \qquad
              B_t = \sum_s C_{ts} A_s \succeq 0

    with :math:`f_s(x) = \varphi(x)^\top A_s \varphi(x)` and symmetric A_s, so that C f(x) >= 0
    at every x. The dual, over matrices :math:`Z_t \succeq 0`, the vectors β maximized out:

    .. math:: D = \min_A\; \text{the objective} - \sum_t \langle Z_t, B_t \rangle

    which is a ridge regression in the products of features. Where C is square and invertible
    the functions are those with generators, the columns of the inverse of C, as directions of a
    :class:`PSDProblem`, under another penalty; where it has more rows than columns there may
    be more of them.

    Parameters
    ----------
    features : ndarray of shape (n, r)
        Features of the rows; work and memory grow like r⁴.
    targets : ndarray of shape (n, p)
        y.
    sample_weight : ndarray of shape (n,)
        Positive; c is this over its sum.
    facets : ndarray of shape (T, p)
        C, a row for each facet, scaled to length one; the cone {y : C y >= 0} must have inner
        points.
    alpha : float
        Strength of the squared norm, > 0.
    trace_penalty : float
        Strength of the traces, >= 0.

    Raises
    ------
    ValueError
        If shapes do not agree, alpha is not positive, or the cone has no inner points.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import FacetProblem, solve_facets
    >>> features, targets = np.ones((4, 1)), np.tile([2.0, 1.0], (4, 1))
    >>> increasing = np.array([[-1.0, 1.0]])
    >>> problem = FacetProblem(features, targets, np.ones(4), increasing, alpha=1e-9)
    >>> solve_facets(problem).matrices.ravel().round(3)
    array([1.5, 1.5])

    References
    ----------
    Marteau-Ferey, Bach, Rudi (2020), Theorem 6.
    """

    features: FloatArray
    targets: FloatArray
    sample_weight: FloatArray
    facets: FloatArray
    alpha: float
    trace_penalty: float = 0.0

    def __post_init__(self) -> None:
        n, p = self.targets.shape
        if len(self.features) != n or len(self.sample_weight) != n:
            raise ValueError(
                f"features and sample_weight must have {n} rows, got {len(self.features)} and "
                f"{len(self.sample_weight)}"
            )
        if np.ndim(self.facets) != 2 or np.shape(self.facets)[1] != p:
            raise ValueError(f"facets must have shape (T, {p}), got {np.shape(self.facets)}")
        if not np.all(np.linalg.norm(self.facets, axis=1) > 0.0):
            raise ValueError("facets must have no row of zeros")
        if not (np.isfinite(self.alpha) and self.alpha > 0.0):
            raise ValueError(f"alpha must be a finite number > 0, got {self.alpha!r}")
        if not (np.isfinite(self.trace_penalty) and self.trace_penalty >= 0.0):
            raise ValueError(
                f"trace_penalty must be a finite number >= 0, got {self.trace_penalty!r}"
            )
        _ = self.inner

    @cached_property
    def weight(self) -> FloatArray:
        """The weights c, which sum to one."""
        return self.sample_weight / self.sample_weight.sum()

    @cached_property
    def rows(self) -> FloatArray:
        """C with rows of length one."""
        return np.asarray(self.facets / np.linalg.norm(self.facets, axis=1, keepdims=True))

    @cached_property
    def inner(self) -> FloatArray:
        """A vector u with C u >= 1, (p,)."""
        count, p = self.rows.shape
        found = linprog(
            np.append(np.zeros(p), -1.0),
            A_ub=np.hstack([-self.rows, np.ones((count, 1))]),
            b_ub=np.zeros(count),
            bounds=[(-1.0, 1.0)] * (p + 1),
        )
        if found.x is None or found.x[-1] <= _INNER:
            raise ValueError(
                "facets must describe a cone with inner points, and some of them hold with "
                "equality on all of it: give the generators of the cone instead"
            )
        return np.asarray(found.x[:p] / found.x[-1])

    @cached_property
    def loss(self) -> Residual:
        """½ ‖y - z‖²."""
        return Residual(Squared(), self.targets, self.weight)

    @cached_property
    def _triangle(self) -> tuple[IntArray, IntArray, FloatArray]:
        first, second = np.triu_indices(self.features.shape[1])
        return first, second, np.where(first == second, 1.0, np.sqrt(2.0))

    @cached_property
    def products(self) -> FloatArray:
        """The matrices φφᵀ of the rows as vectors with the same inner products."""
        first, second, scale = self._triangle
        return self.features[:, first] * self.features[:, second] * scale

    def vectors(self, matrices: FloatArray) -> FloatArray:
        """Symmetric matrices (k, r, r) as vectors with the same inner products."""
        first, second, scale = self._triangle
        return np.asarray(matrices[:, first, second] * scale)

    def matrices(self, vectors: FloatArray) -> FloatArray:
        """The inverse of :meth:`vectors`."""
        first, second, scale = self._triangle
        r = self.features.shape[1]
        full = np.empty((len(vectors), r, r))
        full[:, first, second] = full[:, second, first] = vectors / scale
        return full

    def predictions(self, matrices: FloatArray) -> FloatArray:
        """f of the rows, (n, p)."""
        return np.asarray(self.products @ self.vectors(matrices).T)

    def primal(self, matrices: FloatArray) -> float:
        """Objective of matrices A (p, r, r) whose combinations are positive."""
        traces = np.trace(matrices, axis1=1, axis2=2)
        total = float(self.weight @ self.loss.value(self.predictions(matrices)))
        total += self.trace_penalty * float((self.rows @ traces).sum())
        return total + 0.5 * self.alpha * float(np.vdot(matrices, matrices))

    def combined(self, matrices: FloatArray) -> FloatArray:
        """The matrices B of the facets, (T, r, r)."""
        return np.asarray(np.tensordot(self.rows, matrices, axes=1))


@dataclass(frozen=True, eq=False)
class FacetSolution:
    """A certified fit.

    Attributes
    ----------
    matrices : ndarray of shape (p, r, r)
        A; the combinations B are positive semi-definite but for rounding.
    multipliers : ndarray of shape (T, r, r)
        Z ⪰ 0 of the dual point.
    certificate : Certificate
        Objectives of these; ``feasibility`` is how far below zero the smallest eigenvalue of a
        B is, relative to the largest.
    status, n_iter, history :
        How it went.
    """

    matrices: FloatArray
    multipliers: FloatArray
    certificate: Certificate
    status: Status
    n_iter: int
    history: list[Progress] = field(default_factory=list)


class _Ridge:
    """Ridge regression in the products, in the eigenbases of both sides."""

    def __init__(self, problem: FacetProblem) -> None:
        self.problem = problem
        x, c = problem.products, problem.weight
        d, self.right = np.linalg.eigh(x.T @ (c[:, None] * x))
        self.d = np.maximum(d, 0.0) + problem.alpha
        lam, self.left = np.linalg.eigh(problem.rows.T @ problem.rows)
        self.lam = np.maximum(lam, 0.0)
        r = problem.features.shape[1]
        identity = problem.vectors(np.eye(r)[None])
        pull = problem.trace_penalty * problem.rows.sum(axis=0)[:, None] * identity
        self.target = problem.targets.T @ (c[:, None] * x) - pull
        self.constant = 0.5 * float(c @ np.square(problem.targets).sum(axis=1))

    def solve(self, vectors: FloatArray, penalty: float = 0.0) -> FloatArray:
        """a (G + alpha) + penalty CᵀC a = vectors."""
        turned = self.left.T @ vectors @ self.right
        turned /= self.d + penalty * self.lam[:, None]
        return np.asarray(self.left @ turned @ self.right.T)

    def lower(self, multipliers: FloatArray) -> float:
        """Dual objective of Z ⪰ 0."""
        turned = (self.target + self.problem.rows.T @ multipliers) @ self.right
        return self.constant - 0.5 * float((turned**2 / self.d).sum())


def solve_facets(
    problem: FacetProblem,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    callback: Callback | None = None,
) -> FacetSolution:
    r"""Solve by alternating directions, with a certificate.

    The matrices B are split off, :math:`B = C A`. A step is a ridge regression, diagonal in the
    eigenbases of the products of features and of CᵀC, which are found once, and a projection
    of T matrices of size r. The penalty follows the ratio of the residuals.

    Parameters
    ----------
    problem : FacetProblem
        What to solve.
    tol : float
        Duality gap to reach, relative to the mean loss of the best constant.
    max_iter : int
        Limit on the number of steps.
    callback : callable, optional
        Sees the progress at each certificate; True stops.

    Returns
    -------
    FacetSolution
        The best that was seen.
    """
    with threads_that_pay(max(problem.features.shape[1], 1) ** 2 // 2):
        return _Splitting(problem, tol).run(max_iter, callback)


class _Splitting:
    """The state of the iteration; U are the multipliers over the penalty."""

    def __init__(self, problem: FacetProblem, tol: float) -> None:
        self.problem, self.tol, self.ridge = problem, tol, _Ridge(problem)
        shape = (len(problem.rows), problem.products.shape[1])
        self.B, self.U = np.zeros(shape), np.zeros(shape)
        self.penalty = 3.0 * float(np.sqrt(self.ridge.d.max() * self.ridge.d.min()))
        self.history: list[Progress] = []
        self.started = time.perf_counter()
        self.lower, self.upper = -np.inf, np.inf
        self.best = np.zeros((problem.targets.shape[1], *[problem.features.shape[1]] * 2))
        self.dual = np.zeros(shape)

    def run(self, max_iter: int, callback: Callback | None) -> FacetSolution:
        """Iterate until the gap is small."""
        change = _CHECK  # changes of the penalty get rare, or it might never settle
        for step in range(max_iter + 1):
            a = self._step(balanced=step == change)
            change = max(int(1.3 * step), step + _CHECK) if step == change else change
            if step % _CHECK == 0 or step == max_iter:
                gap = self._certify(a, step)
                stopped = callback is not None and bool(callback(self.history[-1]))
                if gap <= self.tol or stopped:
                    break
        certificate = self._certificate()
        good = certificate.relative_gap <= self.tol
        message = f"relative gap of {certificate.relative_gap:.1e} after {step} steps"
        if not good:
            message += f" > tol={self.tol:g}: increase max_iter, alpha, or tol"
        multipliers = self.problem.matrices(self.dual)
        status = Status(good, message)
        return FacetSolution(self.best, multipliers, certificate, status, step, self.history)

    def _step(self, balanced: bool) -> FloatArray:
        rows, before = self.problem.rows, self.B
        pulled = self.penalty * (rows.T @ (before - self.U))
        a = self.ridge.solve(self.ridge.target + pulled, self.penalty)
        moved = rows @ a
        relaxed = _RELAXED * moved + (1.0 - _RELAXED) * before + self.U
        self.B = self._positive(relaxed)
        self.U = relaxed - self.B
        if balanced:
            self._balance(
                float(np.linalg.norm(moved - self.B)),
                self.penalty * float(np.linalg.norm(rows.T @ (self.B - before))),
            )
        return a

    def _positive(self, vectors: FloatArray) -> FloatArray:
        lam, u = np.linalg.eigh(self.problem.matrices(vectors))
        lam = np.maximum(lam, 0.0)
        return self.problem.vectors((u * lam[:, None, :]) @ u.transpose(0, 2, 1))

    def _balance(self, primal: float, dual: float) -> None:
        """Residuals in the units of what they are residuals of, a few times apart at most."""
        primal *= _LIGHTER / max(float(np.linalg.norm(self.B)), np.finfo(float).tiny)
        pull = self.penalty * float(np.linalg.norm(self.problem.rows.T @ self.U))
        dual /= max(pull, np.finfo(float).tiny)
        factor = 2.0 if primal > _APART * dual else 0.5 if dual > _APART * primal else 1.0
        self.penalty *= factor
        self.U /= factor

    def _certify(self, a: FloatArray, step: int) -> float:
        """Make both sides feasible and keep the better ones."""
        problem = self.problem
        # U is minus a negative part, and rounding is projected away
        multipliers = self._positive(-self.penalty * self.U)
        lower = self.ridge.lower(multipliers)
        if lower > self.lower:
            self.lower, self.dual = lower, multipliers
        matrices = problem.matrices(a)
        lam, u = np.linalg.eigh(problem.combined(matrices))
        missing = ((u * np.maximum(-lam, 0.0)[:, None, :]) @ u.transpose(0, 2, 1)).sum(axis=0)
        matrices = matrices + problem.inner[:, None, None] * missing
        upper = problem.primal(matrices)
        if upper < self.upper:
            self.upper, self.best = upper, matrices
        certificate = self._certificate()
        seconds = time.perf_counter() - self.started
        self.history.append(
            Progress(step, seconds, self.upper, self.lower, certificate.relative_gap)
        )
        return certificate.relative_gap

    def _certificate(self) -> Certificate:
        unit, gap = self.problem.loss.unit, self.upper - self.lower
        relative = gap / unit if unit > 0.0 else (0.0 if gap <= 0.0 else np.inf)
        lam = np.linalg.eigvalsh(self.problem.combined(self.best))
        size = max(float(np.abs(lam).max()), np.finfo(float).tiny)
        below = max(-float(lam.min()), 0.0) / size
        return Certificate(self.upper, self.lower, gap, relative, below)


__all__ = ["FacetProblem", "FacetSolution", "solve_facets"]
