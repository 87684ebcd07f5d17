"""Linear models of sparse rows are those of the dense ones, and no array of these is made."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Lasso as TheirLasso

from fenchel import GroupLasso, Lasso, LinearRegression, Ridge
from fenchel.design import SparseRows
from fenchel.model_selection import LassoCV

RNG = np.random.default_rng(0)
X = sparse.random_array((80, 12), density=0.3, rng=np.random.default_rng(1), format="csr")
X.data += 1.0
DENSE = X.toarray()
Y = DENSE[:, 0] - 2.0 * DENSE[:, 1] + 0.3 * RNG.normal(size=80) + 5.0
Y2 = np.column_stack([Y, DENSE[:, 2] + 0.1 * RNG.normal(size=80)])
WEIGHT = RNG.uniform(0.1, 2.0, 80)
LISTS = [[0, 1, 2, 3], [3, 4, 5], [6, 7, 8, 9, 10, 11]]
MODELS = {
    "least squares": LinearRegression(),
    "ridge": Ridge(0.05),
    "lasso": Lasso(0.05, tol=1e-10),
    "lasso, bounded": Lasso(radius=1.0, tol=1e-10),
    "groups": GroupLasso(np.arange(12) // 3, 0.05, tol=1e-10),
    "groups that overlap": GroupLasso(LISTS, 0.05, group_weights="size", tol=1e-10),
    "groups, bounded": GroupLasso(np.arange(12) // 3, radius=1.0, q=np.inf, tol=1e-10),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("targets", [Y, Y2], ids=["one", "two"])
@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_that_of_the_dense_rows(name, targets, fit_intercept, weighted):
    weight = np.where(np.arange(80) % 7 == 0, 0.0, WEIGHT) if weighted else None
    model = MODELS[name].set_params(fit_intercept=fit_intercept)
    dense = model.fit(DENSE, targets, weight)
    coef, intercept, primal = dense.coef_, dense.intercept_, dense.certificate_.primal
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        model.fit(kind(X), targets, weight)
        np.testing.assert_allclose(model.coef_, coef, atol=2e-5)
        np.testing.assert_allclose(model.intercept_, intercept, atol=1e-4)
        assert model.certificate_.primal == pytest.approx(primal, rel=1e-8)
        assert model.certificate_.relative_gap <= 1e-8
        assert model.status_.converged
        np.testing.assert_allclose(model.predict(X), model.predict(DENSE), atol=1e-12)
    # the objective by definition
    used = np.ones(80) if weight is None else weight
    loss = 0.5 * used @ ((targets - model.predict(X)) ** 2).reshape(80, -1).sum(axis=1)
    bounded = getattr(model, "radius", None) is not None
    if name == "lasso":
        loss += 0.05 * np.abs(model.coef_).sum() * used.sum()
    if name in ("lasso", "least squares") or bounded:
        assert model.certificate_.primal == pytest.approx(loss / used.sum(), rel=1e-9)


def test_scikit_learn():
    ours, theirs = Lasso(0.05, tol=1e-10).fit(X, Y), TheirLasso(0.05, tol=1e-12).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    weighted = TheirLasso(0.05, tol=1e-12).fit(X, Y, WEIGHT)
    np.testing.assert_allclose(ours.fit(X, Y, WEIGHT).coef_, weighted.coef_, atol=1e-6)


@pytest.mark.slow
def test_rows_that_would_not_fit_as_an_array():
    """200 000 columns by 20 000 rows: 32 GB, of which a millionth is stored."""
    random = np.random.default_rng(2)
    shape, stored = (20_000, 200_000), 60_000
    places = random.integers(0, shape[0], stored), random.integers(0, shape[1], stored)
    large = sparse.csr_array((random.normal(size=stored), places), shape)
    first = np.asarray(np.argsort(-np.diff(large.tocsc().indptr))[:3])
    y = np.asarray(large[:, first].sum(axis=1)).ravel() + 1.0
    model = Lasso(1e-6).fit(large, y)
    assert set(first) <= set(model.selected_)
    assert model.certificate_.relative_gap <= 1e-6
    with pytest.raises(ValueError, match=r"X must have at most .* for Ridge, .* keep"):
        Ridge().fit(large, y)


def test_a_search_over_sparse_rows():
    ours = LassoCV(5).fit(X, Y)
    dense = LassoCV(5).fit(DENSE, Y)
    assert ours.alpha_ == pytest.approx(dense.alpha_)
    np.testing.assert_allclose(ours.coef_, dense.coef_, atol=1e-3)


def test_leave_one_out_of_sparse_rows():
    np.testing.assert_allclose(
        Ridge(0.05).fit(X, Y).loo_residuals_, Ridge(0.05).fit(DENSE, Y).loo_residuals_
    )


def test_products_with_sparse_rows():
    means, root = DENSE.mean(axis=0), np.sqrt(WEIGHT)[:, None]
    rows, whole = SparseRows(X.tocsc(), means, root), root * (DENSE - means)
    for other in (RNG.normal(size=12), RNG.normal(size=(12, 3))):
        np.testing.assert_allclose(rows @ other, whole @ other)
    for other in (RNG.normal(size=80), RNG.normal(size=(80, 3))):
        np.testing.assert_allclose(rows.T @ other, whole.T @ other)
    assert rows.shape == rows.T.T.shape == (80, 12)
    assert rows.T.shape == (12, 80)
    columns, scales = np.array([3, 3, 5]), np.array([1.0, 2.0, 0.5])
    copied = rows.copies(columns, scales)
    np.testing.assert_allclose(copied @ np.eye(3), whole[:, columns] / scales)


@pytest.mark.parametrize("model", [Lasso(), Ridge()], ids=["lasso", "ridge"])
def test_sentences(model):
    bad = X.copy()
    bad.data[3] = np.nan
    with pytest.raises(ValueError, match=r"X .*NaN"):
        model.fit(bad, Y)
    with pytest.raises(ValueError, match="y must have one entry for each of the 80 rows"):
        model.fit(X, Y[1:])
    model.fit(X, Y)
    with pytest.raises(ValueError, match="X has 11 features"):
        model.predict(X[:, :11])
