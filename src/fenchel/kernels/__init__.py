"""Kernels, of vectors, between curves and operator-valued, and length scales read off the data."""

from __future__ import annotations

from fenchel.kernels.between_curves import BetweenCurves, IntegralGaussian, OnColumns
from fenchel.kernels.operator_valued import (
    Decomposable,
    OperatorCallable,
    OperatorKernel,
    OperatorSum,
    Transformable,
)
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
    "BetweenCurves",
    "Callable",
    "Decomposable",
    "DistanceQuantile",
    "Gaussian",
    "IntegralGaussian",
    "Laplacian",
    "Linear",
    "Matern",
    "OnColumns",
    "OperatorCallable",
    "OperatorKernel",
    "OperatorSum",
    "Polynomial",
    "Precomputed",
    "ScalarKernel",
    "Transformable",
    "as_kernel",
    "resolve",
]
