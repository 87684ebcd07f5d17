"""Losses that couple rows: of differences of pairs, against semidefinite programs."""

from __future__ import annotations

import numpy as np
import pytest

import positive_referee as referee
from fenchel.losses import Huber, Pinball, Squared
from fenchel.positive import LinearPart, PSDPart, PSDProblem, Residual, solve
from positive_referee import setting

TOL = 1e-7


def pairs_of_rows(m=40, seed=0):
    """Features, pairs as a matrix, differences of targets, weights of the pairs."""
    random, _, _, phi, _, y = setting(seed=seed)
    pairs = np.array([random.choice(len(phi), 2, replace=False) for _ in range(m)])
    matrix = np.zeros((m, len(phi)))
    matrix[np.arange(m), pairs[:, 0]], matrix[np.arange(m), pairs[:, 1]] = 1.0, -1.0
    return phi, matrix, matrix @ y, random.uniform(0.5, 2.0, m)


def agree(problem, optimum, solvers):
    for solver in solvers:
        solution = solve(problem, solver, tol=TOL, max_iter=3000)
        certificate, unit = solution.certificate, problem.loss.unit
        assert solution.status.converged, solution.status.message
        assert certificate.primal == pytest.approx(optimum, abs=3e-6 * unit)
        assert certificate.dual <= optimum + 1e-6 * unit
        # the objective once more, pair by pair
        part = problem.psd[0]
        values = np.einsum("ij,jk,ik->i", part.features, solution.model.matrices[0], part.features)
        plus, minus = part.combinations.argmax(axis=1), part.combinations.argmin(axis=1)
        z = (values[plus] - values[minus])[:, None]
        for line, weights in zip(problem.linear, solution.model.weights, strict=True):
            z += (line.features @ weights)[:, None]
        assert problem.predictions(solution.model) == pytest.approx(z, abs=1e-10)


@pytest.mark.parametrize("alpha", [1e-1, 1e-3, 0.0])
def test_pairs_against_a_semidefinite_program(alpha):
    phi, pairs, y, weight = pairs_of_rows()
    parts = [PSDPart(phi, alpha, 1e-2, combinations=pairs)]
    problem = PSDProblem(Residual(Squared(), y, weight), parts, weight)
    agree(problem, referee.squared(problem, y), ["auto"] if alpha < 1e-2 else ["auto", "fista"])
    problem = PSDProblem(Residual(Pinball([0.3]), y, weight), parts, weight)
    agree(problem, referee.pinball(problem, y, [0.3]), ["auto", "newton"])
    problem = PSDProblem(Residual(Huber(0.5), y, weight), parts, weight)
    agree(problem, referee.huber(problem, y, 0.5), ["proximal_newton"])


def test_many_pairs_of_few_rows():
    phi, pairs, y, weight = pairs_of_rows(m=600, seed=1)
    problem = PSDProblem(
        Residual(Pinball([0.5]), y, weight), [PSDPart(phi, 1e-2, combinations=pairs)], weight
    )
    agree(problem, referee.pinball(problem, y, [0.5]), ["auto", "newton"])


def test_beside_a_linear_part_of_pairs():
    phi, pairs, y, weight = pairs_of_rows(seed=2)
    problem = PSDProblem(
        Residual(Squared(), y, weight),
        [PSDPart(phi, 1e-2, 1e-3, combinations=pairs)],
        weight,
        [LinearPart(pairs @ phi, 1e-1)],
    )
    agree(problem, referee.squared(problem, y), ["auto"])


def test_the_values_themselves_are_the_identity():
    phi, _, _, _ = pairs_of_rows()
    random = np.random.default_rng(4)
    y, weight = random.uniform(0.0, 2.0, (len(phi), 1)), np.ones(len(phi))
    loss = Residual(Squared(), y, weight)
    plain = solve(PSDProblem(loss, [PSDPart(phi, 1e-2)], weight), tol=TOL)
    same = PSDPart(phi, 1e-2, combinations=np.eye(len(phi)))
    coupled = solve(PSDProblem(loss, [same], weight), tol=TOL)
    assert coupled.certificate.primal == pytest.approx(plain.certificate.primal, abs=1e-7)


def test_refusal():
    phi, pairs, y, weight = pairs_of_rows()
    with pytest.raises(ValueError, match="combinations must have shape"):
        PSDPart(phi, 1e-2, combinations=pairs[:, 1:])
    part = PSDPart(phi, 1e-2, combinations=pairs[1:])
    with pytest.raises(ValueError, match="features must have 40 rows, got 39"):
        PSDProblem(Residual(Squared(), y, weight), [part], weight)
