"""Predicted distributions: one for each row, with cdf, quantiles, moments, samples and CRPS."""

from fenchel.distributions.base import Distribution
from fenchel.distributions.gridded import GridDistribution
from fenchel.distributions.normal import NormalDistribution
from fenchel.distributions.quantiles import QuantileDistribution

__all__ = ["Distribution", "GridDistribution", "NormalDistribution", "QuantileDistribution"]

__dir__ = __all__.copy
