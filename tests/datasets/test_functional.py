from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fenchel.datasets import (
    extend_symmetrically,
    fill_gaps,
    local_outliers,
    make_functional,
    process_outliers,
    swap_outliers,
)

NAN = np.nan
OUTLIERS = [swap_outliers, process_outliers, local_outliers]


def gaussian(theta, scale):
    return np.exp(-(np.subtract.outer(theta, theta) ** 2) / (2 * scale**2))


def covariance(scales, theta, coefficient_variance):
    return coefficient_variance * sum(gaussian(theta, scale) for scale in scales)


def close_to(found, expected, draws):
    """Second moments within 5 standard errors, estimated from the draws (n, ...) themselves."""
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(found - expected) < 5 * error)


def test_shapes():
    X, Y, theta = make_functional(7, n_points=11, input_scales=[0.2], output_scales=[0.3])
    assert X.shape == Y.shape == (7, 11)
    np.testing.assert_array_equal(theta, np.linspace(0.0, 1.0, 11))


@pytest.mark.slow
def test_covariance_of_the_curves():
    """First curves of 3000 sets of processes: sums of Gaussian covariances over 12."""
    inner, outer = [0.05, 0.5], [0.3, 0.7]
    pairs = [
        make_functional(1, n_points=6, input_scales=inner, output_scales=outer, random_state=seed)[
            :2
        ]
        for seed in range(3000)
    ]
    theta = np.linspace(0.0, 1.0, 6)
    for curves, scales in zip(
        np.array(pairs)[:, :, 0].transpose(1, 0, 2), (inner, outer), strict=True
    ):
        products = curves[:, :, None] * curves[:, None, :]
        close_to(products.mean(axis=0), covariance(scales, theta, 1 / 12), products)
        assert not np.allclose(
            products.mean(axis=0), covariance([0.1, 1.0], theta, 1 / 12), atol=0.02
        )
    # inputs and outputs share coefficients, of mean zero, but no processes
    mixed = np.array([x[0][:, None] * y[0][None] for x, y in pairs])
    close_to(mixed.mean(axis=0), np.zeros((6, 6)), mixed)


def test_rows_are_mixtures_of_the_same_processes():
    X, Y, _ = make_functional(300, random_state=0)
    assert np.linalg.matrix_rank(X, tol=1e-10) == 4
    assert np.linalg.matrix_rank(Y, tol=1e-10) == 4
    assert np.linalg.matrix_rank(np.hstack([X, Y]), tol=1e-10) == 4  # one set of coefficients


def test_coefficients_are_uniform():
    """Of one process: a curve is a uniform number times a fixed one."""
    X, Y, _ = make_functional(
        5000, n_points=5, input_scales=[0.5], output_scales=[0.1], random_state=3
    )
    again = make_functional(1, n_points=5, input_scales=[0.5], output_scales=[0.1], random_state=3)
    ratio = X[:, 2] / X[0, 2]
    np.testing.assert_allclose(Y[:, 3] / Y[0, 3], ratio, rtol=1e-10)
    np.testing.assert_allclose(X[0], again[0][0])  # the processes do not depend on n_samples
    high, low = ratio.max(), ratio.min()
    assert high / low == pytest.approx(-1.0, abs=0.01)  # the range is symmetric about zero
    assert stats.kstest((ratio - low) / (high - low), "uniform").pvalue > 1e-3


def test_processes_may_stay_over_repetitions():
    first, again = (
        np.hstack(make_functional(50, random_state=seed, process_state=7)[:2]) for seed in (0, 1)
    )
    assert np.linalg.matrix_rank(np.vstack([first, again]), tol=1e-10) == 4  # one set for both
    assert not np.allclose(first, again)
    other = np.hstack(make_functional(50, random_state=0, process_state=8)[:2])
    assert np.linalg.matrix_rank(np.vstack([first, other]), tol=1e-10) == 8
    # the coefficients depend on random_state alone
    assert np.linalg.matrix_rank(np.hstack([first, other]), tol=1e-10) == 4
    same = make_functional(50, random_state=np.random.RandomState(0), process_state=7)
    np.testing.assert_array_equal(np.hstack(same[:2]), first)
    with pytest.raises(ValueError, match="'typo'"):
        make_functional(5, process_state="typo")


def test_noise():
    X, Y, _ = make_functional(400, random_state=5)
    X_noisy, Y_noisy, _ = make_functional(400, noise=0.5, random_state=5)
    np.testing.assert_array_equal(X_noisy, X)
    assert stats.kstest((Y_noisy - Y).ravel() / 0.5, "norm").pvalue > 1e-3


