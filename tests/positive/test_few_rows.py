"""Densities of many rows on the line: few weighted points first, certified on all rows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from fenchel.kernels import Gaussian, Laplacian
from fenchel.positive import DensityEstimator, DualNewton, _few_rows, solve
from fenchel.positive._few_rows import FewRowsFirst, GaussRule

ROWS = 6000


def mixture(n=ROWS, seed=0):
    random = np.random.default_rng(seed)
    side = np.where(random.random(n) < 0.5, -1.0, 1.0)
    return (side + np.sqrt(0.3) * random.standard_normal(n))[:, None]


def density(**given):
    return DensityEstimator(**{"learn": False, **given})


def test_points_have_the_moments_of_the_numbers_on_each_panel():
    random = np.random.default_rng(1)
    values = np.concatenate([random.standard_normal(500), np.repeat([0.3, 0.7, 7.0, 9.0], 5)])
    weight = random.uniform(0.1, 3.0, len(values))
    cuts = np.array([-1.0, 0.0, 0.4, 6.0])
    order = 4
    rule = GaussRule(values, weight, cuts, order)
    points, masses = rule.points, rule.masses
    assert np.all(masses > 0.0)
    assert len(points) <= 5 * order
    edges = np.concatenate([[-np.inf], cuts, [np.inf]])
    for low, high in pairwise(edges):
        mine, own = (values >= low) & (values < high), (points >= low) & (points < high)
        middle = values[mine].mean()
        assert values[mine].min() <= points[own].min()
        assert values[mine].max() >= points[own].max()
        for power in range(2 * order):
            exact = weight[mine] @ (values[mine] - middle) ** power
            size = weight[mine] @ np.abs(values[mine] - middle) ** power
            found = masses[own] @ (points[own] - middle) ** power
            assert found == pytest.approx(exact, abs=1e-11 * size)
    assert {7.0, 9.0} <= set(points)  # a panel of two numbers keeps them


def test_points_depend_neither_on_order_nor_on_repetition():
    random = np.random.default_rng(2)
    values = np.round(random.standard_normal(400), 2)
    weight = random.integers(1, 5, len(values)).astype(float)
    cuts = np.linspace(-2.0, 2.0, 9)
    known = GaussRule(values, weight, cuts, 5)
    shuffled = random.permutation(len(values))
    repeated = np.repeat(values, weight.astype(int))
    others = [
        GaussRule(values[shuffled], weight[shuffled], cuts, 5),
        GaussRule(repeated, np.ones(len(repeated)), cuts, 5),
    ]
    for other in others:
        assert np.array_equal(other.points, known.points)
        assert np.array_equal(other.masses, known.masses)


def test_what_points_know_is_extended_to_all_numbers():
    random = np.random.default_rng(7)
    values = np.concatenate([np.round(random.standard_normal(300), 2), [5.0, 6.0, 7.0]])
    cuts = np.array([-1.0, 0.3, 4.0])
    rule = GaussRule(values, random.uniform(0.5, 2.0, len(values)), cuts, 4)
    number = np.searchsorted(cuts, values, side="right"), np.searchsorted(cuts, rule.points)
    at_rows, at_points = (
        np.where(panel % 2 == 0, 1.0 + x**3 - x, 2.0 * x**2)
        for panel, x in zip(number, (values, rule.points), strict=True)
    )
    assert rule.extended(at_points) == pytest.approx(at_rows, abs=1e-11)


def test_rounded_rows_of_which_no_panel_has_many():
    """Numbers rounded to halves: all points are numbers, and there is no polynomial."""
    values = np.round(2.0 * np.random.default_rng(0).standard_normal(6000)) / 2.0
    density = DensityEstimator(tol=1e-9).fit(values[:, None])
    different, counts = np.unique(values, return_counts=True)
    weighted = DensityEstimator(tol=1e-9).fit(different[:, None], sample_weight=counts)
    at = np.linspace(-3.0, 3.0, 13)[:, None]
    np.testing.assert_allclose(density.score_samples(at), weighted.score_samples(at), atol=1e-4)


def test_a_panel_of_numbers_that_differ_by_rounding_alone():
    values = np.concatenate([1.0 + np.finfo(float).eps * np.arange(20.0), [1.5]])
    rule = GaussRule(values, np.ones(21), np.array([0.0, 2.0]), 6)
    assert rule.masses.sum() == pytest.approx(21.0)
    assert rule.masses @ rule.points == pytest.approx(values.sum())
    assert rule.extended(3.0 * rule.points) == pytest.approx(3.0 * values)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"alpha": 1e-4, "trace_penalty": 0.0},
        {"kernel": Gaussian(0.5), "support": (-4.0, 4.0)},
        {"kernel": Laplacian(1.0), "rank": 40, "support": (-5.0, 5.0)},
    ],
    ids=["default", "weak", "support", "kinks"],
)
def test_the_optimum_is_that_of_all_rows(given):
    X, weight = mixture(), np.random.default_rng(3).uniform(0.5, 2.0, ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a kernel with kinks has a high rank
        fit = density(**given).fit(X, sample_weight=weight)
    prepared = fit.prepare(X, sample_weight=weight)
    assert isinstance(fit._chosen_solver(prepared), FewRowsFirst)
    plain = solve(fit._problem(prepared), DualNewton(tol=1e-7))
    assert plain.status.converged
    certificate = fit.certificate_
    assert -1e-10 <= certificate.relative_gap <= 1e-6
    assert certificate.primal <= plain.certificate.primal + 1e-6
    assert certificate.dual <= plain.certificate.primal + 1e-10
    assert plain.certificate.dual <= certificate.primal + 1e-10


def test_the_certificate_is_that_of_all_rows_by_its_definition():
    X = mixture()
    fit = density(alpha=1e-2, trace_penalty=1e-3).fit(X)
    phi, V = fit.feature_map_.transform(X), fit.volume_
    factor = fit.model_.factor_
    squares = factor.T @ factor
    primal = -np.log(np.square(phi @ factor).sum(axis=1)).mean()
    primal += 1e-3 * V * np.trace(squares) + 0.5e-2 * V**2 * np.vdot(squares, squares)
    assert fit.certificate_.primal == pytest.approx(primal, abs=1e-9)
    beta = -fit.dual_coef_  # weights over densities, which are positive
    assert np.all(beta > 0.0)
    gram = phi.T @ (beta[:, None] * phi)
    integrals = fit.prepare(X).moment.matrix

    def minus_dual(multiplier):
        matrix = gram - 1e-3 * V * np.eye(len(gram)) - multiplier * integrals
        positive = np.maximum(np.linalg.eigvalsh(matrix), 0.0)
        conjugates = -1.0 - np.log(ROWS * beta).mean()
        return conjugates + positive @ positive / (2e-2 * V**2) + multiplier

    best = minimize_scalar(minus_dual, bracket=(0.5, 1.5), tol=1e-14)
    assert fit.certificate_.dual <= -best.fun + 1e-9
    assert primal + best.fun <= 1e-6


@pytest.mark.slow
def test_points_that_are_too_few_are_a_start_only(monkeypatch):
    monkeypatch.setattr(_few_rows, "_ORDER", 1)
    X = mixture()
    fit = density().fit(X)
    gaps = [line.relative_gap for line in fit.history_]
    assert gaps[0] > 1e-6 >= gaps[-1]
    monkeypatch.undo()
    assert fit.score(X) == pytest.approx(density().fit(X).score(X), abs=1e-4)
    assert fit.certificate_.dual <= density().fit(X).certificate_.primal


def test_order_and_repetition_of_rows_and_units():
    X = mixture()
    weight = np.random.default_rng(4).integers(1, 3, ROWS)
    first = density().fit(X, sample_weight=weight)
    grid = np.linspace(-3.0, 3.0, 50)[:, None]
    shuffled = np.random.default_rng(5).permutation(ROWS)
    other = density().fit(X[shuffled], sample_weight=weight[shuffled])
    repeated = density().fit(np.repeat(X, weight, axis=0))
    scaled = density().fit(1e3 * X, sample_weight=weight)
    for found, unit in [(other, 1.0), (repeated, 1.0), (scaled, 1e3)]:
        assert unit * found.model_(unit * grid) == pytest.approx(first.model_(grid), abs=1e-6)
        expected = first.certificate_.primal + np.log(unit)
        assert found.certificate_.primal == pytest.approx(expected, abs=1e-9)
        assert found.certificate_.relative_gap <= 1e-6


def test_many_rows_of_which_few_differ_have_the_features_of_weighted_rows():
    X, times = mixture(3000), np.random.default_rng(2).integers(1, 4, 3000)
    many = density(tol=1e-9).fit(np.repeat(X, times, axis=0))
    weighted = density(tol=1e-9).fit(X, sample_weight=times)
    assert len(X) < 5000 < times.sum()
    np.testing.assert_allclose(many.score_samples(X), weighted.score_samples(X), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("learn", [False, True])
def test_the_same_bits_for_any_number_of_threads(learn):
    found = []
    for number in (1, 4):
        with threadpool_limits(number):
            fit = density(learn=learn).fit(mixture(3 * ROWS))
        found.append((fit.model_.factor_, fit.dual_coef_))
    for one, several in zip(*found, strict=True):
        assert np.array_equal(one, several)


@pytest.mark.slow
def test_limits_and_starts():
    X = mixture()
    with pytest.warns(ConvergenceWarning):
        assert density(max_iter=3).fit(X).n_iter_ == 3
    with pytest.warns(ConvergenceWarning, match="max_time"):
        density(max_time=1e-9).fit(X)
    known = density(warm_start=True).fit(X)
    again = known.fit(X)
    assert again.certificate_.relative_gap <= 1e-6
    lines = []
    density(callback=lines.append).fit(X)
    assert lines[-1].relative_gap <= 1e-6


def test_few_rows_and_other_solvers_are_as_they_were():
    small = mixture(500)
    assert density().prepare(small).few is None
    assert density().prepare(np.repeat(mixture(4), 2000, axis=0)).few is not None
    both = np.column_stack([mixture(), mixture(seed=1)])
    assert density(rank=10).prepare(both).few is None
    fit = density(solver="fista")
    assert fit._chosen_solver(fit.prepare(mixture())) == "fista"


def test_the_model_of_points_alone_is_feasible_for_all_rows():
    X = mixture()
    fit = density()
    prepared = fit.prepare(X)
    solver = fit._chosen_solver(prepared)
    problem = fit._problem(prepared)
    found = replace(solver, tol=1e-5).solve(problem)
    assert found.certificate.feasibility <= 1e-10
    again = problem.primal(found.model) - problem.dual(found.dual, found.multipliers)
    assert found.certificate.gap == pytest.approx(again, abs=1e-10)


def test_a_dual_that_cannot_be_extended_is_not_used(monkeypatch):
    monkeypatch.setattr(GaussRule, "extended", lambda rule, at_points: np.full(ROWS, 1e4))
    fit = density().fit(mixture())
    assert fit.history_[0].iteration == 0
    assert fit.certificate_.relative_gap <= 1e-6
