"""Checks of the interfaces of losses, kernels, feature maps, designs, solvers and positive models.

Each check raises an AssertionError that says what is wrong and where, and returns None if it finds
no error. The checks test definitions, not formulas: a loss is compared with its own conjugate, a
prox with other points, and a certificate with the problem.
"""

from fenchel.testing.designs import check_design
from fenchel.testing.feature_maps import check_feature_map
from fenchel.testing.kernels import check_kernel
from fenchel.testing.losses import check_loss
from fenchel.testing.positive import check_positive_model
from fenchel.testing.solvers import check_solver, small_problems

__all__ = [
    "check_design",
    "check_feature_map",
    "check_kernel",
    "check_loss",
    "check_positive_model",
    "check_solver",
    "small_problems",
]

__dir__ = __all__.copy
