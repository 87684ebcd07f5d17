"""Norms of coefficients: value, dual norm, prox, projection."""

from __future__ import annotations

from fenchel.norms.group_norm import GroupNorm

__all__ = ["GroupNorm"]
