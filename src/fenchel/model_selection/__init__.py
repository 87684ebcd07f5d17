"""Choosing parameters along warm-started paths, and intervals calibrated on held-out rows."""

from __future__ import annotations

from fenchel.model_selection.conformal import ConformalQuantileRegressor, ConformalRegressor
from fenchel.model_selection.estimators import (
    SVRCV,
    ExpectileRegressorCV,
    KernelRidgeCV,
    QuantileRegressorCV,
)
from fenchel.model_selection.functional import FunctionalRegressorCV
from fenchel.model_selection.positive import (
    DensityEstimatorCV,
    HeteroscedasticRegressorCV,
    NonCrossingQuantileRegressorCV,
    NonNegativeRegressorCV,
)

__all__ = [
    "SVRCV",
    "ConformalQuantileRegressor",
    "ConformalRegressor",
    "DensityEstimatorCV",
    "ExpectileRegressorCV",
    "FunctionalRegressorCV",
    "HeteroscedasticRegressorCV",
    "KernelRidgeCV",
    "NonCrossingQuantileRegressorCV",
    "NonNegativeRegressorCV",
    "QuantileRegressorCV",
]
