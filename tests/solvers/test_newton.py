"""The Newton solver on its own: stopping, starting, memory, and what must not change it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from designs import as_gram, fresh, with_coupling, with_features
from fenchel import QuantileRegressor
from fenchel.design import Gram, Plain
from fenchel.kernels import Computed, Gaussian, Laplacian
from fenchel.losses import Absolute, Huber, L2Norm, NonCrossing, Pinball, Squared, SquaredPinball
from fenchel.problem import Problem
from fenchel.solvers import Fista, Newton, WarmStart
from fenchel.solvers.newton_spaces import FeatureSpace, KernelSpace, choose_space

TOL = 1e-7
LEVELS = [0.2, 0.5, 0.9]
LOSSES = {
    "pinball": Pinball(LEVELS),
    "insensitive pinball": Pinball(LEVELS).insensitive(0.5),
    "insensitive squared": Squared().insensitive(0.5),
    "squared pinball": SquaredPinball(LEVELS),
    "huber": Huber(0.3),
    "length": L2Norm(),
}


def random_problem(loss, *, n=60, rank=8, p=3, seed=0, alpha=1e-2, fit_intercept=True, **change):
    rng = np.random.default_rng(seed)
    features, targets = rng.normal(size=(n, rank)) / np.sqrt(rank), rng.normal(size=(n, p))
    problem = Problem(
        loss=loss,
        design=Plain(features, rng.normal(size=(p, 2)) if p > 1 else np.eye(1)),
        targets=targets,
        sample_weight=rng.uniform(0.3, 2.0, n),
        alpha=alpha,
        fit_intercept=fit_intercept,
    )
    return replace(problem, **change)


def predictions(problem, solution):
    return problem.design.values(solution.weights) + solution.offset


def assert_same_model(first, second, problem, tol=TOL):
    """Two solutions within tol of one optimum are close, by strong convexity in the weights."""
    # P(V) >= P* + alpha ½‖V - V*‖², so that ‖V - V'‖ <= 2 sqrt(2 gap / alpha)
    distance = np.sqrt(problem.design.squared_norm(first.weights - second.weights))
    assert distance <= 2.0 * np.sqrt(2.0 * tol * problem.baseline / problem.alpha)
    unit = problem.baseline
    assert abs(first.certificate.primal - second.certificate.primal) <= tol * unit


@pytest.mark.parametrize("name", LOSSES)
def test_warm_start_from_the_solution_costs_nothing(name):
    problem = random_problem(LOSSES[name])
    cold = Newton(TOL).solve(problem)
    warm = Newton(TOL).solve(problem, WarmStart(cold.dual, cold.offset, problem.alpha))
    assert cold.n_iter > 0
    assert warm.n_iter == 0
    assert warm.status.converged
    assert_same_model(cold, warm, problem)


@pytest.mark.parametrize("name", LOSSES)
def test_warm_start_from_another_strength_agrees(name):
    problem = random_problem(LOSSES[name])
    before = replace(problem, alpha=3.0 * problem.alpha)
    start = Newton(TOL).solve(before)
    warm = Newton(TOL).solve(problem, WarmStart(start.dual, start.offset, before.alpha))
    cold = Newton(TOL).solve(problem)
    assert warm.status.converged
    assert_same_model(cold, warm, problem)
    without_alpha = Newton(TOL).solve(problem, WarmStart(start.dual, start.offset))
    assert_same_model(cold, without_alpha, problem)


def test_warm_start_may_be_infeasible():
    problem = random_problem(LOSSES["insensitive pinball"])
    rng = np.random.default_rng(1)
    wild = WarmStart(rng.normal(scale=50.0, size=(60, 3)), np.array([1e3, -1e3, 0.0]))
    warm = Newton(TOL).solve(problem, wild)
    assert warm.status.converged
    assert_same_model(Newton(TOL).solve(problem), warm, problem)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [Newton(TOL), Fista(TOL)], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("loss", [Pinball(0.3), SquaredPinball(0.3)], ids=repr)
def test_a_start_from_other_targets_costs_no_more_than_none(solver, loss):
    """Offsets and dual points that are larger by orders are worse than the best constant."""
    problem = random_problem(loss)
    cold = solver.solve(problem)
    for other in (1e4 * problem.targets, problem.targets + 1e6):
        before = Newton(TOL).solve(replace(problem, targets=other))
        warm = solver.solve(problem, WarmStart(before.dual, before.offset, problem.alpha))
        assert warm.status.converged
        assert warm.n_iter <= cold.n_iter


def test_callback_sees_history_stops_and_leaves_a_usable_fit():
    problem = random_problem(LOSSES["pinball"])
    seen = []

    def stop(progress):
        seen.append(progress)
        return len(seen) == 3

    solution = Newton(1e-12).solve(problem, callback=stop)
    assert solution.history == seen
    assert len(seen) == 3
    assert not solution.status.converged
    assert "callback" in solution.status.message
    certificate = solution.certificate
    assert 1e-12 < certificate.relative_gap < 1.0
    assert np.isfinite(predictions(problem, solution)).all()
    # still a proof
    assert problem.primal(solution.weights, solution.offset) == pytest.approx(certificate.primal)
    optimum = Newton(1e-10).solve(problem).certificate
    assert certificate.dual <= optimum.primal
    assert certificate.primal >= optimum.dual


def test_callback_without_an_answer_goes_on():
    problem = random_problem(LOSSES["pinball"])
    seen = []
    solution = Newton(TOL).solve(problem, callback=seen.append)
    assert solution.status.converged
    assert len(seen) == len(solution.history) > 1


@pytest.mark.parametrize("name", LOSSES)
def test_history_of_gaps_falls(name):
    solution = Newton(TOL).solve(random_problem(LOSSES[name]))
    gaps = [progress.relative_gap for progress in solution.history]
    assert len(gaps) > 1
    assert all(after <= before for before, after in itertools.pairwise(gaps))
    assert gaps[-1] <= TOL < gaps[0]
    for name_of_count in ("iteration", "seconds"):
        counts = [getattr(progress, name_of_count) for progress in solution.history]
        assert counts == sorted(counts)
    assert solution.history[-1].iteration <= solution.n_iter
    for progress in solution.history:
        assert progress.primal >= progress.dual


@pytest.mark.parametrize("name", LOSSES)
def test_too_few_steps_are_admitted(name):
    problem = random_problem(LOSSES[name])
    solution = Newton(1e-12, max_iter=1).solve(problem)
    assert solution.n_iter == 1
    assert not solution.status.converged
    message = solution.status.message
    assert "max_iter=1 was reached" in message
    assert "> tol=1e-12" in message
    assert "increase max_iter" in message
    certificate = solution.certificate
    assert f"{certificate.relative_gap:.1e}" in message
    assert certificate.relative_gap > 1e-12
    assert problem.primal(solution.weights, solution.offset) == pytest.approx(certificate.primal)
    optimum = Newton(1e-10).solve(problem).certificate
    assert certificate.dual <= optimum.primal
    assert certificate.primal >= optimum.dual


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_both_spaces_of_linear_algebra_agree(name, fit_intercept):
    """One kernel, written with 8 features, with as many as rows, and as its Gram matrix."""
    few = random_problem(LOSSES[name], fit_intercept=fit_intercept)
    n = len(few.design.features)
    rotation, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(n, n)))
    many = with_features(few, few.design.features @ rotation[:8])
    gram = as_gram(few)
    assert isinstance(choose_space(few), FeatureSpace)
    if few.design.coupling.shape[1] == few.n_outputs:
        assert isinstance(choose_space(many), KernelSpace)
    assert isinstance(choose_space(gram), KernelSpace)
    # a full square coupling makes the second one work on kernel coefficients
    square = np.eye(3) + 0.3
    few, many, gram = (with_coupling(each, square) for each in (few, many, gram))
    assert isinstance(choose_space(many), KernelSpace)
    solutions = [Newton(TOL).solve(each) for each in (few, many, gram)]
    reference = predictions(few, solutions[0])
    slack = 2.0 * np.sqrt(2.0 * TOL * few.baseline / few.alpha)
    largest = np.sqrt(np.einsum("ij,ij->i", few.design.features, few.design.features).max())
    for problem, solution in zip((few, many, gram), solutions, strict=True):
        assert solution.status.converged
        assert solution.certificate.primal == pytest.approx(
            solutions[0].certificate.primal, abs=TOL * few.baseline
        )
        function = predictions(problem, solution) - solution.offset
        expected = reference - solutions[0].offset
        bound = slack * largest * np.linalg.norm(square, 2)
        np.testing.assert_allclose(function, expected, atol=bound)


@pytest.mark.parametrize("rank", [8, 60])
@pytest.mark.parametrize("name", LOSSES)
def test_blocks_of_rows_change_nothing(name, rank):
    whole = random_problem(LOSSES[name], rank=rank)
    blocks = fresh(whole)
    blocks.design.blocks.block_rows = 7
    assert len(list(blocks.design.blocks)) == 9
    assert len(list(whole.design.blocks)) == 1
    first, second = Newton(TOL).solve(whole), Newton(TOL).solve(blocks)
    assert second.status.converged
    assert_same_model(first, second, whole)


def test_memory_mapped_features(tmp_path):
    problem = random_problem(LOSSES["insensitive pinball"])
    features = np.lib.format.open_memmap(
        tmp_path / "features.npy", mode="w+", dtype=np.float64, shape=problem.design.features.shape
    )
    features[:] = problem.design.features
    features.flush()
    read_only = np.load(tmp_path / "features.npy", mmap_mode="r")
    mapped = with_features(problem, read_only)
    mapped.design.blocks.block_rows = 16
    solution = Newton(TOL).solve(mapped)
    assert solution.status.converged
    assert_same_model(Newton(TOL).solve(problem), solution, problem)


@pytest.mark.parametrize("name", LOSSES)
def test_deterministic_to_the_last_bit(name):
    first = Newton(TOL).solve(random_problem(LOSSES[name]))
    second = Newton(TOL).solve(random_problem(LOSSES[name]))
    np.testing.assert_array_equal(first.dual, second.dual)
    np.testing.assert_array_equal(first.weights, second.weights)
    np.testing.assert_array_equal(first.offset, second.offset)
    assert first.n_iter == second.n_iter


@pytest.mark.slow
def test_leaves_its_input_alone():
    problem = random_problem(LOSSES["insensitive pinball"])
    start = WarmStart(np.full((60, 3), 0.7), np.zeros(3))
    arrays = (
        problem.design.features,
        problem.targets,
        problem.design.coupling,
        problem.sample_weight,
        *start[:2],
    )
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.setflags(write=False)
    Newton(TOL).solve(problem, start)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("name", LOSSES)
def test_weights_are_repetition(name):
    count = np.random.default_rng(3).integers(1, 4, 60).astype(float)
    weighted = random_problem(LOSSES[name], sample_weight=count)
    rows = np.repeat(np.arange(60), count.astype(int))
    repeated = replace(weighted.subset(rows), sample_weight=np.ones(len(rows)))
    assert repeated.baseline == pytest.approx(weighted.baseline, rel=1e-12)
    first, second = Newton(TOL).solve(weighted), Newton(TOL).solve(repeated)
    assert_same_model(first, second, weighted)
    # and the one's model is as good in the other problem
    assert repeated.primal(first.weights, first.offset) == pytest.approx(
        weighted.primal(first.weights, first.offset), rel=1e-12
    )


@pytest.mark.parametrize("name", LOSSES)
def test_zero_weight_is_removal(name):
    whole = random_problem(LOSSES[name])
    weight = whole.sample_weight.copy()
    gone = np.arange(60) % 3 == 0
    weight[gone] = 0.0
    targets = whole.targets.copy()
    targets[gone] *= 1e3  # would matter
    with_zeros = replace(whole, sample_weight=weight, targets=targets)
    removed = whole.subset(np.flatnonzero(~gone))
    first, second = Newton(TOL).solve(with_zeros), Newton(TOL).solve(removed)
    assert first.status.converged
    assert_same_model(first, second, removed)


def test_scale_of_the_weights_does_not_matter():
    problem = random_problem(LOSSES["pinball"])
    scaled = replace(problem, sample_weight=1e5 * problem.sample_weight)
    assert_same_model(Newton(TOL).solve(problem), Newton(TOL).solve(scaled), problem)


def test_one_column_of_targets_serves_every_output():
    problem = random_problem(LOSSES["pinball"])
    column = problem.targets[:, :1].copy()
    narrow = replace(problem, targets=column)
    wide = replace(problem, targets=np.repeat(column, 3, axis=1))
    assert_same_model(Newton(TOL).solve(narrow), Newton(TOL).solve(wide), wide)


@pytest.mark.parametrize("alpha", [1e-12, 1e12])
@pytest.mark.parametrize("name", LOSSES)
def test_extreme_strengths(name, alpha):
    """Huge alpha: the best constant. Tiny alpha: an honest certificate either way."""
    problem = random_problem(LOSSES[name], alpha=alpha)
    solution = Newton(TOL).solve(problem)
    certificate = solution.certificate
    assert np.isfinite(predictions(problem, solution)).all()
    assert certificate.gap >= -1e-9 * problem.baseline
    if alpha > 1:
        assert solution.status.converged
        assert certificate.primal == pytest.approx(problem.baseline, rel=2 * TOL)
    else:
        assert solution.status.converged == (certificate.relative_gap <= TOL)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_of_y(unit):
    """Absolute losses grow like y, penalties like y²: alpha / unit gives the same fit."""
    problem = random_problem(Absolute(), p=1)
    scaled = replace(problem, targets=unit * problem.targets, alpha=problem.alpha / unit)
    first, second = Newton(TOL).solve(problem), Newton(TOL).solve(scaled)
    assert second.status.converged
    slack = 2.0 * np.sqrt(2.0 * TOL * problem.baseline)
    assert np.linalg.norm(second.weights / unit - first.weights) <= slack


def test_constant_targets_need_no_steps():
    problem = random_problem(LOSSES["pinball"], targets=np.full((60, 3), 0.1))
    solution = Newton(TOL).solve(problem)
    assert solution.status.converged
    assert solution.certificate.relative_gap == 0.0
    np.testing.assert_allclose(predictions(problem, solution), 0.1, rtol=1e-12)


def test_one_row():
    problem = random_problem(LOSSES["pinball"], n=1)
    solution = Newton(TOL).solve(problem)
    assert solution.status.converged
    np.testing.assert_allclose(predictions(problem, solution), problem.targets, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("levels", "most"), [(9, 60), (99, 120), (299, 200)])
@pytest.mark.parametrize("columns", [1, 3])
def test_many_nearly_equal_levels_take_few_steps(levels, most, columns):
    """Up to twice the steps that they took; with the first step of one level, 1000 and more."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, columns))
    y = np.sin(2.0 * X[:, 0]) + 0.5 * rng.standard_normal(60)
    many = np.arange(1, levels + 1) / (levels + 1)
    model = QuantileRegressor(many, alpha=1e-3, learn=False).fit(X, y)
    assert model.status_.converged
    assert model.n_iter_ <= most


