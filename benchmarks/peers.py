"""The same problems given to general solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from fenchel.problem import Problem


def clarabel_low_rank(problem: Problem, levels: np.ndarray) -> tuple[float, str]:
    """Primal value by Clarabel, given the same low-rank features.

    min ½|V|² + c Σ τ u + (1-τ) v  subject to  S Vᵀφ + b + u - v = y,  u, v >= 0.
    """
    import clarabel

    n, r = problem.design.features.shape
    p, q = problem.design.coupling.shape
    size, m = r * q + p, n * p
    design = np.einsum("nr,pq->nprq", problem.design.features, problem.design.coupling).reshape(
        m, r * q
    )
    offsets = sparse.kron(np.ones((n, 1)), sparse.eye(p))
    identity = sparse.eye(m)
    equality = sparse.hstack([sparse.csc_matrix(design), offsets, identity, -identity])
    signs = sparse.hstack([sparse.csc_matrix((2 * m, size)), -sparse.eye(2 * m)])
    quadratic = sparse.block_diag([sparse.eye(r * q), sparse.csc_matrix((p + 2 * m, p + 2 * m))])
    weight = np.repeat(problem.weight, p)
    tau = np.tile(levels, n)
    linear = np.concatenate([np.zeros(size), weight * tau, weight * (1 - tau)])
    targets = np.repeat(problem.targets[:, 0], p)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    solution = clarabel.DefaultSolver(
        sparse.triu(quadratic, format="csc"),
        linear,
        sparse.vstack([equality, signs], format="csc"),
        np.concatenate([targets, np.zeros(2 * m)]),
        [clarabel.ZeroConeT(m), clarabel.NonnegativeConeT(2 * m)],
        settings,
    ).solve()
    return float(solution.obj_val), str(solution.status)


def cvxopt_dual(problem: Problem, levels: np.ndarray, **options: float) -> np.ndarray:
    """Dual vectors by CVXOPT's quadratic programming on the dense dual, (n, p)."""
    import cvxopt

    n, _ = problem.design.features.shape
    p = problem.n_outputs
    gram = problem.design.features @ problem.design.features.T
    output = problem.design.coupling @ problem.design.coupling.T
    hessian = cvxopt.matrix(np.kron(gram, output))
    upper = np.repeat(problem.weight, p) * np.tile(levels, n)
    lower = np.repeat(problem.weight, p) * np.tile(levels - 1, n)
    m = n * p
    box = cvxopt.sparse(
        [cvxopt.spmatrix(1.0, range(m), range(m)), cvxopt.spmatrix(-1.0, range(m), range(m))]
    )
    rows = [j for _ in range(n) for j in range(p)]
    total = cvxopt.spmatrix(1.0, rows, range(m), (p, m))
    result: Any = cvxopt.solvers.qp(
        hessian,
        cvxopt.matrix(-np.repeat(problem.targets[:, 0], p)),
        box,
        cvxopt.matrix(np.concatenate([upper, -lower])),
        total,
        cvxopt.matrix(0.0, (p, 1)),
        options={"show_progress": False, **options},
    )
    return np.array(result["x"]).reshape(n, p) / problem.weight[:, None]
