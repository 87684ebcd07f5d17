"""Ridge on kernel rows by one factor in one array, and predictions without all kernel values."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.kernel_ridge import KernelRidge as ScikitRidge
from threadpoolctl import threadpool_limits

from fenchel import KernelRidge, QuantileRegressor
from fenchel.design import Gram
from fenchel.design.tiled import factor_lower
from fenchel.features import KernelRows, compacted
from fenchel.kernels import Gaussian, Matern
from fenchel.losses import Squared
from fenchel.model_selection import PathSearchCV
from fenchel.problem import Problem
from fenchel.solvers import ClosedForm

N, D, WIDTH, ALPHA = 300, 6, 1.2, 1e-3


def data(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_t(2, n)


def ridge(**options):
    return KernelRidge(options.pop("alpha", ALPHA), kernel=Gaussian(WIDTH), **options)


def test_dual_coefficients_of_scikit_learn():
    X, y = data()
    model = ridge(fit_intercept=False).fit(X, y)
    assert model.feature_map_.rank_ == N
    peer = ScikitRidge(alpha=ALPHA * N, kernel="rbf", gamma=0.5 / WIDTH**2).fit(X, y)
    assert_allclose(model.dual_coef_[:, 0], peer.dual_coef_, rtol=1e-9)
    new = data(500, seed=1)[0]
    assert_allclose(model.predict(new), peer.predict(new), rtol=1e-10, atol=1e-12)


def test_weights_and_intercept_of_the_linear_system():
    X, y = data()
    s = np.random.default_rng(2).uniform(0.1, 5.0, N)
    model = ridge().fit(X, y, sample_weight=s)
    K = Gaussian(WIDTH)(X)
    system = np.block(
        [
            [K + ALPHA * s.sum() * np.diag(1.0 / s), np.ones((N, 1))],
            [np.ones((1, N)), np.zeros((1, 1))],
        ]
    )
    solution = np.linalg.solve(system, np.append(y, 0.0))
    assert_allclose(model.dual_coef_[:, 0], solution[:-1], rtol=1e-8, atol=1e-11)
    assert_allclose(model.offset_[0], solution[-1], rtol=1e-9)
    assert abs(model.certificate_.relative_gap) < 1e-13


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_rows_left_out_by_the_factor_and_by_refits(weighted, fit_intercept):
    X, y = data(120)
    s = np.random.default_rng(3).uniform(0.1, 5.0, 120) if weighted else np.ones(120)
    model = ridge(fit_intercept=fit_intercept).fit(X, y, sample_weight=s)
    again = pickle.loads(pickle.dumps(model))  # which has no factor
    assert_allclose(model.loo_residuals_, again.loo_residuals_, rtol=1e-10)
    total = s.sum()
    for i in range(0, 120, 17):
        others = np.delete(np.arange(120), i)
        alpha = ALPHA * total / s[others].sum()  # alpha times the sum of all weights stays
        part = ridge(alpha=alpha, fit_intercept=fit_intercept)
        part.fit(X[others], y[others], sample_weight=s[others])
        expected = y[i] - part.predict(X[i : i + 1])[0]
        assert_allclose(model.loo_residuals_[i], expected, rtol=1e-8, atol=1e-10)


def test_one_factor_serves_the_fit_and_the_rows_left_out(monkeypatch):
    factored = []
    monkeypatch.setattr(
        "fenchel.design.factored.factor_lower",
        lambda matrix: factored.append(len(matrix)) or factor_lower(matrix),
    )
    X, y = data()
    model = ridge().fit(X, y)
    assert np.isfinite(model.loo_residuals_).all()
    assert factored == [N]


def test_each_of_two_models_has_its_own_residuals():
    X, y = data(150)
    models = [ridge().fit(X, y), ridge(alpha=1.0).fit(X, y)]
    alone = [ridge().fit(X, y).loo_residuals_, ridge(alpha=1.0).fit(X, y).loo_residuals_]
    models = [ridge().fit(X, y), ridge(alpha=1.0).fit(X, y)]
    for model, expected in zip(models, alone, strict=True):
        assert_allclose(model.loo_residuals_, expected, rtol=1e-10)
        assert_array_equal(model.loo_residuals_, model.loo_residuals_)


def test_prepared_rows_stay_what_they_are():
    X, y = data(150)
    model = ridge()
    prepared = model.prepare(X, y)
    before = prepared.inputs.features.copy()
    for alpha in (1e-2, 1e-4):
        model.set_params(alpha=alpha).fit_prepared(prepared)
        assert_array_equal(prepared.inputs.features, before)
        expected = ridge(alpha=alpha).fit(X, y)
        assert_allclose(model.dual_coef_, expected.dual_coef_, rtol=1e-9)
        assert_allclose(model.loo_residuals_, expected.loo_residuals_, rtol=1e-9)
    search = PathSearchCV(ridge(), {"alpha": [1e-2, 1e-3]}, cv=3).fit(X, y)
    assert np.isfinite(search.best_score_)


def test_a_matrix_that_is_given_stays_what_it_is():
    X, y = data(150)
    K = Gaussian(WIDTH)(X)
    before = K.copy()
    problem = Problem(Squared(), Gram(K, np.eye(1)), y[:, None], np.ones(150), ALPHA)
    solution = ClosedForm().solve(problem)
    assert_array_equal(K, before)
    assert problem.design.left_factor is None
    assert abs(solution.certificate.relative_gap) < 1e-14


@pytest.mark.parametrize("alpha", [1e-7, 1e12, 1e60, 1e250])
def test_strengths_beyond_reason(alpha):
    X, y = data(150)
    s = np.geomspace(1e-30, 1.0, 150)
    model = ridge(alpha=alpha).fit(X, y, sample_weight=s)
    assert abs(model.certificate_.relative_gap) < 1e-9
    if alpha > 1.0:
        assert_allclose(model.predict(X), np.average(y, weights=s), rtol=1e-6)


def test_one_array_of_that_size():
    X, y = data(1000)
    ridge().fit(X[:200], y[:200])
    tracemalloc.start()
    model = ridge().fit(X, y)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.feature_map_.rank_ == 1000
    assert most < 1.5 * 8 * 1000**2


def test_predictions_are_products_with_all_kernel_values():
    X, y = data(400)
    new = data(3000, seed=4)[0]
    model = QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-3, kernel=Matern(WIDTH)).fit(X, y)
    dual = model.dual_coef_ @ model.coupling_
    expected = Matern(WIDTH)(new, X[model.support_]) @ dual + model.offset_
    assert_allclose(model.predict(new), expected, rtol=1e-12, atol=1e-12)
    single = np.vstack([model.predict(row[None]) for row in new[:20]])
    assert_allclose(single, expected[:20], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("features", ["auto", "nystroem", "cholesky"])
def test_predictions_are_the_same_bits_for_any_number_of_threads(features):
    X, y = data(600)
    rank = None if features == "auto" else 300
    model = ridge(features=features, rank=rank, tol=1.0).fit(X, y)
    new = data(30_000, seed=5)[0]
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            found.append(model.predict(new))
    assert_array_equal(found[1], found[0])
    assert_array_equal(found[2], found[0])


@pytest.mark.parametrize("features", ["nystroem", "cholesky"])
@pytest.mark.parametrize("width", [0.8, 3.0, 10.0])
def test_predictions_by_landmarks_are_those_by_features(features, width, monkeypatch):
    X, y = data(900)
    given = []
    monkeypatch.setattr(
        "fenchel.regression._base.compacted",
        lambda *of_features: given.append(of_features) or compacted(*of_features),
    )
    model = KernelRidge(1e-4, kernel=Gaussian(width), features=features, rank=400, tol=1.0)
    model.fit(X, y)
    [(feature_map, weights)] = given
    new = data(2000, seed=6)[0]
    by_features = feature_map.transform(new) @ weights[:, 0] + model.offset_
    assert isinstance(model.feature_map_, KernelRows)
    rounding = 2 * np.finfo(float).eps * np.abs(model.weights_).sum()  # of each term of the sum
    assert rounding <= 1e-10 * np.abs(by_features).max()
    assert_allclose(model.predict(new), by_features, rtol=0, atol=rounding)


def test_rows_that_are_not_clean_are_looked_at_as_before():
    X, y = data(150)
    model = ridge().fit(X, y)
    expected = model.predict(X)
    assert_array_equal(model.predict(np.asfortranarray(X)), expected)
    assert_array_equal(model.predict(X.tolist()), expected)
    for bad, sentence in (
        (np.where(X[3, 2] == X, np.nan, X), "NaN"),
        (X[:, :3], "features"),
        (X[0], "2D"),
        (X[:0], "sample"),
    ):
        with pytest.raises(ValueError, match=sentence):
            model.predict(bad)
