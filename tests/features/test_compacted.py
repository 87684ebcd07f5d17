"""What fitted models keep of their features: no factor that predictions do not need."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from fenchel import ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.features import KernelRows, PivotedCholesky, compacted
from fenchel.kernels import Matern

N = 400
KERNEL = Matern(0.3, 0.5)
MODELS = {
    "coupled levels": QuantileRegressor([0.1, 0.5, 0.9], kernel=KERNEL, alpha=1e-3),
    "one expectile": ExpectileRegressor(0.8, kernel=KERNEL, alpha=1e-3, features="cholesky"),
    "landmarks": QuantileRegressor(
        0.5, kernel=KERNEL, alpha=1e-3, features="nystroem", rank=300, tol=0.1, random_state=0
    ),
    "ridge": KernelRidge(kernel=KERNEL, alpha=1e-3, features="cholesky"),
}


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.uniform(size=(N, 3))
    return X, np.sin(6 * X[:, 0]) + random.standard_normal(N)


@pytest.fixture(scope="module")
def fits(data):
    return {name: model.fit(*data) for name, model in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_no_factor_is_kept(name, data, fits):
    model = fits[name]
    assert isinstance(model.feature_map_, KernelRows)
    assert len(pickle.dumps(model)) < 0.1 * 8 * N**2  # bytes of a factor
    copied = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copied.predict(data[0]), model.predict(data[0]))


@pytest.mark.parametrize("name", ["coupled levels", "one expectile", "ridge"])
def test_predictions_are_the_function_that_was_found(name, data, fits):
    X, model = data[0], fits[name]
    new = np.random.default_rng(1).uniform(size=(50, 3))
    values = model.kernel_(new, X[model.support_]) @ model.dual_coef_ @ model.coupling_
    expected = (values + model.offset_).reshape(model.predict(new).shape)
    # the kernel was factored to 1e-10 of its diagonal
    assert model.predict(new) == pytest.approx(expected, rel=0.0, abs=1e-8)


def test_coefficients_that_lose_digits_are_not_used():
    X = np.random.default_rng(0).uniform(size=(N, 3))
    feature_map = PivotedCholesky(KERNEL).fit(X)
    alternating = feature_map.factor_.T @ np.where(np.arange(N) % 2, 1.0, -1.0)[:, None]
    assert compacted(feature_map, alternating)[0] is not feature_map
    near = PivotedCholesky(Matern(30.0, 1.5), tol=1e-14).fit(X)
    huge = np.zeros((near.rank_, 1))
    huge[-1] = 1.0  # what the last landmark adds to the others
    assert near.rank_ > 256
    assert compacted(near, huge)[0] is near


def test_rows_are_left_out_as_before(data, fits):
    X, y = data
    model = fits["ridge"]
    gram = model.kernel_(X)
    smoother = np.linalg.inv(gram + N * model.alpha * np.eye(N))
    correction = smoother - np.outer(smoother.sum(1), smoother.sum(0)) / smoother.sum()
    expected = (correction @ y) / np.diag(correction)
    unread = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    with pytest.raises(AttributeError, match="read it before the model is stored"):
        _ = unread.loo_residuals_
    assert model.loo_residuals_ == pytest.approx(expected, rel=0.0, abs=1e-7)
    read = pickle.loads(pickle.dumps(model))
    assert np.array_equal(read.loo_residuals_, model.loo_residuals_)
