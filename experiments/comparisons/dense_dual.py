"""The dual of joint quantile regression as a dense quadratic program, for general solvers.

With α the dual coefficients, row by row: minimize ½ αᵀ (K ⊗ B) α - Σ_i y_i Σ_j α_ij such that
C (τ_j - 1) <= α_ij <= C τ_j and Σ_i α_i = 0.
"""

from __future__ import annotations

import importlib.util

import clarabel
import numpy as np
from benchmarks.peers import cvxopt_dual
from scipy import sparse

from fenchel.problem import Problem


def solver_name() -> str:
    """CVXOPT, as in the paper, where it is installed."""
    return "CVXOPT" if importlib.util.find_spec("cvxopt") is not None else "Clarabel"


def quadratic_program(problem: Problem, levels: np.ndarray, tolerance: float) -> np.ndarray:
    """Dual vectors (n, p) by an interior-point method with this relative tolerance."""
    if solver_name() == "CVXOPT":
        return cvxopt_dual(problem, levels, reltol=tolerance)
    return clarabel_dual(problem, levels, tolerance)


def clarabel_dual(problem: Problem, levels: np.ndarray, tolerance: float) -> np.ndarray:
    """The same by Clarabel."""
    n, p = len(problem.design.features), problem.n_outputs
    gram = problem.design.features @ problem.design.features.T
    hessian = np.kron(gram, problem.design.coupling @ problem.design.coupling.T)
    identity = sparse.eye(n * p)
    total = sparse.kron(np.ones((1, n)), sparse.eye(p))
    weight = np.repeat(problem.weight, p)
    tau = np.tile(levels, n)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_rel = tolerance
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(hessian)),
        -np.repeat(problem.targets[:, 0], p),
        sparse.vstack([total, identity, -identity], format="csc"),
        np.concatenate([np.zeros(p), weight * tau, weight * (1.0 - tau)]),
        [clarabel.ZeroConeT(p), clarabel.NonnegativeConeT(2 * n * p)],
        settings,
    ).solve()
    return np.reshape(solution.x, (n, p)) / problem.weight[:, None]
