"""Curves in other units: the same fits, whatever the loss and whether anything is learned."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from fenchel.functional import FunctionalRegressor
from fenchel.learning import Learning
from fenchel.losses import Pinball
from fenchel.model_selection import PathSearchCV

RNG = np.random.default_rng(0)
THETA = np.linspace(0.0, 1.0, 15)
X = RNG.uniform(size=(30, 2))
Y = np.sin(6.0 * (X[:, :1] + THETA)) + X[:, 1:] * THETA + 0.2 * RNG.normal(size=(30, 15))
SLOWER = ["absolute", "pinball", "squared_pinball", "epsilon_insensitive"]
SLOWER += ["squared_epsilon_insensitive", Pinball(0.8)]
LOSSES = ["squared", "huber", *SLOWER]


def named(loss):
    return loss if isinstance(loss, str) else "own"


@pytest.mark.parametrize("factor", [1e-6, pytest.param(1e5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_units_do_not_matter(loss, factor):
    same_in_units(loss, factor, learn=False)


@pytest.mark.parametrize("factor", [1e-6, pytest.param(1e5, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "loss",
    ["squared", "huber", *(pytest.param(loss, marks=pytest.mark.slow) for loss in SLOWER)],
    ids=named,
)
def test_units_do_not_matter_to_what_is_learned(loss, factor):
    same_in_units(loss, factor, learn=Learning(max_evaluations=4))


def same_in_units(loss, factor, learn):
    plain, scaled = (FunctionalRegressor(loss, level=0.8, learn=learn, tol=1e-8) for _ in range(2))
    plain.fit(X, Y, THETA)
    scaled.fit(X, factor * Y, THETA)
    size = np.abs(Y).max()
    np.testing.assert_allclose(scaled.predict(X) / factor, plain.predict(X), atol=1e-3 * size)
    assert scaled.score(X, factor * Y) == pytest.approx(plain.score(X, Y), abs=1e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_grids_of_strengths_are_in_units_of_the_curves(loss):
    model = FunctionalRegressor(loss, level=0.8, learn=False)
    plain, scaled = (
        PathSearchCV(model, {"alpha": 3}, cv=2).fit(X, times * Y, theta=THETA)
        for times in (1.0, 1e3)
    )
    index = [search.best_index_ for search in (plain, scaled)]
    assert index[0] == index[1]
    np.testing.assert_allclose(scaled.predict(X) / 1e3, plain.predict(X), atol=0.01)


def skewed(n, rng):
    rows = rng.uniform(size=(n, 2))
    curves = np.sin(6.0 * (rows[:, :1] + THETA)) + rng.exponential(1.0, (n, 1))
    return rows, curves + 0.1 * rng.normal(size=(n, 15))


def pinball_loss(curves, found, level=0.9):
    below = curves - found
    return float(np.mean(np.maximum(level * below, (level - 1.0) * below)))


def test_levels_are_judged_by_their_own_loss():
    rows, curves = skewed(90, np.random.default_rng(0))
    model = FunctionalRegressor("pinball", level=0.9, learn=False)
    search = PathSearchCV(model, {"alpha": 5}, cv=3, selection="min")
    search.fit(rows, curves, theta=THETA)
    found, expected = search.cv_results_["mean_test_score"], []
    for params in search.cv_results_["params"]:
        losses = []
        for train, test in KFold(3).split(rows):
            fit = clone(model).set_params(**params).fit(rows[train], curves[train], THETA)
            losses.append(pinball_loss(curves[test], fit.predict(rows[test])))
        expected.append(-np.mean(losses))
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert search.best_index_ == np.argmax(expected)


def test_scores_and_centers_of_a_level_are_of_its_quantiles():
    rng = np.random.default_rng(1)
    (rows, curves), (others, new) = skewed(60, rng), skewed(50, rng)
    model = FunctionalRegressor("pinball", level=0.9, learn=False).fit(rows, curves, THETA)
    np.testing.assert_allclose(model.center_, np.sort(curves, axis=0)[53:55].mean(axis=0))
    constant = np.sort(new, axis=0)[44:46].mean(axis=0)  # of 45 rows and more the middle
    expected = 1.0 - pinball_loss(new, model.predict(others)) / pinball_loss(new, constant)
    assert model.score(others, new) == pytest.approx(expected, rel=1e-9)
    stronger = clone(model).set_params(alpha=1e9).fit(rows, curves, THETA)
    assert np.mean(curves <= stronger.predict(rows) + 1e-9) == pytest.approx(0.9, abs=0.01)
    mean = clone(model).set_params(center="mean").fit(rows, curves, THETA)
    np.testing.assert_allclose(mean.center_, curves.mean(axis=0))
    even = FunctionalRegressor("absolute", learn=False).fit(rows, curves, THETA)
    np.testing.assert_allclose(even.center_, curves.mean(axis=0))


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e5])
def test_a_wide_tube_does_not_hide_which_side_counts(unit):
    rng = np.random.default_rng(0)
    X, theta = rng.normal(size=(40, 1)), np.linspace(0.0, 1.0, 6)
    Y = unit * rng.exponential(size=(40, 6))
    loss = Pinball(0.9).insensitive(0.5 * unit)
    model = FunctionalRegressor(loss, learn=False, alpha=1e-2 / unit).fit(X, Y, theta)
    quantile, mean = np.quantile(Y, 0.9, axis=0), Y.mean(axis=0)
    far = np.abs(model.center_ - mean)
    assert np.all(np.abs(model.center_ - quantile) < far)


def test_weights_are_repetitions_for_the_grids_of_thresholds():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 1)), rng.normal(size=(20, 6)).cumsum(axis=1)
    times = rng.integers(1, 4, 20)
    search = PathSearchCV(
        FunctionalRegressor("huber", learn=False, center=None), {"kappa": 4}, cv=2
    )
    grids = [
        clone(search).fit(*rows, sample_weight=weight).cv_results_["param_kappa"]
        for rows, weight in (
            ((X, Y), times),
            ((np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0)), None),
        )
    ]
    np.testing.assert_allclose(*(np.sort(grid.astype(float)) for grid in grids), rtol=1e-12)
