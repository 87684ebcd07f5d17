"""Least squares and ridge regression against their normal equations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge as ScikitRidge
from sklearn.model_selection import GridSearchCV

import fenchel
from fenchel import KernelRidge, LinearRegression, Ridge
from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm

BOTH = [LinearRegression(), Ridge(0.1)]
both = pytest.mark.parametrize("model", BOTH, ids=lambda m: type(m).__name__)
TALL, WIDE = (40, 6), (12, 30)
shapes = pytest.mark.parametrize("shape", [TALL, WIDE, (20, 20)], ids=["tall", "wide", "square"])


def data(shape, outputs=1, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=shape) + 2.0
    y = X @ random.normal(size=(shape[1], outputs)) + random.normal(size=(shape[0], outputs)) - 7.0
    return X, y if outputs > 1 else y[:, 0]


# --- least squares -------------------------------------------------------------------------


def test_normal_equations_with_weights():
    X, y = data(TALL, outputs=2)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, len(X))
    model = LinearRegression().fit(X, y, weight)
    residual = y - X @ model.coef_.T - model.intercept_
    augmented = np.column_stack([X, np.ones(len(X))])  # (11.10)
    assert np.abs(augmented.T @ (weight[:, None] * residual)).max() <= 1e-11
    assert model.coef_.shape == (2, 6)
    assert model.intercept_.shape == (2,)
    assert model.rank_ == 6
    scaled = np.sqrt(weight)[:, None] * (X - np.average(X, axis=0, weights=weight))
    np.testing.assert_allclose(model.singular_values_, linalg.svdvals(scaled), rtol=1e-12)


def test_pseudo_inverse_of_the_textbook():
    """(11.11) without offset; the textbook's X has columns for rows."""
    X, y = data(WIDE)
    model = LinearRegression(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, np.linalg.pinv(X.T @ X) @ X.T @ y, atol=1e-9)
    assert model.intercept_ == 0.0
    assert model.rank_ == 12


@pytest.mark.parametrize("shape", [WIDE, TALL])
def test_the_shortest_solution(shape):
    X, y = data(shape, seed=2)
    X = np.hstack([X, X[:, :2]])  # two columns twice
    model = LinearRegression().fit(X, y)
    rows, columns = shape
    assert model.rank_ == min(rows - 1, columns)
    # all other solutions of the normal equations are longer
    null = linalg.null_space(X - X.mean(axis=0), rcond=1e-12)
    assert null.shape[1] >= 2
    assert np.abs(null.T @ model.coef_).max() <= 1e-12 * np.linalg.norm(model.coef_)
    best = linalg.lstsq(np.column_stack([X, np.ones(rows)]), y)[0]
    fitted = np.column_stack([X, np.ones(rows)]) @ best
    np.testing.assert_allclose(model.predict(X), fitted, atol=1e-10)


def test_certificate_is_the_distance_from_the_optimum():
    X, y = data(TALL, outputs=2)
    model = LinearRegression().fit(X, y)
    found = model.certificate_
    residual = y - model.predict(X)
    assert found.primal == pytest.approx(0.5 * np.sum(residual**2) / len(X), rel=1e-13)
    assert 0.0 <= found.gap <= 1e-28
    assert found.feasibility <= 1e-14
    # for coefficients that are not optimal
    centred, target = X - X.mean(axis=0), y - y.mean(axis=0)
    length = GroupNorm(np.zeros(6, dtype=np.intp), 2.0, 2.0)
    problem = NormProblem(centred, target, len(X), length, 0.0)
    for size in (1e-3, 0.1, 2.0):
        W = model.coef_.T + size * np.random.default_rng(3).normal(size=(6, 2))
        residual = target - centred @ W
        found = problem.certify(W).certificate
        above = 0.5 * np.sum(residual**2) / len(X) - model.certificate_.primal
        assert found.gap == pytest.approx(above, rel=1e-9)
        assert found.dual == pytest.approx(model.certificate_.primal, rel=1e-9)


