from __future__ import annotations

import pickle

import numpy as np
import pytest

from fenchel.functional import FunctionalRegressor
from fenchel.functional.curves import (
    Curves,
    as_curves,
    as_grid,
    quadrature_weights,
    to_fdatagrid,
)

NAN = np.nan


def test_array_on_the_default_grid():
    Y = np.arange(12.0).reshape(3, 4)
    curves = as_curves(Y)
    np.testing.assert_array_equal(curves.grid, [0.0, 1 / 3, 2 / 3, 1.0])
    np.testing.assert_array_equal(curves.values, Y)
    np.testing.assert_array_equal(curves.measure, np.full(4, 0.25))
    assert curves.given == "array"
    assert curves.observed is None
    assert len(curves) == 3
    one = as_curves([[5.0]])
    assert one.grid.tolist() == [0.0]
    assert one.measure.tolist() == [1.0]


def test_trapezoid_integrates_broken_lines_exactly():
    grid = np.sort(np.random.default_rng(0).uniform(-2.0, 5.0, 30))
    weights = quadrature_weights(grid, "trapezoid")
    assert weights.sum() == pytest.approx(1.0, abs=1e-14)
    mean = (grid[-1] + grid[0]) / 2  # of the identity on the interval, by symmetry
    assert weights @ grid == pytest.approx(mean, abs=1e-13)
    length = grid[-1] - grid[0]
    assert weights @ np.cos(grid) == pytest.approx(np.trapezoid(np.cos(grid), grid) / length)
    assert quadrature_weights(np.array([3.0]), "trapezoid").tolist() == [1.0]


def test_given_weights_are_taken_as_they_are():
    curves = as_curves(np.ones((2, 3)), [0.0, 1.0, 5.0], quadrature=[2.0, 1.0, 0.5])
    np.testing.assert_array_equal(curves.measure, [2.0, 1.0, 0.5])
    np.testing.assert_array_equal(curves.grid, [0.0, 1.0, 5.0])


@pytest.mark.parametrize("rule", ["monte-carlo", "trapezoid", [1.0, 2.0, 3.0]])
def test_missing_values_leave_the_weights_of_the_grid(rule):
    Y = np.array([[1.0, NAN, 3.0], [NAN, NAN, 2.0]])
    curves = as_curves(Y, quadrature=rule)
    np.testing.assert_array_equal(curves.measure, as_curves(np.ones((2, 3)), None, rule).measure)
    np.testing.assert_array_equal(curves.observed, [[True, False, True], [False, False, True]])


def test_masked_and_missing_cells_are_not_observed():
    Y = np.array([[1.0, NAN, 3.0], [4.0, 5.0, NAN]])
    hidden = np.ma.array(np.where(np.isnan(Y), 999.0, Y), mask=np.isnan(Y))
    np.testing.assert_array_equal(as_curves(hidden).values, Y)
    pairs = as_curves([([0.0, 1.0, 2.0], row) for row in hidden])
    np.testing.assert_array_equal(pairs.values, Y)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(Y).convert_dtypes()
    np.testing.assert_array_equal(as_curves(frame).values, Y)
    pairs = as_curves([([0.0, 1.0, 2.0], frame.loc[row]) for row in frame.index])
    np.testing.assert_array_equal(pairs.values, Y)
    with pytest.raises(ValueError, match="observed at one point or more, got none for curve 1"):
        FunctionalRegressor(learn=False).fit([[0.0], [1.0]], np.ma.array([1.0, 9.0], mask=[0, 1]))
    with pytest.raises(ValueError, match="theta must be finite, got nan at position 1"):
        as_grid(np.ma.array([1.0, 2.0], mask=[0, 1]))


def test_pairs_lie_on_the_union_of_their_points():
    pairs = [
        (np.array([0.0, 0.5, 2.0]), np.array([1.0, 2.0, 3.0])),
        ([0.5], [4.0]),
        [(0.25, 0.5), (5.0, 6.0)],
    ]
    curves = as_curves(pairs)
    assert curves.given == "pairs"
    np.testing.assert_array_equal(curves.grid, [0.0, 0.25, 0.5, 2.0])
    expected = [[1.0, NAN, 2.0, 3.0], [NAN, NAN, 4.0, NAN], [NAN, 5.0, 6.0, NAN]]
    np.testing.assert_array_equal(curves.values, expected)
    np.testing.assert_array_equal(curves.measure, np.full(4, 0.5))  # two observations on average
    np.testing.assert_array_equal(curves.observed, ~np.isnan(expected))


def test_trapezoid_of_pairs_is_that_of_each_curve():
    rng = np.random.default_rng(1)
    points = [np.sort(rng.uniform(size=size)) for size in (5, 1, 17)]
    curves = as_curves([(theta, np.sin(theta)) for theta in points], quadrature="trapezoid")
    assert curves.measure.shape == (3, 23)
    np.testing.assert_allclose(curves.measure.sum(axis=1), 1.0, atol=1e-14)
    np.testing.assert_array_equal(curves.measure == 0.0, ~curves.observed)
    for i, theta in enumerate(points):
        own = np.isin(curves.grid, theta)
        np.testing.assert_array_equal(
            curves.measure[i, own], quadrature_weights(theta, "trapezoid")
        )


