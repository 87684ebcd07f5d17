"""Losses of the length of the residual vector."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from fenchel._typing import FloatArray
from fenchel.losses.base import Loss, check_epsilon
from fenchel.losses.forms import ROUNDING, ConicParts, Local, Step, at_end


class Radial(Loss):
    r"""Loss that depends only on the length of the residual.

    .. math:: \ell^*(\beta) = \tfrac{q}{2} \|\beta\|_2^2 + \chi(\|\beta\|_2 \le \kappa)
              + \varepsilon \|\beta\|_2

    ``q = 1`` with a finite radius is the Huber loss of vectors; ``q = 0`` is the length.

    Parameters
    ----------
    curvature : float
        q >= 0.
    radius : float
        kappa > 0, finite if q = 0.
    epsilon : float
        Radius of insensitivity.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Radial
    >>> length = Radial(curvature=0.0, radius=1.0)
    >>> length.value(np.array([[3.0, 4.0]]))
    array([5.])
    """

    separable = False
    radial = True

    def __init__(self, curvature: float, radius: float, epsilon: float = 0.0) -> None:
        self.curvature = curvature
        self.radius = radius
        self.epsilon = check_epsilon(epsilon)
        self.lipschitz = radius
        self.smoothness = 1.0 / curvature if curvature > 0 else np.inf

    def _arguments(self) -> str:
        return f"curvature={self.curvature:g}, radius={self.radius:g}"

    def insensitive(self, epsilon: float) -> Self:
        """Return the infimal convolution with another ball: the radii are added."""
        new = copy.copy(self)
        new.epsilon = self.epsilon + check_epsilon(epsilon)
        return new

    def conic_parts(self, n_outputs: int) -> ConicParts:
        """Return the length and the ball."""
        return ConicParts(length=(self.curvature, self.radius), epsilon=self.epsilon)

    def local(self, reach: FloatArray) -> Local:
        """Exact slopes and values, at the longest residual."""
        length = np.maximum(np.array([np.linalg.norm(reach)]) - self.epsilon, 0.0)
        slope, value = at_end(length, np.array([self.radius]), np.array([self.curvature]))
        return Local(slope, len(reach) == 1, float(value[0]))

    def rescaled(self, scale: float) -> Self:
        """Return a loss of the same class with other parameters."""
        new = copy.copy(self)
        if self.degree == 2:
            new.radius = new.lipschitz = self.radius / scale
        else:
            new.curvature = self.curvature / scale
        new.epsilon = self.epsilon / scale
        return new

    def value(self, residual: FloatArray) -> FloatArray:
        length = np.maximum(np.linalg.norm(residual, axis=1) - self.epsilon, 0.0)
        if self.curvature == 0.0:
            return self.radius * length
        slope = np.minimum(length / self.curvature, self.radius)
        return np.asarray(slope * (length - 0.5 * self.curvature * slope))

    def conjugate(self, dual: FloatArray) -> FloatArray:
        length = np.linalg.norm(dual, axis=1)
        value = 0.5 * self.curvature * length**2 + self.epsilon * length
        return np.where(length > self.radius * (1.0 + ROUNDING), np.inf, value)

    def _lengths(self, point: FloatArray, step: Step) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Length of the prox over that of the point, slope along the point, direction."""
        length = np.linalg.norm(point, axis=1, keepdims=True)
        direction = point / np.where(length > 0, length, 1.0)
        slope = 1.0 / (1.0 + np.asarray(step) * self.curvature)
        size = np.maximum(length - np.asarray(step) * self.epsilon, 0.0) * slope
        interior = (size > 0) & (size < self.radius)
        size = np.minimum(size, self.radius)
        ratio = size / np.where(length > 0, length, 1.0)
        if self.epsilon == 0.0:  # the prox is linear near 0
            ratio = np.where(length > 0, ratio, slope)
            interior |= length == 0
        return ratio, np.where(interior, slope, 0.0), direction

    def conjugate_prox(self, point: FloatArray, step: Step) -> FloatArray:
        return self._lengths(point, step)[0] * point

    def conjugate_prox_jacobian(self, point: FloatArray, step: Step) -> FloatArray:
        ratio, slope, direction = self._lengths(point, step)
        radial = direction[:, :, None] * direction[:, None, :]
        return ratio[:, :, None] * np.eye(point.shape[1]) + (slope - ratio)[:, :, None] * radial