def test_swapped_are_negatives_of_the_next():
    Y = np.arange(40.0).reshape(20, 2)
    Y[3, 1] = NAN
    before = Y.copy()
    contaminated, outlying = swap_outliers(Y, 0.3, random_state=0)
    np.testing.assert_array_equal(Y, before)
    rows = np.flatnonzero(outlying)
    assert len(rows) == 6
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(contaminated[row], -Y[rows[(i + 1) % 6]])
    np.testing.assert_array_equal(contaminated[~outlying], Y[~outlying])
    alone, outlying = swap_outliers(Y[:3], 0.4, random_state=0)
    np.testing.assert_array_equal(alone[outlying], -Y[:3][outlying])
    moved = swap_outliers(Y, 1.0)[0]  # gaps move with their curve
    assert np.isnan(moved[2, 1])
    assert not np.isnan(moved[3, 1])


@pytest.mark.slow
@pytest.mark.parametrize("add", [False, True])
def test_covariance_of_process_outliers(add):
    Y = np.random.default_rng(0).normal(size=(2, 5))
    theta, scales, zeta = np.array([0.0, 0.1, 0.3, 1.0, 4.0]), [0.2, 2.0], 3.0
    draws = []
    for seed in range(3000):
        contaminated, outlying = process_outliers(
            Y, 0.5, intensity=zeta, scales=scales, theta=theta, add=add, random_state=seed
        )
        assert outlying.sum() == 1
        np.testing.assert_array_equal(contaminated[~outlying], Y[~outlying])
        draws.append((contaminated - add * Y)[outlying][0])
    draws = np.array(draws)
    products = draws[:, :, None] * draws[:, None, :]
    close_to(products.mean(axis=0), covariance(scales, theta, zeta**2 / 12), products)
    close_to(draws.mean(axis=0), np.zeros(5), draws)


def test_process_outliers_share_their_processes():
    Y = np.zeros((50, 30))
    contaminated, outlying = process_outliers(Y, 0.8, random_state=0)
    assert np.linalg.matrix_rank(contaminated, tol=1e-10) == 4
    assert outlying.sum() == 40
    stronger, _ = process_outliers(Y, 0.8, intensity=6.0, random_state=0)
    np.testing.assert_allclose(stronger, 3.0 * contaminated, rtol=1e-12)
    Y[:, ::7] = NAN
    np.testing.assert_array_equal(np.isnan(process_outliers(Y, 1.0)[0]), np.isnan(Y))


