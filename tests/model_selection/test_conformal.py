"""Conformal wrappers against their definitions, by explicit refits and loops over rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, ShuffleSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fenchel
from conformal_cases import NEW, NEW_WEIGHT, SMOOTH, WEIGHT, X, Y
from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.kernels import Decomposable, Gaussian, Laplacian
from fenchel.model_selection import (
    ConformalQuantileRegressor,
    ConformalRegressor,
    PathSearchCV,
)
from fenchel.model_selection._conformal_ranks import pool_quantile, rank, score_quantile

ROUGH = KernelRidge(1e-3, kernel=Laplacian(0.5))


def smallest_with_share(values, weights, infinite, coverage):
    """The definition: smallest value that holds the share, the rest of the weight at infinity."""
    total = sum(weights) + infinite
    for value in sorted(values):
        if sum(w for v, w in zip(values, weights, strict=True) if v <= value) >= (
            coverage * total * (1.0 - 1e-12)
        ):
            return value
    return np.inf


def by_definition(own, new, scores, weights, infinite, coverage):
    """Ends (m, 2) from predictions (n,) and (m, n); weights (m, n), at infinity (m,)."""
    ends = []
    for f, w, w_new in zip(new, weights, infinite, strict=True):
        low = smallest_with_share(list(scores - f), list(w), w_new, coverage)
        high = smallest_with_share(list(f + scores), list(w), w_new, coverage)
        ends.append((-low, high))
    return np.array(ends)


def refits(estimator, splits, weight=None):
    """Predictions (n,) at rows and (m, n) at new rows of models that have not seen the row."""
    own, new = np.empty(len(Y)), np.empty((len(NEW), len(Y)))
    for train, held_out in splits:
        options = {} if weight is None else {"sample_weight": weight[train]}
        model = clone(estimator).fit(X[train], Y[train], **options)
        own[held_out] = model.predict(X[held_out])
        new[:, held_out] = model.predict(NEW)[:, None]
    return own, new


@pytest.mark.parametrize("coverage", [0.07, 0.29, 0.57, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", [1, 9, 19, 98, 99, 100, 199])
def test_rank_is_that_of_the_decimal_coverage(n, coverage):
    percent = round(100 * coverage)
    wanted = -(-percent * (n + 1) // 100)  # in integers
    assert rank(coverage, n) == wanted
    scores = np.random.default_rng(n).permutation(n).astype(float)
    expected = np.inf if wanted > n else float(wanted - 1)
    assert score_quantile(scores, coverage)[0] == expected
    assert pool_quantile(scores[None], coverage)[0] == expected
    assert pool_quantile(scores[None], coverage, np.ones(n), n + 1.0)[0] == expected


def test_weighted_quantiles_are_those_of_repeated_scores():
    random = np.random.default_rng(0)
    scores = random.normal(size=30)
    weight = random.integers(0, 4, size=30).astype(float)
    many = scores.repeat(weight.astype(int))
    for coverage in (0.5, 0.8, 0.9):
        for new in (1.0, 2.5):
            expected = smallest_with_share(list(many), [1.0] * len(many), new, coverage)
            assert score_quantile(scores, coverage, weight, np.array([new]))[0] == expected
            share = np.stack([weight, weight])
            pooled = pool_quantile(
                np.stack([scores, scores]), coverage, share, np.full(2, weight.sum() + new)
            )
            assert pooled.tolist() == [expected, expected]


@pytest.mark.parametrize("side", ["two-sided", "lower", "upper"])
@pytest.mark.parametrize("estimator", [SMOOTH, SVR(kernel=Laplacian(1.0)), LinearRegression()])
def test_split_is_the_definition(estimator, side):
    cv = ShuffleSplit(1, test_size=30, random_state=1)
    train, rows = next(cv.split(X))
    model = ConformalRegressor(estimator, cv=cv, side=side, coverage=0.8).fit(X, Y)
    residual = Y[rows] - clone(estimator).fit(X[train], Y[train]).predict(X[rows])
    sign = {"two-sided": np.abs(residual), "lower": -residual, "upper": residual}
    margin = np.sort(sign[side])[int(np.ceil(0.8 * 31)) - 1]
    assert model.quantile_ == pytest.approx(margin, abs=1e-12)
    assert model.n_calibration_ == 30
    np.testing.assert_array_equal(model.calibration_indices_, rows)
    centre = model.predict(NEW)
    low = -np.inf if side == "upper" else centre - margin
    high = np.inf if side == "lower" else centre + margin
    expected = np.column_stack(np.broadcast_arrays(low, high))
    np.testing.assert_allclose(model.predict_interval(NEW), expected, rtol=1e-12)


@pytest.mark.parametrize("side", ["two-sided", "lower", "upper"])
@pytest.mark.parametrize("estimator", [SMOOTH, KNeighborsRegressor(3)])
def test_cv_plus_is_the_definition(estimator, side):
    cv = KFold(7, shuffle=True, random_state=3)
    model = ConformalRegressor(estimator, method="cv+", cv=cv, side=side).fit(X, Y)
    own, new = refits(estimator, cv.split(X))
    scores = {"two-sided": np.abs(Y - own), "lower": own - Y, "upper": Y - own}[side]
    np.testing.assert_allclose(model.conformity_scores_, scores, atol=1e-12)
    expected = by_definition(own, new, scores, np.ones((25, 60)), np.ones(25), 0.9)
    found = model.predict_interval(NEW)
    if side != "upper":
        np.testing.assert_allclose(found[:, 0], expected[:, 0], atol=1e-12)
    if side != "lower":
        np.testing.assert_allclose(found[:, 1], expected[:, 1], atol=1e-12)
    assert np.isinf(found[:, 0]).all() == (side == "upper")
    assert np.isinf(found[:, 1]).all() == (side == "lower")
    np.testing.assert_allclose(model.predict(NEW), clone(estimator).fit(X, Y).predict(NEW))


@pytest.mark.slow
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimator", [SMOOTH, ROUGH])
def test_jackknife_plus_of_ridge_is_that_of_refits(estimator, weighted, fit_intercept):
    # Closed form keeps alpha * N; the same model of fewer rows has alpha * N / (N - s_i).
    estimator = clone(estimator).set_params(fit_intercept=fit_intercept, alpha=1e-2)
    s = WEIGHT if weighted else np.ones(60)
    rows = np.flatnonzero(s)
    own, new = np.empty(len(rows)), np.empty((25, len(rows)))
    for j, i in enumerate(rows):
        others = rows[rows != i]
        alpha = estimator.alpha * s.sum() / s[others].sum()
        model = clone(estimator).set_params(alpha=alpha).fit(X[others], Y[others], s[others])
        own[j], new[:, j] = model.predict(X[[i]])[0], model.predict(NEW)
    scores = np.abs(Y[rows] - own)
    model = ConformalRegressor(estimator, method="jackknife+")
    model.fit(X, Y, WEIGHT if weighted else None)
    np.testing.assert_allclose(model.conformity_scores_, scores, atol=1e-7)
    (block,) = model._held_out.blocks(NEW)
    np.testing.assert_allclose(block.low, new, atol=1e-7)
    infinite = NEW_WEIGHT if weighted else np.ones(25)
    weights = np.tile(s[rows], (25, 1))
    expected = by_definition(own, new, scores, weights, infinite, 0.9)
    found = model.predict_interval(NEW, sample_weight=NEW_WEIGHT if weighted else None)
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        SVR(epsilon=0.1, kernel=Gaussian(1.5), alpha=1e-2, tol=1e-9),
        SVR(kernel=Laplacian(1.0), alpha=1e-2, tol=1e-9),
        ExpectileRegressor(0.3, kernel=Gaussian(1.0), alpha=1e-3, tol=1e-9),
        LinearRegression(),
    ],
    ids=["low rank", "kernel rows", "expectile", "not ours"],
)
def test_jackknife_plus_elsewhere_is_that_of_refits(estimator):
    model = ConformalRegressor(estimator, method="jackknife+").fit(X, Y)
    own, new = refits(estimator, LeaveOneOut().split(X))
    scores = np.abs(Y - own)
    np.testing.assert_allclose(model.conformity_scores_, scores, atol=2e-4)
    expected = by_definition(own, new, scores, np.ones((25, 60)), np.ones(25), 0.9)
    np.testing.assert_allclose(model.predict_interval(NEW), expected, atol=2e-4)


def test_jackknife_plus_of_an_operator_kernel_refits():
    operator = KernelRidge(1e-2, kernel=Decomposable(Gaussian(1.5), np.eye(1)), tol=1e-9)
    model = ConformalRegressor(operator, method="jackknife+").fit(X[:20], Y[:20])
    plain = KernelRidge(1e-2 * 19 / 20, kernel=Gaussian(1.5))
    closed = ConformalRegressor(plain, method="jackknife+").fit(X[:20], Y[:20])
    np.testing.assert_allclose(
        model.predict_interval(NEW), closed.predict_interval(NEW), atol=1e-5
    )


def test_weighted_split_is_the_definition():
    cv = ShuffleSplit(1, test_size=30, random_state=1)
    train, rows = next(cv.split(X))
    model = ConformalRegressor(SMOOTH, cv=cv, coverage=0.8).fit(X, Y, WEIGHT)
    plain = clone(SMOOTH).fit(X[train], Y[train], WEIGHT[train])
    scores = np.abs(Y[rows] - plain.predict(X[rows]))
    margin = [smallest_with_share(list(scores), list(WEIGHT[rows]), w, 0.8) for w in NEW_WEIGHT]
    found = model.predict_interval(NEW, sample_weight=NEW_WEIGHT)
    np.testing.assert_allclose(found[:, 1] - plain.predict(NEW), margin, atol=1e-12)
    assert model.n_calibration_ == np.count_nonzero(WEIGHT[rows])


def test_weighted_cv_plus_averages_the_p_values_of_folds():
    cv = KFold(3, shuffle=True, random_state=3)
    weight = WEIGHT + 0.5
    model = ConformalRegressor(SMOOTH, method="cv+", cv=cv, coverage=0.8).fit(X, Y, weight)
    own, new = refits(SMOOTH, cv.split(X), weight)
    found = model.predict_interval(NEW, sample_weight=NEW_WEIGHT)
    scores = np.abs(Y - own)
    for f, (low, high), w in zip(new, found, NEW_WEIGHT, strict=True):
        for end, outward in ((low, -1e-9), (high, 1e-9)):
            p_value = []  # of a target just outside of the interval
            for _, fold in cv.split(X):
                as_far = scores[fold] >= np.abs(end + outward - f[fold])
                share = weight[fold] @ as_far + w
                p_value.append(share / (weight[fold].sum() + w))
            assert np.mean(p_value) <= 0.2 + 1e-12


@pytest.mark.filterwarnings("ignore:.*infinitely wide:UserWarning")
@pytest.mark.parametrize("unit", [2.0**-120, 2.0**-900, 2.0**100])
@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+"])
def test_only_ratios_of_weights_count(method, unit):
    """Those of new rows to those of the fit too, however small or large all of them are."""
    both = []
    for factor in (1.0, unit):
        model = ConformalRegressor(SMOOTH, method=method).fit(X, Y, factor * (WEIGHT + 0.5))
        heavy = factor * np.linspace(0.0, 90.0, 25)
        both.append(model.predict_interval(NEW, sample_weight=heavy))
    np.testing.assert_array_equal(np.isinf(both[0]), np.isinf(both[1]))
    assert np.isinf(both[0]).any()
    finite = np.isfinite(both[0])
    np.testing.assert_allclose(both[1][finite], both[0][finite], rtol=1e-12)


@pytest.mark.parametrize("method", ["split", "jackknife+"])
def test_integer_weights_are_repeated_calibration_rows(method):
    """For the calibration of one model; weights of one are no weights."""
    plain = FrozenEstimator(clone(SMOOTH).fit(X, Y))
    if method == "jackknife+":
        one = ConformalRegressor(SMOOTH, method=method).fit(X, Y, np.ones(60))
        none = ConformalRegressor(SMOOTH, method=method).fit(X, Y)
        found = one.predict_interval(NEW, sample_weight=np.ones(25))
        np.testing.assert_allclose(found, none.predict_interval(NEW), rtol=1e-12)
        return
    X2, Y2 = X + 0.1, Y + 0.1 * X[:, 1]
    weighted = ConformalRegressor(plain, cv="prefit").fit(X2, Y2, WEIGHT)
    times = WEIGHT.astype(int)
    repeated = ConformalRegressor(plain, cv="prefit").fit(X2.repeat(times, 0), Y2.repeat(times))
    found = weighted.predict_interval(NEW, sample_weight=np.ones(25))
    np.testing.assert_array_equal(found, repeated.predict_interval(NEW))


@pytest.mark.slow
@pytest.mark.parametrize("side", ["two-sided", "lower", "upper"])
@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+"])
def test_conformalized_quantiles_are_the_definition(method, side):
    estimator = QuantileRegressor(kernel=Gaussian(1.5), alpha=1e-3, tol=1e-9)
    cv = {"split": ShuffleSplit(1, test_size=20, random_state=2), "cv+": KFold(4)}.get(method)
    model = ConformalQuantileRegressor(
        estimator, method=method, side=side, coverage=0.8, cv=cv
    ).fit(X, Y)
    levels = {"two-sided": [0.1, 0.5, 0.9], "lower": [0.2, 0.5], "upper": [0.5, 0.8]}[side]
    assert model.levels_.tolist() == levels
    low, high = np.full((2, 25, 60), np.nan)
    scores = np.full(60, np.nan)
    for train, held_out in (cv or LeaveOneOut()).split(X):
        fit = clone(estimator).set_params(levels=levels).fit(X[train], Y[train])
        own, new = fit.predict(X[held_out]), fit.predict(NEW)
        below, above = own[:, 0] - Y[held_out], Y[held_out] - own[:, -1]
        score = {"two-sided": np.maximum(below, above), "lower": below, "upper": above}[side]
        scores[held_out], low[:, held_out], high[:, held_out] = score, new[:, :1], new[:, -1:]
    rows = model.calibration_indices_
    np.testing.assert_allclose(model.conformity_scores_, scores[rows], atol=1e-4)
    if side != "upper":
        ends = [
            -smallest_with_share(list(v), [1.0] * len(v), 1.0, 0.8)
            for v in (scores - low)[:, rows]
        ]
        np.testing.assert_allclose(model.predict_interval(NEW)[:, 0], ends, atol=1e-4)
    if side != "lower":
        ends = [
            smallest_with_share(list(v), [1.0] * len(v), 1.0, 0.8)
            for v in (scores + high)[:, rows]
        ]
        np.testing.assert_allclose(model.predict_interval(NEW)[:, 1], ends, atol=1e-4)
    np.testing.assert_array_equal(
        model.predict(NEW), model.estimator_.predict(NEW)[:, levels.index(0.5)]
    )


@pytest.mark.slow
def test_split_around_fitted_quantiles_moves_their_interval():
    plain = QuantileRegressor([0.9, 0.1, 0.5], kernel=Gaussian(1.5)).fit(X[:30], Y[:30])
    model = ConformalQuantileRegressor(plain, cv="prefit", coverage=0.8).fit(X[30:], Y[30:])
    assert model.estimator_ is plain
    assert model.n_calibration_ == 30
    expected = plain.predict_interval(NEW, 0.8) + model.quantile_ * np.array([-1.0, 1.0])
    np.testing.assert_allclose(model.predict_interval(NEW), expected, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(NEW)[:, 2])
    frozen = ConformalQuantileRegressor(FrozenEstimator(plain), cv="prefit", coverage=0.8)
    found = clone(frozen).fit(X[30:], Y[30:]).predict_interval(NEW)
    np.testing.assert_array_equal(found, model.predict_interval(NEW))


def test_crossed_ends_become_one_point():
    """Curves that open like a wedge, targets in their middle: all move in by the same amount."""
    x = np.linspace(0.0, 1.0, 40)[:, None]
    wedge = 5.0 * x[:, 0] * np.where(np.arange(40) % 2, 1.0, -1.0)
    plain = QuantileRegressor([0.1, 0.5, 0.9], kernel="linear", alpha=1e-6, level_gamma=np.inf)
    model = ConformalQuantileRegressor(plain.fit(x, wedge), cv="prefit", coverage=0.8)
    model.fit(x, np.zeros(40))
    assert model.quantile_ < 0.0
    ends = plain.predict_interval(x, 0.8) + model.quantile_ * np.array([-1.0, 1.0])
    interval = model.predict_interval(x)
    crossed = ends[:, 0] > ends[:, 1]
    assert 0 < crossed.sum() < 40
    np.testing.assert_allclose(interval[crossed], np.tile(ends[crossed].mean(1), (2, 1)).T)
    np.testing.assert_allclose(interval[~crossed], ends[~crossed])


@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+"])
def test_coverage_can_be_changed_after_the_fit(method):
    model = ConformalRegressor(SMOOTH, method=method, coverage=0.9).fit(X, Y)
    other = clone(model).set_params(coverage=0.5).fit(X, Y)
    np.testing.assert_array_equal(model.predict_interval(NEW, 0.5), other.predict_interval(NEW))
    widths = [np.ptp(model.predict_interval(NEW, c), axis=1) for c in (0.3, 0.6, 0.9)]
    assert (np.diff(widths, axis=0) >= 0.0).all()


def test_a_row_that_is_followed_whatever_its_target_has_an_infinite_score():
    """The only row of a feature, nearly without regularization: the fit runs through it."""
    x = np.vstack([np.column_stack([np.linspace(-1.0, 1.0, 20), np.zeros(20)]), [0.0, 1e8]])
    y = np.append(x[:20, 0] + 0.1 * (-1.0) ** np.arange(20), 3.0)
    model = ConformalRegressor(
        KernelRidge(1e-3, kernel="linear"), method="jackknife+", coverage=0.9
    ).fit(x, y)
    assert np.isposinf(model.conformity_scores_).tolist() == [False] * 20 + [True]
    assert np.isfinite(model.predict_interval(x[:20])).all()
    with pytest.warns(UserWarning, match="= 21, 1 of them with an infinite score"):
        assert np.isinf(model.predict_interval(x[:20], coverage=0.95)).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+"])
@pytest.mark.parametrize("kernel", [Gaussian(1.5), Laplacian(0.5)])
def test_precomputed_kernel(method, kernel):
    for estimator in (KernelRidge(1e-3), SVR(alpha=1e-2, tol=1e-9)):
        plain = clone(estimator).set_params(kernel=kernel)
        given = clone(estimator).set_params(kernel="precomputed")
        one = ConformalRegressor(plain, method=method).fit(X, Y)
        other = ConformalRegressor(given, method=method).fit(kernel(X), Y)
        assert other.__sklearn_tags__().input_tags.pairwise
        columns = kernel(NEW, X)
        if method == "split":  # columns are those of the rows it was fitted to
            columns = np.delete(columns, other.calibration_indices_, axis=1)
        np.testing.assert_allclose(
            other.predict_interval(columns), one.predict_interval(NEW), atol=1e-4
        )


@pytest.mark.slow
@pytest.mark.parametrize("features", ["cholesky", "kernel_rows"])
@pytest.mark.parametrize("estimator", [KernelRidge(1e-2), QuantileRegressor(0.5, alpha=1e-2)])
def test_intervals_do_not_change_with_the_array_of_the_caller(estimator, features):
    plain = clone(estimator).set_params(kernel=Gaussian(1.0), features=features)
    rows = X.copy()
    model = ConformalRegressor(plain, method="jackknife+", coverage=0.8).fit(rows, Y)
    before = model.predict_interval(NEW)
    rows[:] = 0.0
    np.testing.assert_array_equal(model.predict_interval(NEW), before)


@pytest.mark.parametrize("estimator", [KernelRidge(1e-2), QuantileRegressor(0.5, alpha=1e-2)])
@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+"])
def test_sparse_rows(method, estimator):
    plain = clone(estimator).set_params(kernel=Gaussian(1.0))
    model = ConformalRegressor(plain, method=method, coverage=0.8)
    dense = model.fit(X, Y).predict_interval(NEW)
    np.testing.assert_allclose(model.predict_interval(csr_array(NEW)), dense, atol=1e-12)
    model.fit(csr_array(X), Y)
    for new in (NEW, csr_array(NEW)):
        np.testing.assert_allclose(model.predict_interval(new), dense, atol=1e-5)


def test_blocks_give_what_the_whole_gives(monkeypatch):
    wrappers = [
        ConformalRegressor(SMOOTH, method="cv+", cv=4),
        ConformalRegressor(SMOOTH, method="jackknife+"),
        ConformalRegressor(SVR(kernel=Gaussian(1.5)), method="jackknife+"),
    ]
    for model in wrappers:
        weighted = clone(model).fit(X, Y, WEIGHT + 1.0)
        model.fit(X, Y)
        whole = model.predict_interval(NEW)
        weighted_whole = weighted.predict_interval(NEW, sample_weight=NEW_WEIGHT)
        with monkeypatch.context() as patch:
            patch.setattr("fenchel.model_selection._conformal_models._BLOCK_VALUES", 130)
            np.testing.assert_allclose(model.predict_interval(NEW), whole, rtol=1e-10)
            parts = weighted.predict_interval(NEW, sample_weight=NEW_WEIGHT)
        np.testing.assert_allclose(parts, weighted_whole, rtol=1e-10)


@pytest.mark.slow
def test_inside_of_pipelines_searches_and_data_frames():
    pd = pytest.importorskip("pandas", reason="tables are those of pandas")
    frame = pd.DataFrame(X, columns=["first", "second"])
    scaled = make_pipeline(StandardScaler(), QuantileRegressor(kernel=Gaussian(1.0)))
    model = ConformalQuantileRegressor(scaled, method="cv+", cv=4, coverage=0.8).fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["first", "second"]
    assert model.predict_interval(frame).shape == (60, 2)
    assert scaled.get_params()["quantileregressor__levels"] == 0.5  # as it was given
    search = GridSearchCV(ConformalRegressor(SMOOTH), {"estimator__alpha": [1e-3, 1.0]}, cv=3)
    assert search.fit(frame, Y).best_params_ == {"estimator__alpha": 1e-3}
    tuned = PathSearchCV(QuantileRegressor(), {"alpha": [1e-1, 1e-3]}, cv=3)
    model = ConformalQuantileRegressor(tuned, coverage=0.8).fit(frame, Y)
    assert model.estimator_.best_estimator_.levels == [0.1, 0.5, 0.9]
    assert model.predict_interval(frame).shape == (60, 2)


def test_random_state_chooses_the_rows():
    first, same = (ConformalRegressor(SMOOTH).fit(X, Y).calibration_indices_ for _ in range(2))
    other = ConformalRegressor(SMOOTH, random_state=1).fit(X, Y).calibration_indices_
    np.testing.assert_array_equal(first, same)
    assert set(first) != set(other)
    assert ConformalRegressor(SMOOTH, cv=0.5).fit(X, Y).n_calibration_ == 30
    assert ConformalRegressor(SMOOTH, cv=4, coverage=0.8).fit(X, Y).n_calibration_ == 15


def test_prefit_takes_weights_of_any_estimator_for_calibration():
    plain = KNeighborsRegressor().fit(X[:30], Y[:30])
    model = ConformalRegressor(plain, cv="prefit", coverage=0.8).fit(X[30:], Y[30:], WEIGHT[30:])
    assert model.n_calibration_ == np.count_nonzero(WEIGHT[30:])
    assert model.predict_interval(NEW, sample_weight=np.ones(25)).shape == (25, 2)


@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+"])
@pytest.mark.parametrize(
    "wrapper",
    [
        ConformalRegressor(KernelRidge(learn=False)),
        ConformalQuantileRegressor(QuantileRegressor(learn=False)),
    ],
    ids=lambda wrapper: type(wrapper).__name__,
)
def test_saved_and_loaded_intervals_are_the_same(tmp_path, wrapper, method):
    pytest.importorskip("skops", reason="files are those of skops")
    model = clone(wrapper).set_params(method=method, coverage=0.8).fit(X[:40], Y[:40])
    loaded = fenchel.load(fenchel.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict_interval(NEW), model.predict_interval(NEW))
