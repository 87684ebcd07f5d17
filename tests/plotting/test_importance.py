"""Importances: bars against the numbers, by column of the table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from fenchel import KernelRidge, Lasso, QuantileRegressor
from fenchel.plotting import ImportanceDisplay
from fenchel.tables import TableEncoder

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(80, 4))
Y = 2.0 * X[:, 2] + X[:, 1] + np.abs(X[:, 0])


def _drawn(display):
    """Names, widths and texts of the bars, from the top."""
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    places = [bar.get_y() + 0.5 * bar.get_height() for bar in display.bars_]
    bottom, top = display.ax_.get_ylim()
    assert bottom > top  # the first bar on top
    assert places == pytest.approx(range(len(names)))
    return names, [bar.get_width() for bar in display.bars_]


def test_bars_are_importances_the_largest_on_top(ax):
    model = KernelRidge().fit(X, Y)
    display = ImportanceDisplay.from_estimator(model, ax=ax)
    shares = model.feature_importances_
    order = [j for j in np.argsort(-shares) if shares[j] >= 1e-3]
    assert order[:2] == [2, 1]
    names, widths = _drawn(display)
    assert names == [f"x{j}" for j in order]
    np.testing.assert_allclose(widths, shares[order])
    texts = [text.get_text() for text in ax.texts]
    assert texts == [f"{100 * share:.1f} %" for share in shares[order]]
    assert display.idle == [f"x{j}" for j in model.idle_features_]


def test_what_is_left_is_one_pale_bar(ax):
    shares = [0.1, 0.3, 0.0, 0.2, 0.05, 0.35]
    display = ImportanceDisplay.from_importances("abcdef", shares, max_features=2, ax=ax)
    names, widths = _drawn(display)
    assert names == ["f", "b", "3 others"]
    assert widths == pytest.approx([0.35, 0.3, 0.35])
    colors = [bar.get_facecolor() for bar in display.bars_]
    assert colors[0] == colors[1] != colors[2]
    assert ax.get_title(loc="left") == "1 of 6 features not used: c"
    assert ax.get_xlim()[1] > 0.35


def test_columns_of_a_table_have_one_bar_each(ax):
    frame = pd.DataFrame(X[:, :2].copy(), columns=["a", "b"])
    frame["town"] = RANDOM.choice(["Köln", "Bonn", "Trier"], 80)
    frame.loc[3, "a"] = np.nan
    y = frame["a"].fillna(0.0) + 2.0 * (frame["town"] == "Bonn")
    pipeline = make_pipeline(TableEncoder(), QuantileRegressor()).fit(frame, y)
    display = ImportanceDisplay.from_estimator(pipeline, ax=ax)
    shares = pipeline[-1].importances_of_groups([[0, 2], [1], [3, 4, 5]])
    made = list(pipeline[0].get_feature_names_out())
    assert made == ["a", "b", "a=missing", "town=Bonn", "town=Köln", "town=Trier"]
    drawn = dict(zip(*_drawn(display), strict=True))
    assert drawn["a"] == pytest.approx(shares[0])
    assert drawn["town"] == pytest.approx(shares[2])


def test_constant_predictions_read_nothing(ax):
    display = ImportanceDisplay.from_estimator(KernelRidge().fit(X, np.ones(80)), ax=ax)
    assert len(display.bars_) == 0
    assert display.idle == ["x0", "x1", "x2", "x3"]
    assert ax.get_title(loc="left") == "predictions are constant: no feature is used"


def test_bad_input(ax):
    with pytest.raises(ValueError, match=r"have feature_importances_, got Lasso without"):
        ImportanceDisplay.from_estimator(Lasso().fit(X, Y), ax=ax)
    with pytest.raises(ValueError, match="have feature_importances_, got KernelRidge without"):
        ImportanceDisplay.from_estimator(KernelRidge(), ax=ax)
    gram = KernelRidge(kernel="precomputed").fit(X @ X.T, Y)
    with pytest.raises(ValueError, match="have feature_importances_, got KernelRidge without"):
        ImportanceDisplay.from_estimator(gram, ax=ax)
    with pytest.raises(ValueError, match="shares must have 2 values, got 1"):
        ImportanceDisplay.from_importances(["a", "b"], [1.0], ax=ax)
    with pytest.raises(ValueError, match=r"shares must be >= 0, got -0\.5"):
        ImportanceDisplay.from_importances(["a", "b"], [1.0, -0.5], ax=ax)
    with pytest.raises(ValueError, match="max_features must be at least 1, got 0"):
        ImportanceDisplay.from_importances(["a"], [1.0], max_features=0, ax=ax)


def test_the_note_ends_within_the_figure():
    """Long names make the axes narrower, and the note was cut off at the edge."""
    names = [f"a rather long name of the column number {j}" for j in range(40)]
    shares = np.r_[0.6, 0.4, np.zeros(38)]
    ax = ImportanceDisplay.from_importances(names, shares).ax_
    ax.figure.draw_without_rendering()
    title = next(t for t in (ax._left_title, ax.title) if t.get_text())
    assert title.get_window_extent().x1 <= ax.figure.bbox.x1
