"""Gradients of squares of features by differences, where a kernel knows none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fenchel._typing import FloatArray

_SAME = 0.9  # cosine of features that a first step leaves
_HALVINGS = 200  # of the first step: widths from the size of a row down to nothing
_LEVELS = 8  # of extrapolation


def gradient_by_differences(
    features: Callable[[FloatArray], FloatArray], factor: FloatArray, X: FloatArray
) -> FloatArray:
    """Gradients of ||Fᵀ φ(x)||² at rows X (n, d), each from its own row alone, (n, d)."""
    gradient = np.empty_like(X)
    for j in range(X.shape[1]):
        gradient[:, j] = _extrapolated(features, factor, X, j, _first_steps(features, X, j))
    return gradient


def _moved(X: FloatArray, j: int, step: FloatArray) -> FloatArray:
    moved = X.copy()
    moved[:, j] += step
    return moved


def _first_steps(
    features: Callable[[FloatArray], FloatArray], X: FloatArray, j: int
) -> FloatArray:
    """The largest of halved steps that leaves the features of a row nearly as they are, (n,)."""
    here = features(X)
    own = np.sqrt(np.square(here).sum(axis=1))
    step = np.maximum(np.abs(X[:, j]), 1.0)
    for _ in range(_HALVINGS):
        near = np.ones(len(X), dtype=bool)
        for sign in (-1.0, 1.0):
            there = features(_moved(X, j, sign * step))
            other = np.sqrt(np.square(there).sum(axis=1))
            near &= np.einsum("ij,ij->i", here, there) >= _SAME * own * other
            near &= np.minimum(own, other) >= 0.5 * np.maximum(own, other)
        tiny = step <= 1e-10 * np.abs(X[:, j])
        if np.all(near | tiny):
            break
        step = np.where(near | tiny, step, 0.5 * step)
    return step


def _extrapolated(
    features: Callable[[FloatArray], FloatArray],
    factor: FloatArray,
    X: FloatArray,
    j: int,
    step: FloatArray,
) -> FloatArray:
    """Ridders: the extrapolation of central differences whose neighbours agree best."""
    best, least = np.zeros(len(X)), np.full(len(X), np.inf)
    before: list[FloatArray] = []
    for level in range(_LEVELS):
        forward, back = (_moved(X, j, sign * 0.5**level * step) for sign in (1.0, -1.0))
        after, ahead = features(back) @ factor, features(forward) @ factor
        # a difference of squares as a product, which cancels less
        rise = np.einsum("ij,ij->i", ahead - after, ahead + after)
        row = [rise / (forward[:, j] - back[:, j])]
        for order, coarser in enumerate(before):
            better = row[order] + (row[order] - coarser) / (4.0 ** (order + 1) - 1.0)
            apart = np.maximum(np.abs(better - row[order]), np.abs(better - coarser))
            chosen = apart < least
            best, least = np.where(chosen, better, best), np.where(chosen, apart, least)
            row.append(better)
        before = row
    return best
