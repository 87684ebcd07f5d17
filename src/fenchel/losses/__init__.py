"""Convex losses, with their values, conjugates and proximal operators."""

from fenchel.losses.atoms import Absolute, Huber, L2Norm, Pinball, Squared, SquaredPinball
from fenchel.losses.base import ConvexFunction, Loss
from fenchel.losses.box import BoxQuadratic
from fenchel.losses.curves import CurveHuber, CurveInsensitive, Pointwise
from fenchel.losses.forms import Box, ConicParts, Envelope, Local
from fenchel.losses.non_crossing import NonCrossing
from fenchel.losses.radial import Radial
from fenchel.losses.registry import LOSSES, curve_loss, make_loss, parameters_of

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
    "L2Norm",
    "Local",
    "Loss",
    "NonCrossing",
    "Pinball",
    "Pointwise",
    "Radial",
    "Squared",
    "SquaredPinball",
    "curve_loss",
    "make_loss",
    "parameters_of",
]

__dir__ = __all__.copy
