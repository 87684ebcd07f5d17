"""Offsets of held-out rows: against fits without these rows, one by one."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fenchel import ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel._clock import OutOfTime
from fenchel.certificate import Status
from fenchel.features import KernelRows
from fenchel.kernels import Gaussian
from fenchel.learning import Learning, folds_by_content
from fenchel.learning import held_out as _held_out
from fenchel.losses import Pinball, SquaredPinball
from fenchel.regression import _levels
from fenchel.solvers.loop import InTime

LEVELS = [0.1, 0.5, 0.9]
RNG = np.random.default_rng(3)
X = RNG.uniform(-1.0, 1.0, (90, 2))
Y = np.sin(4.0 * X[:, 0]) + 0.3 * RNG.normal(size=90)
WEIGHT = RNG.integers(1, 4, 90).astype(float)
GIVEN = {"kernel": Gaussian(0.4), "alpha": 1e-3, "learn": False, "tol": 1e-9}
BRIEFLY = Learning(max_evaluations=3)
LOSSES = {QuantileRegressor: Pinball, ExpectileRegressor: SquaredPinball}


def by_definition(estimator, parameters, folds, n_used):
    residuals, weights = [], []
    for k in range(n_used):
        held = folds == k
        without = estimator(LEVELS, refit_offsets=None, **parameters)
        without.fit(X[~held], Y[~held], WEIGHT[~held])
        residuals.append(Y[held, None] - without.predict(X[held]))
        weights.append(WEIGHT[held])
    residual, weight = np.concatenate(residuals), np.concatenate(weights)
    number = weight.sum() ** 2 / np.sum(weight**2)
    loss = LOSSES[estimator](LEVELS)
    shift = loss.offset_for_new_rows(residual, weight, number)
    if n_used == 1:  # less what the noise of these rows is, relative to that of all
        own = Y[:, None] - estimator(LEVELS, refit_offsets=None, **parameters).fit(
            X, Y, WEIGHT
        ).predict(X)
        excess = loss.minimizing_offset(own[folds == 0], WEIGHT[folds == 0])
        excess = excess - loss.minimizing_offset(own, WEIGHT)
        shift = shift - excess * WEIGHT.sum() / WEIGHT[folds != 0].sum()
    return shift


@pytest.mark.parametrize(
    "features", ["cholesky", "kernel_rows", KernelRows(stored=False)], ids=str
)
@pytest.mark.parametrize("gamma", [1.0, np.inf])
@pytest.mark.parametrize("estimator", LOSSES)
@pytest.mark.parametrize("n_used", [1, 5])
def test_definition(estimator, gamma, features, n_used, monkeypatch):
    monkeypatch.setattr(_held_out, "_ALL_FOLDS", 2000 if n_used == 5 else 80)
    parameters = {**GIVEN, "level_gamma": gamma, "features": features}
    model = estimator(LEVELS, refit_offsets="held_out", **parameters).fit(X, Y, WEIGHT)
    folds = folds_by_content(X, Y[:, None], 5)
    shift = model.offset_ - model.certified_offset_
    expected = by_definition(estimator, parameters, folds, n_used)
    np.testing.assert_allclose(shift, expected, atol=1e-4)  # the root of what tol leaves of a fit
    assert np.abs(shift).min() > 1e-3
    # the function and its certificate are those of the fit
    plain = estimator(LEVELS, refit_offsets=None, **parameters).fit(X, Y, WEIGHT)
    np.testing.assert_array_equal(model.certified_offset_, plain.offset_)
    assert model.certificate_ == plain.certificate_
    np.testing.assert_allclose(model.predict(X) - shift, plain.predict(X), atol=1e-12)


def test_functions_have_their_own_offsets_where_the_penalty_is_next_to_nothing():
    # there a dual point of a small gap stands for a function far from the certified one
    random = np.random.default_rng(2)
    rows = np.exp(random.normal(size=(200, 3)))
    y = rows[:, 0] * rows[:, 1] + rows[:, 2] + 0.1 * random.normal(size=200)
    given = {"kernel": Gaussian(8.0), "alpha": 2e-8, "learn": False}
    model = ExpectileRegressor(0.5, refit_offsets="held_out", **given).fit(rows, y)
    folds = folds_by_content(rows, y[:, None], 5)
    residual = np.empty(200)
    for held in (folds == k for k in range(5)):
        ridge = KernelRidge(kernel=Gaussian(8.0), alpha=2e-8, learn=False)
        residual[held] = y[held] - ridge.fit(rows[~held], y[~held]).predict(rows[held])
    moved = model.offset_[0] - model.certified_offset_[0]
    assert abs(moved - residual.mean()) <= 0.1 * abs(residual.mean())
    assert model.score(rows, y) >= 0.99


def test_folds_are_of_contents():
    folds = folds_by_content(X, Y[:, None], 5)
    assert np.bincount(folds).tolist() == [18] * 5
    order = RNG.permutation(90)
    np.testing.assert_array_equal(folds_by_content(X[order], Y[order, None], 5), folds[order])
    np.testing.assert_array_equal(folds_by_content(1e3 * X + 7.0, Y[:, None] / 9.0, 5), folds)
    twice = np.repeat(np.arange(90), WEIGHT.astype(int))
    np.testing.assert_array_equal(folds_by_content(X[twice], Y[twice, None], 5), folds[twice])
    far = X.copy()
    far[0] = 1e12  # one value is far from all others
    assert np.bincount(folds_by_content(far, Y[:, None], 5)).tolist() == [18] * 5


@pytest.mark.slow
def test_weights_are_repetitions_and_rows_have_no_order():
    parameters = {**GIVEN, "refit_offsets": "held_out"}
    model = QuantileRegressor(LEVELS, **parameters).fit(X, Y, WEIGHT)
    twice = RNG.permutation(np.repeat(np.arange(90), WEIGHT.astype(int)))
    again = QuantileRegressor(LEVELS, **parameters).fit(X[twice], Y[twice])
    np.testing.assert_allclose(again.offset_, model.offset_, atol=1e-6)


@pytest.mark.slow
def test_where_they_are_by_themselves():
    learned = QuantileRegressor(LEVELS, learn=BRIEFLY).fit(X, Y)
    assert np.all(learned.offset_[[0, 2]] != learned.certified_offset_[[0, 2]])
    np.testing.assert_allclose(
        learned.with_learned().fit(X, Y).predict(X), learned.predict(X), atol=1e-6
    )
    for parameters in (
        {"learn": False},
        {"learn": BRIEFLY, "refit_offsets": None},
        {"learn": BRIEFLY, "fit_intercept": False},
    ):
        model = QuantileRegressor(LEVELS, **parameters).fit(X, Y)
        np.testing.assert_array_equal(model.offset_, model.certified_offset_)


@pytest.mark.slow
def test_a_fit_that_is_stopped_keeps_its_offsets_and_says_so():
    stops = {"callback": lambda progress: not progress.is_learning, "learn": BRIEFLY}
    with pytest.warns(ConvergenceWarning) as told:
        model = QuantileRegressor(LEVELS, **stops).fit(X, Y)
    np.testing.assert_array_equal(model.offset_, model.certified_offset_)
    assert "offsets are those of the fit, not of held-out rows: the callback" in str(
        told[0].message
    )


class Late:
    """A watch with so much time left, for the fit and what comes after it."""

    reason = None

    def __init__(self, left):
        self.left = left

    def __call__(self, progress):
        return None

    def seconds_left(self):
        return self.left


def test_half_of_the_time_is_kept_for_held_out_rows():
    watch = Late(1.0)
    half, rest = _held_out.HalfTime(watch), InTime(watch)
    assert half(None) is None
    assert half.seconds_left() == 0.5
    watch.left = 0.4
    assert "max_time is over, but for what held-out rows need" in half(None)
    assert half.seconds_left() == 0.0
    assert not rest(None)
    watch.left = 0.0
    assert rest(None)
    assert _held_out.why_not(watch) == "max_time is over"
    endless = _held_out.HalfTime(lambda progress: "enough")
    assert endless(None) == "enough"
    assert endless.seconds_left() == np.inf


def test_without_any_time_the_offsets_stay_and_a_warning_says_so():
    given = {**GIVEN, "refit_offsets": "held_out", "max_time": 1e-9}
    with pytest.warns(ConvergenceWarning) as told:
        model = QuantileRegressor(LEVELS, **given).fit(X, Y)
    assert "offsets are those of the fit, not of held-out rows: max_time=1e-09" in str(told[0])
    np.testing.assert_array_equal(model.offset_, model.certified_offset_)


def test_time_may_be_over_anywhere_in_the_work_on_held_out_rows(monkeypatch):
    def late(*arguments):
        raise OutOfTime

    monkeypatch.setattr(_levels, "held_out_shift", late)
    with pytest.warns(ConvergenceWarning, match="offsets are those of the fit"):
        model = QuantileRegressor(LEVELS, refit_offsets="held_out", **GIVEN).fit(X, Y)
    np.testing.assert_array_equal(model.offset_, model.certified_offset_)


@pytest.mark.parametrize("n_far", [2, 5])
def test_folds_far_from_their_optima_are_left_out(n_far, monkeypatch):
    """The rows of others are enough; without any, a warning says that offsets are as they were."""
    solve, fits = QuantileRegressor._solve, []

    def some(self, *arguments):
        found = solve(self, *arguments)
        fits.append(found)
        if not 2 <= len(fits) < 2 + n_far:  # the first is the fit of all rows
            return found
        far = replace(found.certificate, dual=-found.certificate.primal)
        return replace(found, certificate=far, status=Status(False, "far"))

    monkeypatch.setattr(QuantileRegressor, "_solve", some)
    model = QuantileRegressor(LEVELS, refit_offsets="held_out", **GIVEN)
    if n_far == 2:
        model.fit(X, Y, WEIGHT)
        folds = folds_by_content(X, Y[:, None], 5)
        shift = model.offset_ - model.certified_offset_
        expected = by_definition(QuantileRegressor, GIVEN, folds - 2, 3)
        np.testing.assert_allclose(shift, expected, atol=1e-4)
        return
    with pytest.warns(ConvergenceWarning, match="no fit to a part of the rows has converged"):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.offset_, model.certified_offset_)


@pytest.mark.slow
@pytest.mark.parametrize(
    "limit", [{"rank": 20}, {"rank": 20, "features": "nystroem"}, {"max_iter": 2}], ids=str
)
def test_fits_that_are_cut_short_have_levels_of_held_out_rows(limit):
    rng = np.random.default_rng(5)
    rows = rng.uniform(size=(1300, 4))
    y = np.sin(5.0 * rows).sum(axis=1) + 0.3 * rng.normal(size=1300)
    covered = {}
    for offsets in ("auto", None):
        model = QuantileRegressor(LEVELS, refit_offsets=offsets, **limit)
        with pytest.warns(ConvergenceWarning) as told:
            model.fit(rows[:300], y[:300])
        assert not any("offsets" in str(each.message) for each in told)
        low, _, high = model.predict(rows[300:]).T
        covered[offsets] = np.mean((low <= y[300:]) & (y[300:] <= high))
    assert abs(covered["auto"] - 0.8) < min(0.06, abs(covered[None] - 0.8))


def test_a_tube_does_not_count_and_intervals_are_shares():
    tube = {**GIVEN, "epsilon": 0.5}
    model = QuantileRegressor(LEVELS, refit_offsets="held_out", **tube).fit(X, Y)
    inside = model.predict_interval(X, 0.8)
    assert np.mean((inside[:, 0] <= Y) & (inside[:, 1] >= Y)) >= 0.75


@pytest.mark.slow
def test_intervals_of_a_function_that_comes_near_to_its_rows_hold_new_rows():
    def sample(n, seed):
        rng = np.random.default_rng(seed)
        rows = rng.uniform(size=(n, 4))
        return rows, np.sin(5.0 * rows).sum(axis=1) + 0.05 * rng.normal(size=n)

    def held(offsets):
        model = QuantileRegressor(LEVELS, refit_offsets=offsets).fit(*sample(300, 0))
        rows, y = sample(5000, 1)
        low, _, high = model.predict(rows).T
        return np.mean((low <= y) & (y <= high))

    assert held(None) < 0.6
    assert 0.75 < held("auto") < 0.87


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 8, 11, 12, 14])
def test_few_rows_have_levels_of_held_out_rows(n):
    """Levels of so few training rows are too near to each other, whatever is learned."""
    covered, covered_by_the_fit = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows, y = rng.normal(size=(n, 2)), rng.normal(size=n)
        new, y_new = rng.normal(size=(300, 2)), rng.normal(size=300)
        model = QuantileRegressor(LEVELS).fit(rows, y)
        moved = model.offset_ - model.certified_offset_
        for shares, curves in (
            (covered, model.predict(new)),
            (covered_by_the_fit, model.predict(new) - moved),
        ):
            low, _, high = curves.T
            shares.append(np.mean((low <= y_new) & (y_new <= high)))
    assert np.mean(covered_by_the_fit) < np.mean(covered)
    assert 0.65 < np.mean(covered) < 0.9


@pytest.mark.parametrize("which", ["held_out", "train"])
def test_what_cannot_be_moved(which):
    with pytest.raises(ValueError, match="refit_offsets must be 'auto' or None with"):
        QuantileRegressor(LEVELS, refit_offsets=which, fit_intercept=False).fit(X, Y)


@pytest.mark.slow
def test_curves_that_do_not_cross_are_moved_in_order():
    """Levels as they are given, in no order; a higher one moves up by no less."""
    levels = [0.5, 0.45, 0.9, 0.1, 0.55]
    given = {**GIVEN, "tol": 1e-6, "level_gamma": np.inf, "non_crossing": "train"}
    model = QuantileRegressor(levels, refit_offsets="held_out", **given).fit(X, Y)
    order = np.argsort(levels)
    moved = (model.offset_ - model.certified_offset_)[order]
    assert np.all(np.diff(moved) >= 0.0)
    assert moved[0] < 0.0 < moved[-1]
    assert np.diff(model.predict(X)[:, order], axis=1).min() >= -1e-9
    plain = QuantileRegressor(levels, refit_offsets=None, **given).fit(X, Y)
    np.testing.assert_array_equal(model.certified_offset_, plain.offset_)
    by_itself = QuantileRegressor(LEVELS, learn=BRIEFLY, non_crossing="train").fit(X, Y)
    assert (by_itself.offset_ != by_itself.certified_offset_).any()


def test_values():
    with pytest.raises(ValueError, match=r"refit_offsets must be .*auto.*got True"):
        QuantileRegressor(LEVELS, refit_offsets=True).fit(X, Y)


def test_other_columns_of_y_have_their_own():
    both = np.column_stack([Y, np.cos(3.0 * X[:, 1]) + 0.1 * RNG.normal(size=90)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = QuantileRegressor(LEVELS, refit_offsets="held_out", **GIVEN).fit(X, both)
    one = QuantileRegressor(LEVELS, refit_offsets="held_out", **GIVEN).fit(X, both[:, 1])
    # columns are not coupled; folds are told by all targets, and shared by the columns
    shifts = (model.offset_ - model.certified_offset_).reshape(3, 2)
    assert np.all(shifts[0] < 0.0)
    assert np.all(shifts[2] > 0.0)
    np.testing.assert_allclose(
        model.certified_offset_.reshape(3, 2)[:, 1], one.certified_offset_, atol=1e-5
    )


def test_weights_are_repetitions_where_these_are_more_than_two_thousand_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1500, 2))
    y = np.sin(5.0 * X[:, 0]) + (0.3 + X[:, 1]) * rng.normal(size=1500)
    counts = rng.integers(1, 3, 1500)
    model = QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-4, kernel=Gaussian(0.5))
    weighted = clone(model).fit(X, y, counts)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.offset_, repeated.offset_, atol=2e-3)


def test_one_fold_adds_no_noise_of_its_own():
    """For averages of cells the shift is zero; the mean of 600 rows is 2 times as noisy."""
    shifts = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        level = rng.integers(0, 2, 3000).astype(float)
        y = level + rng.normal(size=3000)
        model = ExpectileRegressor(0.5, kernel=Gaussian(1.0), alpha=1e-6, learn=False)
        model.set_params(refit_offsets="held_out").fit(level[:, None], y)
        shifts.append(model.offset_[0] - model.certified_offset_[0])
        means = [y[level == one].mean() for one in (0.0, 1.0)]
        np.testing.assert_allclose(model.predict([[0.0], [1.0]]), means, atol=0.01)
    assert np.max(np.abs(shifts)) < 0.01


def few_groups():
    return {"groups": np.arange(90) % 7}


def unequal_weights():
    return {"sample_weight": np.exp(4.0 * np.random.default_rng(0).normal(size=90))}


@pytest.mark.parametrize("which", [few_groups, unequal_weights])
def test_all_folds_are_held_out_if_one_has_few_groups_or_little_weight(which, monkeypatch):
    """Of 2010 rows in 30 groups of no effect, 80 % intervals had 87 % of new rows."""
    model = QuantileRegressor(LEVELS, refit_offsets="held_out", **GIVEN)
    all_folds = clone(model).fit(X, Y, **which())
    monkeypatch.setattr(_held_out, "_ALL_FOLDS", 80)
    found = clone(model).fit(X, Y, **which())
    np.testing.assert_array_equal(found.offset_, all_folds.offset_)


@pytest.mark.parametrize("estimator", [QuantileRegressor, ExpectileRegressor])
@pytest.mark.parametrize("epsilon", [0.0, pytest.param(0.5, marks=pytest.mark.slow)])
def test_parallel_curves_stay_in_order(estimator, epsilon):
    """Held-out rows alone say otherwise for close levels of few rows, so in some of these fits."""
    levels = [0.5, 0.44, 0.46, 0.56, 0.48, 0.52, 0.54]  # in any order
    settings = {"level_gamma": 0.0, "kernel": Gaussian(0.7), "alpha": 1e-3}
    moved, order = 0, np.argsort(levels)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(15, 1))
        both = np.column_stack([np.sin(2.0 * rows[:, 0]), rows[:, 0]])
        both += 0.3 * rng.normal(size=both.shape)
        model = estimator(levels, epsilon=epsilon, refit_offsets="held_out", **settings)
        offset = model.fit(rows, both).offset_.reshape(7, 2)[order]
        assert np.diff(offset, axis=0).min() >= -1e-12
        assert np.diff(model.predict(rows)[:, order], axis=1).min() >= -1e-12
        moved += not np.allclose(model.offset_, model.certified_offset_)
    assert moved == 12