def test_large_means_cost_no_digits():
    X, y = data(TALL)
    shifted = LinearRegression().fit(X + 1e6, y)
    plain = LinearRegression().fit((X + 1e6) - 1e6, y)
    np.testing.assert_allclose(shifted.coef_, plain.coef_, rtol=1e-8)
    np.testing.assert_allclose(shifted.predict(X + 1e6), plain.predict((X + 1e6) - 1e6), atol=1e-8)


@pytest.mark.parametrize("value", [0.1, 1e6 + 0.1, 0.0])
def test_a_constant_column_gets_nothing(value):
    X, y = data(TALL)
    X[:, 2] = value
    weight = np.random.default_rng(4).uniform(0.1, 3.0, len(X))
    for model in BOTH:
        assert model.fit(X, y, weight).coef_[2] == 0.0
    assert LinearRegression().fit(X, y, weight).rank_ == 5


@both
def test_constant_targets(model):
    X, _ = data(TALL)
    model.fit(X, np.full(len(X), 0.1))
    np.testing.assert_array_equal(model.coef_, 0.0)
    assert model.intercept_ == pytest.approx(0.1, rel=1e-15)
    assert model.certificate_.relative_gap == 0.0


# --- ridge regression ----------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("outputs", [1, 3])
@shapes
def test_ridge_is_kernel_ridge_with_the_linear_kernel(shape, outputs, fit_intercept):
    X, y = data(shape, outputs)
    weight = np.random.default_rng(5).uniform(0.1, 3.0, len(X))
    model = Ridge(0.3, fit_intercept=fit_intercept).fit(X, y, weight)
    kernel = KernelRidge(0.3, kernel="linear", fit_intercept=fit_intercept).fit(X, y, weight)
    new = np.random.default_rng(6).normal(size=(9, shape[1]))
    np.testing.assert_allclose(model.predict(new), kernel.predict(new), rtol=1e-9, atol=1e-9)
    assert model.predict(new).shape == kernel.predict(new).shape
    assert model.certificate_.primal == pytest.approx(kernel.certificate_.primal, rel=1e-9)
    assert model.solved_in_ == ("primal" if shape == TALL else "dual")


@shapes
def test_ridge_in_the_scales_of_others(shape):
    X, y = data(shape, outputs=2)
    weight = np.random.default_rng(7).uniform(0.1, 3.0, len(X))
    alpha = 0.2
    model = Ridge(alpha).fit(X, y, weight)
    theirs = ScikitRidge(alpha * weight.sum()).fit(X, y, weight)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, rtol=1e-9)
    # the textbook: no offset, no weights; (11.14) and (11.18), whose X has columns for rows
    strength = alpha * len(X)
    model = Ridge(alpha, fit_intercept=False).fit(X, y)
    primal = np.linalg.solve(X.T @ X + strength * np.eye(shape[1]), X.T @ y)
    dual = X.T @ np.linalg.solve(X @ X.T + strength * np.eye(shape[0]), y)
    np.testing.assert_allclose(model.coef_, primal.T, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.coef_, dual.T, rtol=1e-8, atol=1e-10)


@shapes
def test_ridge_certificate_is_that_of_the_formula(shape):
    X, y = data(shape)
    alpha = 0.05
    model = Ridge(alpha).fit(X, y)
    loss = 0.5 * np.mean((y - model.predict(X)) ** 2)
    objective = 0.5 * alpha * model.coef_ @ model.coef_ + loss
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-12)
    assert abs(model.certificate_.relative_gap) <= 1e-12
    assert model.status_.converged


def test_tiny_alpha_with_more_columns_than_rows():
    """Where the matrix of rows is singular up to rounding, after centring."""
    X, y = data((10, 30), seed=8)
    model = Ridge(1e-16).fit(X, y)
    assert model.status_.converged
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, atol=1e-12)


