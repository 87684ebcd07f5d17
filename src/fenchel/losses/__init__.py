"""Losses: value, conjugate, prox of the conjugate, and their calculus."""

from __future__ import annotations

from fenchel.losses.atoms import Absolute, Huber, L1Norm, L2Norm, Pinball, Squared, SquaredPinball
from fenchel.losses.base import Envelope, Loss
from fenchel.losses.box import BoxQuadratic
from fenchel.losses.curves import CurveHuber, CurveInsensitive
from fenchel.losses.infimal import Insensitive
from fenchel.losses.non_crossing import NonCrossing
from fenchel.losses.radial import Radial

__all__ = [
    "Absolute",
    "BoxQuadratic",
    "CurveHuber",
    "CurveInsensitive",
    "Envelope",
    "Huber",
    "Insensitive",
    "L1Norm",
    "L2Norm",
    "Loss",
    "NonCrossing",
    "Pinball",
    "Radial",
    "Squared",
    "SquaredPinball",
]
