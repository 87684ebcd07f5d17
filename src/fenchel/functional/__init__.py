"""Functional output regression: curves, errors of predicted curves, and the regressor."""

from fenchel._grids import as_grid, quadrature_weights
from fenchel.functional._inputs import is_array
from fenchel.functional.curves import Curves, as_curves
from fenchel.functional.errors import curve_mse, curve_nmse
from fenchel.functional.regressor import FunctionalRegressor, Sparsity
from fenchel.functional.robustness import robustness_ratio

__all__ = [
    "Curves",
    "FunctionalRegressor",
    "Sparsity",
    "as_curves",
    "as_grid",
    "curve_mse",
    "curve_nmse",
    "is_array",
    "quadrature_weights",
    "robustness_ratio",
]

__dir__ = __all__.copy
