"""Output matrices of Markov chains against the matrices themselves."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.design import Gram
from fenchel.design.chain import chain_of

P = 40


def covariance(kind, seed=0):
    """Of a random chain, of one with negative correlations, of equal steps."""
    rng = np.random.default_rng(seed)
    scale = rng.uniform(0.1, 3.0, P)
    if kind == "equal":
        distances = np.abs(np.subtract.outer(np.arange(P), np.arange(P)))
        return np.exp(-0.03 * distances)
    low = -0.9 if kind == "signs" else 0.0
    ratios = rng.uniform(low, 0.999, P - 1)
    matrix = np.diag(scale**2)
    for j in range(P):
        for k in range(j + 1, P):
            matrix[j, k] = matrix[k, j] = scale[j] * scale[k] * np.prod(ratios[j:k])
    return matrix


@pytest.mark.parametrize("kind", ["random", "signs", "equal"])
def test_products_are_those_of_the_matrix(kind):
    matrix, rows = covariance(kind), np.random.default_rng(1).standard_normal((7, P))
    chain = chain_of(matrix)
    np.testing.assert_allclose(chain.times(rows), rows @ matrix, atol=1e-12 * np.abs(matrix).max())


@pytest.mark.parametrize("kind", ["random", "signs", "equal"])
def test_forms_are_those_of_the_matrix(kind):
    matrix, columns = covariance(kind), np.random.default_rng(3).standard_normal((P, 7))
    forms = np.einsum("ji,jk,ki->i", columns, matrix, columns)
    np.testing.assert_allclose(chain_of(matrix).forms(columns), forms, rtol=1e-11)


@pytest.mark.parametrize("kind", ["random", "signs", "equal"])
def test_smoothed_columns_solve_their_systems(kind):
    """c (c + B^-1)^-1 = (I + (c B)^-1)^-1 = (I + c B)^-1 c B."""
    matrix = covariance(kind)
    strengths = np.concatenate(([0.0], np.geomspace(1e-9, 1e9, 12)))
    columns = np.random.default_rng(2).standard_normal((P, len(strengths)))
    found = chain_of(matrix).smoother(strengths)(columns)
    for c, given, one in zip(strengths, columns.T, found.T, strict=True):
        system = np.eye(P) + c * matrix
        np.testing.assert_allclose(system @ one, c * matrix @ given, atol=1e-9 * (1.0 + c))


@pytest.mark.parametrize("change", [1e-9, -1e-9])
def test_what_is_no_chain_is_seen(change):
    matrix = covariance("equal")
    matrix[3, 30] += change
    matrix[30, 3] += change
    assert chain_of(matrix) is None


def test_neither_singular_nor_short_chains():
    assert chain_of(np.ones((P, P))) is None
    assert chain_of(np.diag(np.arange(P, dtype=float))) is None
    assert chain_of(covariance("equal")[:20, :20]) is None


def test_a_design_multiplies_with_the_matrix():
    matrix, rng = covariance("random"), np.random.default_rng(3)
    half = rng.standard_normal((9, 9))
    design = Gram(half @ half.T, np.linalg.cholesky(matrix))
    assert design.output_chain is not None
    push = rng.standard_normal((9, P))
    expected = half @ half.T @ push @ matrix
    np.testing.assert_allclose(design.image(push), expected, atol=1e-11 * np.abs(expected).max())
