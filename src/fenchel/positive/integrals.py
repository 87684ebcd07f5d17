r"""Integrals of products of two features, :math:`M = \int \varphi \varphi^\top d\mu`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import qmc

from fenchel._typing import FloatArray
from fenchel.features import FeatureMap
from fenchel.kernels import (
    Box,
    Normal,
    Points,
    ScalarKernel,
    as_measure,
    as_scalar_kernel,
)

_PANEL_NODES = 24
_QUASI = 2**13
_COPIES = 8
_LARGEST_GRID = 400_000


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
    density; any kernel or feature map that brings ``product_integrals`` of its own. Against
    weighted points, any map. All else by quadrature on a bounded box or against a normal density:
    Gauss–Legendre panels up to three dimensions, and randomized Sobol points beyond.

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
    if isinstance(measure, Points):
        return Moment(_weighted_sum(feature_map, measure), 0.0)
    exact = feature_map.product_integrals(measure)
    return _numerical(feature_map, measure) if exact is None else Moment(exact, 0.0)


class ProductForm(NamedTuple):
    """A function ||Fᵀ φ(x)||² = ||Cᵀ k(Z, x)||² whose kernel is a product over coordinates."""

    coefficients: FloatArray
    """C, (m, q)."""
    landmarks: FloatArray
    """Z, (m, d)."""
    kernel: ScalarKernel

    def factor(self, columns: list[int]) -> ScalarKernel:
        """The kernel of some coordinates."""
        found = self.kernel.factor(columns)
        assert found is not None  # product_form has asked for all of them
        return found

    def integrals(self, columns: list[int], box: Box) -> FloatArray:
        """Of products of two values of the kernel of some coordinates, over a box."""
        low, high = box.bounds
        part = Box(low[columns], high[columns])
        found = self.factor(columns).product_integrals(self.landmarks[:, columns], part)
        if found is None:
            raise ValueError(
                "kernel must have integrals of products in closed form (product_integrals) on "
                f"{box!r}, got {self.kernel!r}"
            )
        return found


def product_form(feature_map: FeatureMap, factor: FloatArray, what: str) -> ProductForm:
    """Coefficients, landmarks and kernel of a product kernel, or a sentence on what is missing."""
    landmarks = getattr(feature_map, "landmarks_", None)
    kernel = as_scalar_kernel(feature_map.kernel_)
    if landmarks is None or kernel.factor(range(feature_map.n_features_in_)) is None:
        raise ValueError(
            f"{what} needs a Gaussian kernel, or another product over coordinates, at landmarks "
            f"(features='cholesky' or 'nystroem'), got {feature_map.kernel_!r} in "
            f"{type(feature_map).__name__}"
        )
    return ProductForm(feature_map.coefficients(factor), landmarks, kernel)


def _weighted_sum(feature_map: FeatureMap, measure: Points) -> FloatArray:
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


def _numerical(feature_map: FeatureMap, measure: Box | Normal) -> Moment:
    """Quadrature, with the difference of two rules as its error."""
    d = feature_map.n_features_in_
    if isinstance(measure, Normal):
        low, high = np.full(d, -8.5), np.full(d, 8.5)
        chol = np.linalg.cholesky(measure.matrix)
    else:
        low, high = measure.bounds
        if not np.all(np.isfinite(low) & np.isfinite(high)):
            raise ValueError(
                f"domain must be bounded, or a normal density, for {feature_map.kernel_!r}: there "
                "is no closed form of the integral over all of space"
            )

    def rule(points: FloatArray, weights: FloatArray) -> FloatArray:
        if isinstance(measure, Normal):
            norm = np.exp(-0.5 * np.square(points).sum(axis=1)) / (2.0 * np.pi) ** (0.5 * d)
            return _weighted_sum(
                feature_map, Points(measure.centre + points @ chol.T, weights * norm)
            )
        return _weighted_sum(feature_map, Points(points, weights))

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


__all__ = ["Moment", "moment", "product_form"]
