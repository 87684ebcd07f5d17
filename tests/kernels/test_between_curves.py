from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import kernels as sk

from fenchel.features import PivotedCholesky
from fenchel.kernels import (
    BetweenCurves,
    Callable,
    DistanceQuantile,
    Gaussian,
    IntegralGaussian,
    Laplacian,
    Linear,
    Matern,
    OnColumns,
    resolve,
)

POINTS = np.array([0.0, 0.1, 0.3, 0.7, 2.0])
TRAPEZOID = np.array([0.025, 0.075, 0.15, 0.425, 0.325])  # by hand: half the gaps beside, over 2


def curves(n, n_channels, seed=0):
    return np.random.default_rng(seed).normal(size=(n, len(POINTS), n_channels))


def squares(A, B, weights):
    """Squared L² distances by the definition, one pair at a time."""
    return np.array([[weights @ np.sum((a - b) ** 2, axis=1) for b in B] for a in A])


def flat(A):
    return A.reshape(len(A), -1)


@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize(
    ("quadrature", "weights"),
    [
        ("monte-carlo", np.full(5, 0.2)),
        ("trapezoid", TRAPEZOID),
        (np.arange(1.0, 6.0), np.arange(1.0, 6.0)),
    ],
)
def test_distances_are_those_of_curves(n_channels, quadrature, weights):
    A, B = curves(7, n_channels), curves(4, n_channels, 1)
    d2 = squares(A, B, weights)
    for kernel, expected in [
        (Gaussian(0.7), np.exp(-d2 / (2 * 0.7**2))),
        (Laplacian(2.0), np.exp(-np.sqrt(d2) / 2.0)),
        (sk.RBF(1.3), np.exp(-d2 / (2 * 1.3**2))),
    ]:
        between = BetweenCurves(kernel, quadrature, POINTS, n_channels)
        np.testing.assert_allclose(between(flat(A), flat(B)), expected, rtol=1e-12)
    inner = np.einsum("j,ijc,kjc->ik", weights, A, B)
    between = BetweenCurves(Linear(), quadrature, POINTS, n_channels)
    np.testing.assert_allclose(between(flat(A), flat(B)), inner, atol=1e-13)
    own = np.einsum("j,ijc,ijc->i", weights, A, A)
    np.testing.assert_allclose(between.diag(flat(A)), own, rtol=1e-13)


@pytest.mark.parametrize("n_rows", [5, 150])
@pytest.mark.parametrize("n_channels", [1, 2, 13])
def test_integral_kernel_is_the_mean_of_kernels_at_points(n_rows, n_channels):
    """By the definition, with few channels and with so many as go through matrix products."""
    A, B = curves(n_rows, n_channels), curves(70, n_channels, 1)
    rho = 0.3
    kernel = IntegralGaussian(np.sqrt(0.5 / rho), n_channels=n_channels)
    for first, second, found in [
        (A, B, kernel(flat(A), flat(B))),
        (A, A, kernel(flat(A))),
    ]:
        gaps = np.sum((first[:, None] - second[None]) ** 2, axis=-1)
        np.testing.assert_allclose(found, np.exp(-rho * gaps).mean(axis=-1), atol=1e-13)
    weighted = IntegralGaussian(1.0, "trapezoid", POINTS, n_channels)
    gaps = np.sum((A[:, None] - B[None]) ** 2, axis=-1)
    expected = np.exp(-0.5 * gaps) @ TRAPEZOID
    np.testing.assert_allclose(weighted(flat(A), flat(B)), expected, atol=1e-13)


def test_integral_kernel_has_a_width_for_each_channel():
    A = curves(6, 2)
    wide = IntegralGaussian([0.5, 2.0], n_channels=2)(flat(A))
    np.testing.assert_allclose(
        wide, IntegralGaussian(1.0, n_channels=2)(flat(A / [0.5, 2.0])), rtol=1e-13
    )
    fixed = resolve(IntegralGaussian([0.5, 2.0], n_channels=2), flat(A))
    np.testing.assert_array_equal(fixed(flat(A)), wide)


