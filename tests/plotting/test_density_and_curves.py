"""Densities, curves and their coefficients, compared with what they were drawn from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import QuadMesh
from scipy.stats import multivariate_normal, norm
from sklearn.neighbors import KernelDensity

from fenchel.functional import FunctionalRegressor, as_curves
from fenchel.plotting import CoefficientMatrixDisplay, CurvesDisplay, DensityDisplay

RANDOM = np.random.default_rng(0)
THETA = np.array([0.0, 0.1, 0.4, 1.0])


class Normal:
    """A density known in closed form."""

    def __init__(self, names=None):
        self.names = names

    def score_samples(self, X):
        if self.names is not None:
            assert list(X.columns) == self.names
        return norm.logpdf(np.asarray(X)).sum(axis=1)


def test_curve_histogram_and_rug(ax):
    X = pd.DataFrame({"length": RANDOM.normal(size=400)})
    display = DensityDisplay.from_estimator(Normal(["length"]), X, extent=(-5, 5), ax=ax)
    x, density = display.line_.get_data()
    assert (x[0], x[-1]) == (-5, 5)
    np.testing.assert_allclose(density, norm.pdf(x))
    assert abs(display.mass_ - 1.0) < 1e-5
    bars = display.histogram_
    assert np.isclose(sum(bar.get_height() * bar.get_width() for bar in bars), 1.0)
    strokes = sorted(path.vertices[0, 0] for path in display.rug_.get_paths())
    np.testing.assert_allclose(strokes, np.sort(X["length"]))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length", "density, per unit of length")


@pytest.mark.parametrize(("step", "n"), [(1.0, 300), (0.1, 300), (0.1, 40), (1e-7, 5000)])
def test_bars_of_values_that_repeat_are_no_comb(ax, step, n):
    """Each bar stands for equally many of the possible values, and none is cut."""
    values = step * (1 + np.random.default_rng(0).poisson(4.0, n) // 2)  # 1 to about 6
    density = KernelDensity(bandwidth=step).fit(values[:, None])
    display = DensityDisplay.from_estimator(density, values[:, None], ax=ax)
    possible, counts = np.unique(values, return_counts=True)
    assert len(display.histogram_) == len(possible)
    heights = [bar.get_height() for bar in display.histogram_]
    np.testing.assert_allclose(heights, counts / n / step, rtol=1e-6)
    low, high = ax.get_xlim()
    assert low <= possible[0] - 0.49 * step
    assert high >= possible[-1] + 0.49 * step


def test_a_curve_is_not_cut_while_it_is_high(ax):
    rows = np.repeat(np.linspace(0.0, 1.0, 5), 40)[:, None]
    density = KernelDensity(bandwidth=0.3).fit(rows)
    display = DensityDisplay.from_estimator(density, rows, ax=ax)
    assert display.mass_ > 0.97  # it was 0.81
    assert max(display.density[0], display.density[-1]) < 0.2 * display.density.max()
    assert ax.get_xlim() == (display.grids[0][0], display.grids[0][-1])
    given = DensityDisplay.from_estimator(density, rows, extent=(0.0, 1.0), ax=ax)
    assert (given.grids[0][0], given.grids[0][-1]) == (0.0, 1.0)


def test_the_power_of_ten_is_beside_the_legend(ax):
    X = pd.DataFrame({"salary": 1e5 + 1e4 * RANDOM.normal(size=100)})
    model = type("Wide", (), {"score_samples": lambda _, X: norm.logpdf(X, 1e5, 1e4).sum(axis=1)})
    DensityDisplay.from_estimator(model(), X, ax=ax)
    ax.figure.draw_without_rendering()
    power = ax.yaxis.get_offset_text()
    assert "−" in power.get_text() or "-" in power.get_text()
    assert not power.get_window_extent().overlaps(ax.get_legend().get_window_extent())


def test_the_legend_covers_no_curves(ax):
    theta = np.linspace(0.0, 24.0, 25)
    observed = np.sin(theta / 4.0 + np.arange(20)[:, None] / 3.0)
    display = CurvesDisplay.from_predictions(theta, observed, 0.95 * observed, ax=ax)
    ax.figure.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    for row in display.rows:
        points = np.column_stack([theta, observed[row]])
        assert box.count_contains(ax.transData.transform(points)) == 0


def test_rug_of_many_rows_is_a_sample_and_says_so(ax):
    X = RANDOM.normal(size=(5000, 1))
    X[7] = np.nan
    display = DensityDisplay.from_estimator(Normal(), X, grid_resolution=10, ax=ax)
    assert len(display.rug_.get_paths()) == 1667
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["density", "histogram of 4999 rows", "rows (one in 3)"]


def test_contours_enclose_their_mass(ax):
    X = pd.DataFrame(RANDOM.normal(size=(50, 2)), columns=["p", "q"])
    display = DensityDisplay.from_estimator(
        Normal(["p", "q"]), X, extent=[(-5, 5), (-6, 6)], masses=(0.9, 0.5), ax=ax
    )
    # the region of mass m of the plane's standard normal has density above (1 - m) / (2π)
    np.testing.assert_allclose(display.levels_, [0.1 / (2 * np.pi), 0.5 / (2 * np.pi)], rtol=0.02)
    first, second = display.grids
    mesh = np.stack(np.meshgrid(first, second), axis=-1)
    np.testing.assert_allclose(display.density, multivariate_normal([0, 0]).pdf(mesh))
    drawn = display.mesh_.get_array().reshape(display.density.shape)
    np.testing.assert_allclose(drawn, display.density)
    np.testing.assert_allclose(display.contours_.levels, display.levels_)
    labels = {text.get_text() for text in display.contours_.labelTexts}
    assert labels == {"90 %", "50 %"}
    np.testing.assert_allclose(display.points_.get_offsets(), X)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("p", "q")


def test_axes_of_a_density_that_is_not_symmetric(ax):
    X = RANDOM.normal(size=(60, 2)) * [1.0, 10.0] + [0.0, 100.0]
    model = KernelDensity(bandwidth=1.0).fit(X)
    display = DensityDisplay.from_estimator(model, X, grid_resolution=30, ax=ax)
    first, second = display.grids
    assert first[-1] < 10.0
    assert second[0] > 50.0
    value = np.exp(model.score_samples([[first[4], second[20]]]))
    np.testing.assert_allclose(display.density[20, 4], value)


@pytest.mark.parametrize("columns", [1, 2])
def test_density_zero_everywhere_in_the_picture(ax, columns, tmp_path):
    class Nothing:
        def score_samples(self, X):
            return np.full(len(X), -np.inf)

    X = np.zeros((3, columns))
    display = DensityDisplay.from_estimator(Nothing(), X, ax=ax)
    assert display.mass_ == 0.0
    display.figure_.savefig(tmp_path / "picture.png", dpi=50)


@pytest.mark.parametrize(
    ("X", "options", "sentence"),
    [
        (np.zeros((3, 3)), {}, "X must have one or two columns, got 3"),
        (np.zeros((3, 1)), {"extent": (1, 0)}, r"extent must be a pair .* got \(1, 0\)"),
        (np.zeros((3, 2)), {"extent": (0, 1)}, r"for each of 2 variables, got \(0, 1\)"),
        (np.zeros((3, 1)), {"grid_resolution": 1}, "grid_resolution must be at least 2, got 1"),
        (np.zeros((3, 2)), {"masses": (0.5, 1.0)}, r"masses must be in \(0, 1\)"),
        (np.full((3, 1), np.nan), {}, "'x0' must have a finite value, got none"),
    ],
)
def test_bad_densities(ax, X, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        DensityDisplay.from_estimator(Normal(), X, ax=ax, **options)
    with pytest.raises(TypeError, match="must have score_samples, got object"):
        DensityDisplay.from_estimator(object(), X, ax=ax)


def test_norms_are_integrals(new_axes):
    Y = RANDOM.normal(size=(6, 4))
    predicted = np.zeros((6, 4))
    left, right = new_axes(2)
    display = CurvesDisplay.from_predictions(THETA, Y, predicted, ax=(left, right))
    np.testing.assert_allclose(display.norms, np.sqrt(np.trapezoid(Y**2, THETA, axis=1)))
    order = np.argsort(display.norms)
    assert display.rows.tolist() == [order[0], order[2], order[5]]
    np.testing.assert_allclose(display.norms_.get_ydata(), np.sort(display.norms))
    for k, row in enumerate(display.rows):
        np.testing.assert_allclose(display.observed_[k].get_ydata(), Y[row])
        np.testing.assert_allclose(display.predicted_[k].get_ydata(), predicted[row])
        ((rank,), (norm_,)) = display.marks_[k].get_data()
        assert (order[rank - 1], norm_) == (row, display.norms[row])
    behind = [np.asarray(path)[:, 1] for path in display.background_.get_segments()]
    np.testing.assert_allclose(behind, Y)
    assert (display.ax_, display.norms_ax_) == (left, right)
    texts = [text.get_text() for text in left.get_legend().get_texts()]
    assert texts == [f"row {row}: residual {display.norms[row]:.3g}" for row in display.rows]


def test_unobserved_values_count_for_nothing(ax):
    Y = np.array([[1.0, np.nan, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    display = CurvesDisplay.from_predictions(
        THETA, Y, np.zeros((2, 4)), quadrature="monte-carlo", rows=[0, 1], ax=ax
    )
    np.testing.assert_allclose(display.norms, [np.sqrt(0.75), 1.0])
    assert np.isnan(display.observed_[0].get_ydata()[1])
    assert display.norms_ax_ is None


def _data():
    random = np.random.default_rng(0)
    X = random.uniform(size=(30, 1))
    return X, np.sin(4.0 * X + THETA) + 0.02 * random.normal(size=(30, 4))


def test_curves_of_the_functional_regressor(ax):
    X, Y = _data()
    model = FunctionalRegressor(alpha=1e-4).fit(X, Y, THETA)
    display = CurvesDisplay.from_estimator(model, X, Y, rows=[3], ax=ax)
    np.testing.assert_allclose(display.theta, THETA)  # the model's own
    np.testing.assert_allclose(display.predicted, model.predict(X))
    pairs = [(np.array([0.2, 0.3]), Y[k, :2]) for k in range(30)]
    other = CurvesDisplay.from_estimator(model, X, pairs, ax=ax)
    np.testing.assert_allclose(other.predicted, model.predict(X, theta=[0.2, 0.3]))


@pytest.mark.parametrize(
    ("predicted", "rows", "sentence"),
    [
        (np.zeros((3, 4)), None, r"shape of the observed curves, \(2, 4\), got \(3, 4\)"),
        (np.zeros((2, 4)), [2], r"rows must be integers in 0\.\.1, got \[2\]"),
        (np.zeros((2, 4)), [0.5], r"rows must be integers in 0\.\.1, got \[0.5\]"),
        (np.zeros((2, 4)), [], r"rows must be integers in 0\.\.1, got \[\]"),
    ],
)
def test_bad_curves(ax, predicted, rows, sentence):
    with pytest.raises(ValueError, match=sentence):
        CurvesDisplay.from_predictions(THETA, np.zeros((2, 4)), predicted, rows=rows, ax=ax)


def test_zeros_are_apart_from_all_shades(ax):
    matrix = np.array([[0.0, 0.0, 0.0], [0.0, -3.0, 1.0], [2.0, np.nan, 1e-300], [np.nan] * 3])
    display = CoefficientMatrixDisplay.from_matrix(matrix, [0.0, 1.0, 4.0], ax=ax)
    drawn = display.image_.get_array()
    assert isinstance(display.image_, QuadMesh)
    np.testing.assert_array_equal(np.ma.getmaskarray(drawn), (matrix == 0.0) | np.isnan(matrix))
    np.testing.assert_array_equal(drawn.compressed(), [-3.0, 1.0, 2.0, 1e-300])
    missing = ~np.ma.getmaskarray(display.missing_.get_array())
    np.testing.assert_array_equal(missing, np.isnan(matrix))
    assert display.zero_share_ == 4 / 8
    assert display.zero_row_share_ == 2 / 4
    assert ax.get_title(loc="left") == "exactly zero: 50 % of the coefficients, 2 of 4 rows (50 %)"
    # shades lie one after the other in lightness, all of them darker than the zeros
    shades = display.image_.get_cmap()(np.linspace(0.0, 1.0, 64))[:, :3] @ [0.299, 0.587, 0.114]
    assert np.all(np.diff(shades) > 0.0)
    assert shades[-1] < 0.85
    corners = display.image_.get_coordinates()
    np.testing.assert_allclose(corners[0, :, 0], [-0.5, 0.5, 2.5, 5.5])
    assert ax.yaxis_inverted()
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["exactly zero", "not observed"]


@pytest.mark.parametrize("matrix", [np.zeros((2, 3)), np.full((2, 3), np.nan), np.ones((1, 1))])
def test_matrices_without_contrast(matrix, ax, tmp_path):
    display = CoefficientMatrixDisplay.from_matrix(matrix, ax=ax)
    assert display.zero_share_ == (1.0 if (matrix == 0.0).all() else 0.0)
    display.figure_.savefig(tmp_path / "picture.png", dpi=50)


def test_coefficients_of_the_functional_regressor(ax):
    X, Y = _data()
    model = FunctionalRegressor("squared_epsilon_insensitive", norm=2, epsilon=0.03, alpha=1e-4)
    model.fit(X, Y, THETA)
    display = CoefficientMatrixDisplay.from_estimator(model, ax=ax)
    np.testing.assert_array_equal(display.matrix, model.dual_coef_)
    assert 0.0 < display.zero_row_share_ < 1.0
    assert np.isclose(display.zero_row_share_, 1.0 - len(model.support_) / 30)
    assert np.isclose(display.zero_share_, model.sparsity_.coefficients)


def test_unobserved_coefficients_are_not_zeros(ax):
    X, Y = _data()
    Y[::3, 1] = np.nan
    model = FunctionalRegressor(alpha=1e-4).fit(X, Y, THETA)
    assert CoefficientMatrixDisplay.from_estimator(model, ax=ax).zero_share_ == 10 / 120
    display = CoefficientMatrixDisplay.from_estimator(model, Y, ax=ax)
    assert display.zero_share_ == model.sparsity_.coefficients == 0.0
    np.testing.assert_array_equal(np.isnan(display.matrix), np.isnan(as_curves(Y, THETA).values))
    with pytest.raises(ValueError, match=r"Y must hold the curves of the fit, of shape \(30, 4\)"):
        CoefficientMatrixDisplay.from_estimator(model, Y[:5], ax=ax)


def test_bad_matrices(ax):
    with pytest.raises(ValueError, match=r"matrix must have two dimensions, got shape \(3,\)"):
        CoefficientMatrixDisplay.from_matrix([1.0, 2.0, 3.0], ax=ax)
    with pytest.raises(ValueError, match="theta must have 2 points, got 3"):
        CoefficientMatrixDisplay.from_matrix(np.zeros((2, 2)), [0.0, 1.0, 2.0], ax=ax)
    with pytest.raises(ValueError, match=r"dual_coef_ and grid_, .* got KernelDensity without"):
        CoefficientMatrixDisplay.from_estimator(KernelDensity(), ax=ax)


def test_contours_are_not_cut(ax):
    from fenchel.positive import DensityEstimator

    rows = np.random.default_rng(0).normal(size=(40, 2)) * [1.0, 5.0]
    model = DensityEstimator(alpha=0.1).fit(rows)
    display = DensityDisplay.from_estimator(model, rows, ax=ax)
    assert display.density[:, [0, -1]].max() < display.levels_.min()
    assert display.density[[0, -1]].max() < display.levels_.min()
    given = DensityDisplay.from_estimator(model, rows, extent=[(-1, 1), (-5, 5)], ax=ax)
    assert given.grids[0][[0, -1]].tolist() == [-1.0, 1.0]
