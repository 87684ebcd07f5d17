r"""Closed forms of :math:`M_{jl} = \int k(x, z_j) k(x, z_l) d\mu(x)` for families of kernels."""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.polynomial.polynomial import polyder, polyval
from scipy.linalg import solve_triangular
from scipy.special import comb, erf, erfc, erfcx, gammainc, gammaln, kv
from sklearn.preprocessing import PolynomialFeatures

from fenchel._typing import FloatArray, IntArray
from fenchel.kernels.measures import Box, Normal

_MOST_MONOMIALS = 20_000  # their joint moments would be a matrix of 3 GiB
# p with k = p(t) exp(-t), t = sqrt(2 nu) times the scaled distance; lowest power first
_MATERN = {0.5: [1.0], 1.5: [1.0, 1.0], 2.5: [1.0, 1.0, 1.0 / 3.0]}


def gaussian_products(Z: FloatArray, width: FloatArray, measure: Box | Normal) -> FloatArray:
    """Product integrals of Gaussian kernels, by coordinate: any box, normal densities."""
    if isinstance(measure, Normal):
        return _gaussian_normal(Z, width, measure)
    low, high = measure.bounds
    total = np.ones((len(Z), len(Z)))
    for z, s, a, b in zip(Z.T, width, low, high, strict=True):
        middle = 0.5 * (z[:, None] + z)
        total *= np.exp(-(((z[:, None] - z) / (2.0 * s)) ** 2))
        total *= 0.5 * np.sqrt(np.pi) * s * _between((a - middle) / s, (b - middle) / s)
    return total


def _between(u: FloatArray, v: FloatArray) -> FloatArray:
    """erf(v) - erf(u) for u <= v, to relative rounding in the tails."""
    near, far = np.where(u > 0.0, u, -v), np.where(u > 0.0, v, -u)
    return np.where((u > 0.0) | (v < 0.0), erfc(near) - erfc(far), erf(v) - erf(u))


def matern_products(
    Z: FloatArray, scale: FloatArray, nu: float, measure: Box | Normal
) -> FloatArray | None:
    """Product integrals of Matérn kernels of any smoothness nu < inf, over R^d.

    In one dimension also over any interval for nu = 1/2, 3/2 or 5/2, and against normal
    densities for nu = 1/2.
    """
    if isinstance(measure, Box) and measure.whole:
        return _matern_whole(Z, scale, nu)
    if Z.shape[1] > 1:
        return None
    if isinstance(measure, Box):
        return _matern_interval(Z[:, 0], float(scale[0]), nu, measure) if nu in _MATERN else None
    return _laplacian_normal(Z[:, 0], float(scale[0]), measure) if nu == 0.5 else None


def _gaussian_normal(Z: FloatArray, width: FloatArray, measure: Normal) -> FloatArray:
    """exp(-Σ ((x - m)/s)²) against N(mean, cov) is a normal density of the middles m."""
    covariance, d = measure.matrix, len(width)
    inner = np.diag(0.5 * width**2)
    chol = np.linalg.cholesky(covariance + inner)
    scaled = Z / (2.0 * width)
    far = scaled[:, None, :] - scaled
    total = np.exp(-np.einsum("abj,abj->ab", far, far))
    middles = 0.5 * (Z[:, None, :] + Z) - measure.centre
    white = solve_triangular(chol, middles.reshape(-1, d).T, lower=True)
    total *= np.exp(-0.5 * np.einsum("ja,ja->a", white, white)).reshape(total.shape)
    factor = np.exp(0.5 * np.log(0.5 * width**2).sum() - np.log(np.diag(chol)).sum())
    return np.asarray(total * factor)


def _matern_whole(Z: FloatArray, scale: FloatArray, nu: float) -> FloatArray:
    """Matérn kernels of smoothness nu convolve to one of smoothness 2 nu + d/2."""
    d = len(scale)
    unit = scale / np.sqrt(2.0 * nu) if nu != 0.5 else scale
    scaled = Z / unit
    distance = np.sqrt(np.square(scaled[:, None, :] - scaled).sum(axis=2))
    smooth = 2.0 * nu + 0.5 * d

    def spectral(order: float) -> float:
        return (
            d * np.log(2.0) + 0.5 * d * np.log(np.pi) + gammaln(order + 0.5 * d) - gammaln(order)
        )

    size = 2.0 * spectral(nu) - spectral(smooth) + np.log(unit).sum()
    near = distance < 1e-8
    safe = np.where(near, 1.0, distance)
    bessel = np.exp((1.0 - smooth) * np.log(2.0) - gammaln(smooth)) * safe**smooth
    values = np.where(near, 1.0, bessel * kv(smooth, safe))
    return np.asarray(np.exp(size) * values)


