"""Estimators for Dask collections, with features on the workers of a cluster."""

from fenchel.dask.estimators import (
    DaskExpectileRegressor,
    DaskKernelRidge,
    DaskQuantileRegressor,
    DaskSVR,
)

__all__ = ["DaskExpectileRegressor", "DaskKernelRidge", "DaskQuantileRegressor", "DaskSVR"]

__dir__ = __all__.copy
