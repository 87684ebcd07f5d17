"""Warm-started cross-validation is cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.datasets import make_heavy_tails, make_sine_quantiles
from fenchel.kernels import Gaussian, Laplacian
from fenchel.model_selection import (
    SVRCV,
    ExpectileRegressorCV,
    KernelRidgeCV,
    QuantileRegressorCV,
)

ALPHAS = [1e-1, 1e-3, 1e-5]
X, y, _ = make_sine_quantiles(90, random_state=0)
PAIRS = [
    (
        QuantileRegressorCV([0.2, 0.8], alphas=ALPHAS, level_gammas=[0.1, 10], epsilons=[0, 0.3]),
        QuantileRegressor([0.2, 0.8]),
        {"level_gamma": [0.1, 10], "epsilon": [0, 0.3]},
    ),
    (
        ExpectileRegressorCV([0.2, 0.8], alphas=ALPHAS),
        ExpectileRegressor([0.2, 0.8]),
        {"level_gamma": [1.0], "epsilon": [0.0]},
    ),
    (SVRCV(alphas=ALPHAS, epsilons=[0.1, 0.5]), SVR(), {"epsilon": [0.1, 0.5]}),
    (KernelRidgeCV(ALPHAS), KernelRidge(), {}),
]
IDS = [type(pair[0]).__name__ for pair in PAIRS]
FAST = {"alphas": 3, "cv": 2}


@parametrize_with_checks(
    [
        QuantileRegressorCV(**FAST),
        ExpectileRegressorCV(**FAST),
        SVRCV(**FAST),
        KernelRidgeCV(**FAST),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("search", "plain", "grid"), PAIRS, ids=IDS)
def test_equals_grid_search(search, plain, grid):
    folds = KFold(4, shuffle=True, random_state=1)
    ours = search.set_params(cv=folds).fit(X, y)
    theirs = GridSearchCV(plain, {**grid, "alpha": ALPHAS}, cv=folds).fit(X, y)
    expected = {
        tuple(sorted(p.items())): s
        for p, s in zip(
            theirs.cv_results_["params"], theirs.cv_results_["mean_test_score"], strict=True
        )
    }
    for params, score in zip(
        ours.cv_results_["params"], ours.cv_results_["mean_test_score"], strict=True
    ):
        assert score == pytest.approx(expected[tuple(sorted(params.items()))], abs=2e-3)
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=2e-3)
    refit = plain.set_params(**ours.best_params_).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), refit.predict(X))
    assert ours.cv_results_["rank_test_score"][ours.best_index_] == 1


def test_tight_tolerance_gives_the_same_scores_to_many_digits():
    search = QuantileRegressorCV(0.3, alphas=ALPHAS, cv=3, tol=1e-10).fit(X, y)
    plain = GridSearchCV(QuantileRegressor(0.3, tol=1e-10), {"alpha": ALPHAS}, cv=3).fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"],
        plain.cv_results_["mean_test_score"][np.argsort(ALPHAS)[::-1]],
        atol=1e-4,
    )


def test_length_scales():
    scales = [0.1, "median", 3.0]
    search = KernelRidgeCV(ALPHAS, kernel=Gaussian(), length_scales=scales, cv=3).fit(X, y)
    kernels = [Gaussian(scale) for scale in scales]
    plain = GridSearchCV(KernelRidge(), {"kernel": kernels, "alpha": ALPHAS}, cv=3).fit(X, y)
    assert search.best_score_ == pytest.approx(plain.best_score_, abs=1e-10)
    assert search.best_estimator_.kernel.length_scale == search.best_params_["length_scale"]
    with pytest.raises(ValueError, match="length_scales are for kernels that have one"):
        KernelRidgeCV(kernel="linear", length_scales=[1.0]).fit(X, y)


def test_one_standard_error_prefers_strength():
    best = KernelRidgeCV(30, cv=5).fit(X, y)
    simple = KernelRidgeCV(30, cv=5, selection="one_standard_error").fit(X, y)
    assert simple.alpha_ > best.alpha_
    results, index = best.cv_results_, best.best_index_
    folds = np.array([results[f"split{k}_test_score"][index] for k in range(5)])
    floor = results["mean_test_score"][index] - folds.std(ddof=1) / np.sqrt(5)
    allowed = [
        p["alpha"]
        for p, score in zip(results["params"], results["mean_test_score"], strict=True)
        if score >= floor
    ]
    assert simple.alpha_ == max(allowed)


def test_default_alphas_follow_the_units():
    """A grid for c * y: divided by c for losses of degree one, the same for squares."""
    for search, factor in ((QuantileRegressorCV(alphas=5), 1e-3), (KernelRidgeCV(5), 1.0)):
        first = np.array([p["alpha"] for p in search.fit(X, y).cv_results_["params"]])
        scaled = search.fit(X, 1e3 * y).cv_results_["params"]
        np.testing.assert_allclose([p["alpha"] for p in scaled], factor * first, rtol=1e-6)
        assert np.all(np.diff(first) < 0)


def test_weights_count_in_fit_and_score():
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    kept = np.flatnonzero(weight)
    folds = [(np.arange(45), np.arange(45, 90)), (np.arange(45, 90), np.arange(45))]
    inner = [
        (np.searchsorted(kept, a[weight[a] > 0]), np.searchsorted(kept, b[weight[b] > 0]))
        for a, b in folds
    ]
    weighted = KernelRidgeCV(ALPHAS, cv=folds).fit(X, y, weight)
    removed = KernelRidgeCV(ALPHAS, cv=inner).fit(X[kept], y[kept])
    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"], removed.cv_results_["mean_test_score"]
    )


def test_parallel_is_the_same():
    rough, target = make_heavy_tails(80, random_state=0)
    one = QuantileRegressorCV([0.1, 0.9], alphas=4, cv=3).fit(rough, target)
    two = QuantileRegressorCV([0.1, 0.9], alphas=4, cv=3, n_jobs=2).fit(rough, target)
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


def test_intervals_and_crossing_are_those_of_the_best():
    model = QuantileRegressorCV([0.1, 0.9], alphas=3, kernel=Laplacian()).fit(X, y)
    best = model.best_estimator_
    np.testing.assert_array_equal(model.predict_interval(X, 0.8), best.predict_interval(X, 0.8))
    assert model.crossing_loss(X) == best.crossing_loss(X)
    assert model.certificate_.relative_gap <= 1e-6


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"alphas": 0}, "alphas must be a number of strengths"),
        ({"alphas": [1.0, -1.0]}, "alphas must be positive numbers"),
        ({"alphas": []}, "alphas must be positive numbers"),
        ({"selection": "max"}, "selection must be one of"),
        ({"epsilons": [-1.0]}, "epsilon must be"),
        ({"levels": [0.5, 0.5]}, "levels must not repeat"),
    ],
)
def test_bad_input(bad, message):
    with pytest.raises(ValueError, match=message):
        QuantileRegressorCV(**bad).fit(X, y)


def test_callbacks_see_every_path_and_the_final_fit():
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")
    seen = []

    class Recorder:
        def setup(self, estimator, context):
            seen.append(("setup", context.max_subtasks))

        def on_fit_task_begin(self, estimator, context):
            seen.append(("begin", context.task_name))

        def on_fit_task_end(self, estimator, context):
            seen.append(("end", context.task_name))

        def teardown(self, estimator, context):
            seen.append(("teardown", None))

    assert isinstance(Recorder(), callback.FitCallback)
    X, y, _ = make_sine_quantiles(40, random_state=0)
    search = QuantileRegressorCV(0.5, alphas=[1e-2, 1e-3], cv=3).set_callbacks(Recorder())
    search.fit(X, y)
    paths = [("begin", "path"), ("end", "path")] * 3
    final = [("begin", "refit"), ("end", "refit"), ("end", "fit")]
    assert seen == [("setup", 4), ("begin", "fit"), *paths, *final, ("teardown", None)]


def test_progress_bar_of_scikit_learn(capsys):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")
    pytest.importorskip("rich")
    X, y, _ = make_sine_quantiles(40, random_state=0)
    search = QuantileRegressorCV(0.5, alphas=[1e-2, 1e-3], cv=3)
    plain = clone(search).fit(X, y)
    shown = search.set_callbacks(callback.ProgressBar()).fit(X, y)
    assert shown.alpha_ == plain.alpha_
    assert "QuantileRegressorCV" in capsys.readouterr().out