def test_rounding_is_admitted():
    """A dual vector of doubles cannot prove more than this where columns are so nearly equal."""
    X, y = data(TALL, seed=8)
    X[:, 1] = X[:, 0] + 1e-6 * X[:, 1]
    y = np.random.default_rng(8).normal(size=len(y))
    with pytest.warns(ConvergenceWarning, match="increase alpha"):
        model = Ridge(1e-20).fit(X, y)
    assert model.certificate_.relative_gap > 1e-6
    free = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.predict(X), free.predict(X), atol=1e-8)


def test_ridge_tends_to_the_shortest_least_squares():
    X, y = data(WIDE, seed=9)
    shortest = LinearRegression().fit(X, y)
    np.testing.assert_allclose(Ridge(1e-8).fit(X, y).coef_, shortest.coef_, atol=1e-6)


# --- both ----------------------------------------------------------------------------------


@both
def test_weights_are_repetitions_and_zero_is_absence(model):
    X, y = data(TALL, outputs=2)
    weight = np.random.default_rng(10).integers(0, 4, len(X))
    by_weight = model.fit(X, y, weight)
    coef, value = by_weight.coef_, by_weight.certificate_.primal
    repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0))
    np.testing.assert_allclose(coef, repeated.coef_, rtol=1e-9, atol=1e-11)
    assert value == pytest.approx(repeated.certificate_.primal, rel=1e-10)


@both
def test_grid_search_and_names(model):
    pd = pytest.importorskip("pandas", reason="tables are those of pandas")
    X, y = data(TALL)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    grid = {"fit_intercept": [True, False]}
    search = GridSearchCV(model, grid, cv=3).fit(frame, y)
    assert search.best_params_ == {"fit_intercept": True}
    assert list(search.best_estimator_.feature_names_in_) == list("abcdef")


@both
def test_round_trip(model, tmp_path):
    X, y = data(TALL, outputs=2)
    model.fit(X, y)
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.certificate_ == model.certificate_
    assert same.status_ == model.status_


@both
def test_bad_input(model):
    X, y = data(TALL)
    with pytest.raises(ValueError, match=r"y must be at most 1e\+100.*1e\+160.*overflow"):
        model.fit(X, 1e160 * np.sign(y))
    with pytest.raises(ValueError, match=r"X must be at most 1e\+150"):
        model.fit(1e160 * np.sign(X), y)
    with pytest.raises(ValueError, match="sample_weight must have a positive entry"):
        model.fit(X, y, np.zeros(len(X)))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, -np.ones(len(X)))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 2.0, np.nan, X), y)


@pytest.mark.parametrize(("alpha", "error"), [(0.0, ValueError), ("1", TypeError)])
def test_bad_alpha(alpha, error):
    X, y = data(TALL)
    with pytest.raises(error, match=f"alpha must be a finite number > 0, got {alpha!r}"):
        Ridge(alpha).fit(X, y)


@pytest.mark.parametrize("alpha", [1e-4, 1e-8, 1e-12])
def test_small_strengths_cost_no_digits(alpha):
    """The coefficients are those solved for, and not rows times residuals over alpha."""
    random = np.random.default_rng(0)
    X = random.standard_normal((100, 4))
    y = X @ [1.0, 2.0, 3.0, 4.0] + random.standard_normal(100)
    rows, targets = X - X.mean(axis=0), y - y.mean()
    stacked = np.vstack([rows, np.sqrt(alpha * 100) * np.eye(4)])
    expected = np.linalg.lstsq(stacked, np.append(targets, np.zeros(4)), rcond=None)[0]
    np.testing.assert_allclose(Ridge(alpha).fit(X, y).coef_, expected, rtol=1e-13)


@pytest.mark.parametrize("power", [3, 7, 10, 30])
def test_columns_in_very_different_units(power):
    """Coefficients are those of columns of one unit, divided by the units."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=50)
    units = 10.0 ** np.array([-power, 0, power])
    expected, found = LinearRegression().fit(X, y), LinearRegression().fit(X * units, y)
    np.testing.assert_allclose(found.coef_ * units, expected.coef_, rtol=1e-12)
    assert found.certificate_.relative_gap <= 1e-12
