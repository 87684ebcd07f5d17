r"""Integrals of products of two features, :math:`M = \int \varphi \varphi^\top d\mu`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.features import FeatureMap
from fenchel.kernels import Box, Normal, Points, as_measure, as_scalar_kernel
from fenchel.positive._quadrature import decay_range, line_rule, space_rule, weighted_products

# A closed form has a few roundings for each coordinate, of exponentials, error functions and
# powers, and a kernel value fewer: in units of the last digit.
_ROUNDINGS = 8.0 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Moment:
    r"""A matrix of integrals with a bound on its error.

    Attributes
    ----------
    matrix : ndarray of shape (r, r)
        Integrals of the products of features; symmetric and positive semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import PivotedCholesky
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.positive import moment
    >>> feature_map = PivotedCholesky(Gaussian(1.0), rank=4).fit(np.linspace(0, 1, 10)[:, None])
    >>> integrals = moment(feature_map, (0.0, 1.0))
    >>> integrals.matrix.shape, integrals.error < 1e-9
    ((4, 4), True)
    """

    matrix: FloatArray
    feature_map: FeatureMap
    distance: float = 0.0
    """L² norm of the difference between the kernel and the integrated kernel."""
    doubt: FloatArray | None = None
    """Differences (k, r, r) that bound the quadrature error."""
    summed: bool = False
    """Whether this is a sum over points, which has less cancellation than sums of integrals."""

    @property
    def error(self) -> float:
        """Bound on the error of any entry."""
        return float(self._errors_of(np.eye(len(self.matrix))).max(initial=0.0))

    def error_of(self, factor: FloatArray) -> float:
        r"""Bound on :math:`|\int f - \operatorname{tr}(M F F^\top)|`, (r, q) for F.

        With :math:`F^\top \varphi = C^\top k(Z, \cdot)`, the rounding errors of the kernel values
        k and of the integrals G of their products enter multiplied by :math:`|C|`. So does the
        difference between the kernel and the kernel that was integrated. The error of the features
        is turned into an error of the integral by the Cauchy-Schwarz inequality.
        """
        return float(np.trace(self._errors_of(factor)))

    def _errors_of(self, factor: FloatArray) -> FloatArray:
        """Of the products of features Fᵀ φ, (q, q)."""
        sizes, inner = np.abs(factor), np.abs(self.matrix)
        if self._at_landmarks is not None:
            sizes = np.abs(self.feature_map.coefficients(factor))
            inner = np.abs(self._at_landmarks @ self.matrix @ self._at_landmarks.T)
        norms = np.sqrt(np.maximum(np.einsum("ij,ij->j", factor, self.matrix @ factor), 0.0))
        reach = sizes.T @ inner @ sizes
        shift = _ROUNDINGS * np.sqrt(reach.diagonal()) + self.distance * sizes.sum(axis=0)
        errors = np.outer(norms, shift)
        errors += errors.T + np.outer(shift, shift)
        if not self.summed:
            errors += _ROUNDINGS * reach
        if self.doubt is not None:
            doubts = factor.T @ self.doubt @ factor
            errors += np.sqrt(np.square(doubts).sum(axis=0))
        return np.asarray(errors)

    @cached_property
    def _at_landmarks(self) -> FloatArray | None:
        """Features of the landmarks, None where there are none: k(x, z) = <φ(x), φ(z)>."""
        landmarks = getattr(self.feature_map, "landmarks_", None)
        return None if landmarks is None else self.feature_map.transform(landmarks)


def moment(feature_map: FeatureMap, domain: Any = None) -> Moment:
    r"""Integrate the products of features over a domain.

    .. math:: M = \int \varphi(x) \varphi(x)^\top d\mu(x), \qquad
              \int f_A\, d\mu = \operatorname{tr}(M A)

    The rule depends on the kernel and the domain:

    - In one dimension, features are integrated between neighbouring landmarks, exactly up to
      rounding.
    - In more dimensions, closed forms exist for features that are combinations of kernel values at
      landmarks (pivoted Cholesky, Nyström, kernel rows). They cover the Gaussian and Matérn
      kernels over R^d, over any box or against a normal density; polynomial and linear kernels
      over a bounded box or against a normal density; and any kernel or feature map with its own
      ``product_integrals``. Matérn kernels are expanded in Gaussian kernels unless the domain is
      all of R^d.
    - Against weighted points, any feature map is supported.
    - Everything else uses quadrature over a bounded box or against a normal density:
      Gauss–Legendre panels up to three dimensions and randomized Sobol points beyond. Sobol points
      that are too coarse for the features raise an error.

    Parameters
    ----------
    feature_map : FeatureMap
        A fitted feature map.
    domain : None, (low, high), Box, Normal or Points
        Domain or measure of the integrals. The default is all of R^d.

    Returns
    -------
    Moment
        ``matrix`` (r, r); ``error``, a bound on the error of any entry including rounding; and
        ``error_of(factor)``, a bound on the error of an integral.

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
        points = np.asarray(measure.points, dtype=np.float64)
        weights = np.asarray(measure.weights, dtype=np.float64)
        if len(weights) != len(points):
            raise ValueError(f"weights must have {len(points)} entries, got {len(weights)}")
        return Moment(weighted_products(feature_map, points, weights), feature_map, summed=True)
    exact = feature_map.product_integrals(measure)
    ends = None
    if isinstance(measure, Box):
        ends = decay_range(feature_map, *measure.bounds, tails=2.0)  # f is small, its parts not
        if exact is None and not np.all(np.isfinite(measure.bounds)):
            raise ValueError(
                f"domain must be bounded, or a normal density, for {feature_map.kernel_!r}: there "
                "is no closed form of the integral over all of space"
            )
    if ends is not None and feature_map.n_features_in_ == 1:
        matrix, doubt = line_rule(feature_map, float(ends[0][0]), float(ends[1][0]))
        return Moment(matrix, feature_map, doubt=doubt, summed=True)
    if exact is None:
        matrix, doubt = space_rule(feature_map, measure)
        return Moment(_positive(matrix), feature_map, doubt=doubt, summed=True)
    distance = 0.0
    if getattr(feature_map, "landmarks_", None) is not None:
        distance = as_scalar_kernel(feature_map.kernel_).product_distance(measure)
    return Moment(_positive(exact), feature_map, distance)


def on_support(
    measure: Box | Normal | Points, support: Box, name: str
) -> Box | Normal | Points | None:
    """Return the restriction of a measure to a support, or None if nothing is left.

    Raises
    ------
    ValueError
        For a normal density, unless the support is all of space. The message names the parameter.
    """
    if isinstance(measure, Box):
        return support.intersection(measure)
    if isinstance(measure, Points):
        inside = support.contains(np.asarray(measure.points))
        return Points(measure.points, np.where(inside, measure.weights, 0.0))
    if not support.whole:
        raise ValueError(
            f"{name} must be a box or Points for a model with a support, got {shown(measure)}"
        )
    return measure


def _positive(matrix: FloatArray) -> FloatArray:
    """The nearest positive semi-definite matrix, as integrals of squares are not negative."""
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= 0.0:
        return matrix
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root @ root.T)
