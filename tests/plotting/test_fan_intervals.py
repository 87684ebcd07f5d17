"""The fan of models that predict a spread: their intervals, compared by their data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import SVR, KernelRidge
from fenchel.datasets import load_engel
from fenchel.model_selection import ConformalQuantileRegressor, ConformalRegressor
from fenchel.plotting import FanDisplay
from fenchel.positive import HeteroscedasticRegressor


@pytest.fixture(scope="module")
def engel():
    return load_engel(return_X_y=True, as_frame=True)


def names_in(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def sides_of(band, x):
    """The lowest and the highest corner of a band at x."""
    (path,) = band.get_paths()
    at_x = path.vertices[np.isclose(path.vertices[:, 0], x), 1]
    return at_x.min(), at_x.max()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "coverage", "line", "name"),
    [
        (ConformalQuantileRegressor(coverage=0.7), 0.7, "median", "70 % interval"),
        (ConformalRegressor(KernelRidge(), method="cv+", cv=3), 0.9, "mean", "90 % interval"),
        (ConformalRegressor(SVR(epsilon=5.0)), 0.9, "prediction", "90 % interval"),
        (HeteroscedasticRegressor(), 0.8, "mean", "80 % interval"),
    ],
)
def test_intervals_are_a_band_around_the_prediction(model, coverage, line, name, engel, ax):
    X, y = engel
    model = make_pipeline(StandardScaler(), model).fit(X, y)
    display = FanDisplay.from_estimator(model, X, y, ax=ax)
    assert names_in(ax) == [line, name, "data"]
    (band,) = display.bands_
    for k in (0, 150, 299):
        row = pd.DataFrame({"income": [display.grid[k]]})
        (ends,) = model[-1].predict_interval(model[:-1].transform(row), coverage)
        np.testing.assert_allclose(sides_of(band, display.grid[k]), ends, rtol=1e-9)
        np.testing.assert_allclose(display.curves[k, 0], model.predict(row)[0], rtol=1e-9)
    low, high = ax.get_ylim()
    assert low <= display.interval.min()
    assert display.interval.max() <= high


@pytest.mark.parametrize(("side", "column"), [("lower", 0), ("upper", 1)])
def test_one_sided_intervals_have_one_end(side, column, engel, ax):
    X, y = engel
    model = ConformalRegressor(KernelRidge(), side=side, coverage=0.8).fit(X, y)
    display = FanDisplay.from_estimator(model, X, y, ax=ax)
    assert names_in(ax) == ["mean", f"{side} end of the 80 % interval", "data"]
    (end,) = display.ends_
    rows = pd.DataFrame({"income": display.grid})
    np.testing.assert_allclose(end.get_ydata(), model.predict_interval(rows)[:, column])
    assert display.bands_ == []


def test_infinite_intervals_are_said_and_not_drawn(engel, ax):
    X, y = engel
    with pytest.warns(UserWarning, match="every interval is infinitely wide"):
        model = ConformalRegressor(KernelRidge(), coverage=0.999).fit(X, y)
    display = FanDisplay.from_estimator(model, X, y, ax=ax)
    assert (display.bands_, display.ends_) == ([], [])
    assert ax.get_title(loc="left") == "the intervals are infinitely wide"


@pytest.mark.slow
def test_bands_are_averaged_as_the_prediction_is(ax):
    random = np.random.default_rng(5)
    X = random.uniform(size=(80, 2))
    y = X[:, 0] + (0.1 + X[:, 1]) * random.normal(size=80)
    model = ConformalQuantileRegressor(coverage=0.8).fit(X, y)
    display = FanDisplay.from_estimator(model, X, y, ax=ax)
    for k in (0, 299):  # where the coarser grid of the band has points as well
        rows = np.column_stack([np.full(80, display.grid[k]), X[:, 1]])
        ends = model.predict_interval(rows).mean(axis=0)
        np.testing.assert_allclose(display.interval[k], ends, rtol=1e-9)
    fine = FanDisplay.from_estimator(model, X, y, grid_resolution=40, ax=ax)
    for points, ends in zip(fine.grid, fine.interval, strict=True):
        rows = np.column_stack([np.full(80, points), X[:, 1]])
        np.testing.assert_allclose(ends, model.predict_interval(rows).mean(axis=0), rtol=1e-9)


def test_intervals_that_cannot_be_had_leave_the_line(engel, ax):
    X, y = engel
    weighted = ConformalRegressor(KernelRidge()).fit(X, y, sample_weight=np.ones(len(y)))
    assert FanDisplay.from_estimator(weighted, X, y, ax=ax).bands_ == []
    logarithms = TransformedTargetRegressor(
        ConformalRegressor(KernelRidge()), func=np.log, inverse_func=np.exp
    ).fit(X, y)
    assert FanDisplay.from_estimator(logarithms, X, y, ax=ax).bands_ == []
