r"""Integrals of products of two features, :math:`M = \int \varphi \varphi^\top d\mu`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import sklearn.gaussian_process.kernels as sk
from scipy.linalg import solve_triangular
from scipy.special import comb, erf, erfcx, gammaln, kv
from scipy.stats import qmc

from fenchel._typing import FloatArray, IntArray
from fenchel.features import Explicit, FeatureMap, KernelRows, Nystroem, PivotedCholesky
from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial
from fenchel.positive.measures import Box, Measure, Normal, Points, as_measure

_PANEL_NODES = 24
_QUASI = 2**13
_COPIES = 8
_LARGEST_GRID = 400_000
_MOST_MONOMIALS = 20_000


class Moment(NamedTuple):
    """A matrix of integrals with its error."""

    matrix: FloatArray
    """(r, r), symmetric."""
    error: float
    """Estimated largest error of an entry; 0 for closed forms."""


def moment(feature_map: FeatureMap, domain: Any = None) -> Moment:
    r"""Integrate the products of features.

    .. math:: M = \int \varphi(x) \varphi(x)^\top d\mu(x), \qquad
              \int f_A\, d\mu = \operatorname{tr}(M A)

    In closed form for features that are combinations of kernel values at landmarks (pivoted
    Cholesky, Nyström, kernel rows): the Gaussian kernel over R^d, a box or against a normal
    density; the Laplacian and Matérn kernels over R^d, the Laplacian in one dimension
    over an interval as well; polynomial and linear kernels over a bounded box or against a normal
    density. Against weighted points, any map. All else by quadrature on a bounded box or
    against a normal density: Gauss–Legendre panels up to three dimensions, and randomized
    Sobol points beyond.

    Parameters
    ----------
    feature_map : FeatureMap
        Fitted.
    domain : None, (low, high), Box, Normal or Points
        All of R^d by default.

    Returns
    -------
    Moment
        ``matrix`` (r, r) and ``error``, 0 for closed forms.

    Raises
    ------
    ValueError
        If the integral is infinite, or there is no rule for this kernel and domain.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import PivotedCholesky
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.positive import moment
    >>> features = PivotedCholesky(Gaussian(1.0)).fit(np.array([[0.0]]))
    >>> moment(features).matrix ** 2  # (∫ exp(-x²) dx)² = π
    array([[3.14159265]])

    References
    ----------
    Marteau-Ferey, Bach, Rudi (2020), section 3 (property P4).
    """
    measure = as_measure(domain, feature_map.n_features_in_)
    landmarks = getattr(feature_map, "landmarks_", None)
    if isinstance(measure, Points):
        return Moment(weighted_sum(feature_map, measure), 0.0)
    if isinstance(feature_map, Explicit) and feature_map.transformer_ is None:
        inner = kernel_products(Linear(), np.eye(feature_map.n_features_in_), measure)
        if inner is not None:
            return Moment(inner, 0.0)
    if landmarks is not None:
        inner = kernel_products(feature_map.kernel_, landmarks, measure)
        if inner is not None:
            return Moment(whitened(feature_map, inner), 0.0)
    return _numerical(feature_map, measure)


def whitened(feature_map: FeatureMap, inner: FloatArray) -> FloatArray:
    """Turn integrals of products of kernel values into those of features."""
    if isinstance(feature_map, PivotedCholesky):
        half = solve_triangular(feature_map.factor_, inner, lower=True)
        whole = solve_triangular(feature_map.factor_, half.T, lower=True)
    elif isinstance(feature_map, Nystroem):
        whole = feature_map.whitening_.T @ inner @ feature_map.whitening_
    else:
        whole = inner
    return np.asarray(0.5 * (whole + whole.T))


def on_landmarks(feature_map: FeatureMap, factor: FloatArray) -> FloatArray | None:
    """Coefficients C with φ(x)ᵀ F = k(x, Z) C; None if the map has no landmarks."""
    if isinstance(feature_map, KernelRows):
        return factor
    if isinstance(feature_map, (PivotedCholesky, Nystroem)):
        return feature_map.coefficients(factor)
    return None


def weighted_sum(feature_map: FeatureMap, measure: Points) -> FloatArray:
    """Σ w φ φᵀ."""
    points = np.asarray(measure.points, dtype=np.float64)
    weights = np.asarray(measure.weights, dtype=np.float64)
    if len(weights) != len(points):
        raise ValueError(f"weights must have {len(points)} entries, got {len(weights)}")
    total = np.zeros((feature_map.rank_, feature_map.rank_))
    for start in range(0, len(points), 8192):
        features = feature_map.transform(points[start : start + 8192])
        total += features.T @ (weights[start : start + 8192, None] * features)
    return 0.5 * (total + total.T)


def gaussian_width(kernel: Any, dimension: int) -> FloatArray | None:
    """Length scales (d,) of a Gaussian kernel, None for another kernel."""
    if isinstance(kernel, Gaussian) or type(kernel) is sk.RBF:
        return np.array(np.broadcast_to(np.asarray(kernel.length_scale, float), dimension))
    return None


def kernel_products(kernel: Any, Z: FloatArray, measure: Box | Normal) -> FloatArray | None:
    r"""Return :math:`\int k(x, z_a) k(x, z_b) d\mu(x)` in closed form, (m, m); None if unknown."""
    d = Z.shape[1]
    width = gaussian_width(kernel, d)
    if width is not None:
        if isinstance(measure, Normal):
            return _gaussian_normal(Z, width, measure)
        return _gaussian_box(Z, width, measure)
    if isinstance(kernel, (Linear, Polynomial)):
        return _polynomial(kernel, Z, measure)
    if isinstance(kernel, (Laplacian, Matern)) or type(kernel) is sk.Matern:
        nu = 0.5 if isinstance(kernel, Laplacian) else float(kernel.nu)
        scale = np.array(np.broadcast_to(np.asarray(kernel.length_scale, float), d))
        if isinstance(measure, Box) and measure.whole and np.isfinite(nu):
            return _matern_whole(Z, scale, nu)
        if isinstance(measure, Box) and d == 1 and nu == 0.5:
            return _laplacian_interval(Z[:, 0], float(scale[0]), measure)
        if isinstance(measure, Normal) and d == 1 and nu == 0.5:
            return _laplacian_normal(Z[:, 0], float(scale[0]), measure)
    return None


def _gaussian_box(Z: FloatArray, width: FloatArray, measure: Box) -> FloatArray:
    """Products of differences of error functions, coordinate by coordinate."""
    low, high = measure.bounds
    total = np.ones((len(Z), len(Z)))
    for z, s, a, b in zip(Z.T, width, low, high, strict=True):
        middle = 0.5 * (z[:, None] + z)
        total *= np.exp(-(((z[:, None] - z) / (2.0 * s)) ** 2))
        total *= 0.5 * np.sqrt(np.pi) * s * (erf((b - middle) / s) - erf((a - middle) / s))
    return total


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


def _laplacian_interval(z: FloatArray, scale: float, measure: Box) -> FloatArray:
    """Three pieces: left of both landmarks, between, right of both, cut by the interval."""
    (low,), (high,) = measure.bounds
    left, right = np.minimum(z[:, None], z), np.maximum(z[:, None], z)
    between = np.maximum(np.minimum(right, high) - np.maximum(left, low), 0.0)
    total = between * np.exp(-(right - left) / scale)
    mean = 0.5 * (left + right)
    # ∫ exp(2 (x - mean) / scale) up to the left one, and its mirror image
    for sign, ends, start in (
        (1.0, np.minimum(left, high), low),
        (-1.0, np.maximum(right, low), high),
    ):
        outer = np.exp(sign * 2.0 * (ends - mean) / scale)
        inner = np.exp(sign * 2.0 * (start - mean) / scale) if np.isfinite(start) else 0.0
        total += 0.5 * scale * np.where(sign * (ends - start) > 0.0, outer - inner, 0.0)
    return np.asarray(total)


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


def _polynomial(kernel: Any, Z: FloatArray, measure: Box | Normal) -> FloatArray | None:
    """Expand into monomials of standardized coordinates, whose moments are products."""
    linear = isinstance(kernel, Linear)
    degree = 1 if linear else int(kernel.degree)
    gain, offset = (1.0, 0.0) if linear else (float(kernel.gain), float(kernel.offset))
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
    powers = _powers(d, degree)
    rest = degree - powers.sum(axis=1)
    count = gammaln(degree + 1.0) - gammaln(powers + 1.0).sum(axis=1) - gammaln(rest + 1.0)
    slope, constant = gain * Z @ turn, gain * Z @ shift + offset
    coefficients = np.exp(count) * constant[:, None] ** rest
    joint = np.ones((len(powers), len(powers)))
    for j in range(d):
        coefficients *= slope[:, [j]] ** powers[:, j]
        joint *= moments[powers[:, None, j] + powers[:, j]]
    return np.asarray(volume * coefficients @ joint @ coefficients.T)


def _powers(d: int, degree: int) -> IntArray:
    """Exponents of all monomials up to a degree, (number, d)."""
    rows = np.zeros((1, 0), dtype=np.intp)
    for _ in range(d):
        left = degree - rows.sum(axis=1)
        rows = np.concatenate(
            [
                np.column_stack([np.repeat(rows[[i]], n + 1, axis=0), np.arange(n + 1)])
                for i, n in enumerate(left)
            ]
        )
    return rows


def _numerical(feature_map: FeatureMap, measure: Measure) -> Moment:
    """Quadrature, with the difference of two rules as its error."""
    d = feature_map.n_features_in_
    if isinstance(measure, Normal):
        low, high = np.full(d, -8.5), np.full(d, 8.5)
        chol = np.linalg.cholesky(measure.matrix)
    else:
        assert isinstance(measure, Box)
        low, high = measure.bounds
        if not np.all(np.isfinite(low) & np.isfinite(high)):
            raise ValueError(
                f"domain must be bounded, or a normal density, for {feature_map.kernel_!r}: there "
                "is no closed form of the integral over all of space"
            )

    def rule(points: FloatArray, weights: FloatArray) -> FloatArray:
        if isinstance(measure, Normal):
            norm = np.exp(-0.5 * np.square(points).sum(axis=1)) / (2.0 * np.pi) ** (0.5 * d)
            return weighted_sum(
                feature_map, Points(measure.centre + points @ chol.T, weights * norm)
            )
        return weighted_sum(feature_map, Points(points, weights))

    if d <= 3:
        panels = max(2, int(_LARGEST_GRID ** (1.0 / d)) // _PANEL_NODES)
        panels = min(panels, 64)
        fine, coarse = (rule(*_grid(low, high, n)) for n in (panels, max(1, panels // 2)))
        return Moment(fine, float(np.abs(fine - coarse).max()))
    copies = []
    for seed in range(_COPIES):
        unit = qmc.Sobol(d, rng=np.random.default_rng(seed)).random(_QUASI)
        weight = np.full(_QUASI, float(np.prod(high - low)) / _QUASI)
        copies.append(rule(low + unit * (high - low), weight))
    mean = np.mean(copies, axis=0)
    error = np.std(copies, axis=0, ddof=1) / np.sqrt(_COPIES)
    return Moment(mean, 3.0 * float(error.max()))


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


__all__ = ["Moment", "gaussian_width", "kernel_products", "moment", "on_landmarks", "weighted_sum"]
