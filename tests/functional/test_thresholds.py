"""κ and ε that are not given: read off the spread of the curves, whatever their units."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.functional import FunctionalRegressor


def draw(n=41, m=9, seed=0):
    random = np.random.default_rng(seed)
    X, theta = random.uniform(size=(n, 1)), np.linspace(0.0, 1.0, m)
    return X, 3.0 + theta + X * np.sin(5.0 * theta) + 0.1 * random.standard_normal((n, m)), theta


def make(loss="huber", **parameters):
    return FunctionalRegressor(loss, **{"alpha": 1e-3, "learn": False, **parameters})


@pytest.mark.parametrize("center", [None, "mean"])
def test_the_spread_is_that_about_the_pointwise_median(center):
    X, y, theta = draw()
    spread = 1.4826 * np.median(np.abs(y - np.median(y, axis=0)))
    model = make(center=center).fit(X, y, theta)
    assert model.kappa_ == pytest.approx(0.5 * spread, rel=1e-12)
    assert model.epsilon_ == pytest.approx(0.1 * spread, rel=1e-12)
    assert model.loss_.kappa == model.kappa_
    given = make(kappa=model.kappa_, center=center).fit(X, y, theta)
    np.testing.assert_array_equal(given.predict(X), model.predict(X))
    assert (given.get_params()["kappa"], given.kappa_) == (model.kappa_, model.kappa_)
    assert make("squared_epsilon_insensitive", epsilon=0.0).fit(X, y, theta).epsilon_ == 0.0


def test_weights_are_repetitions_and_gaps_do_not_count():
    X, y, theta = draw()
    weight = np.arange(41) % 3
    gaps = y.copy()
    gaps[::2, 3] = np.nan
    once = make().fit(X, gaps, theta, sample_weight=weight)
    again = make().fit(np.repeat(X, weight, axis=0), np.repeat(gaps, weight, axis=0), theta)
    assert once.kappa_ == pytest.approx(again.kappa_, rel=1e-12)
    pairs = [(theta[seen], row[seen]) for row, seen in zip(y, np.ones((41, 9), bool), strict=True)]
    assert make().fit(X, pairs).kappa_ == pytest.approx(make().fit(X, y, theta).kappa_, rel=1e-12)


@pytest.mark.parametrize("loss", ["huber", "squared_epsilon_insensitive", "epsilon_insensitive"])
def test_units_of_curves_do_not_matter(loss):
    X, y, theta = draw()
    small, large = (make(loss, center="mean", tol=1e-8).fit(X, f * y, theta) for f in (1.0, 100.0))
    assert large.epsilon_ == pytest.approx(100.0 * small.epsilon_)
    if loss != "epsilon_insensitive":  # its alpha has a unit
        np.testing.assert_allclose(large.predict(X), 100.0 * small.predict(X), rtol=1e-3)


def test_constant_curves_have_the_unit_one():
    X, y, theta = draw()
    model = make().fit(X, np.zeros_like(y), theta)
    assert (model.kappa_, model.epsilon_) == (0.5, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["huber", "squared_epsilon_insensitive", "pinball", "squared"])
def test_defaults_are_better_than_the_pointwise_mean(loss):
    """On curves whose values are a thousandth, with outliers for Huber's."""
    X, y, theta = draw(60)
    X_test, y_test, _ = draw(40, seed=1)
    y, y_test = 1e-3 * y, 1e-3 * y_test
    if loss == "huber":
        y[:6] += 1.0
    model = FunctionalRegressor(loss, center="median").fit(X, y, theta)
    error = np.mean((model.predict(X_test) - y_test) ** 2)
    assert error < 0.5 * np.mean((np.median(y, axis=0) - y_test) ** 2)