def _matern_interval(z: FloatArray, scale: float, nu: float, measure: Box) -> FloatArray:
    r"""Three pieces: left of both landmarks, between, right of both, cut by the interval.

    With t the distance from the nearer landmark, in units in which the kernel is a polynomial p
    times exp(-t), and D that of the landmarks, these are the integrals of p(t) p(t + D)
    exp(-2 t - D) and p(t) p(D - t) exp(-D). All terms are positive: nothing cancels.
    """
    unit = scale / np.sqrt(2.0 * nu)
    (low,), (high,) = (end / unit for end in measure.bounds)
    z = z / unit
    polynomial = _MATERN[nu]
    left, right = np.minimum(z[:, None], z), np.maximum(z[:, None], z)
    apart = right - left
    begin, end = np.clip(low, left, right), np.clip(high, left, right)
    total = np.zeros_like(apart)
    nodes, weights = np.polynomial.legendre.leggauss(len(polynomial))  # exact for this degree
    for node, weight in zip(nodes, weights, strict=True):
        t = begin - left + 0.5 * (end - begin) * (node + 1.0)
        values = polyval(t, polynomial) * polyval(apart - t, polynomial)
        total += 0.5 * weight * (end - begin) * values
    for near, far in (
        (left - np.minimum(left, high), left - np.minimum(left, low)),
        (np.maximum(right, low) - right, np.maximum(right, high) - right),
    ):
        taylor = _product(_shifted(polynomial, near), _shifted(polynomial, near + apart))
        for power, coefficient in enumerate(taylor):
            share = (
                gammainc(power + 1.0, 2.0 * (far - near)) * factorial(power) / 2.0 ** (power + 1)
            )
            total += np.exp(-2.0 * near) * coefficient * share
    return np.asarray(unit * np.exp(-apart) * total)


def _shifted(polynomial: list[float], at: FloatArray) -> list[FloatArray]:
    """Coefficients of p(at + s) in powers of s."""
    return [
        polyval(at, polyder(polynomial, order)) / factorial(order)
        for order in range(len(polynomial))
    ]


def _product(first: list[FloatArray], second: list[FloatArray]) -> list[FloatArray]:
    """Coefficients of a product of polynomials."""
    whole = [np.zeros_like(first[0]) for _ in range(len(first) + len(second) - 1)]
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            whole[i + j] += a * b
    return whole


def _laplacian_normal(z: FloatArray, scale: float, measure: Normal) -> FloatArray:
    """The same pieces against a normal density."""
    mean, deviation = float(measure.centre[0]), float(np.sqrt(measure.matrix[0, 0]))
    left, right = np.minimum(z[:, None], z), np.maximum(z[:, None], z)
    rate = 2.0 / scale

    def tail(t: FloatArray) -> FloatArray:
        """E exp(rate (x - t)) over x < t, without overflow."""
        u = (rate * deviation**2 - (t - mean)) / (deviation * np.sqrt(2.0))
        direct = np.exp(rate * (mean - t) + 0.5 * (rate * deviation) ** 2)
        scaled = 0.5 * erfcx(np.maximum(u, 0.0)) * np.exp(-0.5 * ((t - mean) / deviation) ** 2)
        with np.errstate(over="ignore", invalid="ignore"):
            plain = 0.5 * (1.0 - erf(np.minimum(u, 0.0))) * direct
        return np.where(u > 0.0, scaled, plain)

    root = deviation * np.sqrt(2.0)
    between = 0.5 * (erf((right - mean) / root) - erf((left - mean) / root))
    decay = np.exp(-(right - left) / scale)
    mirrored = 2.0 * mean - right
    return np.asarray(decay * (between + tail(left) + tail(mirrored)))


def polynomial_products(
    Z: FloatArray, degree: int, gain: float, offset: float, measure: Box | Normal
) -> FloatArray | None:
    """Product integrals of (gain <x, z> + offset) ** degree: bounded boxes, normal densities.

    The kernel is expanded into monomials of standardized coordinates, whose moments are
    products.
    """
    d = Z.shape[1]
    orders = np.arange(2 * degree + 1)
    if isinstance(measure, Normal):
        shift, turn, volume = measure.centre, np.linalg.cholesky(measure.matrix), 1.0
        odd = np.array([1.0, *np.cumprod(np.arange(1.0, 2 * degree + 1, 2.0))])
        moments = np.where(orders % 2 == 0, np.repeat(odd, 2)[: len(orders)], 0.0)
    else:
        low, high = measure.bounds
        if not np.all(np.isfinite(low) & np.isfinite(high)):
            raise ValueError(
                "domain must be bounded, or a normal density, with a polynomial kernel, whose "
                "integral is infinite otherwise"
            )
        shift, turn = 0.5 * (low + high), np.diag(0.5 * (high - low))
        volume = float(np.prod(high - low))
        moments = np.where(orders % 2 == 0, 1.0 / (orders + 1.0), 0.0)
    if comb(d + degree, degree) > _MOST_MONOMIALS:
        return None
    powers, rest, count = monomials(d, degree)
    slope, constant = gain * Z @ turn, gain * Z @ shift + offset
    coefficients = count * constant[:, None] ** rest
    joint = np.ones((len(powers), len(powers)))
    for j in range(d):
        coefficients *= slope[:, [j]] ** powers[:, j]
        joint *= moments[powers[:, None, j] + powers[:, j]]
    return np.asarray(volume * coefficients @ joint @ coefficients.T)


def monomials(d: int, degree: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Those up to a degree: exponents (number, d), what is left to the degree, coefficients.

    The latter are those of the monomials in (x_1 + ... + x_d + 1) ** degree.
    """
    powers = PolynomialFeatures(degree).fit(np.zeros((1, d))).powers_
    rest = degree - powers.sum(axis=1)
    count = gammaln(degree + 1.0) - gammaln(powers + 1.0).sum(axis=1) - gammaln(rest + 1.0)
    return powers, rest, np.exp(count)
