"""Curves with points of their own: centres, scores, forms, and predictions at any points."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from fenchel.functional import FunctionalRegressor, as_curves
from fenchel.functional._representation import spectrum_beyond_rounding
from fenchel.kernels import Gaussian, Laplacian
from functional_center import center as mean_curve


@pytest.fixture
def data():
    """Rows, pairs at distinct points, and the function that they are of."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 1))

    def truth(x, theta):
        return 5.0 + theta + x * np.sin(4.0 * theta)

    points = [np.sort(rng.uniform(size=8)) for _ in X]
    pairs = [
        (own, truth(x, own) + 0.02 * rng.standard_normal(8))
        for x, own in zip(X, points, strict=True)
    ]
    return X, pairs, truth


def make(**parameters):
    given = {"alpha": 1e-4, "output_kernel": Gaussian(0.3), "learn": False, **parameters}
    return FunctionalRegressor(**given)


@pytest.mark.parametrize("center", ["mean", "median"])
def test_the_centre_does_not_follow_single_curves(center, data):
    X, pairs, truth = data
    model = make(center=center).fit(X, pairs)
    whole = {"mean": np.mean, "median": np.median}[center](truth(X, model.grid_), axis=0)
    assert np.abs(model.center_ - whole).max() < 0.1  # of single curves it is 0.5
    assert model.support_.size == 40  # there is something left to learn
    theta = np.linspace(0.1, 0.9, 9)
    np.testing.assert_allclose(model.predict(X, theta), truth(X, theta), atol=0.1)


@pytest.mark.parametrize("center", [None, "mean"])
def test_scores_are_held_against_the_center_of_the_curves(center, data):
    X, pairs, _ = data
    model = make(center=center).fit(X[:30], pairs[:30])
    X, pairs = X[30:], pairs[30:]
    points = np.concatenate([pair[0] for pair in pairs])
    grid = np.unique(points)
    mean = mean_curve(grid, pairs, np.ones(10))[np.searchsorted(grid, points)].reshape(10, 8)
    left = sum(
        np.sum((own[1] - model.predict(x[None], own[0])[0]) ** 2)
        for x, own in zip(X, pairs, strict=True)
    )
    spread = sum(np.sum((own[1] - m) ** 2) for m, own in zip(mean, pairs, strict=True))
    assert model.score(X, pairs) == pytest.approx(1.0 - left / spread, rel=1e-9)
    assert 0.8 < model.score(X, pairs) < 1.0


def test_scores_tell_good_models_from_bad_ones(data):
    X, pairs, _ = data
    scores = [
        make(alpha=alpha, center="mean").fit(X, pairs).score(X, pairs) for alpha in (1e3, 1e-4)
    ]
    assert scores[0] == pytest.approx(0.0, abs=0.05)
    assert scores[1] > 0.9


@pytest.mark.parametrize(
    ("form", "outer"), [(tuple, list), (list, tuple), (np.array, list)], ids=lambda f: f.__name__
)
def test_pairs_in_any_sequence(form, outer, data):
    X, pairs, _ = data
    once = make().fit(X, pairs)
    given = outer(form([theta.tolist(), y.tolist()]) for theta, y in pairs)
    model = make().fit(X, given)
    np.testing.assert_array_equal(model.grid_, as_curves(given).grid)
    np.testing.assert_array_equal(model.predict(X), once.predict(X))
    assert model.score(X, given) == once.score(X, pairs)


@pytest.mark.parametrize("center", ["mean", "median"])
def test_where_nothing_is_observed_the_centre_is_interpolated(center):
    rng = np.random.default_rng(0)
    X, theta = rng.uniform(size=(20, 1)), np.linspace(0.0, 1.0, 11)
    whole = 100.0 + theta + X
    y = whole.copy()
    y[:, [4, 10]] = np.nan
    model = make(center=center).fit(X, y, theta)
    full = make(center=center).fit(X, whole, theta)
    np.testing.assert_allclose(model.center_[:10], full.center_[:10])
    assert model.center_[10] == model.center_[9]
    np.testing.assert_allclose(model.predict(X)[:, 4], whole[:, 4], atol=0.1)


def test_predictions_at_points_in_any_order(data):
    X, pairs, _ = data
    model = make(center="mean").fit(X, pairs)
    theta = np.array([0.7, 0.1, 0.4, 0.1])
    sorted_ones = model.predict(X, [0.1, 0.4, 0.7])
    np.testing.assert_allclose(model.predict(X, theta), sorted_ones[:, [2, 0, 1, 0]], rtol=1e-13)
    np.testing.assert_allclose(model.predict(X, 0.4), sorted_ones[:, 1], rtol=1e-13)
    assert model.predict(X, [0.4]).shape == (40, 1)


def test_rows_of_weight_zero_leave_points_that_no_other_curve_has(data):
    X, pairs, _ = data
    weight = np.ones(40)
    weight[[3, 17]] = 0.0
    kept = np.flatnonzero(weight)
    rule = {"quadrature": "trapezoid", "center": None, "tol": 1e-9}
    with_zero = make(**rule).fit(X, pairs, sample_weight=weight)
    without = make(**rule).fit(X[kept], [pairs[i] for i in kept])
    theta = np.linspace(0.1, 0.9, 5)
    np.testing.assert_allclose(with_zero.predict(X, theta), without.predict(X, theta), atol=1e-8)


