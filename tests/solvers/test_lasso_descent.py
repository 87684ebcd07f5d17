"""The Lasso by sweeps of columns or of their products, and some of many columns for any groups."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import enet_path

from fenchel.design import CentredRows
from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm
from fenchel.solvers import LassoDescent, NormFista
from fenchel.solvers.some_columns import on_some_columns


def problem(n, d, share, *, weighted=False, outputs=1, seed=0):
    """Correlated columns; twenty of them matter."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) + 0.5 * random.normal(size=(n, 1))
    y = X[:, :20].sum(axis=1)[:, None] + random.normal(size=(n, outputs))
    weight = random.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    rows = CentredRows.of(X, y, weight, fit_intercept=True)
    features, targets = rows.weighted
    strength = share * np.abs(features.T @ targets).max() / n
    return NormProblem.of(rows, GroupNorm(np.arange(d), 1.0, 1.0), float(strength))


def precise(case):
    _, coefs, _ = enet_path(
        case.features,
        case.targets[:, 0],
        l1_ratio=1.0,
        alphas=[case.strength],
        tol=1e-13,
        max_iter=200_000,
    )
    return coefs


CASES = {
    "few columns, tall": (400, 30, 0.01),
    "few columns, not tall": (60, 40, 0.01),
    "some of many columns, tall": (1500, 600, 0.02),
    "some of many columns, wide": (100, 900, 0.05),
    "nearly all of many columns": (300, 650, 0.001),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_solution_is_that_of_long_sweeps(case, weighted):
    asked = problem(*case, weighted=weighted)
    found = LassoDescent(1e-11).solve(asked)
    assert found.status.converged
    assert found.certificate.relative_gap <= 1e-11
    known = precise(asked)
    np.testing.assert_allclose(found.weights, known, atol=2e-5 * np.abs(known).max())
    loss = asked.certify(known).certificate.primal
    assert found.certificate.primal <= loss + 1e-10 * asked.baseline


@pytest.mark.parametrize("shape", [(400, 30), (1500, 600), (100, 900)])
def test_a_warm_start_that_is_the_solution_takes_few_sweeps(shape):
    asked = problem(*shape, 0.05)
    solver = LassoDescent(1e-8)
    cold = solver.solve(asked)
    again = solver.solve(asked, cold.weights)
    assert again.n_iter <= 2 < cold.n_iter
    assert again.certificate.relative_gap <= 1e-8
    near = solver.solve(replace(asked, strength=0.95 * asked.strength), cold.weights)
    assert near.certificate.relative_gap <= 1e-8


def test_products_that_have_lost_digits_are_not_the_last_word(monkeypatch):
    asked = problem(400, 30, 0.01)
    noise = 1e-4 * np.random.default_rng(0).normal(size=(30, 30))
    inexact = asked.products * (1.0 + noise + noise.T)
    monkeypatch.setattr(NormProblem, "products", inexact)
    monkeypatch.setattr("fenchel.solvers.lasso_descent._PATH_SIZE", 0)  # no other remedy
    found = LassoDescent(1e-11).solve(asked, asked.zero())
    assert found.status.converged
    np.testing.assert_allclose(found.weights, precise(asked), atol=1e-5)


def test_columns_that_can_do_no_more_are_joined_by_others():
    asked, sizes = problem(100, 900, 0.05), []

    def idle(part, weights, tol, most):
        sizes.append(part.features.shape[1])
        return weights, 1

    points = list(on_some_columns(asked, asked.zero(), 1e-6, 50, idle))
    assert sizes == [100, 200, 400, 800]  # and then all
    assert [point.n_iter for point in points] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("shape", [(400, 30), (1500, 600), (100, 900)])
@pytest.mark.parametrize("most", [1, 11, 25])
def test_sweeps_are_no_more_than_asked_for(shape, most):
    asked = problem(*shape, 1e-3)
    found = LassoDescent(1e-14, max_iter=most).solve(asked)
    assert found.n_iter <= most
    assert found.certificate.gap >= 0.0


def test_rows_keep_what_several_strengths_need():
    """Products of columns, for instance, are the same objects for all of a path."""
    asked = problem(200, 10, 0.1)
    other = NormProblem.of(asked.rows, asked.norm, 0.5 * asked.strength)
    assert asked.products is other.products
    assert asked.pulled is other.pulled
    assert asked.output(0) is asked
    assert asked.reduced().features is other.reduced().features


def test_products_are_those_of_the_outputs_and_columns_of_a_problem():
    asked = problem(200, 10, 0.1, outputs=3)
    one, some = asked.output(2), asked.output(2).of_columns(np.array([1, 4, 5]))
    for part, columns, targets in (
        (one, slice(None), asked.targets[:, 2:]),
        (some, [1, 4, 5], asked.targets[:, 2:]),
    ):
        X = asked.features[:, columns]
        np.testing.assert_allclose(part.pulled, X.T @ targets)
        np.testing.assert_allclose(part.products, X.T @ X)
        fewer = part.reduced()
        assert len(fewer.targets) == X.shape[1] + 1
        np.testing.assert_allclose(fewer.features.T @ fewer.targets, X.T @ targets)


def grouped(q, *, outputs=1, n=120, d=800, seed=0):
    """Groups of one to five columns, of which a few matter."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(d), random.integers(1, 6, size=d))[:d]
    labels = random.permutation(labels)
    X = random.normal(size=(n, d)) + 0.5 * random.normal(size=(n, 1))
    y = X[:, labels < 6].sum(axis=1)[:, None] + random.normal(size=(n, outputs))
    rows = CentredRows.of(X, y, np.ones(n), fit_intercept=True)
    norm = GroupNorm(labels, q, 1.0)
    strength = 0.05 * norm.dual.value(rows.features.T @ rows.targets) / n
    return NormProblem.of(rows, norm, float(strength))


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, np.inf])
def test_groups_of_many_columns_are_solved_as_with_all_in_each_step(q, outputs, monkeypatch):
    asked = grouped(q, outputs=outputs)
    shapes, on_all = [], NormFista._on_all

    def noted(self, problem, *more):
        shapes.append(problem.features.shape[1])
        yield from on_all(self, problem, *more)

    monkeypatch.setattr(NormFista, "_on_all", noted)
    found = NormFista(1e-8).solve(asked)
    assert found.status.converged
    assert 100 <= max(shapes) < 800
    monkeypatch.setattr("fenchel.solvers.norm_fista.on_some_columns", without)
    shapes.clear()
    known = NormFista(1e-8).solve(asked)
    assert set(shapes) == {800}
    bound = 2e-8 * asked.baseline
    assert found.certificate.primal == pytest.approx(known.certificate.primal, abs=bound)
    assert asked.certify(found.weights).certificate.relative_gap <= 1e-8
    used = asked.norm.lengths(found.weights) > 0.0
    assert 6 <= used.sum() < 100


def without(problem, weights, tol, most, solve, steps=0):
    """All columns at once."""
    return weights, steps
    yield


def test_bounds_and_other_norms_take_all_columns():
    asked = grouped(2.0)
    for other in (
        replace(asked, strength=1.0, constrained=True),
        replace(asked, norm=GroupNorm(asked.norm.labels, 2.0, 2.0)),
    ):
        assert list(on_some_columns(other, other.zero(), 1e-6, 10, solve=None)) == []
