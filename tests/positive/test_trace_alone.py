"""Matrices with a penalty on the trace alone, (6) with λ₂ = 0, against semidefinite programs."""

from __future__ import annotations

import numpy as np
import pytest

import positive_referee as referee
from fenchel.losses import Huber, Pinball, Squared
from fenchel.positive import (
    Constraint,
    DualNewton,
    LinearPart,
    LogLikelihood,
    PSDPart,
    PSDProblem,
    Residual,
    moment,
    solve,
)
from positive_referee import setting

TOL = 1e-6


def agree(problem, optimum, solver="auto"):
    solution = solve(problem, solver, tol=TOL)
    certificate, unit = solution.certificate, problem.loss.unit
    assert solution.status.converged, solution.status.message
    assert -1e-12 <= certificate.relative_gap <= TOL
    assert certificate.feasibility <= 1e-10
    assert certificate.primal == pytest.approx(optimum, abs=2.0 * TOL * unit)
    assert certificate.dual <= optimum + 1e-7 * unit
    # both values once more, by the definitions
    model, n = solution.model, len(problem.weight)
    penalty = sum(
        part.trace_penalty * np.trace(a) + 0.5 * part.alpha * np.sum(a * a)
        for part, a in zip(problem.psd, model.matrices, strict=True)
    )
    penalty += sum(
        0.5 * line.alpha * w @ w for line, w in zip(problem.linear, model.weights, strict=True)
    )
    losses = problem.weight @ problem.loss.value(problem.predictions(model))
    assert losses + penalty == pytest.approx(certificate.primal, abs=1e-9 * unit)
    for k, part in enumerate(problem.psd):
        along = solution.dual @ problem.direction(part)
        slack = part.trace_penalty * np.eye(part.features.shape[1])
        for i in range(n):
            slack += problem.weight[i] * along[i] * np.outer(part.features[i], part.features[i])
        for nu, condition in zip(solution.multipliers, problem.constraints, strict=True):
            slack += nu * condition.moments[k]
        if part.alpha == 0.0:
            assert np.linalg.eigvalsh(slack)[0] >= -1e-14 * np.abs(slack).max()
        assert np.linalg.eigvalsh(model.matrices[k])[0] >= -1e-12
    return solution


@pytest.mark.slow
@pytest.mark.parametrize("trace", [1e-1, 1e-2, 1e-3])
def test_log_likelihood(trace):
    _, _, features, phi, weight, _ = setting()
    integral = Constraint([moment(features).matrix], 1.0)
    part = PSDPart(phi, 0.0, trace)
    problem = PSDProblem(LogLikelihood(), [part], weight, constraints=[integral])
    agree(problem, referee.logarithm(problem))


@pytest.mark.parametrize("trace", [1e-1, 1e-3])
def test_residual_losses(trace):
    _, _, _, phi, weight, y = setting()
    parts = [PSDPart(phi, 0.0, trace)]
    squared = PSDProblem(Residual(Squared(), y, weight), parts, weight)
    agree(squared, referee.squared(squared, y))
    pinball = PSDProblem(Residual(Pinball([0.5]), y, weight), parts, weight)
    agree(pinball, referee.pinball(pinball, y, [0.5]))
    agree(pinball, referee.pinball(pinball, y, [0.5]), DualNewton(TOL))
    huber = PSDProblem(Residual(Huber(0.5), y, weight), parts, weight)
    agree(huber, referee.huber(huber, y, 0.5))


def test_beside_parts_with_a_squared_norm():
    _, _, _, phi, weight, y = setting(seed=3)
    psd = [PSDPart(phi, 0.0, 1e-2), PSDPart(phi[:, :4], 1e-2, 0.0, -np.ones(1))]
    lines = [LinearPart(phi, 1e-1)]
    loss = Residual(Squared(), y, weight)
    problem = PSDProblem(loss, psd, weight, lines, offsets=np.ones((1, 1)))
    agree(problem, referee.squared(problem, y))


def test_a_trace_too_dear_leaves_zero():
    # f = 0 is optimal where Σ c y φφᵀ <= λ₁ I: the derivative of the squared loss at zero
    _, _, _, phi, weight, y = setting()
    c = weight / weight.sum()
    dear = np.linalg.eigvalsh(phi.T @ ((c * y[:, 0])[:, None] * phi))[-1]
    for share, zero in ((1.01, True), (0.99, False)):
        loss = Residual(Squared(), y, weight)
        problem = PSDProblem(loss, [PSDPart(phi, 0.0, share * dear)], weight)
        solution = solve(problem, tol=1e-8)
        assert solution.status.converged
        assert (np.trace(solution.model.matrices[0]) < 1e-6) == zero


def test_a_stopped_fit_says_so():
    _, _, _, phi, weight, y = setting()
    problem = PSDProblem(Residual(Squared(), y, weight), [PSDPart(phi, 0.0, 1e-4)], weight)
    solution = solve(problem, tol=1e-8, max_iter=2)
    assert not solution.status.converged
    assert "stopped at a relative gap of" in solution.status.message
    assert solution.certificate.relative_gap > 1e-8
    optimum = solve(problem, tol=1e-8).certificate
    assert solution.certificate.dual <= optimum.primal
    assert optimum.dual <= solution.certificate.primal


def test_refusals():
    _, _, _, phi, weight, y = setting()
    with pytest.raises(ValueError, match="or 0 with trace_penalty > 0"):
        PSDPart(phi, 0.0, 0.0)
    problem = PSDProblem(Residual(Squared(), y, weight), [PSDPart(phi, 0.0, 1e-2)], weight)
    with pytest.raises(ValueError, match="solve takes alpha=0"):
        DualNewton().solve(problem)
