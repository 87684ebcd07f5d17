"""Independent outputs solved one by one: the same problem, the same certificate."""

from __future__ import annotations

import numpy as np
import pytest

from designs import with_coupling
from fenchel import QuantileRegressor
from fenchel.datasets import make_heavy_tails, make_sine_quantiles
from fenchel.design import Gram, Operator, Plain
from fenchel.kernels import Gaussian
from fenchel.losses import Pinball, Squared, SquaredPinball
from fenchel.problem import Problem
from fenchel.solvers import SMO, Newton, Outputwise, WarmStart, make_solver

LEVELS = [0.9, 0.1, 0.5]


def problem(loss, *, gram=True, columns=1, fit_intercept=True):
    rng = np.random.default_rng(0)
    X, y = make_heavy_tails(80, random_state=0)
    targets = y[:, None] if columns == 1 else y[:, None] * rng.normal(size=columns)
    features = Gaussian(3.0)(X) if gram else X
    design = (Gram if gram else Plain)(features, np.diag([1.0, 0.5, 2.0]))
    weight = rng.uniform(0.5, 2.0, 80)
    return Problem(loss, design, targets, weight, 1e-3, fit_intercept)


def outputwise(tol=1e-8):
    return Outputwise(lambda part: make_solver("auto", part, tol, 1000), tol)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("gram", [True, False])
@pytest.mark.parametrize("loss", [Pinball(LEVELS), SquaredPinball(LEVELS), Squared()])
def test_agrees_with_the_joint_solution(loss, gram, columns, fit_intercept):
    whole = problem(loss, gram=gram, columns=columns, fit_intercept=fit_intercept)
    found, joint = outputwise().solve(whole), Newton(tol=1e-9).solve(whole)
    assert found.status.converged, found.status.message
    assert found.certificate.primal == pytest.approx(joint.certificate.primal, rel=1e-7)
    assert found.certificate.primal == pytest.approx(
        whole.primal(found.weights, found.offset), rel=1e-12
    )
    again = outputwise().solve(whole, WarmStart(found.dual, found.offset))
    assert again.status.converged
    assert again.n_iter <= found.n_iter


def test_tiny_strengths_keep_the_models_of_the_parts():
    """Where rounding separates a model from its dual point, the model is the better one."""
    X, y = make_heavy_tails(150, random_state=0)
    model = QuantileRegressor(LEVELS, alpha=1e-8, level_gamma=np.inf, kernel=Gaussian(3.0))
    whole = model.fit(X, y)
    assert "output by output" in whole.status_.message
    assert whole.status_.converged, whole.status_.message


def test_refusals_name_what_is_missing():
    coupled = with_coupling(problem(Pinball(LEVELS)), np.ones((3, 1)))
    assert "diagonal coupling; solver='newton'" in outputwise().requires(coupled)
    design = Operator(np.ones((5, 3, 2)))
    operator = Problem(Pinball(LEVELS), design, np.ones((5, 1)), np.ones(5), 1.0, True)
    for solver in (outputwise(), SMO()):
        assert "needs a scalar kernel" in solver.requires(operator)
    assert isinstance(make_solver("auto", operator, 1e-6, 10), Newton)
    insensitive = problem(Pinball(LEVELS).insensitive(0.1))
    assert "sum over outputs; solver='newton'" in outputwise().requires(insensitive)


@pytest.mark.slow
def test_auto_chooses_it_for_many_independent_levels():
    many = np.linspace(0.01, 0.99, 99)
    X, y, _ = make_sine_quantiles(60, random_state=0)
    model = QuantileRegressor(many, level_gamma=np.inf, alpha=1e-4, learn=False).fit(X, y)
    assert model.status_.converged
    assert "output by output" in model.status_.message
    single = QuantileRegressor(many[10], alpha=1e-4, learn=False).fit(X, y)
    gap = (model.certificate_.gap + single.certificate_.gap) / 1e-4
    difference = model.predict(X)[:, 10] - single.predict(X)
    # strong convexity: half the squared norm of the difference is within the gaps
    assert np.abs(difference).max() <= 2.0 * np.sqrt(2.0 * gap) + 1e-6


def test_failures_are_reported():
    solver = Outputwise(lambda part: Newton(tol=1e-14, max_iter=1), 1e-14)
    solution = solver.solve(problem(Pinball(LEVELS)))
    assert not solution.status.converged
    assert "max_iter" in solution.status.message