def test_refined_grids_converge_to_the_integral():
    """Of x = t and x' = 0: ||x - x'||² = 1/3, and ∫ exp(-t²/2) dt by its closed form."""
    gaussian, integral = [], []
    for m in (10, 100, 1000):
        t = np.linspace(0.0, 1.0, m)
        X = np.array([t, 0.0 * t])
        gaussian.append(BetweenCurves(Gaussian(1.0), "trapezoid")(X)[0, 1])
        integral.append(IntegralGaussian(1.0, "trapezoid")(X)[0, 1])
    for found, limit in [(gaussian, np.exp(-1 / 6)), (integral, 0.8556243918921488)]:
        errors = np.abs(np.array(found) - limit)
        assert errors[-1] < 1e-7
        assert np.all(errors[1:] < 0.02 * errors[:-1])  # second order: (9/99)² at each step


def test_widths_are_read_off_distances_of_curves():
    A = curves(21, 2)
    distances = np.sqrt(squares(A, A, TRAPEZOID)[np.triu_indices(21, 1)])
    median = np.sort(distances)[len(distances) // 2 - 1]
    fixed = resolve(BetweenCurves(Gaussian("median"), "trapezoid", POINTS, 2), flat(A))
    assert fixed.kernel.length_scale == pytest.approx(median, rel=1e-12)
    fixed = resolve(IntegralGaussian("median", "trapezoid", POINTS, 2), flat(A))
    assert fixed.length_scale == pytest.approx(median, rel=1e-12)
    # a mean square whatever the sum of the weights
    fixed = resolve(IntegralGaussian("median", 5.0 * TRAPEZOID, POINTS, 2), flat(A))
    assert fixed.length_scale == pytest.approx(median, rel=1e-12)
    weight = np.r_[np.ones(10), np.zeros(11)]
    some = resolve(IntegralGaussian(DistanceQuantile(0.9)), flat(A), weight)
    assert some == resolve(IntegralGaussian(DistanceQuantile(0.9)), flat(A)[:10])


@pytest.mark.parametrize("columns", [[3, 0], slice(0, 4, 3), np.array([True, False, False, True])])
def test_columns(columns):
    X = np.random.default_rng(0).normal(size=(9, 4)) * [1.0, 10.0, 100.0, 1000.0]
    chosen = X[:, [0, 3]]
    kernel = OnColumns(Gaussian("median"), columns)
    fixed = resolve(kernel, X)
    assert fixed.kernel == resolve(Gaussian("median"), chosen)
    np.testing.assert_allclose(fixed(X), fixed.kernel(chosen), rtol=1e-13)
    np.testing.assert_allclose(fixed(X, X[:2]), fixed.kernel(chosen, chosen[:2]), rtol=1e-13)
    linear = OnColumns(Linear(), columns)
    np.testing.assert_allclose(linear.diag(X), np.sum(chosen**2, axis=1), rtol=1e-13)
    assert fixed.is_stationary()
    assert not linear.is_stationary()


def test_product_of_a_curve_and_a_vector():
    A, V = curves(8, 2), np.random.default_rng(5).normal(size=(8, 3))
    X = np.hstack([flat(A), V])
    kernel = OnColumns(BetweenCurves(Gaussian("median"), n_channels=2), slice(0, 10)) * OnColumns(
        Matern("scale"), slice(10, None)
    ) + OnColumns(Linear(), [10])
    found = resolve(kernel, X)(X)
    of_curves = resolve(Gaussian("median"), flat(A) / np.sqrt(5.0))(flat(A) / np.sqrt(5.0))
    of_vectors = resolve(Matern("scale"), V)(V)
    np.testing.assert_allclose(
        found, of_curves * of_vectors + np.outer(V[:, 0], V[:, 0]), rtol=1e-12
    )


def test_parts_of_parameters_can_be_set():
    kernel = BetweenCurves(Gaussian(1.0))
    again = clone(kernel).set_params(kernel__length_scale=3.0)
    assert again.kernel.length_scale == 3.0
    assert kernel.kernel.length_scale == 1.0
    assert again != kernel
    assert again == BetweenCurves(Gaussian(3.0))


def test_a_foreign_part_is_not_taken_on_trust():
    """Not positive semi-definite behind a diagonal of zeros: the factorization looks."""
    indefinite = Callable(lambda X, Y: 1.0 - np.eye(len(X))[:, : len(Y)])
    X = np.arange(6.0).reshape(3, 2)
    for kernel in (OnColumns(indefinite, [0, 1]), BetweenCurves(indefinite)):
        with pytest.raises(ValueError, match=r"positive semi-definite"):
            PivotedCholesky(kernel).fit(X)


X4 = np.ones((3, 4))


@pytest.mark.parametrize("make", [lambda **p: BetweenCurves(Gaussian(1.0), **p), IntegralGaussian])
@pytest.mark.parametrize(
    ("parameters", "error", "sentence"),
    [
        ({"n_channels": 3}, ValueError, r"n_channels must divide .* columns of X, 4, got 3"),
        ({"n_channels": 0}, ValueError, r"n_channels must be an integer >= 1, got 0"),
        ({"n_channels": 2.0}, TypeError, r"n_channels must be an integer >= 1, got 2.0"),
        ({"n_channels": True}, TypeError, r"n_channels must be an integer >= 1, got True"),
        ({"points": [0.0, 1.0]}, ValueError, r"each of the 4 points of a curve of X, got 2"),
        ({"points": [0.0, 2.0, 1.0, 3.0]}, ValueError, r"points must increase strictly, got 2"),
        ({"quadrature": "simpson"}, ValueError, r"quadrature must be 'monte-carlo'"),
        ({"quadrature": [1.0, 1.0]}, ValueError, r"one weight for each of the 4 points"),
    ],
)
def test_bad_parameters(make, parameters, error, sentence):
    kernel = make(**parameters)
    with pytest.raises(error, match=sentence):
        resolve(kernel, X4)(X4)


@pytest.mark.parametrize(
    ("columns", "error", "sentence"),
    [
        ([4], ValueError, r"columns must be a slice, numbers from 0 to 3 or a mask of 4 entries"),
        ([-1], ValueError, r"got \[-1\]"),
        (slice(4, None), ValueError, r"got slice\(4, None, None\), which is none of them"),
        ([True, False], ValueError, r"a mask of 4 entries, got \[True, False\]"),
        ([False] * 4, ValueError, r"a mask of 4 entries"),
        ([0.0], TypeError, r"columns must be a slice"),
        (["a"], TypeError, r"columns must be a slice"),
        (1, TypeError, r"columns must be a slice, .*, got 1"),
        ([], (TypeError, ValueError), r"columns must be a slice, .*, got \[\]"),
    ],
)
def test_bad_columns(columns, error, sentence):
    with pytest.raises(error, match=sentence):
        OnColumns(Linear(), columns)(X4)


@pytest.mark.parametrize("wrap", [BetweenCurves, lambda kernel: OnColumns(kernel, [0])])
def test_names_are_no_kernels_of_parts(wrap):
    with pytest.raises(TypeError, match=r"kernel must be a kernel object such as .*, got 'rbf'"):
        wrap("rbf")(X4)


@pytest.mark.parametrize("scale", ["scale", DistanceQuantile(0.5, standardize=True)])
def test_integral_kernel_has_no_width_for_each_column(scale):
    with pytest.raises(ValueError, match=r"length_scale of IntegralGaussian must be .*, got"):
        resolve(IntegralGaussian(scale), X4)


def test_widths_must_be_measured_first():
    for kernel in (IntegralGaussian(), BetweenCurves(Gaussian("median"))):
        with pytest.raises(ValueError, match=r"length_scale='median' is read off data"):
            kernel(X4)
