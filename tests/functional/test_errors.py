"""MSE and NMSE of curves against their definitions, in every form of curves."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.functional import FunctionalRegressor, as_curves, curve_mse, curve_nmse


@pytest.fixture
def curves():
    rng = np.random.default_rng(0)
    return rng.standard_normal((6, 5)), rng.standard_normal((6, 5)), np.arange(1.0, 7.0)


def by_definition(y, predicted, weight):
    """MSE and the mean number of points, curve by curve, from lists of their values."""
    total = sum(weight)
    sums = [
        sum((a - b) ** 2 for a, b in zip(*pair, strict=True))
        for pair in zip(y, predicted, strict=True)
    ]
    mse = sum(w * s for w, s in zip(weight, sums, strict=True)) / total
    return mse, sum(w * len(row) for w, row in zip(weight, y, strict=True)) / total


@pytest.mark.parametrize("weighted", [False, True])
def test_arrays_are_compared_as_defined(weighted, curves):
    y, predicted, weight = curves
    weight = weight if weighted else np.ones(6)
    mse, points = by_definition(y, predicted, weight)
    assert points == 5.0
    given = {"sample_weight": weight} if weighted else {}
    assert curve_mse(y, predicted, **given) == pytest.approx(mse, rel=1e-13)
    assert curve_nmse(y, predicted, **given) == pytest.approx(mse / 5.0, rel=1e-13)
    if not weighted:
        assert curve_nmse(y, predicted) == pytest.approx(np.mean((y - predicted) ** 2), rel=1e-13)


def test_what_is_not_observed_counts_for_nothing(curves):
    y, predicted, weight = curves
    seen = np.random.default_rng(1).uniform(size=y.shape) < 0.6
    seen[:, 0] = True
    gaps = np.where(seen, y, np.nan)
    rows = [[row[s].tolist() for row, s in zip(a, seen, strict=True)] for a in (y, predicted)]
    mse, points = by_definition(*rows, weight)
    assert points < 5.0
    theta = np.linspace(0.0, 1.0, 5)
    pairs = [[(theta[s], row[s]) for row, s in zip(a, seen, strict=True)] for a in (y, predicted)]
    there = np.where(seen, predicted, np.nan)
    for given in ((gaps, predicted), (gaps, there), (pairs[0], predicted), (pairs[0], pairs[1])):
        assert curve_mse(*given, sample_weight=weight) == pytest.approx(mse, rel=1e-13)
        assert curve_nmse(*given, sample_weight=weight) == pytest.approx(mse / points, rel=1e-13)


def test_predictions_of_a_model_of_pairs():
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(20, 1))
    pairs = [(theta := np.sort(rng.uniform(size=4)), np.sin(5.0 * theta * x)) for x in X]
    model = FunctionalRegressor(alpha=1e-4, learn=False).fit(X, pairs)
    own = [
        (theta, model.predict(x[None], theta)[0]) for x, (theta, _) in zip(X, pairs, strict=True)
    ]
    mse = np.mean([np.sum((a[1] - b[1]) ** 2) for a, b in zip(pairs, own, strict=True)])
    assert curve_mse(pairs, own) == pytest.approx(mse, rel=1e-12)
    at_all = model.predict(X, as_curves(pairs).grid)
    assert curve_mse(pairs, at_all) == pytest.approx(mse, rel=1e-12)
    assert curve_nmse(pairs, at_all) == pytest.approx(mse / 4.0, rel=1e-12)


def test_one_point():
    assert curve_mse([0.0, 1.0], [2.0, 1.0]) == curve_nmse([0.0, 1.0], [2.0, 1.0]) == 2.0


def test_fdatagrids(curves):
    skfda = pytest.importorskip("skfda", reason="FDataGrid is of scikit-fda")
    y, predicted, _ = curves
    theta = np.linspace(2.0, 3.0, 5)
    functions = [skfda.FDataGrid(data_matrix=a, grid_points=theta) for a in (y, predicted)]
    assert curve_mse(*functions) == curve_mse(y, predicted)
    assert curve_mse(functions[0], predicted) == curve_mse(y, predicted)
    elsewhere = skfda.FDataGrid(data_matrix=predicted, grid_points=theta + 1.0)
    with pytest.raises(ValueError, match=r"^y_pred must be .* got 6 curves at 5 other points$"):
        curve_mse(functions[0], elsewhere)


@pytest.mark.parametrize("metric", [curve_mse, curve_nmse])
def test_bad_input(metric, curves):
    y, predicted, _ = curves
    for wrong in (predicted[:4], predicted[:, :3]):
        with pytest.raises(ValueError, match=r"^y_pred must be of the 6 curves of y_true at"):
            metric(y, wrong)
    holes = predicted.copy()
    holes[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"^y_pred must be finite wherever y_true is observed"):
        metric(y, holes)
    with pytest.raises(ValueError, match="sample_weight"):
        metric(y, predicted, sample_weight=-np.ones(6))
    with pytest.raises(ValueError, match="sample_weight"):
        metric(y, predicted, sample_weight=np.ones(5))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_curves_that_are_none_are_called_by_their_argument(value, curves):
    y, predicted, _ = curves
    bad = predicted.copy()
    bad[1] = value
    for arguments, name in (((y, bad), "y_pred"), ((bad, y), "y_true")):
        with pytest.raises(ValueError, match=name) as caught:
            curve_mse(*arguments)
        assert "Y" not in str(caught.value)
    with pytest.raises((TypeError, ValueError), match=r"^y_pred must be an array of numbers"):
        curve_mse(y, "curves")


def test_points_where_pairs_are_nan_need_no_predictions():
    y = [([0.0, 0.5, 1.0], [1.0, np.nan, 3.0]), ([0.0, 1.0], [1.0, 2.0])]
    predicted = [([0.0, 0.5, 1.0], [1.0, 2.0, 5.0])] * 2
    assert curve_mse(y, predicted) == pytest.approx(
        curve_mse([y[0], y[1]], [([0.0, 1.0], [1.0, 5.0])] * 2)
    )
    with pytest.raises(ValueError, match="2 points"):
        curve_mse(y, [([0.0, 0.5], [1.0, 2.0])] * 2)
