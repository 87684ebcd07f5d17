"""Cross-validation of non-negative models: grid search, shared features, warm starts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import fenchel
from fenchel.kernels import Gaussian
from fenchel.model_selection import (
    DensityEstimatorCV,
    HeteroscedasticRegressorCV,
    NonNegativeRegressorCV,
)
from fenchel.positive import DensityEstimator, HeteroscedasticRegressor, NonNegativeRegressor
from fenchel.positive import solvers as positive_solvers

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (60, 1))
Y = np.maximum(X[:, 0], 0.0) + (0.1 + 0.1 * np.abs(X[:, 0])) * RNG.normal(size=60)
WEIGHT = RNG.uniform(0.5, 2.0, 60)
FOLDS = KFold(4, shuffle=True, random_state=1)
GRID = {"alpha": [1e-2, 1e-4], "trace_penalty": [0.0, 1e-2]}
FAST = {"alphas": [1e-2, 1e-4], "trace_penalties": (1e-4,), "cv": 2}


def log_likelihood(model, rows, y):
    return model.log_likelihood(rows, y)


CASES = {
    "squared": (NonNegativeRegressorCV(), NonNegativeRegressor(), None),
    "poisson": (NonNegativeRegressorCV("poisson"), NonNegativeRegressor("poisson"), None),
    "pinball": (
        NonNegativeRegressorCV("pinball", level=0.8),
        NonNegativeRegressor("pinball", level=0.8),
        None,
    ),
    "heteroscedastic": (
        HeteroscedasticRegressorCV(selection="min"),
        HeteroscedasticRegressor(),
        log_likelihood,
    ),
    "density": (DensityEstimatorCV(), DensityEstimator(), None),
}


def targets(case):
    if case == "density":
        return None
    return np.abs(Y).round(2) if case == "poisson" else Y


@parametrize_with_checks(
    [
        # where a check asks for a score it wants a wide kernel, as without a search
        NonNegativeRegressorCV(kernel=Gaussian(8.0), **FAST),
        HeteroscedasticRegressorCV(**FAST),
        DensityEstimatorCV(**FAST),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("case", CASES)
def test_equals_grid_search(case):
    search, plain, scoring = CASES[case]
    y = targets(case)
    settings = {"tol": 1e-7, "max_iter": 500}
    scales = [0.7, 1.5]
    ours = clone(search).set_params(
        alphas=GRID["alpha"],
        trace_penalties=GRID["trace_penalty"],
        length_scales=scales,
        cv=FOLDS,
        **settings,
    )
    ours.fit(X, y)
    grid = {**GRID, "kernel": [Gaussian(scale) for scale in scales]}
    theirs = GridSearchCV(clone(plain).set_params(**settings), grid, cv=FOLDS, scoring=scoring)
    theirs.fit(X, y)
    expected = {
        (p["kernel"].length_scale, p["trace_penalty"], p["alpha"]): score
        for p, score in zip(
            theirs.cv_results_["params"], theirs.cv_results_["mean_test_score"], strict=True
        )
    }
    for params, score in zip(
        ours.cv_results_["params"], ours.cv_results_["mean_test_score"], strict=True
    ):
        key = params["length_scale"], params["trace_penalty"], params["alpha"]
        assert score == pytest.approx(expected.pop(key), abs=2e-3)
    assert not expected
    assert ours.best_params_["alpha"] == theirs.best_params_["alpha"] == ours.alpha_
    assert ours.best_params_["length_scale"] == theirs.best_params_["kernel"].length_scale
    assert ours.certificate_.relative_gap <= 1e-7


@pytest.mark.parametrize("case", CASES)
def test_paths_are_warm_and_share_features(case, monkeypatch):
    search, _, _ = CASES[case]
    starts = []
    original = positive_solvers.DualNewton.solve
    proximal = positive_solvers.ProximalNewton.solve

    def seen(function):
        def solve(self, problem, warm_start=None, callback=None):
            starts.append((id(problem.psd[0].features), warm_start is not None))
            return function(self, problem, warm_start, callback)

        return solve

    monkeypatch.setattr(positive_solvers.DualNewton, "solve", seen(original))
    monkeypatch.setattr(positive_solvers.ProximalNewton, "solve", seen(proximal))
    model = clone(search).set_params(alphas=[1e-1, 1e-2, 1e-3], trace_penalties=(1e-3,), cv=FOLDS)
    model.fit(X, targets(case))
    *paths, final = starts
    assert [warm for _, warm in paths] == [False, True, True] * 4
    assert final[1] is False
    for fold in range(4):
        assert len({features for features, _ in paths[3 * fold : 3 * fold + 3]}) == 1


def test_weights_enter_fits_and_scores():
    doubled = np.where(np.arange(60) < 30, 2.0, 1.0)
    settings = {"alphas": [1e-2, 1e-4], "cv": FOLDS}
    plain = NonNegativeRegressorCV(**settings).fit(X, Y)
    weighted = NonNegativeRegressorCV(**settings).fit(X, Y, doubled)
    scaled = NonNegativeRegressorCV(**settings).fit(X, Y, 10.0 * doubled)
    np.testing.assert_allclose(
        scaled.cv_results_["mean_test_score"], weighted.cv_results_["mean_test_score"], atol=1e-5
    )
    difference = plain.cv_results_["mean_test_score"] - weighted.cv_results_["mean_test_score"]
    assert np.abs(difference).max() > 1e-3


def test_fitted_searches_predict_as_their_best(tmp_path):
    model = HeteroscedasticRegressorCV(alphas=3, cv=4).fit(X, Y, WEIGHT)
    best = model.best_estimator_
    assert model.cv_results_["param_alpha"][:3].tolist() == pytest.approx([1.0, 1e-4, 1e-8])
    mean, std = model.predict(X, return_std=True)
    assert np.array_equal(mean, best.predict(X))
    assert np.array_equal(model.predict_interval(X, 0.8), best.predict_interval(X, 0.8))
    assert model.log_likelihood(X, Y) == best.log_likelihood(X, Y)
    assert model.score(X, Y) == best.score(X, Y)
    assert np.all(model.model_(X) > 0.0)
    assert std.min() > 0.0
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    assert np.array_equal(same.predict(X), mean)


def test_one_standard_error_takes_a_stronger_penalty():
    alphas = np.geomspace(1e-1, 1e-8, 6)
    best = HeteroscedasticRegressorCV(alphas, selection="min", cv=FOLDS).fit(X, Y)
    safe = HeteroscedasticRegressorCV(alphas, cv=FOLDS).fit(X, Y)
    assert safe.alpha_ >= best.alpha_
    assert safe.best_score_ <= best.best_score_


def test_density_search(tmp_path):
    model = DensityEstimatorCV([1e-2, 1e-4], length_scales=[0.01, 1.0], cv=4).fit(X)
    assert model.best_params_["length_scale"] == 1.0
    assert model.integral() == pytest.approx(1.0, abs=1e-8)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    assert model.sample(5, random_state=0).shape == (5, 1)
    assert model.model_.rank_ == model.best_estimator_.rank_
    assert not hasattr(model, "predict")
    assert model.__sklearn_tags__().estimator_type == "density_estimator"
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    assert np.array_equal(same.score_samples(X), model.score_samples(X))
    with pytest.raises(NotFittedError):
        DensityEstimatorCV().score_samples(X)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NonNegativeRegressorCV(alphas=0), "alphas must be a number of strengths >= 1"),
        (HeteroscedasticRegressorCV(alphas=[1.0, 0.0]), "alphas must be positive numbers"),
        (NonNegativeRegressorCV(selection="max"), "selection must be one of"),
        (NonNegativeRegressorCV("log"), "loss must be one of"),
        (DensityEstimatorCV(trace_penalties=(-1.0,)), "trace_penalty must be a finite number"),
        (HeteroscedasticRegressorCV(max_std=-1.0), "max_std must be a number > 0"),
    ],
)
def test_bad_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, None if isinstance(model, DensityEstimatorCV) else Y)
