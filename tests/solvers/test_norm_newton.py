"""Newton's method for sums of Euclidean norms, against the definition and gradient steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm
from fenchel.solvers import NormFista, NormNewton
from fenchel.solvers import norm_newton as module


def problem(shape=(40, 60), size=5, outputs=1, strength=0.3, correlation=0.5, seed=0):
    """Centred rows, the first two groups of which matter."""
    random = np.random.default_rng(seed)
    n, d = shape
    labels = random.permutation(np.arange(d) // size)
    X = random.normal(size=shape) + correlation * random.normal(size=(n, 1))
    Y = X[:, labels < 2] @ random.normal(size=(2 * size, outputs))
    Y += 0.5 * random.normal(size=(n, outputs))
    norm = GroupNorm(labels, 2.0, 1.0)
    return NormProblem(X - X.mean(axis=0), Y - Y.mean(axis=0), float(n), norm, strength)


def ball_of(case, share=1.0):
    """The problem with a bound that has the same solution, or a share of that bound."""
    radius = case.norm.value(NormNewton(1e-12).solve(case).weights)
    return replace(case, strength=share * radius, constrained=True)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("shape", [(20, 100), (40, 60), (300, 30)])
def test_optimality(shape, outputs):
    """Slopes of groups are alpha in their direction, or at most alpha where they are zero."""
    case = problem(shape, outputs=outputs)
    solution = NormNewton(1e-13).solve(case)
    W, groups = solution.weights, case.norm.labels
    slopes = case.features.T @ (case.targets - case.features @ W) / case.count
    zeros = 0
    for group in np.unique(groups):
        own, slope = W[groups == group], slopes[groups == group]
        if own.any():
            direction = case.strength * own / np.linalg.norm(own)
            np.testing.assert_allclose(slope, direction, atol=1e-5 * case.strength)
        else:
            zeros += 1
            assert np.linalg.norm(slope) <= case.strength * (1.0 + 1e-5)
    assert 0 < zeros < len(np.unique(groups))
    assert solution.certificate.relative_gap <= 1e-13


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("shape", [(20, 100), (40, 60)])
def test_a_bound_at_the_norm_of_a_penalized_fit_has_its_solution(shape, outputs):
    case = problem(shape, outputs=outputs)
    penalized = NormNewton(1e-12).solve(case)
    ball = ball_of(case)
    solution = NormNewton(1e-12).solve(ball)
    assert solution.certificate.relative_gap <= 1e-12
    assert case.norm.value(solution.weights) <= ball.strength * (1.0 + 1e-12)
    np.testing.assert_allclose(solution.weights, penalized.weights, atol=1e-4)
    assert ball.multiplier(solution.weights) == pytest.approx(case.strength, rel=1e-4)


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize(("shape", "size", "outputs"), [((30, 40), 5, 1), ((6, 40), 1, 2)])
def test_directions_are_those_of_newton(shape, size, outputs, constrained):
    """The Hessian, by differences of the gradient, turns them into minus the gradient."""
    case = problem(shape, size, outputs, correlation=0.1)
    case = ball_of(case, 0.5) if constrained else case
    weights, factor = NormNewton().solve(case).weights, 0.5
    steps = module._ProximalPoint(case, weights)
    wave = np.cos(np.arange(case.targets.size)).reshape(case.targets.shape)
    dual = case.targets - case.features @ weights + 0.1 * wave

    def gradient(theta):
        return steps._at(theta, factor).gradient

    at = steps._at(dual, factor)
    alive = at.kept > 0.0
    assert 0 < alive.sum() < len(alive)  # a Jacobian with groups of both kinds
    direction = steps._direction(at, factor)
    step = 1e-6
    turned = (gradient(dual + step * direction) - gradient(dual - step * direction)) / (2 * step)
    np.testing.assert_allclose(turned, -gradient(dual), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("constrained", [False, True])
def test_the_gradient_is_that_of_the_value(constrained):
    case = problem(outputs=2)
    case = ball_of(case, 0.5) if constrained else case
    steps = module._ProximalPoint(case, 0.1 * np.ones((60, 2)))
    dual, step = case.targets, 1e-5
    direction = np.sin(np.arange(dual.size)).reshape(dual.shape)
    values = [steps._at(dual + sign * step * direction, 2.0).value for sign in (1.0, -1.0)]
    slope = np.vdot(steps._at(dual, 2.0).gradient, direction)
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(slope, rel=1e-6)


def test_where_gradient_steps_take_too_long():
    """Few rows, many columns and a weak penalty, one in ten of the columns selected."""
    case = problem((30, 3000), 10, strength=1e-3, correlation=0.0)
    slow, fast = NormFista(max_iter=5000).solve(case), NormNewton().solve(case)
    assert not slow.status.converged
    assert fast.status.converged
    assert fast.n_iter < 1500
    assert fast.certificate.primal <= slow.certificate.primal


def test_groups_in_other_units():
    """Columns of a group that are a thousand times as large or small take no more steps."""
    case = problem(strength=0.01)
    case = replace(case, features=case.features * 10.0 ** (3 * (case.norm.labels % 3 - 1)))
    solution = NormNewton(1e-10).solve(case)
    assert solution.status.converged
    assert solution.n_iter <= module._gradient_steps(case) + 40


def test_steps_are_counted_and_limited():
    case = problem((30, 3000), 10, strength=1e-3, correlation=0.0)
    for most in (1, 130, 300):
        solution = NormNewton(1e-12, max_iter=most).solve(case)
        assert solution.n_iter <= most
        assert not solution.status.converged
        assert "max_iter" in solution.status.message


def test_a_callback_stops_between_newton_steps():
    case = problem(strength=1e-3)
    gradient_steps = module._gradient_steps(case)
    seen = []

    def watch(line):
        seen.append(line.iteration)
        return line.iteration > gradient_steps + 1

    solution = NormNewton(1e-15).solve(case, None, watch)
    assert seen[-2:] == [gradient_steps + 1, gradient_steps + 2]
    assert "the callback returned a true value" in solution.status.message


def test_beyond_rounding_errors_it_ends():
    """No step changes anything: it does not go on to the last one."""
    solution = NormNewton(1e-300).solve(problem())
    assert solution.n_iter <= module._gradient_steps(problem()) + 50
    assert solution.certificate.relative_gap < 1e-14


@pytest.mark.parametrize("constrained", [False, True])
def test_degenerate_problems(constrained):
    case = problem()
    nothing = replace(case, targets=0.0 * case.targets)
    assert not NormNewton().solve(replace(nothing, constrained=constrained)).weights.any()
    features = case.features.copy()
    features[:, case.norm.labels == 3] = 0.0
    empty = replace(case, features=features, constrained=constrained)
    solution = NormNewton(1e-12).solve(empty)
    assert solution.certificate.relative_gap <= 1e-12
    assert not solution.weights[case.norm.labels == 3].any()
    strong = NormNewton().solve(replace(case, strength=1e3))
    assert not strong.weights.any()
    weak = NormNewton().solve(replace(case, strength=1e6, constrained=True))
    assert weak.status.converged  # the bound is not met: least squares
