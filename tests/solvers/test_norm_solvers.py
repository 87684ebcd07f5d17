"""Solvers of least squares with a norm: what they refuse, how they start, stop and report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fenchel.certificate import Certificate
from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm
from fenchel.solvers import (
    Lars,
    LassoDescent,
    LeastSquares,
    NormFista,
    NormNewton,
    side_by_side,
)
from fenchel.solvers.norm_fista import _curvature

LASSO = GroupNorm(np.zeros(8, dtype=np.intp), 1.0, 1.0)
GROUPS = GroupNorm(np.arange(8) // 2, 2.0, 1.0)


def problem(norm=LASSO, strength=0.1, constrained=False, outputs=1, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(60, 8)) @ random.normal(size=(8, 8))
    Y = X @ random.normal(size=(8, outputs)) + random.normal(size=(60, outputs))
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    return NormProblem(X, Y, 60, norm, strength, constrained, np.ones((60, 1)))


@pytest.mark.parametrize("constrained", [False, True])
def test_they_agree_on_the_lasso(constrained):
    case = problem(constrained=constrained)
    solutions = [Lars(1e-10).solve(case), NormFista(1e-10).solve(case)]
    if not constrained:
        solutions.append(LassoDescent(1e-10).solve(case))
    for solution in solutions:
        assert solution.status.converged
        assert solution.certificate.relative_gap <= 1e-10
        assert case.certify(solution.weights).certificate == solution.certificate
        np.testing.assert_allclose(solution.weights, solutions[0].weights, atol=1e-4)
        assert solution.history[-1].iteration == solution.n_iter
        assert solution.dual.shape == (60, 1)
        pull = np.abs(case.features.T @ solution.dual).max() / 60
        assert constrained or pull <= 0.1 * (1 + 1e-12)  # the dual point is feasible


@pytest.mark.parametrize(
    "solver", [Lars(), LassoDescent(), NormFista(), NormNewton(), LeastSquares()]
)
def test_refusals(solver):
    cases = {
        "lasso": problem(),
        "ball": problem(constrained=True),
        "groups": problem(GROUPS),
        "outputs": problem(outputs=2),
        "free": problem(strength=0.0),
    }
    taken = {name for name, case in cases.items() if solver.requires(case) is None}
    assert (
        taken
        == {
            Lars: {"lasso", "ball"},
            LassoDescent: {"lasso"},
            NormFista: {"lasso", "ball", "groups", "outputs"},
            NormNewton: {"groups"},
            LeastSquares: {"free"},
        }[type(solver)]
    )
    for name in set(cases) - taken:
        assert solver.requires(cases[name]).startswith("needs ")


@pytest.mark.parametrize("solver", [LassoDescent(), NormFista()])
def test_warm_starts(solver):
    case = problem()
    cold = solver.solve(case)
    again = solver.solve(case, cold.weights)
    assert again.n_iter <= 1 < cold.n_iter
    assert again.certificate.relative_gap <= solver.tol


def test_a_start_outside_of_the_ball_is_brought_back():
    case = problem(GROUPS, 0.5, constrained=True)
    solution = NormFista().solve(case, 100.0 * np.ones((8, 1)))
    assert solution.status.converged
    assert GROUPS.value(solution.weights) <= 0.5 * (1 + 1e-12)


def test_the_callback_sees_the_history_and_stops():
    seen = []
    case = problem(GROUPS, 1e-3)
    solution = NormFista(1e-14).solve(case, None, lambda line: seen.append(line) or len(seen) == 3)
    assert solution.history == seen
    assert [line.iteration for line in seen] == [0, 20, 40]
    assert not solution.status.converged
    assert "the callback returned a true value" in solution.status.message


def test_least_squares_on_few_rows_is_that_on_all():
    case = problem(strength=0.0)
    whole, few = LeastSquares().solve(case), LeastSquares().solve(case.reduced())
    best = np.linalg.lstsq(case.features, case.targets, rcond=None)[0]
    for solution in (whole, few):
        np.testing.assert_allclose(solution.weights, best, rtol=1e-10)
        assert 0.0 <= solution.certificate.gap <= 1e-25
    assert len(few.dual) == 9 < len(whole.dual)


def test_a_path_on_few_rows():
    """Its strengths are means over the rows of the data, however few rows are left."""
    case = problem()
    few = case.reduced()
    for solver in (Lars(1e-10), LassoDescent(1e-10)):
        weights = solver.solve(few).weights
        np.testing.assert_allclose(weights, solver.solve(case).weights, atol=1e-6)


def test_outputs_side_by_side():
    case = problem(outputs=2)
    parts = [LassoDescent(1e-8).solve(case.output(j)) for j in range(2)]
    both = side_by_side(parts, 1e-8)
    assert both.certificate == Certificate.of_sum(part.certificate for part in parts)
    np.testing.assert_array_equal(both.weights, np.hstack([part.weights for part in parts]))
    assert both.n_iter == max(part.n_iter for part in parts)
    assert both.status.converged
    assert side_by_side(parts[:1], 1e-8) is parts[0]
    early = LassoDescent(1e-12, max_iter=1).solve(replace(case.output(0), strength=1e-4))
    assert early.status.converged  # the path has helped
    failed = NormFista(1e-12, max_iter=1).solve(case.output(0))
    assert "increase max_iter" in side_by_side([failed, parts[1]], 1e-12).status.message


@pytest.mark.parametrize("shape", [(40, 9), (9, 40), (600, 510), (510, 600)])
def test_step_size(shape):
    """The curvature is an upper bound, and a tight one, also where it is found by iteration."""
    X = np.random.default_rng(18).normal(size=shape) + 1.0
    top = np.linalg.norm(X, 2) ** 2
    assert top * (1 - 1e-12) <= _curvature(X) <= 1.011 * top
    assert _curvature(X - X.mean(axis=0)) >= np.linalg.norm(X - X.mean(axis=0), 2) ** 2 * (
        1 - 1e-12
    )
