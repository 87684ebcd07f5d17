"""Generalization bounds for classes of functions and for fitted estimators."""

from fenchel.bounds._result import Bound
from fenchel.bounds.complexity import (
    Estimate,
    affine_pseudo_dimension,
    fat_shattering_dimension,
    finite_class,
    kernel_ball,
    kernel_ball_complexity,
    l1_ball,
    l1_ball_complexity,
    positive_model_complexity,
    rademacher_complexity,
)
from fenchel.bounds.fitted import bound
from fenchel.bounds.general import finite_class_bound, lipschitz_bound, pseudo_dimension_bound
from fenchel.bounds.of_fits import excess_bound, level_bounds, truncation_bound
from fenchel.bounds.papers import (
    Interval,
    insensitive_excess_bound,
    joint_quantile_bound,
    positive_excess_bound,
    quantile_deviation_bound,
)
from fenchel.bounds.textbook import (
    kernel_ridge_bound,
    lasso_bound,
    perturbed_kernel_bound,
    quadratic_svr_bound,
    squared_loss_bound,
    svr_bound,
)

__all__ = [
    "Bound",
    "Estimate",
    "Interval",
    "affine_pseudo_dimension",
    "bound",
    "excess_bound",
    "fat_shattering_dimension",
    "finite_class",
    "finite_class_bound",
    "insensitive_excess_bound",
    "joint_quantile_bound",
    "kernel_ball",
    "kernel_ball_complexity",
    "kernel_ridge_bound",
    "l1_ball",
    "l1_ball_complexity",
    "lasso_bound",
    "level_bounds",
    "lipschitz_bound",
    "perturbed_kernel_bound",
    "positive_excess_bound",
    "positive_model_complexity",
    "pseudo_dimension_bound",
    "quadratic_svr_bound",
    "quantile_deviation_bound",
    "rademacher_complexity",
    "squared_loss_bound",
    "svr_bound",
    "truncation_bound",
]

__dir__ = __all__.copy
