"""Norms of coefficients: value, dual norm, prox, projection."""

from fenchel.norms.group_norm import GroupNorm

__all__ = ["GroupNorm"]


def __dir__() -> list[str]:
    return sorted(__all__)
