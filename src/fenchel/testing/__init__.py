"""Contract checks: whether a loss, kernel, feature map, design or solver is what it claims to be.

Each check raises an AssertionError whose sentence says what is wrong and where, and returns
nothing if it finds nothing. They test definitions, not formulas: a loss is held against its
own conjugate, a prox against other points, a certificate against the problem.
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
