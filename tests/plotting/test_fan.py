"""The fan, compared by its data and not by its pixels."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.datasets import load_engel
from fenchel.plotting import FanDisplay

LEVELS = [0.9, 0.1, 0.5, 0.25, 0.75]


@pytest.fixture(scope="module")
def engel():
    X, y = load_engel(return_X_y=True, as_frame=True)
    return QuantileRegressor(LEVELS, alpha=1e-5).fit(X, y), X, y


@pytest.fixture(scope="module")
def mixed():
    """Three features: a word, and two numbers; the second number is what matters."""
    random = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "colour": random.choice(["red", "blue", "blue"], 80),
            "size": random.uniform(size=80),
            "weight": random.uniform(5, 9, size=80),
            "flag": random.uniform(size=80) < 0.7,
        }
    )
    y = pd.Series(X["weight"] + (X["colour"] == "red") + 0.1 * X["size"], name="price")
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer(
        [("c", encode, ["colour", "flag"]), ("n", "passthrough", ["size", "weight"])]
    )
    return make_pipeline(columns, QuantileRegressor([0.2, 0.8], alpha=1e-4)).fit(X, y), X, y


def test_curves_are_the_predictions(engel, ax):
    model, X, y = engel
    display = FanDisplay.from_estimator(model, X, y, ax=ax, grid_resolution=50)
    grid = np.linspace(X["income"].min(), X["income"].max(), 50)
    expected = model.predict(pd.DataFrame({"income": grid}))
    assert len(display.lines_) == len(LEVELS)
    for j, line in enumerate(display.lines_):
        np.testing.assert_allclose(line.get_xdata(), grid)
        np.testing.assert_allclose(line.get_ydata(), expected[:, j])
        assert line.get_label() == f"{100 * LEVELS[j]:g} %"
    points = np.asarray(display.points_.get_offsets())
    np.testing.assert_array_equal(points, np.column_stack([X["income"], y]))
    assert display.ax_ is ax
    assert display.figure_ is ax.figure


def test_bands_lie_between_symmetric_levels(engel, ax):
    model, X, y = engel
    display = FanDisplay.from_estimator(model, X, y, ax=ax)
    assert len(display.bands_) == 2
    for band, (low, high) in zip(display.bands_, [(1, 0), (3, 4)], strict=True):
        (path,) = band.get_paths()
        lower, upper = display.curves[:, low], display.curves[:, high]
        found = np.unique(np.round(path.vertices[:, 1], 6))
        wanted = np.unique(np.round(np.concatenate([lower, upper]), 6))
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_curves_are_told_apart_in_grey_and_named_from_the_top(engel, ax):
    model, X, y = engel
    display = FanDisplay.from_estimator(model, X, y, ax=ax)
    styles = {j: line.get_linestyle() for j, line in enumerate(display.lines_)}
    dashes = [line._unscaled_dash_pattern[1] for line in display.lines_]
    assert styles[2] == "-"
    assert dashes[0] == dashes[1] != dashes[3] == dashes[4]
    colours = [line.get_color() for line in display.lines_]
    assert colours[0] == colours[4] != colours[1] == colours[3]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["90 %", "75 %", "50 %", "25 %", "10 %", "data"]
    assert ax.get_legend().get_title().get_text() == "quantiles"


def test_labels_of_axes(engel, ax):
    model, X, y = engel
    FanDisplay.from_estimator(model, X, y, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")) == (
        "income",
        "foodexp",
        "",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [SVR(epsilon=5.0), KernelRidge(), SVR(epsilon=5.0, kernel="laplacian")]
)
def test_one_curve_without_levels(model, engel, ax):
    _, X, y = engel
    model = model.fit(X.to_numpy(), y.to_numpy())
    display = FanDisplay.from_estimator(model, X.to_numpy(), y.to_numpy(), ax=ax)
    (line,) = display.lines_
    np.testing.assert_allclose(line.get_ydata(), model.predict(line.get_xdata()[:, None]))
    assert display.bands_ == []
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "y")


def test_expectiles_and_odd_levels(engel, ax):
    _, X, y = engel
    model = ExpectileRegressor([0.1, 0.4], alpha=1e-4).fit(X, y)
    display = FanDisplay.from_estimator(model, X, y, ax=ax)
    assert len(display.lines_) == 2
    assert display.bands_ == []
    assert ax.get_legend().get_title().get_text() == "expectiles"


def test_one_of_several_outputs(engel, ax):
    _, X, y = engel
    both = np.column_stack([y, -2.0 * y])
    model = KernelRidge().fit(X, both)
    display = FanDisplay.from_estimator(model, X, both, output=1, ax=ax)
    (line,) = display.lines_
    rows = pd.DataFrame({"income": line.get_xdata()})
    np.testing.assert_allclose(line.get_ydata(), model.predict(rows)[:, 1])
    np.testing.assert_array_equal(np.asarray(display.points_.get_offsets())[:, 1], both[:, 1])


def test_other_features_are_held_at_typical_values(mixed, ax):
    pipeline, X, y = mixed
    display = FanDisplay.from_estimator(
        pipeline, X, y, feature="weight", kind="typical", ax=ax, grid_resolution=20
    )
    rows = pd.DataFrame(
        {
            "colour": "blue",
            "size": np.median(X["size"]),
            "weight": np.linspace(X["weight"].min(), X["weight"].max(), 20),
            "flag": True,
        }
    )
    np.testing.assert_allclose(display.curves, pipeline.predict(rows))
    assert np.ptp(display.curves[:, 0]) > 1.0
    note = ax.get_title(loc="left")
    assert note == f"at colour = blue, size = {np.median(X['size']):.4g}, flag = True"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("weight", "price")


def test_default_feature_is_the_first_number(mixed, ax):
    pipeline, X, y = mixed
    FanDisplay.from_estimator(pipeline, X, y, ax=ax)
    assert ax.get_xlabel() == "size"


def test_arrays_and_many_features(ax):
    X = np.random.default_rng(0).uniform(size=(50, 6))
    model = QuantileRegressor([0.5]).fit(X, X[:, 3])
    options = {"feature": 3, "kind": "typical", "grid_resolution": 9}
    display = FanDisplay.from_estimator(model, X, X[:, 3], ax=ax, **options)
    rows = np.tile(np.median(X, axis=0), (9, 1))
    rows[:, 3] = np.linspace(X[:, 3].min(), X[:, 3].max(), 9)
    np.testing.assert_allclose(display.curves[:, 0], model.predict(rows))
    assert "the other 5 features at their median" in ax.get_title(loc="left")


@pytest.mark.parametrize(
    ("feature", "sentence"),
    [
        ("colour", "feature must be numeric to draw along it, got 'colour'"),
        ("shape", "feature must be one of colour, size, weight, flag, got 'shape'"),
        (9, r"feature must be in 0\.\.3, got 9"),
        (0, "must be numeric .* got 'colour'"),
    ],
)
def test_bad_feature(mixed, ax, feature, sentence):
    pipeline, X, y = mixed
    with pytest.raises(ValueError, match=sentence):
        FanDisplay.from_estimator(pipeline, X, y, feature=feature, ax=ax)


def test_without_targets(engel, ax):
    model, X, _ = engel
    display = FanDisplay.from_estimator(model, X, ax=ax, target_name="food")
    assert display.points_ is None
    assert ax.get_ylabel() == "food"


@pytest.mark.slow
def test_picture_file(engel, ax, tmp_path):
    model, X, y = engel
    FanDisplay.from_estimator(model, X, y, ax=ax).figure_.savefig(tmp_path / "fan.png")
    assert (tmp_path / "fan.png").read_bytes().startswith(b"\x89PNG")
    image = np.asarray(ax.figure.canvas.buffer_rgba())
    assert len(np.unique(image.reshape(-1, 4), axis=0)) > 20


def test_axes_given_leave_pyplot_alone(engel, ax, monkeypatch):
    model, X, y = engel
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    FanDisplay.from_estimator(model, X, y, ax=ax)


def test_without_axes_a_new_figure_is_made(engel, monkeypatch):
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    model, X, y = engel
    display = FanDisplay.from_estimator(model, X, y)
    try:
        assert display.figure_.number in plt.get_fignums()
    finally:
        plt.close(display.figure_)


def test_without_matplotlib(engel, monkeypatch):
    model, X, y = engel
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'fenchel\[plot\]'"):
        FanDisplay.from_estimator(model, X, y)


def test_average_is_the_mean_prediction_over_rows(mixed, ax):
    pipeline, X, y = mixed
    display = FanDisplay.from_estimator(pipeline, X, y, feature="weight", ax=ax, grid_resolution=7)
    for value, found in zip(display.grid, display.curves, strict=True):
        expected = pipeline.predict(X.assign(weight=value)).mean(axis=0)
        np.testing.assert_allclose(found, expected)
    assert ax.get_title(loc="left") == (
        "averaged over the other features of 80 rows, points adjusted for them"
    )


def test_average_agrees_with_scikit_learn(ax):
    from sklearn.inspection import partial_dependence

    X = np.random.default_rng(1).uniform(size=(60, 3))
    model = KernelRidge(alpha=1e-3, learn=False).fit(X, X[:, 0] * X[:, 1])
    display = FanDisplay.from_estimator(model, X, feature=1, kind="average", ax=ax)
    theirs = partial_dependence(
        model, X, [1], grid_resolution=300, percentiles=(0, 1), kind="average", method="brute"
    )
    # scikit-learn takes the 60 values themselves, as they are fewer than 300
    np.testing.assert_allclose(
        np.interp(theirs["grid_values"][0], display.grid, display.curves[:, 0]),
        theirs["average"][0],
        rtol=1e-3,
    )


@pytest.mark.slow
def test_average_over_a_sample_of_rows(ax):
    X = np.random.default_rng(1).uniform(size=(500, 2))
    model = KernelRidge().fit(X, X[:, 0])
    options = {"kind": "average", "grid_resolution": 5, "subsample": 30, "ax": ax}
    first = FanDisplay.from_estimator(model, X, random_state=3, **options)
    assert ax.get_title(loc="left").endswith("30 rows")
    again = FanDisplay.from_estimator(model, X, random_state=3, **options)
    other = FanDisplay.from_estimator(model, X, random_state=4, **options)
    np.testing.assert_array_equal(first.curves, again.curves)
    assert np.abs(first.curves - other.curves).max() > 0.0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kind": "partial"}, r"kind must be one of \('average', 'typical'\), got 'partial'"),
        ({"grid_resolution": 1}, "grid_resolution must be at least 2, got 1"),
    ],
)
def test_bad_options(engel, ax, options, sentence):
    model, X, y = engel
    with pytest.raises(ValueError, match=sentence):
        FanDisplay.from_estimator(model, X, y, ax=ax, **options)


def test_bad_subsample(mixed, ax):
    pipeline, X, y = mixed
    with pytest.raises(ValueError, match="subsample must be at least 1, got 0"):
        FanDisplay.from_estimator(pipeline, X, y, ax=ax, subsample=0)


def test_columns_of_the_same_name_and_missing_values(ax):
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.uniform(size=(30, 3)), columns=["a", "b", "b"])
    X.iloc[3, 0] = np.nan
    seen = []

    class Model:
        def predict(self, rows):
            seen.append(rows.to_numpy())
            return rows.to_numpy().sum(axis=1)

    display = FanDisplay.from_estimator(Model(), X, kind="typical", ax=ax, grid_resolution=4)
    (rows,) = seen
    np.testing.assert_allclose(rows[:, 1], np.median(X.iloc[:, 1]))
    np.testing.assert_allclose(rows[:, 2], np.median(X.iloc[:, 2]))
    np.testing.assert_allclose(display.grid[[0, -1]], [X["a"].min(), X["a"].max()])


def test_categories_stay_categories(ax):
    X = pd.DataFrame({"size": [1.0, 2.0, 3.0], "kind": pd.Categorical(["u", "v", "v"])})
    seen = []

    class Model:
        def predict(self, rows):
            seen.append(rows)
            return rows["size"].to_numpy()

    FanDisplay.from_estimator(Model(), X, kind="typical", ax=ax, grid_resolution=4)
    (rows,) = seen
    assert isinstance(rows["kind"].dtype, pd.CategoricalDtype)
    assert set(rows["kind"]) == {"v"}


def test_predictions_in_any_order(ax):
    x = pd.Series([3.0, 1.0, 2.0], name="dose")
    y = pd.Series([1.0, 2.0, 3.0], name="effect")
    predictions = np.array([[30.0, 3.0], [10.0, 1.0], [20.0, 2.0]])
    display = FanDisplay.from_predictions(x, predictions, y, levels=[0.9, 0.1], ax=ax)
    high, low = display.lines_
    np.testing.assert_array_equal(high.get_xydata(), [[1, 10], [2, 20], [3, 30]])
    np.testing.assert_array_equal(low.get_ydata(), [1, 2, 3])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("dose", "effect")
    np.testing.assert_array_equal(display.points_.get_offsets(), np.column_stack([x, y]))


@pytest.mark.parametrize(
    ("levels", "sentence"),
    [
        (None, "levels must name the 2 columns of predictions, got None"),
        ([0.1], "levels must name the 2 columns of predictions, got 1"),
        ([0.1, 1.0], r"levels must lie strictly between 0 and 1, got \[0.1, 1.0\]"),
    ],
)
def test_bad_levels_of_predictions(ax, levels, sentence):
    with pytest.raises(ValueError, match=sentence):
        FanDisplay.from_predictions([1.0, 2.0], np.ones((2, 2)), levels=levels, ax=ax)


def test_points_are_adjusted_for_the_other_features(ax):
    X = np.random.default_rng(1).uniform(size=(150, 2))
    y = np.sin(3.0 * X[:, 0]) + 10.0 * X[:, 1]
    model = QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-5, learn=False).fit(X, y)
    display = FanDisplay.from_estimator(model, X, y, feature=0, subsample=150, ax=ax)
    points = np.asarray(display.points_.get_offsets())
    middle = np.interp(X[:, 0], display.grid, display.curves[:, 1])
    np.testing.assert_allclose(points[:, 1] - middle, y - model.predict(X)[:, 1])
    # what the second feature does is gone: points are near the curve, and rows are not
    assert np.abs(points[:, 1] - middle).max() < 1.0 < np.abs(y - middle).max()
    typical = FanDisplay.from_estimator(model, X, y, feature=0, kind="typical", ax=ax)
    np.testing.assert_array_equal(np.asarray(typical.points_.get_offsets())[:, 1], y)


def test_one_target_far_out_does_not_squeeze_the_others(ax):
    x = np.linspace(0.0, 1.0, 100)
    y = x + 0.1 * np.sin(40.0 * x)
    far = y.copy()
    far[7] = -500.0
    display = FanDisplay.from_predictions(x, x, far, ax=ax)
    low, high = ax.get_ylim()
    assert low > -1.0
    assert low < np.delete(far, 7).min() < far.max() < high
    assert ax.get_title(loc="left") == "1 of 100 points not shown"
    assert len(display.points_.get_offsets()) == 100


def test_without_far_values_all_is_shown(ax):
    x = np.linspace(0.0, 1.0, 100)
    FanDisplay.from_predictions(x, x, np.random.default_rng(0).normal(size=100), ax=ax)
    assert ax.get_title(loc="left") == ""
    assert ax.get_yscale() == "linear"


@pytest.mark.slow
def test_long_tails_of_positive_targets_are_shown_on_a_logarithmic_axis(ax):
    x = np.linspace(0.0, 1.0, 400)
    y = np.exp(3.0 * np.random.default_rng(0).normal(size=400))
    FanDisplay.from_predictions(x, 1.0 + x, y, ax=ax)
    assert ax.get_yscale() == "log"
    assert ax.get_title(loc="left") == ""
    low, high = ax.get_ylim()
    assert low < y.min() < y.max() < high


def test_one_row_far_along_the_feature_is_left_out(ax):
    X = np.append(np.linspace(0.0, 1.0, 99), 1e4)[:, None]
    y = np.sin(6.0 * X[:, 0])
    model = KernelRidge(alpha=1e-4, kernel="gaussian", learn=False).fit(X[:99], y[:99])
    display = FanDisplay.from_estimator(model, X, y, ax=ax)
    assert ax.get_xlim()[1] < 2.0
    inside = display.grid <= ax.get_xlim()[1]
    assert inside.sum() >= 140  # the curve is smooth where it is seen
    assert display.grid[-1] == 1e4
    assert ax.get_title(loc="left") == "1 of 100 points not shown"


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_legends_cover_no_points(ax, spread):
    random = np.random.default_rng(0)
    x = np.sort(random.uniform(size=800))
    y = random.uniform(-spread, 1.0, size=800)
    curves = np.column_stack([0.0 * x + level for level in (0.1, 0.5, 0.9)])
    display = FanDisplay.from_predictions(x, curves, y, levels=[0.1, 0.5, 0.9], ax=ax)
    ax.figure.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    assert box.count_contains(ax.transData.transform(np.column_stack([x, y]))) == 0
    assert box.y1 <= ax.bbox.y1 + 1.0
    assert ax.get_legend().get_texts()[0].get_text() == "90 %"
    assert len(display.lines_) == 3


def test_many_levels_have_room():
    """Their names in one row are wider than the picture: no warning of a layout comes of it."""
    x, levels = np.linspace(0.0, 1.0, 50), np.linspace(0.05, 0.95, 19)
    display = FanDisplay.from_predictions(x, x[:, None] + levels, x, levels=levels)
    display.figure_.draw_without_rendering()
    assert display.ax_.get_legend().get_window_extent().width <= display.ax_.bbox.width


def test_notes_fit_narrow_axes(ax):
    X = np.random.default_rng(1).uniform(size=(40, 3))
    model = KernelRidge(alpha=1e-3, learn=False).fit(X, X[:, 0])
    for side in (0.1, 0.55):
        narrow = ax.figure.add_axes((side, 0.1, 0.4, 0.6))
        FanDisplay.from_estimator(model, X, X[:, 0], ax=narrow)
        note = narrow.title if narrow.title.get_text() else narrow._left_title
        ax.figure.draw_without_rendering()
        assert note.get_window_extent().width <= 1.05 * narrow.bbox.width
