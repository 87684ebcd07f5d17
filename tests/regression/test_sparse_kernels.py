"""Kernel regressors of sparse rows are those of the dense ones, and no array of these is made."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge as TheirRidge
from sklearn.svm import SVR as TheirSVR

import fenchel
from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.features import KernelRowLimits, KernelRows, Nystroem, PivotedCholesky
from fenchel.kernels import (
    Decomposable,
    DistanceQuantile,
    Gaussian,
    Linear,
    Matern,
    Polynomial,
    SparsePoints,
    WithRanks,
    resolve,
)
from fenchel.model_selection import PathSearchCV
from pairs import pairs

RNG = np.random.default_rng(0)
X = sparse.random_array((150, 20), density=0.2, rng=np.random.default_rng(1), format="csr")
X.data += 1.0
X = sparse.vstack([X, X[:5]], format="csr")  # rows that are equal
DENSE, N = X.toarray(), X.shape[0]
Y = DENSE[:, 0] - 2.0 * DENSE[:, 1] + np.sin(DENSE[:, 2]) + 0.1 * RNG.normal(size=N)
WEIGHT = np.where(np.arange(N) % 7 == 0, 0.0, RNG.uniform(0.5, 2.0, N))
NEW = sparse.random_array((30, 20), density=0.2, rng=np.random.default_rng(2), format="csr")
MODELS = {
    "ridge": KernelRidge(1e-2),
    "svr": SVR(alpha=1e-2, epsilon=0.1),
    "quantiles": QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-2),
    "expectiles": ExpectileRegressor([0.2, 0.8], alpha=1e-2),
}
KERNELS = [None, "linear", Gaussian(2.0), Gaussian("median"), Gaussian(), Matern(3.0)]
KERNELS += [Polynomial(2), Linear() + 0.5 * Gaussian(2.0)]


@pytest.mark.parametrize(
    ("name", "kernel", "features"), pairs(MODELS, KERNELS, ["auto", "kernel_rows"])
)
def test_the_model_is_that_of_the_dense_rows(name, kernel, features):
    model = MODELS[name].set_params(kernel=kernel, features=features, learn=False, tol=1e-9)
    for weight in (None, WEIGHT):
        dense = model.fit(DENSE, Y, weight)
        expected, primal = dense.predict(NEW.toarray()), dense.certificate_.primal
        np.testing.assert_allclose(dense.predict(NEW), expected, atol=1e-12)
        model.fit(X, Y, weight)
        assert model.certificate_.primal == pytest.approx(primal, rel=1e-8)
        assert model.certificate_.relative_gap <= 1e-9
        np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-6)
        np.testing.assert_allclose(model.predict(NEW.toarray()), model.predict(NEW), atol=1e-12)


@pytest.mark.parametrize("kernel", [Polynomial(2), Polynomial(3) + 1e6 * Linear()])
def test_polynomial_kernels_with_few_monomials(kernel):
    """Their features are the monomials, which are computed from dense rows."""
    rows, new = X[:, :4], NEW[:, :4]
    dense = KernelRidge(1e-2, kernel=kernel, learn=False).fit(rows.toarray(), Y)
    model = KernelRidge(1e-2, kernel=kernel, learn=False).fit(rows, Y)
    np.testing.assert_allclose(model.predict(new), dense.predict(new), atol=1e-6)


@pytest.mark.parametrize("kind", [sparse.csc_array, sparse.csr_matrix, sparse.coo_array])
def test_against_scikit_learn(kind):
    rows, new = kind(X), kind(NEW)
    theirs = TheirRidge(alpha=0.1, kernel="rbf", gamma=0.125).fit(rows, Y)
    ours = KernelRidge(0.1 / N, kernel=Gaussian(2.0), fit_intercept=False).fit(rows, Y)
    np.testing.assert_allclose(ours.predict(new), theirs.predict(new), atol=1e-8)
    theirs = TheirSVR(kernel="linear", C=0.5, epsilon=0.1, tol=1e-8).fit(rows, Y)
    ours = SVR(alpha=1.0 / (0.5 * N), epsilon=0.1, kernel="linear", tol=1e-9).fit(rows, Y)
    np.testing.assert_allclose(ours.predict(new), theirs.predict(new), atol=1e-4)


def test_rows_that_were_sparse_are_not_kept_for_importances():
    model = SVR().fit(X, Y)
    with pytest.raises(AttributeError, match="X was sparse"):
        _ = model.feature_importances_


@pytest.mark.slow
def test_leave_one_out_search_and_files(tmp_path):
    ours, dense = (KernelRidge(1e-2, kernel=Gaussian(2.0)).fit(rows, Y) for rows in (X, DENSE))
    np.testing.assert_allclose(ours.loo_residuals_, dense.loo_residuals_, atol=1e-9)
    fenchel.save(ours, tmp_path / "model.skops")
    for other in (fenchel.load(tmp_path / "model.skops"), pickle.loads(pickle.dumps(ours))):
        np.testing.assert_array_equal(other.predict(NEW), ours.predict(NEW))
    grid = {"alpha": [1e-1, 1e-2, 1e-3], "length_scale": [1.0, 4.0]}
    searches = [PathSearchCV(SVR(epsilon=0.1), grid).fit(rows, Y) for rows in (X, DENSE)]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    np.testing.assert_allclose(*scores, atol=1e-3)
    assert searches[0].best_params_ == searches[1].best_params_


@pytest.mark.slow
def test_rows_that_would_not_fit_as_an_array():
    """A million columns by 2000 rows: 16 GB."""
    random = np.random.default_rng(3)
    places = np.repeat(np.arange(2000), 20), random.integers(0, 1_000_000, 40_000)
    y = random.normal(size=2000)
    noise = sparse.csr_array((np.full(40_000, 0.1), places), (2000, 1_000_000))
    large = sparse.hstack([sparse.csr_array(y[:, None]), noise], format="csr")
    for kernel in ("linear", Gaussian("median")):
        model = KernelRidge(1e-4, kernel=kernel).fit(large[:1500], y[:1500])
        assert np.corrcoef(model.predict(large[1500:]), y[1500:])[0, 1] > 0.9
        assert model.certificate_.relative_gap <= 1e-6


@pytest.mark.parametrize(
    "rule",
    [
        *map(DistanceQuantile, (0.2, 0.9)),
        *(DistanceQuantile(0.5, standardize=unit) for unit in (True, "range")),
    ],
)
@pytest.mark.parametrize("repeats", [1, 10])
def test_length_scales_are_those_of_the_dense_rows(rule, repeats):
    rows, weight = sparse.vstack([X] * repeats), np.tile(WEIGHT, repeats)
    for own in (None, weight):
        found = resolve(Gaussian(rule), SparsePoints(rows), own).length_scale
        dense = resolve(Gaussian(rule), rows.toarray(), own).length_scale
        np.testing.assert_allclose(found, dense, rtol=1e-12)


@pytest.mark.parametrize("model", [SVR(alpha=1e-2), KernelRidge(1e-2)], ids=["svr", "ridge"])
def test_kernel_values_are_stored(model, monkeypatch):
    """They are not computed anew in each pass; of more rows than are stored, features are."""
    monkeypatch.setattr("fenchel.regression._base._SPARSE_ROWS", KernelRowLimits(100, 0))
    rough = Gaussian(0.1)
    assert model.set_params(kernel=rough).fit(X[:80], Y[:80]).feature_map_.stored
    many = model.fit(X, Y)
    assert isinstance(many.feature_map_, PivotedCholesky)
    np.testing.assert_allclose(many.predict(NEW), model.fit(DENSE, Y).predict(NEW), atol=1e-3)


def test_values_of_equal_and_of_near_rows():
    points = SparsePoints(X)
    assert (np.diag(points.squared_distances(points)) == 0.0).all()
    assert (Gaussian(1.0)(points)[-5:, :5].diagonal() == 1.0).all()
    moved = X.copy()
    moved.data *= 1.0 + 1e-9
    squares = points.squared_distances(SparsePoints(moved)).diagonal()
    np.testing.assert_allclose(squares, 1e-18 * points.squares, rtol=1e-5)
    np.testing.assert_array_equal(Linear()(points), Linear()(points).T)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SVR(kernel=WithRanks(Gaussian(1.0))), "X must be a dense array for the kernel WithRanks"),
        (SVR(kernel="precomputed"), "X must be a square Gram matrix"),
        (KernelRidge(kernel=lambda a, b: a @ b.T), "X must be a dense array for the kernel"),
        (
            SVR(kernel=Decomposable(Gaussian(1.0), [[1.0]])),
            "X must be a dense array for the kernel",
        ),
        (SVR(features=Nystroem(rank=10)), "features must be one of .* with sparse X"),
        (SVR(features=KernelRows(stored=False)), "features must be one of .* with sparse X"),
        (SVR(features="fourier"), "features must be one of .* with sparse X"),
    ],
)
def test_sentences(model, words):
    with pytest.raises((TypeError, ValueError), match=words):
        model.fit(X, Y)
