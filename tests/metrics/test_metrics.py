"""Metrics against scikit-learn's, against definitions, and against each other."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, comb

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.metrics import d2_pinball_score as sklearn_d2_pinball
from sklearn.metrics import d2_tweedie_score, mean_squared_error, r2_score
from sklearn.metrics import mean_pinball_loss as sklearn_pinball

from fenchel import ExpectileRegressor, NonNegativeRegressor, QuantileRegressor
from fenchel.losses import L2Norm, Pinball, Squared
from fenchel.metrics import (
    calibration_band,
    crossing_amounts,
    crossing_loss,
    d2_pinball_score,
    d2_poisson_score,
    d2_score,
    d2_squared_pinball_score,
    explained_share,
    interval_coverage,
    mean_interval_score,
    mean_interval_width,
    mean_loss,
    mean_pinball_loss,
    mean_squared_pinball_loss,
    quantile_coverage,
    row_losses,
    total_effects,
)

LEVELS = [0.8, 0.1, 0.5]


@pytest.fixture
def data():
    random = np.random.RandomState(0)
    y = random.randn(30)
    prediction = y[:, None] + random.randn(30, 3)
    return y, prediction, random.randint(0, 4, 30).astype(float)


def test_pinball_loss_is_scikit_learns(data):
    y, prediction, weight = data
    expected = [
        sklearn_pinball(y, column, alpha=level, sample_weight=weight)
        for level, column in zip(LEVELS, prediction.T, strict=True)
    ]
    each = mean_pinball_loss(y, prediction, LEVELS, sample_weight=weight, multioutput="raw_values")
    np.testing.assert_allclose(each, expected, rtol=1e-14)
    whole = mean_pinball_loss(y, prediction, LEVELS, sample_weight=weight)
    assert whole == pytest.approx(np.mean(expected), rel=1e-14)


def test_squared_pinball_loss_by_its_definition(data):
    y, prediction, _ = data
    residual = y[:, None] - prediction
    slope = np.where(residual < 0.0, 1.0 - np.array(LEVELS), LEVELS)
    expected = np.mean(0.5 * slope * residual**2, axis=0)
    each = mean_squared_pinball_loss(y, prediction, LEVELS, multioutput="raw_values")
    np.testing.assert_allclose(each, expected, rtol=1e-13)
    quarter = mean_squared_pinball_loss(y, prediction[:, 0])
    assert quarter == pytest.approx(0.25 * mean_squared_error(y, prediction[:, 0]))


def test_row_losses_have_the_mean(data):
    y, prediction, weight = data
    losses = [Pinball(level) for level in LEVELS]
    rows = row_losses(y, prediction, losses)
    assert rows.shape == prediction.shape
    np.testing.assert_allclose(
        np.average(rows, axis=0, weights=weight),
        mean_loss(y, prediction, losses, sample_weight=weight, multioutput="raw_values"),
    )
    together = row_losses(y, prediction, Pinball(LEVELS))
    np.testing.assert_allclose(together[:, 0], rows.sum(axis=1))


def test_loss_of_whole_rows(data):
    _, prediction, weight = data
    targets = np.roll(prediction, 1, axis=0)
    lengths = np.linalg.norm(targets - prediction, axis=1)
    found = mean_loss(targets, prediction, L2Norm(), sample_weight=weight)
    assert found == pytest.approx(np.average(lengths, weights=weight))


def test_d2_is_scikit_learns(data):
    y, prediction, weight = data
    expected = [
        sklearn_d2_pinball(y, column, alpha=level)
        for level, column in zip(LEVELS, prediction.T, strict=True)
    ]
    # scikit-learn interpolates between order statistics, so that its constant is not always best
    each = d2_pinball_score(y, prediction, LEVELS, multioutput="raw_values")
    assert np.all(each <= np.array(expected) + 1e-12)
    np.testing.assert_allclose(each, expected, rtol=0.02, atol=0.02)
    assert d2_score(y, prediction[:, 0], Squared(), sample_weight=weight) == pytest.approx(
        r2_score(y, prediction[:, 0], sample_weight=weight)
    )
    assert d2_squared_pinball_score(y, prediction[:, 0]) == pytest.approx(
        r2_score(y, prediction[:, 0])
    )


def test_d2_is_zero_for_the_best_constant(data):
    y, _, weight = data
    quantile = np.full_like(y, Pinball(0.3).minimizing_offset(y[:, None], weight)[0])
    found = d2_pinball_score(y, quantile, 0.3, sample_weight=weight)
    assert found == pytest.approx(0.0, abs=1e-12)
    counts = np.round(np.exp(y))
    mean = np.full_like(y, np.average(counts, weights=weight))
    found = d2_poisson_score(counts, mean, sample_weight=weight)
    assert found == pytest.approx(0.0, abs=1e-12)


def test_poisson_score_is_scikit_learns(data):
    y, prediction, weight = data
    counts, means = np.round(np.exp(y)), np.exp(prediction[:, 0])
    assert d2_poisson_score(counts, means, sample_weight=weight) == pytest.approx(
        d2_tweedie_score(counts, means, power=1, sample_weight=weight)
    )
    assert d2_poisson_score([0.0, 2.0], [0.0, 2.0]) == 1.0
    assert d2_poisson_score([0.0, 2.0], [1.0, 0.0]) == -np.inf


def test_weights_repeat_rows(data):
    y, prediction, weight = data
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    intervals = np.sort(prediction[:, :2], axis=1)
    for metric, arguments in (
        (mean_pinball_loss, (y, prediction, LEVELS)),
        (mean_squared_pinball_loss, (y, prediction, LEVELS)),
        (d2_pinball_score, (y, prediction, LEVELS)),
        (d2_squared_pinball_score, (y, prediction, LEVELS)),
        (quantile_coverage, (y, prediction)),
        (crossing_loss, (prediction, LEVELS)),
        (interval_coverage, (y, intervals)),
        (mean_interval_width, (intervals,)),
        (mean_interval_score, (y, intervals, 0.8)),
    ):
        rows = tuple(
            value[repeated] if isinstance(value, np.ndarray) else value for value in arguments
        )
        np.testing.assert_allclose(
            metric(*arguments, sample_weight=weight), metric(*rows), rtol=1e-12
        )


def test_constant_targets():
    y = np.full(5, 3.0)
    assert d2_pinball_score(y, y, 0.3) == 1.0
    assert d2_pinball_score(y, y + 1e-16, 0.3) == 1.0
    assert d2_pinball_score(y, y + 1.0, 0.3) == 0.0
    assert explained_share(1e-20, 1e-20, rounding=1e-15) == 1.0


def test_crossing_by_a_loop(data):
    _, prediction, _ = data
    total = 0.0
    for row in prediction:
        ordered = [row[1], row[2], row[0]]
        total += sum(max(0.0, a - b) for a, b in pairwise(ordered))
    assert total > 0.0
    assert crossing_loss(prediction, LEVELS) == pytest.approx(total / len(prediction))
    assert crossing_amounts(prediction, LEVELS).shape == (len(prediction), 2)
    assert crossing_loss(prediction[:, 0], 0.5) == 0.0
    assert crossing_loss(np.sort(prediction, axis=1), [0.1, 0.2, 0.3]) == 0.0


def test_coverage_counts_rows_on_the_curve_once():
    y, curves = [1.0, 2.0, 3.0, 4.0], [[2.0, 9.0]] * 4
    np.testing.assert_array_equal(quantile_coverage(y, curves), [0.5, 1.0])
    np.testing.assert_array_equal(quantile_coverage(y, curves, strict=True), [0.25, 1.0])


def test_band_holds_the_confidence():
    n, levels = 200, np.array([0.05, 0.5, 0.95])
    low, high = calibration_band(levels, n, 0.9)
    inside = binom.cdf(np.round(high * n), n, levels) - binom.cdf(np.round(low * n) - 1, n, levels)
    assert np.all(inside >= 0.9)
    narrower = binom.cdf(np.round(high * n) - 1, n, levels) - binom.cdf(
        np.round(low * n), n, levels
    )
    assert np.all(narrower < 0.9)


@pytest.mark.parametrize(("coverage", "m"), [(0.8, 99), (0.5, 9), (0.9, 15), (0.95, 33)])
def test_band_of_what_was_calibrated_counts_the_rows_that_calibrate(coverage, m):
    n, rank = 60, ceil(round(coverage * (m + 1), 9))
    # j of n new scores are below the one of this rank of m, all orders being as likely
    ways = [comb(rank + j - 1, j) * comb(m - rank + n - j, n - j) for j in range(n + 1)]
    reached = np.cumsum(ways) / comb(m + n, n)
    assert reached[-1] == pytest.approx(1.0)
    expected = [np.argmax(reached >= part) / n for part in (0.05, 0.95)]
    band = calibration_band([coverage], n, 0.9, n_calibration=m)
    np.testing.assert_allclose(band[:, 0], expected)
    plain = calibration_band([coverage], n, 0.9)
    if rank == round(coverage * (m + 1), 9):  # else the coverage is above the nominal one
        assert band[0, 0] < plain[0, 0] < plain[1, 0] < band[1, 0]


def test_band_of_infinite_intervals_holds_all_rows():
    band = calibration_band([0.5, 0.95], 60, n_calibration=9)
    np.testing.assert_array_equal(band[:, 1], 1.0)
    assert 0.0 < band[0, 0] < band[1, 0] < 1.0


def test_interval_score_is_two_pinball_losses(data):
    y, prediction, weight = data
    ends = np.sort(prediction[:, :2], axis=1)
    losses = mean_pinball_loss(y, ends, [0.1, 0.9], sample_weight=weight, multioutput="raw_values")
    assert mean_interval_score(y, ends, 0.8, sample_weight=weight) == pytest.approx(
        np.sum(losses) / 0.1
    )


def test_curves_that_are_infinite_together_do_not_cross():
    curves = [[-np.inf, -np.inf, 3.0], [1.0, np.inf, np.inf], [np.inf, 2.0, 1.5]]
    expected = [[0.0, 0.0], [0.0, 0.0], [np.inf, 0.5]]
    np.testing.assert_array_equal(crossing_amounts(curves, [0.1, 0.5, 0.9]), expected)
    assert crossing_loss(curves[:2], [0.1, 0.5, 0.9]) == 0.0


def test_infinite_intervals_cover():
    ends = [[-np.inf, np.inf], [0.0, 1.0]]
    assert interval_coverage([5.0, 5.0], ends) == 0.5
    assert mean_interval_width(ends) == np.inf


def test_infinite_predictions_of_rows_of_weight_zero_do_not_count():
    ends, y, weight = [[0.0, 1.0], [-np.inf, np.inf], [0.0, 3.0]], [0.5, 5.0, 1.0], [1.0, 0.0, 1.0]
    assert mean_interval_width(ends, sample_weight=weight) == 2.0
    assert mean_interval_score(y, ends, 0.8, sample_weight=weight) == 2.0
    curves, kept = [0.0, np.inf, 3.0], [0, 2]
    for metric in (mean_pinball_loss, d2_pinball_score, d2_poisson_score):
        found = metric(y, curves, sample_weight=weight)
        assert found == metric(np.take(y, kept), np.take(curves, kept))


def test_infinite_curves_of_rows_of_weight_zero_do_not_cross():
    assert crossing_loss([[np.inf, 1.0], [3.0, 2.5]], [0.1, 0.9], sample_weight=[0, 1]) == 0.5


@pytest.mark.slow
def test_scores_of_estimators_are_metrics(data):
    _, _, weight = data
    random = np.random.RandomState(1)
    X = random.uniform(0.0, 3.0, (30, 1))
    y = np.round(np.exp(np.sin(X[:, 0])) + random.uniform(0.0, 1.0, 30))
    for kind, score in (
        (QuantileRegressor, d2_pinball_score),
        (ExpectileRegressor, d2_squared_pinball_score),
    ):
        model = kind(LEVELS, alpha=1e-4).fit(X, y)
        expected = score(y, model.predict(X), LEVELS, sample_weight=weight)
        assert model.score(X, y, weight) == pytest.approx(expected)
        assert model.crossing_loss(X) == pytest.approx(crossing_loss(model.predict(X), LEVELS))
    for loss, score in (("squared", r2_score), ("poisson", d2_poisson_score)):
        model = NonNegativeRegressor(loss).fit(X, y)
        expected = score(y, model.predict(X), sample_weight=weight)
        assert model.score(X, y, weight) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: mean_pinball_loss([0.0], [[0.0, 1.0]], 0.5), "levels must name the 2 columns"),
        (lambda: mean_pinball_loss([0.0], [0.0], 1.5), "strictly between 0 and 1"),
        (lambda: mean_pinball_loss([0.0, 1.0], [0.0], 0.5), "inconsistent numbers of samples"),
        (lambda: mean_pinball_loss([np.nan], [0.0], 0.5), "y_true contains NaN"),
        (lambda: mean_loss([0.0], [np.nan], Squared()), "y_pred contains NaN"),
        (lambda: d2_pinball_score([0.0, 1.0], [np.nan, 0.0]), "y_pred contains NaN"),
        (lambda: quantile_coverage([0.0], [np.nan]), "y_pred contains NaN"),
        (lambda: mean_loss([[0.0, 1.0]], [[0.0] * 3], Squared()), "one column, or 3"),
        (lambda: mean_loss([0.0], [[0.0, 1.0]], [Squared()]), "each of the 2 columns"),
        (lambda: d2_pinball_score([[0.0, 1.0]], [[0.0, 1.0]], [0.1, 0.9]), "one column where"),
        (lambda: mean_loss([0.0], [[[0.0]]], Squared()), "one or two dimensions"),
        (lambda: mean_pinball_loss([0.0], [0.0], multioutput="none"), "multioutput must be"),
        (lambda: mean_pinball_loss([0.0], [0.0], multioutput=np.ones(2)), "multioutput must be"),
        (lambda: d2_poisson_score([-1.0], [0.0]), "y_true must be >= 0"),
        (lambda: d2_poisson_score([1.0, 2.0], [-1.0, 2.0]), "y_pred must be >= 0"),
        (lambda: quantile_coverage([0.0], [0.0], sample_weight=[0.0]), "positive entry"),
        (lambda: crossing_loss([[0.0, 1.0]], [0.5]), "levels must name the 2 columns"),
        (lambda: calibration_band([0.5], 10, 1.0), r"confidence must be a number in \(0, 1\)"),
        (lambda: calibration_band([10, 90], 100), r"levels must lie in \[0, 1\]"),
        (
            lambda: calibration_band([1.0], 10, n_calibration=10),
            r"levels must lie in \(0, 1\) with",
        ),
        (lambda: calibration_band([0.5], 0), "n_samples must be an integer >= 1"),
        (lambda: interval_coverage([0.0], [0.0]), "intervals must have two columns"),
        (lambda: mean_interval_score([0.0], [[0.0, 1.0]], 0.0), "coverage must be a number in"),
        (lambda: interval_coverage([[0.0, 9.0]], [[0.0, 1.0]]), "y_true must have one column"),
        (
            lambda: mean_interval_score([[0.0, 9.0]], [[0.0, 1.0]], 0.5),
            "y_true must have one column, got 2",
        ),
        (lambda: d2_poisson_score([1.0], [[1.0, 9.0]]), "y_pred must have one column, got 2"),
    ],
)
def test_bad_input(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_a_width_of_ends_that_are_no_numbers_is_refused():
    with pytest.raises(ValueError, match=r"intervals must be numbers, .* got NaN in row 1"):
        mean_interval_width([[0.0, 1.0], [np.nan, 2.0]])


def test_total_effects_take_lists_and_refuse_what_are_no_numbers():
    rows = np.random.default_rng(0).normal(size=(50, 2))
    expected = total_effects(lambda X: X[:, 0], rows)
    np.testing.assert_array_equal(total_effects(lambda X: X[:, 0], rows.tolist()), expected)
    with pytest.raises(ValueError, match="X contains NaN"):
        total_effects(lambda X: X[:, 0], np.where(rows > 2.0, np.nan, rows))
    for missing in (np.nan, np.inf):
        with pytest.raises(ValueError, match="predict must return finite numbers"):
            total_effects(lambda X, z=missing: np.where(X[:, 0] < 0.0, z, X[:, 0]), rows)


@pytest.mark.parametrize("n", [2, 3, 5, 40, 600])
def test_the_total_effect_of_the_only_feature_is_one(n):
    """Pairs are of two different rows, and so is the variance that they are a share of."""
    random = np.random.default_rng(0)
    effects = [
        total_effects(lambda X: np.exp(X[:, 0]), random.normal(size=(n, 2)))
        for _ in range(max(400 // n, 1))
    ]
    np.testing.assert_allclose(np.mean(effects, axis=0), [1.0, 0.0], atol=0.1)


def test_a_spread_of_rounding_has_no_effects():
    rows = np.random.default_rng(0).normal(size=(50, 2))
    constant = 7.3 * (1.0 + 2e-16 * np.sign(rows[:, 0]))
    assert np.ptp(constant) > 0.0
    effects = total_effects(lambda X: 7.3 * (1.0 + 2e-16 * np.sign(X[:, 0])), rows)
    np.testing.assert_array_equal(effects, [0.0, 0.0])
