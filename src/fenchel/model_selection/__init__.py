"""Cross-validation along warm-started paths, and conformal prediction intervals."""

from fenchel.model_selection.conformal import ConformalQuantileRegressor, ConformalRegressor
from fenchel.model_selection.named import GroupLassoCV, KernelRidgeCV, LassoCV, RidgeCV
from fenchel.model_selection.search import PathSearchCV

__all__ = [
    "ConformalQuantileRegressor",
    "ConformalRegressor",
    "GroupLassoCV",
    "KernelRidgeCV",
    "LassoCV",
    "PathSearchCV",
    "RidgeCV",
]

__dir__ = __all__.copy