@pytest.mark.parametrize("quadrature", ["monte-carlo", "trapezoid"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_weights_are_counts(data, quadrature, loss):
    """Curves of weight zero bring neither points, nor their number to the mean of numbers."""
    X, pairs, _ = data
    weight = np.array([1.0, 2.0, 0.0, 3.0] * 10)
    many = [(theta[:3], y[:3]) if i % 4 == 3 else (theta, y) for i, (theta, y) in enumerate(pairs)]
    rows = np.repeat(np.arange(40), weight.astype(int))
    model = FunctionalRegressor(loss, quadrature=quadrature, learn=False, alpha=1e-2, tol=1e-10)
    weighted = clone(model).fit(X, many, sample_weight=weight)
    repeated = clone(model).fit(X[rows], [many[i] for i in rows])
    np.testing.assert_array_equal(weighted.grid_, repeated.grid_)
    theta = np.linspace(0.1, 0.9, 5)
    expected = repeated.predict(X, theta)
    np.testing.assert_allclose(weighted.predict(X, theta), expected, atol=1e-6)
    score = repeated.score(X[rows], [many[i] for i in rows])
    assert abs(weighted.score(X, many, sample_weight=weight) - score) < 1e-8


def test_too_few_pairs_for_the_rows_and_their_weights(data):
    X, pairs, _ = data
    with pytest.raises(ValueError, match="one entry for each of the 40 rows of X, got 39"):
        make().fit(X, pairs[:39], sample_weight=np.ones(40))


def test_the_first_rows_are_tried_on_the_points_of_all(data):
    """Seventeen rows or more are learned from: the first of them have not all points."""
    X, pairs, _ = data
    model = FunctionalRegressor(quadrature="trapezoid")
    with np.errstate(all="raise"):
        model.fit(X[:17], pairs[:17])
    assert model.score(X[:17], pairs[:17]) > 0.9


@pytest.mark.parametrize(("kernel", "few"), [(Gaussian(0.1), True), (Laplacian(0.1), False)])
@pytest.mark.parametrize("size", [50, 400])
def test_few_eigenvectors_of_many_points_are_the_kernel(kernel, few, size):
    rng = np.random.default_rng(0)
    points, root = np.sort(rng.uniform(size=size)), np.sqrt(rng.uniform(0.1, 1.0, size))
    matrix = root[:, None] * kernel(points[:, None]) * root
    values, vectors = spectrum_beyond_rounding(matrix)
    assert (len(values) < size) == (few and size == 400)
    assert np.all(np.diff(values) >= 0.0)
    largest = np.linalg.eigvalsh(matrix)
    np.testing.assert_allclose(values[-20:], largest[-20:], atol=1e-13 * largest[-1])
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-12)
    np.testing.assert_allclose((vectors * values) @ vectors.T, matrix, atol=1e-13 * largest[-1])


def test_the_measure_has_a_row_for_each_curve(data):
    X, pairs, _ = data
    weight = np.ones(len(X))
    weight[3] = 0.0
    model = FunctionalRegressor(learn=False, quadrature="trapezoid")
    model.fit(X, pairs, sample_weight=weight)
    assert model.measure_.shape == model.dual_coef_.shape
    assert not model.measure_[3].any()
    for row in (2, 4):
        own = as_curves([pairs[row]], quadrature="trapezoid")
        np.testing.assert_allclose(model.measure_[row, model.measure_[row] > 0.0], own.measure[0])
        assert np.isin(own.grid, model.grid_[model.measure_[row] > 0.0]).all()


def test_a_quadrature_array_is_used_for_scores_of_pairs_at_its_points():
    rng = np.random.default_rng(0)
    X, theta = rng.normal(size=(30, 1)), np.linspace(0.0, 1.0, 5)
    Y = np.sin(X + 3.0 * theta) + 0.3 * rng.normal(size=(30, 5))
    weights = np.array([1.0, 1.0, 1.0, 1.0, 10.0]) / 14.0
    model = FunctionalRegressor(quadrature=weights, learn=False).fit(X, Y, theta)
    pairs = [(theta, y) for y in Y]
    assert model.score(X, pairs) == pytest.approx(model.score(X, Y, theta), rel=1e-12)
    elsewhere = model.score(X, Y[:, :3], theta[:3])
    assert model.score(X, [(theta[:3], y[:3]) for y in Y]) == pytest.approx(elsewhere, rel=1e-12)


def test_a_quadrature_array_has_no_weights_for_points_that_are_left_out():
    X = np.array([[0.0], [1.0], [2.0]])
    pairs = [([0.0, 1.0], [2.0, 3.0])] * 2 + [([0.5], [1.0])]
    model = FunctionalRegressor(quadrature=[1.0, 2.0], learn=False)
    model.fit(X, pairs, sample_weight=[1.0, 1.0, 0.0])
    np.testing.assert_array_equal(model.grid_, [0.0, 1.0])


def test_a_column_of_a_data_frame_holds_curves_or_pairs(data):
    X, pairs, truth = data
    model = make(center="mean").fit(X, pairs)
    column = pd.Series(pairs, index=range(100, 140))
    same = make(center="mean").fit(X, column)
    np.testing.assert_array_equal(same.predict(X[:3]), model.predict(X[:3]))
    assert same.score(X, column) == model.score(X, pairs)
    grid = np.linspace(0.0, 1.0, 7)
    curves = truth(X, grid)
    for cells in (list(curves), curves.tolist()):
        column = pd.Series(cells)
        same, model = make().fit(X, column), make().fit(X, curves)
        np.testing.assert_array_equal(same.predict(X), model.predict(X))
        assert same.score(X, column) == model.score(X, curves)
    with pytest.raises(TypeError, match="Y must be an array of numbers, a list of pairs"):
        make().fit(X, pd.Series([*curves[:-1], curves[-1, :3]]))
