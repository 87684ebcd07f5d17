"""Estimators in scikit-learn's manner: each a loss, a kernel and a certificate."""

from __future__ import annotations

from fenchel.regression.expectile import ExpectileRegressor
from fenchel.regression.quantile import QuantileRegressor
from fenchel.regression.ridge import KernelRidge
from fenchel.regression.svr import SVR

__all__ = ["SVR", "ExpectileRegressor", "KernelRidge", "QuantileRegressor"]
