"""The squared loss: one linear system."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from fenchel._typing import FloatArray
from fenchel.losses import Squared
from fenchel.operator_problem import OperatorProblem
from fenchel.problem import GramProblem, Problem
from fenchel.solvers.base import NEEDS_SCALAR_KERNEL, Callback, Solution, WarmStart, settled


@dataclass(frozen=True)
class ClosedForm:
    r"""Kernel ridge regression, weights and intercept included.

    .. math:: \beta = C^{-1/2} (I + s\, C^{1/2} K C^{1/2})^{-1} C^{1/2} (y - b)

    for each eigenvalue s of the coupling, b such that :math:`\sum_i c_i \beta_i = 0`. Solved
    in the smaller of the spaces of features and rows; outputs are rotated to the eigenvectors
    of the coupling, so that no Kronecker product is formed.

    Parameters
    ----------
    tol : float
        Relative gap below which the solution counts as converged.
    """

    takes_gram: ClassVar[bool] = True
    tol: float = 1e-6

    def requires(self, problem: Problem) -> str | None:
        """Return None for the plain squared loss, else a sentence on what is missing."""
        if isinstance(problem, OperatorProblem):
            return NEEDS_SCALAR_KERNEL
        if isinstance(problem.loss, Squared) and problem.loss.epsilon == 0.0:
            return None
        return "needs the squared loss with epsilon=0; solver='newton' takes any loss"

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the solution, certified; ``warm_start`` has no use here."""
        started = time.perf_counter()
        residual, weights = _solution(problem)
        certified = problem.certify(residual)
        if weights is not None and certified.certificate.relative_gap > self.tol:
            # at tiny alpha the residual has lost the digits that the weights still have
            direct = problem.certify(residual, weights=weights)
            if direct.certificate.gap < certified.certificate.gap:
                certified = direct
        how = "solved in closed form; rounding errors dominate; increase alpha"
        return settled(certified, started, 1, how, self.tol, callback)


def _solution(problem: Problem) -> tuple[FloatArray, FloatArray | None]:
    """Residuals (n, p) of the solution and, where they come along, its weights (r, q)."""
    values, basis = eigh(problem.coupling @ problem.coupling.T)
    targets = np.broadcast_to(problem.targets, (len(problem.targets), problem.n_outputs))
    in_rows = isinstance(problem, GramProblem) or len(targets) <= problem.features.shape[1]
    solver = (_InRows if in_rows else _InFeatures)(problem, values)
    root = np.sqrt(problem.weight)[:, None]
    residual, pulled = solver.solve(root * (targets @ basis))
    if problem.fit_intercept:
        # the same for a constant: the offset makes Σ c r vanish
        constant, constant_pulled = solver.solve(np.repeat(root, len(values), axis=1))
        offset = root.T @ residual / (root.T @ constant)
        residual = residual - constant * offset
        if pulled is not None and constant_pulled is not None:
            pulled = pulled - constant_pulled * offset
    weights = None if pulled is None else pulled @ basis.T @ problem.coupling
    return residual @ basis.T / root, weights


class _InRows:
    """(I + s √c K √c)⁻¹ y for the values s, from a factor or the spectrum of √c K √c."""

    def __init__(self, problem: Problem, values: FloatArray) -> None:
        root = np.sqrt(problem.weight)[:, None]
        gram = problem.gram if isinstance(problem, GramProblem) else None
        if gram is None:
            gram = problem.features @ problem.features.T
        self.values = values
        self.scaled = root * gram * root.T
        self.spectrum = None if all_equal(values) else eigh(self.scaled)

    def solve(self, y: FloatArray) -> tuple[FloatArray, None]:
        if self.spectrum is None:
            system = float(self.values[-1]) * self.scaled
            np.einsum("ii->i", system)[:] += 1.0
            return _solve(system, y), None
        spectrum, vectors = self.spectrum
        shrink = 1.0 + np.outer(np.maximum(spectrum, 0.0), self.values)
        return vectors @ ((vectors.T @ y) / shrink), None


class _InFeatures:
    """The same from the smaller matrix Φᵀ c Φ, with Φᵀ √c of the result."""

    def __init__(self, problem: Problem, values: FloatArray) -> None:
        self.values = values
        self.scaled = np.sqrt(problem.weight)[:, None] * problem.features
        self.square = self.scaled.T @ self.scaled
        self.spectrum = None if all_equal(values) else eigh(self.square)

    def solve(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        pulled = self.scaled.T @ y
        if self.spectrum is None:
            system = float(self.values[-1]) * self.square
            np.einsum("ii->i", system)[:] += 1.0
            pulled = _solve(system, pulled)
        else:
            spectrum, vectors = self.spectrum
            shrink = 1.0 + np.outer(np.maximum(spectrum, 0.0), self.values)
            pulled = vectors @ ((vectors.T @ pulled) / shrink)
        return y - self.scaled @ (pulled * self.values), pulled


def all_equal(values: FloatArray) -> bool:
    """Whether sorted eigenvalues are one, up to rounding."""
    return bool(np.ptp(values) <= 1e-14 * values.max())


def _solve(system: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a positive definite system, with one step of iterative refinement."""
    factor = cho_factor(system, lower=True, check_finite=False)
    solution = cho_solve(factor, right, check_finite=False)
    solution += cho_solve(factor, right - system @ solution, check_finite=False)
    return np.asarray(solution)
