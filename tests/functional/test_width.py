"""The width of the output kernel: chosen by curves that are left out."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.functional import FunctionalRegressor
from fenchel.functional._width import _Rows
from fenchel.kernels import Gaussian, Laplacian
from fenchel.learning import Learning

RNG = np.random.default_rng(0)
THETA = np.linspace(0.0, 2.0, 61)
X, NEW = RNG.uniform(size=(80, 1)), RNG.uniform(size=(100, 1))
SHORT = Learning(max_evaluations=6, n_folds=3)
QUICK = Learning(max_evaluations=2, n_folds=2, kernels=("gaussian",))


def peaks(rows):
    """A peak where the row says, with a fortieth of the grid's length as its deviation."""
    return np.exp(-((THETA - 0.2 - 1.6 * rows) ** 2) / (2 * 0.05**2))


def waves(rows):
    return np.sin(np.pi * (THETA + 2.0 * rows))


def noisy(curves, size):
    return curves + size * np.random.default_rng(1).standard_normal(curves.shape)


def make(loss="squared", **parameters):
    return FunctionalRegressor(loss, **{"learn": SHORT, **parameters})


def error(model, truth):
    return float(np.mean((model.predict(NEW) - truth(NEW)) ** 2))


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_squares_are_those_of_fits_without_the_row(alpha):
    rows, weight, kernel = X[:12], np.arange(1.0, 13.0), Gaussian(0.3)
    targets, of_output = RNG.standard_normal((12, 2)), np.array([0.5, 2.0])
    found = _Rows.of(rows, targets, weight, kernel).squares(targets, of_output, alpha)
    for i in range(12):
        others = np.arange(12) != i
        for j, size in enumerate(of_output):
            # the strength of the objective of all rows, whose losses are over the sum of weights
            ridge = np.diag(alpha * weight.sum() / weight[others])
            system = size * kernel(rows[others]) + ridge
            coefficients = np.linalg.solve(system, targets[others, j])
            predicted = size * kernel(rows[[i]], rows[others]) @ coefficients
            assert found[i, j] == pytest.approx((targets[i, j] - predicted[0]) ** 2, rel=1e-6)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_narrow_peaks_ask_for_a_narrow_kernel(noise):
    model = make().fit(X, noisy(peaks(X), noise), THETA)
    usual = make(output_kernel=Gaussian(0.2)).fit(X, noisy(peaks(X), noise), THETA)
    assert 0.02 < model.output_kernel_.length_scale < 0.1
    assert error(model, peaks) < (0.25 if noise == 0.0 else 0.7) * error(usual, peaks)
    assert model.certificate_.relative_gap <= model.tol


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("as_pairs", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_crowded_points_ask_for_ranks(loss, as_pairs):
    theta = np.array([0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 6.0, 8.0, 12.0, 24.0])
    between = np.append(0.5 * (theta[1:] + theta[:-1]), theta)

    def drug(rows, points):
        return (np.exp(-0.2 * points) - np.exp(-(1.0 + 4.0 * rows) * points)) / (1.0 + rows)

    curves = noisy(drug(X, theta), 0.01)
    data = (curves, theta)
    if as_pairs:
        seen = [np.arange(i % 2, 12, 2) for i in range(len(X))]
        data = ([(theta[some], y[some]) for some, y in zip(seen, curves, strict=True)],)
    errors = []
    for kernel in (None, Gaussian(2.4)):
        model = make(loss, output_kernel=kernel).fit(X, *data)
        errors.append(np.mean((model.predict(NEW, between) - drug(NEW, between)) ** 2))
    assert errors[0] < 0.25 * errors[1]


def test_ranks_do_not_depend_on_the_unit_of_points():
    theta, curves = THETA[:20] ** 3, noisy(peaks(X), 0.1)[:, 10:30]
    one, other = (make().fit(X, curves, factor * theta) for factor in (1.0, 1000.0))
    assert "WithRanks" in repr(one.output_kernel_)
    points = np.linspace(0.0, theta[-1], 50)
    np.testing.assert_allclose(
        one.predict(NEW, points), other.predict(NEW, 1000.0 * points), atol=1e-6
    )
    kept = one.with_learned().fit(X, curves, theta)
    np.testing.assert_allclose(kept.predict(NEW), one.predict(NEW), atol=1e-6)


@pytest.mark.parametrize("alpha", [None, pytest.param(1e-4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", ["absolute", pytest.param("pinball", marks=pytest.mark.slow)])
def test_it_does_not_depend_on_the_unit_of_curves(loss, alpha):
    """Alpha of these losses has a unit: it was taken for that of the squared loss."""
    rows, curves = X[:40], noisy(peaks(X[:40]), 0.1)[:, ::2]
    small, usual, large = (
        make(loss, level=0.8, alpha=alpha and alpha / unit, tol=1e-2, learn=QUICK)
        .fit(rows, unit * curves, THETA[::2])
        .output_kernel_.length_scale
        for unit in (1e-4, 1.0, 1e4)
    )
    assert small == usual == large < 0.15


def test_length_scales_of_a_given_kernel_are_not_learned():
    model = make(output_kernel="gaussian").fit(X, peaks(X), THETA)
    median = np.median(np.abs(THETA[:, None] - THETA)[np.triu_indices(len(THETA), 1)])
    assert model.output_kernel_.length_scale == pytest.approx(median, rel=0.01)


def test_noise_does_not_ask_for_one():
    model = make().fit(X, noisy(waves(X), 1.0), THETA)
    usual = make(output_kernel=Gaussian(0.2)).fit(X, noisy(waves(X), 1.0), THETA)
    assert model.output_kernel_.length_scale >= 0.2
    assert error(model, waves) <= error(usual, waves)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["huber", "absolute"])
def test_outlying_curves_do_not_decide(loss):
    widths = []
    for truth in (peaks, waves):
        curves = noisy(truth(X) + 3.0, 0.1)
        curves[::10] *= -5.0
        widths.append(make(loss).fit(X, curves, THETA).output_kernel_.length_scale)
    assert widths[0] < 0.1
    assert widths[1] == 0.2


def test_what_is_given_stays_and_where_nothing_is_learned_it_is_a_tenth():
    curves = peaks(X)
    given = make(output_kernel=Laplacian(0.3)).fit(X, curves, THETA)
    assert given.output_kernel_.length_scale == 0.3
    for plain in (make(learn=False), make(kernel=Gaussian(0.1), alpha=1e-3), make()):
        rows = 80 if plain.learn is not SHORT or plain.alpha is not None else 2  # too few to learn
        fitted = plain.fit(X[:rows], curves[:rows], THETA)
        assert fitted.output_kernel_.length_scale == pytest.approx(0.2)


@pytest.mark.parametrize("given", [{"alpha": 1e-6}, {"kernel": Gaussian(0.1)}, {}])
def test_the_fit_is_that_of_the_kernel_that_was_chosen(given):
    """Whatever of the input kernel and alpha is open; and a copy learns nothing again."""
    model = make(tol=1e-10, **given).fit(X, peaks(X), THETA)
    assert model.output_kernel_.length_scale < 0.1
    same = model.with_learned().fit(X, peaks(X), THETA)
    assert same.learned_ is None
    assert same.output_kernel_ == model.output_kernel_
    np.testing.assert_allclose(same.predict(NEW), model.predict(NEW), rtol=0, atol=1e-9)


@pytest.mark.slow
def test_units_order_and_repetition_do_not_matter():
    curves, order, counts = noisy(peaks(X), 0.1), RNG.permutation(80), RNG.integers(1, 3, 80)
    width = make().fit(X, curves, THETA).output_kernel_.length_scale
    scaled = make().fit(X[order], 16.0 * curves[order], 4.0 * THETA)
    assert scaled.output_kernel_.length_scale == pytest.approx(4.0 * width)
    times = np.repeat(np.arange(80), counts)
    weighted = make().fit(X, curves, THETA, sample_weight=counts)
    repeated = make().fit(X[times], curves[times], THETA)
    assert weighted.output_kernel_ == repeated.output_kernel_
    assert weighted.alpha_ == pytest.approx(repeated.alpha_, rel=1e-9)


def test_no_width_is_below_the_distance_of_points():
    """Of a common grid, and of the points that each curve has; between them it would be zero."""
    few = THETA[::6]
    step = few[1] - few[0]
    model = make().fit(X, peaks(X)[:, ::6], few)
    assert model.output_kernel_.length_scale > 0.99 * step
    pairs = []
    for curve in peaks(X):
        own = np.sort(RNG.choice(61, 12, replace=False))
        pairs.append((THETA[own], curve[own]))
    assert make().fit(X, pairs).output_kernel_.length_scale > 2.0 / 12


@pytest.mark.slow
def test_many_points_are_taken_in_groups():
    fine = np.linspace(0.0, 2.0, 450)
    curves = np.exp(-((fine - 0.2 - 1.6 * X) ** 2) / (2 * 0.05**2))
    assert 0.02 < make().fit(X, curves, fine).output_kernel_.length_scale < 0.1


def test_the_width_does_not_depend_on_units_whose_fourth_power_overflows():
    curves = noisy(peaks(X), 0.1)
    plain, large = make(alpha=1e-3).fit(X, curves, THETA), make(alpha=1e-3)
    large.fit(X, np.ldexp(curves, 272), THETA)
    assert plain.output_kernel_.length_scale < 0.2
    assert large.output_kernel_.length_scale == plain.output_kernel_.length_scale
    np.testing.assert_array_equal(np.ldexp(large.predict(X), -272), plain.predict(X))
