"""The squared loss: one linear system."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from fenchel._typing import FloatArray
from fenchel.losses import Squared
from fenchel.problem import Problem
from fenchel.solvers.base import Callback, Progress, Solution, Status, WarmStart


@dataclass(frozen=True)
class ClosedForm:
    r"""Kernel ridge regression, weights and intercept included.

    .. math:: (I + \Phi_c^\top C \Phi_c) V = \Phi_c^\top C Y_c, \qquad
              \beta = Y_c - \Phi_c V

    where the index c centres by the weighted mean if there is an intercept. Solved in the
    smaller of the spaces of features and rows; a coupling of the outputs is diagonalized,
    so that no Kronecker product is formed.

    Parameters
    ----------
    tol : float
        Relative gap below which the solution counts as converged.
    """

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
        features, weight = problem.features, problem.weight
        targets = np.broadcast_to(problem.targets, (len(features), problem.n_outputs))
        if problem.fit_intercept:
            mean = np.average(targets, axis=0, weights=weight)
            centre = np.average(features, axis=0, weights=weight)
            features, targets = features - centre, targets - mean
        root = np.sqrt(weight)[:, None]
        residual = _residual(root * features, root * targets, problem.coupling) / root
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


def _residual(features: FloatArray, targets: FloatArray, coupling: FloatArray) -> FloatArray:
    """Residual of targets after ridge regression with penalty 1, (n, p).

    It is (I + K s)⁻¹ y for each eigenvalue s of the coupling, K = ΦΦᵀ.
    """
    n, rank = features.shape
    values, basis = eigh(coupling @ coupling.T)
    rotated = targets @ basis
    if np.ptp(values) <= 1e-14 * values.max():
        scale = float(values.max())
        if n <= rank:
            system = scale * (features @ features.T)
            np.einsum("ii->i", system)[:] += 1.0
            residual = _solve(system, rotated)
        else:
            system = scale * (features.T @ features)
            np.einsum("ii->i", system)[:] += 1.0
            residual = rotated - scale * (features @ _solve(system, features.T @ rotated))
    elif n <= rank:
        spectrum, vectors = eigh(features @ features.T)
        shrunk = (vectors.T @ rotated) / (1.0 + np.outer(np.maximum(spectrum, 0.0), values))
        residual = vectors @ shrunk
    else:
        spectrum, vectors = eigh(features.T @ features)
        shrunk = vectors.T @ (features.T @ rotated)
        shrunk *= values / (1.0 + np.outer(np.maximum(spectrum, 0.0), values))
        residual = rotated - features @ (vectors @ shrunk)
    return residual @ basis.T


def _solve(system: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a positive definite system, with one step of iterative refinement."""
    factor = cho_factor(system, lower=True, check_finite=False)
    solution = cho_solve(factor, right, check_finite=False)
    solution += cho_solve(factor, right - system @ solution, check_finite=False)
    return np.asarray(solution)
