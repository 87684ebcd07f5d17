"""Models as combinations of functions that are products over coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.special import erf

from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.features import FeatureMap, KernelRows
from fenchel.kernels import Box, Normal, ScalarKernel, as_scalar_kernel

_MOST = 4000  # Gaussian functions, of which there are that many squared products
_DENSE = 500  # rows up to which the root of a matrix is that of its spectrum
_NOTHING = 1e-14


class ProductForm(NamedTuple):
    """A function ||Fᵀ φ(x)||² = ||Cᵀ k(Z, x)||² whose kernel is a product over coordinates."""

    coefficients: FloatArray
    """C, (m, q)."""
    landmarks: FloatArray
    """Z, (m, d)."""
    kernel: ScalarKernel

    def along(self, columns: Sequence[int], points: FloatArray) -> FloatArray:
        """Values of some coordinates' factors at points (n, len(columns)), (n, m)."""
        return np.asarray(self._factor(columns)(points, self.landmarks[:, list(columns)]))

    def integrals(self, columns: Sequence[int], box: Box) -> FloatArray:
        """Of products of two values of the kernel of some coordinates, over a box."""
        low, high = box.bounds
        part = Box(low[list(columns)], high[list(columns)])
        found = self._factor(columns).product_integrals(self.landmarks[:, list(columns)], part)
        if found is None:
            raise ValueError(
                "kernel must have integrals of products in closed form (product_integrals) on "
                f"{box!r}, got {shown(self.kernel)}"
            )
        return found

    def features(self, columns: Sequence[int]) -> FeatureMap:
        """What :meth:`along` returns, as a feature map."""
        return KernelRows(self._factor(columns)).fit(self.landmarks[:, list(columns)])

    def _factor(self, columns: Sequence[int]) -> ScalarKernel:
        """The kernel of some coordinates."""
        found = self.kernel.factor(columns)
        assert found is not None  # product_form has asked for all of them
        return found


class MixtureForm(NamedTuple):
    """The same of a sum of Gaussian kernels near one that is no product, each at all landmarks."""

    coefficients: FloatArray
    """C times the weights of the sum, (m, q)."""
    landmarks: FloatArray
    """Z, as often as there are Gaussian kernels, (m, d)."""
    precisions: FloatArray
    """p of exp(-p r²), (m,), r in units of the length scales."""
    kernel: ScalarKernel

    def along(self, columns: Sequence[int], points: FloatArray) -> FloatArray:
        """Values of some coordinates' factors at points (n, len(columns)), (n, m)."""
        scale, found = self._scale, np.zeros((len(points), len(self.landmarks)))
        for at, j in enumerate(columns):
            found += np.square((points[:, [at]] - self.landmarks[:, j]) / scale[j])
        return np.asarray(np.exp(-self.precisions * found))

    def integrals(self, columns: Sequence[int], box: Box) -> FloatArray:
        """Of products of two values of some coordinates' factors, over a box."""
        low, high = box.bounds
        total = np.ones((len(self.landmarks), len(self.landmarks)))
        for j in columns:
            ends = low[j] / self._scale[j], high[j] / self._scale[j]
            total *= self._scale[j] * self._overlaps(self.landmarks[:, j] / self._scale[j], *ends)
        return total

    def features(self, columns: Sequence[int]) -> FeatureMap:
        """What :meth:`along` returns, as a feature map."""
        scale = self._scale[list(columns)]
        kernel = type(self.kernel)(**{**self.kernel.get_params(), "length_scale": scale})
        return GaussianRows(kernel, self.precisions).fit(self.landmarks[:, list(columns)])

    def _overlaps(self, at: FloatArray, low: float, high: float) -> FloatArray:
        """∫ exp(-p (x - z)² - q (x - w)²) dx of all pairs, on the line."""
        p = self.precisions
        total = p[:, None] + p
        share = p[:, None] / total
        middle = at + share * (at[:, None] - at)
        root = np.sqrt(total)
        reach = erf(root * (high - middle)) - erf(root * (low - middle))
        falls = share * p * np.square(at[:, None] - at)
        return np.asarray(0.5 * np.sqrt(np.pi) / root * reach * np.exp(-falls))

    @property
    def _scale(self) -> FloatArray:
        scale: Any = getattr(self.kernel, "length_scale")  # noqa: B009  (not of every kernel)
        return np.broadcast_to(np.asarray(scale, dtype=np.float64), self.landmarks.shape[1])


