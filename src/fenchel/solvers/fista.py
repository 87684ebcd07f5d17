"""Accelerated proximal gradient on the dual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from fenchel._typing import FloatArray
from fenchel.problem import Problem
from fenchel.solvers.base import Callback, Solution, WarmStart, needs_plain_features
from fenchel.solvers.coordinates import Record

_ROOT_STEPS = 60


@dataclass(frozen=True)
class Fista:
    r"""FISTA with adaptive restart on the dual, in the metric of the weights c.

    .. math:: \beta^+ = \operatorname{prox}_{\ell^*/L}
              \left(\beta + \tfrac1L (y - S V^\top \varphi - b)\right),
              \qquad V = \Phi^\top (c \beta) S,

    with b the offset for which :math:`\sum_i c_i \beta^+_i = 0`, found output by output. L is
    the largest eigenvalue of the Hessian, by Lanczos iterations.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Limit on the number of gradient steps.
    check : int
        Steps between certificates.

    References
    ----------
    Beck, Teboulle (2009); O'Donoghue, Candès (2015) for the restart.
    """

    takes_gram: ClassVar[bool] = False
    tol: float = 1e-6
    max_iter: int = 100_000
    check: int = 50

    def requires(self, problem: Problem) -> str | None:
        """Return None unless an intercept meets a loss that couples the outputs."""
        missing = needs_plain_features(problem)
        if missing is not None:
            return missing
        if problem.fit_intercept and not problem.separable:
            return (
                "needs a loss without coupling of the outputs where there is an intercept; "
                "solver='newton' takes any loss, solver='pdcd' box losses"
            )
        return None

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the best certified point."""
        record = Record(problem, self.tol, callback)
        shape = (problem.rows.n_rows, problem.n_outputs)
        dual = np.zeros(shape) if warm_start is None else problem.feasible(warm_start.dual)
        offset = problem.best_constant if warm_start is None else warm_start.offset
        step = 1.0 / max(_curvature(problem), np.finfo(float).tiny)
        ahead, momentum = dual, 1.0
        done = 0
        while not record.judge(done, dual, offset) and done < self.max_iter:
            for _ in range(self.check):
                directions = problem.link(ahead) @ problem.coupling.T
                gradient = problem.targets - problem.features @ directions
                new, offset = _proximal(problem, ahead + step * gradient, step, offset)
                if np.vdot(ahead - new, problem.weight[:, None] * (new - dual)) > 0.0:
                    ahead, momentum = new, 1.0  # the momentum points uphill: restart
                else:
                    following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
                    ahead = new + (momentum - 1.0) / following * (new - dual)
                    momentum = following
                dual = new
            done += self.check
        return record.solution(done, "increase max_iter, or use solver='newton'")


def _curvature(problem: Problem) -> float:
    """Largest eigenvalue of √c K √c times that of the coupling."""
    root = np.sqrt(problem.weight)
    rank = problem.features.shape[1]
    if rank == 0:
        return 0.0

    def product(v: FloatArray) -> FloatArray:
        return problem.features.T @ (problem.weight * (problem.features @ v.ravel()))

    if rank <= 3:
        scaled = root[:, None] * problem.features
        top = float(np.linalg.eigvalsh(scaled.T @ scaled)[-1])
    else:
        operator = LinearOperator((rank, rank), matvec=product, dtype=np.float64)
        start = np.ones(rank)
        top = 1.01 * float(eigsh(operator, 1, v0=start, tol=1e-3, return_eigenvectors=False)[0])
    return top * float(np.linalg.eigvalsh(problem.coupling @ problem.coupling.T)[-1])


def _proximal(
    problem: Problem, point: FloatArray, step: float, offset: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Prox of ℓ*/L at ``point`` - step b, and the b for which it is feasible."""
    loss = problem.loss
    if not problem.fit_intercept:
        return loss.conjugate_prox(point, step), np.zeros_like(offset)
    weight = problem.weight

    def total(b: FloatArray) -> FloatArray:
        return weight @ loss.conjugate_prox(point - step * b, step)

    low, high = offset.copy(), offset.copy()
    width = np.full_like(offset, max(np.ptp(point) / step, np.finfo(float).tiny) * 1e-3)
    for _ in range(_ROOT_STEPS):
        below, above = total(low) < 0.0, total(high) > 0.0
        if not (below.any() or above.any()):
            break
        low, high = np.where(below, low - width, low), np.where(above, high + width, high)
        width = width * 2.0
    for _ in range(_ROOT_STEPS):
        middle = 0.5 * (low + high)
        positive = total(middle) > 0.0
        low, high = np.where(positive, middle, low), np.where(positive, high, middle)
    middle = 0.5 * (low + high)
    return loss.conjugate_prox(point - step * middle, step), middle
