"""Cross-validation of non-negative models: grid search, shared features, warm starts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold

import fenchel
from contract_cases import with_checks
from fenchel.kernels import Gaussian
from fenchel.model_selection import PathSearchCV
from fenchel.positive import (
    ConeRegressor,
    DensityEstimator,
    HeteroscedasticRegressor,
    NonCrossingQuantileRegressor,
    NonNegativeRegressor,
    _barrier,
)
from fenchel.positive import problem as positive_problem
from fenchel.positive import solvers as positive_solvers

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (60, 1))
Y = np.maximum(X[:, 0], 0.0) + (0.1 + 0.1 * np.abs(X[:, 0])) * RNG.normal(size=60)
WEIGHT = RNG.uniform(0.5, 2.0, 60)
FOLDS = KFold(4, shuffle=True, random_state=1)
GRID = {"alpha": [1e-2, 1e-4], "trace_penalty": [0.0, 1e-2]}
FAST = {"param_grid": {"alpha": [1e-2, 1e-4]}, "cv": 2}


def log_likelihood(model, rows, y):
    return model.log_likelihood(rows, y)


CASES = {
    "squared": (NonNegativeRegressor(), None),
    "poisson": (NonNegativeRegressor("poisson"), None),
    "pinball": (NonNegativeRegressor("pinball", level=0.8), None),
    "heteroscedastic": (HeteroscedasticRegressor(), log_likelihood),
    "density": (DensityEstimator(), None),
}


def targets(case):
    if case == "density":
        return None
    return np.abs(Y).round(2) if case == "poisson" else Y


@with_checks(
    # where a check asks for a score it wants a wide kernel, as without a search
    PathSearchCV(NonNegativeRegressor(kernel=Gaussian(8.0)), **FAST),
    PathSearchCV(HeteroscedasticRegressor(), **FAST),
    PathSearchCV(DensityEstimator(trace_penalty=1e-4), **FAST),
    slow_others=True,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_equals_grid_search(case):
    plain, scoring = CASES[case]
    y = targets(case)
    tol = 1e-7 if case == "density" else 1e-6
    plain = clone(plain).set_params(tol=tol, max_iter=500)
    scales = [0.7, 1.5]
    grid = {**GRID, "length_scale": scales}
    ours = PathSearchCV(plain, grid, cv=FOLDS, selection="min").fit(X, y)
    grid = {**GRID, "kernel": [Gaussian(scale) for scale in scales]}
    theirs = GridSearchCV(plain, grid, cv=FOLDS, scoring=scoring)
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
    assert ours.certificate_.relative_gap <= tol


@pytest.mark.parametrize("case", CASES)
def test_paths_are_warm_and_share_features(case, monkeypatch):
    plain, _ = CASES[case]
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
    grid = {"alpha": [1e-1, 1e-2, 1e-3], "trace_penalty": [1e-3]}
    PathSearchCV(plain, grid, cv=FOLDS).fit(X, targets(case))
    *paths, final = starts
    assert [warm for _, warm in paths] == [False, True, True] * 4
    assert final[1] is False
    for fold in range(4):
        assert len({features for features, _ in paths[3 * fold : 3 * fold + 3]}) == 1


def test_a_fold_compresses_features_once_and_hands_multipliers_on(monkeypatch):
    made, begun = [], []
    original, start_of = positive_problem._compressed, _barrier.start_of

    def compressed(features):
        made.append(len(features))
        return original(features)

    def begin(problem, start, *rest):
        begun.append(None if start is None else start.multipliers[0])
        return start_of(problem, start, *rest)

    monkeypatch.setattr(positive_problem, "_compressed", compressed)
    monkeypatch.setattr(_barrier, "start_of", begin)
    grid = {"alpha": [1e-1, 1e-2, 1e-3], "trace_penalty": [0.0, 1e-3]}
    PathSearchCV(DensityEstimator(), grid, cv=FOLDS, refit=False).fit(X)
    assert made == [45] * 4
    warm = [multiplier for multiplier in begun if multiplier is not None]
    assert len(warm) == 2 * 2 * 4  # two fits, two paths, four folds
    assert all(multiplier != 0.0 for multiplier in warm)


def test_densities_compare_candidates_roughly_unless_told():
    tolerances = []

    class Seen(DensityEstimator):
        def _fit_prepared(self, prepared, start, watch):
            tolerances.append(self.tol)
            return super()._fit_prepared(prepared, start, watch)

    for tol in (1e-6, 1e-5):
        PathSearchCV(Seen(tol=tol), {"alpha": [1e-2]}, cv=2).fit(X)
    assert tolerances == [1e-4, 1e-4, 1e-6, 1e-5, 1e-5, 1e-5]


@pytest.mark.slow
def test_weights_enter_fits_and_scores():
    doubled = np.where(np.arange(60) < 30, 2.0, 1.0)
    grid = {"alpha": [1e-2, 1e-4], "trace_penalty": [0.0, 1e-4]}
    search = PathSearchCV(NonNegativeRegressor(), grid, cv=FOLDS)
    plain = clone(search).fit(X, Y)
    weighted = clone(search).fit(X, Y, sample_weight=doubled)
    scaled = clone(search).fit(X, Y, sample_weight=10.0 * doubled)
    np.testing.assert_allclose(
        scaled.cv_results_["mean_test_score"], weighted.cv_results_["mean_test_score"], atol=1e-5
    )
    difference = plain.cv_results_["mean_test_score"] - weighted.cv_results_["mean_test_score"]
    assert np.abs(difference).max() > 1e-3


def test_fitted_searches_predict_as_their_best(tmp_path):
    grid = {"alpha": 3, "trace_penalty": [0.0, 1e-4]}
    model = PathSearchCV(HeteroscedasticRegressor(), grid, cv=4)
    model.fit(X, Y, sample_weight=WEIGHT)
    best = model.best_estimator_
    assert model.cv_results_["param_alpha"][:3].tolist() == pytest.approx([1.0, 1e-4, 1e-8])
    mean, std = model.predict(X, return_std=True)
    assert np.array_equal(mean, best.predict(X))
    assert np.array_equal(model.predict_interval(X, 0.8), best.predict_interval(X, 0.8))
    assert model.log_likelihood(X, Y) == best.log_likelihood(X, Y)
    assert model.score(X, Y) == best.score(X, Y)
    assert np.array_equal(model.predict_quantiles(X, 0.3), best.predict_quantiles(X, 0.3))
    assert np.all(best.precision_model_(X) > 0.0)
    assert std.min() > 0.0
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    assert np.array_equal(same.predict(X), mean)


@pytest.mark.slow
def test_one_standard_error_takes_a_stronger_penalty():
    alphas = np.geomspace(1e-1, 1e-8, 6)
    grid = {"alpha": alphas, "trace_penalty": [0.0, 1e-4]}
    best = PathSearchCV(HeteroscedasticRegressor(), grid, selection="min", cv=FOLDS).fit(X, Y)
    safe = PathSearchCV(HeteroscedasticRegressor(), grid, cv=FOLDS).fit(X, Y)
    named = clone(safe).set_params(selection="one_standard_error").fit(X, Y)
    assert safe.best_params_ == named.best_params_
    assert safe.alpha_ >= best.alpha_
    assert safe.best_score_ <= best.best_score_


@pytest.mark.slow
def test_density_search(tmp_path):
    grid = {"alpha": [1e-2, 1e-4], "trace_penalty": [0.0, 1e-4], "length_scale": [0.01, 1.0]}
    model = PathSearchCV(DensityEstimator(), grid, cv=4).fit(X)
    assert model.best_params_["length_scale"] == 1.0
    assert model.integral() == pytest.approx(1.0, abs=1e-8)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    assert model.sample(5, random_state=0).shape == (5, 1)
    assert not hasattr(model, "predict")
    assert model.__sklearn_tags__().estimator_type == "density_estimator"
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    assert np.array_equal(same.score_samples(X), model.score_samples(X))
    with pytest.raises(NotFittedError):
        PathSearchCV(DensityEstimator()).score_samples(X)


@pytest.mark.parametrize(
    ("plain", "grid"),
    [
        (NonNegativeRegressor(), {"alpha": 9, "trace_penalty": [0.0, 1e-4]}),
        (HeteroscedasticRegressor(), {"alpha": 9, "trace_penalty": [0.0, 1e-4]}),
        (DensityEstimator(), {"alpha": 9, "trace_penalty": [0.0, 1e-4]}),
        (NonCrossingQuantileRegressor(), {"alpha": 9, "gap_strength": [1.0, 0.01]}),
        (ConeRegressor(learn=False), {"alpha": 9}),
    ],
)
def test_default_grids(plain, grid):
    assert plain.default_grid() == grid
    prepared = plain.prepare(X[:20], None if isinstance(plain, DensityEstimator) else Y[:20])
    np.testing.assert_allclose(plain.path_grid(prepared, "alpha", 9), np.logspace(0, -8, 9))


@pytest.mark.slow
def test_cones_are_searched():
    both = np.column_stack([np.abs(Y), 1.0 + np.abs(Y)])
    grid = {"alpha": [1e-1, 1e-3], "cone": ["non_negative", "monotone"]}
    search = PathSearchCV(ConeRegressor(rank=8, learn=False), grid, cv=FOLDS).fit(X, both)
    theirs = GridSearchCV(ConeRegressor(rank=8, learn=False), grid, cv=FOLDS).fit(X, both)
    assert search.best_score_ == pytest.approx(theirs.best_score_, abs=1e-3)
    assert search.best_params_ == theirs.best_params_


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PathSearchCV(NonNegativeRegressor(), {"alpha": 0}), "must be a number of values >= 1"),
        (
            PathSearchCV(HeteroscedasticRegressor(), {"alpha": [1.0, 0.0]}),
            "alpha must be a finite number > 0",
        ),
        (PathSearchCV(NonNegativeRegressor(), selection="max"), "selection must be one of"),
        (PathSearchCV(NonNegativeRegressor("log")), "loss must be one of"),
        (
            PathSearchCV(DensityEstimator(), {"trace_penalty": [0.0, -1.0]}),
            "trace_penalty must be a finite number",
        ),
        (PathSearchCV(HeteroscedasticRegressor(max_std=-1.0)), "max_std must be a number > 0"),
    ],
)
def test_bad_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, None if isinstance(model.estimator, DensityEstimator) else Y)
