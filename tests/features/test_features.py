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
from fenchel.kernels import Callable, Gaussian, Laplacian, Linear, Matern, Polynomial
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
