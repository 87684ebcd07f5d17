"""Scalar kernels, and length scales read off the data."""

from __future__ import annotations

from fenchel.kernels.resolving import ALIASES, as_kernel, resolve
from fenchel.kernels.scalar import (
    Callable,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    ScalarKernel,
)
from fenchel.kernels.widths import DistanceQuantile

__all__ = [
    "ALIASES",
    "Callable",
    "DistanceQuantile",
    "Gaussian",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "ScalarKernel",
    "as_kernel",
    "resolve",
]
