"""The features of operator-valued kernels."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import WhiteKernel

from fenchel.features import Nystroem, OperatorCholesky, PivotedCholesky, base
from fenchel.kernels import (
    Decomposable,
    Gaussian,
    Laplacian,
    Linear,
    OperatorCallable,
    Transformable,
)

B = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]])
MAPS = [np.diag(scale) for scale in ([1.0, 0.5], [0.7, 0.7], [0.2, 1.3])]
SMOOTH = Decomposable(Gaussian(5.0), B) + Transformable(Gaussian(5.0), MAPS)
ROUGH = Decomposable(Laplacian(1.0), B) + Transformable(Laplacian(0.5), MAPS)


def rows(n, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, size=(n, 2))


def product(left, right):
    return np.einsum("ijr,klr->ikjl", left, right)


@pytest.mark.parametrize("kernel", [SMOOTH, ROUGH], ids=["smooth", "rough"])
def test_features_give_the_kernel(kernel):
    """The residual is positive, so it is nowhere larger than on the diagonal."""
    X = rows(60)
    phi = OperatorCholesky(kernel)
    features = phi.fit_transform(X)
    expected = kernel.blocks(X)
    assert features.shape == (60, 3, phi.rank_)
    left = expected - product(features, features)
    assert np.abs(left).max() <= 1.01e-10 * kernel.diag(X).max()
    assert phi.kernel_error_ <= 1e-10
    assert (phi.rank_ < 64) == (kernel is SMOOTH)  # one column at a time, and in blocks


def test_rank_of_a_decomposable_kernel_is_the_product():
    X = rows(50)
    low = Decomposable(Linear(), np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]))
    assert OperatorCholesky(low).fit(X).rank_ == 2
    assert OperatorCholesky(Decomposable(Linear(), B)).fit(X).rank_ == 6


def test_kernel_error_is_the_share_of_the_trace_that_is_left():
    X = rows(60)
    for rank in (10, 90):
        phi = OperatorCholesky(ROUGH, rank=rank)
        features = phi.fit_transform(X)
        assert phi.rank_ == rank
        left = ROUGH.diag(X).sum() - np.sum(features**2)
        np.testing.assert_allclose(phi.kernel_error_, left / ROUGH.diag(X).sum(), rtol=1e-8)


@pytest.mark.parametrize("kernel", [SMOOTH, ROUGH], ids=["smooth", "rough"])
def test_new_rows(kernel, monkeypatch):
    """On all rows the features are those of the projection on the pivots."""
    X, Z = rows(60), rows(30, 1)
    phi = OperatorCholesky(kernel, rank=50)
    features = phi.fit_transform(X)
    new = phi.transform(Z)
    np.testing.assert_allclose(phi.transform(X), features, atol=1e-9)
    at_pivots = kernel.columns(Z, phi.landmarks_, phi.outputs_)
    inner = kernel.columns(phi.landmarks_, phi.landmarks_, phi.outputs_)
    inner = inner[np.arange(phi.rank_), phi.outputs_]
    np.testing.assert_allclose(phi.factor_ @ phi.factor_.T, inner, atol=1e-12)
    np.testing.assert_allclose(new @ phi.factor_.T, at_pivots, atol=1e-12)
    np.testing.assert_array_equal(X[phi.pivots_ // 3], phi.landmarks_)
    weights = np.random.default_rng(0).normal(size=phi.rank_)
    np.testing.assert_allclose(
        at_pivots @ phi.coefficients(weights), new @ weights, atol=1e-10 * np.abs(weights).sum()
    )
    monkeypatch.setattr(base, "_CHUNK_VALUES", 7 * 3 * phi.rank_)  # seven rows at a time
    rounding = 64 * np.finfo(float).eps * np.abs(at_pivots).max() / phi.factor_.diagonal().min()
    np.testing.assert_allclose(phi.transform(Z), new, rtol=0, atol=rounding)


def test_no_square_array():
    X = rows(4000)
    kernel = Decomposable(Gaussian(2.0), B)
    tracemalloc.start()
    features = OperatorCholesky(kernel).fit_transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert features.shape[2] <= 200
    assert peak <= 0.25 * 12_000**2 * 8


def test_a_kernel_that_is_zero_has_no_features():
    X = np.zeros((5, 2))
    phi = OperatorCholesky(Transformable("linear", MAPS))
    assert phi.fit_transform(X).shape == (5, 3, 0)
    assert phi.kernel_error_ == 0.0
    assert phi.transform(rows(4)).shape == (4, 3, 0)


def signed(sign):
    def function(X, Z):
        k = np.exp(-np.sum((X[:, None] - Z) ** 2, axis=2))[:, :, None, None]
        return k * np.array([[1.0, sign[0]], [sign[1], 1.0]])

    return OperatorCallable(function, 2)


@pytest.mark.parametrize(
    "kernel",
    [
        signed((1.5, 1.5)),  # no positive output matrix
        signed((0.5, -0.5)),  # not symmetric
        OperatorCallable(lambda X, Z: -signed((0.0, 0.0)).function(X, Z), 2),
    ],
    ids=["indefinite", "asymmetric", "negative"],
)
@pytest.mark.parametrize("n", [1, 40, 1000])
def test_what_is_not_positive_is_refused(kernel, n):
    with pytest.raises(ValueError, match=r"must be symmetric, .* and is not"):
        OperatorCholesky(kernel).fit(rows(n))


@pytest.mark.parametrize("n", [40, 1000])
def test_what_no_pivot_sees_is_refused(n):
    """Zero on the diagonal of two outputs, but not between them."""

    def function(X, Z):
        k = np.exp(-np.sum((X[:, None] - Z) ** 2, axis=2))[:, :, None, None]
        return k * np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.5, 0.0]])

    with pytest.raises(ValueError, match="operator-valued kernel must be symmetric"):
        OperatorCholesky(OperatorCallable(function, 3)).fit(rows(n))


def test_rough_kernels_that_are_not_positive_are_refused():
    def function(X, Z):
        k = np.exp(-8.0 * np.linalg.norm(X[:, None] - Z, axis=2))[:, :, None, None]
        return k * np.array([[1.0, 0.5], [-0.5, 1.0]])

    with pytest.raises(ValueError, match="operator-valued kernel must be symmetric"):
        OperatorCholesky(OperatorCallable(function, 2)).fit(rows(100))


def test_noise_is_no_kernel_of_two_rows():
    kernel = Decomposable(Gaussian(1.0) + WhiteKernel(0.1), B)
    with pytest.raises(ValueError, match="must agree for equal rows"):
        OperatorCholesky(kernel).fit(rows(10))


def test_maps_refuse_the_other_kind_of_kernel():
    with pytest.raises(TypeError, match="kernel must be an OperatorKernel, got 'gaussian'"):
        OperatorCholesky("gaussian").fit(rows(10))
    for mapping in (PivotedCholesky(SMOOTH), Nystroem(SMOOTH)):
        with pytest.raises(TypeError, match="one number for each pair of rows, got OperatorSum"):
            mapping.fit(rows(10))


def test_clone_and_bad_parameters():
    phi = clone(OperatorCholesky(SMOOTH, rank=7))
    assert phi.fit(rows(20)).rank_ == 7
    for parameters in ({"tol": 2.0}, {"rank": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(parameters))} must be"):
            OperatorCholesky(SMOOTH, **parameters).fit(rows(10))
