"""Levels of one statistic: their properties, their score, and their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import d2_pinball_score

from fenchel import ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.features import KernelRows
from regression_cases import (
    LEVELS,
    TOL,
    WEIGHT,
    X,
    Y,
    data,
    uncertainty,
    with_levels,
)

# Quantiles and expectiles


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gamma", [0.0, 1.0, np.inf])
@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
def test_quantile_property(alpha, gamma, weighted):
    """By optimality in the offset: share below <= level <= share at or below."""
    weight = WEIGHT if weighted else np.ones(80)
    model = QuantileRegressor(LEVELS, alpha=alpha, level_gamma=gamma, learn=False, tol=TOL)
    model.fit(X, Y, sample_weight=weight if weighted else None)
    residual = Y[:, None] - model.predict(X)
    on_curve = 1e-3 * np.std(Y)  # free rows are on the curve only as exactly as the fit is
    share = weight / weight.sum()
    below = share @ (residual < -on_curve)
    at_most = share @ (residual <= on_curve)
    assert np.all(below <= np.add(LEVELS, 1e-9))
    assert np.all(at_most >= np.subtract(LEVELS, 1e-9))
    # and the two shares are not trivially far apart: few rows are on a curve
    assert np.all(at_most - below <= 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_expectile_property(weighted):
    """Asymmetrically weighted residuals of each level sum to zero."""
    weight = WEIGHT if weighted else np.ones(80)
    model = ExpectileRegressor(LEVELS, tol=1e-10, refit_offsets=None).fit(X, Y, weight)
    residual = Y[:, None] - model.predict(X)
    pull = weight[:, None] * np.where(residual < 0, np.subtract(1.0, LEVELS), LEVELS) * residual
    assert np.all(np.abs(pull.sum(axis=0)) <= 1e-4 * np.abs(pull).sum(axis=0))


def test_expectile_of_one_half_is_ridge_of_twice_the_strength():
    expectile = ExpectileRegressor(0.5, alpha=1e-3, learn=False, tol=1e-12).fit(X, Y)
    ridge = KernelRidge(alpha=2e-3, learn=False).fit(X, Y)
    np.testing.assert_allclose(expectile.predict(X), ridge.predict(X), atol=1e-5)


@pytest.mark.slow
@with_levels
def test_gamma_zero_gives_parallel_curves(estimator):
    model = estimator(LEVELS, level_gamma=0.0).fit(X, Y)
    prediction = model.predict(data(seed=3)[0])
    difference = prediction - prediction[:, :1]
    assert np.ptp(difference, axis=0).max() <= 1e-10
    assert np.ptp(prediction[:, 0]) > 0.1
    assert np.all(np.diff(difference[0]) > 0.1)
    assert model.crossing_loss(X) == 0.0


@with_levels
def test_gamma_infinite_gives_independent_fits(estimator):
    fixed = {"alpha": 1e-2, "learn": False, "tol": TOL}
    together = estimator(LEVELS, level_gamma=np.inf, **fixed).fit(X, Y)
    primal = 0.0
    for j, level in enumerate(LEVELS):
        alone = estimator(level, **fixed).fit(X, Y)
        primal += alone.certificate_.primal
        function = together.predict(X)[:, j] - together.offset_[j]
        expected = alone.predict(X) - alone.offset_
        bound = uncertainty(alone) + uncertainty(together)
        np.testing.assert_allclose(function, expected, atol=bound)
        assert together.offset_[j] == pytest.approx(alone.offset_[0], abs=10 * bound)
    # objectives add up
    gap = together.certificate_.gap + 3 * TOL * primal
    assert together.certificate_.primal == pytest.approx(primal, abs=2 * gap)


@with_levels
@pytest.mark.parametrize("gamma", [0.0, 3.0, np.inf])
def test_unsorted_levels_permute_columns(estimator, gamma):
    order = [2, 0, 1]
    fixed = {"level_gamma": gamma, "alpha": 1e-3, "learn": False, "tol": TOL / 30}
    in_order = estimator(LEVELS, **fixed).fit(X, Y)
    shuffled = estimator([LEVELS[j] for j in order], **fixed).fit(X, Y)
    np.testing.assert_array_equal(shuffled.levels_, np.array(LEVELS)[order])
    bound = 20 * uncertainty(in_order)
    expected = in_order.predict(X)[:, order]
    np.testing.assert_allclose(shuffled.predict(X), expected, atol=bound)
    np.testing.assert_allclose(shuffled.offset_, in_order.offset_[order], atol=bound)
    assert bound < 0.1 * np.abs(np.diff(expected, axis=1)).min()  # the test can fail
    assert shuffled.crossing_loss(X) == pytest.approx(in_order.crossing_loss(X), abs=bound)


@pytest.mark.slow
@with_levels
def test_levels_of_any_kind(estimator):
    reference = estimator([0.25, 0.75], learn=False).fit(X, Y).predict(X)
    for levels in ((0.25, 0.75), np.array([0.25, 0.75]), np.array([0.25, 0.75], np.float32)):
        np.testing.assert_array_equal(
            estimator(levels, learn=False).fit(X, Y).predict(X), reference
        )
    assert estimator(0.3).fit(X, Y).predict(X).shape == (80,)
    assert estimator([0.3]).fit(X, Y).predict(X).shape == (80,)
    assert estimator([0.3, 0.4]).fit(X, Y).predict(X[:1]).shape == (1, 2)


def test_predict_interval():
    model = QuantileRegressor([0.9, 0.1, 0.5, 0.25, 0.75]).fit(X, Y)
    prediction = model.predict(X)
    np.testing.assert_array_equal(model.predict_interval(X, 0.8), prediction[:, [1, 0]])
    np.testing.assert_array_equal(model.predict_interval(X, 0.5), prediction[:, [3, 4]])
    with pytest.raises(ValueError, match=r"coverage=0.9 needs the levels 0.05 and 0.95"):
        model.predict_interval(X, 0.9)


def test_no_interval_of_levels_with_a_tube():
    """Rows inside of the tube do not count: the interval would hold far less than it says."""
    model = QuantileRegressor([0.1, 0.9], epsilon=1.0, learn=False).fit(X, Y)
    low, high = model.predict(X).T
    assert np.mean((low <= Y) & (high >= Y)) < 0.75
    with pytest.raises(
        ValueError,
        match=r"epsilon must be 0 for intervals, got 1: .*refit_offsets='train'.*calibrate",
    ):
        model.predict_interval(X, 0.8)
    assert model.set_params(epsilon=0.0).fit(X, Y).predict_interval(X, 0.8).shape == (80, 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gamma", [0.0, 1.0, np.inf])
def test_refitted_offsets_bring_the_shares_back(gamma, weighted):
    """With a tube as wide as that, the levels of the fit are not shares."""
    weight = WEIGHT if weighted else np.ones(80)
    fixed = {"epsilon": 1.0, "level_gamma": gamma, "alpha": 1e-2, "learn": False}
    plain = QuantileRegressor(LEVELS, **fixed).fit(X, Y, weight)
    model = QuantileRegressor(LEVELS, refit_offsets="train", **fixed).fit(X, Y, weight)
    share, rounding = weight / weight.sum(), 1e-12

    def shares(fitted):
        residual = Y[:, None] - fitted.predict(X)
        return share @ (residual < -rounding), share @ (residual <= rounding)

    below, at_most = shares(model)
    assert np.all(below <= np.add(LEVELS, 1e-12))
    assert np.all(at_most >= np.subtract(LEVELS, 1e-12))
    off_below, off_at_most = shares(plain)
    assert np.any(off_below > np.add(LEVELS, 0.05)) or np.any(off_at_most + 0.05 < LEVELS)
    # the function, its support and its certificate are those of the fit
    np.testing.assert_array_equal(model.support_, plain.support_)
    np.testing.assert_array_equal(model.certified_offset_, plain.offset_)
    assert model.certificate_ == plain.certificate_
    np.testing.assert_allclose(
        model.predict(X) - model.offset_, plain.predict(X) - plain.offset_, atol=1e-12
    )
    low, high = model.predict_interval(X, 0.8).T
    assert share @ ((low - rounding <= Y) & (high + rounding >= Y)) >= 0.8 - 1e-12


def test_refitted_offsets_are_the_best_constants_added():
    """No other constant has a smaller mean pinball loss; on a grid around them."""
    model = QuantileRegressor(LEVELS, epsilon=1.0, refit_offsets="train", learn=False).fit(X, Y)
    residual = Y[:, None] - model.predict(X)

    def loss(shift):
        moved = residual - shift
        return np.maximum(LEVELS * moved, np.subtract(LEVELS, 1.0) * moved).mean(axis=0)

    for shift in np.linspace(-1.0, 1.0, 101):
        assert np.all(loss(0.0) <= loss(shift) + 1e-12)


@pytest.mark.parametrize(
    ("more", "match"),
    [
        (
            {"non_crossing": "train"},
            "refit_offsets must be 'auto', 'held_out' or None with non_crossing='train'",
        ),
        (
            {"fit_intercept": False},
            "refit_offsets must be 'auto' or None with fit_intercept=False",
        ),
    ],
)
def test_offsets_that_cannot_be_refitted(more, match):
    with pytest.raises(ValueError, match=match):
        QuantileRegressor(LEVELS, refit_offsets="train", **more).fit(X, Y)


@with_levels
def test_parallel_curves_are_in_order_where_all_rows_are_in_the_tube(estimator):
    """Any offsets near zero are optimal there, out of order as well: the sorted ones are taken."""
    levels = [0.9, 0.1, 0.45, 0.975, 0.525]
    for seed in range(10):
        X, y = np.arange(6.0)[:, None], np.random.default_rng(seed).standard_normal(6)
        model = estimator(levels, level_gamma=0.0, alpha=1e-3, epsilon=3.0 * np.std(y))
        model.set_params(learn=False)
        offset = model.fit(X, y).offset_[np.argsort(levels)]
        assert np.all(np.diff(offset) >= 0.0)
        residual = y[:, None] - model.predict(X)
        penalty = 0.5 * 1e-3 * float(np.vdot(model.weights_[:, 0], model.weights_[:, 0]))
        objective = penalty + float(model.loss_.value(residual).mean())
        assert model.certificate_.primal == pytest.approx(objective, rel=1e-6, abs=1e-9)
        assert model.certificate_.gap <= 1e-6 * model.certificate_.unit


@pytest.mark.slow
def test_score_is_the_mean_of_d2_pinball_scores():
    model = QuantileRegressor([0.9, 0.1]).fit(X, Y)
    new_X, new_y = data(seed=4)
    prediction = model.predict(new_X)
    for weight in (None, WEIGHT):
        expected = np.mean(
            [
                d2_pinball_score(new_y, prediction[:, j], alpha=level, sample_weight=weight)
                for j, level in enumerate([0.9, 0.1])
            ]
        )
        assert model.score(new_X, new_y, weight) == pytest.approx(expected, abs=1e-12)
    assert model.score(new_X, new_y[:, None]) == pytest.approx(model.score(new_X, new_y))
    constant = QuantileRegressor(alpha=1e9, refit_offsets=None).fit(X, Y)
    assert constant.score(X, Y) == pytest.approx(0.0, abs=1e-6)


def test_score_of_expectiles_at_one_half_is_r2():
    model = ExpectileRegressor(0.5).fit(X, Y)
    residual = Y - model.predict(X)
    expected = 1.0 - np.sum(residual**2) / np.sum((Y - Y.mean()) ** 2)
    assert model.score(X, Y) == pytest.approx(expected, abs=1e-12)


@with_levels
def test_crossing_loss_by_definition(estimator):
    model = estimator([0.5, 0.1, 0.11, 0.9], level_gamma=np.inf, alpha=1e-6, learn=False)
    model.fit(X, Y)
    new_X = 1.5 * data(seed=5)[0]
    prediction = model.predict(new_X)
    ordered = prediction[:, [1, 2, 0, 3]]
    expected = 0.0
    for j in range(3):
        for row in ordered:
            expected += max(0.0, row[j] - row[j + 1]) / len(new_X)
    assert expected > 0.0
    assert model.crossing_loss(new_X) == pytest.approx(expected, rel=1e-12)
    assert estimator(0.5).fit(X, Y).crossing_loss(X) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.0, 1.0, 30.0, np.inf])
def test_alpha_of_many_levels_is_carried_over_from_three(gamma):
    """By the largest eigenvalue: with γ = 0 all levels are one function of p losses."""
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (150, 1))
    y = np.sin(3.0 * x[:, 0]) + 0.3 * np.random.default_rng(1).standard_normal(150)
    few, many = [0.1, 0.5, 0.9], np.linspace(0.1, 0.9, 9)
    three = QuantileRegressor(few, level_gamma=gamma).fit(x, y)
    nine = QuantileRegressor(many, level_gamma=gamma).fit(x, y)
    largest = [np.linalg.eigvalsh(model.coupling_)[-1] for model in (three, nine)]
    assert nine.kernel_ == three.kernel_
    assert nine.alpha_ == pytest.approx(three.alpha_ * largest[1] / largest[0])
    if gamma == 0.0:
        assert nine.alpha_ == pytest.approx(3.0 * three.alpha_)


def test_rows_beyond_the_tube_may_have_one_level_at_a_bound_only():
    """2017, section 6.3, has all of them at a bound: that is so for a single level."""
    fixed = {"alpha": 1e-2, "epsilon": 0.5, "learn": False, "tol": 1e-10}
    model = QuantileRegressor(LEVELS, **fixed).fit(X, Y)
    beta = np.zeros((80, 3))
    beta[model.support_] = model.dual_coef_ * (1e-2 * 80)
    length = np.linalg.norm(Y[:, None] - model.predict(X), axis=1)
    beyond, off = length > 0.5 * (1 + 1e-3), 1e-6
    free = (beta > np.subtract(LEVELS, 1.0) + off) & (beta < np.array(LEVELS) - off)
    assert beyond.sum() > 20
    assert not free[beyond].all(axis=1).any()
    assert free[beyond].any(axis=1).sum() > 5
    one = QuantileRegressor(0.3, **fixed).fit(X, Y)
    beyond = np.abs(Y - one.predict(X)) > 0.5 * (1 + 1e-3)
    alone = np.zeros(80)
    alone[one.support_] = one.dual_coef_[:, 0] * (1e-2 * 80)
    at_bound = np.isclose(alone, 0.3) | np.isclose(alone, -0.7)
    assert at_bound[beyond].all()


def test_several_levels_of_many_rows_use_the_kernel_as_given():
    """Two thousand features of five levels are a system of 10 000 unknowns: minutes, not seconds.

    Three levels had no features up to 20 000 rows, and five up to 12 000.
    """
    X = np.random.default_rng(0).normal(size=(12_500, 10))
    for levels in ([0.1, 0.5, 0.9], [0.05, 0.25, 0.5, 0.75, 0.95]):
        model = QuantileRegressor(levels, alpha=1e-3, kernel="laplacian", learn=False)
        assert isinstance(model.prepare(X, X[:, 0]).inputs.feature_map, KernelRows)
