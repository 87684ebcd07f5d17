"""The squared loss: one linear system."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from fenchel._typing import FloatArray
from fenchel.losses import Squared
from fenchel.problem import GramProblem, Problem
from fenchel.solvers.base import Callback, Progress, Solution, Status, WarmStart


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
        residual = _residual(problem)
        certified = problem.certify(residual)
        certificate = certified.certificate
        progress = Progress(
            iteration=1,
            seconds=time.perf_counter() - started,
            primal=certificate.primal,
            dual=certificate.dual,
            relative_gap=certificate.relative_gap,
        )
        if callback is not None:
            callback(progress)
        good = certificate.relative_gap <= self.tol
        message = f"solved in closed form to a relative gap of {certificate.relative_gap:.1e}"
        if not good:
            message += f" > tol={self.tol:g}: rounding errors dominate; increase alpha"
        return Solution(
            certified.dual,
            certified.weights,
            certified.offset,
            certificate,
            Status(good, message),
            1,
            [progress],
        )


def _residual(problem: Problem) -> FloatArray:
    """Residuals (n, p) of the solution, in the smaller of the spaces of features and rows."""
    values, basis = eigh(problem.coupling @ problem.coupling.T)
    targets = np.broadcast_to(problem.targets, (len(problem.targets), problem.n_outputs))
    in_rows = isinstance(problem, GramProblem) or len(targets) <= problem.features.shape[1]
    one_value = np.ptp(values) <= 1e-14 * values.max()
    solver = _InRows(problem, one_value) if in_rows else _InFeatures(problem, one_value)
    root = np.sqrt(problem.weight)[:, None]
    rotated = root * (targets @ basis)
    scale = values[-1:] if one_value else values
    residual = solver.residual(rotated, scale)
    if problem.fit_intercept:
        # residual of the constant, once for each eigenvalue: the offset makes Σ c r vanish
        constant = solver.residual(np.repeat(root, len(scale), axis=1), scale)
        residual = residual - constant * (root.T @ residual / (root.T @ constant))
    return residual @ basis.T / root


class _InRows:
    """(I + s √c K √c)⁻¹ y for the values s, from a factor or the spectrum of √c K √c."""

    def __init__(self, problem: Problem, one_value: bool) -> None:
        root = np.sqrt(problem.weight)[:, None]
        gram = problem.gram if isinstance(problem, GramProblem) else None
        if gram is None:
            gram = problem.features @ problem.features.T
        self.scaled = root * gram * root.T
        self.spectrum = None if one_value else eigh(self.scaled)

    def residual(self, y: FloatArray, values: FloatArray) -> FloatArray:
        if self.spectrum is None:
            system = float(values[0]) * self.scaled
            np.einsum("ii->i", system)[:] += 1.0
            return _solve(system, y)
        spectrum, vectors = self.spectrum
        shrink = 1.0 + np.outer(np.maximum(spectrum, 0.0), values)
        return np.asarray(vectors @ ((vectors.T @ y) / shrink))


class _InFeatures:
    """The same from the smaller matrix Φᵀ c Φ."""

    def __init__(self, problem: Problem, one_value: bool) -> None:
        self.scaled = np.sqrt(problem.weight)[:, None] * problem.features
        self.square = self.scaled.T @ self.scaled
        self.spectrum = None if one_value else eigh(self.square)

    def residual(self, y: FloatArray, values: FloatArray) -> FloatArray:
        pulled = self.scaled.T @ y
        if self.spectrum is None:
            system = float(values[0]) * self.square
            np.einsum("ii->i", system)[:] += 1.0
            return y - float(values[0]) * (self.scaled @ _solve(system, pulled))
        spectrum, vectors = self.spectrum
        shrunk = (vectors.T @ pulled) * values
        shrunk /= 1.0 + np.outer(np.maximum(spectrum, 0.0), values)
        return y - self.scaled @ (vectors @ shrunk)


def _solve(system: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a positive definite system, with one step of iterative refinement."""
    factor = cho_factor(system, lower=True, check_finite=False)
    solution = cho_solve(factor, right, check_finite=False)
    solution += cho_solve(factor, right - system @ solution, check_finite=False)
    return np.asarray(solution)
