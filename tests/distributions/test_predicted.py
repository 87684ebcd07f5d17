"""Distributions that fits predict."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import (
    DensityEstimator,
    ExpectileRegressor,
    HeteroscedasticRegressor,
    NonCrossingQuantileRegressor,
    QuantileRegressor,
)
from fenchel.datasets import load_mcycle
from fenchel.inspection import final_estimator, rows_for_final
from fenchel.model_selection import PathSearchCV

X, Y = load_mcycle(return_X_y=True)
SETTINGS = {"learn": False}


def truth(n, seed):
    random = np.random.default_rng(seed)
    rows = random.uniform(-2.0, 2.0, size=(n, 1))
    return rows, np.sin(2.0 * rows[:, 0]) + 0.5 * random.normal(size=n)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        QuantileRegressor(np.arange(1, 20) / 20, **SETTINGS),
        ExpectileRegressor(np.arange(1, 20) / 20, level_gamma=0.0, **SETTINGS),
        NonCrossingQuantileRegressor(np.arange(1, 10) / 10),
        HeteroscedasticRegressor(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_distributions_are_near_the_true_ones(model):
    rows, targets = truth(600, 0)
    new, held_out = truth(4000, 1)
    predicted = model.fit(rows, targets).predict_distribution(new)
    best = stats.norm(np.sin(2.0 * new[:, 0]), 0.5)
    # the CRPS of the truth is 0.5 / sqrt(pi) on average
    assert predicted.crps(held_out).mean() < 1.05 * 0.5 / np.sqrt(np.pi)
    assert predicted.log_prob(held_out).mean() > best.logpdf(held_out).mean() - 0.08
    for coverage in (0.5, 0.8, 0.95):
        low, high = predicted.interval(coverage).T
        assert np.mean((low <= held_out) & (held_out <= high)) == pytest.approx(coverage, abs=0.05)


def test_quantiles_of_the_fit_come_back():
    model = QuantileRegressor([0.9, 0.1, 0.5], **SETTINGS).fit(X, Y)
    predicted = model.predict_distribution(X)
    assert predicted.ppf([0.9, 0.1, 0.5])[~predicted.rearranged] == pytest.approx(
        model.predict(X)[~predicted.rearranged]
    )
    assert "20 % of the probability in the tails" in repr(predicted)


def test_non_crossing_curves_are_not_rearranged():
    model = NonCrossingQuantileRegressor([0.1, 0.5, 0.9], learn=False).fit(X, Y)
    assert not model.predict_distribution(np.linspace(-99.0, 99.0, 50)[:, None]).rearranged.any()


def test_too_few_levels_and_a_tube_are_refused():
    with pytest.raises(ValueError, match="levels must be at least two"):
        QuantileRegressor(**SETTINGS).fit(X, Y).predict_distribution(X)
    with pytest.raises(ValueError, match="levels must be at least two"):
        NonCrossingQuantileRegressor(0.5, learn=False).fit(X, Y).predict_distribution(X)
    with pytest.raises(ValueError, match=r"levels must hold 0\.5, the mean"):
        ExpectileRegressor([0.1, 0.9], **SETTINGS).fit(X, Y).predict_distribution(X)
    tube = QuantileRegressor([0.1, 0.9], epsilon=5.0, **SETTINGS).fit(X, Y)
    with pytest.raises(ValueError, match="epsilon must be 0 for distributions"):
        tube.predict_distribution(X)


@pytest.mark.slow
def test_heteroscedastic_distributions_are_what_the_fit_says():
    model = HeteroscedasticRegressor().fit(X, Y)
    predicted = model.predict_distribution(X)
    mean, std = model.predict(X, return_std=True)
    assert np.array_equal(predicted.mean(), mean)
    assert np.array_equal(predicted.std(), std)
    assert predicted.interval(0.95) == pytest.approx(model.predict_interval(X))
    assert predicted.log_prob(Y).mean() == pytest.approx(model.log_likelihood(X, Y))


@pytest.mark.slow
@pytest.mark.parametrize("column", [-1, 0])
def test_conditional_densities_are_quotients(column):
    rows = np.column_stack([X[:, 0], Y])
    model = DensityEstimator().fit(rows)
    given = np.delete(rows, column, axis=1)
    predicted = model.predict_distribution(given, column)
    kept = 0 if column == -1 else 1
    marginal = model.model_.marginal([kept])(given)
    wanted = model.score_samples(rows) - np.log(marginal)
    assert predicted.log_prob(rows[:, column]) == pytest.approx(wanted, abs=1e-3)
    assert predicted.crps(rows[:, column]).mean() < 0.3 * rows[:, column].std() * 2.0


@pytest.mark.slow
def test_conditional_densities_refuse_what_they_cannot_say():
    model = DensityEstimator().fit(np.column_stack([X[:, 0], Y]))
    with pytest.raises(ValueError, match="row 1 does not"):
        model.predict_distribution([[20.0], [1e200]])
    with pytest.raises(ValueError, match="X must have the 1 other columns"):
        model.predict_distribution(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="column must be"):
        model.predict_distribution(X, column=2)
    with pytest.raises(ValueError, match="single"):
        DensityEstimator().fit(X).predict_distribution(X)


def test_within_searches_and_pipelines():
    search = PathSearchCV(QuantileRegressor([0.1, 0.5, 0.9]), {"alpha": [1e-2, 1e-3]}, cv=3)
    assert len(search.fit(X, Y).predict_distribution(X)) == len(X)
    pipeline = make_pipeline(StandardScaler(), QuantileRegressor([0.1, 0.9], **SETTINGS))
    pipeline.fit(X, Y)
    last = final_estimator(pipeline).predict_distribution(rows_for_final(pipeline, X))
    assert last.ppf([0.1, 0.9]) == pytest.approx(np.sort(pipeline.predict(X), axis=1))


@pytest.mark.slow
def test_default_coverage_is_that_of_the_outermost_pair():
    for kind in (QuantileRegressor, NonCrossingQuantileRegressor):
        model = kind([0.05, 0.1, 0.5, 0.9]).fit(X, Y)
        assert np.array_equal(model.predict_interval(X), model.predict_interval(X, 0.8))
    alone = QuantileRegressor(0.5, **SETTINGS).fit(X, Y)
    with pytest.raises(ValueError, match="levels must hold a pair around the median"):
        alone.predict_interval(X)
