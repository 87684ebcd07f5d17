"""Offsets and constants of curves that never cross, moved to the levels of held-out rows."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import fenchel
from fenchel import NonCrossingQuantileRegressor
from fenchel.certificate import Status
from fenchel.inspection import has_moved_offsets
from fenchel.kernels import Gaussian
from fenchel.learning import Learning, folds_by_content
from fenchel.losses import Pinball
from fenchel.model_selection import PathSearchCV
from fenchel.positive import non_crossing

LEVELS = [0.9, 0.1, 0.5]
RNG = np.random.default_rng(5)
X = RNG.uniform(-1.0, 1.0, (60, 2))
Y = np.sin(3.0 * X[:, 0]) + 0.3 * RNG.normal(size=60)
WEIGHT = RNG.integers(1, 4, 60).astype(float)
GIVEN = {"kernel": Gaussian(1.5), "alpha": 1e-4, "tol": 1e-7}
BRIEFLY = {"learn": Learning(max_evaluations=2), "tol": 1e-4}


def spread(y, weight):
    """Mean distance from a median."""
    repeated = np.repeat(y, weight.astype(int))
    return np.mean(np.abs(repeated - np.sort(repeated)[len(repeated) // 2]))


def by_definition(parameters):
    """Residuals of held-out rows by fits of their own; their scale of y is that of their rows."""
    residuals, weights = [], []
    folds, whole = folds_by_content(X, Y[:, None], 5), spread(Y, WEIGHT)
    for k in range(5):
        held = folds == k
        share = spread(Y[~held], WEIGHT[~held]) / whole
        own = {**parameters, "alpha": parameters["alpha"] * share, "refit_offsets": None}
        without = NonCrossingQuantileRegressor(LEVELS, **own)
        without.fit(X[~held], Y[~held], WEIGHT[~held])
        residuals.append(Y[held, None] - without.predict(X[held]))
        weights.append(WEIGHT[held])
    return np.concatenate(residuals), np.concatenate(weights)


def curves_moved(model):
    """From the curves of the fit to those of the model, by its attributes; levels rising."""
    steps = np.concatenate(
        [[0.0], np.cumsum(model.gap_constants_ - model.certified_gap_constants_)]
    )
    middle = int(np.argsort(np.argsort(model.levels_))[list(model.levels_).index(model.anchor_)])
    return model.offset_ - model.certified_offset_ + steps - steps[middle]


@pytest.mark.slow
def test_definition(monkeypatch):
    monkeypatch.setattr(non_crossing, "_ENOUGH", 0.0)
    model = NonCrossingQuantileRegressor(LEVELS, refit_offsets="held_out", **GIVEN)
    model.fit(X, Y, WEIGHT)
    plain = NonCrossingQuantileRegressor(LEVELS, refit_offsets=None, **GIVEN).fit(X, Y, WEIGHT)
    residual, weight = by_definition(GIVEN)
    loss, number = Pinball(LEVELS), weight.sum() ** 2 / np.sum(weight**2)
    shift = model.predict(X[:1])[0] - plain.predict(X[:1])[0]
    expected = loss.offset_for_new_rows(residual, weight, number)
    np.testing.assert_allclose(shift, expected, atol=1e-5)
    moved = np.average(loss.value(residual - shift), weights=weight)
    assert np.average(loss.value(residual), weights=weight) > 1.02 * moved
    # all that has no sign or is a constant moves, and nothing else
    np.testing.assert_allclose(model.predict(X) - plain.predict(X), np.tile(shift, (60, 1)))
    np.testing.assert_allclose(curves_moved(model), np.sort(shift), atol=1e-12)
    np.testing.assert_array_equal(model.certified_offset_, plain.offset_)
    np.testing.assert_array_equal(model.certified_gap_constants_, plain.gap_constants_)
    np.testing.assert_array_equal(model.weights_, plain.weights_)
    assert model.certificate_ == plain.certificate_
    assert has_moved_offsets(model)
    assert not has_moved_offsets(plain)


@pytest.mark.slow
def test_certificate_is_of_the_certified_constants():
    """The objective of the docstring, with the curves of the fit."""
    model = NonCrossingQuantileRegressor(LEVELS, refit_offsets="held_out", **GIVEN)
    model.fit(X, Y, WEIGHT)
    scale, tau = spread(Y, WEIGHT), np.sort(LEVELS)
    curves = np.sort(model.predict(X), axis=1) - curves_moved(model)
    residual = (Y[:, None] - curves) / scale
    loss = np.maximum(tau * residual, (tau - 1.0) * residual).sum(axis=1)
    objective = np.average(loss, weights=WEIGHT)
    objective += 0.5e-4 * np.sum((model.weights_ / scale) ** 2)
    for factor in model.gap_factors_:
        matrix = factor @ factor.T / scale
        objective += 1e-4 * np.trace(matrix) + 0.5e-4 * np.sum(matrix**2)
    objective += 0.5e-4 * np.sum((model.certified_gap_constants_ / scale) ** 2)
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-9)
    assert model.certificate_.relative_gap <= 1e-7


@pytest.mark.parametrize("shift", [[3.0, -2.0, -4.0, -9.0], [-1.0, 0.0, 0.5, 2.0]])
@pytest.mark.parametrize("anchor", [0.1, 0.5, 0.9])
def test_never_crosses_whatever_held_out_rows_say(shift, anchor, monkeypatch):
    levels = [0.1, 0.5, 0.9, 0.7]
    monkeypatch.setattr(non_crossing, "held_out_shift", lambda *_: np.array(shift))
    parameters = {"anchor": anchor, "alpha": 1e-2, "learn": False, "tol": 1e-3}
    model = NonCrossingQuantileRegressor(levels, refit_offsets="held_out", **parameters).fit(X, Y)
    assert np.all(model.gap_constants_ >= 0.0)
    points = np.random.default_rng(1).uniform(-30.0, 30.0, (20_000, 2))
    points[:10_000] /= 20.0
    curves = model.predict(points)[:, np.argsort(levels)]
    assert np.all(np.diff(curves, axis=1) >= 0.0)
    if shift[0] > shift[-1]:  # constants are used up, and what is left moves all curves alike
        np.testing.assert_allclose(model.gap_constants_, 0.0, atol=1e-12)
        moved = np.mean(curves_moved(model)) / model.scale_
        assert moved == pytest.approx(np.mean(shift), abs=1e-9)
    else:
        np.testing.assert_allclose(curves_moved(model), model.scale_ * np.array(shift), atol=1e-12)


@pytest.mark.slow
def test_rows_have_no_order_weights_are_repetitions_and_units_play_no_part():
    model = NonCrossingQuantileRegressor(LEVELS, refit_offsets="held_out", **GIVEN)
    first = model.fit(X, Y, WEIGHT).predict(X)
    order = RNG.permutation(np.repeat(np.arange(60), WEIGHT.astype(int)))
    again = model.fit(X[order], Y[order]).predict(X)
    np.testing.assert_allclose(again, first, atol=1e-4)
    other = model.fit(X, 1e4 * Y - 3e4, WEIGHT).predict(X)
    np.testing.assert_allclose(other, 1e4 * first - 3e4, atol=1.0)
    given = {"refit_offsets": "held_out", "learn": False, "tol": 1e-7}
    by_rule = NonCrossingQuantileRegressor(LEVELS, **given)
    here, there = (by_rule.fit(c * X, Y).predict(c * X) for c in (1.0, 1e3))
    np.testing.assert_allclose(here, there, atol=1e-4)


@pytest.mark.slow
def test_where_they_are_by_themselves():
    learned = NonCrossingQuantileRegressor(LEVELS, **BRIEFLY).fit(X, Y)
    assert has_moved_offsets(learned)
    copy = learned.with_learned()
    assert copy.refit_offsets == "held_out"
    np.testing.assert_allclose(copy.fit(X, Y).predict(X), learned.predict(X), atol=1e-3)
    for parameters in ({"learn": False}, {"refit_offsets": None, **BRIEFLY}):
        model = NonCrossingQuantileRegressor(LEVELS, **parameters).fit(X, Y)
        assert not has_moved_offsets(model)
    learned.prepare(X, Y)
    assert learned._refitted() is None  # candidates of a search learn nothing


def test_a_fit_that_is_stopped_keeps_its_offsets_and_says_so():
    model = NonCrossingQuantileRegressor(LEVELS, learn=False, callback=lambda progress: True)
    with pytest.warns(ConvergenceWarning) as told:
        model.set_params(refit_offsets="held_out").fit(X, Y)
    said = [str(each.message) for each in told]
    assert any("not of held-out rows: the callback returned a true value" in each for each in said)
    assert not has_moved_offsets(model)


@pytest.mark.slow
def test_who_watches_plays_no_part():
    given = {"refit_offsets": "held_out", "kernel": Gaussian(1.0), "alpha": 1e-3}
    alone = NonCrossingQuantileRegressor(LEVELS, **given).fit(X, Y)
    watched = NonCrossingQuantileRegressor(LEVELS, callback=lambda progress: None, **given)
    np.testing.assert_array_equal(watched.fit(X, Y).predict(X), alone.predict(X))


def test_without_time_offsets_stay_and_a_warning_says_so():
    given = {"refit_offsets": "held_out", "learn": False, "max_time": 1e-9}
    model = NonCrossingQuantileRegressor(LEVELS, **given)
    with pytest.warns(ConvergenceWarning) as told:
        model.fit(X, Y)
    assert any("not of held-out rows: max_time=1e-09" in str(each.message) for each in told)
    assert not has_moved_offsets(model)


def test_half_of_the_time_is_kept_for_held_out_rows(monkeypatch):
    seen, solve = [], non_crossing.PositiveRegressor._solve_to

    def noted(self, tol, prepared, start, watch):
        seen.append(type(watch).__name__)
        return solve(self, tol, prepared, start, watch)

    monkeypatch.setattr(non_crossing.PositiveRegressor, "_solve_to", noted)
    model = NonCrossingQuantileRegressor(LEVELS, refit_offsets="held_out", max_time=1e6, **GIVEN)
    model.fit(X, Y)
    assert seen == ["HalfTime"] + 5 * ["InTime"]
    assert has_moved_offsets(model)


def test_folds_far_from_their_optima_say_nothing(monkeypatch):
    solve, fits = non_crossing.PositiveRegressor._solve_to, []

    def far(self, *arguments):
        found = solve(self, *arguments)
        fits.append(found)
        if len(fits) == 1:  # the fit of all rows
            return found
        certificate = replace(found.certificate, dual=-found.certificate.primal)
        return replace(found, certificate=certificate, status=Status(False, "far"))

    monkeypatch.setattr(non_crossing.PositiveRegressor, "_solve_to", far)
    model = NonCrossingQuantileRegressor(LEVELS, refit_offsets="held_out", **GIVEN)
    with pytest.warns(ConvergenceWarning, match="no fit to a part of the rows has converged"):
        model.fit(X, Y)
    assert not has_moved_offsets(model)


@pytest.mark.parametrize("rows", [np.zeros((1, 2)), np.zeros((12, 2)), X[:3], X[:8]], ids=len)
def test_few_rows_and_rows_that_are_equal(rows):
    n = len(rows)
    model = NonCrossingQuantileRegressor(LEVELS, refit_offsets="held_out", learn=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        constant = model.fit(rows, np.full(n, 7.0)).predict(rows)
        np.testing.assert_allclose(constant, 7.0, rtol=1e-4)
        model.fit(rows, np.arange(float(n)))
    assert np.all(model.gap_constants_ >= 0.0)
    assert np.isfinite(model.predict(rows)).all()


@pytest.mark.slow
def test_intervals_hold_new_rows():
    def sample(n, seed):
        rng = np.random.default_rng(seed)
        rows = rng.uniform(size=(n, 4))
        return rows, np.sin(5.0 * rows).sum(axis=1) + 0.1 * rng.normal(size=n)

    rows, y = sample(4000, 1)
    held = {}
    for offsets in ("held_out", None):
        given = {"refit_offsets": offsets, "alpha": 1e-4, "learn": False, "tol": 1e-4}
        model = NonCrossingQuantileRegressor(LEVELS, **given)
        low, high = model.fit(*sample(150, 0)).predict_interval(rows, 0.8).T
        held[offsets] = np.mean((low <= y) & (y <= high))
    assert held[None] < 0.68
    assert 0.74 < held["held_out"] < 0.87


def test_one_level_has_an_offset_to_move():
    model = NonCrossingQuantileRegressor(0.8, refit_offsets="held_out", **GIVEN).fit(X, Y)
    assert model.offset_ != model.certified_offset_
    assert model.gap_constants_.shape == (0,)


@pytest.mark.slow
def test_a_second_kernel_and_a_gram_matrix():
    kernel = Gaussian(1.5)
    given = {"refit_offsets": "held_out", "alpha": 1e-4, "tol": 1e-7}
    by_rows = NonCrossingQuantileRegressor(LEVELS, kernel=kernel, gap_kernel=kernel, **given)
    by_values = NonCrossingQuantileRegressor(LEVELS, kernel="precomputed", **given)
    one = by_rows.fit(X, Y).predict(X)
    gram = np.asarray(kernel(X))
    other = by_values.fit(gram, Y)
    assert has_moved_offsets(by_rows)
    assert has_moved_offsets(other)
    # folds are told by kernel values there, so the two are near and not the same
    np.testing.assert_allclose(other.predict(gram), one, atol=0.3 * np.std(Y))


@pytest.mark.slow
def test_searches_choose_and_move(tmp_path):
    grid = {"alpha": [1e-2, 1e-4], "gap_strength": [1.0]}
    quantiles = NonCrossingQuantileRegressor(LEVELS, kernel=Gaussian(1.5), tol=1e-3)
    search = PathSearchCV(quantiles, grid, cv=2).fit(X, Y)
    best = search.best_estimator_
    assert has_moved_offsets(best)
    asked = quantiles.with_parameters(refit_offsets="held_out", **search.best_params_)
    np.testing.assert_array_equal(asked.fit(X, Y).predict(X), search.predict(X))
    same = fenchel.load(fenchel.save(best, tmp_path / "model.skops"))
    np.testing.assert_array_equal(same.predict(X), best.predict(X))
    assert has_moved_offsets(same)
    kept = PathSearchCV(quantiles.set_params(refit_offsets=None), grid, cv=2).fit(X, Y)
    assert not has_moved_offsets(kept)


def test_values():
    with pytest.raises(ValueError, match=r"refit_offsets must be .*auto.*held_out.*got 'train'"):
        NonCrossingQuantileRegressor(LEVELS, refit_offsets="train").fit(X, Y)
