"""Non-negative functions: estimators, losses, constraints and solvers of PSD models."""

from fenchel.kernels import Box, Normal, Points
from fenchel.positive._fista import DualFista
from fenchel.positive._solution import Start
from fenchel.positive.conditions import Condition
from fenchel.positive.cone import ConeRegressor, monotone_cone, non_negative_cone
from fenchel.positive.density import DensityEstimator
from fenchel.positive.heteroscedastic import HeteroscedasticRegressor
from fenchel.positive.integrals import Moment, moment
from fenchel.positive.losses import LogLikelihood, Poisson, PredictionLoss, Residual
from fenchel.positive.model import PSDModel
from fenchel.positive.non_crossing import NonCrossingQuantileRegressor
from fenchel.positive.non_negative import NonNegativeRegressor
from fenchel.positive.normal_likelihood import NormalLikelihood
from fenchel.positive.problem import Constraint, LinearPart, PSDPart, PSDProblem
from fenchel.positive.solvers import DualNewton, ProximalNewton, solve

__all__ = [
    "Box",
    "Condition",
    "ConeRegressor",
    "Constraint",
    "DensityEstimator",
    "DualFista",
    "DualNewton",
    "HeteroscedasticRegressor",
    "LinearPart",
    "LogLikelihood",
    "Moment",
    "NonCrossingQuantileRegressor",
    "NonNegativeRegressor",
    "Normal",
    "NormalLikelihood",
    "PSDModel",
    "PSDPart",
    "PSDProblem",
    "Points",
    "Poisson",
    "PredictionLoss",
    "ProximalNewton",
    "Residual",
    "Start",
    "moment",
    "monotone_cone",
    "non_negative_cone",
    "solve",
]

__dir__ = __all__.copy
