r"""Integrals of products of Matérn kernels, which are mixtures of Gaussian ones.

.. math:: k(r) = \frac{\nu^\nu}{\Gamma(\nu)} \int \exp\bigl(\nu s - \nu e^s
          - \tfrac12 e^{-s} r^2\bigr)\, ds

The sum over equidistant s converges exponentially. Integrals of products of Gaussian kernels
are products over coordinates, in any dimension.
"""

from __future__ import annotations

from math import erf, exp, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, kv

from fenchel._compiling import njit
from fenchel._typing import FloatArray
from fenchel.kernels.measures import Box, Normal

_STEP = 0.35  # of s: the sum is off by about exp(-π² / step) = 6e-13 times (2 π / step)^(ν - ½)
_DROPPED = 1e-12  # share of the norm of the kernel that the smallest s may leave out
_NOTHING = 41.5  # exp(-41.5) = 1e-18


class Mixture(NamedTuple):
    r"""A kernel :math:`\tilde k(r) = \sum_a w_a \exp(-p_a r^2)` of scaled distances."""

    precisions: FloatArray
    """p, (N,)."""
    weights: FloatArray
    """w, (N,)."""


def matern_mixture(
    nu: float, dimension: int, step: float = _STEP, dropped: float = _DROPPED
) -> Mixture:
    """Mixture that approximates the Matérn kernel of smoothness nu, in L² over R^d."""
    lowest = np.log(dropped) / (nu + 0.25 * dimension)
    s = np.arange(np.log(_NOTHING / nu + 8.0), lowest, -step)
    size = np.exp(nu * np.log(nu) - gammaln(nu) + nu * s - nu * np.exp(s))
    return Mixture(0.5 * np.exp(-s), step * size)


def rough_mixture(nu: float, dimension: int) -> Mixture:
    """The same with a fifth of the terms: combinations of it are correct to four digits."""
    found = matern_mixture(nu, dimension, 2.0 * _STEP, np.sqrt(_DROPPED))
    kept = found.weights > _DROPPED
    return Mixture(found.precisions[kept], found.weights[kept])


def mixture_distance(nu: float, scale: FloatArray, measure: Box | Normal) -> float:
    """Bound on the norm of k(., z) minus the mixture in L² of the measure, for every z."""
    d = len(scale)
    mixture = matern_mixture(nu, d)
    # both are smooth in log r: between smallest and largest widths, and beyond both
    log_r = np.arange(-0.5 * np.log(mixture.precisions.max()) - 12.0, 7.0, 0.05)
    r = np.exp(log_r)
    apart = np.exp(-np.outer(r * r, mixture.precisions)) @ mixture.weights - _matern(r, nu)
    sphere = np.exp(np.log(2.0) + 0.5 * d * np.log(np.pi) - gammaln(0.5 * d))
    norm = np.sqrt(0.05 * sphere * np.prod(scale) * float(np.square(apart) @ r**d))
    largest = float(np.abs(apart).max())
    if isinstance(measure, Normal):
        top = np.linalg.det(2.0 * np.pi * measure.matrix) ** -0.25
        return float(min(largest, norm * top))
    low, high = measure.bounds
    return float(min(norm, largest * np.sqrt(np.prod(high - low))))


def mixture_products(
    Z: FloatArray, scale: FloatArray, nu: float, measure: Box | Normal
) -> FloatArray:
    """Product integrals of the mixture for a Matérn kernel: any box, any normal density."""
    rows, normal = Z / scale, isinstance(measure, Normal)
    if isinstance(measure, Normal):
        # in the axes of the covariance, which Gaussian kernels of one width do not notice
        variances, turn = np.linalg.eigh(measure.matrix / np.outer(scale, scale))
        first, second, rows = (measure.centre / scale) @ turn, variances, rows @ turn
    else:
        first, second = (end / scale for end in measure.bounds)
    mixture = matern_mixture(nu, len(scale))
    total = np.empty((len(Z), len(Z)))
    _add_products(np.ascontiguousarray(rows), *mixture, first, second, normal, total)
    return total if normal else total * np.prod(scale)


def _matern(r: FloatArray, nu: float) -> FloatArray:
    t = np.sqrt(2.0 * nu) * r
    near = t < 1e-7 ** (1.0 / min(2.0 * nu, 2.0))
    safe = np.where(near, 1.0, t)
    values = np.exp((1.0 - nu) * np.log(2.0) - gammaln(nu) + nu * np.log(safe)) * kv(nu, safe)
    return np.where(near, 1.0, values)


@njit(cache=True, nogil=True)
def _add_products(
    rows: FloatArray,
    precisions: FloatArray,
    weights: FloatArray,
    first: FloatArray,
    second: FloatArray,
    normal: bool,
    total: FloatArray,
) -> None:
    """Over the box from ``first`` to ``second``; or a normal density, mean and variances."""
    (m, d), n = rows.shape, len(precisions)
    share, root, falls, sizes = np.empty((4, n, n))
    for a in range(n):
        for b in range(n):
            p = precisions[a] + precisions[b]
            share[a, b], root[a, b] = precisions[a] / p, sqrt(p)
            falls[a, b] = share[a, b] * precisions[b]
            sizes[a, b] = weights[a] * weights[b]
            if not normal:
                sizes[a, b] *= sqrt(0.25 * np.pi / p) ** d
    for j in range(m):
        for k in range(j + 1):
            distance = 0.0
            for c in range(d):
                distance += (rows[j, c] - rows[k, c]) ** 2
            summed = 0.0
            for a in range(n):
                for b in range(n):  # from wide to narrow
                    fall = falls[a, b] * distance
                    if fall > _NOTHING:
                        break
                    value = sizes[a, b] * exp(-fall)
                    for c in range(d):
                        middle = rows[k, c] + share[a, b] * (rows[j, c] - rows[k, c])
                        if normal:
                            wide = 1.0 + 2.0 * root[a, b] ** 2 * second[c]
                            away = root[a, b] * (middle - first[c])
                            value *= exp(-away * away / wide) / sqrt(wide)
                            continue
                        lower = root[a, b] * (first[c] - middle)
                        upper = root[a, b] * (second[c] - middle)
                        over = 1.0 if upper > 6.0 else erf(upper)
                        value *= over + (1.0 if lower < -6.0 else -erf(lower))
                    summed += value
            total[j, k] = total[k, j] = summed
