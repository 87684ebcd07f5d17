"""The squared loss by products with the kernel alone: no (n, n) array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from fenchel._typing import FloatArray
from fenchel.certificate import Certified
from fenchel.problem import Problem
from fenchel.solvers.base import LoopSolver, WarmStart, needs_scalar_kernel
from fenchel.solvers.closed_form import shift_of
from fenchel.solvers.loop import Iterate

_JITTER = 1e-10  # of the largest diagonal entry, so that kernels of landmarks have a factor
_SAFELY = 0.1  # of the tolerance, below which an estimate is worth a certificate
_MOST_BETWEEN = 20  # steps between certificates


@dataclass(frozen=True)
class ConjugateGradients(LoopSolver):
    r"""Conjugate gradients for kernel ridge regression, preconditioned by landmarks.

    .. math:: (K + D)\, u = y - b, \qquad D = \mathrm{diag}(1 / (s c)), \qquad
              P = K_{nm} K_{mm}^{-1} K_{mn} + D

    for each eigenvalue s of the coupling, :math:`\sum_i u_i = 0` with an intercept. Each step is
    one product with K for all outputs, and one for each certificate, from which on residuals
    are exact again. As P is below K + D, the error of the dual objective is at most
    :math:`\frac{\alpha}{2 s} r^\top P^{-1} r` with r the residual: that says when to certify.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Limit on the number of steps.
    rank : int
        Number of landmarks m, rows at equal steps: (n, m) numbers are kept.

    References
    ----------
    Rudi, Carratino, Rosasco (2017), FALKON: an optimal large scale kernel method. Díaz, Epperly,
    Frangella, Tropp, Webber (2023), Robust, randomized preconditioning for kernel ridge
    regression.
    """

    takes_gram: ClassVar[bool] = True
    remedy: ClassVar[str] = "increase max_iter or alpha"
    tol: float = 1e-6
    max_iter: int = 1000
    rank: int = 1000

    def requires(self, problem: Problem) -> str | None:
        """Return None for the plain squared loss and a kernel by its values."""
        missing = needs_scalar_kernel(problem)
        if missing is not None:
            return missing
        if problem.design.kernel_values is None:
            return "needs a kernel by its values: features='kernel_rows'"
        box = problem.loss.box(problem.n_outputs)
        if box is not None and box.is_squared:
            return None
        return "needs the squared loss with epsilon=0; solver='newton' takes any loss"

    def _iterates(
        self, problem: Problem, warm_start: WarmStart | None
    ) -> Iterator[Iterate[Certified]]:
        system = _System(problem, self.rank)
        yield Iterate(0, system.certified())
        step, since, enough = system.start(), 0, _SAFELY * self.tol * problem.baseline
        for done in range(1, self.max_iter + 1):
            step, since = system.advance(step), since + 1
            if system.error(step) <= enough or since >= _MOST_BETWEEN or done == self.max_iter:
                yield Iterate(done, system.certified())
                enough, since = min(enough, _SAFELY * system.error(step)), 0
                step = system.start()


class _Step(NamedTuple):
    """A direction, and rᵀP⁻¹r of the residuals that it begins with, of each column."""

    direction: FloatArray
    sizes: FloatArray


class _System:
    """Columns (K + D_j) u_j = y_j, and behind these the same for constants."""

    def __init__(self, problem: Problem, rank: int) -> None:
        self.problem, self.kernel = problem, problem.design.kernel_values
        n, p = problem.n_rows, problem.n_outputs
        values, self.basis = problem.design.output_spectrum
        right = np.broadcast_to(problem.targets, (n, p)) @ self.basis
        copies = 2 if problem.fit_intercept else 1
        self.right = np.hstack([right, np.ones((n, p))])[:, : copies * p]
        largest = float(self.kernel.diagonal.max())
        shift = [shift_of(problem.weight, float(s), largest) for s in values]
        self.shift = np.column_stack(shift * copies)
        self.values = np.tile(values, copies)
        self.solution = np.zeros(self.right.shape)
        self.residual = self.right.copy()
        self._precondition(min(rank, n), largest)

    def _precondition(self, rank: int, largest: float) -> None:
        """Features of landmarks, and the spectrum of their square: one for each shift."""
        n = self.problem.n_rows
        chosen = np.unique(np.linspace(0, n - 1, rank).astype(np.intp))
        among = np.array(self.kernel.block(chosen, chosen), dtype=np.float64)
        np.einsum("ii->i", among)[:] += _JITTER * (largest or 1.0)
        factor = cholesky(among, lower=True, check_finite=False)
        columns = self.kernel.block(chosen, np.arange(n))
        self.features = solve_triangular(factor, columns, lower=True, check_finite=False)
        self.inner = []
        for value in np.unique(self.values):
            mine = np.flatnonzero(self.values == value)
            scaled = self.features / np.sqrt(self.shift[:, mine[0]])
            self.inner.append((mine, *eigh(scaled @ scaled.T, check_finite=False)))

    def preconditioned(self, residual: FloatArray) -> FloatArray:
        """P⁻¹ r, by the formula of Woodbury."""
        divided = residual / self.shift
        pulled = self.features @ divided
        for mine, values, vectors in self.inner:
            shrink = 1.0 / (1.0 + np.maximum(values, 0.0))
            pulled[:, mine] = vectors @ (shrink[:, None] * (vectors.T @ pulled[:, mine]))
        return divided - self.features.T @ pulled / self.shift

    def start(self) -> _Step:
        """The direction of the present residual."""
        direction = self.preconditioned(self.residual)
        return _Step(direction, _inner(self.residual, direction))

    def advance(self, step: _Step) -> _Step:
        """Take a step along the direction, and return the next one."""
        direction, sizes = step
        image = self.kernel.times(direction) + self.shift * direction
        length = _ratio(sizes, _inner(direction, image))
        self.solution += length * direction
        self.residual -= length * image
        turned = self.preconditioned(self.residual)
        after = _inner(self.residual, turned)
        return _Step(turned + _ratio(after, sizes) * direction, after)

    def _offset(self) -> FloatArray:
        """Offset of each output in the basis, for which coefficients add up to zero."""
        p = self.problem.n_outputs
        if not self.problem.fit_intercept:
            return np.zeros(p)
        sums = self.solution.sum(axis=0)
        return _ratio(sums[:p], sums[p:])

    def error(self, step: _Step) -> float:
        """Bound on what the dual objective is below its largest value, rounding aside."""
        p = self.problem.n_outputs
        sizes = step.sizes[:p].copy()
        if self.problem.fit_intercept:
            sizes += self._offset() ** 2 * step.sizes[p:]
        steep = (self.problem.weight[:, None] * self.shift[:, :p]).max(axis=0)  # 1 / s
        return float(0.5 * self.problem.alpha * (sizes @ steep))

    def certified(self) -> Certified:
        """Certificate of the present point, with residuals computed anew."""
        problem, p = self.problem, self.problem.n_outputs
        nothing = not self.solution.any()
        image = self.solution if nothing else self.kernel.times(self.solution)
        self.residual = self.right - image - self.shift * self.solution
        point, values = self.shift[:, :p] * self.solution[:, :p], image[:, :p]
        if problem.fit_intercept:
            offset = self._offset()
            point = point - offset * self.shift[:, p:] * self.solution[:, p:]
            values = values - offset * image[:, p:]
        dual = point @ self.basis.T
        problem.design.remember(problem.link(dual), values @ self.basis.T)
        return problem.certify(dual)


def _inner(one: FloatArray, other: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->j", one, other)


def _ratio(one: FloatArray, other: FloatArray) -> FloatArray:
    """One over the other, zero where that is zero: columns that are solved."""
    return np.divide(one, other, out=np.zeros_like(one), where=other != 0.0)
