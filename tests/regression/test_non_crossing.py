"""Quantile curves in order on the training rows, against an independent conic solver."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import DotProduct

import fenchel
from conic import conic_optimum
from fenchel import QuantileRegressor
from fenchel.design import Plain
from fenchel.losses import NonCrossing, Pinball
from fenchel.model_selection import PathSearchCV
from fenchel.problem import Problem

LEVELS = {2: [0.4, 0.6], 3: [0.3, 0.5, 0.6], 5: [0.1, 0.25, 0.5, 0.75, 0.9]}
UNSORTED = {2: [0.6, 0.4], 3: [0.5, 0.6, 0.3], 5: [0.75, 0.1, 0.9, 0.5, 0.25]}
REFEREE = 5e-8  # what the referee may be off by, in units of the baseline


def crossing_data(n=40, seed=0):
    """Few rows, many coordinates, a spread that varies: independent curves cross."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] * rng.normal(size=n) + 0.2 * rng.normal(size=n)


X, Y = crossing_data()


def most_crossing(model, X):
    """Largest amount by which a curve is above that of the next higher level, < 0 if none is."""
    ordered = np.asarray(model.predict(X))[:, np.argsort(model.levels)]
    return float((ordered[:, :-1] - ordered[:, 1:]).max())


def conic_problem(model, X, y, weight):
    """The problem from its definition: Gram matrices and their exact square roots."""
    levels = np.asarray(model.levels)
    values, vectors = eigh(model.kernel_(X))
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    if model.level_gamma == np.inf:
        coupling = np.eye(len(levels))
    else:
        output = np.exp(-model.level_gamma * np.subtract.outer(levels, levels) ** 2)
        values, vectors = eigh(output)
        coupling = vectors * np.sqrt(np.maximum(values, 0.0))
    loss = NonCrossing(Pinball(levels)) if model.non_crossing else Pinball(levels)
    design = Plain(features, coupling)
    return Problem(loss, design, y[:, None], weight, model.alpha_, bool(model.fit_intercept))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("gamma", [0.0, 1.0, np.inf])
@pytest.mark.parametrize("p", [2, 3, 5])
def test_agrees_with_clarabel(p, gamma, fit_intercept):
    designs = product((LEVELS, UNSORTED), ("cholesky", "kernel_rows"))
    for index, (levels, features) in enumerate(designs):
        weighted = (index + p + fit_intercept) % 2 == 0
        weight = (
            np.random.default_rng(p).uniform(0.1, 3.0, len(Y)) if weighted else np.ones(len(Y))
        )
        model = QuantileRegressor(
            levels[p],
            kernel="gaussian" if features == "cholesky" else "laplacian",
            features=features,
            alpha=1e-3,
            learn=False,
            level_gamma=gamma,
            non_crossing="train",
            fit_intercept=fit_intercept,
            tol=1e-8,
        )
        model.fit(X, Y, weight)
        problem = conic_problem(model, X, Y, weight)
        optimum, unit, found = conic_optimum(problem), problem.baseline, model.certificate_
        design = f"{features}, levels {levels[p]}, {weighted=}"
        assert optimum.value - optimum.lower <= REFEREE * unit, design
        assert model.status_.converged, design
        assert abs(found.primal - optimum.value) <= 1e-6 * optimum.value, design
        assert abs(found.dual - optimum.value) <= 1e-6 * optimum.value, design
        assert -1e-13 * unit <= found.gap <= 1e-8 * unit, design
        assert found.feasibility <= 1e-13, design
        assert most_crossing(model, X) <= 1e-8 * np.std(Y), design
        assert model.crossing_loss(X) <= 1e-8 * np.std(Y), design


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
@pytest.mark.parametrize("levels", [LEVELS, UNSORTED], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("p", [2, 3, 5])
def test_curves_that_cross_no_longer_do(p, levels, kernel, fit_intercept):
    plain = QuantileRegressor(
        levels[p],
        kernel=kernel,
        level_gamma=np.inf,
        alpha=1e-3,
        learn=False,
        fit_intercept=fit_intercept,
    )
    ordered = clone(plain).set_params(non_crossing="train", tol=1e-7)
    crossing = most_crossing(plain.fit(X, Y), X)
    assert most_crossing(ordered.fit(X, Y), X) <= 1e-11 * np.abs(Y).max()
    # the constraint costs something where it changes something, and never gains
    cost = ordered.certificate_.primal - plain.certificate_.dual
    assert cost > 0.0
    if kernel == "gaussian":
        assert crossing > 1e-2 * np.std(Y)
        assert ordered.certificate_.dual > plain.certificate_.primal
        assert not np.allclose(ordered.predict(X), plain.predict(X), atol=1e-3)


def test_the_certificate_is_that_of_the_model_itself():
    for fit_intercept in (True, False):
        model = QuantileRegressor(
            UNSORTED[5],
            level_gamma=np.inf,
            alpha=1e-3,
            learn=False,
            non_crossing="train",
            fit_intercept=fit_intercept,
        ).fit(X, Y)
        weight = np.ones(len(Y))
        problem = conic_problem(model, X, Y, weight)
        K = model.kernel_(X)
        h = model.predict(X) - model.offset_
        squared = np.vdot(h, np.linalg.solve(K, h))  # coupling is the identity
        losses = Pinball(UNSORTED[5]).value(Y[:, None] - model.predict(X))
        primal = problem.alpha * (0.5 * squared + problem.weight @ losses)
        assert primal == pytest.approx(model.certificate_.primal, rel=1e-7)
        beta = np.zeros((len(Y), 5))
        beta[model.support_] = model.dual_coef_ / problem.weight[model.support_, None]
        assert np.all(np.isfinite(problem.loss.conjugate(beta)))
        assert problem.dual(beta) == pytest.approx(model.certificate_.dual, rel=1e-7)
        # the dual coefficients stand for the function
        np.testing.assert_allclose(
            K[:, model.support_] @ model.dual_coef_ @ model.coupling_, h, atol=1e-7
        )
        if fit_intercept:
            assert np.abs(beta.sum(axis=0)).max() <= 1e-12 * np.abs(beta).sum()


def test_curves_that_are_apart_stay_as_they_are():
    rng = np.random.default_rng(1)
    x = rng.uniform(0.0, 3.0, (150, 1))
    y = np.sin(2.0 * x[:, 0]) + rng.normal(size=150)
    plain = QuantileRegressor([0.9, 0.1, 0.5], alpha=1e-3, learn=False, tol=1e-9).fit(x, y)
    assert most_crossing(plain, x) < -0.1
    ordered = clone(plain).set_params(non_crossing="train").fit(x, y)
    assert ordered.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-9)
    np.testing.assert_allclose(ordered.predict(x), plain.predict(x), atol=2e-3)


