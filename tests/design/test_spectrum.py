"""Eigenvectors of the matrix of tall features: orthonormal, and its own, at any condition."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.design import Plain, plain


def features_of(n, r, condition, seed=0):
    rng = np.random.default_rng(seed)
    left, _ = np.linalg.qr(rng.normal(size=(n, r)))
    right, _ = np.linalg.qr(rng.normal(size=(r, r)))
    return (left * np.geomspace(1.0, 1.0 / condition, r)) @ right


@pytest.mark.parametrize("unit", [1e-140, 1.0, 1e60])
@pytest.mark.parametrize("condition", [1.0, 1e4, 1e7, 1e9, 1e14])
@pytest.mark.parametrize(("n", "r"), [(60, 20), (400, 7), (50, 20)])
def test_vectors_are_orthonormal_and_those_of_the_matrix(n, r, condition, unit):
    features, weight = unit * features_of(n, r, condition), np.linspace(0.5, 2.0, n)
    values, vectors = Plain(features, np.eye(1)).spectrum(weight)
    assert np.abs(vectors.T @ vectors - np.eye(r)).max() <= 1e-13
    root = np.sqrt(weight / weight.sum())[:, None]
    matrix = (root * features / unit) @ (root * features / unit).T
    size = values.max() / unit**2
    assert size == pytest.approx(np.linalg.eigvalsh(matrix).max())
    found = (vectors * (values / unit**2)) @ vectors.T
    assert np.abs(found - matrix).max() <= 1e-13 * size


def test_features_that_are_zero_or_repeated_are_decomposed_too():
    features = features_of(90, 6, 10.0)
    features[:, 2] = features[:, 4]
    features[:, 5] = 0.0
    values, vectors = Plain(features, np.eye(1)).spectrum(np.ones(90))
    assert np.abs(vectors.T @ vectors - np.eye(6)).max() <= 1e-13
    assert np.abs((vectors * values) @ vectors.T - features @ features.T / 90).max() <= 1e-15


def test_tall_features_take_cholesky_factors_and_ill_conditioned_ones_do_not():
    assert plain._orthogonal(features_of(400, 7, 1e4))[1] is not None
    assert plain._orthogonal(features_of(400, 7, 1e12))[1] is None
    assert plain._orthogonal(features_of(20, 7, 1.0))[1] is None
