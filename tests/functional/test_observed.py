"""Kernels and alpha judged by curves that are left out, where these are observed."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.functional import FunctionalRegressor, as_curves
from fenchel.functional._observed import Choice, Pairs, are_short
from fenchel.kernels import Gaussian
from functional.test_short_windows import windows


def moving(x, theta):
    return np.sin(2.0 * np.pi * (theta + 0.5 * x))


def test_left_out_losses_are_those_of_fits_to_the_other_curves():
    random, theta = np.random.default_rng(0), np.linspace(0.0, 1.0, 8)
    X, weight = random.uniform(size=(12, 1)), np.arange(1.0, 13.0)
    y = moving(X, theta) + 0.3 * random.standard_normal((12, 8))
    y[random.uniform(size=y.shape) < 0.5] = np.nan
    y[:, 3] = 1.0
    some = Pairs.of(X, as_curves(y, theta, "trapezoid"), weight)
    kernels = Gaussian(0.3), Gaussian(0.1)
    found = some.left_out(Choice(*kernels, np.nan, 0), np.array([0.01]))
    assert some.share == 1.0
    for row, loss in zip(some.X, found.losses, strict=True):
        i = int(np.argmin(np.abs(X - row)))
        others = np.arange(12) != i
        model = FunctionalRegressor(
            kernel=kernels[0],
            output_kernel=kernels[1],
            alpha=0.01 * weight.sum() / weight[others].sum(),  # as strong beside the sum
            quadrature="trapezoid",
            center=None,
            tol=1e-12,
        ).fit(X[others], y[others], theta, weight[others])
        squares = np.nansum(model.measure_ * (y[i] - model.predict(X[[i]])[0]) ** 2)
        assert loss == pytest.approx(0.5 * weight[i] * squares, rel=1e-3)


def test_neighbours_of_long_curves_are_grouped():
    theta = np.linspace(0.0, 1.0, 41)
    y = np.where(np.arange(41) < 32, theta, np.nan) * np.ones((20, 1)) + np.arange(20.0)[:, None]
    some = Pairs.of(np.arange(20.0)[:, None], as_curves(y, theta), np.ones(20))
    assert set(some.lengths) == {8}
    assert some.grouped  # a tenth apart
    assert some.are_far(Gaussian(0.099))
    assert not some.are_far(Gaussian(0.101))
    np.testing.assert_allclose(some.root**2, 4.0 / 41.0)
    np.testing.assert_allclose(some.points[:8], theta[:32].reshape(8, 4).mean(axis=1))


def test_only_curves_on_a_part_of_the_range_are_short():
    theta, random = np.linspace(0.0, 1.0, 30), np.random.default_rng(0)
    y = random.standard_normal((20, 30))
    assert not are_short(as_curves(y, theta), np.ones(20))
    gaps = np.where(random.uniform(size=y.shape) < 0.1, np.nan, y)
    assert not are_short(as_curves(gaps, theta), np.ones(20))
    y[:, 15:] = np.nan
    assert not are_short(as_curves(y, theta), np.ones(20))  # all of what is known of any curve
    y[0, 15:] = 0.0
    assert are_short(as_curves(y, theta), np.ones(20))


@pytest.mark.slow
@pytest.mark.parametrize("length", [0.2, 0.4])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_shapes_that_depend_on_rows_are_learned_from_short_windows(length, loss):
    """Learned from continued curves alone the errors were up to ten times as large."""
    X, pairs = windows(moving, length=length, noise=0.1, seed=3)
    rows, theta = np.linspace(0.05, 0.95, 15)[:, None], np.linspace(0.1, 0.9, 33)
    model = FunctionalRegressor(loss).fit(X, pairs)
    assert np.mean((model.predict(rows, theta) - moving(rows, theta)) ** 2) < 0.01
    assert model.kernel_ == model.learned_.kernel
    assert model.alpha_ == model.learned_.alpha
    assert 0.0 < model.learned_.criterion < 0.5
    assert "left out where they are observed" in model.learned_.message
    same = model.with_learned().fit(X, pairs)
    np.testing.assert_allclose(same.predict(rows, theta), model.predict(rows, theta), atol=1e-6)


@pytest.mark.slow
def test_weights_are_repetitions_and_neither_order_nor_units_count():
    X, pairs = windows(moving, n=40, length=0.3, noise=0.1)
    random = np.random.default_rng(0)
    counts, order = random.integers(0, 3, 40), random.permutation(40)
    rows, theta = np.linspace(0.05, 0.95, 5)[:, None], np.linspace(0.1, 0.9, 9)
    once = FunctionalRegressor().fit(X, pairs, sample_weight=counts)
    expected = once.predict(rows, theta)

    def same(X, chosen, weight=None, y=1.0, t=1.0):
        moved = [(t * own, y * values) for own, values in chosen]
        model = FunctionalRegressor().fit(X, moved, sample_weight=weight)
        np.testing.assert_allclose(model.predict(rows, t * theta) / y, expected, atol=1e-4)

    repeated = np.repeat(np.arange(40), counts)
    same(X[repeated], [pairs[i] for i in repeated])
    same(X[order], [pairs[i] for i in order], counts[order])
    same(X, pairs, counts, y=1e-6, t=365.0)


@pytest.mark.slow
def test_what_is_given_stays_and_outlying_curves_do_not_decide():
    X, pairs = windows(moving, length=0.3, noise=0.1)
    model = FunctionalRegressor(alpha=0.01, output_kernel=Gaussian(0.2)).fit(X, pairs)
    assert model.alpha_ == model.learned_.alpha == 0.01
    assert model.output_kernel_ == Gaussian(0.2)
    for i in range(0, 60, 10):
        pairs[i] = (pairs[i][0], pairs[i][1] + 30.0)
    model = FunctionalRegressor("huber", center="median").fit(X, pairs)
    assert "observed" not in model.learned_.message
