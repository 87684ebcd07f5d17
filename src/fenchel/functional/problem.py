"""A functional regression problem and the certificate of any dual point."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import eigh, qr

from fenchel._typing import FloatArray
from fenchel.losses import Loss
from fenchel.problem import Certificate, Certified

_ROUNDING = 1e-16  # of the largest eigenvalue


@dataclass(frozen=True, eq=False)
class Rows:
    r"""Rows as the input kernel sees them, and their weights.

    Parameters
    ----------
    features : ndarray of shape (n, r) or (n, n)
        Feature vectors Φ with K = Φ Φᵀ, or the Gram matrix K itself.
    is_gram : bool
        Whether ``features`` is K.
    sample_weight : ndarray of shape (n,)
        Positive weights.
    """

    features: FloatArray
    is_gram: bool
    sample_weight: FloatArray

    @cached_property
    def share(self) -> FloatArray:
        """Weights that sum to one, (n,)."""
        return self.sample_weight / self.sample_weight.sum()

    def gram_times(self, values: FloatArray) -> FloatArray:
        """K times values (n, m)."""
        factor = self.factor
        if factor is None:
            return self._gram @ values
        return factor @ (factor.T @ values)

    @property
    def _nearly_full(self) -> bool:
        n, rank = self.features.shape
        return self.is_gram or 2 * rank >= n

    @cached_property
    def _gram(self) -> FloatArray:
        return self.features if self.is_gram else self.features @ self.features.T

    @cached_property
    def factor(self) -> FloatArray | None:
        """Factor (n, k) with K its square up to rounding, None where K itself is smaller."""
        if not self._nearly_full:
            return self.features
        values, vectors = self.spectrum
        some = values > _ROUNDING * values[-1]
        if 2 * np.count_nonzero(some) >= len(values):
            return None
        inverse = 1.0 / np.sqrt(self.share)
        return np.asarray(inverse[:, None] * vectors[:, some] * np.sqrt(values[some]))

    @cached_property
    def spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues (k,) and orthonormal vectors (n, k) of √s K √s, s the shares.

        What is not in the span of the vectors has the eigenvalue 0.
        """
        root = np.sqrt(self.share)[:, None]
        if self._nearly_full:
            scaled = root * self._gram * root.T
            values, vectors = eigh(scaled, overwrite_a=True, check_finite=False)
        else:
            basis, triangle = qr(root * self.features, mode="economic", check_finite=False)
            values, inner = eigh(triangle @ triangle.T, check_finite=False)
            vectors = basis @ inner
        return np.maximum(values, 0.0), vectors


@dataclass(frozen=True, eq=False)
class Points:
    r"""Points of the curves: the output kernel and the measure.

    Parameters
    ----------
    kernel : ndarray of shape (m, m)
        The output kernel between the points.
    measure : ndarray of shape (m,)
        Weights of the points that are common to all curves.
    observed : ndarray of shape (n, m) or None
        1 where a curve is observed and 0 elsewhere; √(own weight / common one) where curves
        have weights of their own; None where all is observed.
    masked : bool
        Whether ``observed`` holds zeros and ones only.
    """

    kernel: FloatArray
    measure: FloatArray
    observed: FloatArray | None = None
    masked: bool = True

    @cached_property
    def root(self) -> FloatArray:
        """√μ, (1, m) or (n, m): what curves are multiplied with."""
        common = np.sqrt(self.measure)[None, :]
        return common if self.observed is None else common * self.observed

    @cached_property
    def spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues (m,) and vectors (m, m) of √μ k √μ for the common weights."""
        root = np.sqrt(self.measure)
        values, vectors = eigh(root[:, None] * self.kernel * root, check_finite=False)
        return np.maximum(values, 0.0), vectors


@dataclass(frozen=True, eq=False)
class CurveProblem:
    r"""Curves, loss, two kernels and strength; no algorithm.

    .. math:: P(h) = \tfrac12 \|h\|^2 + \sum_i c_i\, \ell(y_i - h(x_i)), \qquad
              c_i = \frac{s_i}{\alpha \sum_k s_k}

    .. math:: D(\beta) = \sum_i c_i \left(\langle \beta_i, y_i\rangle - \ell^*(\beta_i)\right)
              - \tfrac12 \|h_\beta\|^2, \qquad
              h_\beta(x)(\theta) = \sum_{ij} u_{ij}\, k(x, x_i)\, k_\Theta(\theta, \theta_j),
              \quad u_{ij} = c_i \sqrt{\mu_{ij}}\, \beta_{ij}

    Curves and dual vectors are in coordinates scaled by √μ, as losses of curves want them;
    β/√μ is the dual curve of the paper. A function is known by its coefficients u.

    Parameters
    ----------
    loss : Loss
        Loss of the scaled residual curves.
    rows : Rows
        The input side.
    points : Points
        The output side.
    targets : ndarray of shape (n, m)
        The curves, scaled by √μ: zero where unobserved.
    alpha : float
        Strength of the regularization.
    """

    loss: Loss
    rows: Rows
    points: Points
    targets: FloatArray
    alpha: float
    _images: list[tuple[FloatArray, FloatArray]] = field(
        default_factory=list, init=False, repr=False
    )

    @cached_property
    def weight(self) -> FloatArray:
        """The weights c of the losses, (n,)."""
        return self.rows.share / self.alpha

    @cached_property
    def baseline(self) -> float:
        """Objective of the function zero: the unit of relative gaps."""
        return float(self.weight @ self.loss.value(self.targets))

    def coefficients(self, dual: FloatArray) -> FloatArray:
        """Coefficients u of the function that a dual point stands for, (n, m)."""
        return self.weight[:, None] * self.points.root * dual

    def image(self, dual: FloatArray) -> FloatArray:
        """Scaled values √μ h(x_i) of that function on the rows, kept for the last two points."""
        for known, image in self._images:
            if known is dual:
                return image
        points, product = self.points, self.coefficients(dual)
        image = points.root * self.rows.gram_times(product @ points.kernel)
        self._images[:] = [(dual, image), *self._images[:1]]
        return image

    def half_norm(self, dual: FloatArray) -> float:
        """Half the squared norm of that function."""
        return 0.5 * float(np.einsum("i,ij,ij->", self.weight, dual, self.image(dual)))

    def primal(self, model: FloatArray) -> float:
        """Objective of the function that a point stands for, feasible or not."""
        losses = self.loss.value(self.targets - self.image(model))
        return self.half_norm(model) + float(self.weight @ losses)

    def dual(self, dual: FloatArray) -> float:
        """Objective of a dual point, -inf outside the domain of the conjugate."""
        earned = np.einsum("ij,ij->i", dual, self.targets) - self.loss.conjugate(dual)
        return float(self.weight @ earned) - self.half_norm(dual)

    def certify(self, dual: FloatArray, model: FloatArray | None = None) -> Certified:
        """Certificate of a feasible dual point and of the model that a point stands for.

        Both are the same point where ``model`` is None.
        """
        chosen = dual if model is None else model
        primal, lower = self.primal(chosen), self.dual(dual)
        gap, unit = primal - lower, self.baseline
        # where the function zero has no loss, only functions without any are as good
        relative = gap / unit if unit > 0.0 else 0.0 if gap <= 0.0 else np.inf
        certificate = Certificate(primal, lower, gap, relative, 0.0)
        return Certified(dual, self.coefficients(chosen), np.zeros(0), certificate)


__all__ = ["CurveProblem", "Points", "Rows"]
