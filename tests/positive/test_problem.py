"""Non-negative fits against semidefinite programs, and their certificates."""

from __future__ import annotations

import numpy as np
import pytest

import positive_referee as referee
from fenchel.losses import Huber, Pinball, Squared
from fenchel.positive import (
    Constraint,
    LinearPart,
    LogLikelihood,
    Poisson,
    PSDPart,
    PSDProblem,
    Residual,
    moment,
    solve,
)
from positive_referee import setting

TOL = 1e-7


def agree(problem, optimum, solvers=("newton", "proximal_newton"), tol=TOL):
    for solver in solvers:
        solution = solve(problem, solver, tol=tol)
        certificate = solution.certificate
        assert solution.status.converged, solution.status.message
        assert -1e-12 <= certificate.relative_gap <= tol
        assert certificate.feasibility <= 1e-10
        unit = problem.loss.unit
        assert certificate.primal == pytest.approx(optimum, abs=3e-6 * unit)
        assert certificate.dual <= optimum + 1e-6 * unit
        for matrix in solution.model.matrices:
            assert np.linalg.eigvalsh(matrix)[0] >= -1e-10
        assert problem.primal(solution.model) == pytest.approx(certificate.primal, rel=1e-12)
        again = problem.dual(solution.dual, solution.multipliers)
        assert again == pytest.approx(certificate.dual, abs=1e-9 * unit)
    return solution


@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
@pytest.mark.parametrize("trace", [0.0, 1e-2])
def test_log_likelihood(alpha, trace):
    _, _, features, phi, weight, _ = setting()
    integral = Constraint([moment(features).matrix], 1.0)
    part = PSDPart(phi, alpha, trace)
    problem = PSDProblem(LogLikelihood(), [part], weight, constraints=[integral])
    agree(problem, referee.logarithm(problem))


@pytest.mark.parametrize("bound", [0.3, 5.0])
def test_inequalities(bound):
    _, _, features, phi, weight, _ = setting(seed=1)
    whole, left = moment(features).matrix, moment(features, (-np.inf, 0.5)).matrix
    constraints = [Constraint([whole], 1.0), Constraint([left], bound, equality=False)]
    part = PSDPart(phi, 1e-2, 1e-3)
    problem = PSDProblem(LogLikelihood(), [part], weight, constraints=constraints)
    solution = agree(problem, referee.logarithm(problem))
    attained = np.vdot(left, solution.model.matrices[0])
    assert (solution.multipliers[1] > 0.0) == (bound < 1.0)
    assert attained <= bound * (1.0 + 1e-10)


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
def test_residual_losses(alpha, constrained):
    _, _, features, phi, weight, y = setting(seed=2)
    constraints = [Constraint([moment(features, (-1, 2)).matrix], 2.0)] if constrained else []
    part = PSDPart(phi, alpha, 1e-3)
    cases = [
        (Squared(), lambda p: referee.squared(p, y)),
        (Huber(0.3), lambda p: referee.huber(p, y, 0.3)),
        (Pinball([0.3]), lambda p: referee.pinball(p, y, [0.3])),
    ]
    for loss, optimum in cases:
        problem = PSDProblem(Residual(loss, y, weight), [part], weight, constraints=constraints)
        agree(problem, optimum(problem), ["proximal_newton"])


@pytest.mark.parametrize("zeros", [False, True])
def test_poisson(zeros):
    random, _, _, phi, weight, y = setting(seed=3)
    counts = random.poisson(np.maximum(2.0 * y[:, 0], 0.1)) + (0 if zeros else 1)
    assert np.any(counts == 0) == zeros
    loss = Poisson(counts, weight)
    problem = PSDProblem(loss, [PSDPart(phi, 1e-2, 1e-3)], weight)
    solvers = ["proximal_newton"] if zeros else ["newton", "proximal_newton"]
    agree(problem, referee.poisson(problem, counts.astype(float)), solvers)


