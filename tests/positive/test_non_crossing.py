"""Quantile curves that cross nowhere."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import d2_pinball_score

import fenchel
import positive_referee as referee
from contract_cases import with_checks
from fenchel.kernels import Gaussian, Matern
from fenchel.model_selection import PathSearchCV
from fenchel.positive import NonCrossingQuantileRegressor, _kinks, solvers

LEVELS = [0.9, 0.1, 0.5, 0.7]


def data(n=40, d=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, d))
    y = np.sin(2.0 * X[:, 0]) + (0.1 + 0.3 * np.abs(X[:, 0])) * rng.normal(size=n)
    return X, y, rng.integers(1, 4, n).astype(float)


# Where a check asks for a score it sets alpha = 0.01, strong for this loss. The second is rough:
# rows that it interpolates leave the fit undetermined to the 1e-7 of a check.
@with_checks(
    NonCrossingQuantileRegressor(0.5, alpha=1e-3, kernel=Gaussian(3.0)),
    NonCrossingQuantileRegressor([0.4, 0.6], alpha=1e-3, kernel=Matern(8.0, nu=1.5)),
)
def test_scikit_learn(estimator, check):
    if check.func.__name__ == "check_regressors_train" and np.ndim(estimator.levels):
        pytest.skip("asks for one column; the single level passes it")
    check(estimator)


@pytest.mark.parametrize("anchor", [None, 0.1, 0.9])
def test_against_a_semidefinite_program(anchor):
    X, y, weight = data(n=20)
    given = {"alpha": 1e-2, "gap_strength": 0.5, "rank": 8, "gap_rank": 4, "tol": 1e-8}
    model = NonCrossingQuantileRegressor(LEVELS, anchor=anchor, learn=False, **given)
    model.fit(X, y, weight)
    assert model.anchor_ == (0.5 if anchor is None else anchor)
    prepared = model.prepare(X, y, weight)
    targets = np.repeat(prepared.targets, 4, axis=1)
    problem = model._problem(prepared)
    optimum = referee.pinball(problem, targets, np.sort(LEVELS))
    certificate = model.certificate_
    assert certificate.dual <= optimum + 1e-7
    assert certificate.primal >= optimum - 1e-7
    assert certificate.primal - certificate.dual <= 1e-8 * problem.loss.unit


def test_certified_objective_is_that_of_the_predictions():
    """From the definition in the docstring, with nothing but public attributes."""
    X, y, weight = data()
    given = {"alpha": 1e-3, "trace_penalty": 1e-2, "learn": False}
    model = NonCrossingQuantileRegressor(LEVELS, **given).fit(X, y, weight)
    repeated = np.repeat(y, weight.astype(int))
    half = np.sort(repeated)[len(repeated) // 2]
    scale = np.mean(np.abs(repeated - half))  # any median has the same mean distance
    residual = (y[:, None] - model.predict(X)) / scale
    tau = np.array(LEVELS)
    loss = np.maximum(tau * residual, (tau - 1.0) * residual).sum(axis=1)
    objective = np.average(loss, weights=weight)
    objective += 0.5e-3 * np.sum((model.weights_ / scale) ** 2)
    for factor in model.gap_factors_:
        matrix = factor @ factor.T / scale
        objective += 1e-2 * np.trace(matrix) + 0.5e-3 * np.sum(matrix**2)
    objective += 0.5e-4 * np.sum((model.gap_constants_ / scale) ** 2)
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-9)
    assert model.certificate_.relative_gap <= 1e-6


@pytest.mark.parametrize("alpha", [1.0, 1e-3, 1e-7])
def test_never_crosses(alpha):
    """At points far beyond the data too, in any state of convergence, without a tolerance."""
    X, y, _ = data(n=60, d=2)
    given = {"alpha": alpha, "trace_penalty": 0.0, "learn": False, "tol": 1e-2}
    model = NonCrossingQuantileRegressor(LEVELS, **given).fit(X, y)
    points = np.random.default_rng(1).uniform(-8.0, 8.0, (50_000, 2))
    curves = model.predict(points)[:, np.argsort(LEVELS)]
    assert np.all(np.diff(curves, axis=1) >= 0.0)
    np.testing.assert_allclose(np.diff(curves, axis=1), model.predict_gaps(points), atol=1e-12)


def test_distances_do_not_vanish_far_from_the_data():
    X, y, _ = data(n=100)
    model = NonCrossingQuantileRegressor([0.1, 0.5, 0.9], alpha=1e-3, kernel=Gaussian(1.0)).fit(
        X, y
    )
    far, other = model.predict_gaps([[1e3], [-1e3]])
    np.testing.assert_allclose(far, other)
    assert far.sum() > 0.1 * np.std(y)


def test_a_strong_penalty_leaves_the_quantiles_of_a_constant():
    X, y, _ = data(n=200)
    levels = [0.1, 0.3, 0.5, 0.7, 0.9]
    curves = NonCrossingQuantileRegressor(levels, alpha=1e6, learn=False).fit(X, y).predict(X)
    np.testing.assert_allclose(curves, np.tile(curves[0], (200, 1)), atol=1e-4)
    assert np.mean(y[:, None] <= curves, axis=0) == pytest.approx(levels, abs=0.011)


def test_levels_hold_on_the_training_rows():
    X, y, _ = data(n=300)
    model = NonCrossingQuantileRegressor(LEVELS, alpha=1e-3, learn=False).fit(X, y)
    share = np.mean(y[:, None] <= model.predict(X), axis=0)
    np.testing.assert_allclose(share, LEVELS, atol=0.03)


def test_follows_shift_and_scale_of_y():
    X, y, weight = data()
    model = NonCrossingQuantileRegressor(LEVELS, learn=False, tol=1e-9)
    first = model.fit(X, y, weight).predict(X)
    second = model.fit(X, 1e4 * y - 3e4, weight).predict(X)
    np.testing.assert_allclose(second, 1e4 * first - 3e4, rtol=0, atol=1e4 * 1e-3)


def test_weights_are_repetitions_and_zeros_are_absent():
    X, y, weight = data()
    weight[:5] = 0.0
    model = NonCrossingQuantileRegressor(LEVELS, alpha=1e-3, kernel=Gaussian(1.0), tol=1e-9)
    weighted = model.fit(X, y, weight).certificate_.primal
    count = weight.astype(int)
    assert np.all(model.dual_coef_[:5] == 0.0)
    repeated = model.fit(np.repeat(X, count, axis=0), np.repeat(y, count)).certificate_.primal
    assert weighted == pytest.approx(repeated, abs=1e-8)


def test_order_of_levels_interval_and_score():
    X, y, weight = data()
    model = NonCrossingQuantileRegressor([0.1, 0.5, 0.9], learn=False).fit(X, y)
    turned = NonCrossingQuantileRegressor([0.9, 0.1, 0.5], learn=False).fit(X, y)
    np.testing.assert_array_equal(turned.predict(X), model.predict(X)[:, [2, 0, 1]])
    np.testing.assert_array_equal(model.predict_interval(X, 0.8), model.predict(X)[:, [0, 2]])
    expected = [
        d2_pinball_score(y, column, sample_weight=weight, alpha=level)
        for level, column in zip([0.1, 0.5, 0.9], model.predict(X).T, strict=True)
    ]
    # scikit-learn's constant is another quantile within the same flat stretch or a row further
    assert model.score(X, y, weight) == pytest.approx(np.mean(expected), abs=0.01)
    with pytest.raises(ValueError, match=r"coverage=0\.5 needs the levels 0\.25 and 0\.75"):
        model.predict_interval(X, 0.5)
    with pytest.raises(ValueError, match="coverage must be a number in"):
        model.predict_interval(X, 1.0)


def test_a_constant_target():
    X = data()[0]
    model = NonCrossingQuantileRegressor(LEVELS, learn=False).fit(X, np.full(40, 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0, rtol=1e-5)


def test_round_trip(tmp_path):
    X, y, _ = data()
    model = NonCrossingQuantileRegressor(LEVELS, learn=False).fit(X, y)
    same = fenchel.load(fenchel.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(same.predict(X), model.predict(X))


def test_both_linear_systems_of_a_step_are_one(monkeypatch):
    X, y, _ = data()
    settings = {"alpha": 1e-3, "learn": False, "tol": 1e-9}
    few = NonCrossingQuantileRegressor(LEVELS, **settings).fit(X, y)
    monkeypatch.setattr(_kinks.RowGrams, "smaller", lambda *_: False)
    assert solvers.RowGrams is _kinks.RowGrams
    all_ = NonCrossingQuantileRegressor(LEVELS, **settings).fit(X, y)
    np.testing.assert_allclose(few.predict(X), all_.predict(X), atol=1e-3)
    assert few.certificate_.dual == pytest.approx(all_.certificate_.dual, abs=1e-8)


def test_cross_validation_chooses_the_better_strengths():
    X, y, _ = data(n=80)
    grid = {"alpha": [10.0, 1e-3], "gap_strength": [1.0, 0.1], "trace_penalty": [1e-4]}
    quantiles = NonCrossingQuantileRegressor([0.1, 0.5, 0.9], tol=1e-4)
    model = PathSearchCV(quantiles, grid, cv=3).fit(X, y)
    assert model.alpha_ == 1e-3
    assert set(model.best_params_) == {"alpha", "gap_strength", "trace_penalty"}
    assert model.predict_interval(X, 0.8).shape == (80, 2)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"levels": [0.1, 0.1]}, "levels must not repeat a level"),
        ({"levels": [0.1, 1.0]}, "levels must lie strictly between 0 and 1"),
        (
            {"anchor": 0.4},
            r"anchor must be None or one of the levels \[0.25, 0.5, 0.75\], got 0.4",
        ),
        ({"anchor": "median"}, r"anchor must be a number in \(0, 1\) or None, got 'median'"),
        ({"gap_strength": 0.0}, "gap_strength must be a finite number > 0"),
        ({"gap_rank": 0}, "gap_rank must be an integer >= 1"),
        ({"alpha": -1.0}, "alpha must be a finite number > 0"),
        ({"solver": "fista"}, "needs a problem without offsets"),
    ],
)
def test_bad_parameters(settings, sentence):
    X, y, _ = data()
    with pytest.raises((ValueError, TypeError), match=sentence):
        NonCrossingQuantileRegressor(**settings).fit(X, y)


def test_a_barrier_shrinks_only_near_its_centre():
    """Many rows and a small alpha: steps are cut at the border, and gain little there."""
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, (600, 2))
    y = random.poisson(np.exp(X[:, 0]))
    model = NonCrossingQuantileRegressor(
        [0.1, 0.5, 0.9], alpha=1e-6, learn=False, gap_rank=20, max_iter=60
    ).fit(X, y)
    assert model.status_.converged  # it took 92 steps, and now takes 38
