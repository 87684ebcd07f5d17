"""Pivots are chosen by what rows hold: order, units, repeats and threads play no part."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from fenchel.features import OperatorCholesky, PivotedCholesky
from fenchel.kernels import Decomposable, Gaussian, Laplacian, Matern, SparsePoints


def clouds(n=400, d=3):
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(n // 2, d)), rng.standard_t(3, size=(n // 2, d))])


def lattice():
    return np.array(list(itertools.product(np.linspace(-1.0, 1.0, 20), repeat=2)))


def categories():
    return np.random.default_rng(3).integers(0, 3, (600, 6)).astype(float)


# columns one after the other, blocks of them, and up to the accuracy
CASES = {
    "few": (Gaussian(1.0), clouds(), 30),
    "many": (Matern(2.0, 1.5), clouds(), 150),
    "all": (Laplacian(1.0), clouds(), None),
    "symmetric": (Gaussian(0.2), lattice(), 40),
    "symmetric, many": (Matern(0.3, 1.5), lattice(), 200),
    "all distances equal": (Gaussian(0.01), lattice(), 120),
    "categories": (Gaussian(1.0), categories(), 60),
    "categories, many": (Laplacian(1.0), categories(), 300),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


@pytest.mark.parametrize("seed", range(3))
def test_order(case, seed):
    kernel, X, rank = case
    order = np.random.default_rng(seed).permutation(len(X))
    one = PivotedCholesky(kernel, rank=rank).fit(X)
    other = PivotedCholesky(kernel, rank=rank).fit(X[order])
    np.testing.assert_array_equal(other.landmarks_, one.landmarks_)


def test_repeats(case):
    kernel, X, rank = case
    counts = np.random.default_rng(1).integers(1, 4, len(X))
    one = PivotedCholesky(kernel, rank=rank).fit(X)
    other = PivotedCholesky(kernel, rank=rank).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_array_equal(other.landmarks_, one.landmarks_)


def test_units(case):
    kernel, X, rank = case
    d = X.shape[1]
    scales, shifts = np.geomspace(1e-3, 7e4, d), np.linspace(-0.01, 1e3, d)
    one = PivotedCholesky(kernel, rank=rank).fit(X)
    scaled = kernel.clone_with_theta(kernel.theta).set_params(
        length_scale=kernel.length_scale * scales
    )
    other = PivotedCholesky(scaled, rank=rank).fit(scales * X + shifts)
    np.testing.assert_allclose(
        (other.landmarks_ - shifts) / scales, one.landmarks_, atol=1e-7, rtol=0.0
    )


@pytest.mark.slow
def test_threads():
    X = np.random.default_rng(0).normal(size=(40_000, 10))
    found = []
    for number in (1, 2):
        with threadpool_limits(number):
            phi = PivotedCholesky(Gaussian(4.0), rank=70)
            found.append((phi.fit_transform(X), phi.pivots_))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("rank", [30, 150, None])
def test_given_gram_matrix(rank):
    X, kernel = clouds(), Matern(1.0, 0.5)
    order = np.random.default_rng(2).permutation(len(X))
    K = kernel(X)
    one = PivotedCholesky("precomputed", rank=rank).fit(K)
    other = PivotedCholesky("precomputed", rank=rank).fit(K[np.ix_(order, order)])
    np.testing.assert_array_equal(order[other.pivots_], one.pivots_)
    assert one.pivots_[0] == np.argmax(K.sum(axis=0))


@pytest.mark.parametrize("rank", [30, 150])
def test_sparse_rows(rank):
    X = sparse.random_array((500, 40), density=0.1, random_state=4).toarray()
    X[:, 0] = np.random.default_rng(5).uniform(0.5, 1.0, 500)  # no row is zero, or there twice
    order = np.random.default_rng(2).permutation(len(X))
    scales = np.geomspace(1e-2, 1e2, 40)
    one = PivotedCholesky(Gaussian(1.0), rank=rank).fit(SparsePoints(sparse.csr_array(X)))
    shuffled = SparsePoints(sparse.csr_array(X[order]))
    other = PivotedCholesky(Gaussian(1.0), rank=rank).fit(shuffled)
    np.testing.assert_array_equal(order[other.pivots_], one.pivots_)
    scaled = SparsePoints(sparse.csr_array(X * scales))
    other = PivotedCholesky(Gaussian(scales), rank=rank).fit(scaled)
    np.testing.assert_array_equal(other.pivots_, one.pivots_)
    sizes = (X / X.max(axis=0)) ** 2
    assert one.pivots_[0] == np.argmin(sizes.sum(axis=1))


@pytest.mark.parametrize("rank", [30, 150])
def test_operator_kernels(rank):
    X = clouds()
    order = np.random.default_rng(2).permutation(len(X))
    kernel = Decomposable(Gaussian(0.5), np.eye(3))
    one = OperatorCholesky(kernel, rank=rank).fit(X)
    other = OperatorCholesky(kernel, rank=rank).fit(X[order])
    np.testing.assert_array_equal(other.landmarks_, one.landmarks_)
    np.testing.assert_array_equal(other.outputs_, one.outputs_)


def test_the_first_pivot_is_the_row_nearest_to_the_mean_in_units_of_deviations():
    X = clouds() * [1.0, 100.0, 0.01]
    first = PivotedCholesky(Gaussian([1.0, 100.0, 0.01]), rank=1).fit(X).pivots_[0]
    off = (X - X.mean(axis=0)) / X.std(axis=0)
    assert first == np.argmin((off**2).sum(axis=1))


def test_of_many_rows_the_first_pivot_is_near_the_middle_too():
    X = np.exp(np.random.default_rng(0).normal(size=(20_000, 3)))
    first = X[PivotedCholesky(Gaussian(1.0), rank=1).fit(X).pivots_[0]]
    assert np.abs((first - X.mean(axis=0)) / X.std(axis=0)).max() < 0.2


def test_of_rows_at_equal_distances_the_first_pivot_is_the_least():
    corners = np.array(list(itertools.product([1.0, -1.0], repeat=3)))
    phi = PivotedCholesky(Gaussian(1.0), rank=1).fit(corners)
    np.testing.assert_array_equal(phi.landmarks_, [[-1.0, -1.0, -1.0]])


@pytest.mark.parametrize("size", [1.5e308, 1e-320])
def test_numbers_at_the_ends_of_their_range(size):
    X = size * np.array([[-1.0], [1.0], [0.0], [0.5]])
    phi = PivotedCholesky(Gaussian(size / 3), rank=1).fit(X)
    np.testing.assert_array_equal(phi.landmarks_, [[0.0]])
