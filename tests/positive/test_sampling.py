"""Samples and conditional densities where some rows are far out, or kernels do not decay."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import ExpSineSquared

from fenchel import DensityEstimator
from fenchel.features import KernelRows
from fenchel.kernels import Gaussian, Matern
from fenchel.positive import PSDModel

UNIFORM = np.random.RandomState(3).uniform(size=(150, 1))[:, 0]


def rows_with_one_at(far, d=1):
    X = np.random.default_rng(0).normal(size=(100, d))
    X[:, -1] += X[:, 0]
    X[0, -1] = far
    return X


def below(density, drawn):
    """Distribution function by integrals in closed form, or by their own quadrature."""
    return np.array([density.integral((-np.inf, t)) for t in drawn])


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1e-2, 1e-6])
@pytest.mark.parametrize("far", [3.0, 1e3, 1e6, 1e9])
def test_samples_are_quantiles_however_far_out_a_row_is(far, alpha):
    density = DensityEstimator(alpha, kernel=Gaussian(0.7)).fit(rows_with_one_at(far))
    drawn = density.sample(150, random_state=3)[:, 0]
    assert below(density, drawn) == pytest.approx(UNIFORM, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_samples_are_quantiles_where_kernels_have_kinks(nu):
    density = DensityEstimator(kernel=Matern(1.0, nu=nu)).fit(rows_with_one_at(1e4))
    drawn = density.sample(150, random_state=3)[:, 0]
    assert below(density, drawn) == pytest.approx(UNIFORM, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("support", [None, (-50.0, 1e6)])
def test_the_first_of_two_columns_is_drawn_as_exactly(support):
    X = rows_with_one_at(1e5, d=2)[:, ::-1]
    density = DensityEstimator(kernel=Gaussian([0.5, 0.7]), support=support).fit(X)
    drawn = density.sample(75, random_state=3)
    first = np.random.RandomState(3).uniform(size=(75, 2))[:, 0]
    assert below(density.marginal(0), drawn[:, 0]) == pytest.approx(first, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [Gaussian([0.5, 0.7]), Matern([0.6, 0.8])])
def test_both_columns_follow_their_marginals(kernel):
    X = rows_with_one_at(1e5, d=2)[:25]
    density = DensityEstimator(kernel=kernel, tol=1e-4).fit(X)
    drawn = density.sample(800, random_state=0)
    for column in (0, 1):
        marginal = density.marginal(column)
        some = np.quantile(drawn[:, column], [0.05, 0.2, 0.5, 0.8, 0.95])
        shares = (drawn[:, [column]] <= some).mean(axis=0)
        assert np.abs(below(marginal, some) - shares).max() < stats.kstwo(800).ppf(0.999)


@pytest.mark.slow
def test_many_rows_of_two_columns_follow_the_distribution_functions():
    """Of the first column by integrals in closed form, of the second by sums over a fine grid."""
    density = DensityEstimator(kernel=Gaussian([0.6, 0.8]), tol=1e-4).fit(rows_with_one_at(6.0, 2))
    drawn = density.sample(5000, random_state=3)
    levels = np.random.RandomState(3).uniform(size=(5000, 2))
    some = np.arange(0, 5000, 250)
    first = below(density.marginal(0), drawn[some, 0])
    assert first == pytest.approx(levels[some, 0], abs=1e-6)
    grid = np.linspace(-12.0, 16.0, 20_001)
    for i in some:
        along = density.model_(np.column_stack([np.full(len(grid), drawn[i, 0]), grid]))
        masses = np.concatenate([[0.0], np.cumsum(0.5 * (along[1:] + along[:-1]))])
        share = np.interp(drawn[i, 1], grid, masses) / masses[-1]
        assert share == pytest.approx(levels[i, 1], abs=1e-5)
    marginal = density.marginal(1)
    at = np.linspace(-4.0, 7.0, 40)
    observed = np.array([(drawn[:, 1] <= t).mean() for t in at])
    assert np.abs(observed - below(marginal, at)).max() < 1.63 / np.sqrt(5000)  # KS, 1 %


@pytest.mark.slow
def test_a_kernel_that_does_not_decay_is_seen_everywhere():
    landmarks = np.linspace(0.0, 1.0, 4)[:, None]
    kernel = ExpSineSquared(length_scale=0.2, periodicity=5.0)
    model = PSDModel(KernelRows(kernel).fit(landmarks), np.eye(4), (0.0, 40.0))
    drawn = model.sample(150, random_state=3)[:, 0]
    shares = np.array([model.integral((0.0, t)) for t in drawn]) / model.integral()
    assert shares == pytest.approx(UNIFORM, abs=1e-4)


@pytest.mark.parametrize("far", [1.3, 1e2, 1e3, 1e4])
def test_conditional_quantiles_however_far_out_a_row_is(far):
    random = np.random.default_rng(0)
    x = random.uniform(size=100)
    y = x + 0.1 * random.normal(size=100)
    y[17] = far
    density = DensityEstimator(kernel=Gaussian([0.2, 0.15]), tol=1e-4).fit(np.c_[x, y])
    predicted = density.predict_distribution([[0.8]])
    reach = 7.0 * 0.15
    ends = [(y[y < 1.3].min() - reach, min(y[y < 1.3].max() + reach, 0.5 * far + 0.7))]
    ends.append((max(ends[0][1], far - reach), far + reach))
    grid = np.concatenate([np.linspace(*each, 50_001) for each in ends])
    values = np.exp(density.score_samples(np.column_stack([np.full(len(grid), 0.8), grid])))
    cells = 0.5 * np.diff(grid) * (values[1:] + values[:-1])
    cells[50_000] = 0.0
    cdf = np.append(0.0, np.cumsum(cells))
    middles = 0.5 * (grid[1:] + grid[:-1])
    mean = cells @ middles / cdf[-1]
    spread = np.sqrt(cells @ np.square(middles - mean) / cdf[-1])
    levels = np.array([0.05, 0.1, 0.5, 0.9, 0.95])
    wanted = np.interp(levels * cdf[-1], cdf, grid)
    assert predicted.ppf(levels)[0] == pytest.approx(wanted, abs=1e-3 * spread)
    assert predicted.cdf(wanted[None])[0] == pytest.approx(levels, abs=1e-3)
    assert predicted.mean()[0] == pytest.approx(mean, abs=1e-3 * spread)
    assert predicted.std()[0] == pytest.approx(spread, rel=1e-3)
    # CRPS is the mean of twice the pinball losses over all levels
    share = (np.arange(2000) + 0.5) / 2000
    quantiles = np.interp(share * cdf[-1], cdf, grid)
    losses = (0.75 - quantiles) * (share - (quantiles > 0.75))
    assert predicted.crps([0.75])[0] == pytest.approx(2.0 * losses.mean(), abs=1e-3 * spread)
