"""Distributions against numerical integration, scoringrules, and truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from fenchel.distributions import (
    GridDistribution,
    NormalDistribution,
    QuantileDistribution,
)

LEVELS = np.arange(1, 20) / 20
RNG = np.random.default_rng(0)
CURVES = np.sort(RNG.normal(size=(4, 5)), axis=1) * np.array([[1.0], [3.0], [1e-3], [1e4]])


def some_distributions():
    grid = np.concatenate([[-2.0], np.sort(RNG.uniform(-1.9, 2.9, size=30)), [3.0]])
    density = RNG.uniform(size=(4, 32))
    density[1, 10:15] = 0.0
    curves = np.array([[-0.9, -0.3, 0.1, 0.6, 1.7], [-9.0, -2.0, 0.0, 2.0, 3.0]])
    return {
        "quantiles": QuantileDistribution.from_quantiles([0.05, 0.2, 0.5, 0.7, 0.9], CURVES),
        "expectiles": QuantileDistribution.from_expectiles([0.1, 0.3, 0.5, 0.7, 0.9], curves),
        "touching": QuantileDistribution([0.2, 0.5, 0.8], [[0.0, 1.0, 1.0]], [1.0], [0.5]),
        "normal": NormalDistribution([0.0, 3.0, -1.0], [1.0, 1e-3, 1e3]),
        "grid": GridDistribution(grid, density),
    }


DISTRIBUTIONS = some_distributions()
each = pytest.mark.parametrize("made", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)


def points(made, m=41):
    """Values in the middle and far out, (n, m)."""
    ends = made.ppf([1e-4, 1.0 - 1e-4])
    return np.linspace(*ends.T, m).T


@each
def test_cdf_and_quantiles_are_inverse(made):
    levels = np.linspace(0.001, 0.999, 57)
    quantiles = made.ppf(levels)
    assert np.all(np.diff(quantiles, axis=1) >= 0.0)
    assert np.all(made.cdf(quantiles) >= levels - 1e-12)
    below = quantiles - 1e-9 * (quantiles[:, [-1]] - quantiles[:, [0]])
    assert np.all(made.cdf(below) <= levels + 1e-6)


@each
def test_density_is_the_derivative_of_the_cdf(made):
    y = points(made, 400)
    middle, step = 0.5 * (y[:, 1:] + y[:, :-1]), np.diff(y)
    moved = made.cdf(middle + 1e-5 * step) - made.cdf(middle - 1e-5 * step)
    wanted = moved / (2e-5 * step)
    # a few of the intervals hold a knot, where there is no derivative
    close = np.isclose(made.pdf(middle), wanted, rtol=1e-4, atol=1e-4 * wanted.max())
    assert close.mean() > 0.99
    log = made.log_prob(middle)
    positive = made.pdf(middle) > 0.0
    assert np.allclose(np.exp(log[positive]), made.pdf(middle)[positive])


@each
def test_moments_are_those_of_the_quantile_function(made):
    nodes, weights = np.polynomial.legendre.leggauss(400)
    cuts = np.concatenate([np.geomspace(1e-15, 0.5, 60), 1.0 - np.geomspace(0.5, 1e-15, 60)[1:]])
    half = 0.5 * np.diff(cuts)
    levels = (0.5 * (cuts[1:] + cuts[:-1])[:, None] + half[:, None] * nodes).ravel()
    share = (half[:, None] * weights).ravel()
    values = made.ppf(levels)
    mean = values @ share
    spread = np.sqrt((values - mean[:, None]) ** 2 @ share)
    assert np.all(np.abs(made.mean() - mean) <= 1e-4 * spread)
    assert made.std() == pytest.approx(spread, rel=1e-3)


@each
def test_crps_is_its_integral(made):
    for y in (made.ppf(0.003), made.ppf(0.4), made.ppf(0.999), made.mean()):
        score = made.crps(y)
        for i in range(len(made)):
            one = made[i : i + 1]
            cuts = np.unique(np.append(one.ppf(np.linspace(1e-9, 1 - 1e-9, 400))[0], y[i]))
            nodes, weights = np.polynomial.legendre.leggauss(8)
            half = 0.5 * np.diff(cuts)[:, None]
            z = (0.5 * (cuts[1:] + cuts[:-1])[:, None] + half * nodes).ravel()
            square = (one.cdf(z[None])[0] - (y[i] <= z)) ** 2
            assert score[i] == pytest.approx(square @ (half * weights).ravel(), rel=1e-4)


@each
def test_crps_is_twice_the_mean_pinball_loss(made):
    y = made.ppf(0.7)
    levels = (np.arange(100_000) + 0.5) / 100_000
    residual = y[:, None] - made.ppf(levels)
    loss = 2.0 * np.maximum(levels * residual, (levels - 1.0) * residual).mean(axis=1)
    assert made.crps(y) == pytest.approx(loss, rel=1e-3)


@each
def test_shapes(made):
    n = len(made)
    y = points(made, 7)
    for name in ("cdf", "pdf", "log_prob", "crps"):
        method = getattr(made, name)
        whole = method(y)
        assert whole.shape == (n, 7)
        assert np.array_equal(method(y[:, 2]), whole[:, 2])
        assert np.array_equal(method(y[:1])[0], whole[0])
        assert method(0.5).shape == (n,)
        with pytest.raises(ValueError, match="y must be a number or of shape"):
            method(np.zeros(n + 1))
        with pytest.raises(ValueError, match="y must be numbers, got NaN"):
            method(np.nan)
    assert made.ppf(0.5).shape == (n,)
    assert made.ppf([0.5]).shape == (n, 1)
    own = made.ppf(np.linspace(0.1, 0.9, n)[:, None])
    assert own[0, 0] == made.ppf(0.1)[0]
    assert np.array_equal(made.interval(0.5), made.ppf([0.25, 0.75]))
    with pytest.raises(ValueError, match=r"levels must be in \[0, 1\]"):
        made.ppf(1.1)
    with pytest.raises(ValueError, match="coverage must be"):
        made.interval(1.5)


@each
def test_some_rows(made):
    mask = np.zeros(len(made), dtype=bool)
    mask[0] = True
    assert made[mask].mean() == pytest.approx(made.mean()[:1])
    assert made[[0]].crps(0.3) == pytest.approx(made.crps(0.3)[:1])
    assert len(made[:1]) == 1


@each
def test_samples_have_the_distribution(made):
    drawn = made.sample(2000, random_state=1)
    assert drawn.shape == (len(made), 2000)
    assert np.array_equal(drawn, made.sample(2000, random_state=1))
    levels = made.cdf(drawn)
    if np.all(np.diff(made.ppf(np.linspace(0.01, 0.99, 99))) > 0.0):  # no point mass
        assert all(stats.kstest(row, "uniform").pvalue > 1e-3 for row in levels)


@pytest.mark.slow
def test_scoringrules_agree():
    rules = pytest.importorskip("scoringrules", reason="scoringrules is not installed")
    y = np.linspace(-4.0, 4.0, 33)
    normal = NormalDistribution([0.5], [2.0]).crps(y[None])[0]
    assert normal == pytest.approx(rules.crps_normal(y, 0.5, 2.0, backend="numpy"))
    # a Laplace distribution is two exponential tails and nothing between
    laplace = QuantileDistribution([0.5, 0.5], [[1.0, 1.0]], [0.7], [0.7]).crps(y[None])[0]
    assert laplace == pytest.approx(rules.crps_laplace(y, 1.0, 0.7, backend="numpy"))
    uniform = QuantileDistribution([0.0, 1.0], [[-1.0, 2.0]], [0.0], [0.0]).crps(y[None])[0]
    assert uniform == pytest.approx(rules.crps_uniform(y, -1.0, 2.0, backend="numpy"))
    both = GridDistribution([-1.0, 0.0, 2.0], [[1.0, 1.0, 1.0]]).crps(y[None])[0]
    assert both == pytest.approx(uniform)
    for made in DISTRIBUTIONS.values():
        target = made.ppf(0.8)
        ensemble = made.ppf((np.arange(4000) + 0.5) / 4000)
        assert made.crps(target) == pytest.approx(
            rules.crps_ensemble(target, ensemble, estimator="nrg", backend="numpy"), rel=2e-3
        )


def test_variances_on_a_grid_that_reaches_far():
    made = GridDistribution([0.0, 1.0, 2.0, 1e9, 1e9 + 1.0], [[0.0, 1.0, 0.0, 0.0, 0.0]])
    assert made.mean()[0] == pytest.approx(1.0, rel=1e-12)
    assert made.var()[0] == pytest.approx(1.0 / 6.0, rel=1e-12)


def test_quantiles_are_those_given_and_tails_go_through_the_outermost_two():
    levels = np.array([0.05, 0.2, 0.5, 0.7, 0.9])
    made = DISTRIBUTIONS["quantiles"]
    assert made.ppf(levels) == pytest.approx(CURVES, rel=1e-12)
    assert made.cdf(CURVES) == pytest.approx(np.broadcast_to(levels, CURVES.shape))
    assert made.tail_probability == pytest.approx(0.15)
    # log F is linear in the tail, and takes the value log 0.2 at the second quantile
    first, second = CURVES[:, 0], CURVES[:, 1]
    slope = 1.0 / made.lower_scale
    assert np.log(0.05) + slope * (second - first) == pytest.approx(np.log(0.2))
    slope = 1.0 / made.upper_scale
    assert np.log(0.1) + slope * (CURVES[:, 4] - CURVES[:, 3]) == pytest.approx(np.log(0.3))


def test_tails_do_not_reach_over_the_median():
    made = QuantileDistribution.from_quantiles([0.9, 0.1], [[8.0, 0.0]])
    assert made.lower_scale == pytest.approx(4.0 / np.log(5.0))
    assert made.upper_scale == pytest.approx(4.0 / np.log(5.0))


def test_a_laplace_distribution_has_its_tails():
    truth = stats.laplace(1.0, 2.0)
    made = QuantileDistribution.from_quantiles(LEVELS, [truth.ppf(LEVELS)])
    far = np.array([[-20.0, -9.0, 11.0, 30.0, 900.0]])
    assert made.log_prob(far)[0] == pytest.approx(truth.logpdf(far[0]))


def test_crossed_rows_are_sorted_and_told():
    made = QuantileDistribution.from_quantiles([0.5, 0.1, 0.9], [[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]])
    assert made.rearranged.tolist() == [False, True]
    assert np.array_equal(made.quantiles, [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    assert "1 of them put in order" in repr(made)
    assert made[1:].rearranged.tolist() == [True]


def test_quantiles_that_touch_are_a_point_mass():
    made = QuantileDistribution.from_quantiles([0.1, 0.5, 0.9], [[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    assert made.cdf([1.0, 0.0]).tolist() == [1.0, 0.5]
    assert made.cdf([1.0 - 1e-9, -1e-9])[0] == 0.0
    assert made.std()[0] == 0.0
    assert made.crps([3.0, 0.0])[0] == pytest.approx(2.0)
    assert made.lower_scale[1] > 0.0  # from the next quantile that differs


def true_expectile(truth, level):
    def area(e):
        return integrate.quad(truth.cdf, truth.ppf(1e-13), e, limit=400)[0]

    mean = truth.mean()

    def condition(e):
        return level * (mean - e + area(e)) - (1.0 - level) * area(e)

    return optimize.brentq(condition, truth.ppf(1e-9), truth.ppf(1.0 - 1e-9), xtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("truth", [stats.norm(), stats.gamma(2.0), stats.uniform()])
@pytest.mark.parametrize("levels", [[0.1, 0.5, 0.9], LEVELS], ids=len)
def test_expectiles_are_those_given(truth, levels):
    given = [true_expectile(truth, level) for level in levels]
    made = QuantileDistribution.from_expectiles(levels, [given])
    assert not made.rearranged.any()
    assert made.mean() == pytest.approx(truth.mean(), abs=1e-9)
    z = np.linspace(*made.ppf([1e-12, 1.0 - 1e-12])[0], 400_001)
    area = integrate.cumulative_trapezoid(made.cdf(z[None])[0], z, initial=0.0)
    for level, e in zip(levels, given, strict=True):
        below = np.interp(e, z, area)
        above = made.mean()[0] - e + below
        assert level * above == pytest.approx((1.0 - level) * below, abs=1e-6)
    error = np.abs(made.ppf(LEVELS) - truth.ppf(LEVELS)).max()
    # no tail of these three is exponential
    assert error < (0.13 if len(levels) > 3 else 0.41) * truth.std()


def test_expectiles_of_no_distribution_are_put_right():
    levels = [0.1, 0.3, 0.5, 0.7, 0.9]
    good, bad = [-1.0, -0.4, 0.0, 0.4, 1.0], [-1.0, -0.9, 0.0, 0.05, 3.0]
    made = QuantileDistribution.from_expectiles(levels, [good, bad, [0.0] * 5])
    assert made.rearranged.tolist() == [False, True, False]
    assert np.isfinite(made.log_prob(np.linspace(-9.0, 9.0, 50)[None])[:2]).all()
    assert made.std()[2] == 0.0
    alone = QuantileDistribution.from_expectiles(levels, [bad])
    assert made[[1]].crps(0.3) == pytest.approx(alone.crps(0.3))


@pytest.mark.parametrize("shape", [(50, 3), (200, 19)])
def test_distributions_follow_shifts_and_scales(shape):
    curves = RNG.normal(size=shape).cumsum(axis=1) / shape[1]
    levels = np.arange(1, shape[1] + 1) / (shape[1] + 1)
    for make in (QuantileDistribution.from_quantiles, QuantileDistribution.from_expectiles):
        here, there = make(levels, curves), make(levels, 1e5 + 1e3 * curves)
        y = curves[:, 0]
        assert there.crps(1e5 + 1e3 * y) == pytest.approx(1e3 * here.crps(y), rel=1e-6)
        assert there.std() == pytest.approx(1e3 * here.std(), rel=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: QuantileDistribution.from_quantiles([0.5], [[1.0]]), "levels must be at least"),
        (lambda: QuantileDistribution.from_quantiles([0.1, 0.9], [[1.0]]), "one column for each"),
        (lambda: QuantileDistribution.from_quantiles([0.1, 0.9], [[1, np.inf]]), "must be finite"),
        (lambda: QuantileDistribution.from_expectiles([0.1, 0.9], [[0, 1]]), "levels must hold"),
        (lambda: QuantileDistribution([0.1, 0.9], [[1, 0]], [1], [1]), "in increasing order"),
        (lambda: QuantileDistribution([0.1], [[1, 2]], [1], [1]), "levels must be of shape"),
        (lambda: QuantileDistribution([0.1, 0.9], [[1, 2]], [-1], [1]), "lower_scale must be"),
        (lambda: NormalDistribution([0.0], [0.0]), "scale must be > 0"),
        (
            lambda: QuantileDistribution([10, 90], [[0, 1]], [1], [1]),
            r"levels must be in \[0, 1\]",
        ),
        (lambda: NormalDistribution([0.0], [1.0, 2.0]), "loc and scale must have"),
        (lambda: GridDistribution([0.0, 0.0], [[1.0, 1.0]]), "grid must be"),
        (lambda: GridDistribution([0.0, 1.0], [[0.0, 0.0]]), "density must have a finite integ"),
        (lambda: GridDistribution([0.0, 1.0], [[-1.0, 2.0]]), "density must be >= 0"),
        (lambda: NormalDistribution([0.0], [1.0]).sample(0), "n_samples must be"),
    ],
)
def test_errors_are_sentences(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_quantiles_are_the_least_values_that_reach_a_level():
    """Beside cells without mass, and the level 0 is where the mass begins."""
    found = GridDistribution([0.0, 1.0, 2.0, 3.0, 4.0], [[0, 1, 0, 0, 0], [0, 0, 0, 1, 0]])
    np.testing.assert_allclose(found.ppf([0.0, 0.5, 1.0]), [[0.0, 1.0, 2.0], [2.0, 3.0, 4.0]])
    gap = GridDistribution([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [[0, 1, 0, 0, 0, 1, 0]])
    np.testing.assert_allclose(gap.ppf([0.5]), [[2.0]])


def test_the_quantile_of_level_one_is_where_the_mass_ends():
    """Whatever rounding says of the sum of all cells."""
    density = np.zeros((200, 12))
    density[:, 2:7] = np.random.default_rng(0).exponential(size=(200, 5))
    found = GridDistribution(np.arange(12.0), density)
    np.testing.assert_allclose(found.ppf(1.0), 7.0, atol=1e-6)
    np.testing.assert_array_equal(found.cdf(7.0), 1.0)


def test_infinite_values_are_beyond_all_others():
    """Beyond those of an infinite deviation, too."""
    made = NormalDistribution([0.0, 1.0], [1.0, np.inf])
    np.testing.assert_array_equal(made.cdf([[-np.inf, np.inf]]), [[0.0, 1.0]] * 2)
    np.testing.assert_array_equal(made.log_prob([[-np.inf, np.inf]]), -np.inf)
    np.testing.assert_array_equal(made.pdf([[-np.inf, np.inf]]), 0.0)
    np.testing.assert_array_equal(made.crps([[-np.inf, np.inf]]), np.inf)
