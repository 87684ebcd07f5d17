"""Kernels of vectors and of curves, operator-valued kernels, and data-driven length scales."""

from fenchel.kernels.base import ScalarKernel
from fenchel.kernels.between_curves import BetweenCurves, IntegralGaussian, OnColumns
from fenchel.kernels.computed import Computed
from fenchel.kernels.given import Callable, Precomputed
from fenchel.kernels.levels import check_coupling, level_coupling, output_coupling
from fenchel.kernels.measures import Box, Normal, Points, as_box, as_measure
from fenchel.kernels.operator_valued import (
    Decomposable,
    OperatorCallable,
    OperatorKernel,
    OperatorSum,
    Transformable,
)
from fenchel.kernels.parameters import differentiated, is_open, opened, parameter_gradient, settled
from fenchel.kernels.ranked import WithRanks
from fenchel.kernels.resolving import (
    ALIASES,
    as_kernel,
    as_scalar_kernel,
    has_measured_scale,
    parts_of,
    resolve,
    summands_of,
)
from fenchel.kernels.scalar import Gaussian, Laplacian, Linear, Matern, Polynomial
from fenchel.kernels.sparse import SparsePoints, stacked, takes_sparse
from fenchel.kernels.tiles import KernelFunctions, for_threads
from fenchel.kernels.widths import SHARED, SHARED_RANGE, DistanceQuantile, is_shared

__all__ = [
    "ALIASES",
    "SHARED",
    "SHARED_RANGE",
    "BetweenCurves",
    "Box",
    "Callable",
    "Computed",
    "Decomposable",
    "DistanceQuantile",
    "Gaussian",
    "IntegralGaussian",
    "KernelFunctions",
    "Laplacian",
    "Linear",
    "Matern",
    "Normal",
    "OnColumns",
    "OperatorCallable",
    "OperatorKernel",
    "OperatorSum",
    "Points",
    "Polynomial",
    "Precomputed",
    "ScalarKernel",
    "SparsePoints",
    "Transformable",
    "WithRanks",
    "as_box",
    "as_kernel",
    "as_measure",
    "as_scalar_kernel",
    "check_coupling",
    "differentiated",
    "for_threads",
    "has_measured_scale",
    "is_open",
    "is_shared",
    "level_coupling",
    "opened",
    "output_coupling",
    "parameter_gradient",
    "parts_of",
    "resolve",
    "settled",
    "stacked",
    "summands_of",
    "takes_sparse",
]

__dir__ = __all__.copy