def test_pairs_that_share_a_grid_are_an_array():
    rng = np.random.default_rng(2)
    grid, Y = np.sort(rng.normal(size=6)), rng.normal(size=(4, 6))
    for rule in ("monte-carlo", "trapezoid"):
        alone = as_curves(Y, grid, rule)
        pairs = as_curves([(grid, y) for y in Y], quadrature=rule)
        np.testing.assert_array_equal(pairs.values, Y)
        np.testing.assert_array_equal(pairs.grid, grid)
        np.testing.assert_allclose(
            np.broadcast_to(alone.measure, pairs.measure.shape), pairs.measure
        )


def test_missing_values_of_pairs_are_not_there():
    with_gap = as_curves([([0.0, 0.5, 1.0], [1.0, NAN, 3.0]), ([0.0, 1.0], [4.0, 5.0])])
    without = as_curves([([0.0, 1.0], [1.0, 3.0]), ([0.0, 1.0], [4.0, 5.0])])
    for name in ("grid", "values", "measure"):
        np.testing.assert_array_equal(getattr(with_gap, name), getattr(without, name))
    assert with_gap.observed is None


def test_rows_of_two_numbers_are_no_pairs():
    curves = as_curves([[0.0, 5.0], [1.0, 6.0]])
    assert curves.given == "array"
    assert curves.values.shape == (2, 2)


@pytest.mark.parametrize("rule", ["monte-carlo", "trapezoid"])
@pytest.mark.parametrize("rows", [np.array([2, 0]), np.array([True, False, True]), slice(1, 3)])
def test_subset(rule, rows):
    pairs = [([0.0, 1.0], [1.0, 2.0]), ([0.5], [3.0]), ([0.0, 0.2, 0.5], [4.0, 5.0, 6.0])]
    curves = as_curves(pairs, quadrature=rule)
    some = curves.subset(rows)
    np.testing.assert_array_equal(some.grid, curves.grid)
    np.testing.assert_array_equal(some.values, curves.values[rows])
    np.testing.assert_array_equal(some.observed, curves.observed[rows])
    full = np.broadcast_to(curves.measure, curves.values.shape)
    np.testing.assert_array_equal(np.broadcast_to(some.measure, some.values.shape), full[rows])
    assert some.given == "pairs"


def test_fdatagrid_there_and_back():
    skfda = pytest.importorskip("skfda", reason="FDataGrid is of scikit-fda")
    grid, Y = np.array([0.0, 0.5, 2.0]), np.random.default_rng(0).normal(size=(4, 3))
    given = skfda.FDataGrid(data_matrix=Y, grid_points=grid)
    curves = as_curves(given, quadrature="trapezoid")
    assert curves.given == "fdatagrid"
    np.testing.assert_array_equal(curves.grid, grid)
    np.testing.assert_array_equal(curves.values, Y)
    np.testing.assert_array_equal(curves.measure, [0.125, 0.5, 0.375])
    assert to_fdatagrid(curves.grid, curves.values).equals(given)
    with pytest.raises(ValueError, match=r"theta must be None where Y is an FDataGrid"):
        as_curves(given, grid)
    surface = skfda.FDataGrid(np.zeros((2, 3, 4)), grid_points=(np.arange(3.0), np.arange(4.0)))
    with pytest.raises(ValueError, match=r"functions of one variable with values in R, got 2"):
        as_curves(surface)
    plane = skfda.FDataGrid(np.zeros((2, 3, 2)), grid_points=grid)
    with pytest.raises(ValueError, match=r"got 1 variables and values of dimension 2"):
        as_curves(plane)


def test_pickled_curves_are_the_same():
    curves = as_curves([[1.0, NAN]])
    assert curves.observed is not None
    again = pickle.loads(pickle.dumps(curves))
    assert isinstance(again, Curves)
    np.testing.assert_array_equal(again.observed, curves.observed)


