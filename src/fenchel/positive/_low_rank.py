"""Matrices of low rank near those of a barrier problem, which have full rank."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fenchel._typing import FloatArray
from fenchel.positive._cone import Cone, Spectra

_THRESHOLDS = 10.0 ** -np.arange(9.0)


def low_rank(spectra: Spectra) -> Iterator[list[FloatArray]]:
    r"""Yield factors F, A ≈ F Fᵀ, of growing rank; each list meets the conditions.

    Without the barrier the matrix would have as many eigenvalues as G has negative ones: with
    it, these are the a above :math:`\sqrt{\mu / \mathrm{alpha}}`. What rounding and small
    strengths blur comes back with smaller thresholds. What is left is moved by
    :math:`A = F C F^\top` with the C nearest to the identity, which changes small eigenvalues
    as little, relatively, as large ones.
    """
    cone, seen = spectra.cone, -1
    for threshold in _THRESHOLDS:
        factors = []
        for a, u, alpha in zip(spectra.sizes, spectra.vectors, cone.alphas, strict=True):
            kept = a > threshold * np.sqrt(spectra.barrier / alpha)
            factors.append(u[:, kept] * np.sqrt(a[kept]))
        count = sum(factor.shape[1] for factor in factors)
        if count == seen:
            continue
        seen = count
        moved = _met(cone, factors)
        if moved is not None:
            yield moved


def _met(cone: Cone, factors: list[FloatArray]) -> list[FloatArray] | None:
    """The factors moved so that the conditions hold; None where they cannot."""
    if not len(cone.right):
        return factors
    kept = [k for k, factor in enumerate(factors) if factor.shape[1]]
    moments: list[list[FloatArray | None]] = []
    for condition in cone.moments:
        given = [(condition[k], factors[k]) for k in kept]
        moments.append([None if m is None else f.T @ m @ f for m, f in given])
    if not kept or any(all(m is None for m in condition) for condition in moments):
        return None
    sizes = [factors[k].shape[1] for k in kept]
    ones, none = [1.0] * len(kept), [0.0] * len(kept)
    small = Cone(sizes, ones, none, moments, cone.right, cone.equality)
    try:
        nearest = small.solve([-np.eye(size) for size in sizes], np.zeros(len(cone.right)))
    except ValueError:  # no matrices of this rank meet the conditions
        return None
    moved = list(factors)
    for k, root in zip(kept, nearest.factors(), strict=True):
        moved[k] = factors[k] @ root
    return moved
