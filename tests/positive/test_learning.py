"""What models of positive functions learn: the kernel of a linear model, and alpha by it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.stats import cauchy, norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import ConstantKernel

from fenchel import KernelRidge, QuantileRegressor
from fenchel.features import PivotedCholesky
from fenchel.kernels import Gaussian, is_open
from fenchel.learning import Learning
from fenchel.model_selection import PathSearchCV
from fenchel.positive import (
    ConeRegressor,
    DensityEstimator,
    HeteroscedasticRegressor,
    NonCrossingQuantileRegressor,
    NonNegativeRegressor,
)
from fenchel.positive._left_out import _LeftOut

RNG = np.random.default_rng(0)
LEVELS = (0.2, 0.5, 0.9)
SHORT = Learning(max_evaluations=5, n_folds=2)
X = RNG.uniform(-1.0, 1.0, (90, 3)) * [1.0, 8.0, 0.25]


def truth(rows):
    """A function of the first column; the others are idle."""
    return 2.0 + np.sin(4.0 * rows[:, 0])


NEW = RNG.uniform(-1.0, 1.0, (300, 3)) * [1.0, 8.0, 0.25]
Y = truth(X) + 0.3 * RNG.standard_normal(90)
MEAN, SPREAD = Y.mean(), Y.std()
MEDIAN = np.sort(Y)[44]  # the least minimizer
DISTANCE = np.abs(Y - MEDIAN).mean()
ALL = [
    NonNegativeRegressor(learn=SHORT),
    NonNegativeRegressor("poisson", learn=SHORT),
    HeteroscedasticRegressor(learn=SHORT),
    NonCrossingQuantileRegressor(LEVELS, learn=SHORT, tol=1e-4),
    ConeRegressor(learn=SHORT),
]
every = pytest.mark.parametrize("estimator", ALL, ids=lambda each: type(each).__name__)
LEVEL = Gaussian("learned") + ConstantKernel(10.0, "fixed")
HIGHER = Gaussian("learned") + ConstantKernel(100.0, "fixed")
# the linear model of each, of the same standardized targets
LINEAR = [
    (ALL[0], KernelRidge(kernel=LEVEL), Y / np.abs(Y).mean(), 6.0, 1e-4),
    (ALL[1], KernelRidge(kernel=LEVEL), Y / np.abs(Y).mean(), 6.0, 1e-4),
    (ALL[2], KernelRidge(kernel=HIGHER), (Y - MEAN) / SPREAD, None, 1e-4),
    (
        ALL[3],
        QuantileRegressor(LEVELS),
        (Y - MEDIAN) / DISTANCE,
        1.0,
        1e-3,
    ),
    (ALL[4], KernelRidge(kernel=Gaussian()), Y / np.sqrt(np.mean(Y**2)), 1.0, 1e-4),
]
linear = pytest.mark.parametrize(
    ("estimator", "model", "targets", "share", "alpha"), LINEAR, ids=lambda each: ""
)


def scales_of(kernel):
    """The length scales, of a kernel beside a constant and on ranks too."""
    kernel = getattr(kernel, "k1", kernel)
    return getattr(kernel, "kernel", kernel).length_scale


def given(estimator, **parameters):
    return type(estimator)(**{**estimator.get_params(deep=False), **parameters})


@linear
def test_the_kernel_is_that_of_the_linear_model(estimator, model, targets, share, alpha):
    model = given(model, learn=SHORT, alpha=alpha / (share or 1.0))
    scales = scales_of(model.fit(X, targets).kernel_)
    fitted = given(estimator, alpha=alpha).fit(X, Y)
    np.testing.assert_allclose(scales_of(fitted.kernel_), scales, rtol=1e-9)
    assert fitted.alpha_ == alpha
    assert scales[1] > 8.0 * 1.5 * scales[0]


@pytest.mark.slow
@linear
def test_alpha_is_a_multiple_of_that_of_the_linear_model(estimator, model, targets, share, alpha):
    model = given(model, learn=SHORT).fit(X, targets)
    fitted = given(estimator, alpha=None).fit(X, Y)
    assert fitted.alpha_ == fitted.learned_.alpha
    share = model.learned_.criterion if share is None else share  # of the variance of y
    assert fitted.alpha_ == pytest.approx(share * model.alpha_, rel=1e-9)
    assert scales_of(fitted.kernel_) == pytest.approx(scales_of(model.kernel_))
    fixed = given(estimator, alpha=None, kernel=Gaussian(3.0)).fit(X, Y)
    assert fixed.kernel_.length_scale == 3.0
    assert fixed.learned_.alpha == fixed.alpha_ != fitted.alpha_


@every
def test_nothing_is_learned_where_nobody_asks(estimator):
    fitted = given(estimator, learn=False, alpha=None).fit(X, Y)
    assert fitted.learned_ is None
    same = given(estimator, learn=False, alpha=estimator.unlearned_alpha).fit(X, Y)
    assert fitted.alpha_ == same.alpha_
    np.testing.assert_array_equal(fitted.predict(NEW), same.predict(NEW))
    fixed = given(estimator, kernel=Gaussian(3.0), alpha=1e-3).fit(X, Y)
    assert fixed.learned_ is None
    gram = given(estimator, kernel="precomputed", alpha=None).fit(Gaussian([1.0, 8.0, 1.0])(X), Y)
    assert gram.learned_ is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(dict.fromkeys(type(each) for each in ALL)))
def test_kernel_and_alpha_are_learned_by_default(kind):
    model = kind().fit(X, Y)
    assert model.kernel_ == model.learned_.kernel
    assert model.alpha_ == model.learned_.alpha


@pytest.mark.slow
@every
def test_the_fit_is_that_of_what_was_learned(estimator):
    model = given(estimator, alpha=None).fit(X, Y)
    assert model.kernel_ == model.learned_.kernel
    assert not is_open(model.kernel_)
    same = model.with_learned().fit(X, Y)
    assert same.learned_ is None
    assert same.alpha_ == model.alpha_
    np.testing.assert_array_equal(same.predict(NEW), model.predict(NEW))


@pytest.mark.slow
@every
def test_repetitions_order_and_units_do_not_matter(estimator):
    counts, order = RNG.integers(0, 3, 90), RNG.permutation(90)
    times = np.repeat(np.arange(90), counts)
    one = given(estimator, alpha=None).fit(X[order], Y[order], sample_weight=counts[order])
    other = given(estimator, alpha=None).fit(8.0 * X[times], 4.0 * Y[times])
    np.testing.assert_allclose(one.kernel_(X), other.kernel_(8.0 * X), rtol=1e-9)
    assert one.alpha_ == pytest.approx(other.alpha_, rel=1e-6)


@pytest.mark.parametrize("estimator", [ALL[0], ALL[1], ALL[2], ALL[4]], ids=str)
def test_idle_columns_cost_less(estimator):
    plain = given(estimator, learn=False)
    errors = [np.mean((m.fit(X, Y).predict(NEW) - truth(NEW)) ** 2) for m in (estimator, plain)]
    assert errors[0] < 0.7 * errors[1]


def test_robust_losses_judge_themselves():
    spoiled = Y.copy()
    spoiled[::15] += 60.0
    model = NonNegativeRegressor("huber", kappa=0.5, learn=SHORT).fit(X, spoiled)
    squared = NonNegativeRegressor(learn=SHORT).fit(X, spoiled)
    assert model.kernel_ != squared.kernel_
    error, other = (np.mean((m.predict(NEW) - truth(NEW)) ** 2) for m in (model, squared))
    assert error < 0.1 * other


@every
def test_one_clock_for_learning_and_the_fit(estimator):
    seen = []
    model = given(estimator, callback=lambda progress: seen.append(progress) or None).fit(X, Y)
    learning = [progress for progress in seen if np.isnan(progress.dual)]
    assert [progress.primal for progress in learning] == model.learned_.history
    assert seen[: len(learning)] == learning
    assert len(seen) > len(learning)
    with pytest.warns(ConvergenceWarning, match="the callback returned a true value"):
        ended = given(estimator, callback=lambda progress: np.isnan(progress.dual)).fit(X, Y)
    assert len(ended.learned_.history) == 1


def test_targets_are_refused_before_learning():
    calls = []
    model = NonNegativeRegressor("poisson", learn=True, callback=calls.append)
    with pytest.raises(ValueError, match="y must be >= 0 with loss='poisson'"):
        model.fit(X, np.where(np.arange(90) == 80, -1.0, np.abs(Y)))
    assert not calls


def test_searches_learn_nothing():
    search = PathSearchCV(NonNegativeRegressor(learn=True), {"alpha": [1e-2, 1e-3]}, cv=2)
    best = search.fit(X, Y).best_estimator_
    assert best.kernel_.length_scale == pytest.approx(
        NonNegativeRegressor(learn=False).fit(X, Y).kernel_.length_scale
    )


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


@pytest.mark.parametrize("size", [2.0**-8, 2.0**8])
@pytest.mark.parametrize("loss", ["squared", "absolute", "poisson"])
def test_the_size_of_a_kernel_is_one_of_alpha(loss, size):
    """Non-negative functions are in the space of the squared kernel."""
    found = []
    for times in (1.0, size):
        kernel = ConstantKernel(times, "fixed") * Gaussian()
        model = NonNegativeRegressor(loss, kernel=kernel, trace_penalty=0.0, learn=SHORT)
        found.append((model.fit(X, Y).alpha_ / times**2, model.predict(NEW)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-9)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-3)


def test_a_kernel_may_be_given_by_features():
    kernel = ConstantKernel(0.01, "fixed") * Gaussian([0.5, 4.0, 0.1])
    found = [
        NonNegativeRegressor(**given, learn=SHORT).fit(X, Y).alpha_
        for given in ({"kernel": kernel}, {"features": PivotedCholesky(kernel)})
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-6)
