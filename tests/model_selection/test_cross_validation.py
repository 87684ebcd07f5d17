"""Warm-started cross-validation is cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold

from contract_cases import with_checks
from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.datasets import make_heavy_tails, make_sine_quantiles
from fenchel.kernels import Gaussian, Laplacian
from fenchel.model_selection import KernelRidgeCV, PathSearchCV

ALPHAS = [1e-1, 1e-3, 1e-5]
X, y, _ = make_sine_quantiles(90, random_state=0)
PAIRS = [
    (QuantileRegressor([0.2, 0.8], learn=False), {"level_gamma": [0.1, 10], "epsilon": [0, 0.3]}),
    (ExpectileRegressor([0.2, 0.8], learn=False), {"level_gamma": [1.0], "epsilon": [0.0]}),
    (SVR(learn=False), {"epsilon": [None, 0.1, 0.5]}),
    (KernelRidge(learn=False), {}),
    (
        KernelRidge(learn=False),
        {"kernel": [Gaussian(), Laplacian()], "fit_intercept": [False, True]},
    ),
    (KernelRidge(kernel=Gaussian(1.0)), {"kernel__length_scale": [0.1, 1.0]}),
]
IDS = [" ".join([type(plain).__name__, *grid]) for plain, grid in PAIRS]
FAST = {"param_grid": {"alpha": 3}, "cv": 2}


@with_checks(
    PathSearchCV(QuantileRegressor(), **FAST),
    PathSearchCV(SVR(), **FAST),
    KernelRidgeCV(3),
    KernelRidgeCV(3, cv=2),
    slow_others=True,
)
def test_scikit_learn(estimator, check):
    check(estimator)


def key_of(params):
    return tuple(sorted((name, repr(value)) for name, value in params.items()))


@pytest.mark.slow
@pytest.mark.parametrize(("plain", "grid"), PAIRS, ids=IDS)
def test_equals_grid_search(plain, grid):
    folds = KFold(4, shuffle=True, random_state=1)
    ours = PathSearchCV(plain, {**grid, "alpha": ALPHAS}, cv=folds).fit(X, y)
    theirs = GridSearchCV(plain, {**grid, "alpha": ALPHAS}, cv=folds).fit(X, y)
    expected = {
        key_of(p): s
        for p, s in zip(
            theirs.cv_results_["params"], theirs.cv_results_["mean_test_score"], strict=True
        )
    }
    for params, score in zip(
        ours.cv_results_["params"], ours.cv_results_["mean_test_score"], strict=True
    ):
        assert score == pytest.approx(expected.pop(key_of(params)), abs=2e-3)
    assert not expected
    names = {name for name in theirs.cv_results_ if "time" not in name}
    gaps = {f"split{k}_relative_gap" for k in range(4)}
    assert names | gaps == set(ours.cv_results_)
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=2e-3)
    refit = clone(plain).set_params(**ours.best_params_)
    if "refit_offsets" in refit.get_params():  # alpha was chosen: offsets are those of other rows
        refit.set_params(refit_offsets="held_out")
    refit.fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), refit.predict(X))
    assert ours.cv_results_["rank_test_score"][ours.best_index_] == 1


def test_tight_tolerance_gives_the_same_scores_to_many_digits():
    exact = QuantileRegressor(0.3, learn=False, tol=1e-10)
    search = PathSearchCV(exact, {"alpha": ALPHAS}, cv=3).fit(X, y)
    plain = GridSearchCV(exact, {"alpha": ALPHAS}, cv=3).fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"],
        plain.cv_results_["mean_test_score"][np.argsort(ALPHAS)[::-1]],
        atol=1e-4,
    )


def test_length_scales():
    scales = [0.1, "median", 3.0]
    grid = {"length_scale": scales, "alpha": ALPHAS}
    search = PathSearchCV(KernelRidge(), grid, cv=3).fit(X, y)
    kernels = [Gaussian(scale) for scale in scales]
    plain = GridSearchCV(KernelRidge(), {"kernel": kernels, "alpha": ALPHAS}, cv=3).fit(X, y)
    assert search.best_score_ == pytest.approx(plain.best_score_, abs=1e-10)
    assert search.best_estimator_.kernel.length_scale == search.best_params_["length_scale"]
    with pytest.raises(ValueError, match="length_scale is for kernels that have one"):
        PathSearchCV(KernelRidge(kernel="linear"), {"length_scale": [1.0]}).fit(X, y)


def test_widths_of_each_feature_beside_a_rule():
    """Candidates of any form, in ``cv_results_`` as they were given."""
    two = np.column_stack([X, np.cos(X)])
    scales = ["median", np.array([0.3, 1.0])]
    search = PathSearchCV(KernelRidge(), {"length_scale": scales, "alpha": [1e-3]}, cv=3)
    results = search.fit(two, y).cv_results_
    assert list(results["param_length_scale"]) == scales
    for k, kernel in enumerate([Gaussian("median"), Gaussian([0.3, 1.0])]):
        plain = GridSearchCV(KernelRidge(kernel=kernel), {"alpha": [1e-3]}, cv=3).fit(two, y)
        assert results["mean_test_score"][k] == pytest.approx(plain.best_score_, abs=1e-10)


def test_one_feature_map_for_each_fold_and_setting_that_needs_one(monkeypatch):
    prepared = []
    original = QuantileRegressor.prepare

    def counted(self, *data, **named):
        prepared.append((self.kernel.length_scale, len(named["X"] if named else data[0])))
        return original(self, *data, **named)

    monkeypatch.setattr(QuantileRegressor, "prepare", counted)
    grid = {"level_gamma": [0.1, 1.0], "length_scale": [0.5, 1.0], "alpha": ALPHAS, "tol": [1e-3]}
    quantiles = QuantileRegressor([0.2, 0.8], kernel=Gaussian())
    PathSearchCV(quantiles, grid, cv=3, refit=False).fit(X, y)
    assert prepared == [(0.5, 60)] * 3 + [(1.0, 60)] * 3


def test_paths_run_from_the_largest_alpha_and_are_warm(monkeypatch):
    seen = []
    original = SVR.fit_prepared

    def watched(self, prepared, start=None):
        found = original(self, prepared, start)
        seen.append((self.epsilon, self.alpha, None if start is None else start.alpha))
        return found

    monkeypatch.setattr(SVR, "fit_prepared", watched)
    grid = {"alpha": ALPHAS[::-1], "epsilon": [0.5, 0.1]}
    PathSearchCV(SVR(), grid, cv=2, refit=False).fit(X, y)
    path = [(epsilon, alpha) for epsilon in (0.5, 0.1) for alpha in ALPHAS]
    assert [point[:2] for point in seen] == 2 * path
    assert [point[2] for point in seen] == 4 * [None, *ALPHAS[:2]]


def test_precomputed_kernels_lose_the_columns_of_the_fold():
    kernel = Gaussian(0.7)
    vectors = PathSearchCV(KernelRidge(kernel=kernel), {"alpha": ALPHAS}).fit(X, y)
    gram = PathSearchCV(KernelRidge(kernel="precomputed"), {"alpha": ALPHAS}).fit(kernel(X), y)
    np.testing.assert_allclose(
        gram.cv_results_["mean_test_score"], vectors.cv_results_["mean_test_score"], rtol=1e-6
    )
    assert gram.__sklearn_tags__().input_tags.pairwise


def test_what_is_not_in_the_grid_stays():
    search = PathSearchCV(KernelRidge(0.37), {"length_scale": [0.5, 1.0]}, cv=3).fit(X, y)
    assert set(search.best_params_) == {"length_scale"}
    assert search.alpha_ == search.best_estimator_.alpha == 0.37
    assert search.estimator.kernel is None


@pytest.mark.slow
def test_default_grids():
    assert len(PathSearchCV(QuantileRegressor(), cv=2).fit(X, y).cv_results_["params"]) == 20
    assert len(PathSearchCV(cv=2).fit(X, y).cv_results_["params"]) == 20


def test_without_a_final_fit():
    search = PathSearchCV(KernelRidge(), {"alpha": ALPHAS}, refit=False).fit(X, y)
    with_it = PathSearchCV(KernelRidge(), {"alpha": ALPHAS}).fit(X, y)
    assert search.best_params_ == with_it.best_params_
    assert search.alpha_ == with_it.alpha_
    assert search.n_splits_ == 5
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(NotFittedError):
        search.predict(X)


def test_fits_that_stop_early_are_counted():
    search = PathSearchCV(SVR(max_iter=1, solver="newton"), {"alpha": ALPHAS}, refit=False, cv=3)
    assert search.fit(X, y).n_early_stops_ > 0
    assert PathSearchCV(KernelRidge(), {"alpha": ALPHAS}).fit(X, y).n_early_stops_ == 0


def test_methods_are_those_of_the_estimator():
    for plain in (KernelRidge(), SVR(), QuantileRegressor(), ExpectileRegressor()):
        search = PathSearchCV(plain)
        for name in ("predict", "predict_interval", "crossing_loss", "sample", "score_samples"):
            assert hasattr(search, name) == hasattr(plain, name)
    with pytest.raises(NotFittedError):
        PathSearchCV(KernelRidge()).predict(X)


@pytest.mark.slow
def test_kernel_ridge_cv_is_a_search():
    ridge, grid = KernelRidge(kernel=Laplacian()), {"alpha": 12, "length_scale": [0.5, 1.0]}
    for options in ({"scoring": "loo"}, {"cv": 4}, {"cv": 3, "selection": "one_standard_error"}):
        named = KernelRidgeCV(12, kernel=Laplacian(), length_scales=[0.5, 1.0], **options)
        search = PathSearchCV(ridge, grid, **options).fit(X, y)
        assert named.fit(X, y).best_params_ == search.best_params_
        np.testing.assert_array_equal(named.predict(X), search.predict(X))
    default = KernelRidgeCV(12, kernel=Laplacian(), length_scales=[0.5, 1.0]).fit(X, y)
    assert default.best_score_ == pytest.approx(-default.best_estimator_.loo_error_, rel=1e-9)


@pytest.mark.slow
def test_one_standard_error_prefers_strength():
    best = PathSearchCV(KernelRidge(), {"alpha": 30}, cv=5).fit(X, y)
    rule = "one_standard_error"
    simple = PathSearchCV(KernelRidge(), {"alpha": 30}, cv=5, selection=rule).fit(X, y)
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


@pytest.mark.slow
def test_default_alphas_follow_the_units():
    """A grid for c * y: divided by c for losses of degree one, the same for squares."""
    for plain, factor in ((QuantileRegressor(), 1e-3), (KernelRidge(), 1.0)):
        search = PathSearchCV(plain, {"alpha": 5})
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
    grid = {"alpha": ALPHAS}
    weighted = PathSearchCV(KernelRidge(), grid, cv=folds).fit(X, y, sample_weight=weight)
    removed = PathSearchCV(KernelRidge(), grid, cv=inner).fit(X[kept], y[kept])
    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"], removed.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("cv", [3, None])
@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_a_number_of_folds_deals_rows_of_positive_weight(kernel, cv, tmp_path):
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    kept = np.flatnonzero(weight)
    search = PathSearchCV(KernelRidge(kernel=kernel), {"alpha": 4}, cv=cv)
    removed = clone(search).fit(X[kept], y[kept], sample_weight=weight[kept])
    expected = removed.cv_results_["mean_test_score"]
    weighted = clone(search).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(weighted.cv_results_["mean_test_score"], expected, rtol=1e-9)
    assert weighted.alpha_ == pytest.approx(removed.alpha_, rel=1e-9)
    np.save(tmp_path / "X.npy", X)
    on_disk = clone(search).fit(tmp_path / "X.npy", y, sample_weight=weight)
    np.save(tmp_path / "kept.npy", X[kept])
    without = clone(search).fit(tmp_path / "kept.npy", y[kept], sample_weight=weight[kept])
    np.testing.assert_allclose(
        on_disk.cv_results_["mean_test_score"],
        without.cv_results_["mean_test_score"],
        rtol=1e-9,
    )
    given = clone(search).set_params(cv=KFold(3)).fit(X, y, sample_weight=weight)
    assert np.abs(given.cv_results_["mean_test_score"] - expected).max() > 1e-6


@pytest.mark.slow
def test_parallel_is_the_same():
    rough, target = make_heavy_tails(80, random_state=0)
    search = PathSearchCV(QuantileRegressor([0.1, 0.9]), {"alpha": 4}, cv=3)
    one = clone(search).fit(rough, target)
    two = clone(search).set_params(n_jobs=2).fit(rough, target)
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


def test_intervals_and_crossing_are_those_of_the_best():
    quantiles = QuantileRegressor([0.1, 0.9], kernel=Laplacian())
    model = PathSearchCV(quantiles, {"alpha": 3}).fit(X, y)
    best = model.best_estimator_
    np.testing.assert_array_equal(model.predict_interval(X, 0.8), best.predict_interval(X, 0.8))
    assert model.crossing_loss(X) == best.crossing_loss(X)
    assert model.certificate_.relative_gap <= 1e-6


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"param_grid": {"alpha": 0}}, "alpha'] must be a number of values >= 1"),
        ({"param_grid": {"alpha": 1e-3}}, "alpha'] must be a number of values >= 1"),
        ({"param_grid": {"alpha": [1.0, -1.0]}}, "alpha must be a finite number > 0"),
        ({"param_grid": {"alpha": [1.0, np.nan]}}, "one or more finite numbers"),
        ({"param_grid": {"alpha": []}}, "one or more finite numbers, got"),
        ({"param_grid": {"epsilon": 0.1}}, "epsilon'] must be a sequence of one or more"),
        ({"param_grid": {"kernel": "linear"}}, "kernel'] must be a sequence of one or more"),
        ({"param_grid": {"tol": []}}, "tol'] must be a sequence of one or more"),
        ({"param_grid": {"epsilon": [0.0, -1.0]}}, "epsilon must be"),
        ({"param_grid": {"colour": ["red"]}}, "Invalid parameter 'colour'"),
        ({"param_grid": [{"alpha": 3}]}, "param_grid must be a dict"),
        ({"selection": "max"}, "selection must be one of"),
        ({"aggregation": "mode"}, "aggregation must be one of"),
        ({"estimator": QuantileRegressor([0.5, 0.5])}, "levels must not repeat"),
    ],
)
def test_bad_input(bad, message):
    search = PathSearchCV(QuantileRegressor()).set_params(**bad)
    with pytest.raises(ValueError, match=message.replace("[", "\\[")):
        search.fit(X, y)


def test_other_estimators_and_arguments_are_refused():
    with pytest.raises(TypeError, match="estimator must be one of fenchel with a kernel"):
        PathSearchCV(Ridge(), {"alpha": [1.0]}).fit(X, y)
    with pytest.raises(ValueError, match="theta must be None for an estimator that is not one of"):
        PathSearchCV(KernelRidge(), {"alpha": [1.0]}).fit(X, y, theta=[0.0, 1.0])


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
    search = PathSearchCV(QuantileRegressor(0.5), {"alpha": [1e-2, 1e-3]}, cv=3)
    search.set_callbacks(Recorder()).fit(X, y)
    paths = [("begin", "path"), ("end", "path")] * 3
    final = [("begin", "refit"), ("end", "refit"), ("end", "fit")]
    assert seen == [("setup", 4), ("begin", "fit"), *paths, *final, ("teardown", None)]


def test_progress_bar_of_scikit_learn(capsys):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")
    pytest.importorskip("rich", reason="rich is not installed")
    X, y, _ = make_sine_quantiles(40, random_state=0)
    search = PathSearchCV(QuantileRegressor(0.5), {"alpha": [1e-2, 1e-3]}, cv=3)
    plain = clone(search).fit(X, y)
    shown = search.set_callbacks(callback.ProgressBar()).fit(X, y)
    assert shown.alpha_ == plain.alpha_
    assert "PathSearchCV" in capsys.readouterr().out


def test_a_search_without_a_final_fit_has_none_of_before():
    search = PathSearchCV(KernelRidge(learn=False), {"alpha": ALPHAS}, cv=3).fit(X, y)
    search.set_params(refit=False).fit(X, -y)
    for name in ("best_estimator_", "n_features_in_", "certificate_"):
        assert not hasattr(search, name)
    with pytest.raises((AttributeError, NotFittedError)):
        search.predict(X)
