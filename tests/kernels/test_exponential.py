"""Compiled exponentials against NumPy's, and kernels written into given arrays."""

import numpy as np
import pytest

from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, OnColumns, WithRanks, resolve
from fenchel.kernels.exponential import gaussian, matern, matern32_with_slopes, shape


def formula(squares, nu):
    root = np.sqrt(2.0 * nu * squares)
    factor = {0.5: 1.0, 1.5: 1.0 + root, 2.5: 1.0 + root + root**2 / 3.0}[nu]
    return factor * np.exp(-root)


@pytest.mark.parametrize("size", [1, 7, 256, 257, 100_001])
def test_within_two_units_in_the_last_place(size):
    squares = np.linspace(0.0, 1400.0, size)
    np.testing.assert_allclose(gaussian(squares.copy()), np.exp(-0.5 * squares), rtol=5e-16)
    for nu in (0.5, 1.5, 2.5):
        np.testing.assert_allclose(matern(squares.copy(), nu), formula(squares, nu), rtol=1e-15)
    values, slopes = matern32_with_slopes(squares.copy())
    np.testing.assert_allclose(values, formula(squares, 1.5), rtol=1e-15)
    np.testing.assert_allclose(slopes, 3.0 * np.exp(-np.sqrt(3.0 * squares)), rtol=1e-15)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_without_compilation_they_are_those_of_numpy(kind):
    """As with NUMBA_DISABLE_JIT, which debuggers and reports of coverage need."""
    squares = np.linspace(0.0, 50.0, 60).astype(kind)
    for twice, expected in [(0, np.exp(-0.5 * squares)), (3, formula(squares, 1.5))]:
        found = squares.copy()
        getattr(shape, "py_func", shape)(found, twice)
        np.testing.assert_allclose(found, expected, rtol=8 * np.finfo(kind).eps)


def test_ends():
    squares = np.array([0.0, 5e-324, 1e-300, 1415.9, 1416.1, 1e300, np.inf, np.nan])
    found = gaussian(squares.copy())
    assert np.array_equal(found[:3], [1.0, 1.0, 1.0])
    assert 3e-308 < found[3] < 4e-308
    assert np.array_equal(found[4:7], [0.0, 0.0, 0.0])
    assert np.isnan(found[7])
    assert np.array_equal(gaussian(np.empty((0, 3))), np.empty((0, 3)))
    with pytest.raises(ValueError, match="contiguous"):
        gaussian(np.zeros((4, 4))[:, :2])


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian([0.5, 1.0, 2.0]),
        Matern(0.7, 2.5),
        Laplacian(1.0),
        Linear(),
        WithRanks(Matern(1.3)),
        OnColumns(Gaussian(1.0), [2, 0]),
        2.0 * Gaussian(0.8) + Linear(),
    ],
    ids=repr,
)
def test_reduced_rows_and_given_arrays(kernel):
    X = np.random.default_rng(0).standard_normal((40, 3))
    kernel = resolve(kernel, X)
    expected = kernel(X[:30], X[20:])
    if hasattr(kernel, "reduced"):
        rows, reduced = kernel.reduced(X)
        np.testing.assert_allclose(reduced(rows[:30], rows[20:]), expected, rtol=1e-13)
        out = np.full((30, 20), np.nan)
        reduced.fill(rows[:30], rows[20:], out)
        np.testing.assert_allclose(out, expected, rtol=1e-13)
        kernel.fill(X[:30], X[20:], out)
        np.testing.assert_allclose(out, expected, rtol=1e-13)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 10, 16, 17])
def test_values_in_one_pass(d, precision):
    random = np.random.default_rng(d)
    X, Y = random.standard_normal((9, d)), random.standard_normal((1301, d))
    X, Y = X.astype(precision), Y.astype(precision)
    squares = ((X[:, None].astype(float) - Y) ** 2).sum(axis=2)
    accuracy = 40.0 * np.finfo(precision).eps
    for kernel, expected in (
        (Gaussian(1.0), np.exp(-0.5 * squares)),
        (Laplacian(1.0), formula(squares, 0.5)),
        (Matern(1.0), formula(squares, 1.5)),
        (Matern(1.0, 2.5), formula(squares, 2.5)),
    ):
        out = np.empty((9, 1301), precision)
        kernel.fill(X, Y, out)
        np.testing.assert_allclose(out, expected, rtol=accuracy, atol=accuracy)
        turned = np.empty((1301, 9), precision)
        kernel.fill(Y, X, turned)
        if d <= 16:  # sums: the same bits wherever a pair stands
            assert np.array_equal(out, turned.T)
            part = np.empty((1, 3), precision)
            kernel.fill(X[4:5], np.ascontiguousarray(Y[1000:1003]), part)
            assert np.array_equal(part, out[4:5, 1000:1003])