def test_one_level_is_the_plain_fit():
    plain = QuantileRegressor(0.3, alpha=1e-2, learn=False).fit(X, Y)
    ordered = QuantileRegressor(0.3, alpha=1e-2, learn=False, non_crossing="train").fit(X, Y)
    np.testing.assert_array_equal(ordered.predict(X), plain.predict(X))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_permuting_levels_permutes_columns(fit_intercept):
    settings = {
        "level_gamma": np.inf,
        "alpha": 1e-2,
        "learn": False,
        "tol": 1e-10,
        "non_crossing": "train",
        "fit_intercept": fit_intercept,
    }
    base = QuantileRegressor(LEVELS[5], **settings).fit(X, Y)
    other = QuantileRegressor(UNSORTED[5], **settings).fit(X, Y)
    columns = [LEVELS[5].index(level) for level in UNSORTED[5]]
    assert other.certificate_.primal == pytest.approx(base.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(other.predict(X), base.predict(X)[:, columns], atol=1e-4)


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, 3e7), (2.0, -100.0)])
def test_units_of_y(scale, shift):
    settings = {
        "level_gamma": np.inf,
        "learn": False,
        "tol": 1e-9,
        "non_crossing": "train",
    }
    base = QuantileRegressor(UNSORTED[3], alpha=1e-3, **settings).fit(X, Y)
    model = QuantileRegressor(UNSORTED[3], alpha=1e-3 / scale, **settings)
    model.fit(X, scale * Y + shift)
    np.testing.assert_allclose((model.predict(X) - shift) / scale, base.predict(X), atol=1e-4)
    assert most_crossing(model, X) <= 1e-8 * scale * np.std(Y)


def test_a_weight_is_a_number_of_rows_and_zero_is_none():
    count = np.random.default_rng(2).integers(0, 4, len(Y))
    settings = {"level_gamma": np.inf, "alpha": 1e-3, "tol": 1e-9, "non_crossing": "train"}
    kernel = fenchel.kernels.Gaussian(1.5)
    weighted = QuantileRegressor(LEVELS[3], kernel=kernel, **settings).fit(X, Y, count)
    rows = np.repeat(np.arange(len(Y)), count)
    repeated = QuantileRegressor(LEVELS[3], kernel=kernel, **settings).fit(X[rows], Y[rows])
    primal = pytest.approx(repeated.certificate_.primal, rel=1e-8)
    assert weighted.certificate_.primal == primal
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-4)
    assert most_crossing(weighted, X[count > 0]) <= 1e-9
    assert most_crossing(repeated, X[rows]) <= 1e-9
    # nothing is promised elsewhere, and here it shows
    assert most_crossing(weighted, X[count == 0]) > 1e-3


