"""Fits with a limited rank depend neither on the order of rows nor on units, in memory or not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.kernels import Gaussian, Linear

MODELS = {
    "ridge": KernelRidge(rank=50, alpha=1e-3),
    "quantiles": QuantileRegressor([0.1, 0.5, 0.9], rank=50, alpha=1e-3, tol=1e-9),
    "expectiles": ExpectileRegressor([0.2, 0.8], rank=50, alpha=1e-3, tol=1e-9),
    "SVR": SVR(rank=50, alpha=1e-3, epsilon=0.1, tol=1e-9),
    "blocks": KernelRidge(rank=100, alpha=1e-3),
}


def table(n=250, d=5):
    rng = np.random.default_rng(1)
    X = np.exp(0.5 * rng.normal(size=(n, d)))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    return X, y, np.exp(0.5 * rng.normal(size=(40, d)))


def predicted(model, X, y, new):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of what few features leave out
        return clone(model).fit(X, y).predict(new)


def same(found, expected, share=1e-6):
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=share * np.std(expected))


@pytest.mark.parametrize("name", MODELS)
def test_neither_order_nor_units(name):
    order_and_units(name, learn=False)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) for name in ("expectiles", "SVR")]
    + ["ridge", "quantiles", "blocks"],
)
def test_neither_order_nor_units_of_what_is_learned(name):
    order_and_units(name, learn=True)


def order_and_units(name, learn):
    X, y, new = table()
    model = clone(MODELS[name]).set_params(learn=learn)
    expected = predicted(model, X, y, new)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(X))
        same(predicted(model, X[order], y[order], new), expected)
    scales, shifts = np.geomspace(1e-3, 7e4, X.shape[1]), np.linspace(-1.0, 30.0, X.shape[1])
    same(predicted(model, scales * X + shifts, y, scales * new + shifts), expected)


@pytest.mark.parametrize("name", MODELS)
def test_a_weight_is_a_repetition(name):
    X, y, new = table()
    weight = np.random.default_rng(2).integers(1, 4, len(X))
    model = clone(MODELS[name]).set_params(learn=False)
    twice = predicted(model, np.repeat(X, weight, axis=0), np.repeat(y, weight), new)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        same(clone(model).fit(X, y, sample_weight=weight).predict(new), twice)


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "gaussian", Linear() + Gaussian(1.0)])
@pytest.mark.parametrize("given", [KernelRidge(), SVR("huber"), KernelRidge(rank=5)])
def test_alpha_by_rule_is_that_of_repeated_rows(given, kernel):
    """Of squares half a thousandth of the mean of k(x, x), or what an offset leaves of it."""
    X, y, _ = table(60)
    weight = np.random.default_rng(2).integers(0, 4, len(X))
    model = clone(given).set_params(kernel=kernel, learn=False)
    times = np.repeat(np.arange(len(X)), weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        once = clone(model).fit(X, y, sample_weight=weight)
        twice = clone(model).fit(X[times], y[times])
    assert once.alpha_ == pytest.approx(twice.alpha_, rel=1e-9)
    if isinstance(given, KernelRidge) and given.rank is None:
        gram = once.kernel_(X[times])
        taken = 0.0 if once.kernel_.is_stationary() else gram.mean()
        assert once.alpha_ == pytest.approx(0.5e-3 * (gram.diagonal().mean() - taken), rel=1e-6)


def test_rows_of_a_file_have_the_landmarks_of_rows_in_memory(tmp_path):
    X, y, _ = table()
    order = np.random.default_rng(3).permutation(len(X))
    np.save(tmp_path / "X.npy", X[order])
    np.save(tmp_path / "y.npy", y[order])
    for name in ("ridge", "blocks"):
        model = clone(MODELS[name]).set_params(learn=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            expected = clone(model).fit(X, y).feature_map_.landmarks_
            found = clone(model).fit(tmp_path / "X.npy", tmp_path / "y.npy")
        np.testing.assert_array_equal(found.feature_map_.landmarks_, expected)
