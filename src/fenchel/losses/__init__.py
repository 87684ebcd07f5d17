"""Losses: value, conjugate, prox of the conjugate, and their calculus."""

from fenchel.losses.atoms import Absolute, Huber, L2Norm, Pinball, Squared, SquaredPinball
from fenchel.losses.base import ConvexFunction, Insensitive, Loss, Rescaled
from fenchel.losses.box import BoxQuadratic
from fenchel.losses.curves import CurveHuber, CurveInsensitive, Pointwise
from fenchel.losses.forms import Box, ConicParts, Envelope, Local
from fenchel.losses.non_crossing import NonCrossing
from fenchel.losses.radial import Radial
from fenchel.losses.registry import (
    LOSSES,
    LossParameters,
    NamedLoss,
    curve_loss,
    make_loss,
    parameters_of,
)

__all__ = [
    "LOSSES",
    "Absolute",
    "Box",
    "BoxQuadratic",
    "ConicParts",
    "ConvexFunction",
    "CurveHuber",
    "CurveInsensitive",
    "Envelope",
    "Huber",
    "Insensitive",
    "L2Norm",
    "Local",
    "Loss",
    "LossParameters",
    "NamedLoss",
    "NonCrossing",
    "Pinball",
    "Pointwise",
    "Radial",
    "Rescaled",
    "Squared",
    "SquaredPinball",
    "curve_loss",
    "make_loss",
    "parameters_of",
]

__dir__ = __all__.copy
