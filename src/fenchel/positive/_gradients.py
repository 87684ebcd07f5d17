"""Gradients of combinations of kernel values."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.gaussian_process.kernels as sk

from fenchel._typing import FloatArray
from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial


def gradient_at_landmarks(
    kernel: Any, X: FloatArray, Z: FloatArray, weights: FloatArray
) -> FloatArray | None:
    """2 Σ_m weights[i, m] ∇ k(x_i, z_m), (n, d); None for a kernel that is not known."""
    if isinstance(kernel, Linear):
        return 2.0 * weights @ Z
    if isinstance(kernel, Polynomial):
        inner = kernel.gain * X @ Z.T + kernel.offset
        return 2.0 * kernel.degree * kernel.gain * (weights * inner ** (kernel.degree - 1)) @ Z
    slope = _slopes(kernel, X, Z)
    if slope is None:
        return None
    slope *= weights
    squares = np.square(np.asarray(kernel.length_scale, dtype=np.float64))
    return np.asarray(2.0 * (slope @ Z - slope.sum(axis=1)[:, None] * X) / squares)


def _slopes(kernel: Any, X: FloatArray, Z: FloatArray) -> FloatArray | None:
    """ρ with ∇ k(x, z) = ρ (z - x) / length_scale², (n, m)."""
    gaussian = isinstance(kernel, Gaussian) or type(kernel) is sk.RBF
    matern = isinstance(kernel, (Matern, Laplacian)) or type(kernel) is sk.Matern
    if gaussian:
        return np.array(kernel(X, Z))
    if not matern:
        return None
    nu = 0.5 if isinstance(kernel, Laplacian) else kernel.nu
    if nu == np.inf:
        return np.array(kernel(X, Z))
    scaled, centres = X / kernel.length_scale, Z / kernel.length_scale
    distance = np.sqrt(np.square(scaled[:, None, :] - centres).sum(axis=2))
    if nu == 0.5:  # at a landmark itself there is a kink, and 0 is the mean slope
        return np.divide(
            np.exp(-distance), distance, out=np.zeros_like(distance), where=distance > 0.0
        )
    if nu == 1.5:
        return 3.0 * np.exp(-np.sqrt(3.0) * distance)
    if nu == 2.5:
        root = np.sqrt(5.0) * distance
        return 5.0 / 3.0 * (1.0 + root) * np.exp(-root)
    return None


__all__ = ["gradient_at_landmarks"]
