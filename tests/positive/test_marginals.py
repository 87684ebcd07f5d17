"""Marginals and samples of densities whose kernel is no product over coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest
from sklearn.gaussian_process.kernels import RationalQuadratic

from fenchel.kernels import Gaussian, Matern, Polynomial
from fenchel.positive import DensityEstimator

LEVELS = np.array([-2.0, -0.7, 0.1, 1.5])


def rows(d, n=150, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    X[:, 1] += X[:, 0]
    return X


def fitted(d, nu, rank=25, **options):
    kernel = Matern(2.0, nu=nu)
    return DensityEstimator(kernel=kernel, features="nystroem", rank=rank, **options)


def quiet(density, X):
    """Fit with few landmarks, which is warned of."""
    with pytest.warns(UserWarning, match="leaves out"):
        return density.fit(X)


@pytest.mark.slow
@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_marginal_is_the_integral_over_the_other_column(nu):
    density = quiet(fitted(2, nu), rows(2))
    marginal = density.marginal([1])
    for u in LEVELS:
        expected = quad(lambda v, u=u: density.model_([[v, u]])[0], -30.0, 30.0, limit=400)[0]
        assert marginal([[u]])[0] == pytest.approx(expected, abs=2e-4)
    assert marginal.integral() == pytest.approx(1.0, abs=2e-4)
    assert np.all(marginal(np.linspace(-50.0, 50.0, 2001)[:, None]) >= 0.0)


@pytest.mark.parametrize("columns", [[2], [1, 0]])
def test_marginal_has_the_integrals_of_the_density(columns):
    density = quiet(fitted(3, 1.5), rows(3))
    marginal = density.marginal(columns)
    low, high = np.full(3, -np.inf), np.full(3, np.inf)
    low[columns], high[columns] = -1.0, 0.5
    ends = np.full(len(columns), -1.0), np.full(len(columns), 0.5)
    assert marginal.integral(ends) == pytest.approx(density.integral((low, high)), abs=2e-4)
    assert marginal.n_features_in_ == len(columns)


def test_marginal_on_a_support():
    X = np.random.default_rng(1).random((80, 2)) ** 2
    density = fitted(2, 1.5, support=(0.0, 1.0)).fit(X)
    marginal = density.marginal(0)
    expected = quad(lambda v: density.model_([[0.3, v]])[0], 0.0, 1.0)[0]
    assert marginal([[0.3]])[0] == pytest.approx(expected, abs=2e-4)
    assert marginal([[1.2]])[0] == 0.0
    assert density.integral() == pytest.approx(1.0, abs=1e-6)
    assert density.integral((-1.0, 0.5)) + density.integral(((0.5, 0.0), (2.0, 0.5))) == (
        pytest.approx(density.integral(((0.0, 0.0), (1.0, 0.5))), abs=1e-6)
    )


def cdf(marginal, at):
    """Of a marginal of one column, by the trapezoidal rule."""
    grid = np.linspace(-20.0, 20.0, 4001)
    values = marginal(grid[:, None])
    cumulated = np.concatenate([[0.0], np.cumsum(0.5 * (values[1:] + values[:-1]))])
    return np.interp(at, grid, cumulated / cumulated[-1])


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
def test_samples_follow_every_marginal(d):
    density = quiet(fitted(d, 1.5, rank=15), rows(d))
    drawn = density.sample(400, random_state=0)
    for j in range(d):
        marginal = density.marginal(j)
        assert kstest(drawn[:, j], lambda t, m=marginal: cdf(m, t)).pvalue > 1e-3
    together = (drawn[:, 0] < 0.0) & (drawn[:, 1] < 0.0)
    low, high = np.full(d, -np.inf), np.full(d, np.inf)
    high[:2] = 0.0
    probability = density.integral((low, high))
    assert together.mean() == pytest.approx(probability, abs=4.0 * np.sqrt(0.25 / 400))
    assert np.array_equal(drawn, density.sample(400, random_state=0))


@pytest.mark.slow
def test_samples_of_any_kernel_in_the_plane():
    X = np.random.default_rng(1).beta(2.0, 4.0, (80, 2))
    density = DensityEstimator(kernel=RationalQuadratic(0.5), support=(0.0, 1.0)).fit(X)
    drawn = density.sample(500, random_state=0)
    assert drawn.min() >= 0.0
    assert drawn.max() <= 1.0
    for t in (0.2, 0.4):
        share = np.mean((drawn[:, 0] <= t) & (drawn[:, 1] <= t))
        expected = density.integral((0.0, t))
        assert share == pytest.approx(expected, abs=4.0 * np.sqrt(0.25 / 500))


@pytest.mark.slow
def test_refused():
    X = np.random.default_rng(1).random((60, 3))
    density = DensityEstimator(kernel=Polynomial(2), support=(0.0, 1.0)).fit(X)
    with pytest.raises(ValueError, match="a marginal needs a Gaussian or Matern kernel"):
        density.marginal([0])
    with pytest.raises(ValueError, match="coordinates must be distinct integers from 0 to 2"):
        density.marginal([3])
    many = DensityEstimator(kernel=Matern(0.5, nu=0.5), features="cholesky")
    many.fit(np.random.default_rng(0).normal(size=(250, 2)))
    with pytest.raises(ValueError, match=r"^rank must be at most \d+ for a marginal of Matern"):
        many.marginal(0)


@pytest.mark.slow
def test_gaussian_kernels_as_before():
    density = DensityEstimator(kernel=Gaussian(0.8)).fit(rows(2))
    for u in LEVELS:
        expected = quad(lambda v, u=u: density.model_([[u, v]])[0], -20.0, 20.0, limit=200)[0]
        assert density.marginal([0])([[u]])[0] == pytest.approx(expected, abs=1e-8)


def test_marginals_of_marginals_are_marginals():
    """Also of sums of Gaussian kernels, which stand for one that is no product."""
    density = quiet(fitted(3, 1.5, rank=10), rows(3))
    points = LEVELS[:, None]
    expected = density.marginal([0])(points)
    for between in (density.marginal([0, 1]), density.marginal([0])):
        np.testing.assert_allclose(between.marginal([0])(points), expected, rtol=1e-9)
