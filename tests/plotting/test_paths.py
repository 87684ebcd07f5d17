"""Paths: scores, the one-standard-error choice and coefficients against their definitions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from fenchel import KernelRidge, Lasso, QuantileRegressor, lasso_path
from fenchel.datasets import load
from fenchel.model_selection import KernelRidgeCV, LassoCV, PathSearchCV
from fenchel.plotting import CoefficientPathDisplay, PathDisplay


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.uniform(size=(80, 1))
    return X, np.sin(6.0 * X[:, 0]) + 0.3 * random.normal(size=80)


@pytest.fixture(scope="module")
def boston():
    X, y = load("BostonHousing", return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize("selection", ["min", "one_standard_error"])
def test_scores_and_both_choices(data, ax, selection):
    model = PathSearchCV(KernelRidge(), {"alpha": 12}, cv=4, selection=selection).fit(*data)
    display = PathDisplay.from_estimator(model, ax=ax)
    results = model.cv_results_
    alphas = np.asarray(results["param_alpha"], dtype=float)
    folds = np.array([results[f"split{k}_test_score"] for k in range(4)])
    np.testing.assert_allclose(display.line_.get_xdata(), alphas[::-1])
    np.testing.assert_allclose(display.line_.get_ydata(), folds.mean(axis=0)[::-1])
    # the choices from the definition, one by one
    mean, error = folds.mean(axis=0), folds.std(axis=0, ddof=1) / 2.0
    best = max(range(12), key=lambda k: mean[k])
    simple = max(alphas[k] for k in range(12) if mean[k] >= mean[best] - error[best])
    assert display.best_alpha == alphas[best]
    assert display.one_standard_error_alpha == simple
    assert simple > alphas[best]
    wanted = {"min": alphas[best], "one_standard_error": simple}[selection]
    assert display.chosen_.get_xdata() == [wanted] == [model.alpha_]
    np.testing.assert_allclose(display.threshold_.get_ydata(), mean[best] - error[best])
    vertices = display.band_.get_paths()[0].vertices
    for k in range(12):
        at = vertices[np.isclose(vertices[:, 0], alphas[k], rtol=1e-9), 1]
        np.testing.assert_allclose([at.min(), at.max()], [mean[k] - error[k], mean[k] + error[k]])
    assert ax.get_xscale() == "log"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("alpha", "score, mean of 4 folds")


@pytest.mark.slow
def test_other_parameters_have_paths_of_their_own(data, ax):
    X, y = data
    grid = {"alpha": 4, "length_scale": [0.1, 0.5], "level_gamma": [1.0], "epsilon": [0.0, 0.1]}
    model = PathSearchCV(QuantileRegressor(0.5), grid, cv=3).fit(X, y)
    display = PathDisplay.from_estimator(model, ax=ax)
    assert len(display.paths) == 4
    assert len(display.others_) == 3
    mean = model.cv_results_["mean_test_score"].reshape(4, 4)  # alphas vary fastest
    for path, row in zip(display.paths, mean, strict=True):
        np.testing.assert_allclose(path.mean, row[::-1])
    assert display.best == model.best_index_ // 4
    title = ax.get_title(loc="left")
    assert f"length_scale = {model.best_params_['length_scale']:g}" in title
    assert f"epsilon = {model.best_params_['epsilon']:g}" in title
    assert "level_gamma" not in title  # it has not varied


def test_leave_one_out_has_no_error_of_folds(data, ax):
    model = PathSearchCV(KernelRidge(), {"alpha": 8}, scoring="loo").fit(*data)
    display = PathDisplay.from_estimator(model, ax=ax)
    assert display.band_ is display.threshold_ is display.one_standard_error_ is None
    assert display.one_standard_error_alpha is None
    assert display.chosen_.get_xdata() == [model.alpha_]
    assert ax.get_ylabel() == "minus the leave-one-out error"


def test_named_searches_say_what_their_default_scores_are(data, ax):
    PathDisplay.from_estimator(KernelRidgeCV(alphas=8).fit(*data), ax=ax)
    assert ax.get_ylabel() == "minus the leave-one-out error"
    PathDisplay.from_estimator(LassoCV(alphas=8).fit(*data), ax=ax)
    assert ax.get_ylabel().startswith("neg_mean_squared_error")


def test_a_choice_that_is_neither_is_marked_too(data, ax):
    rule = {"scoring": "loo", "selection": "one_standard_error"}
    model = PathSearchCV(KernelRidge(), {"alpha": 8}, **rule).fit(*data)
    display = PathDisplay.from_estimator(model, ax=ax)
    assert model.alpha_ != display.best_alpha
    assert display.chosen_.get_xdata() == [model.alpha_]


@pytest.mark.slow
def test_searches_of_scikit_learn(data, ax):
    alphas = [1e-4, 1e-1, 1e-2]
    search = GridSearchCV(KernelRidge(), {"alpha": alphas}, cv=3).fit(*data)
    display = PathDisplay.from_estimator(search, ax=ax)
    order = np.argsort(alphas)
    np.testing.assert_allclose(display.line_.get_xdata(), np.sort(alphas))
    np.testing.assert_allclose(
        display.line_.get_ydata(), search.cv_results_["mean_test_score"][order]
    )


def test_far_worse_scores_leave_the_picture(ax):
    results = {
        "params": [{"alpha": 10.0**-k} for k in range(6)],
        "mean_test_score": np.array([0.0, 0.4, 0.5, 0.3, -50.0, -900.0]),
        "split0_test_score": np.array([0.0, 0.3, 0.45, 0.3, -60.0, -990.0]),
        "split1_test_score": np.array([0.0, 0.5, 0.55, 0.3, -40.0, -810.0]),
    }
    search = SimpleNamespace(best_index_=2, cv_results_=results)
    display = PathDisplay.from_estimator(search, ax=ax)
    low, high = ax.get_ylim()
    assert -2.0 < low < 0.0
    assert 0.5 < high < 2.0
    np.testing.assert_allclose(display.line_.get_ydata()[0], -900.0)


@pytest.mark.slow
def test_bad_searches(data, ax):
    with pytest.raises(ValueError, match=r"have cv_results_, .* got KernelRidge"):
        PathDisplay.from_estimator(KernelRidge().fit(*data), ax=ax)
    search = GridSearchCV(KernelRidge(), {"tol": [1e-3, 1e-4]}, cv=2).fit(*data)
    with pytest.raises(ValueError, match="parameter must be one of tol, got None"):
        PathDisplay.from_estimator(search, ax=ax)
    with pytest.raises(ValueError, match="parameter must be one of tol, got 'alpha'"):
        PathDisplay.from_estimator(search, parameter="alpha", ax=ax)


@pytest.mark.slow
def test_coefficients_against_radius_are_solutions(boston, ax):
    X, y = boston
    path = lasso_path(X, y)
    display = CoefficientPathDisplay.from_path(path, ax=ax)
    lines = np.column_stack([line.get_ydata() for line in display.lines_])
    radii = display.lines_[0].get_xdata()
    middle = 0.5 * (radii[4] + radii[5])  # between knots, where the curve is straight
    drawn = [np.interp(middle, radii, lines[:, j]) for j in range(13)]
    np.testing.assert_allclose(drawn, Lasso(radius=middle, tol=1e-10).fit(X, y).coef_, atol=1e-5)


def test_coefficients_against_alpha_are_solutions(boston, ax):
    X, y = boston
    path = lasso_path(X, y)
    display = CoefficientPathDisplay.from_path(path, against="alpha", ax=ax)
    alphas = display.lines_[0].get_xdata()
    assert np.all(alphas > 0.0)
    assert np.all(np.diff(alphas) < 0.0)
    assert ax.get_xscale() == "log"
    for place in (7, 50, len(alphas) - 3):
        drawn = [line.get_ydata()[place] for line in display.lines_]
        exact = Lasso(alpha=float(alphas[place]), tol=1e-10).fit(X, y).coef_
        np.testing.assert_allclose(drawn, exact, atol=1e-5)
    left, right = ax.get_xlim()
    assert left > right  # the zero model on the left, as against the radius


def test_the_largest_coefficients_are_named_from_the_top(boston, ax):
    X, y = boston
    path = lasso_path(X, y)
    names = [f"column {j}" for j in range(13)]
    CoefficientPathDisplay.from_path(path, names, n_named=3, ax=ax)
    largest = sorted(range(13), key=lambda j: -abs(path.coefs[-1, j]))[:3]
    expected = [names[j] for j in sorted(largest, key=lambda j: -path.coefs[-1, j])]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [*expected, "10 others"]


def test_bad_paths(boston, ax):
    path = lasso_path(*boston)
    with pytest.raises(ValueError, match="feature_names must have 13 names, got 2"):
        CoefficientPathDisplay.from_path(path, ["a", "b"], ax=ax)
    with pytest.raises(ValueError, match=r"against must be one of .*, got 'lambda'"):
        CoefficientPathDisplay.from_path(path, against="lambda", ax=ax)
