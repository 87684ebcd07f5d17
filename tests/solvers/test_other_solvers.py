"""Every solver against the independent one, under the same judge."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from fenchel.design import Operator, Plain
from fenchel.losses import Absolute, Huber, L2Norm, Pinball, Squared, SquaredPinball
from fenchel.positive import ProximalNewton
from fenchel.problem import Problem
from fenchel.solvers import (
    PDCD,
    SOLVERS,
    AugmentedLagrangian,
    Conic,
    ConjugateGradients,
    Fista,
    Newton,
    Solution,
    Splitting,
    WarmStart,
    make_solver,
)
from fenchel.solvers.augmented_lagrangian import inner_gap
from fenchel.solvers.coordinates import State, Sweeps

TOL = 1e-6
LEVELS = {1: [0.3], 3: [0.1, 0.5, 0.8]}
SOLVERS_UNDER_TEST = {
    "pdcd": PDCD(tol=TOL),
    "pdcd, all rows": PDCD(tol=TOL, active_set=False),
    "pdcd, coordinates": PDCD(tol=TOL, block=False),
    "augmented lagrangian": AugmentedLagrangian(tol=TOL),
    "augmented lagrangian, as printed": AugmentedLagrangian(
        tol=TOL, max_iter=200_000, mu=10.0, inner=None, block=False
    ),
    "fista": Fista(tol=TOL),
    "newton": Newton(tol=TOL),
}
LOSSES = {
    "squared": lambda p: Squared(),
    "absolute": lambda p: Absolute(),
    "pinball": lambda p: Pinball(LEVELS[p]),
    "squared pinball": lambda p: SquaredPinball(LEVELS[p]),
    "huber": lambda p: Huber(0.5),
    "l2 norm": lambda p: L2Norm(),
}


def random_problem(loss, p, *, fit_intercept=True, seed=0, n=40, rank=12):
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(p, p)) if seed % 2 else np.eye(p)
    return Problem(
        loss=loss,
        design=Plain(rng.normal(size=(n, rank)) / np.sqrt(rank), mixing),
        targets=rng.normal(size=(n, p if seed % 3 else 1)),
        sample_weight=rng.uniform(0.2, 2.0, n),
        alpha=1.0 / n,
        fit_intercept=fit_intercept,
    )


def check_solution(problem: Problem, solution: Solution, optimum: float) -> None:
    unit = problem.baseline
    assert solution.status.converged, solution.status.message
    assert solution.certificate.primal == pytest.approx(
        problem.primal(solution.weights, solution.offset), abs=1e-12 * unit
    )
    assert solution.certificate.dual == pytest.approx(
        problem.dual(solution.dual), abs=1e-12 * unit
    )
    assert solution.certificate.dual <= optimum + 1e-8 * unit
    assert optimum - 1e-8 * unit <= solution.certificate.primal <= optimum + TOL * unit
    assert solution.certificate.feasibility <= 1e-12


@cache
def optimum_of(name, epsilon, p, fit_intercept, seed):
    """A problem, and a function that returns its optimum, found once for all solvers."""
    loss = LOSSES[name](p).insensitive(epsilon)
    problem = random_problem(loss, p, fit_intercept=fit_intercept, seed=seed)

    @cache
    def optimum():
        found = Conic(tol=1e-7).solve(problem)
        assert found.status.converged, found.status.message
        return found.certificate.primal

    return problem, optimum


@pytest.mark.parametrize("solver", SOLVERS_UNDER_TEST)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("name", LOSSES)
def test_solvers_agree_with_the_conic_one(solver, name, epsilon):
    solved = 0
    for seed, (p, fit_intercept) in enumerate([(1, True), (1, False), (3, True), (3, False)]):
        problem, optimum = optimum_of(name, epsilon, p, fit_intercept, seed)
        chosen = SOLVERS_UNDER_TEST[solver]
        refusal = chosen.requires(problem)
        if refusal is not None:
            assert refusal.startswith("needs ")
            assert "solver=" in refusal or "block=" in refusal
            continue
        check_solution(problem, chosen.solve(problem), optimum())
        solved += 1
    if solver == "newton":
        assert solved == 4


def test_active_set_gives_the_same_answer():
    problem = random_problem(Pinball(LEVELS[3]).insensitive(1.0), 3, n=80)
    whole = PDCD(tol=1e-9, active_set=False).solve(problem)
    some = PDCD(tol=1e-9).solve(problem)
    np.testing.assert_allclose(some.weights, whole.weights, atol=1e-4)
    assert some.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-8)


class Draws:
    """Random numbers that were recorded, and say what was asked for."""

    def __init__(self):
        self.inner = np.random.default_rng(0)
        self.asked = []

    def integers(self, low, high, size):
        self.asked.append((low, high, size))
        return self.inner.integers(low, high, size)


def test_coordinates_are_drawn_as_printed():
    """Algorithm 1 of 2016 draws a pair of a row and a level, each as likely as any other."""
    problem, random = random_problem(Pinball(LEVELS[3]), 3), Draws()
    sweeps = Sweeps(problem, block=False)
    drawn = np.concatenate([sweeps.draw(random) for _ in range(500)])
    assert random.asked[0] == (0, 120, 120)
    counts = np.bincount(drawn, minlength=120)
    expected = len(drawn) / 120
    assert ((counts - expected) ** 2 / expected).sum() < 120 + 5 * np.sqrt(240)  # chi squared
    repeated = np.mean([len(set(sweeps.draw(random))) for _ in range(200)]) / 120
    assert repeated == pytest.approx(1 - np.exp(-1), abs=0.02)  # independent: 1/e are left out
    rows = np.array([3, 7])
    assert set(sweeps.draw(random, rows) // 3) <= {3, 7}


def test_inner_gap_of_the_augmented_lagrangian():
    """It is that of a problem with another output that is penalized, by an independent solver."""
    problem, mu = random_problem(Pinball(LEVELS[3]), 3, seed=2), 0.7
    mu_features = np.zeros((problem.n_rows, 3, 12 * 3 + 3))
    plain = np.einsum("ik,jl->ijkl", problem.design.features, problem.design.coupling)
    mu_features[:, :, :-3] = plain.reshape(problem.n_rows, 3, -1)
    mu_features[:, :, -3:] = np.sqrt(mu) * np.eye(3)
    offset = np.array([0.3, -0.2, 0.1])
    targets = problem.targets - offset
    inner = Problem(
        problem.loss,
        Operator(mu_features),
        targets,
        problem.sample_weight,
        problem.alpha,
        fit_intercept=False,
    )
    dual = problem.loss.conjugate_prox(np.random.default_rng(1).normal(size=targets.shape), 1.0)
    state = State.of(problem, dual, np.zeros(3))
    expected = inner.primal(inner.link(dual), np.zeros(3)) - inner.dual(dual)
    assert inner_gap(problem, state, targets, mu) == pytest.approx(expected, rel=1e-10)
    assert expected > 0.01


def test_pdcd_fixed_point():
    """At the solution a sweep moves nothing: α_i is the prox of its own gradient step."""
    problem = random_problem(Pinball(LEVELS[3]).insensitive(0.3), 3)
    solution = Newton(tol=1e-12).solve(problem)
    prediction = problem.design.values(solution.weights) + solution.offset
    gradient = prediction - problem.targets
    for step in (0.1, 1.0, 10.0):
        again = problem.loss.conjugate_prox(solution.dual - step * gradient, step)
        np.testing.assert_allclose(again, solution.dual, atol=1e-5 * (1 + step))


def test_warm_start_saves_passes():
    problem = random_problem(Pinball(LEVELS[3]), 3)
    for solver in (PDCD(tol=TOL), AugmentedLagrangian(tol=TOL), Fista(tol=TOL)):
        cold = solver.solve(problem)
        warm = solver.solve(problem, WarmStart(cold.dual, cold.offset))
        assert warm.n_iter == 0
        assert warm.status.converged


@pytest.mark.parametrize("solver", [PDCD, AugmentedLagrangian, Fista])
def test_stopping_early_is_honest(solver):
    problem = random_problem(Pinball(LEVELS[3]), 3)
    solution = solver(tol=1e-12, max_iter=1).solve(problem)
    assert not solution.status.converged
    assert "increase max_iter" in solution.status.message
    assert 1e-12 < solution.certificate.relative_gap <= 1.0


def test_callback_stops():
    seen = []
    solution = PDCD(tol=1e-12).solve(
        random_problem(Pinball(LEVELS[3]), 3), callback=lambda p: seen.append(p) or len(seen) == 3
    )
    assert len(seen) == 3 == len(solution.history)


def test_refusals_name_what_is_missing():
    squared = random_problem(Squared(), 1)
    pinball = random_problem(Pinball(0.5), 1)
    assert make_solver("closed_form", squared, TOL, 10).requires(squared) is None
    with pytest.raises(ValueError, match=r"closed_form.*needs the squared loss"):
        make_solver("closed_form", pinball, TOL, 10)
    with pytest.raises(ValueError, match=r"pdcd.*needs the loss pinball"):
        make_solver("pdcd", random_problem(L2Norm(), 3), TOL, 10)
    through_zero = random_problem(Pinball(0.5), 1, fit_intercept=False)
    with pytest.raises(ValueError, match=r"augmented_lagrangian.*needs fit_intercept=True"):
        make_solver("augmented_lagrangian", through_zero, TOL, 10)
    with pytest.raises(ValueError, match="solver must be one of") as error:
        make_solver("no", pinball, TOL, 10)
    assert all(name in str(error.value) for name in SOLVERS)


def test_conic_says_when_its_package_is_missing(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install clarabel"):
        make_solver("conic", random_problem(Pinball(0.5), 1), TOL, 10)


@pytest.mark.parametrize(
    ("solver", "parameters", "error", "sentence"),
    [
        (AugmentedLagrangian, {"inner": 0}, ValueError, "inner must be an integer >= 1 or None"),
        (AugmentedLagrangian, {"mu": -1.0}, ValueError, "mu must be a finite number > 0 or None"),
        (Newton, {"tol": np.nan}, ValueError, "tol must be a finite number > 0, got nan"),
        (Newton, {"tol": "a"}, TypeError, "tol must be a finite number > 0, got 'a'"),
        (Newton, {"max_iter": 0}, ValueError, "max_iter must be an integer >= 1, got 0"),
        (Fista, {"check": 0}, ValueError, "check must be an integer >= 1, got 0"),
        (PDCD, {"random_state": None}, TypeError, "random_state must be an integer >= 0"),
        (PDCD, {"block": "yes"}, TypeError, "block must be True or False, got 'yes'"),
        (ConjugateGradients, {"rank": 0}, ValueError, "rank must be an integer >= 1, got 0"),
        (ProximalNewton, {"inner_iter": 0}, ValueError, "inner_iter must be an integer >= 1"),
        (Splitting, {"small": -1}, ValueError, "small must be an integer >= 0, got -1"),
    ],
)
def test_options_that_are_none(solver, parameters, error, sentence):
    with pytest.raises(error, match=sentence):
        solver(**parameters)