def test_local_outliers():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(500, 40))
    Y[rng.uniform(size=Y.shape) < 0.25] = NAN
    contaminated, outlying = local_outliers(Y, 0.4, share_of_points=0.3, random_state=1)
    assert outlying.shape == Y.shape
    assert outlying.any(axis=1).sum() == 200
    observed = (~np.isnan(Y)).sum(axis=1)
    rows = outlying.any(axis=1)
    np.testing.assert_array_equal(outlying.sum(axis=1)[rows], observed[rows] * 3 // 10)
    np.testing.assert_array_equal(contaminated[~outlying], Y[~outlying])
    np.testing.assert_array_equal(np.isnan(contaminated), np.isnan(Y))
    bound = np.nanmax(np.abs(Y))
    assert stats.kstest(contaminated[outlying] / bound, "uniform", args=(-1, 2)).pvalue > 1e-3
    # every point is hit alike: counts of a share p of the observed rows there
    p = outlying[rows].sum() / observed[rows].sum()
    seen = (~np.isnan(Y))[rows].sum(axis=0)
    assert np.all(np.abs(outlying.sum(axis=0) - p * seen) < 4.5 * np.sqrt(seen * p * (1 - p)))


@pytest.mark.parametrize("make", OUTLIERS)
@pytest.mark.parametrize("share", [0.0, 0.05, 0.29, 0.3, 0.57, 1.0])
def test_share_of_outliers(make, share):
    """Of 100 rows, even where rounding puts the product below the integer."""
    Y = np.random.default_rng(0).normal(size=(100, 20))
    contaminated, outlying = make(Y, share, random_state=0)
    assert (outlying if outlying.ndim == 1 else outlying.any(axis=1)).sum() == round(100 * share)
    assert (contaminated != Y).any(axis=1).sum() == round(100 * share)
    assert make(Y[:19], 0.1)[1].sum() in (1, 2)  # ⌊1.9⌋ rows; of one, two of 20 points


@pytest.mark.slow
@pytest.mark.parametrize("make", OUTLIERS)
def test_any_row_may_be_an_outlier(make):
    Y = np.random.default_rng(0).normal(size=(10, 10))
    masks = [make(Y, 0.3, random_state=seed)[1] for seed in range(2000)]
    masks = [mask if mask.ndim == 1 else mask.any(axis=1) for mask in masks]
    error = 4.5 * np.sqrt(0.3 * 0.7 / 2000)
    assert np.all(np.abs(np.mean(masks, axis=0) - 0.3) < error)


def test_random_state():
    makers = [lambda seed: make_functional(5, noise=1.0, random_state=seed)]
    Y = np.random.default_rng(0).normal(size=(30, 20))
    makers += [lambda seed, make=make: make(Y, 0.5, random_state=seed) for make in OUTLIERS]
    for make in makers:
        first, again, other = make(3), make(np.random.RandomState(3)), make(4)
        for a, b in zip(first, again, strict=True):
            np.testing.assert_array_equal(a, b)
        assert not np.array_equal(first[0], other[0])


def test_gaps_are_filled_by_lines():
    theta = np.array([0.0, 1.0, 4.0, 5.0, 9.0])
    Y = np.array([[NAN, 1.0, NAN, 5.0, NAN], [1.0, 2.0, 3.0, 4.0, 5.0]])
    filled = fill_gaps(Y, theta)
    np.testing.assert_allclose(filled, [[1.0, 1.0, 4.0, 5.0, 5.0], Y[1]], rtol=1e-15)
    assert np.isnan(Y[0, 0])
    np.testing.assert_allclose(fill_gaps(Y)[0], [1.0, 1.0, 3.0, 5.0, 5.0])


def test_symmetric_extension():
    rng = np.random.default_rng(0)
    series = [rng.normal(size=length) for length in (3, 8, 1, 5)]
    extended = extend_symmetrically(series, 20)
    for found, each in zip(extended, series, strict=True):
        expected = np.pad(each, (0, 20 - len(each)), mode="symmetric")
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(extend_symmetrically(series), extended[:, :8])
    channels = [rng.normal(size=(length, 2)) for length in (3, 8)]
    found = extend_symmetrically(channels)
    assert found.shape == (2, 8, 2)
    for c in range(2):
        np.testing.assert_array_equal(
            found[:, :, c], extend_symmetrically([each[:, c] for each in channels])
        )


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: make_functional(0), ValueError, r"n_samples must be an integer >= 1"),
        (lambda: make_functional(2.0), TypeError, r"n_samples must be an integer"),
        (lambda: make_functional(n_points=0), ValueError, r"n_points must be an integer"),
        (lambda: make_functional(noise=-1.0), ValueError, r"noise must be a finite number >= 0"),
        (lambda: make_functional(noise="a"), TypeError, r"noise must be a finite number >= 0"),
        (lambda: make_functional(input_scales=[0.0] * 4), ValueError, r"input_scales must be a"),
        (lambda: make_functional(output_scales=[0.1]), ValueError, r"as many .* got 1 and 4"),
        (lambda: process_outliers(np.ones((4, 3)), theta=[0, 1]), ValueError, r"3 columns of Y"),
        (lambda: process_outliers(np.ones((4, 3)), theta=[0, 2, 1]), ValueError, r"increase"),
        (lambda: process_outliers(np.ones((4, 3)), intensity=-1.0), ValueError, r"intensity must"),
        (lambda: process_outliers(np.ones((4, 3)), scales=[]), ValueError, r"scales must be a"),
        (lambda: process_outliers(np.ones((4, 3)), add=1), TypeError, r"add must be True or"),
        (lambda: local_outliers(np.ones((4, 3)), share_of_points=2.0), ValueError, r"share_of"),
        (lambda: fill_gaps([[1.0, 2.0], [NAN, NAN]]), ValueError, r"got none for curve 1"),
        (lambda: fill_gaps([[1.0, 2.0]], [0.0]), ValueError, r"2 columns of Y, got 1"),
        (lambda: extend_symmetrically([]), ValueError, r"at least one series, got none"),
        (lambda: extend_symmetrically([[1.0], []]), ValueError, r"got shape \(0,\) for series 1"),
        (lambda: extend_symmetrically([[[1.0]], [1.0]]), ValueError, r"as many channels as"),
        (lambda: extend_symmetrically([[1.0, 2.0]], 1), ValueError, r"longest series, 2, got 1"),
        (lambda: extend_symmetrically([["a"]]), TypeError, r"series 0 must be an array of"),
    ],
)
def test_bad_parameters(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


@pytest.mark.parametrize("make", OUTLIERS)
@pytest.mark.parametrize(
    ("Y", "share", "error", "sentence"),
    [
        ([1.0, 2.0], 0.1, ValueError, r"Y must be two-dimensional"),
        ([[1.0, np.inf]], 0.1, ValueError, r"Y must be finite, or NaN where not observed"),
        ([["a"]], 0.1, TypeError, r"Y must be an array of numbers"),
        ([[1.0]], 1.1, ValueError, r"share must be a number in \[0, 1\], got 1.1"),
        ([[1.0]], NAN, ValueError, r"share must be a number in \[0, 1\], got nan"),
        ([[1.0]], "a", TypeError, r"share must be a number in \[0, 1\], got 'a'"),
    ],
)
def test_bad_outliers(make, Y, share, error, sentence):
    with pytest.raises(error, match=sentence):
        make(Y, share)
