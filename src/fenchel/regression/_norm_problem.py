"""Least squares with a norm as penalty or as constraint: certificates, and FISTA."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import LinearOperator, eigsh

from fenchel._threads import threads_that_pay
from fenchel._typing import FloatArray
from fenchel._validation import check_number
from fenchel.certificate import Certificate, Status
from fenchel.regression._linear_base import fewer_rows
from fenchel.regression._norms import GroupNorm

DEFAULT_ALPHA = 1e-3
_DENSE = 500  # up to this size the largest eigenvalue is cheap


@dataclass(frozen=True, eq=False)
class NormProblem:
    r"""The penalized or the constrained form, for centred and weighted rows.

    .. math:: P(W) = \frac{1}{2m} \|Y - XW\|^2 + \alpha \|W\|, \qquad
              D(\theta) = \frac1m \left(\langle\theta, Y\rangle - \tfrac12\|\theta\|^2\right)
              \quad\text{where}\quad \|X^\top\theta\|_* \le \alpha m

    .. math:: P(W) = \frac{1}{2m} \|Y - XW\|^2
              \quad\text{where}\quad \|W\| \le \Lambda, \qquad
              D(\theta) = \frac1m \left(\langle\theta, Y\rangle - \tfrac12\|\theta\|^2
              - \Lambda \|X^\top\theta\|_*\right)

    Every W has a feasible dual point: the best multiple of its residuals.

    Parameters
    ----------
    design, target : ndarray of shape (rows, d) and (rows, outputs)
        X and Y.
    count : float
        m.
    norm : GroupNorm
        ‖·‖, with its dual norm.
    strength : float
        α, or Λ if ``constrained``.
    constrained : bool
        Which form.
    root : ndarray of shape (rows, 1), optional
        Square roots of the weights of the rows; X and Y are orthogonal to it where given.
    """

    design: FloatArray
    target: FloatArray
    count: float
    norm: GroupNorm
    strength: float
    constrained: bool = False
    root: FloatArray | None = None

    @property
    def baseline(self) -> float:
        """Objective of the best constant model."""
        return float(np.vdot(self.target, self.target)) / (2.0 * self.count)

    def certify(self, coef: FloatArray) -> Certificate:
        """Objective of W, and of the best multiple of its residuals as a dual point."""
        residual = self.target - self.design @ coef
        size = self.norm.dual.value(self.design.T @ residual) / self.count
        square = float(np.vdot(residual, residual)) / self.count
        earned = float(np.vdot(residual, self.target)) / self.count
        primal, limit = 0.5 * square, np.inf
        if self.constrained:
            earned -= self.strength * size
        else:
            primal += self.strength * self.norm.value(coef)
            limit = self.strength / size if size > 0.0 else np.inf
        best = earned / square if square > 0.0 else 0.0
        multiple = min(max(best, 0.0), limit)
        lower = multiple * (earned - 0.5 * multiple * square)
        return Certificate(primal, lower, self.baseline, self._feasibility(residual))

    def _feasibility(self, residual: FloatArray) -> float:
        """What the dual point leaves of the constraint of the intercept, relatively."""
        if self.root is None:
            return 0.0
        total = (self.root * np.abs(residual)).sum(axis=0)
        left = np.abs((self.root * residual).sum(axis=0))
        return float(np.max(np.divide(left, total, out=left, where=total > 0.0)))

    def nearest(self, point: FloatArray, step: float) -> FloatArray:
        """Prox of the penalty or projection on the ball."""
        if self.constrained:
            return self.norm.project(point, self.strength)
        return self.norm.prox(point, step * self.strength)

    def inside(self, coef: FloatArray) -> FloatArray:
        """The coefficients, brought back where rounding has left the ball."""
        size = self.norm.value(coef) if self.constrained else 0.0
        return coef * (self.strength / size) if size > self.strength else coef

    def reduced(self) -> NormProblem:
        """The same problem on d + outputs rows, if those are fewer."""
        design, target = fewer_rows(self.design, self.target)
        return replace(self, design=design, target=target, root=None)


def fista(
    problem: NormProblem, coef: FloatArray, tol: float, max_iter: int, check: int = 20
) -> tuple[FloatArray, int]:
    r"""FISTA with adaptive restart on the primal; return the best certified coefficients.

    .. math:: W^+ = \operatorname{prox}_{\|\cdot\| \alpha/L}
              \left(V + \tfrac{1}{Lm} X^\top (Y - XV)\right)

    V is W^+ with momentum, L the largest eigenvalue of XᵀX/m. The gap is looked at after
    each ``check`` steps.

    References
    ----------
    Beck, Teboulle (2009); O'Donoghue, Candès (2015) for the restart.
    """
    small = problem.reduced()
    with threads_that_pay(small.design.size // 10_000):  # products with few columns
        return _iterate(small, coef, tol, max_iter, check)


def _iterate(
    small: NormProblem, coef: FloatArray, tol: float, max_iter: int, check: int
) -> tuple[FloatArray, int]:
    step = 1.0 / max(_curvature(small.design) / small.count, np.finfo(float).tiny)
    best, lowest = coef, small.certify(coef).relative_gap
    ahead, momentum, done = coef, 1.0, 0
    while lowest > tol and done < max_iter:
        for _ in range(min(check, max_iter - done)):
            gradient = small.design.T @ (small.target - small.design @ ahead) / small.count
            new = small.nearest(ahead + step * gradient, step)
            if np.vdot(ahead - new, new - coef) > 0.0:
                ahead, momentum = new, 1.0  # the momentum points uphill: restart
            else:
                following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
                ahead = new + (momentum - 1.0) / following * (new - coef)
                momentum = following
            coef = new
            done += 1
        inside = small.inside(coef)
        gap = small.certify(inside).relative_gap
        if gap < lowest:
            best, lowest = inside, gap
    return best, done


def _curvature(design: FloatArray) -> float:
    """The largest eigenvalue of XᵀX, from above."""
    rows, columns = design.shape
    size = min(rows, columns)
    if size <= _DENSE:
        gram = design.T @ design if columns <= rows else design @ design.T
        return float(eigvalsh(gram, subset_by_index=[size - 1, size - 1])[0])

    def product(v: FloatArray) -> FloatArray:
        return design.T @ (design @ v.ravel())

    operator = LinearOperator((columns, columns), matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(columns)
    top = eigsh(operator, 1, v0=start, tol=1e-3, return_eigenvectors=False)
    return 1.01 * float(top[0])


def judged(gap: float, tol: float, n_iter: int) -> Status:
    """How it ended, with a remedy where the gap is above ``tol``."""
    message = f"{n_iter} steps to a relative gap of {gap:.1e}"
    if gap > tol:
        message += f" > tol={tol:g}: increase max_iter or tol, or scale the columns of X"
    return Status(gap <= tol, message)


def check_form(estimator: Any) -> tuple[float, bool]:
    """Return alpha or radius, and whether it is the radius, or say what is wrong with them."""
    alpha, radius = estimator.alpha, estimator.radius
    if alpha is not None and radius is not None:
        raise ValueError(
            f"at most one of alpha and radius can be given, got alpha={alpha!r} and "
            f"radius={radius!r}"
        )
    if radius is not None:
        check_number(estimator, "radius", low=0.0, open_low=True)
        return float(radius), True
    if alpha is not None:
        check_number(estimator, "alpha", low=0.0, open_low=True)
    return (DEFAULT_ALPHA if alpha is None else float(alpha)), False


__all__ = ["NormProblem", "check_form", "fista", "judged"]
