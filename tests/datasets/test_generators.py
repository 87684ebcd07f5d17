from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fenchel.datasets import make_heavy_tails, make_sine_quantiles

GENERATORS = [make_sine_quantiles, make_heavy_tails]


def test_sine_shapes_and_ranges():
    X, y, quantiles = make_sine_quantiles(50, random_state=0)
    assert X.shape == (50, 1)
    assert y.shape == (50,)
    assert quantiles.shape == (50, 5)
    assert X.min() >= 0.0
    assert X.max() <= 1.5
    assert make_sine_quantiles(7, levels=0.3)[2].shape == (7, 1)
    assert make_sine_quantiles(1)[0].shape == (1, 1)


def test_sine_formula():
    X, y, quantiles = make_sine_quantiles(20_000, levels=[0.5, 0.9], random_state=1)
    x = X[:, 0]
    mean = np.sin(2 * np.pi * x) * (1 + np.sin(2 * np.pi * x / 3))
    np.testing.assert_allclose(quantiles[:, 0], mean, atol=1e-12)
    # sd by its two ends, z-scores by the distribution they must have
    sd = np.interp(x, [0.0, 1.5], [1.2, 0.2])
    np.testing.assert_allclose(quantiles[:, 1] - mean, sd * stats.norm.ppf(0.9), atol=1e-12)
    assert stats.kstest((y - mean) / sd, "norm").pvalue > 1e-3
    assert stats.kstest(x / 1.5, "uniform").pvalue > 1e-3


def test_sine_quantiles_cover_everywhere():
    """Conditional, not only marginal, coverage: in each tenth of the range of x."""
    levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    n = 100_000
    X, y, quantiles = make_sine_quantiles(n, levels=levels, random_state=2)
    below = y[:, None] <= quantiles
    part = np.minimum((X[:, 0] / 0.15).astype(int), 9)
    for i in range(10):
        inside = below[part == i]
        error = 4.5 * np.sqrt(levels * (1 - levels) / inside.shape[0])
        assert np.all(np.abs(inside.mean(axis=0) - levels) < error)


def test_sine_levels_keep_their_order():
    *_, up = make_sine_quantiles(10, levels=[0.1, 0.5, 0.9], random_state=0)
    *_, mixed = make_sine_quantiles(10, levels=[0.9, 0.1, 0.5], random_state=0)
    np.testing.assert_array_equal(mixed, up[:, [2, 0, 1]])
    assert np.all(np.diff(up, axis=1) > 0)


@pytest.mark.slow
def test_heavy_tails_formula():
    n = 200_000  # tells 3 degrees of freedom from 4
    X, y = make_heavy_tails(n, random_state=0)
    assert X.shape == (n, 10)
    assert y.shape == (n,)
    for column in X.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3
    mean = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] ** 2 / 2
    noise = (y - mean) / (0.3 + np.abs(X[:, 4]) / 2)
    assert stats.kstest(noise, stats.t(3).cdf).pvalue > 1e-3
    assert stats.kstest(noise, stats.t(4).cdf).pvalue < 1e-6


@pytest.mark.parametrize("make", GENERATORS)
def test_random_state(make):
    first, again, other = make(30, random_state=3), make(30, random_state=3), make(30)
    for a, b, c in zip(first[:2], again[:2], other[:2], strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)
    state = np.random.RandomState(3)
    np.testing.assert_array_equal(make(30, random_state=state)[0], first[0])
    assert not np.array_equal(make(30, random_state=state)[0], first[0])


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize(
    ("n_samples", "error"),
    [(0, ValueError), (-1, ValueError), (2.0, TypeError), ("9", TypeError), (True, TypeError)],
)
def test_bad_n_samples(make, n_samples, error):
    with pytest.raises(error, match=r"n_samples must be an integer >= 1, got"):
        make(n_samples)


@pytest.mark.parametrize(
    ("levels", "sentence"),
    [
        ([], "be a number or a non-empty sequence"),
        ([0.0, 0.5], "lie strictly between 0 and 1"),
        (1.0, "lie strictly between 0 and 1"),
        ([np.nan], "lie strictly between 0 and 1"),
        ([[0.5]], "be a number or a non-empty sequence"),
        ([0.5, 0.5], "not repeat a level"),
        (["a"], "be a number or a non-empty sequence"),
        ("0.5", "be a number or a non-empty sequence"),
        (None, "be a number or a non-empty sequence"),
        (True, "be a number or a non-empty sequence"),
    ],
)
def test_bad_levels(levels, sentence):
    with pytest.raises(ValueError, match=f"levels must {sentence}.*, got"):
        make_sine_quantiles(5, levels=levels)
