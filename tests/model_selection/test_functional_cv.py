"""Cross-validation of curves: grid search, with shared preparations and warm starts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from contract_cases import with_checks
from fenchel.design import gram, plain
from fenchel.functional import FunctionalRegressor
from fenchel.kernels import BetweenCurves, Gaussian, IntegralGaussian, Laplacian
from fenchel.model_selection import PathSearchCV

NAN = np.nan
RNG = np.random.default_rng(0)
N, M = 40, 15
THETA = np.linspace(0.0, 2.0, M) ** 1.3
X = RNG.uniform(-1.0, 1.0, (N, 2))
CLEAN = np.sin(3.0 * THETA + 2.0 * X[:, :1]) + X[:, 1:] * THETA
Y = CLEAN + 0.2 * RNG.normal(size=(N, M))
ALPHAS = [1e-1, 1e-3, 1e-5]
FOLDS = KFold(4, shuffle=True, random_state=1)
# alpha, κ and ε as scikit-learn's checks want them: a grid that holds a good fit of a line
STRENGTHS = {"alpha": [1e-1, 1e-3]}
CASES = {
    "squared": ({}, {}),
    "huber2": ({"loss": "huber"}, {"kappa": [1.0, 0.3, 0.03]}),
    "huber1": ({"loss": "huber", "norm": 1}, {"kappa": [1.0, 0.3, 0.03]}),
    "insensitive2": ({"loss": "squared_epsilon_insensitive"}, {"epsilon": [0.0, 0.1, 0.5]}),
    "insensitive_inf": (
        {"loss": "squared_epsilon_insensitive", "norm": np.inf},
        {"epsilon": [0.0, 0.1, 0.5]},
    ),
}


@with_checks(
    PathSearchCV(FunctionalRegressor(), STRENGTHS, cv=2),
    PathSearchCV(
        FunctionalRegressor("huber"),
        {**STRENGTHS, "kappa": [1.0, 0.1]},
        aggregation="median",
        cv=2,
    ),
    PathSearchCV(
        FunctionalRegressor("squared_epsilon_insensitive", np.inf),
        {**STRENGTHS, "epsilon": [0.1, 0.01]},
        cv=2,
    ),
)
def test_scikit_learn(estimator, check):
    check(estimator)


def scores_by_params(results, key="mean_test_score"):
    return {
        tuple(sorted((name, repr(value)) for name, value in params.items())): score
        for params, score in zip(results["params"], results[key], strict=True)
    }


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_equals_grid_search(case):
    loss, grid = CASES[case]
    tight = {**loss, "tol": 1e-11, "max_iter": 5000, "center": "mean", "learn": False}
    plain = FunctionalRegressor(**tight)
    ours = PathSearchCV(plain, {"alpha": ALPHAS, **grid}, cv=FOLDS).fit(X, Y)
    theirs = GridSearchCV(
        plain,
        {**grid, "alpha": ALPHAS},
        cv=FOLDS,
        scoring="neg_mean_squared_error",
    ).fit(X, Y)
    for key in ("mean_test_score", "std_test_score", "split2_test_score"):
        expected = scores_by_params(theirs.cv_results_, key)
        found = scores_by_params(ours.cv_results_, key)
        assert found.keys() == expected.keys()
        for params, score in found.items():
            assert score == pytest.approx(expected[params], abs=1e-5)
    assert ours.best_params_ == theirs.best_params_
    refit = FunctionalRegressor(**tight, **ours.best_params_).fit(X, Y)
    np.testing.assert_array_equal(ours.predict(X), refit.predict(X))
    np.testing.assert_array_equal(ours.best_estimator_.dual_coef_, refit.dual_coef_)
    assert ours.alpha_ == ours.best_params_["alpha"]
    assert ours.score(X, Y) == refit.score(X, Y)
    assert ours.certificate_.relative_gap <= 1e-11


def test_median_ranks_by_the_median_of_folds():
    """A fold of shifted curves has a say in the mean, and less of one in the median."""
    spoilt = Y.copy()
    spoilt[:5] += np.random.default_rng(5).choice([-1.0, 1.0], size=(5, 1))
    grid, folds = {"alpha": np.geomspace(1.0, 1e-6, 8)}, KFold(5)
    search = PathSearchCV(FunctionalRegressor(), grid, cv=folds)
    mean = clone(search).fit(X, spoilt, theta=THETA)
    median = clone(search).set_params(aggregation="median").fit(X, spoilt, theta=THETA)
    results = median.cv_results_
    folds = np.array([results[f"split{k}_test_score"] for k in range(5)])
    np.testing.assert_array_equal(results["median_test_score"], np.median(folds, axis=0))
    np.testing.assert_array_equal(results["mean_test_score"], mean.cv_results_["mean_test_score"])
    assert median.best_index_ == np.argmax(np.median(folds, axis=0))
    assert mean.best_index_ == np.argmax(folds.mean(axis=0))
    assert median.best_score_ == np.median(folds, axis=0).max()
    assert results["rank_test_score"][median.best_index_] == 1
    assert median.best_index_ != mean.best_index_
    assert "median_test_score" not in mean.cv_results_


@pytest.mark.parametrize("quadrature", ["monte-carlo", "trapezoid"])
def test_error_is_the_integral_over_what_is_observed(quadrature):
    gaps = np.where(RNG.uniform(size=Y.shape) < 0.2, NAN, Y)
    weight = RNG.uniform(0.5, 2.0, N)
    options = {"center": "mean", "quadrature": quadrature}
    folds = [(np.arange(30), np.arange(30, 40)), (np.arange(10, 40), np.arange(10))]
    ours = PathSearchCV(FunctionalRegressor(**options), {"alpha": [1e-3]}, cv=folds)
    ours.fit(X, gaps, theta=THETA, sample_weight=weight)
    for k, (train, test) in enumerate(folds):
        model = FunctionalRegressor(alpha=1e-3, learn=False, **options)
        model.fit(X[train], gaps[train], THETA, weight[train])
        squares = (gaps[test] - model.predict(X[test])) ** 2
        rule = np.full(M, 1.0 / M)
        if quadrature == "trapezoid":
            rule = np.trapezoid(np.eye(M), THETA) / (THETA[-1] - THETA[0])
        expected = np.average(np.nansum(squares * rule, axis=1), weights=weight[test])
        assert ours.cv_results_[f"split{k}_test_score"][0] == pytest.approx(-expected, rel=1e-6)


def test_pairs_and_arrays_agree():
    plain = FunctionalRegressor("huber", tol=1e-9)
    search = PathSearchCV(plain, {"alpha": ALPHAS, "kappa": [0.5]}, cv=3)
    array = clone(search).fit(X, Y, theta=THETA)
    pairs = clone(search).fit(X, [(THETA, y) for y in Y])
    np.testing.assert_allclose(
        pairs.cv_results_["mean_test_score"], array.cv_results_["mean_test_score"], rtol=1e-6
    )
    np.testing.assert_allclose(pairs.predict(X, [0.3, 0.4]), array.predict(X, [0.3, 0.4]))


def test_precomputed_kernels_lose_the_columns_of_the_fold():
    kernel = Gaussian(0.7)
    grid = {"alpha": ALPHAS}
    vectors = PathSearchCV(FunctionalRegressor(kernel=kernel), grid, cv=FOLDS).fit(X, Y)
    gram = PathSearchCV(FunctionalRegressor(kernel="precomputed"), grid, cv=FOLDS)
    gram.fit(kernel(X), Y)
    np.testing.assert_allclose(
        gram.cv_results_["mean_test_score"], vectors.cv_results_["mean_test_score"], rtol=1e-6
    )
    assert gram.__sklearn_tags__().input_tags.pairwise


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [Gaussian, IntegralGaussian, lambda scale: BetweenCurves(Laplacian(scale))]
)
def test_length_scales(make):
    scales = [0.2, "median", 5.0]
    grid = {"alpha": ALPHAS, "length_scale": scales}
    search = PathSearchCV(FunctionalRegressor(kernel=make(1.0)), grid, cv=FOLDS).fit(X, Y)
    plain = GridSearchCV(
        FunctionalRegressor(),
        {"kernel": [make(scale) for scale in scales], "alpha": ALPHAS},
        cv=FOLDS,
        scoring="neg_mean_squared_error",
    ).fit(X, Y)
    assert search.best_score_ == pytest.approx(plain.best_score_, rel=1e-9)
    best = make(search.best_params_["length_scale"])
    assert repr(search.best_estimator_.kernel) == repr(best)
    with pytest.raises(ValueError, match="length_scale is for kernels that have one"):
        clone(search).set_params(estimator__kernel="linear").fit(X, Y)


@pytest.mark.slow
def test_default_grids_follow_the_units():
    """Fits are equivariant with κ and ε in units of y and alpha in those of the kernels."""
    for loss, name in (("huber", "kappa"), ("squared_epsilon_insensitive", "epsilon")):
        search = PathSearchCV(FunctionalRegressor(loss), {"alpha": 3, name: 4}, cv=2)
        small = clone(search).fit(X, Y, theta=THETA)
        large = clone(search).fit(X, 1e4 * Y, theta=THETA)
        for key, factor in ((name, 1e4), ("alpha", 1.0)):
            one, other = (
                [params[key] for params in model.cv_results_["params"]] for model in (small, large)
            )
            np.testing.assert_allclose(np.multiply(factor, one), other, rtol=1e-12)
        np.testing.assert_allclose(
            1e8 * small.cv_results_["mean_test_score"],
            large.cv_results_["mean_test_score"],
            rtol=1e-3,
        )


@pytest.mark.parametrize(
    ("loss", "names"),
    [
        ("squared", {"alpha"}),
        ("huber", {"alpha", "kappa"}),
        ("squared_epsilon_insensitive", {"alpha", "epsilon"}),
        ("pinball", {"alpha"}),
    ],
)
def test_default_grids_have_what_the_loss_reads(loss, names):
    assert FunctionalRegressor(loss).default_grid() == dict.fromkeys(names, 10)
    if loss == "squared":
        search = PathSearchCV(FunctionalRegressor(loss), cv=2).fit(X, Y)
        assert len(search.cv_results_["params"]) == 10


@pytest.mark.slow
def test_weights_count_in_fit_and_score():
    weight = np.where(np.arange(N) % 4 == 0, 0.0, 2.0)
    kept = np.flatnonzero(weight)
    folds = [(np.arange(20), np.arange(20, 40)), (np.arange(20, 40), np.arange(20))]
    inner = [
        (np.searchsorted(kept, a[weight[a] > 0]), np.searchsorted(kept, b[weight[b] > 0]))
        for a, b in folds
    ]
    search = PathSearchCV(FunctionalRegressor("huber", 1), {"alpha": ALPHAS, "kappa": 3})
    weighted = clone(search).set_params(cv=folds)
    weighted.fit(X, Y, theta=THETA, sample_weight=weight)
    removed = clone(search).set_params(cv=inner).fit(X[kept], Y[kept], theta=THETA)
    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"],
        removed.cv_results_["mean_test_score"],
        rtol=1e-6,
    )


@pytest.mark.slow
def test_parallel_is_the_same():
    search = PathSearchCV(FunctionalRegressor("huber"), {"alpha": 2, "kappa": 3}, cv=3)
    one, two = clone(search).fit(X, Y), clone(search).set_params(n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


def test_kernels_are_evaluated_once_in_each_fold(monkeypatch):
    """One preparation for a fold and a width, and one for the final fit."""
    prepared, spectra = [], []
    original = FunctionalRegressor._prepared
    eigh = gram.eigh

    def counted(self, X, *data):
        prepared.append(len(X))
        return original(self, X, *data)

    def decomposed(matrix, **options):
        spectra.append(len(matrix))
        return eigh(matrix, **options)

    monkeypatch.setattr(FunctionalRegressor, "_prepared", counted)
    for design in (gram, plain):
        monkeypatch.setattr(design, "eigh", decomposed)
    grid = {"alpha": ALPHAS, "kappa": [1.0, 0.1]}
    search = PathSearchCV(FunctionalRegressor("huber"), grid, cv=FOLDS)
    search.fit(X, Y)
    assert prepared == [30] * 4 + [40]
    assert spectra == [30] * 4 + [40]


def test_scoring_is_that_of_scikit_learn():
    search = PathSearchCV(FunctionalRegressor(), {"alpha": ALPHAS}, cv=FOLDS, scoring="r2")
    search.fit(X, Y)
    still = FunctionalRegressor(learn=False)
    plain = GridSearchCV(still, {"alpha": ALPHAS}, cv=FOLDS, scoring="r2")
    plain.fit(X, Y)
    assert search.best_score_ == pytest.approx(plain.best_score_, rel=1e-9)


def test_fdatagrid_comes_back_in_kind():
    skfda = pytest.importorskip("skfda", reason="FDataGrid is of scikit-fda")
    curves = skfda.FDataGrid(data_matrix=Y, grid_points=THETA)
    search = PathSearchCV(FunctionalRegressor(), {"alpha": ALPHAS}, cv=3)
    given = clone(search).fit(X, curves)
    array = clone(search).fit(X, Y, theta=THETA)
    np.testing.assert_array_equal(given.predict(X).data_matrix[:, :, 0], array.predict(X))
    assert given.score(X, curves) == array.score(X, Y)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"param_grid": {"alpha": 0}}, "alpha'\\] must be a number of values >= 1"),
        ({"param_grid": {"alpha": 1e-3}}, "alpha'\\] must be a number of values >= 1"),
        ({"param_grid": {"alpha": [1.0, -1.0]}}, "alpha must be a finite number > 0"),
        ({"param_grid": {"kappa": [0.0]}}, "kappa must be a finite number > 0"),
        ({"param_grid": {"kappa": []}}, "kappa'\\] must be a sequence of one or more finite"),
        ({"param_grid": {"epsilon": [-1.0]}}, "epsilon must be a finite number >= 0"),
        ({"aggregation": "mode"}, "aggregation must be one of"),
        ({"estimator__loss": "cubic"}, "loss must be one of"),
        ({"estimator__norm": 0.5}, "norm must be a number >= 1"),
    ],
)
def test_bad_input(bad, message):
    search = PathSearchCV(FunctionalRegressor("huber")).set_params(**bad)
    with pytest.raises(ValueError, match=message):
        search.fit(X, Y)


def test_curves_and_rows_that_do_not_fit():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PathSearchCV(FunctionalRegressor(), {"alpha": 2}).fit(X, Y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        PathSearchCV(FunctionalRegressor(), {"alpha": 2}).fit(X, None)
    empty = np.where(np.arange(N)[:, None] == 7, NAN, Y)
    with pytest.raises(ValueError, match="observed at one point or more, got none for curve 7"):
        PathSearchCV(FunctionalRegressor(), {"alpha": 2}).fit(X, empty)


@pytest.mark.parametrize("levels", [[0.9, 0.1], [0.1, 0.9]])
def test_what_prepares_a_fold_is_that_of_its_own_parameters(levels):
    """Centers are quantiles of the level: scores are those of plain fits, in any order."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 1)), rng.exponential(size=(30, 5)).cumsum(axis=1)
    model = FunctionalRegressor("pinball", kernel=Gaussian(0.3), learn=False, alpha=1e-2)
    folds = KFold(3)
    found = PathSearchCV(model, {"level": levels}, cv=folds).fit(X, Y).cv_results_
    for number, params in enumerate(found["params"]):
        for k, (train, test) in enumerate(folds.split(X)):
            own = clone(model).set_params(**params).fit(X[train], Y[train])
            expected = own.search_score(X[test], Y[test])
            assert found[f"split{k}_test_score"][number] == pytest.approx(expected, abs=2e-3)
