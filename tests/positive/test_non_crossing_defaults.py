"""The default of quantiles that never cross, judged on new rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import NonCrossingQuantileRegressor, QuantileRegressor
from fenchel.inspection import has_moved_offsets
from fenchel.learning import Learning
from fenchel.positive.non_crossing import LEARNED_GAP_FEATURES, MOST_GAP_FEATURES

LEVELS = [0.1, 0.5, 0.9]
BRIEFLY = Learning(max_evaluations=3)


def sample(n, seed):
    """A mean of the first of five columns, and a spread of the second."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1.0, 1.0, (n, 5))
    noise = (0.2 + 0.15 * (X[:, 1] > 0.0)) * random.normal(size=n)
    return X, np.sin(4.0 * X[:, 0]) + noise


def loss(y, curves):
    residual, tau = y[:, None] - curves, np.array(LEVELS)
    return np.maximum(tau * residual, (tau - 1.0) * residual).sum(axis=1).mean()


@pytest.fixture(scope="module")
def fitted():
    return NonCrossingQuantileRegressor(LEVELS).fit(*sample(150, 0))


@pytest.mark.slow
def test_new_rows_are_as_near_as_to_curves_that_may_cross(fitted):
    X, y = sample(4000, 1)
    free = QuantileRegressor(LEVELS).fit(*sample(150, 0))
    rule = NonCrossingQuantileRegressor(LEVELS, learn=False).fit(*sample(150, 0))
    assert loss(y, fitted.predict(X)) < 1.03 * loss(y, free.predict(X))
    assert loss(y, fitted.predict(X)) < 0.8 * loss(y, rule.predict(X))
    low, high = fitted.predict_interval(X, 0.8).T
    assert 0.75 < np.mean((low <= y) & (y <= high)) < 0.88
    far = np.random.default_rng(2).uniform(-40.0, 40.0, (50_000, 5))
    far[:25_000] /= 40.0
    assert np.all(np.diff(fitted.predict(far), axis=1) >= 0.0)
    assert fitted.certificate_.relative_gap <= 1e-6
    assert has_moved_offsets(fitted)


@pytest.mark.slow
def test_the_distances_of_a_learned_kernel_have_few_features(fitted):
    copy = fitted.with_learned()
    assert copy.gap_rank == LEARNED_GAP_FEATURES
    assert {len(factor) for factor in fitted.gap_factors_} == {LEARNED_GAP_FEATURES + 1}
    rule = fitted.with_parameters(learn=False).fit(*sample(150, 0))
    assert {len(factor) for factor in rule.gap_factors_} == {MOST_GAP_FEATURES + 1}
    assert rule.with_learned().gap_rank == MOST_GAP_FEATURES
    given = NonCrossingQuantileRegressor(LEVELS, gap_rank=5, learn=BRIEFLY, tol=1e-3)
    assert {len(factor) for factor in given.fit(*sample(60, 0)).gap_factors_} == {6}


@pytest.mark.slow
def test_order_units_and_weights(fitted):
    X, y = sample(150, 0)
    new, spread = sample(500, 3)[0], y.std()
    known, random = fitted.predict(new), np.random.default_rng(4)
    order = random.permutation(150)
    moved = clone(fitted).fit(1e3 * X[order], 1e4 * y[order] - 3e5).predict(1e3 * new)
    np.testing.assert_allclose(moved, 1e4 * known - 3e5, atol=1e4 * 1e-6 * spread)
    given = {"learn": BRIEFLY, "refit_offsets": None, "tol": 1e-8}  # folds have a gap of 1e-3
    model = NonCrossingQuantileRegressor(LEVELS, **given)
    counts = random.integers(1, 4, 80)
    times = np.repeat(np.arange(80), counts)
    weighted = model.fit(X[:80], y[:80], counts).predict(new)
    repeated = model.fit(X[times], y[times]).predict(new)
    np.testing.assert_allclose(repeated, weighted, atol=1e-3 * spread)


@pytest.mark.slow
def test_pipelines_pickles_and_warm_starts(fitted):
    X, y = sample(150, 0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    brief = NonCrossingQuantileRegressor(LEVELS, learn=BRIEFLY, warm_start=True)
    first = brief.fit(X[:80], y[:80]).n_iter_
    alone = brief.predict(X)
    assert brief.fit(X[:80], y[:80]).n_iter_ < first
    np.testing.assert_allclose(brief.predict(X), alone, atol=1e-3 * y.std())
    piped = make_pipeline(StandardScaler(), clone(brief)).fit(X[:80], y[:80])
    np.testing.assert_allclose(piped.predict(X), alone, atol=1e-3 * y.std())


@pytest.mark.slow
def test_the_solver_of_many_rows_ends_at_the_same_optimum():
    X, y = sample(220, 0)
    given = {"alpha": 1e-3, "kernel": "linear", "refit_offsets": None, "tol": 1e-7}
    made = {
        name: NonCrossingQuantileRegressor(LEVELS, solver=name, **given).fit(X, y)
        for name in ("auto", "proximal_newton", "newton")
    }
    duals = {name: model.dual_coef_ for name, model in made.items()}
    np.testing.assert_array_equal(duals["auto"], duals["proximal_newton"])
    assert np.any(duals["auto"] != duals["newton"])
    ends = [model.certificate_ for model in made.values()]
    assert max(end.dual for end in ends) <= min(end.primal for end in ends) + 1e-12
    for changed, rows in (({}, slice(199)), ({"alpha": 5e-5}, slice(220))):  # few, and weak
        pair = [
            NonCrossingQuantileRegressor(LEVELS, solver=name, **{**given, **changed})
            for name in ("auto", "proximal_newton")
        ]
        barrier, prox = (model.fit(X[rows], y[rows]).dual_coef_ for model in pair)
        assert np.any(barrier != prox)