def quantiles(offsets, alpha=1e-2, seed=4):
    _, _, _, phi, weight, y = setting(seed=seed, n=20, rank=5)
    levels = np.array([0.25, 0.5, 0.75])
    loss = Residual(Pinball(levels), y, weight)
    psd = [
        PSDPart(phi, alpha, 1e-3, np.array([-1.0, 0.0, 0.0])),
        PSDPart(phi, alpha, 1e-3, np.array([0.0, 0.0, 1.0])),
    ]
    linear = [LinearPart(phi, alpha, np.ones(3))]
    ones = np.ones((3, 1)) if offsets else None
    problem = PSDProblem(loss, psd, weight, linear=linear, offsets=ones)
    return problem, np.repeat(y, 3, axis=1), levels


@pytest.mark.slow
@pytest.mark.parametrize("offsets", [False, True])
def test_several_matrices_with_linear_parts(offsets):
    problem, y, levels = quantiles(offsets)
    optimum = referee.pinball(problem, y, levels)
    solution = agree(problem, optimum, ["newton", "proximal_newton"], tol=1e-6)
    z = problem.predictions(solution.model)
    assert np.all(np.diff(z, axis=1) >= 0.0)


def test_fista_agrees():
    _, _, features, phi, weight, y = setting(seed=5)
    integral = Constraint([moment(features).matrix], 1.0)
    cases = [
        (LogLikelihood(), [integral]),
        (Residual(Squared(), y, weight), []),
        (Residual(Pinball([0.5]), y, weight), [integral]),
    ]
    for loss, constraints in cases:
        part = PSDPart(phi, 1e-1, 1e-2)
        problem = PSDProblem(loss, [part], weight, constraints=constraints)
        slow = solve(problem, "fista", tol=1e-5, max_iter=3000)
        fast = solve(problem, tol=1e-7)
        assert slow.status.converged
        assert slow.certificate.primal == pytest.approx(fast.certificate.primal, abs=2e-5)


def test_certificate_of_any_dual_point_is_below_any_feasible_model():
    random, _, features, phi, weight, _ = setting(seed=6)
    integral = moment(features).matrix
    part = PSDPart(phi, 1e-2, 1e-3)
    problem = PSDProblem(
        LogLikelihood(), [part], weight, constraints=[Constraint([integral], 1.0)]
    )
    optimum = solve(problem, tol=1e-8).certificate.primal
    for _ in range(20):
        dual = -random.exponential(size=(len(phi), 1))
        multipliers = random.standard_normal(1)
        assert problem.dual(dual, multipliers) <= optimum + 1e-8


def test_matrix_has_the_sign_of_the_negative_part():
    # one feature: f = a φ², minimize ½ (y - a)² + λ₁ a + ½ λ₂ a² over a >= 0
    for y, expected in [(2.0, (2.0 - 0.1) / 1.5), (0.05, 0.0), (-1.0, 0.0)]:
        loss = Residual(Squared(), np.array([[y]]))
        problem = PSDProblem(loss, [PSDPart(np.ones((1, 1)), 0.5, 0.1)], np.ones(1))
        loss.unit = 1.0
        solution = solve(problem, "proximal_newton", tol=1e-12)
        assert solution.model.matrices[0][0, 0] == pytest.approx(expected, abs=1e-6)


def test_more_features_come_closer_to_the_full_map():
    _, _, features, phi, weight, _ = setting(rank=None, n=60)
    whole, values = moment(features).matrix, []
    for r in (3, 5, 8, phi.shape[1]):  # pivoted Cholesky: the first features are those of rank r
        part = PSDPart(np.ascontiguousarray(phi[:, :r]), 1e-2, 1e-3)
        integral = Constraint([whole[:r, :r]], 1.0)
        problem = PSDProblem(LogLikelihood(), [part], weight, constraints=[integral])
        values.append(solve(problem, tol=1e-8).certificate.primal)
    assert values[0] > values[1] > values[2] >= values[3] - 1e-8
    assert values[2] - values[3] < 0.05 * (values[0] - values[3])


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["newton", "proximal_newton", "fista"])
def test_rank_is_low(solver):
    # the dual matrix G of the optimum has few negative eigenvalues, and A has their number
    _, _, features, phi, weight, _ = setting(rank=None, n=60, seed=7)
    whole = moment(features).matrix
    constraints = [Constraint([whole], 1.0), Constraint([phi.T @ phi], 40.0, equality=False)]
    problem = PSDProblem(
        LogLikelihood(), [PSDPart(phi, 1e-2, 1e-2)], weight, (), None, constraints
    )
    exact = solve(problem, tol=1e-11)
    gram = problem.cone.shifted(problem.push(exact.dual).gram, exact.multipliers)[0]
    lam = np.linalg.eigvalsh(gram)
    expected = int(np.count_nonzero(lam < 0.0))
    assert np.abs(lam[: expected + 1]).min() > 1e-4  # the count is beyond doubt
    assert expected < phi.shape[1] // 2
    solution = solve(problem, solver, tol=1e-6, max_iter=3000)
    assert solution.certificate.relative_gap <= 1e-6
    assert solution.certificate.feasibility <= 1e-10
    assert solution.model.factors[0].shape[1] == expected
    assert np.linalg.matrix_rank(solution.model.matrices[0], tol=1e-8) == expected
    assert problem.primal(solution.model) == solution.certificate.primal