@pytest.mark.parametrize(
    ("Y", "error", "sentence"),
    [
        ([1.0, 2.0], ValueError, r"Y must be two-dimensional.*got shape \(2,\)"),
        (np.ones((0, 3)), ValueError, r"Y must be two-dimensional.*got shape \(0, 3\)"),
        (np.ones((3, 0)), ValueError, r"Y must be two-dimensional.*got shape \(3, 0\)"),
        (
            [[1.0, NAN], [NAN, NAN]],
            ValueError,
            r"observed at one point or more, got none for curve 1",
        ),
        ([[1.0, 2.0], [0.0, -np.inf]], ValueError, r"got -inf at point 1 of curve 1"),
        ([["a", "b"]], TypeError, r"Y must be an array of numbers, a list of pairs"),
        (None, (TypeError, ValueError), r"Y must be"),
        ([([0.0, 1.0], [1.0])], ValueError, r"as many points as values, got 2 and 1 for curve 0"),
        (
            [([0.0], [1.0]), ([1.0, 0.0], [1.0, 2.0])],
            ValueError,
            r"θ of curve 1 must increase strictly, got 1 before 0",
        ),
        ([([0.0], [1.0]), ([1.0], [NAN])], ValueError, r"got none for curve 1"),
        ([([0.0], [1.0]), ([], [])], ValueError, r"got none for curve 1"),
        ([([0.0, NAN], [1.0, 2.0])], ValueError, r"θ of curve 0 must be finite, got nan"),
        ([([0.0, 1.0], [1.0, np.inf])], ValueError, r"got inf at point 1 of curve 0"),
    ],
)
def test_bad_curves(Y, error, sentence):
    with pytest.raises(error, match=sentence):
        as_curves(Y)


@pytest.mark.parametrize(
    ("theta", "error", "sentence"),
    [
        ([0.0, 1.0, 1.0], ValueError, r"theta must increase strictly, got 1 before 1"),
        ([0.0, 2.0, 1.0], ValueError, r"theta must increase strictly, got 2 before 1"),
        ([0.0, NAN, 1.0], ValueError, r"theta must be finite, got nan at position 1"),
        ([0.0, 1.0, np.inf], ValueError, r"theta must be finite, got inf at position 2"),
        ([[0.0, 1.0, 2.0]], ValueError, r"theta must be one-dimensional"),
        (0.5, ValueError, r"theta must be one-dimensional .* got shape \(\)"),
        ([], ValueError, r"theta must be one-dimensional with at least one point"),
        (["a"], TypeError, r"theta must be an array of numbers"),
    ],
)
def test_bad_grid(theta, error, sentence):
    with pytest.raises(error, match=sentence):
        as_grid(theta)
    with pytest.raises(error, match=sentence):
        as_curves(np.ones((2, 3)), theta)


def test_grid_of_another_length():
    with pytest.raises(ValueError, match=r"each of the 3 columns of Y, got 2 points"):
        as_curves(np.ones((2, 3)), [0.0, 1.0])
    with pytest.raises(ValueError, match=r"theta must be None where Y is a list of pairs"):
        as_curves([([0.0], [1.0])], [0.0])


@pytest.mark.parametrize(
    ("rule", "error", "sentence"),
    [
        ("simpson", ValueError, r"quadrature must be 'monte-carlo', .*, got 'simpson'"),
        ([1.0, 1.0], ValueError, r"one weight for each of the 3 points of the grid, got shape"),
        ([1.0, 0.0, 1.0], ValueError, r"positive and finite weights, got 0"),
        ([1.0, -2.0, 1.0], ValueError, r"positive and finite weights, got -2"),
        ([1.0, NAN, 1.0], ValueError, r"positive and finite weights, got nan"),
        ([1.0, np.inf, 1.0], ValueError, r"positive and finite weights, got inf"),
        (object(), TypeError, r"quadrature must be 'monte-carlo'"),
    ],
)
def test_bad_quadrature(rule, error, sentence):
    with pytest.raises(error, match=sentence):
        as_curves(np.ones((2, 3)), quadrature=rule)
    with pytest.raises(error, match=sentence):
        as_curves([([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])], quadrature=rule)


class Basis:
    """Functional data of scikit-fda that are on no grid, as far as anything is asked of them."""

    argument_names = ("t",)

    def __len__(self):
        return 4

    def __array__(self, *_, **__):
        return np.array([object()] * 4)


def test_curves_on_no_grid_and_ragged_lists():
    X, model = np.arange(4.0)[:, None], FunctionalRegressor(learn=False)
    with pytest.raises(TypeError, match=r"Y must be an array of numbers, .* got Basis"):
        model.fit(X, Basis())
    with pytest.raises(
        TypeError, match="X must be an array of numbers or an FDataGrid, got Basis"
    ):
        model.fit(Basis(), X)
    with pytest.raises(TypeError, match="Y must be an array of numbers, a list of pairs"):
        model.fit(X, [[1.0, 2.0], [1.0], [1.0, 2.0], [1.0, 2.0]])


@pytest.mark.parametrize("dates", [True, False])
@pytest.mark.parametrize("as_list", [True, False])
def test_points_and_values_are_no_dates(dates, as_list):
    X, model = np.arange(4.0)[:, None], FunctionalRegressor(learn=False)
    days = np.datetime64("2020-01-01") + np.arange(5)
    days = days if dates else days - days[0]
    theta = list(days) if as_list else days
    said = "must be an array of numbers, got " + ("dates" if dates else "durations")
    with pytest.raises(TypeError, match=said):
        model.fit(X, np.ones((4, 5)), theta)
    with pytest.raises(TypeError, match=said):
        model.fit(X, [theta] * 4 if as_list else np.array([days] * 4))
