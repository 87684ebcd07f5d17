"""scikit-learn's metadata routing: weights and grids reach the estimators."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ecosystem.registry import CASES, CURVES, FOLD, NEW, THETA, N, X, Y, answers
from fenchel import KernelRidge
from fenchel.functional import FunctionalRegressor
from fenchel.model_selection import ConformalRegressor
from fenchel.online import OnlineRidge

pytestmark = pytest.mark.filterwarnings("ignore:the feature map of rank")  # small on purpose
WEIGHTED = [case for case in CASES if case.takes_weights]
WEIGHT = np.random.default_rng(3).uniform(0.5, 2.0, N)
WEIGHT[[1, 2, 3, 8, 15, 22, 31]] = 0.0
KEPT = WEIGHT > 0.0
# What is found by iterations to a tolerance, and what is compared where they stop.
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def wants(case):
    """An estimator that asks for weights in fitting and in scoring, and for grids of points."""
    asked = dict.fromkeys(["sample_weight", *case.extra], True)
    return case.fresh().set_fit_request(**asked).set_score_request(**asked)


def scaled(model):
    """Behind a scaler that does not look at weights but at fixed numbers."""
    scaler = StandardScaler(with_mean=False, with_std=False)
    return make_pipeline(scaler.set_fit_request(sample_weight=False), model)


def first_answer(model):
    return model.predict(NEW) if hasattr(model, "predict") else model.score_samples(NEW)


def test_who_takes_weights():
    """All but the online learners, where a weight is a longer step and not a repeated row."""
    without = {case.name for case in CASES if not case.takes_weights}
    assert without == {
        name for name in (c.name for c in CASES) if "Online" in name or name == "WidrowHoff"
    }


@pytest.mark.parametrize("case", WEIGHTED, ids=[case.name for case in WEIGHTED])
def test_pipeline(case):
    """Weights reach the last step, and a weight of zero is as good as no row."""
    pipeline = scaled(wants(case))
    pipeline.fit(X, case.y, sample_weight=WEIGHT, **case.extra)
    removed = case.fitted(KEPT, sample_weight=WEIGHT[KEPT])
    unweighted = case.fitted()
    found, same, other = (first_answer(model) for model in (pipeline, removed, unweighted))
    np.testing.assert_allclose(found, same, **CLOSE)
    assert np.abs(found - other).max() > 1e-3


@pytest.mark.parametrize("case", WEIGHTED, ids=[case.name for case in WEIGHTED])
def test_a_weight_that_nobody_asked_for_is_refused(case):
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        scaled(case.fresh()).fit(X, case.y, sample_weight=WEIGHT)


SEARCHED = [case for case in WEIGHTED if "alpha" in case.estimator.get_params(deep=False)]


@pytest.mark.slow
@pytest.mark.parametrize("case", SEARCHED, ids=[case.name for case in SEARCHED])
def test_grid_search(case):
    """Weights are cut to the folds, for fits and for scores."""
    grid = {"alpha": [1e-1, 1e-2]}

    def search(rows, weight):
        model = wants(case)
        cv = PredefinedSplit(FOLD[rows])
        y = None if case.y is None else case.y[rows]
        return GridSearchCV(model, grid, cv=cv).fit(X[rows], y, sample_weight=weight, **case.extra)

    found = search(slice(None), WEIGHT)
    removed = search(KEPT, WEIGHT[KEPT])
    for k in range(3):
        name = f"split{k}_test_score"
        np.testing.assert_allclose(found.cv_results_[name], removed.cv_results_[name], **CLOSE)
    assert found.best_params_ == removed.best_params_
    one, other = answers(found.best_estimator_)[0], answers(removed.best_estimator_)[0]
    np.testing.assert_allclose(one, other, **CLOSE)
    plain = search(slice(None), np.ones(N)).cv_results_["mean_test_score"]
    assert np.abs(plain - found.cv_results_["mean_test_score"]).max() > 1e-3


@pytest.mark.parametrize("case", SEARCHED, ids=[case.name for case in SEARCHED])
def test_cross_validate(case):
    result = cross_validate(
        wants(case),
        X,
        case.y,
        params={"sample_weight": WEIGHT, **case.extra},
        cv=PredefinedSplit(FOLD),
    )
    for k, score in enumerate(result["test_score"]):
        train, test = k != FOLD, k == FOLD
        model = case.fitted(train, sample_weight=WEIGHT[train])
        y = None if case.y is None else case.y[test]
        expected = model.score(X[test], y, sample_weight=WEIGHT[test])
        assert score == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_a_grid_of_points_reaches_curves():
    model = FunctionalRegressor(learn=False).set_fit_request(theta=True)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, CURVES, theta=THETA)
    np.testing.assert_array_equal(pipeline[-1].grid_, THETA)
    with pytest.raises(UnsetMetadataPassedError, match="theta"):
        make_pipeline(StandardScaler(), FunctionalRegressor()).fit(X, CURVES, theta=THETA)
    model.set_score_request(theta=True)
    search = GridSearchCV(model, {"alpha": [1e-1, 1e-3]}, cv=3).fit(X, CURVES, theta=THETA)
    np.testing.assert_array_equal(search.best_estimator_.grid_, THETA)


def test_weights_of_steps():
    """Online learners take weights in partial_fit alone."""
    learner = OnlineRidge().set_partial_fit_request(sample_weight=True)
    routed = learner.get_metadata_routing()
    assert routed.partial_fit.requests == {"sample_weight": True}
    assert not hasattr(learner, "set_fit_request")


@pytest.mark.slow
def test_conformal_around_a_pipeline():
    """The weights of a wrapper reach the last step of what it wraps."""
    ridge = KernelRidge(1e-2).set_fit_request(sample_weight=True)
    wrapper = ConformalRegressor(scaled(ridge), method="cv+", cv=PredefinedSplit(FOLD))
    plain = ConformalRegressor(KernelRidge(1e-2), method="cv+", cv=PredefinedSplit(FOLD))
    found = wrapper.fit(X, Y, sample_weight=WEIGHT)
    expected = plain.fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(found.conformity_scores_, expected.conformity_scores_)
    weight = np.full(len(NEW), 0.5)
    np.testing.assert_array_equal(
        found.predict_interval(NEW, 0.8, sample_weight=weight),
        expected.predict_interval(NEW, 0.8, sample_weight=weight),
    )
