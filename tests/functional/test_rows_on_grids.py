"""Curves as rows: on the grid of the fit, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import fenchel
from fenchel import FunctionalRegressor
from fenchel.kernels import Gaussian

GRID = np.linspace(0.0, 1.0, 7)
VALUES = np.random.default_rng(0).normal(size=(12, 7))
Y = np.cumsum(VALUES, axis=1)


class Grid:
    """What is asked of an FDataGrid of scikit-fda."""

    def __init__(self, values, *points):
        self.data_matrix = values.reshape(len(values), *map(len, points), -1)
        self.grid_points = points

    def __len__(self):
        return len(self.data_matrix)


@pytest.fixture(scope="module")
def model():
    regressor = FunctionalRegressor(kernel=Gaussian(2.0), alpha=1e-2, learn=False)
    return regressor.fit(Grid(VALUES, GRID), Y)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ((2.0 * GRID,), "7 points from 0 to 2"),
        ((GRID**2,), "as many others"),
        ((GRID[:-1],), "6 points from 0 to 0.833333"),
        ((GRID[:2], GRID[:3]), "2 points from 0 to 0.166667 by 3 points from 0 to 0.333333"),
    ],
)
def test_curves_on_other_grids_are_refused(points, said, model):
    new = Grid(VALUES[:, : int(np.prod([len(p) for p in points]))], *points)
    said = f"^X must be curves on the grid of the fit, 7 points from 0 to 1, got {said}: evaluate"
    for call in (model.predict, lambda X: model.score(X, Y)):
        with pytest.raises(ValueError, match=said):
            call(new)


def test_the_same_grid_and_arrays_are_taken(model, tmp_path):
    expected = model.predict(VALUES)
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    for known in (model, same):
        np.testing.assert_array_equal(known.predict(Grid(VALUES, GRID + 1e-12)), expected)
    with pytest.raises(ValueError, match="as many others"):
        same.predict(Grid(VALUES, GRID**2))
    of_arrays = FunctionalRegressor(kernel=Gaussian(2.0), alpha=1e-2, learn=False).fit(VALUES, Y)
    np.testing.assert_array_equal(of_arrays.predict(Grid(VALUES, 2.0 * GRID)), expected)


def test_channels_keep_their_place_and_lists_are_taken(tmp_path):
    X = np.random.default_rng(1).normal(size=(12, 7, 2))
    model = FunctionalRegressor(kernel=Gaussian(2.0), alpha=1e-2, learn=False).fit(X, Y)
    expected = model.predict(X)
    np.testing.assert_array_equal(model.predict(X.reshape(12, -1)), expected)
    np.testing.assert_array_equal(model.predict(X.tolist()), expected)
    lists = FunctionalRegressor(kernel=Gaussian(2.0), alpha=1e-2, learn=False)
    np.testing.assert_array_equal(lists.fit(X.tolist(), Y.tolist()).predict(X), expected)
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    turned = X.transpose(0, 2, 1)
    for call in (model.predict, same.predict, lambda X: model.score(X, Y)):
        for new in (turned, turned.tolist(), Grid(turned, GRID[:2])):
            with pytest.raises(
                ValueError, match=r"shape \(n, 7, 2\) of the fit, got \(n, 2, 7\)$"
            ):
                call(new)
    with pytest.raises(ValueError, match="inhomogeneous"):
        model.predict([[[1.0, 2.0], [3.0]], [[1.0, 2.0]]])
