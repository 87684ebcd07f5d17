"""Newton steps in the dual points, against differences of what they are to solve."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.losses import Pinball
from fenchel.positive import NonCrossingQuantileRegressor
from fenchel.positive._row_system import RowSteps, RowSystem, takes_rows
from fenchel.positive._solution import feasible, point_of, total
from fenchel.positive.losses import Residual
from fenchel.positive.problem import Constraint, LinearPart, PSDPart, PSDProblem
from fenchel.positive.solvers import _walk

RNG = np.random.default_rng(0)
N, P, BARRIER = 11, 3, 1e-3
X = RNG.uniform(size=(60, 2))
Y = np.sin(6.0 * X[:, 0]) + 0.3 * (0.3 + X[:, 1]) * RNG.normal(size=60)


def problem_of(offsets, constraints=()):
    weight = RNG.uniform(0.5, 2.0, N)
    loss = Residual(Pinball([0.2, 0.5, 0.7]), RNG.normal(size=(N, 1)), weight, P)
    parts = [
        PSDPart(RNG.normal(size=(N, 4)), 0.3, 0.1, np.array([0.0, 1.0, 1.0])),
        PSDPart(RNG.normal(size=(N, 2)), 2.0, 0.0, np.array([-1.0, 0.0, 0.5])),
    ]
    line = LinearPart(RNG.normal(size=(N, 3)), 0.7, np.ones(P))
    return PSDProblem(loss, parts, weight, [line], offsets, constraints)


@pytest.mark.parametrize("offsets", [None, np.ones((P, 1)), np.eye(P)[:, :2]])
def test_a_step_solves_the_linearized_equations(offsets):
    problem = problem_of(offsets)
    dual = feasible(problem, RNG.uniform(-0.1, 0.1, (N, P)))

    def values(beta):
        point = point_of(problem, beta, None, np.zeros(0), BARRIER)
        return point, problem.values(point.push, point.spectra)

    point, _ = values(dual)
    curvature, rest = RNG.uniform(0.1, 5.0, (N, P)), RNG.normal(size=(N, P))
    change, offset = RowSystem(problem, point.spectra, curvature).solve(rest, dual)
    small = 1e-5 * change
    turn = (values(dual + small)[1] - values(dual - small)[1]) / 2e-5
    left = curvature * change - turn - rest - problem.outward @ offset
    assert np.abs(left).max() < 1e-7 * np.abs(rest).max()
    assert problem.outward.T @ (problem.weight @ (dual + change)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("offsets", [None, np.ones((P, 1))])
def test_compiled_steps_are_those_of_the_system_and_the_line_search(offsets):
    problem = problem_of(offsets)
    dual = feasible(problem, RNG.uniform(-0.1, 0.1, (N, P)))
    eased = problem.with_loss(problem.loss.interior(1e-3))
    first = point = point_of(eased, dual, None, np.zeros(0), BARRIER)
    for steps in range(1, 5):
        z = problem.values(point.push, point.spectra)
        slope, hessian = eased.loss.conjugate_derivatives(point.dual)
        system = RowSystem(problem, point.spectra, hessian)
        change, offset = system.solve(z - slope, point.dual)
        gain = float(np.vdot(problem.weight[:, None] * (z - slope), change))
        share = eased.loss.reach(point.dual, change)
        moved = _walk(eased, point, share * change, share * gain)
        assert total(eased, moved) < total(eased, point)
        point = moved
        done, found, own, decrease = RowSteps.of(problem).advance(eased, first, 0.0, steps)
        assert done == steps
        assert decrease == pytest.approx(gain, rel=1e-6)
        assert own == pytest.approx(offset, abs=1e-8)
        assert found.dual == pytest.approx(point.dual, abs=1e-9)
        assert total(eased, found) == pytest.approx(total(eased, point), abs=1e-11)
        for one, other in zip(found.push.gram, problem.push(found.dual).gram, strict=True):
            assert one == pytest.approx(other, abs=1e-11)
        pairs = zip(found.push.linear, problem.push(found.dual).linear, strict=True)
        assert all(one == pytest.approx(other, abs=1e-11) for one, other in pairs)
    assert RowSteps.of(problem).advance(eased, first, np.inf, 5)[0] == 1


def test_compiled_steps_are_for_one_offset_and_losses_with_kinks():
    assert RowSteps.of(problem_of(np.eye(P)[:, :2])) is None
    problem = problem_of(None)
    assert RowSteps.of(problem.with_loss(problem.loss.interior(1e-3))) is None


def test_it_is_for_few_rows_without_conditions():
    assert takes_rows(problem_of(None))
    assert not takes_rows(problem_of(None, [Constraint([np.eye(4), None], 1.0)]))


@pytest.mark.parametrize("alpha", [1e-6, 1e-7, 1e-8])
def test_small_strengths_take_as_few_steps_as_others(alpha):
    """Differences in the coordinates of the matrices left steps that lead uphill: 200 and more."""
    rough = NonCrossingQuantileRegressor(alpha=alpha, learn=False, tol=3e-3, solver="newton")
    rough.fit(X, Y)
    assert rough.status_.converged
    assert rough.n_iter_ <= 40