class GaussianRows(FeatureMap):
    r"""Features :math:`\exp(-p_a \|x - z_a\|^2)`, distances in units of the kernel's.

    Parameters
    ----------
    kernel : kernel
        Which has the length scales.
    precisions : array-like of shape (n_landmarks,)
        The p.
    """

    random_state = None

    def __init__(self, kernel: Any = None, precisions: Any = None) -> None:
        self.kernel = kernel
        self.precisions = precisions

    def _fit(self, X: FloatArray) -> FloatArray:
        self.landmarks_, self.kernel_error_ = X, 0.0
        return self._map(X[:0])

    def _map(self, X: FloatArray) -> FloatArray:
        return self._form.along(range(X.shape[1]), X)

    def coefficients(self, weights: FloatArray) -> FloatArray:
        """Return the weights themselves."""
        return weights

    def product_integrals(self, measure: Box | Normal) -> FloatArray | None:
        """In closed form over boxes."""
        if isinstance(measure, Normal):
            return None
        return self._form.integrals(range(self.landmarks_.shape[1]), measure)

    def gradient(self, X: FloatArray, weights: FloatArray) -> FloatArray | None:
        """Return None: by differences."""
        return None

    @property
    def _form(self) -> MixtureForm:
        none = np.zeros((len(self.landmarks_), 0))
        kernel = as_scalar_kernel(self.kernel_)
        return MixtureForm(none, self.landmarks_, np.asarray(self.precisions), kernel)


def product_form(
    feature_map: FeatureMap, factor: FloatArray, what: str
) -> ProductForm | MixtureForm:
    """Coefficients and landmarks of a product kernel, or a sentence on what is missing."""
    landmarks = getattr(feature_map, "landmarks_", None)
    kernel, d = as_scalar_kernel(feature_map.kernel_), feature_map.n_features_in_
    if isinstance(feature_map, GaussianRows):  # a marginal, whose kernels are in the sum already
        precisions = np.asarray(feature_map.precisions)
        return MixtureForm(factor, feature_map.landmarks_, precisions, kernel)
    product = kernel.factor(range(d)) is not None
    mixture = None if product else kernel.mixture(d)
    if landmarks is None or not (product or mixture is not None):
        raise ValueError(
            f"{what} needs a Gaussian or Matern kernel, or another product over coordinates, at "
            f"landmarks (features='cholesky' or 'nystroem'), got {shown(feature_map.kernel_)} in "
            f"{type(feature_map).__name__}"
        )
    coefficients = feature_map.coefficients(factor)
    if mixture is None:
        return ProductForm(coefficients, landmarks, kernel)
    precisions, weights = mixture
    if len(landmarks) * len(weights) > _MOST:
        raise ValueError(
            f"rank must be at most {_MOST // len(weights)} for {what} of {kernel!r} in {d} "
            f"columns, got {len(landmarks)} landmarks: the kernel is a sum of {len(weights)} "
            "Gaussian kernels at each of them"
        )
    return MixtureForm(
        np.concatenate([weight * coefficients for weight in weights]),
        np.tile(landmarks, (len(weights), 1)),
        np.repeat(precisions, len(landmarks)),
        kernel,
    )


def root_of(matrix: FloatArray) -> FloatArray:
    """R with R Rᵀ = a positive semi-definite matrix, but for a rounding error of its diagonal."""
    if len(matrix) <= _DENSE:
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        kept = values > _NOTHING * max(values[-1], 0.0)
        return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
    level = _NOTHING * float(matrix.diagonal().max())
    factor, order, rank, _ = lapack.dpstrf(np.asfortranarray(matrix), tol=level, lower=1)
    root = np.empty((len(matrix), rank))
    root[order - 1] = np.tril(factor[:, :rank])
    return root
