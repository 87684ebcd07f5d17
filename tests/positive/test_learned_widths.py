"""The kernel width that a density learns from rows left out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.stats import cauchy, norm
from sklearn.exceptions import ConvergenceWarning

from fenchel.kernels import Gaussian
from fenchel.model_selection import PathSearchCV
from fenchel.positive import DensityEstimator
from fenchel.positive._left_out import _LeftOut


def two_modes(n, seed=0):
    random = np.random.default_rng(seed)
    return np.where(random.random(n) < 0.4, random.normal(size=n), random.normal(40.0, 2.0, n))


def left_out(x, weight, bandwidth):
    """Minus the mean log-likelihood of rows left out, by its definition."""
    total, n = 0.0, len(x)
    scale = np.median(x), np.std(x)
    for i, value in enumerate(x):
        rest = np.arange(n) != i
        near = np.average(norm.pdf(value, x[rest], bandwidth), weights=weight[rest])
        far = cauchy.pdf(value, *scale)
        total += weight[i] * np.log((1.0 - n**-3.0) * near + n**-3.0 * far)
    return -total / weight.sum()


@pytest.mark.slow
def test_the_width_of_a_density_is_of_the_highest_likelihood_of_rows_left_out():
    x = two_modes(60)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 60)
    density = DensityEstimator().fit(x, sample_weight=weight)
    bandwidth = density.kernel_.length_scale[0] / 2.8
    assert density.learned_.criterion == pytest.approx(left_out(x, weight, bandwidth), rel=1e-9)
    best = min(left_out(x, weight, bandwidth * share) for share in np.geomspace(0.02, 50.0, 80))
    assert density.learned_.criterion < best + 1e-2
    assert density.learned_.n_rows == 60
    assert density.alpha_ == 0.1


@pytest.mark.parametrize("n_evaluations", [1, 5, 24])
def test_learning_a_width_that_is_ended_keeps_the_best_so_far(n_evaluations):
    x = np.random.default_rng(0).normal(size=(60, 1))
    calls = []

    def end(progress):
        calls.append(progress)
        return len(calls) == n_evaluations

    with pytest.warns(ConvergenceWarning, match="the callback returned a true value"):
        density = DensityEstimator(callback=end).fit(x)
    tried = density.learned_.history
    assert len(tried) == n_evaluations
    assert "stopped: the callback" in density.learned_.message
    by_rule = DensityEstimator(learn=False).fit(x).kernel_.length_scale
    multiple = np.ravel(density.kernel_.length_scale / by_rule)
    best = np.geomspace(2.0, 1e-3, 24)[int(np.argmin(tried))]
    np.testing.assert_allclose(multiple, best, rtol=1e-9)


def test_a_density_with_a_learned_width_has_narrow_modes():
    x, new = two_modes(300), two_modes(3000, seed=1)
    by_rule = DensityEstimator(learn=False).fit(x)
    assert by_rule.learned_ is None
    assert by_rule.alpha_ == 1e-2
    assert DensityEstimator().fit(x).score(new) > by_rule.score(new) + 0.3


@pytest.mark.parametrize(
    ("draw", "truth", "limit"),
    [
        (lambda random: random.gamma(2.0, size=100), stats.gamma(2.0), 0.13),  # it was 0.14
        (lambda random: random.standard_t(3.0, 100), stats.t(3.0), 0.2),  # 0.29
        (lambda random: random.uniform(size=100), stats.uniform(), 0.12),  # 0.15
    ],
)
def test_learned_densities_of_few_rows_are_near_the_truth(draw, truth, limit):
    off = []
    for seed in range(8):
        x = draw(np.random.default_rng(100 + seed))
        new = truth.rvs(4000, random_state=seed)
        off.append(truth.logpdf(new).mean() - DensityEstimator().fit(x).score(new[:, None]))
    assert np.mean(off) < limit


def test_learning_a_density_knows_no_order_units_or_repeats():
    rows = np.column_stack([two_modes(80), two_modes(80, seed=1) ** 2])
    count = np.random.default_rng(0).integers(1, 4, 80)
    scale = DensityEstimator().fit(rows, sample_weight=count).kernel_.length_scale
    repeated = np.repeat(rows, count, axis=0)[::-1] * [1e5, 1e-3] + [7.0, 0.0]
    other = DensityEstimator().fit(repeated).kernel_.length_scale
    assert other == pytest.approx(scale * [1e5, 1e-3], rel=1e-9)


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_a_volume_that_is_large_or_small_does_not_end_the_descent_sooner(unit):
    """It did, as the value that the descent compares had the logarithm of the volume in it."""
    X = np.random.default_rng(0).standard_normal((60, 2))
    first, other = DensityEstimator().fit(X), DensityEstimator().fit(unit * X)
    assert other.kernel_.length_scale / unit == pytest.approx(first.kernel_.length_scale, rel=1e-9)
    assert len(other.learned_.history) == len(first.learned_.history)


def test_one_row_far_out_does_not_decide_the_width_of_a_density():
    x = np.random.default_rng(0).normal(size=300)
    alone = DensityEstimator().fit(x).kernel_.length_scale[0]
    both = DensityEstimator().fit(np.append(x, 1000.0)).kernel_.length_scale[0]
    assert 0.5 * alone < both < 2.0 * alone


def test_what_a_density_does_not_learn():
    x = two_modes(100)
    assert DensityEstimator().fit(x[:11]).learned_ is None  # too few rows
    assert DensityEstimator(kernel=Gaussian(3.0)).fit(x).learned_ is None
    assert DensityEstimator(0.5).fit(x).alpha_ == 0.5
    once = DensityEstimator().fit(x)
    again = once.with_learned().fit(x)
    assert again.learned_ is None
    assert again.score(x) == once.score(x)
    search = PathSearchCV(DensityEstimator(), {"alpha": [0.1, 0.01]}, cv=2).fit(x[:, None])
    rule = DensityEstimator(learn=False).fit(x).kernel_.length_scale
    assert search.best_estimator_.kernel_.length_scale == pytest.approx(rule)


def two_columns(n, seed=0):
    """Narrow modes in the first column, one mode in the second."""
    random = np.random.default_rng(seed)
    return np.column_stack([two_modes(n, seed), random.normal(size=n)])


@pytest.mark.slow
def test_columns_of_a_density_have_widths_of_their_own():
    rows, new = two_columns(150), two_columns(2000, seed=1)
    density = DensityEstimator().fit(rows)
    by_rule = DensityEstimator(learn=False).fit(rows).kernel_.length_scale
    multiple = density.kernel_.length_scale / by_rule
    assert multiple[0] < 0.5 * multiple[1]
    fine, coarse = 2.0 * multiple, 0.5 * multiple
    alike = [
        DensityEstimator(0.1, kernel=Gaussian(size * by_rule)).fit(rows).score(new)
        for size in np.geomspace(fine.max(), coarse.min(), 8)
    ]
    assert density.score(new) > max(alike) + 0.05


def rounded(values, step):
    return np.rint(values / step) * step


def divergence(density, truth, rows):
    """From the truth, given by log-densities of new rows."""
    return np.mean(truth(rows) - density.score_samples(rows))


def two_equal_modes(rows):
    return np.log(0.5 * norm.pdf(rows, -1.5, 0.5) + 0.5 * norm.pdf(rows, 1.5, 0.5))


@pytest.mark.parametrize("n", [200, 3000])
def test_rounded_numbers_keep_their_modes(n):
    random = np.random.default_rng(0)
    x, new = (random.choice([-1.5, 1.5], m) + 0.5 * random.normal(size=m) for m in (n, 3000))
    density = DensityEstimator().fit(rounded(x, 0.8))
    assert divergence(density, two_equal_modes, new) < 0.08  # it was 0.3
    assert density.alpha_ == 0.01  # few different rows
    values, counts = np.unique(rounded(x, 0.8), return_counts=True)
    same = DensityEstimator().fit(values, sample_weight=counts)
    assert same.kernel_.length_scale == pytest.approx(density.kernel_.length_scale, rel=1e-9)
    shares = DensityEstimator().fit(rounded(x, 0.8), sample_weight=np.full(n, 0.37))
    assert shares.kernel_.length_scale == pytest.approx(density.kernel_.length_scale, rel=1e-9)


def test_rounded_numbers_with_one_mode_are_not_smoothed_away():
    random = np.random.default_rng(0)
    x, new = random.normal(size=3000), random.normal(size=3000)
    density = DensityEstimator().fit(rounded(x, 0.5))
    assert density.alpha_ == 0.1  # 14 different rows
    assert divergence(density, norm.logpdf, new) < 0.008  # it was 0.02


def test_the_width_of_cells_is_by_the_likelihood_of_single_repeats():
    x = rounded(np.random.default_rng(0).normal(size=80), 0.7)
    density = DensityEstimator().fit(x)
    by_rule = DensityEstimator(learn=False).fit(x).kernel_.length_scale[0]

    def criterion(width):
        total = 0.0
        for i, value in enumerate(x):
            near = norm.pdf(value, np.delete(x, i), 0.5 * width).mean()
            far = cauchy.pdf(value, np.median(np.unique(x)), np.unique(x).std())
            total += np.log((1.0 - 80**-3.0) * near + 80**-3.0 * far)
        return -total / 80

    width = density.kernel_.length_scale[0]
    assert 1.2 * 0.7 <= width <= by_rule
    assert density.learned_.criterion == pytest.approx(criterion(width), rel=1e-9)
    values = [criterion(each) for each in np.geomspace(1.2 * 0.7, by_rule, 60)]
    assert criterion(width) < min(values) + 3.0 / 80 + 1e-9


@pytest.mark.parametrize("step", [0.5, 1.0])
def test_values_that_repeat_in_one_of_two_columns_are_no_spikes(step):
    random = np.random.default_rng(0)
    rows, new = (random.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], m) for m in (500, 2000))
    truth = stats.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]]).logpdf
    rows[:, 0] = rounded(rows[:, 0], step)
    density = DensityEstimator().fit(rows)
    assert divergence(density, truth, new) < 0.2  # it was 24 and more
    assert density.kernel_.length_scale[0] >= 0.85 * step * (1.0 - 1e-9)


def test_a_frequent_value_beside_another_column_is_no_spike():
    random = np.random.default_rng(0)

    def draw(n):
        amount = np.where(random.random(n) < 0.5, 0.0, rounded(random.exponential(size=n), 0.1))
        return np.column_stack([amount, amount + random.normal(size=n)])

    rows, new = draw(300), draw(2000)
    positive = new[new[:, 0] > 0.0]
    learned, by_rule = (DensityEstimator(learn=learn).fit(rows) for learn in (True, False))
    assert learned.score(positive) > by_rule.score(positive) - 0.1  # it was 0.7 less


def test_a_class_beside_a_number_is_not_smoothed():
    random = np.random.default_rng(0)
    group = random.integers(0, 2, 300) * 1.0
    rows = np.column_stack([group, 4.0 * group + random.normal(size=300)])
    mean = DensityEstimator().fit(rows).predict_distribution([[0.0], [1.0]]).mean()
    np.testing.assert_allclose(mean, [0.0, 4.0], atol=0.3)


@pytest.mark.parametrize("apart", [0.0, 1.0, 3.0])
def test_a_class_beside_a_number_makes_no_spikes_of_it(apart):
    random = np.random.default_rng(0)

    def draw(n):
        group = (random.random(n) < 0.4) * 1.0
        number = apart * group + (1.0 + 0.5 * group) * random.normal(size=n)
        return np.column_stack([group, number])

    rows, new = draw(300), draw(2000)
    truth = norm.logpdf(new[:, 1], apart * new[:, 0], 1.0 + 0.5 * new[:, 0])
    found = DensityEstimator().fit(rows).predict_distribution(new[:, :1]).log_prob(new[:, 1])
    assert np.mean(truth - found) < 0.12  # it was 0.3


def test_the_likelihood_of_rows_left_out_of_two_columns_is_by_its_definition():
    rows = two_columns(40)
    density = DensityEstimator().fit(rows)
    bandwidth, n = density.kernel_.length_scale / 2.8, len(rows)
    total = 0.0
    for i, row in enumerate(rows):
        rest = rows[np.arange(n) != i]
        near = norm.pdf(row, rest, bandwidth).prod(axis=1).mean()
        far = cauchy.pdf(row, np.median(rows, axis=0), rows.std(axis=0)).prod()
        total += np.log((1.0 - n**-3.0) * near + n**-3.0 * far)
    assert density.learned_.criterion == pytest.approx(-total / n, rel=1e-3)


def test_a_constant_column_does_not_change_what_a_density_learns():
    rows = two_columns(60)
    constant = np.column_stack([rows, np.full(60, 3.0)])

    def multiples(rows):
        learned, by_rule = (DensityEstimator(learn=learn).fit(rows) for learn in (True, False))
        return learned.kernel_.length_scale / by_rule.kernel_.length_scale

    with_it, without = multiples(constant), multiples(rows)
    assert with_it[:2] == pytest.approx(without, rel=0.25)  # the rule knows how many columns
    assert without.min() <= with_it[2] <= without.max()


def test_widths_of_columns_that_are_ended_are_the_best_so_far():
    calls = []

    def end(progress):
        calls.append(progress)
        return len(calls) == 33

    with pytest.warns(ConvergenceWarning, match="the callback returned a true value"):
        density = DensityEstimator(callback=end).fit(two_columns(60))
    assert len(density.learned_.history) == 33
    assert np.isfinite(density.learned_.criterion)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d"), [(60, 1), (40, 3), (30, 60)])
def test_one_multiple_for_all_columns_is_that_of_any(n, d):
    random = np.random.default_rng(n)
    X, weight = random.standard_t(1.5, (n, d)), random.exponential(size=n)
    left_out = _LeftOut.of(X, weight, np.full(d, 0.4))
    share, Z = weight / weight.sum(), X / 0.4
    spread = Z.std(axis=0)
    broad = 1.0 / (np.pi * spread * (1.0 + ((Z - np.median(Z, axis=0)) / spread) ** 2))
    for multiple in (2.0, 0.3, 0.01):
        bandwidth = multiple / (2.8 if d == 1 else 2.0)
        total = 0.0
        for i in range(n):
            density = n**-3.0 * np.prod(broad[i])
            for j in np.delete(np.arange(n), i):
                near = stats.norm.pdf((Z[i] - Z[j]) / bandwidth) / bandwidth
                density += (1.0 - n**-3.0) * share[j] / (1.0 - share[i]) * np.prod(near)
            total -= share[i] * np.log(density)
        expected = total + d * np.log(0.4)
        assert left_out.common(multiple) == pytest.approx(expected, rel=1e-9)
        assert left_out(np.full(d, multiple))[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_zeros_among_amounts_do_not_widen_the_density_of_these(share):
    """Left out together, they were far from all others: deviations were 1.14 and 2.2 times."""
    random = np.random.default_rng(0)
    n_zeros = int(300 * share)
    x = np.r_[np.zeros(n_zeros), random.normal(3.0, 1.0, 300 - n_zeros)]
    density = DensityEstimator().fit(x)
    grid = np.linspace(-15.0, 15.0, 4001)[:, None]
    values = np.exp(density.score_samples(grid))
    mean = np.average(grid[:, 0], weights=values)
    deviation = np.sqrt(np.average((grid[:, 0] - mean) ** 2, weights=values))
    assert deviation < 1.1 * x.std()
    alone = DensityEstimator().fit(x[n_zeros:])
    assert density.kernel_.length_scale == pytest.approx(alone.kernel_.length_scale, rel=0.3)
