"""Linear models that choose their strength, against plain searches and scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, KFold

import fenchel
from fenchel import GroupLasso, Lasso, Ridge
from fenchel.model_selection import GroupLassoCV, LassoCV, PathSearchCV, RidgeCV
from fenchel.solvers import LassoDescent

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 8)) + 3.0
Y = X[:, 0] - 2.0 * X[:, 1] + 0.5 * RNG.normal(size=60)
Y2 = np.column_stack([Y, X[:, 2]])
WEIGHT = RNG.uniform(0.2, 2.0, 60)
ALPHAS = np.geomspace(1.0, 1e-3, 7)
FOLDS = KFold(4, shuffle=True, random_state=1)
GROUPS = [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("named", "plain"),
    [
        (LassoCV(ALPHAS, cv=FOLDS), Lasso()),
        (GroupLassoCV(GROUPS, ALPHAS, group_weights="size", cv=FOLDS), None),
        (RidgeCV(ALPHAS, cv=FOLDS), Ridge()),
    ],
    ids=["lasso", "groups", "ridge"],
)
def test_equals_grid_search(named, plain):
    plain = GroupLasso(GROUPS, group_weights="size") if plain is None else plain
    theirs = GridSearchCV(
        plain, {"alpha": ALPHAS[::-1]}, cv=FOLDS, scoring="neg_mean_squared_error"
    ).fit(X, Y)
    ours = named.fit(X, Y)
    assert ours.best_params_ == theirs.best_params_
    known = dict(zip(ALPHAS[::-1], theirs.cv_results_["mean_test_score"], strict=True))
    for params, score in zip(
        ours.cv_results_["params"], ours.cv_results_["mean_test_score"], strict=True
    ):
        assert score == pytest.approx(known[params["alpha"]], abs=1e-5)
    np.testing.assert_allclose(ours.coef_, theirs.best_estimator_.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    assert ours.certificate_.relative_gap <= 1e-6


def test_lasso_of_scikit_learn():
    theirs = linear_model.LassoCV(alphas=ALPHAS, cv=FOLDS).fit(X, Y)
    ours = LassoCV(ALPHAS, cv=FOLDS).fit(X, Y)
    assert LassoCV(ALPHAS, cv=FOLDS, scoring="r2").fit(X, Y).alpha_ != ours.alpha_
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-2)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=0.1)
    mean = theirs.mse_path_.mean(axis=1)
    np.testing.assert_allclose(-ours.cv_results_["mean_test_score"], mean, rtol=1e-3)


def test_candidates_of_the_lasso_are_fitted_less_precisely(monkeypatch):
    """With more columns than rows, nearly all of the time went into the last digits."""
    used, descend = [], LassoDescent._descend

    def noted(self, problem, start, tol, *more):
        weights, sweeps = descend(self, problem, start, tol, *more)
        used.append((tol, sweeps))
        return weights, sweeps

    monkeypatch.setattr(LassoDescent, "_descend", noted)
    random = np.random.default_rng(0)
    rows = random.normal(size=(40, 60))
    y = rows[:, :3].sum(axis=1) + 0.5 * random.normal(size=40)
    found = LassoCV(20).fit(rows, y)
    assert [tol for tol, _ in used] == [1e-5] * 100 + [1e-6]
    n_sweeps = sum(sweeps for _, sweeps in used)
    used.clear()
    precise = LassoCV(20, tol=0.999e-6).fit(rows, y)
    assert n_sweeps < 0.7 * sum(sweeps for _, sweeps in used)
    assert found.alpha_ == pytest.approx(precise.alpha_)
    assert found.certificate_.relative_gap <= 1e-6


def test_the_chosen_strength_of_several_outputs_is_a_number():
    """A fit of several outputs has one for each, as radii need; these are the same."""
    ours = LassoCV(ALPHAS, cv=FOLDS).fit(X, Y2)
    assert ours.alpha_ == ours.best_params_["alpha"]
    np.testing.assert_array_equal(Lasso(ours.alpha_).fit(X, Y2).coef_, ours.coef_)
    bounded = PathSearchCV(Lasso(), {"radius": [1.0, 2.0]}, cv=FOLDS).fit(X, Y2)
    np.testing.assert_array_equal(bounded.alpha_, bounded.best_estimator_.alpha_)


def test_the_grid_of_the_lasso_begins_where_all_is_zero():
    model = LassoCV(5).fit(X, Y)
    alphas = [params["alpha"] for params in model.cv_results_["params"]]
    centred = X - X.mean(axis=0)
    assert alphas[0] == pytest.approx(np.abs(centred.T @ (Y - Y.mean())).max() / 60)
    spread = centred.std(axis=0)
    assert alphas[-1] == pytest.approx(1e-3 * spread.min() / spread.max() * alphas[0])
    assert len(Lasso(1.001 * alphas[0]).fit(X, Y).selected_) == 0
    assert len(Lasso(0.999 * alphas[0]).fit(X, Y).selected_) == 1


def test_strengths_of_the_lasso_reach_columns_in_small_units():
    """Which columns can enter does not depend on units, of dense and of sparse rows."""
    units = np.geomspace(1.0, 1e-4, 8)[[3, 7, 0, 1, 2, 4, 5, 6]]
    alone, mixed = LassoCV().fit(X, Y), LassoCV().fit(X * units, Y)
    assert {0, 1} <= set(mixed.best_estimator_.selected_)
    assert mixed.score(X * units, Y) == pytest.approx(alone.score(X, Y), abs=0.02)
    equal = (X - X.mean(axis=0)) / X.std(axis=0)  # scikit-learn's grid
    for rows in (equal, sparse.csr_array(equal)):
        ours = [params["alpha"] for params in LassoCV(7).fit(rows, Y).cv_results_["params"]]
        theirs = linear_model.LassoCV(alphas=7, cv=2).fit(equal, Y).alphas_
        np.testing.assert_allclose(ours, theirs)


def test_strengths_of_the_group_lasso_reach_groups_in_small_units():
    units = np.geomspace(1e-3, 1.0, len(np.unique(GROUPS)))[GROUPS]
    alone = GroupLassoCV(GROUPS).fit(X, Y)
    mixed = GroupLassoCV(GROUPS).fit(X * units, Y)
    assert set(alone.best_estimator_.selected_groups_) >= {0}
    assert mixed.score(X * units, Y) == pytest.approx(alone.score(X, Y), abs=0.02)


def without_each(model, X, Y, weight):
    """Residuals at models fitted without each row, alpha times the sum of weights kept."""
    left = np.empty_like(Y)
    for i in range(len(Y)):
        rest = np.arange(len(Y)) != i
        alpha = model.alpha * weight.sum() / weight[rest].sum()
        part = Ridge(alpha, fit_intercept=model.fit_intercept).fit(X[rest], Y[rest], weight[rest])
        left[i] = Y[i] - part.predict(X[i : i + 1])[0]
    return left


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n", [60, 7], ids=["tall", "wide"])
@pytest.mark.parametrize("targets", [Y, Y2], ids=["one", "two"])
def test_residuals_without_each_row(targets, n, fit_intercept):
    X_, Y_, weight = X[:n], targets[:n], WEIGHT[:n]
    model = Ridge(0.1, fit_intercept=fit_intercept).fit(X_, Y_, weight)
    expected = without_each(model, X_, Y_, weight)
    np.testing.assert_allclose(model.loo_residuals_, expected, atol=1e-9)
    squares = np.mean(expected.reshape(n, -1) ** 2, axis=1)
    assert model.loo_error_ == pytest.approx(np.average(squares, weights=weight))
    chosen = RidgeCV([0.1, 10.0], fit_intercept=fit_intercept).fit(X_, Y_, sample_weight=weight)
    scores = dict(
        zip(
            [p["alpha"] for p in chosen.cv_results_["params"]],
            chosen.cv_results_["mean_test_score"],
            strict=True,
        )
    )
    assert -scores[0.1] == pytest.approx(model.loo_error_)


def test_rows_of_weight_zero_take_part_in_no_fit():
    weight = np.where(np.arange(60) % 5 == 0, 0.0, 1.0)
    model = Ridge(0.1).fit(X, Y, weight)
    kept = weight > 0.0
    np.testing.assert_allclose(
        model.loo_residuals_[kept], Ridge(0.1).fit(X[kept], Y[kept]).loo_residuals_
    )
    np.testing.assert_allclose(model.loo_residuals_[~kept], (Y - model.predict(X))[~kept])


def test_files_hold_no_rows(tmp_path):
    model = Ridge(0.1).fit(X, Y)
    fenchel.save(model, tmp_path / "model")
    for other in (pickle.loads(pickle.dumps(model)), fenchel.load(tmp_path / "model")):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        with pytest.raises(AttributeError, match="loo_residuals_ needs the rows of the fit"):
            _ = other.loo_residuals_
    known = model.loo_residuals_
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).loo_residuals_, known)


def test_ridge_of_scikit_learn():
    """Theirs leaves rows out at the same alpha, and so does ours: alpha n is what both keep."""
    theirs = linear_model.RidgeCV(alphas=60 * ALPHAS).fit(X, Y)
    ours = RidgeCV(ALPHAS).fit(X, Y)
    assert ours.alpha_ * 60 == pytest.approx(theirs.alpha_)
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)


def test_strengths_of_ridge_reach_columns_in_small_units():
    """A column in large units that says nothing leaves the others to be found."""
    large = np.random.default_rng(1).normal(size=60) * 1e4
    alone, beside = RidgeCV().fit(X, Y), RidgeCV().fit(np.column_stack([X, large]), Y)
    assert beside.best_score_ == pytest.approx(alone.best_score_, rel=0.1)
    weakest = min(params["alpha"] for params in beside.cv_results_["params"])
    columns = np.column_stack([X, large])
    assert weakest == pytest.approx(1e-6 * 9 * columns.var(axis=0).min())
    same = [params["alpha"] for params in RidgeCV(3).fit(X[:, :1], Y).cv_results_["params"]]
    np.testing.assert_allclose(same, X[:, 0].var() * np.array([10.0, 10**-2.5, 1e-6]))


def test_radii_along_a_path():
    search = PathSearchCV(Lasso(), {"radius": [0.1, 1.0, 3.0, 10.0]}, cv=FOLDS).fit(X, Y)
    theirs = GridSearchCV(Lasso(), {"radius": [0.1, 1.0, 3.0, 10.0]}, cv=FOLDS).fit(X, Y)
    assert search.best_params_ == theirs.best_params_
    with pytest.raises(ValueError, match=r"param_grid\['radius'\] must be a sequence of numbers"):
        PathSearchCV(Lasso(), {"radius": 4}).fit(X, Y)


def test_a_constant_target():
    for model in (LassoCV(3), GroupLassoCV(None, 3), RidgeCV(3)):
        model.fit(X, np.full(60, 2.0))
        np.testing.assert_allclose(model.predict(X), 2.0)


@pytest.mark.parametrize("weights", [None, WEIGHT])
@pytest.mark.parametrize("targets", [Y, Y[:, None], Y2, list(Y), np.round(Y).astype(int)])
def test_squares_are_those_of_the_scorer_of_scikit_learn(targets, weights):
    scorer = get_scorer("neg_mean_squared_error")
    names = "neg_mean_squared_error", scorer
    ours, theirs = (
        PathSearchCV(Lasso(), {"alpha": ALPHAS}, cv=FOLDS, scoring=name).fit(
            X, targets, sample_weight=weights
        )
        for name in names
    )
    for k in range(4):
        name = f"split{k}_test_score"
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], rtol=1e-12)


def test_weights_may_be_given_by_position_as_to_scikit_learn():
    by_position = RidgeCV(ALPHAS, cv=FOLDS).fit(X, Y, WEIGHT)
    by_name = RidgeCV(ALPHAS, cv=FOLDS).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(by_position.coef_, by_name.coef_)
    assert not np.allclose(by_name.coef_, RidgeCV(ALPHAS, cv=FOLDS).fit(X, Y).coef_)
