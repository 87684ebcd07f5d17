"""Every feature map keeps its contract, for every kind of kernel."""

from __future__ import annotations

from inspect import isclass

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer

from fenchel import features
from fenchel.features import (
    Explicit,
    FeatureMap,
    KernelRows,
    Monomials,
    Nystroem,
    OperatorCholesky,
    PivotedCholesky,
    RandomFourier,
    Summands,
)
from fenchel.kernels import (
    Callable,
    Gaussian,
    IntegralGaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
)
from fenchel.testing import check_feature_map


def affine(X, Y):
    return X @ Y.T + 1.0


MAPS = [
    KernelRows(),
    KernelRows("laplacian"),
    PivotedCholesky(),
    PivotedCholesky("laplacian"),
    PivotedCholesky("laplacian", rank=10),
    PivotedCholesky(Gaussian(5.0), tol=1e-4),
    PivotedCholesky(Gaussian() + Linear()),
    Summands(Gaussian() + Linear() + Polynomial(2, 0.5, 2.0)),
    Monomials(Polynomial(3, 0.5, 2.0)),
    Monomials(Polynomial(2, offset=0.0)),
    PivotedCholesky("precomputed"),
    PivotedCholesky("precomputed", rank=7),
    PivotedCholesky(Callable(affine)),
    Nystroem(),
    Nystroem(Matern(), rank=20),
    Nystroem("laplacian", rank=1000),
    Nystroem(Polynomial(2), landmarks=np.eye(2)),
    Nystroem(rank=15, landmarks="kmeans"),
    Nystroem(Polynomial(2), rank=4, landmarks="kmeans"),
    Nystroem("precomputed", rank=20),
    Nystroem("precomputed", landmarks=[3, 1, 4]),
    RandomFourier(),
    RandomFourier(Laplacian(2.0), rank=31),
    RandomFourier("matern52", rank=1, random_state=3),
    Explicit(),
    Explicit(PolynomialFeatures(2)),
    Explicit(SplineTransformer(sparse_output=True)),
]


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_contract(mapping):
    check_feature_map(mapping)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (400, 1), (80, 12)])
@pytest.mark.parametrize(
    "mapping",
    [
        PivotedCholesky("laplacian"),
        PivotedCholesky("laplacian", rank=100),
        Nystroem(rank=50),
        RandomFourier(),
        Explicit(),
    ],
    ids=repr,
)
def test_contract_on_rows_of_any_shape(mapping, shape):
    """One row; fewer rows than features; ranks on both sides of a block of pivots."""
    check_feature_map(mapping, np.random.default_rng(0).standard_normal(shape))


def test_every_map_is_registered():
    public = [getattr(features, name) for name in features.__all__]
    classes = {each for each in public if isclass(each) and issubclass(each, FeatureMap)}
    classes -= {FeatureMap, OperatorCholesky}  # of matrices: see test_operator.py
    assert classes == {type(mapping) for mapping in MAPS}


def test_landmarks_that_are_centres_of_clusters():
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(c, 0.1, (40, 2)) for c in ([0, 0], [5, 0], [0, 300])])
    scaled = X / [1.0, 60.0]  # the last column in the units of the kernel
    mapping = Nystroem(Gaussian([1.0, 60.0]), rank=3, landmarks="kmeans").fit(X)
    centres = mapping.landmarks_ / [1.0, 60.0]
    nearest = np.square(scaled[:, None] - centres).sum(axis=2).argmin(axis=1)
    for k in range(3):
        np.testing.assert_allclose(centres[k], scaled[nearest == k].mean(axis=0), atol=1e-9)
    again = Nystroem(Gaussian([1.0, 60.0]), rank=3, landmarks="kmeans")
    again.fit(np.concatenate([X, X[::3]])[::-1])  # order and repeats play no part
    np.testing.assert_allclose(again.landmarks_, mapping.landmarks_, atol=1e-9)
    with pytest.raises(ValueError, match="landmarks must be None or row indices, got 'kmeans'"):
        Nystroem("precomputed", landmarks="kmeans").fit(np.eye(4))


def test_centres_of_clusters_of_curves():
    """Length scales of channels are not those of the columns."""
    X = np.random.default_rng(0).normal(size=(30, 6))
    kernel = IntegralGaussian([0.7, 2.0], n_channels=2)
    mapping = Nystroem(kernel, rank=8, landmarks="kmeans").fit(X)
    assert mapping.landmarks_.shape == (8, 6)
    assert mapping.kernel_error_ < 0.7
