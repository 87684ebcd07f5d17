"""Systems one after another: each solution is that of its own system, whatever factor is kept."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.design import Gram
from fenchel.kernels import Matern
from fenchel.losses import Pinball
from fenchel.problem import Problem
from fenchel.solvers import kept_factor as module
from fenchel.solvers import newton_system
from fenchel.solvers.kept_factor import KeptFactor, Unknowns
from fenchel.solvers.newton_system import Kinks, solver_in_kinks
from fenchel.solvers.smoothed import fit_smoothed, from_residuals, unit_step

N = 200
COUPLING = np.linalg.cholesky(0.5 * np.eye(3) + 0.5)


def problem_of(length_scale=1.0, alpha=1e-3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    y = np.sin(2.0 * X[:, :1]) + 0.3 * rng.normal(size=(N, 1))
    design = Gram(Matern(length_scale)(X), COUPLING)
    return Problem(Pinball([0.1, 0.5, 0.9]), design, y, np.ones(N), alpha)


def kinks_of(problem, seed, share=0.5, like=None, moved=0):
    """Kinks at random, or those of before but for some."""
    rng = np.random.default_rng(seed)
    if like is None:
        places = np.flatnonzero(rng.uniform(size=3 * N) < share)
    else:
        places = np.setxor1d(like.keys, rng.choice(3 * N, moved, replace=False))
    sizes = np.sqrt(0.01 / problem.alpha) * np.where(places % 2, 1.0, 1.5)
    return Unknowns(problem, places // 3, places % 3, sizes)


def system(unknowns):
    """The matrix I + U Uᵀ by its definition."""
    design = unknowns.problem.design
    rows, coupled = unknowns.rows, COUPLING @ COUPLING.T
    outputs = coupled[np.ix_(unknowns.outputs, unknowns.outputs)]
    sizes = np.outer(unknowns.sizes, unknowns.sizes)
    return np.eye(len(rows)) + design.gram[np.ix_(rows, rows)] * outputs * sizes


@pytest.fixture
def factors(monkeypatch):
    """The sizes of systems that are factored."""
    sizes, own = [], module.factor_lower

    def noted(matrix):
        sizes.append(len(matrix))
        return own(matrix)

    monkeypatch.setattr(module, "factor_lower", noted)
    return sizes


def solved_as_defined(kept, unknowns, tol=1e-8):
    right = np.random.default_rng(9).normal(size=(len(unknowns.rows), 4))
    expected = np.linalg.solve(system(unknowns), right)
    found = kept.solve(unknowns, right, tol)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_other_kinks_need_no_other_factor(factors):
    problem, kept = problem_of(), KeptFactor()
    first = kinks_of(problem, 0)
    for seed, moved in enumerate((0, 1, 40, 120)):
        solved_as_defined(kept, kinks_of(problem, seed, like=first, moved=moved))
    assert factors == [len(first.rows)]


def test_a_change_of_the_kernel_alpha_and_stiffness_needs_none(factors):
    kept, first = KeptFactor(), kinks_of(problem_of(), 0)
    solved_as_defined(kept, first)
    other = kinks_of(problem_of(1.05, 0.9e-3), 1, like=first, moved=30)
    solved_as_defined(kept, other)
    solved_as_defined(kept, other._replace(sizes=np.where(other.rows < 9, 2.0, 1.0) * other.sizes))
    assert len(factors) == 1


def test_one_is_made_where_many_kinks_are_others_or_the_kernel_is(factors):
    kept = KeptFactor()
    first = kinks_of(problem_of(), 0)
    solved_as_defined(kept, first)
    many = kinks_of(problem_of(), 1, like=first, moved=module._MOST_CHANGED + 20)
    solved_as_defined(kept, many)
    assert len(factors) == 2
    solved_as_defined(kept, kinks_of(problem_of(0.1), 1, like=many, moved=0))
    solved_as_defined(kept, kinks_of(problem_of(0.1), 1, like=many, moved=0))
    assert len(factors) == 3


def test_what_single_precision_cannot_hold_is_solved_in_double(monkeypatch, factors):
    monkeypatch.setattr(newton_system, "LEAST_KINKS", 1)
    problem = problem_of(alpha=1e-60)
    unknowns = kinks_of(problem, 0)
    right = np.ones((len(unknowns.rows), 1))
    assert KeptFactor().solve(unknowns, right, 1e-6) is None
    jacobian = np.zeros((N, 3))
    jacobian[unknowns.rows, unknowns.outputs] = unknowns.sizes**2
    kinks = Kinks(np.arange(N), jacobian)
    rows, vectors = newton_system.square_roots(*kinks)
    found = solver_in_kinks(problem, kinks, rows, vectors, KeptFactor())(right)
    expected = np.linalg.solve(system(unknowns), right)
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


def test_fits_from_good_residuals_take_fewer_steps():
    problem = problem_of()
    step = 20.0 * unit_step(problem)
    cold = fit_smoothed(problem, step, None, 1e-10)
    noise = 1.0 + 1e-3 * np.random.default_rng(0).normal(size=cold.residual.shape)
    start = from_residuals(problem, step, noise * cold.residual)
    warm = fit_smoothed(problem, step, start, 1e-10)
    assert warm.n_steps < 0.5 * cold.n_steps
    np.testing.assert_allclose(warm.residual, cold.residual, atol=1e-6)


def test_fits_with_a_kept_factor_are_those_without(monkeypatch, factors):
    monkeypatch.setattr(newton_system, "LEAST_KINKS", 1)
    kept, last, step = KeptFactor(), None, 20.0 * unit_step(problem_of())
    for length_scale in (1.0, 1.02, 1.1):
        problem = problem_of(length_scale)
        last = fit_smoothed(problem, step, last, 1e-10, kept=kept)
        alone = fit_smoothed(problem, step, None, 1e-10)
        np.testing.assert_allclose(last.residual, alone.residual, atol=1e-6)
    assert factors
