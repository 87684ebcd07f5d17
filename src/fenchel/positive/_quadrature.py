"""Quadrature of products of features: on intervals, on grids, and at random points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import qmc

from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.features import FeatureMap
from fenchel.kernels import Box, Normal, as_scalar_kernel

_ORDER = 32  # of Clenshaw and Curtis: its ends, which are landmarks, are among its points
_PANELS = 16  # at least, before any is halved
_MOST_PANELS = 2**14
_ACCURATE = 1e-14  # share of the whole by which the rule of half the order may differ
# A difference of at most this share is rounding, and its panel is not halved again, if it is more
# than a part of that of the panel before: half of it where features are rounding, a quarter at a
# kink, and 1e-5 where kernels are smooth.
_MAY_BE_ROUNDING = 1e-10
_LEFT_IN_HALVES = 0.35
_CHUNK_VALUES = 2**22
_PANEL_NODES = 24
_QUASI = 2**13
_COPIES = 8
_LARGEST_GRID = 400_000
_DEVIATIONS = 8.0  # of the mean of 8 copies: one in ten thousand of Student's t with 7 degrees
_BESIDE = 0.5  # cosine of the features of two neighbouring points that a rule must see
_PROBES = 64


class Rule(NamedTuple):
    """What a rule of quadrature gives for products of features."""

    matrix: FloatArray
    """(r, r)."""
    doubt: FloatArray
    """Differences from it that bound its error, (k, r, r)."""


def decay_range(
    feature_map: FeatureMap, low: FloatArray, high: FloatArray, tails: float = 1.0
) -> tuple[FloatArray, FloatArray] | None:
    """The part of a box where features can be seen in double precision; None if not known.

    That is up to so many ``tails`` of the kernel from the landmarks.
    """
    if np.all(np.isfinite(low) & np.isfinite(high)):
        return low, high
    landmarks = getattr(feature_map, "landmarks_", None)
    scale = getattr(feature_map.kernel_, "length_scale", None)
    if landmarks is None or scale is None:
        return None
    reach = tails * as_scalar_kernel(feature_map.kernel_).tail * np.asarray(scale, dtype=float)
    near, far = landmarks.min(axis=0) - reach, landmarks.max(axis=0) + reach
    return np.clip(low, near, far), np.clip(high, near, far)


def line_rule(feature_map: FeatureMap, low: float, high: float, power: int = 0) -> Rule:
    """Panels between landmarks, where kernels may have kinks, halved until two orders agree.

    Of products of features times a power of the coordinate.
    """
    landmarks = getattr(feature_map, "landmarks_", np.zeros((0, 1)))[:, 0]
    may_be = _MAY_BE_ROUNDING if len(landmarks) else 0.0  # others are made without solving
    inside = landmarks[(landmarks > low) & (landmarks < high)]
    cuts = np.unique(np.concatenate([np.linspace(low, high, _PANELS + 1), inside]))
    nodes, fine, coarse = clenshaw_curtis(_ORDER)
    r = feature_map.rank_
    matrix, doubt = np.zeros((r, r)), np.zeros((r, r))
    starts, sizes, used = cuts[:-1], np.diff(cuts), 0
    before = np.full(len(starts), np.inf)
    size = max(1, _CHUNK_VALUES // (len(nodes) * max(r, len(nodes))))
    trace = 0.0
    while len(starts):
        left: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        found = []
        for first in range(0, len(starts), size):
            a, h = starts[first : first + size], sizes[first : first + size]
            points = a[:, None] + 0.5 * h[:, None] * (nodes + 1.0)
            phi = feature_map.transform(points.reshape(-1, 1)).reshape(len(a), len(nodes), r)
            powers = points**power
            parts, apart = _of_panels(phi, 0.5 * h[:, None] * powers, fine, fine - coarse)
            found.append((a, h, phi, powers, parts, apart, before[first : first + size]))
            trace += float(parts.sum())
        for a, h, phi, powers, parts, apart, last in found:
            used += len(a)
            rough = (apart > _ACCURATE * trace) & (h > 1e-14 * (abs(a) + h))
            rough &= (apart > may_be * trace) | (apart < _LEFT_IN_HALVES * last)
            if used > _MOST_PANELS:
                rough[:] = False
            trace -= float(parts[rough].sum())
            done = phi[~rough].reshape(-1, r)
            shares = 0.5 * h[~rough, None] * powers[~rough]
            weights = shares * fine
            matrix += done.T @ (weights.reshape(-1, 1) * done)
            weights = shares * (fine - coarse)
            doubt += done.T @ (weights.reshape(-1, 1) * done)
            half = 0.5 * h[rough]
            left += [(start, half, apart[rough]) for start in (a[rough], a[rough] + half)]
        starts, sizes, before = (np.concatenate(ends) for ends in zip(*left, strict=True))
    return Rule(0.5 * (matrix + matrix.T), doubt[None])


def _of_panels(
    phi: FloatArray, shares: FloatArray, fine: FloatArray, apart: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For each panel the size of its part of an integral, and by how much two rules differ."""
    grams = phi @ phi.transpose(0, 2, 1)
    parts = np.einsum("ij,ij->i", grams.diagonal(axis1=1, axis2=2), np.abs(shares) * fine)
    grams *= grams
    weights = shares * apart
    squares = np.einsum("ij,ij->i", (grams @ weights[:, :, None])[:, :, 0], weights)
    return parts, np.sqrt(np.maximum(squares, 0.0))


