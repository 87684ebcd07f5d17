"""The eigenbases of the splitting against dense matrices, and what is read off coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fenchel.design import Gram, Plain
from fenchel.losses import CurveHuber
from fenchel.problem import Problem
from fenchel.solvers import Splitting, WarmStart
from fenchel.solvers.anderson import Anderson
from fenchel.solvers.eigenbases import Eigenbases

N, P = 30, 40


def curves(output, alpha=1e-3, design=Plain):
    """Huber losses with p = 1 of curves with weights, and a smooth kernel of few features."""
    rng = np.random.default_rng(0)
    x, theta = rng.uniform(size=(N, 1)), np.linspace(0.0, 1.0, P)
    distances = np.abs(theta[:, None] - theta)
    matrix = np.exp(-5.0 * distances) if output == "chain" else np.exp(-20.0 * distances**2)
    values, vectors = np.linalg.eigh(matrix / P)
    coupling = vectors * np.sqrt(np.maximum(values, 0.0))
    values, vectors = np.linalg.eigh(np.exp(-4.0 * (x - x.T) ** 2))
    features = vectors[:, -12:] * np.sqrt(values[-12:])
    rows = features if design is Plain else features @ features.T
    Y = np.sin(6.0 * (theta + x)) + 0.1 * rng.standard_normal((N, P))
    Y[:3] *= -3.0
    loss, weight = CurveHuber(0.1, 1, np.full(P, 1.0 / P)), rng.uniform(0.5, 2.0, N)
    problem = Problem(
        loss, design(rows, coupling), Y / np.sqrt(P), weight, alpha, fit_intercept=False
    )
    assert (problem.design.output_chain is None) == (output != "chain")
    return problem


def dense(problem):
    """The matrix that the bases belong to, (n p, n p)."""
    root = np.sqrt(problem.weight)
    features = problem.design.features
    gram = problem.design.gram if features is None else features @ features.T
    return np.kron(root[:, None] * gram * root, problem.design.output_matrix)


@pytest.mark.parametrize("output", ["chain", "smooth"])
@pytest.mark.parametrize("tol", [0.0, 0.1])
def test_solutions_and_forms_are_those_of_the_matrix(output, tol):
    problem = curves(output)
    matrix, point = dense(problem), np.random.default_rng(1).standard_normal((N, P))
    bases = Eigenbases(problem, 1.0, tol)
    image, inside = bases.image(bases.coordinates(point), 0.3)
    solved = (point - image) / 0.3
    wanted = np.linalg.solve(matrix + 0.3 * np.eye(N * P), point.ravel()).reshape(N, P)
    apart = np.abs(solved - wanted).max()
    assert apart <= 1e-12 if tol == 0.0 else 1e-6 < apart < 0.1
    np.testing.assert_allclose(inside, bases.coordinates(image), atol=1e-12)
    whole = point.ravel() @ matrix @ point.ravel()
    found, rest = bases.square(bases.coordinates(point)), bases.rest(point)
    assert (rest is None) == (output == "smooth")
    if rest is not None:
        assert (rest > 1e-6 * whole) == (tol > 0.0)
        assert found + rest == pytest.approx(whole, rel=1e-12)
    elif tol == 0.0:
        assert found == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("output", ["chain", "smooth"])
@pytest.mark.parametrize("tol", [0.0, 0.1])
@pytest.mark.parametrize("design", [Plain, Gram])
def test_weights_have_the_values_of_the_bases(output, tol, design):
    problem = curves(output, design=design)
    point = np.random.default_rng(2).standard_normal((N, P))
    bases = Eigenbases(problem, 1.0, tol)
    inside = bases.coordinates(point)
    image, _ = bases.image(inside, 0.3)
    solved = (point - image) / 0.3  # the image is the matrix times that
    weights = bases.weights(bases.coordinates(solved))
    values = bases.root * problem.design.values(weights)
    np.testing.assert_allclose(values, image, atol=1e-12)
    square = problem.design.squared_norm(weights)
    assert square == pytest.approx(float(np.vdot(solved, image)), rel=1e-11)


@pytest.mark.parametrize("output", ["chain", "smooth"])
@pytest.mark.parametrize("alpha", [1e-12, 1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize("design", [Plain, Gram])
def test_certificates_from_coordinates_are_those_of_weights_and_point(output, alpha, design):
    problem = curves(output, alpha, design)
    first = Splitting(1e-6).solve(problem)
    other = replace(problem, alpha=1.3 * alpha)
    start = WarmStart(first.nearby, first.offset, alpha, first.nearby_values)
    for solution, mine in ((first, problem), (Splitting(1e-6).solve(other, start), other)):
        assert solution.status.converged
        certificate, unit = solution.certificate, mine.baseline
        primal = mine.primal(solution.weights.copy(), solution.offset)  # no values are known
        assert certificate.primal == pytest.approx(primal, abs=1e-12 * unit)
        assert certificate.dual == pytest.approx(mine.dual(solution.dual), abs=1e-12 * unit)


def test_what_is_linear_in_points_is_extrapolated_with_them():
    """To a fixed point of an affine map, with sums of entries beside the entries."""
    rng = np.random.default_rng(5)
    basis = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    matrix, shift = (basis * np.linspace(0.0, 0.9, 30)) @ basis.T, rng.standard_normal(30)
    sums = rng.standard_normal((4, 30))
    point = np.zeros(34)
    turn = Anderson(30, 4)
    for _ in range(60):
        step = matrix @ point[:30] + shift - point[:30]
        length = float(np.linalg.norm(step))
        point = turn(point, np.concatenate((step, sums @ step)), length)
        np.testing.assert_allclose(point[30:], sums @ point[:30], atol=1e-11)
    fixed = np.linalg.solve(np.eye(30) - matrix, shift)
    np.testing.assert_allclose(point[:30], fixed, atol=1e-8)


@pytest.mark.parametrize("length", [4.0, 6.0])
def test_an_extrapolation_that_leads_to_a_step_ten_times_as_long_is_taken_back(length):
    rng = np.random.default_rng(6)
    first, second, step, last = rng.standard_normal((4, 30))
    turn = Anderson(30)
    turn(first, step, 1.0)
    extrapolated = turn(second, last, 0.5)
    plain = second + last
    assert np.abs(extrapolated - plain).max() > 0.1
    found = turn(extrapolated, step, length)
    if length > 10 * 0.5:
        np.testing.assert_array_equal(found, plain)
        np.testing.assert_array_equal(turn(plain, step, 0.4), plain + step)
    else:
        np.testing.assert_array_equal(found, extrapolated + step)