@pytest.mark.parametrize("n", [5, 40])
def test_many_levels_are_those_of_the_conic_solver(n):
    """With Hessians that are summed over rows and over outputs."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((n, 2)), rng.standard_normal(n)
    levels = np.arange(1, 13) / 13
    models = [
        QuantileRegressor(levels, alpha=1e-2, kernel="linear", tol=1e-9, solver=solver).fit(X, y)
        for solver in ("newton", "conic")
    ]
    np.testing.assert_allclose(models[0].predict(X), models[1].predict(X), atol=1e-3)
    first, second = (model.certificate_.primal for model in models)
    assert first == pytest.approx(second, rel=1e-7)


@pytest.mark.parametrize(("alpha", "most"), [(1e-6, 40), (1e-8, 70)])
def test_weak_penalties_take_few_steps(alpha, most):
    """Nearly all rows end on an edge of the tube; one after the other they took 115 and 378."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=150)
    given = {"kernel": Laplacian(1.0), "level_gamma": 1.0, "epsilon": 0.05, "learn": False}
    model = QuantileRegressor([0.3, 0.7, 0.9], alpha=alpha, **given).fit(X, y)
    assert model.status_.converged
    assert model.n_iter_ <= most


def test_a_start_whose_curves_cross_too_often_to_be_repaired_has_its_own_values():
    """With kernel values that are not stored, a false image would be certified."""
    rng = np.random.default_rng(0)
    n, levels = 1300, np.array([0.2, 0.4, 0.6, 0.8])
    y = (rng.choice([-1, 1], n) * (1.0 + rng.uniform(0.0, 1.0, n)))[:, None]
    rows = Computed(np.arange(float(n))[:, None], Gaussian(1e-2))
    loss, ones = NonCrossing(Pinball(levels)), np.ones(n)
    problem = Problem(loss, Gram(rows, np.eye(4)), y, ones, 1e-3, fit_intercept=False)
    start = np.where(y > 0.0, levels, levels - 1.0)
    start[:345] = np.where(y[:345] > 0.0, 0.19, -0.19) + 0.01 * np.linspace(1.0, -1.0, 4)
    solution = Newton(1e-6, 50).solve(problem, WarmStart(start, np.zeros(4), 1e-3))
    stored = replace(problem, design=Gram(np.eye(n), np.eye(4)))
    found = solution.certificate
    assert found.primal == pytest.approx(stored.primal(solution.weights, solution.offset))
    assert found.dual == pytest.approx(stored.dual(solution.dual))
