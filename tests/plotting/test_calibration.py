"""Calibration: shares counted by hand, a band that holds what it says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from fenchel import ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.datasets import load_engel
from fenchel.plotting import QuantileCalibrationDisplay


def test_shares_are_counted(ax):
    y = [1.0, 2.0, 3.0, 4.0]
    predictions = np.array([[0.0, 5.0], [2.0, 5.0], [9.0, 5.0], [3.0, 4.0]])
    display = QuantileCalibrationDisplay.from_predictions(y, predictions, levels=[0.5, 0.9], ax=ax)
    np.testing.assert_array_equal(display.observed, [0.5, 1.0])
    np.testing.assert_array_equal(display.below, [0.25, 0.75])
    np.testing.assert_array_equal(display.points_.get_xydata(), [[0.5, 0.5], [0.9, 1.0]])
    strokes = [path.vertices[:, 1].tolist() for path in display.ties_.get_paths()]
    assert strokes == [[0.25, 0.5], [0.75, 1.0]]


def test_levels_in_any_order_are_drawn_in_order(ax):
    y = np.arange(10.0)
    levels = [0.8, 0.1, 0.5]
    display = QuantileCalibrationDisplay.from_predictions(
        y, np.tile([7.5, 0.5, 4.5], (10, 1)), levels=levels, ax=ax
    )
    np.testing.assert_allclose(display.observed, levels)
    np.testing.assert_allclose(display.points_.get_xdata(), sorted(levels))
    np.testing.assert_allclose(display.points_.get_ydata(), sorted(levels))


def test_estimator_is_its_predictions(ax):
    X, y = load_engel(return_X_y=True, as_frame=True)
    model = QuantileRegressor([0.9, 0.1], alpha=1e-5).fit(X[::2], y[::2])
    display = QuantileCalibrationDisplay.from_estimator(model, X[1::2], y[1::2], ax=ax)
    predictions = model.predict(X[1::2])
    expected = [(y[1::2] <= predictions[:, j]).mean() for j in range(2)]
    np.testing.assert_allclose(display.observed, expected)
    assert display.n_samples == 117


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_band_holds_what_it_says(ax, confidence):
    levels, n = np.array([0.05, 0.3, 0.5, 0.9]), 120
    random = np.random.default_rng(0)
    quantiles = np.tile(norm.ppf(levels), (n, 1))
    inside = np.zeros(len(levels))
    repeats = 3000
    display = QuantileCalibrationDisplay(
        levels, levels, levels, n_samples=n, confidence=confidence
    )
    low, high = display.band(levels)
    for _ in range(repeats):
        observed = (random.normal(size=n)[:, None] <= quantiles).mean(axis=0)
        inside += (low <= observed) & (observed <= high)
    share = inside / repeats
    error = np.sqrt(confidence * (1 - confidence) / repeats)
    assert np.all(share > confidence - 3 * error)
    assert np.all(share < confidence + 0.08)  # a band of whole rows covers a little more
    display.plot(ax=ax)
    vertices = display.band_.get_paths()[0].vertices
    low, high = display.band(0.5)
    middle = vertices[np.isclose(vertices[:, 0], 0.5, atol=6e-4), 1]
    assert np.isclose(middle.min(), low, atol=0.01)
    assert np.isclose(middle.max(), high, atol=0.01)


@pytest.mark.slow
def test_expectiles_have_no_share(ax):
    X, y = load_engel(return_X_y=True)
    model = ExpectileRegressor([0.1, 0.9]).fit(X, y)
    with pytest.raises(ValueError, match="model of quantiles, got ExpectileRegressor"):
        QuantileCalibrationDisplay.from_estimator(model, X, y, ax=ax)
    with pytest.raises(ValueError, match=r"levels_, .*, got KernelRidge without levels_"):
        QuantileCalibrationDisplay.from_estimator(KernelRidge().fit(X, y), X, y, ax=ax)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"levels": [0.5, 0.9]}, "levels must name the 1 columns of predictions, got 2"),
        ({"levels": 1.5}, "levels must lie strictly between 0 and 1, got 1.5"),
        ({"levels": 0.5, "confidence": 95}, r"confidence must be a number in \(0, 1\), got 95"),
    ],
)
def test_bad_input(ax, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        QuantileCalibrationDisplay.from_predictions([1.0, 2.0], [1.0, 2.0], ax=ax, **options)
    with pytest.raises(ValueError, match="y must have 2 values, got 3"):
        QuantileCalibrationDisplay.from_predictions([1.0] * 3, [1.0, 2.0], levels=0.5, ax=ax)