def test_refusals():
    _, _, features, phi, weight, y = setting()
    with pytest.raises(ValueError, match=r"must be a finite number > 0, got 0\.0, or 0 with"):
        PSDPart(phi, 0.0)
    with pytest.raises(ValueError, match="trace_penalty must be a finite number >= 0"):
        PSDPart(phi, 1.0, -1.0)
    integral = moment(features).matrix
    for constraints in (
        [Constraint([integral], -1.0)],
        [Constraint([integral], 1.0), Constraint([2.0 * integral], 1.0)],
        [Constraint([integral], 1.0), Constraint([-integral], -2.0, equality=False)],
    ):
        part = PSDPart(phi, 1e-2, 1e-3)
        problem = PSDProblem(LogLikelihood(), [part], weight, constraints=constraints)
        for solver in ("newton", "proximal_newton"):
            with pytest.raises(ValueError, match="constraints must not contradict one another"):
                solve(problem, solver)
    loss = Residual(Pinball([0.5]).insensitive(0.1), y)
    problem = PSDProblem(loss, [PSDPart(phi, 1.0)], weight)
    with pytest.raises(ValueError, match="solver='proximal_newton' takes any loss"):
        solve(problem, "newton")
    with pytest.raises(ValueError, match="solver must be one of"):
        solve(problem, "simplex")
    with pytest.raises(ValueError, match="psd must have a part or more, got none"):
        PSDProblem(loss, [], weight)
    with pytest.raises(ValueError, match="sample_weight must be positive, got -1"):
        PSDProblem(loss, [PSDPart(phi, 1.0)], -np.ones_like(weight))
    with pytest.raises(ValueError, match=r"offsets must have shape \(1, number of offsets\), got"):
        PSDProblem(loss, [PSDPart(phi, 1.0)], weight, offsets=np.ones(1))
    with pytest.raises(ValueError, match="direction must be given"):
        PSDProblem(Residual(Pinball([0.2, 0.5]), y), [PSDPart(phi, 1.0)], weight)


def test_honest_without_convergence():
    _, _, features, phi, weight, _ = setting()
    integral = Constraint([moment(features).matrix], 1.0)
    problem = PSDProblem(LogLikelihood(), [PSDPart(phi, 1e-3)], weight, constraints=[integral])
    solution = solve(problem, tol=1e-9, max_iter=2)
    assert not solution.status.converged
    assert "increase max_iter" in solution.status.message
    optimum = solve(problem, tol=1e-9).certificate.primal
    assert solution.certificate.dual <= optimum <= solution.certificate.primal


@pytest.mark.parametrize("value", [0.1, 0.3, 1e-9, 7e12])
def test_the_unit_of_constant_targets_is_that_of_zero(value):
    # their mean is rounded
    targets = np.full((7, 1), value)
    weight = np.random.default_rng(0).uniform(0.1, 2.0, 7)
    assert Residual(Squared(), targets, weight).unit == pytest.approx(0.5 * value**2)


@pytest.mark.parametrize("matrix", [[[0.0, 2.0], [0.0, 0.0]], [[1.0, 0.5], [0.0, 1.0]]])
def test_constraints_are_symmetric(matrix):
    condition = Constraint([np.array(matrix)], 0.5)
    parts, loss = [PSDPart(np.eye(2), 1e-2)], Residual(Squared(), np.ones((2, 1)), np.ones(2))
    with pytest.raises(ValueError, match="moments must be symmetric, got a matrix that differs"):
        solve(PSDProblem(loss, parts, np.ones(2), constraints=[condition]))
