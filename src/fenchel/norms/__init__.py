"""Norms of coefficients: value, dual norm, prox, projection."""

from fenchel.norms.group_norm import GroupNorm

__all__ = ["GroupNorm"]

__dir__ = __all__.copy
