"""Fits with a constraint on residuals start from the fit without it."""

import numpy as np
import pytest

from fenchel import QuantileRegressor
from fenchel.certificate import Callback
from fenchel.datasets import make_heavy_tails, make_sine_quantiles
from fenchel.kernels import Gaussian
from fenchel.solvers import Conic, Newton, Outputwise, Relaxed, WarmStart, make_solver, newton
from fenchel.testing import small_problems

LEVELS = [0.9, 0.1, 0.5]
MAKERS = {"features": make_sine_quantiles, "kernel rows": make_heavy_tails}


def model(**more):
    options = {"kernel": Gaussian(0.5), "alpha": 1e-4, "learn": False, "non_crossing": "train"}
    return QuantileRegressor(LEVELS, **(options | more))


def problem_of(fit, X, y, **fit_options):
    fit.check_parameters()
    return fit.make_problem(fit.prepare(X, y, **fit_options))


def automatic(problem, tol=1e-6):
    return make_solver("auto", problem, tol, 1000)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("level_gamma", [1.0, np.inf])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_solution_is_that_of_a_conic_program_in_fewer_steps(name, level_gamma, fit_intercept):
    X, y = MAKERS[name](120, random_state=0)[:2]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 120)
    fit = model(level_gamma=level_gamma, fit_intercept=fit_intercept)
    problem = problem_of(fit, X, y, sample_weight=weight)
    solver = automatic(problem)
    assert isinstance(solver, Relaxed)
    found, alone = solver.solve(problem), Newton().solve(problem)
    assert found.status.converged
    assert found.n_iter < alone.n_iter
    factored = problem_of(fit.set_params(features="cholesky"), X, y, sample_weight=weight)
    exact = Conic(tol=1e-8).solve(factored).certificate
    assert found.certificate.dual <= exact.primal
    assert exact.dual <= found.certificate.primal <= exact.dual + 2e-6 * problem.baseline


def test_the_fit_without_the_constraint_is_of_the_cheapest_solver():
    X, y = make_heavy_tails(100, random_state=0)[:2]
    problem = problem_of(model(level_gamma=np.inf), X, y)
    seen = []
    inner = automatic(problem).choose

    def choose(part):
        seen.append((inner(part), part.loss.cone))
        return seen[-1][0]

    Relaxed(choose).solve(problem)
    ((chosen, cone),) = seen
    assert isinstance(chosen, Outputwise)
    assert cone is None


def never(problem):
    raise AssertionError("the problem without the constraint was to be solved")


def test_a_given_start_and_many_rows_need_no_other(monkeypatch):
    X, y = make_sine_quantiles(60, random_state=0)[:2]
    problem = problem_of(model(), X, y)
    solver = Relaxed(never)
    with pytest.raises(AssertionError):
        solver.solve(problem)
    start = WarmStart(np.zeros((60, 3)), problem.best_constant)
    assert solver.solve(problem, start).status.converged
    monkeypatch.setattr(newton, "_COARSE_ROWS", 60)
    assert solver.solve(problem).status.converged


def test_other_losses_are_refused():
    problem = small_problems()[1]
    assert not isinstance(automatic(problem), Relaxed)
    assert "needs a loss with a cone" in Relaxed(never).requires(problem)
    X, y = make_sine_quantiles(30, random_state=0)[:2]
    with pytest.raises(ValueError, match="needs a loss with a cone"):
        model(non_crossing=None, solver=Relaxed(never)).fit(X, y)


class Stopped(Callback):
    """Asks to stop at once, and counts how often it was told something."""

    told = 0

    def __call__(self, progress):
        self.told += 1
        return True


def test_callbacks_hear_of_the_named_problem_only():
    X, y = make_sine_quantiles(80, random_state=0)[:2]
    problem = problem_of(model(), X, y)
    heard = Stopped()
    found = automatic(problem, 1e-9).solve(problem, None, heard)
    assert heard.told == 1
    assert not found.status.converged
    exact = Newton(1e-9).solve(problem).certificate
    assert found.certificate.dual <= exact.primal
    assert exact.dual <= found.certificate.primal < problem.baseline


def test_time_limits_hold_for_both_parts():
    X, y = make_heavy_tails(400, random_state=0)[:2]
    fit = model(max_time=1e-3, tol=1e-9)
    with pytest.warns(UserWarning, match="max_time"):
        fit.fit(X, y)
    assert np.isfinite(fit.certificate_.primal)
    assert fit.certificate_.primal >= fit.certificate_.dual


def test_a_model_of_few_rows_stays_where_there_is_time_for_no_other():
    X, y = make_sine_quantiles(10_000, random_state=0)[:2]
    fit = model(max_time=1e-3)
    with pytest.warns(UserWarning, match="max_time"):
        fit.fit(X, y)
    problem = problem_of(fit, X, y)
    assert fit.certificate_.primal < 0.7 * problem.baseline
