"""Dense linear algebra in tiles."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.datasets import make_heavy_tails
from fenchel.design.tiled import (
    factor_lower,
    inverse_lengths,
    multiplied,
    symmetric_product,
    weighted_square,
)
from fenchel.kernels import Gaussian
from fenchel.model_selection import PathSearchCV

UNEQUAL = np.array([[1.0, 0.5], [0.5, 2.0]])
SIZES = [1, 40, 600, 1100]  # within a tile, and with one that is cut


def definite(n):
    rows = np.random.default_rng(n).normal(size=(n, n))
    return rows @ rows.T / n + np.eye(n)


@pytest.mark.parametrize("n", SIZES)
def test_factor_is_that_of_the_matrix_and_leaves_the_other_triangle(n):
    matrix = definite(n)
    factor = np.array(matrix, order="F")
    factor[np.triu_indices(n, 1)] = np.nan
    assert factor_lower(factor)
    assert np.isnan(factor[np.triu_indices(n, 1)]).all()
    lower = np.tril(factor)
    assert np.allclose(lower @ lower.T, matrix, rtol=0.0, atol=1e-12)
    lengths = np.diag(np.linalg.inv(matrix))
    assert np.allclose(inverse_lengths(np.asfortranarray(factor)), lengths, rtol=1e-10)


@pytest.mark.parametrize("row", [0, 300, 899])
def test_a_matrix_that_is_not_definite_is_told(row):
    matrix = np.array(definite(900), order="F")
    matrix[row, row] = -1.0
    assert not factor_lower(matrix)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("columns", [1, 3])
def test_products(n, columns):
    matrix = np.random.default_rng(0).normal(size=(n, n))
    right = np.random.default_rng(1).normal(size=(n, columns))
    assert np.allclose(multiplied(matrix, right), matrix @ right)
    assert np.allclose(
        multiplied(matrix[: n // 2].T, right[: n // 2]), matrix[: n // 2].T @ right[: n // 2]
    )
    below = np.tril(matrix, -1)
    assert np.allclose(symmetric_product(matrix, right), (below + below.T) @ right)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5000, 7), (700, 620)], ids=str)
def test_squares(shape):
    random = np.random.default_rng(0)
    features, weight = random.normal(size=shape), random.uniform(size=shape[0])
    for number in (1, 3):
        with threadpool_limits(number):
            plain, square = weighted_square(features), weighted_square(features, weight)
        assert np.allclose(plain, features.T @ features)
        assert np.allclose(square, features.T @ (weight[:, None] * features))
        assert (square == square.T).all()


def bits(model, rows, number, width=4.8):
    X, y = make_heavy_tails(rows, random_state=0)
    if getattr(model, "coupling", None) is not None:
        y = np.column_stack([y, np.abs(y)])
    with threadpool_limits(number):
        model.set_params(kernel=Gaussian(width), learn=False).fit(X, y)
        loo = getattr(model, "loo_residuals_", np.zeros(0))
        return [each.tobytes() for each in (model.dual_coef_, model.predict(X[:50]), loo)]


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (SVR(alpha=1e-5, epsilon=0.1), 2100),
        (SVR(alpha=1e-5, epsilon=0.1), 1100),
        (QuantileRegressor([0.1, 0.5], alpha=1e-4), 1100),
        (ExpectileRegressor(0.9, alpha=1e-4), 1100),
        (KernelRidge(alpha=1e-3), 1100),
        (KernelRidge(alpha=1e-3, coupling=UNEQUAL), 1100),
        (KernelRidge(alpha=1e-3, features="kernel_rows", solver="conjugate_gradients"), 1100),
    ],
)
def test_fits_on_kernel_rows_are_the_same_for_any_number_of_threads(model, rows, number):
    assert bits(model, rows, number) == bits(model, rows, 1)


@pytest.mark.slow
@pytest.mark.parametrize("coupling", [None, UNEQUAL])
def test_rows_left_out_are_the_same_for_any_number_of_threads(coupling):
    X, y = make_heavy_tails(1100, random_state=0)
    targets = y if coupling is None else np.column_stack([y, np.abs(y)])
    model = KernelRidge(kernel=Gaussian(4.8), learn=False, coupling=coupling)
    model.set_params(features="kernel_rows")
    found = []
    for number in (1, 2, 3):
        with threadpool_limits(number):
            search = PathSearchCV(model, {"alpha": [1e-4, 1e-2]}, scoring="loo", n_jobs=1)
            search.fit(X, targets)
            found.append([search.cv_results_["mean_test_score"].tobytes(), bits_of(search, X)])
    assert found[1:] == found[:1] * 2


def bits_of(search, X):
    best = search.best_estimator_
    return best.loo_residuals_.tobytes(), best.predict(X[:50]).tobytes()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # of what so few features leave out
@pytest.mark.parametrize("features", ["nystroem", "cholesky", "fourier"])
def test_fits_on_many_features_are_the_same_for_any_number_of_threads(features):
    model = QuantileRegressor(0.5, alpha=1e-3, features=features, rank=1100, random_state=0)
    assert bits(model, 1300, 1, width=0.3) == bits(model, 1300, 3, width=0.3)
    assert model.feature_map_.rank_ > 1000
