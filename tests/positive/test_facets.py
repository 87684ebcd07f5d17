"""Functions in cones that are given by facets, against a semidefinite program."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from scipy import sparse

from fenchel.features import PivotedCholesky
from fenchel.kernels import Gaussian
from fenchel.losses import Squared
from fenchel.positive import FacetProblem, PSDPart, PSDProblem, Residual, solve, solve_facets

# |y_1| <= y_0 and |y_2| <= y_0: four facets in three dimensions, no simplex
PYRAMID = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.0, -1.0]])


def setting(facets, alpha=1e-2, trace=0.0, n=30, seed=0):
    random = np.random.default_rng(seed)
    x = random.uniform(-1.0, 1.0, (n, 1))
    feature_map = PivotedCholesky(Gaussian(0.5), rank=5)
    features = feature_map.fit_transform(x)
    p = facets.shape[1]
    targets = np.sin(3.0 * x) * np.arange(p) + 0.3 * random.standard_normal((n, p))
    weight = random.uniform(0.5, 2.0, n)
    return feature_map, FacetProblem(features, targets, weight, facets, alpha, trace)


def optimum(problem):
    """By Clarabel, from the definition: full matrices A, and the scaled triangles of B."""
    p = problem.targets.shape[1]
    r = problem.features.shape[1]
    rows, columns = np.triu_indices(r)
    order = np.lexsort((rows, columns))
    rows, columns = rows[order], columns[order]
    scale = np.where(rows == columns, 1.0, np.sqrt(2.0))
    m = len(rows)
    c = problem.sample_weight / problem.sample_weight.sum()
    facets = problem.facets / np.linalg.norm(problem.facets, axis=1, keepdims=True)
    outer = np.array([np.outer(f, f)[rows, columns] * scale for f in problem.features])
    square = np.kron(np.eye(p), outer.T @ (c[:, None] * outer) + problem.alpha * np.eye(m))
    linear = -(problem.targets.T @ (c[:, None] * outer))
    trace = np.eye(r)[rows, columns]
    linear += problem.trace_penalty * facets.sum(axis=0)[:, None] * trace
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    result = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(square)),
        linear.ravel(),
        sparse.csc_matrix(-np.kron(facets, np.eye(m))),
        np.zeros(len(facets) * m),
        [clarabel.PSDTriangleConeT(r)] * len(facets),
        settings,
    ).solve()
    assert str(result.status) in {"Solved", "AlmostSolved"}
    return result.obj_val + 0.5 * float(c @ np.square(problem.targets).sum(axis=1))


@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
@pytest.mark.parametrize("trace", [0.0, 1e-2])
@pytest.mark.parametrize("facets", [PYRAMID, np.diff(np.eye(4), axis=0)], ids=["pyramid", "order"])
def test_against_a_semidefinite_program(facets, alpha, trace):
    feature_map, problem = setting(facets, alpha, trace)
    solution = solve_facets(problem, tol=1e-7)
    certificate = solution.certificate
    expected = optimum(problem)
    assert solution.status.converged
    assert -1e-12 <= certificate.relative_gap <= 1e-7
    assert certificate.primal == pytest.approx(expected, abs=3e-7 * problem.loss.unit)
    assert certificate.dual <= expected + 1e-8
    assert certificate.primal == problem.primal(solution.matrices)
    assert np.linalg.eigvalsh(solution.multipliers).min() >= -1e-12
    assert certificate.feasibility <= 1e-12
    # in the cone at points that were not seen, far ones as well
    new = feature_map.transform(np.linspace(-4.0, 4.0, 500)[:, None])
    values = np.einsum("ni,sij,nj->ns", new, solution.matrices, new)
    assert (values @ facets.T).min() >= -1e-12 * np.abs(values).max()


def test_constraint_is_felt():
    _, problem = setting(PYRAMID)
    free = optimum(FacetProblem(*[problem.features, problem.targets, problem.sample_weight],
                                np.array([[1.0, 0.0, 0.0]]), problem.alpha))  # fmt: skip
    assert solve_facets(problem).certificate.dual > free * (1.0 + 1e-3)


def test_orthogonal_facets_are_generators():
    # then A = Cᵀ B, and the penalty of A is that of B
    facets = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    _, problem = setting(facets, alpha=1e-2)
    parts = [PSDPart(problem.features, problem.alpha, 0.0, row) for row in facets]
    loss = Residual(Squared(), problem.targets, problem.weight)
    hull = solve(PSDProblem(loss, parts, problem.sample_weight), tol=1e-8)
    ours = solve_facets(problem, tol=1e-8)
    assert ours.certificate.primal == pytest.approx(hull.certificate.primal, abs=1e-7)


def test_honest_without_convergence():
    _, problem = setting(PYRAMID, alpha=1e-3)
    solution = solve_facets(problem, tol=1e-9, max_iter=20)
    assert not solution.status.converged
    assert "increase max_iter" in solution.status.message
    expected = optimum(problem)
    assert solution.certificate.dual <= expected + 1e-9
    assert solution.certificate.primal >= expected - 1e-9


def test_refusals():
    _, problem = setting(PYRAMID)
    given = [problem.features, problem.targets, problem.sample_weight]
    with pytest.raises(ValueError, match="cone with inner points"):
        FacetProblem(*given, np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]), 1.0)
    with pytest.raises(ValueError, match=r"facets must have shape \(T, 3\)"):
        FacetProblem(*given, np.eye(2), 1.0)
    with pytest.raises(ValueError, match="no row of zeros"):
        FacetProblem(*given, np.zeros((1, 3)), 1.0)
    with pytest.raises(ValueError, match="alpha must be a finite number > 0, got 0"):
        FacetProblem(*given, PYRAMID, 0.0)
