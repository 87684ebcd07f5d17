"""What all displays share: names shown as they are, colours, axes, the missing library."""

from __future__ import annotations

import inspect
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KernelDensity

from fenchel import SVR, KernelRidge, QuantileRegressor, lasso_path, plotting
from fenchel.inspection import short_name
from fenchel.model_selection import PathSearchCV
from fenchel.plotting import (
    CoefficientMatrixDisplay,
    CoefficientPathDisplay,
    ConvergenceDisplay,
    CurvesDisplay,
    DensityDisplay,
    FanDisplay,
    ImportanceDisplay,
    PathDisplay,
    QuantileCalibrationDisplay,
    SupportDisplay,
    _style,
)
from fenchel.solvers import Progress

MIXED = "_$x_{<b>\\frac{1}{$\n\x00\u202e größe %s {0}"
RANDOM = np.random.default_rng(0)
ARRAY = RANDOM.uniform(size=(40, 2))
TARGET = ARRAY[:, 0] + 0.1 * RANDOM.normal(size=40)
THETA = np.linspace(0.0, 1.0, 8)
CURVES = RANDOM.normal(size=(5, 8))
HISTORY = [Progress(0, 0.0, 1.0, 0.0, 1.0), Progress(3, 0.5, 1.0, 1.0, 1e-7)]


def _frame(name):
    return pd.DataFrame({name: ARRAY[:, 0], f"{name} too": ARRAY[:, 1]})


def _fan(name, ax):
    X, y = _frame(name), pd.Series(TARGET, name=name)
    model = QuantileRegressor([0.2, 0.8], alpha=1e-3).fit(X, y)
    return FanDisplay.from_estimator(model, X, y, ax=ax)


def _calibration(name, ax):
    predictions = np.tile([0.2, 0.8], (40, 1))
    return QuantileCalibrationDisplay.from_predictions(
        pd.Series(TARGET, name=name), predictions, levels=[0.2, 0.8], ax=ax
    )


def _importance(name, ax):
    return ImportanceDisplay.from_importances([name, f"{name} too"], [0.4, 0.6], ax=ax)


def _path(name, ax):
    grid = {"alpha": 3, "length_scale": [0.5, 1.0]}
    model = PathSearchCV(KernelRidge(), grid, cv=2).fit(ARRAY, TARGET)
    return PathDisplay.from_estimator(model, score_name=name, ax=ax)


def _coefficients(name, ax):
    names = [name, f"{name} too"]
    return CoefficientPathDisplay.from_path(lasso_path(ARRAY, TARGET), names, ax=ax)


def _convergence(name, ax):
    return ConvergenceDisplay.from_histories({name: HISTORY, "other": HISTORY}, ax=ax)


def _support(name, ax):
    X, y = _frame(name), pd.Series(TARGET, name=name)
    return SupportDisplay.from_estimator(SVR(epsilon=0.1).fit(X, y), X, y, ax=ax)


def _density(name, ax):
    X = _frame(name)
    return DensityDisplay.from_estimator(KernelDensity().fit(X), X, grid_resolution=20, ax=ax)


def _line_density(name, ax):
    X = _frame(name)[[name]]
    return DensityDisplay.from_estimator(KernelDensity().fit(X), X, grid_resolution=20, ax=ax)


def _curves(name, ax):
    names = {"theta_name": name, "curve_name": name}
    return CurvesDisplay.from_predictions(THETA, CURVES, CURVES + 1.0, ax=ax, **names)


def _matrix(name, ax):
    return CoefficientMatrixDisplay.from_matrix(CURVES, THETA, theta_name=name, ax=ax)


DRAWN = {
    "fan": _fan,
    "calibration": _calibration,
    "importance": _importance,
    "path": _path,
    "coefficients": _coefficients,
    "convergence": _convergence,
    "support": _support,
    "density": _density,
    "line density": _line_density,
    "curves": _curves,
    "matrix": _matrix,
}


def _texts(figure):
    return [text for text in figure.findobj(mpl.text.Text) if text.get_text()]


@pytest.mark.parametrize("name", [MIXED, "<$x_{>" * 1000], ids=["mixed", "long"])
@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN.keys())
def test_hostile_names_harm_no_picture(draw, name, ax, tmp_path):
    display = draw(name, ax)
    display.figure_.savefig(tmp_path / "picture.png", dpi=50)
    assert (tmp_path / "picture.png").stat().st_size > 1000
    shown = [text for text in _texts(display.figure_) if "x_{" in text.get_text()]
    assert all(not text.get_parse_math() for text in shown)
    assert all(len(text.get_text()) < 160 for text in _texts(display.figure_))
    named = display.__class__.__name__ not in ("QuantileCalibrationDisplay",)
    assert bool(shown) == named


def test_all_letters_are_shown_as_they_are(hostile, ax, tmp_path):
    (line,) = ax.plot([0, 1])
    _style.label_axes(ax, hostile, hostile, f"at {short_name(hostile)} = 1")
    made = _style.legend(ax, [(line, hostile), (line, "plain")], short_name(hostile))
    ax.figure.savefig(tmp_path / "picture.svg")
    picture = (tmp_path / "picture.svg").read_text(encoding="utf-8")
    assert "<b>" not in picture
    assert made.get_texts()[1].get_text() == "plain"
    assert made.get_texts()[0].get_text() == ax.get_xlabel() == short_name(hostile)
    assert short_name(hostile).isprintable()


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN.keys())
def test_settings_of_matplotlib_stay(draw, ax, new_axes):
    before = dict(mpl.rcParams)
    display = draw("x", ax)
    assert dict(mpl.rcParams) == before
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert display.plot(ax=new_axes()) is display


def test_every_display_is_drawn_here():
    public = {getattr(plotting, name) for name in plotting.__all__}
    sources = [inspect.getsource(draw) for draw in DRAWN.values()]
    assert all(any(display.__name__ in source for source in sources) for display in public)
    assert all(name.endswith("Display") for name in plotting.__all__)


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN.keys())
def test_without_matplotlib(draw, ax, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'fenchel\[plot\]'"):
        draw("x", ax)


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN.keys())
def test_a_figure_is_made_where_none_is_given(draw):
    mpl.use("agg")
    import matplotlib.pyplot as plt

    display = draw("x", None)
    try:
        assert display.figure_.number in plt.get_fignums()
    finally:
        plt.close(display.figure_)


def test_colours_of_the_cycle_differ_for_all_eyes_and_in_grey_with_dashes():
    from matplotlib.colors import to_rgb

    cycle, dashes = _style.CYCLE, _style.DASHES
    # dichromats: rows of the matrices of Viénot, Brettel and Mollon (1999), in linear light
    reduced = {
        "protan": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
        "deutan": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
    }
    light = np.array([to_rgb(color) for color in cycle]) ** 2.2
    for seen in (light @ np.array(m).T for m in reduced.values()):
        apart = np.linalg.norm(seen[:, None] - seen[None], axis=2)
        assert apart[~np.eye(len(cycle), dtype=bool)].min() > 0.1
    pairs = {(k % len(cycle), k % len(dashes)) for k in range(8)}
    assert len(pairs) == 8
    neighbours = [dashes[k % len(dashes)] != dashes[(k + 1) % len(dashes)] for k in range(8)]
    assert all(neighbours)