@pytest.mark.parametrize("mirrored", [False, True])
def test_curves_that_can_only_agree(mirrored):
    """Linear functions through zero, rows on both sides: order means equality."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 2))
    y = x[:, 0] + np.abs(x[:, 1]) * rng.normal(size=60)
    if mirrored:
        x, y = np.vstack([x, -x]), np.concatenate([y, -y])
    model = QuantileRegressor(
        [0.2, 0.8],
        kernel=DotProduct(0.0, "fixed"),
        level_gamma=np.inf,
        alpha=1e-3,
        non_crossing="train",
        fit_intercept=False,
    ).fit(x, y)
    assert model.status_.converged
    assert np.ptp(model.predict(x), axis=1).max() <= 1e-11


def test_constant_targets():
    model = QuantileRegressor(LEVELS[3], non_crossing="train").fit(X, np.full(len(Y), 7.0))
    np.testing.assert_array_equal(model.predict(X), np.full((len(Y), 3), 7.0))
    assert model.certificate_.relative_gap == 0.0


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_other_solvers(fit_intercept):
    model = QuantileRegressor(
        UNSORTED[3],
        level_gamma=np.inf,
        alpha=1e-2,
        learn=False,
        tol=1e-7,
        non_crossing="train",
        fit_intercept=fit_intercept,
        features="cholesky",
    )
    base = clone(model).fit(X, Y)
    works = ["conic"] if fit_intercept else ["conic", "fista"]
    for solver in works:
        other = clone(model).set_params(solver=solver, max_iter=20_000).fit(X, Y)
        assert other.status_.converged
        assert other.certificate_.primal == pytest.approx(base.certificate_.primal, rel=2e-7)
        assert most_crossing(other, X) <= 1e-10
    for solver in sorted({"fista", "pdcd", "augmented_lagrangian", "closed_form"} - {*works}):
        with pytest.raises(ValueError, match=f"solver='{solver}' cannot solve this problem"):
            clone(model).set_params(solver=solver).fit(X, Y)


def test_stopped_early_the_order_holds_all_the_same():
    model = QuantileRegressor(
        LEVELS[5],
        level_gamma=np.inf,
        alpha=1e-3,
        learn=False,
        non_crossing="train",
        max_iter=12,
    )
    for fit_intercept in (True, False):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.set_params(fit_intercept=fit_intercept).fit(X, Y)
        assert [w.category for w in caught] == [ConvergenceWarning]
        assert most_crossing(model, X) <= 1e-11


def test_warm_start():
    settings = {"level_gamma": np.inf, "learn": False, "non_crossing": "train"}
    model = QuantileRegressor(LEVELS[3], alpha=1e-2, warm_start=True, **settings).fit(X, Y)
    model.set_params(alpha=5e-3).fit(X, Y)
    cold = QuantileRegressor(LEVELS[3], alpha=5e-3, **settings).fit(X, Y)
    assert model.status_.converged
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-6)
    assert most_crossing(model, X) <= 1e-11


def test_cross_validation():
    grid = {"alpha": [1e-3], "level_gamma": [np.inf]}
    ordered = QuantileRegressor(UNSORTED[3], non_crossing="train")
    search = PathSearchCV(ordered, grid, cv=2).fit(X, Y)
    assert search.best_estimator_.non_crossing == "train"
    assert most_crossing(search.best_estimator_, X) <= 1e-11
    plain = PathSearchCV(QuantileRegressor(UNSORTED[3]), grid, cv=2)
    assert most_crossing(plain.fit(X, Y).best_estimator_, X) > 1e-2


@pytest.mark.slow
def test_saved_and_loaded(tmp_path):
    model = QuantileRegressor(LEVELS[3], non_crossing="train").fit(X, Y)
    same = fenchel.load(fenchel.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert repr(same.loss_) == "NonCrossing(Pinball([0.3, 0.5, 0.6]))"


@pytest.mark.parametrize("value", ["everywhere", True, 1, np.array([1.0, 2.0])])
def test_other_values_are_refused(value):
    with pytest.raises(ValueError, match=r"^non_crossing must be 'train' or None, got "):
        QuantileRegressor([0.1, 0.9], non_crossing=value).fit(X, Y)


def test_insensitivity_is_refused():
    with pytest.raises(
        ValueError, match=r"^non_crossing='train' needs epsilon=0, got epsilon=0\.1"
    ):
        QuantileRegressor([0.1, 0.9], non_crossing="train", epsilon=0.1).fit(X, Y)
