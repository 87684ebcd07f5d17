"""Projections on balls of L^p norms with weights, row by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fenchel._compiling import njit
from fenchel._memory import empty
from fenchel._typing import FloatArray
from fenchel.losses._clipping import clipped
from fenchel.norms.loops import entry

_TINY = 1e-15
_STEPS = 100


class Projected(NamedTuple):
    """Points in the ball, with the data that their Jacobians need."""

    point: FloatArray
    """(n, m): the nearest points of the ball."""
    pull: FloatArray
    """(n,): ν >= 0 in ``point + ν g(point) = given``; 0 for what was in the ball already."""


def project(
    point: FloatArray, root: FloatArray, radius: float | FloatArray, order: float
) -> Projected:
    r"""Project rows on a ball of the norm of L^r, in coordinates scaled by √μ.

    .. math:: \{x : \sum_j \mu_j |x_j / \sqrt{\mu_j}|^r \le R^r\}

    The method is scaling for r = 2, clipping for r = ∞, finitely many Newton steps for r = 1, and
    a nested iteration to rounding for other orders. ``point`` (n, m) is zero where μ is zero,
    ``root`` is √μ, (1, m) or (n, m), ``radius`` is R >= 0, common or (n, 1), and ``order`` is r in
    [1, inf].
    """
    if order == np.inf:
        return Projected(clipped(point, root, radius), np.zeros(len(point)))
    if order == 2.0:
        length = np.sqrt(np.einsum("ij,ij->i", point, point))[:, None]
        outside = length > radius
        scale = np.divide(radius, length, out=np.ones_like(length), where=outside)
        normal = scale >= np.finfo(float).tiny  # 1 over a smaller one overflows
        inverse = np.divide(1.0, scale, out=np.full_like(scale, np.inf), where=normal)
        nearest = np.multiply(point, scale, out=empty(point.shape))
        return Projected(nearest, (inverse - 1.0)[:, 0])
    radii = np.ascontiguousarray(np.broadcast_to(radius, (len(point), 1))[:, 0])
    project_rows = _project_l1 if order == 1.0 else _project_lr
    result, pull = np.array(point, order="C"), np.zeros(len(point))
    project_rows(np.ascontiguousarray(point), root, radii, float(order), result, pull)
    return Projected(result, pull)


def project_jacobian(
    point: FloatArray, projected: Projected, root: FloatArray, order: float
) -> FloatArray:
    """Generalized Jacobians (n, m, m) of :func:`project` for a finite order."""
    x, m = projected.point, point.shape[1]
    size = np.abs(x)
    inside = projected.pull == 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.broadcast_to(np.where(root > 0.0, root ** (2.0 - order), 0.0), x.shape)
        slope = weight * np.sign(x) * size ** (order - 1.0)
        bend = (order - 1.0) * weight * size ** (order - 2.0)
        stretch = 1.0 / (1.0 + projected.pull[:, None] * bend)
    if order < 2.0:
        stretch = np.where(size > 0.0, stretch, 0.0)
    pulled = stretch * slope
    along = np.einsum("ij,ij->i", slope, pulled)
    along = np.where(along > 0.0, along, 1.0)
    jacobian = stretch[:, :, None] * np.eye(m)
    jacobian -= pulled[:, :, None] * pulled[:, None, :] / along[:, None, None]
    jacobian[inside] = np.eye(m)
    return jacobian


@njit(cache=True, error_model="numpy")
def _project_l1(
    point: FloatArray,
    root: FloatArray,
    radii: FloatArray,
    order: float,
    result: FloatArray,
    pulls: FloatArray,
) -> None:
    """Rows of ``result``, which are those of ``point`` before, and their pulls."""
    n, m = point.shape
    own = len(root) > 1
    for i in range(n):
        weight = root[i] if own else root[0]
        pull = 0.0
        for _ in range(m + 2):
            # the sum is convex and piecewise linear in the pull: Newton from below is finite
            excess, slope = -radii[i], 0.0
            for j in range(m):
                left = abs(point[i, j]) - pull * weight[j]
                if left > 0.0:
                    excess += weight[j] * left
                    slope += weight[j] * weight[j]
            if excess <= _TINY * radii[i] or slope == 0.0:
                break
            pull += excess / slope
        pulls[i] = pull
        if pull > 0.0:
            total, farthest, ratio = 0.0, -1, 0.0
            for j in range(m):
                if weight[j] > 0.0 and abs(point[i, j]) > ratio * weight[j]:
                    farthest, ratio = j, abs(point[i, j]) / weight[j]
                left = max(abs(point[i, j]) - pull * weight[j], 0.0)
                result[i, j] = left if point[i, j] > 0.0 else -left
                total += weight[j] * left
            # of points far away, rounding leaves something beside the ball, or nothing
            if total > 0.0:
                for j in range(m):
                    if weight[j] > 0.0:
                        result[i, j] *= radii[i] / total
            elif farthest >= 0:
                length = radii[i] / weight[farthest]
                result[i, farthest] = length if point[i, farthest] > 0.0 else -length


@njit(cache=True, error_model="numpy")
def _project_lr(
    point: FloatArray,
    root: FloatArray,
    radii: FloatArray,
    order: float,
    result: FloatArray,
    pulls: FloatArray,
) -> None:
    """Rows of ``result``, which are those of ``point`` before, and their pulls."""
    n, m = point.shape
    own = len(root) > 1
    sizes = np.zeros(m)  # of the values x / √μ in units of the radius, which powers can bear
    for i in range(n):
        scale = root[i] if own else root[0]
        radius, largest = radii[i], 0.0
        for j in range(m):
            sizes[j] = abs(point[i, j]) / scale[j] if scale[j] > 0.0 else 0.0
            largest = max(largest, sizes[j])
        if radius <= 1e-200 * largest:
            if largest > 0.0:
                result[i] = 0.0
                pulls[i] = np.inf
            continue
        # Σ μ z^r = 1 has no term above 1 and one of at least 1/m: this brackets the pull
        low, high, total = 0.0, 0.0, 0.0
        for j in range(m):
            sizes[j] /= radius
            if sizes[j] > 0.0:
                most = scale[j] ** (-2.0 / order)
                steep, least = most ** (1.0 - order), most * m ** (-1.0 / order)
                low = max(low, (sizes[j] - most) * steep)
                high = max(high, (sizes[j] - least) * steep * m ** (1.0 - 1.0 / order))
                total += (sizes[j] / most) ** order if sizes[j] < most else 1.0
        if total <= 1.0 and low == 0.0:
            continue
        pull = _pull_to_unit(sizes, scale, order, low, high)
        total = 0.0
        for j in range(m):
            z = entry(sizes[j], order, np.log(pull))
            total += scale[j] ** 2 * z**order
            result[i, j] = np.copysign(scale[j] * radius * z, point[i, j])
        if total > 1.0:  # what rounding has left outside
            result[i] /= total ** (1.0 / order)
        pulls[i] = pull * radius ** (2.0 - order)


@njit(cache=True, error_model="numpy")
def _pull_to_unit(
    sizes: FloatArray, scale: FloatArray, order: float, low: float, high: float
) -> float:
    """Find the ν for which z + ν z^(r - 1) = sizes has Σ μ z^r = 1."""
    pull = low
    for _ in range(_STEPS):
        total, slope, place = 0.0, 0.0, np.log(pull)
        for j in range(len(sizes)):
            z = entry(sizes[j], order, place)
            if z > 0.0:
                power = z ** (order - 1.0)
                total += scale[j] ** 2 * power * z
                slope += (scale[j] * power) ** 2 / (1.0 + pull * (order - 1.0) * power / z)
        length = total ** (1.0 / order)
        if abs(length - 1.0) <= 4.0 * _TINY:
            break
        if length > 1.0:
            low = pull
        else:
            high = pull
        # 1 / length is close to linear in the pull: exactly so for r = 2
        pull += (length - 1.0) * total / slope
        if not low < pull < high:
            pull = 0.5 * (low + high)
        if high - low <= _TINY * high:
            break
    return pull
