"""Choosing parameters: cross-validation along warm-started paths."""

from __future__ import annotations

from fenchel.model_selection.estimators import (
    SVRCV,
    ExpectileRegressorCV,
    KernelRidgeCV,
    QuantileRegressorCV,
)

__all__ = ["SVRCV", "ExpectileRegressorCV", "KernelRidgeCV", "QuantileRegressorCV"]
