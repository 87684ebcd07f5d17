"""Greedy dual ascent: the ascent by itself, and the solver that Newton finishes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVR as ScikitSVR

from designs import with_coupling
from fenchel import SVR, QuantileRegressor
from fenchel.datasets import make_heavy_tails
from fenchel.design import Gram, Plain
from fenchel.kernels import Gaussian
from fenchel.losses import Absolute, Huber, L2Norm, Pinball, Squared, SquaredPinball
from fenchel.problem import Problem
from fenchel.solvers import SMO, Conic, Newton, Outputwise, WarmStart, _greedy, make_solver
from fenchel.solvers.loop import Loop
from fenchel.solvers.smo import ascend
from fenchel.testing import check_solver

LOSSES = {
    "absolute": Absolute(),
    "pinball": Pinball([0.2]),
    "insensitive": Absolute().insensitive(0.2),
    "insensitive pinball": Pinball([0.8]).insensitive(0.1),
    "squared": Squared(),
    "squared pinball": SquaredPinball([0.9]),
    "insensitive squared pinball": SquaredPinball([0.2]).insensitive(0.1),
    "huber": Huber(0.5),
}


def gram_problem(loss, *, n=120, c=3.0, fit_intercept=True, seed=0, scale=1.0, size=1.0):
    rng = np.random.default_rng(seed)
    X, y = make_heavy_tails(n, random_state=seed)
    gram = size * Gaussian(3.0)(X)
    weight = rng.integers(1, 4, n) / 2.0
    coupling = np.array([[0.7, 0.4]])
    alpha = 1.0 / (c * weight.sum())
    design = Gram(gram, coupling)
    return Problem(loss, design, scale * y[:, None], weight, alpha, fit_intercept)


def with_features(problem: Problem) -> Problem:
    values, vectors = np.linalg.eigh(problem.design.gram)
    kept = values > 1e-13 * values[-1]
    features = vectors[:, kept] * np.sqrt(values[kept])
    return replace(problem, design=Plain(features, problem.design.coupling))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("c", [0.1, 30.0])
@pytest.mark.parametrize("name", LOSSES)
def test_agrees_with_the_conic_solver(name, c, fit_intercept):
    problem = gram_problem(LOSSES[name], c=c, fit_intercept=fit_intercept)
    solution = SMO(tol=1e-7).solve(problem)
    optimum = Conic(tol=1e-8).solve(with_features(problem))
    unit = problem.baseline
    assert solution.status.converged, solution.status.message
    assert solution.certificate.dual <= optimum.certificate.primal + 1e-9 * unit
    assert solution.certificate.primal <= optimum.certificate.primal + 1e-7 * unit


COUPLED = {
    "pinball": Pinball([0.1, 0.5, 0.9]),
    "squared pinball": SquaredPinball([0.9, 0.2, 0.5]),
    "huber": Huber(0.5),
}


def coupled_problem(loss, **options):
    """Three outputs that are nearly one function."""
    coupling = np.array([[1.0, 0.0, 0.0], [0.8, 0.5, 0.0], [0.6, 0.6, 0.1]])
    problem = gram_problem(loss, **options)
    targets = problem.targets * [1.0, 0.8, 1.1] + [0.0, 1.0, 3.0]
    return replace(with_coupling(problem, coupling), targets=targets)


def violation(problem, dual, offset):
    """How far the residuals are from the subgradients of the conjugate, at worst."""
    gram, push = problem.design.gram, problem.weight[:, None] * dual
    prediction = gram @ push @ problem.design.coupling @ problem.design.coupling.T
    residual = problem.targets - prediction - offset
    lower, upper, below, above = problem.loss.parameters(problem.n_outputs)
    beta, eps = dual, problem.loss.epsilon
    at_lower, at_upper = beta <= lower * (1 - 1e-9), beta >= upper * (1 - 1e-9)
    smooth = np.where(beta > 0, above, below) * beta
    least = np.where(at_lower, -np.inf, smooth + np.where(beta > 0, eps, -eps))
    most = np.where(at_upper, np.inf, smooth + np.where(beta >= 0, eps, -eps))
    return float(np.maximum(least - residual, residual - most).max())


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_ascent_meets_the_optimality_conditions(name, fit_intercept):
    """Judged by subgradients in double precision; 1200 rows, so that there are rounds."""
    problem = gram_problem(LOSSES[name], n=1200, c=10.0, fit_intercept=fit_intercept)
    spread = float(np.std(problem.targets))
    for slope in (1e-1, 1e-2):
        start = ascend(problem, None, slope, Loop(1.0))
        assert violation(problem, start.dual, start.offset) <= 1.2 * slope * spread
    if fit_intercept:
        assert abs(problem.weight @ start.dual) <= 1e-6 * (problem.weight @ np.abs(start.dual))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("c", [0.1, 30.0])
@pytest.mark.parametrize("name", COUPLED)
def test_coupled_outputs_agree_with_the_conic_solver(name, c, fit_intercept):
    problem = coupled_problem(COUPLED[name], c=c, n=60, fit_intercept=fit_intercept)
    solution = SMO(tol=1e-7).solve(problem)
    optimum = Conic(tol=1e-8).solve(with_features(problem))
    unit = problem.baseline
    assert solution.status.converged, solution.status.message
    assert solution.certificate.dual <= optimum.certificate.primal + 1e-9 * unit
    assert solution.certificate.primal <= optimum.certificate.primal + 1e-7 * unit
    of_features = SMO(tol=1e-7).solve(with_features(problem))
    assert of_features.status.converged, of_features.status.message
    assert of_features.certificate.primal <= optimum.certificate.primal + 1e-7 * unit


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", COUPLED)
def test_ascent_of_coupled_outputs_meets_the_optimality_conditions(name, fit_intercept):
    """In rounds on some of the rows; the sum of every output is kept."""
    problem = coupled_problem(COUPLED[name], n=700, c=10.0, fit_intercept=fit_intercept)
    squares = ((problem.targets - problem.best_constant) ** 2).mean(axis=1)
    spread = float(np.sqrt(np.average(squares, weights=problem.weight)))
    for slope in (1e-1, 1e-2):
        start = ascend(problem, None, slope, Loop(1.0))
        assert violation(problem, start.dual, start.offset) <= 1.2 * slope * spread
    if fit_intercept:
        assert np.abs(problem.weight @ start.dual).max() <= 1e-12 * problem.weight.sum()


@pytest.mark.parametrize("loop", [_greedy.ascend_in_pairs, _greedy.ascend_alone])
def test_values_of_rows_stand_for_those_of_all_coordinates(loop):
    """Values of rows and of pairs of outputs, against the Kronecker product of both."""
    n, coupling = 30, np.array([[1.0, 0.6, 0.3], [0.6, 0.9, 0.5], [0.3, 0.5, 0.8]], np.float32)
    X, y = make_heavy_tails(n, random_state=1)
    gram = Gaussian(3.0)(X).astype(np.float32)
    box = np.repeat([[-0.4], [0.6], [0.0], [0.1]], 3 * n, axis=1)
    found = []
    for values, factors in (
        (gram, coupling),
        (np.kron(coupling, gram), np.ones((3, 3), np.float32)),
    ):
        dual, pull = np.zeros(3 * n), -np.concatenate([y, 0.5 * y, y + 1.0]).astype(np.float32)
        ends = n * np.arange(1, 4)
        steps = loop(values, factors, dual, pull, box, ends, 0.0, 1e-3, 10_000)
        found.append((steps, dual, pull))
    assert 10 < found[0][0] == found[1][0] < 10_000
    for one, other in zip(*(each[1:] for each in found), strict=True):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-4)
    bent = 0.1 * np.maximum(dual, 0.0)
    slopes = np.kron(coupling, gram) @ dual + bent - np.concatenate([y, 0.5 * y, y + 1.0])
    np.testing.assert_allclose(found[0][2], slopes, rtol=0.0, atol=1e-4)


def test_slow_steps_of_coupled_outputs_are_left_to_newton():
    """Where few coordinates are inside its systems cost less; of one output the ascent goes on."""
    problem = coupled_problem(Pinball([0.1, 0.5, 0.9]), n=300, c=30.0)
    one = gram_problem(Pinball([0.1]), n=300, c=30.0)
    for each, enough in ((problem, False), (one, True)):
        squares = ((each.targets - each.best_constant) ** 2).mean(axis=1)
        spread = float(np.sqrt(np.average(squares, weights=each.weight)))
        start = ascend(each, None, 1e-5, Loop(1.0))
        assert (violation(each, start.dual, start.offset) <= 1.2e-5 * spread) == enough
        assert SMO(tol=1e-7).solve(each).status.converged


@pytest.mark.slow
def test_many_levels_and_parallel_ones():
    levels = np.linspace(0.05, 0.95, 19)
    for gamma in (0.0, 1.0):
        values, vectors = np.linalg.eigh(np.exp(-gamma * np.subtract.outer(levels, levels) ** 2))
        coupling = vectors * np.sqrt(np.maximum(values, 0.0))
        problem = with_coupling(gram_problem(Pinball(levels), n=80), coupling)
        found, expected = SMO().solve(problem), Newton(1e-8).solve(problem)
        assert found.status.converged, found.status.message
        apart = found.certificate.primal - expected.certificate.primal
        assert abs(apart) <= 1.1e-6 * problem.baseline


def test_ascent_from_a_warm_start_keeps_what_is_there():
    problem = gram_problem(LOSSES["insensitive"], n=300)
    spread = float(np.std(problem.targets))
    solution = Newton(tol=1e-9).solve(problem)
    again = ascend(problem, WarmStart(solution.dual, solution.offset), 1e-3, Loop(1.0))
    np.testing.assert_allclose(again.dual, solution.dual, atol=1e-6)
    assert violation(problem, again.dual, again.offset) <= 1.2e-3 * spread


def test_objective_is_not_above_that_of_libsvm():
    X, y = make_heavy_tails(400, random_state=1)
    c, n = 10.0, len(y)
    peer = ScikitSVR(C=c, gamma=1 / 18.0, epsilon=0.1, tol=1e-6).fit(X, y)
    options = {"epsilon": 0.1, "kernel": Gaussian(3.0), "solver": "smo", "tol": 1e-9}
    model = SVR(alpha=1 / (c * n), **options).fit(X, y)
    gram = Gaussian(3.0)(X)
    dual = np.zeros(n)
    dual[peer.support_] = peer.dual_coef_[0]
    residual = y - gram @ dual - peer.intercept_
    objective = 0.5 * dual @ gram @ dual + c * np.maximum(np.abs(residual) - 0.1, 0).sum()
    objective /= c * n
    assert model.certificate_.primal <= objective * (1 + 1e-9)
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-5)


def test_zeros_are_exact():
    X, y = make_heavy_tails(400, random_state=1)
    model = SVR(alpha=1e-3, epsilon=1.0, kernel=Gaussian(3.0), solver="smo").fit(X, y)
    reference = SVR(alpha=1e-3, epsilon=1.0, kernel=Gaussian(3.0), solver="newton").fit(X, y)
    assert 0 < len(model.support_) < 350
    assert abs(len(model.support_) - len(reference.support_)) <= 5


@pytest.mark.parametrize(("scale", "size"), [(1e6, 1.0), (1e-6, 1.0), (1.0, 1e5), (1.0, 1e-5)])
def test_units_do_not_matter(scale, size):
    """The problem with k times ``size`` and y times ``scale``, α adapted, has the same dual."""
    base = ascend(gram_problem(Pinball([0.3])), None, 1e-2, Loop(1.0))
    other = gram_problem(Pinball([0.3]), c=3.0 * scale / size, scale=scale, size=size)
    scaled = ascend(other, None, 1e-2, Loop(1.0))
    assert np.mean(np.abs(scaled.dual - base.dual)) <= 2e-2
    assert SMO().solve(other).status.converged


def test_constant_targets_and_single_rows():
    for n in (1, 2, 3):
        problem = gram_problem(Pinball([0.3]), n=n)
        assert SMO().solve(problem).status.converged
        constant = replace(problem, targets=np.full((n, 1), 3.0))
        solution = SMO().solve(constant)
        assert solution.status.converged
        assert solution.offset[0] == pytest.approx(3.0)


def test_hard_problems_are_finished_by_newton():
    """Nearly interpolating: pairs get nowhere, and the work that they may do is limited."""
    problem = gram_problem(Absolute(), n=200, c=1e6)
    solution = SMO().solve(problem)
    assert solution.status.converged
    assert solution.certificate.primal == pytest.approx(
        Newton().solve(problem).certificate.primal, abs=2e-6 * problem.baseline
    )


def test_contract():
    problems = [gram_problem(loss, n=40, seed=k) for k, loss in enumerate(LOSSES.values())]
    problems += [
        gram_problem(loss, n=40, seed=k, fit_intercept=False)
        for k, loss in enumerate(LOSSES.values())
    ]
    problems += [coupled_problem(loss, n=40) for loss in COUPLED.values()]
    check_solver(SMO(), problems)


def test_refusals_name_what_is_missing():
    problem = gram_problem(Absolute())
    two = replace(with_coupling(problem, np.eye(2)), loss=Absolute().insensitive(0.2))
    with pytest.raises(ValueError, match=r"smo.*needs epsilon=0 where .*, got 0.2; solver"):
        make_solver("smo", two, 1e-6, 10)
    with pytest.raises(ValueError, match=r"smo.*needs the loss of quantiles"):
        make_solver("smo", replace(problem, loss=L2Norm()), 1e-6, 10)
    design = Plain(np.ones((50, 2)), np.eye(1))
    thin = Problem(Absolute(), design, np.ones((50, 1)), np.ones(50), 1.0, True)
    with pytest.raises(ValueError, match=r"smo.*needs kernel values"):
        make_solver("smo", thin, 1e-6, 10)


def test_auto_takes_it_on_kernel_rows_only():
    problem = gram_problem(Absolute())
    assert isinstance(make_solver("auto", problem, 1e-6, 10), SMO)
    assert isinstance(make_solver("auto", with_features(problem), 1e-6, 10), Newton)
    two = replace(with_coupling(problem, np.eye(2)), loss=Pinball([0.1, 0.9]))
    assert isinstance(make_solver("auto", two, 1e-6, 10), Outputwise)
    coupled = coupled_problem(Pinball([0.1, 0.5, 0.9]))
    assert isinstance(make_solver("auto", coupled, 1e-6, 10), SMO)
    assert isinstance(make_solver("auto", with_features(coupled), 1e-6, 10), Newton)


def test_estimator_certificate_is_that_of_its_model():
    X, y = make_heavy_tails(300, random_state=2)
    model = QuantileRegressor(0.1, alpha=1e-3, kernel=Gaussian(3.0), solver="smo").fit(X, y)
    residual = y - model.predict(X)
    pinball = np.maximum(0.1 * residual, -0.9 * residual).mean()
    gram = Gaussian(3.0)(X)
    dual = np.zeros(len(y))
    dual[model.support_] = model.dual_coef_[:, 0]
    assert model.certificate_.primal == pytest.approx(
        pinball + 0.5e-3 * dual @ gram @ dual, rel=1e-9
    )