def clenshaw_curtis(order: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes on [-1, 1], weights, and those of the rule of half the order at the same nodes."""

    def weights(n: int) -> FloatArray:
        k = np.arange(0, n + 1, 2)
        moments = 2.0 / (1.0 - k.astype(np.float64) ** 2)
        moments[[0, -1]] *= 0.5
        angles = np.pi * np.arange(n + 1) / n
        found = 2.0 / n * np.cos(np.outer(angles, k)) @ moments
        found[[0, -1]] *= 0.5
        return np.asarray(found)

    coarse = np.zeros(order + 1)
    coarse[::2] = weights(order // 2)
    return -np.cos(np.pi * np.arange(order + 1) / order), weights(order), coarse


def space_rule(feature_map: FeatureMap, measure: Box | Normal) -> Rule:
    """Two grids up to three dimensions, randomized Sobol points beyond; or a refusal."""
    d = feature_map.n_features_in_
    if isinstance(measure, Normal):
        low, high = np.full(d, -8.5), np.full(d, 8.5)
        centre, turn = measure.centre, np.linalg.cholesky(measure.matrix)
    else:
        low, high = measure.bounds
        centre, turn = np.zeros(d), np.eye(d)

    def rule(points: FloatArray, weights: FloatArray) -> FloatArray:
        if isinstance(measure, Normal):
            norm = np.exp(-0.5 * np.square(points).sum(axis=1)) / (2.0 * np.pi) ** (0.5 * d)
            points, weights = centre + points @ turn.T, weights * norm
        return weighted_products(feature_map, points, weights)

    panels = max(2, int(_LARGEST_GRID ** (1.0 / d)) // _PANEL_NODES)
    number = float(panels * _PANEL_NODES) if d <= 3 else float(_QUASI * _COPIES) ** (1.0 / d)
    _refuse_unseen(feature_map, centre + 0.5 * (low + high), turn * (high - low), number)
    if d <= 3:
        fine, coarse = (rule(*_grid(low, high, n)) for n in (panels, max(1, panels // 2)))
        return Rule(fine, (fine - coarse)[None])
    copies = []
    for seed in range(_COPIES):
        unit = qmc.Sobol(d, rng=np.random.default_rng(seed)).random(_QUASI)
        weight = np.full(_QUASI, float(np.prod(high - low)) / _QUASI)
        copies.append(rule(low + unit * (high - low), weight))
    mean = np.mean(copies, axis=0)
    share = _DEVIATIONS / np.sqrt(_COPIES * (_COPIES - 1.0))
    return Rule(mean, share * (np.array(copies) - mean))


def _refuse_unseen(
    feature_map: FeatureMap, centre: FloatArray, axes: FloatArray, number: float
) -> None:
    """Raise where features change beyond recognition from a point of a rule to the next."""
    probes = getattr(feature_map, "landmarks_", None)
    if probes is None:
        unit = np.random.default_rng(0).uniform(-0.5, 0.5, (_PROBES, len(centre)))
        probes = centre + unit @ axes.T
    probes = probes[:: -(-len(probes) // _PROBES)]
    here = feature_map.transform(probes)
    for axis in axes.T:
        there = feature_map.transform(probes + axis / number)
        sizes = np.sqrt(np.square(here).sum(axis=1) * np.square(there).sum(axis=1))
        if np.any(np.einsum("ij,ij->i", here, there) < _BESIDE * sizes):
            raise ValueError(
                "kernel must have integrals in closed form (product_integrals), as Gaussian and "
                f"Matern have, or a larger length scale, got {shown(feature_map.kernel_)}, which "
                f"changes between the points of the finest quadrature in {len(centre)} dimensions"
            )


def weighted_products(
    feature_map: FeatureMap, points: FloatArray, weights: FloatArray
) -> FloatArray:
    """Σ w φ φᵀ over points."""
    total = np.zeros((feature_map.rank_, feature_map.rank_))
    for start in range(0, len(points), 8192):
        features = feature_map.transform(points[start : start + 8192])
        total += features.T @ (weights[start : start + 8192, None] * features)
    return 0.5 * (total + total.T)


def _grid(low: FloatArray, high: FloatArray, panels: int) -> tuple[FloatArray, FloatArray]:
    """Tensor product of Gauss–Legendre panels."""
    nodes, weights = np.polynomial.legendre.leggauss(_PANEL_NODES)
    step = (high - low) / panels
    axes, shares = [], []
    for a, h in zip(low, step, strict=True):
        starts = a + h * np.arange(panels)
        axes.append((starts[:, None] + 0.5 * h * (nodes + 1.0)).ravel())
        shares.append(np.tile(0.5 * h * weights, panels))
    points = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
    total = shares[0]
    for share in shares[1:]:
        total = np.multiply.outer(total, share)
    return points, np.ravel(total)
