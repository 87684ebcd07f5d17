"""Curves that are seen on a part of the range: their center, and what is learned from them."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.functional import FunctionalRegressor, as_curves
from fenchel.functional._gaps import center_of, common_measure, filled_in
from functional_center import center, continued


def windows(truth, *, n=60, m=8, length=0.4, noise=0.05, seed=0):
    """Rows, and curves on windows of a length somewhere in [0, 1]."""
    random = np.random.default_rng(seed)
    X, pairs = random.uniform(size=(n, 1)), []
    for x in X[:, 0]:
        theta = np.sort(random.uniform() * (1.0 - length) + length * random.uniform(size=m))
        pairs.append((theta, truth(x, theta) + noise * random.standard_normal(m)))
    return X, pairs


def line(x, theta):
    return 10.0 * theta


def wave(x, theta):
    return np.sin(2.0 * np.pi * (theta + 0.5 * x)) + 10.0 * theta


def shifted(x, theta):
    return 5.0 * x + 3.0 * theta**2


def error(model, truth):
    rows, theta = np.linspace(0.05, 0.95, 15)[:, None], np.linspace(0.1, 0.9, 33)
    return np.sqrt(np.mean((model.predict(rows, theta) - truth(rows, theta)) ** 2))


@pytest.mark.parametrize("length", [0.3, 1.0])
def test_the_center_is_its_definition(length):
    _, pairs = windows(wave, n=15, m=5, length=length, noise=0.3)
    weight = np.arange(1.0, 16.0)
    curves = as_curves(pairs, sample_weight=weight)
    expected = center(curves.grid, pairs, weight)
    np.testing.assert_allclose(center_of("mean", curves, weight), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("which", ["mean", "median"])
@pytest.mark.parametrize(("truth", "most"), [(line, 0.05), (shifted, 0.4)])
def test_the_center_of_windows_is_that_of_whole_curves(which, truth, most):
    """Whether curves differ in level or not; lines were 1.3 off, as each was taken as flat."""
    X, pairs = windows(truth, n=100)
    curves = as_curves(pairs)
    whole = getattr(np, which)([truth(x, curves.grid) for x in X[:, 0]], axis=0)
    found = center_of(which, curves, np.ones(100))
    assert np.sqrt(np.mean((found - whole) ** 2)) < most


@pytest.mark.slow
@pytest.mark.parametrize(("truth", "most"), [(line, 0.05), (wave, 0.25), (shifted, 0.25)])
@pytest.mark.parametrize("which", ["mean", "median", None])
def test_whole_curves_are_predicted_from_windows(which, truth, most):
    X, pairs = windows(truth)
    model = FunctionalRegressor(center=which).fit(X, pairs)
    assert error(model, truth) < (most if which else 2.0 * most + 0.2)


def test_pairs_arrays_and_complete_curves_agree():
    random = np.random.default_rng(0)
    theta, values = np.linspace(0.0, 2.0, 21), random.standard_normal((20, 21))
    values[:, 0] += 3.0
    gone = (random.uniform(size=values.shape) < 0.4) & (np.arange(21) % 20 > 0)
    for y in (values, np.where(gone, np.nan, values)):
        seen = ~np.isnan(y)
        pairs = [(theta[s], row[s]) for s, row in zip(seen, y, strict=True)]
        for which in ("mean", "median"):
            one, other = (
                center_of(which, curves, np.ones(20))
                for curves in (as_curves(y, theta), as_curves(pairs))
            )
            np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_array_equal(
        center_of("mean", as_curves(values, theta), np.ones(20)), values.sum(axis=0) / 20.0
    )


def test_one_value_less_moves_the_center_little():
    """There is no share of the range at which another rule begins."""
    theta, random = np.linspace(0.0, 1.0, 41), np.random.default_rng(0)
    y = 10.0 * theta + random.uniform(size=(50, 1)) + 0.01 * random.standard_normal((50, 41))
    whole = center_of("mean", as_curves(y, theta), np.ones(50))
    y[0, -1] = np.nan
    found = center_of("mean", as_curves(y, theta), np.ones(50))
    assert np.abs(found - whole).max() < 1e-3
    np.testing.assert_array_equal(found[:-1], whole[:-1])


@pytest.mark.parametrize("which", ["mean", "median"])
def test_units_order_and_counts_do_not_matter(which):
    _, pairs = windows(wave, noise=0.3)
    random = np.random.default_rng(1)
    counts, order = random.integers(0, 3, 60), random.permutation(60)

    def found(chosen, weight, **scales):
        theta, y, zero = (scales.get(name, d) for name, d in (("t", 1.0), ("y", 1.0), ("z", 0.0)))
        moved = [(theta * own + zero, y * (values + zero)) for own, values in chosen]
        curves = as_curves(moved, sample_weight=weight)
        return center_of(which, curves, np.asarray(weight, float)) / y - zero

    once = found(pairs, counts)
    kept = [pairs[i] for i in order]
    np.testing.assert_allclose(found(kept, counts[order]), once, rtol=1e-9)
    repeated = [pairs[i] for i in np.repeat(np.arange(60), counts)]
    np.testing.assert_allclose(found(repeated, np.ones(len(repeated))), once, rtol=1e-9)
    np.testing.assert_allclose(found(pairs, 1e-200 * counts), once, rtol=1e-9)
    np.testing.assert_allclose(found(pairs, counts, t=365.0, y=1e-6), once, rtol=1e-9)
    np.testing.assert_allclose(found(pairs, counts, z=1e8), once, atol=1e-5)


def test_medians_do_not_follow_outlying_curves():
    _, pairs = windows(wave)
    clean = as_curves(pairs)
    for i in range(0, 60, 15):
        pairs[i] = (pairs[i][0], 1e8 * (1.0 + pairs[i][1]))
    moved = center_of("median", as_curves(pairs), np.ones(60))
    assert np.abs(moved - center_of("median", clean, np.ones(60))).max() < 0.5


@pytest.mark.parametrize("which", ["mean", "median"])
def test_few_points(which):
    """Curves of one point, one point for all, two windows that do not meet, and a single curve."""

    def found(pairs):
        curves = as_curves(pairs)
        return curves.grid, center_of(which, curves, np.ones(len(pairs)))

    random = np.random.default_rng(0)
    points = np.sort(random.uniform(size=40))
    grid, middle = found([([point], [10.0 * point]) for point in points])
    np.testing.assert_allclose(middle, 10.0 * grid, atol=0.3)
    np.testing.assert_allclose(
        found([([0.5], [y]) for y in (1.0, 2.0, 6.0)])[1], 3.0 if which == "mean" else 2.0
    )
    own = np.linspace(0.0, 0.2, 5)
    grid, middle = found([(own + at, 10.0 * (own + at)) for at in (0.0, 0.8) * 5])
    np.testing.assert_allclose(middle, 10.0 * grid, atol=1e-6)
    np.testing.assert_allclose(found([(own, own**2)])[1], own**2, atol=1e-12)
    grid, middle = found([([0.0, 1.0], [1.0, 2.0]), ([0.0], [3.0])])
    np.testing.assert_allclose(middle, [2.0, 3.0], atol=1e-3)  # level and slope


def test_curves_to_learn_from_are_complete_with_the_measure_of_what_was_observed():
    _, pairs = windows(wave, n=12, m=4)
    curves, weight = as_curves(pairs), np.arange(1.0, 13.0)
    assert curves.measure.sum() > 10.0  # of all points: a curve has a tenth of them
    counts = [weight[~np.isnan(column)].sum() for column in curves.values.T]
    expected = curves.measure * counts / weight.sum()
    for which in ("mean", "median", None):
        found = filled_in(which, curves, weight)
        trend = center_of(which or "mean", curves, weight)
        whole = continued(curves.grid, pairs, trend) - (trend if which else 0.0)
        np.testing.assert_allclose(found.values, whole, atol=1e-12)
        np.testing.assert_allclose(found.measure, expected)
    own = as_curves(pairs, quadrature="trapezoid")
    np.testing.assert_allclose(common_measure(own, weight).sum(), 1.0)


@pytest.mark.slow
def test_points_that_are_not_observed_do_not_count_for_alpha():
    """On a grid of ten times the points, of which each curve has as many as before."""
    random = np.random.default_rng(0)
    X, alphas = random.uniform(size=(40, 1)), []
    for m in (10, 100):
        theta = np.linspace(0.0, 1.0, m)
        y = wave(X, theta) + 0.1 * random.standard_normal((40, m))
        if m == 100:
            for row in y:
                row[np.setdiff1d(np.arange(m), random.choice(m, 10, replace=False))] = np.nan
        pairs = [(theta[seen], row[seen]) for seen, row in zip(~np.isnan(y), y, strict=True)]
        alphas.append(FunctionalRegressor(learn=False).fit(X, pairs).alpha_)
    assert alphas[1] == pytest.approx(alphas[0], rel=0.05)


@pytest.mark.slow
def test_many_pairs():
    random = np.random.default_rng(0)
    starts = random.integers(0, 500, 10_000)
    y = np.full((10_000, 600), np.nan)
    for row, start in zip(y, starts, strict=True):
        own = start + random.choice(100, 10, replace=False)
        row[own] = 10.0 * own
    found = center_of("mean", as_curves(y, np.arange(600.0)), np.ones(10_000))
    np.testing.assert_allclose(found[20:580], 10.0 * np.arange(20, 580), atol=5.0)
