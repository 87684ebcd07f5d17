"""Quadratic forms of features, and their adjoint, in one pass over blocks of rows."""

from __future__ import annotations

import numpy as np

from fenchel._typing import FloatArray
from fenchel.design.rows import MOST_SUMS, RowBlocks


def quadratic_forms(features: FloatArray, factor: FloatArray) -> FloatArray:
    """Values φᵀ F Fᵀ φ = ‖Fᵀ φ‖² of rows with features φ (n, r), (n,)."""
    values = np.empty(len(features))

    def task(rows: slice) -> None:
        projected = np.dot(features[rows], factor)
        np.einsum("ij,ij->i", projected, projected, out=values[rows])

    RowBlocks(len(features), 2 * features.shape[1]).map(task)
    return values


def weighted_gram(features: FloatArray, weight: FloatArray) -> FloatArray:
    """Σ weight φ φᵀ, symmetric to the last digit."""

    def task(rows: slice) -> tuple[FloatArray]:
        own = features[rows]
        return (np.dot(own.T, weight[rows, None] * own),)

    n, r = features.shape
    (product,) = RowBlocks(n, 2 * r, MOST_SUMS // max(r * r, 1)).sum(task)
    return 0.5 * (product + product.T)
