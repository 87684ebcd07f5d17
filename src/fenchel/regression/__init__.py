"""Regression estimators in the style of scikit-learn, each fit with a certificate."""

from fenchel.regression.conversion import alpha_of
from fenchel.regression.expectile import ExpectileRegressor
from fenchel.regression.group_lasso import GroupLasso
from fenchel.regression.lasso import Lasso
from fenchel.regression.linear import LinearRegression, Ridge
from fenchel.regression.path import LassoPath, lasso_path
from fenchel.regression.quantile import QuantileRegressor
from fenchel.regression.ridge import KernelRidge
from fenchel.regression.svr import SVR

__all__ = [
    "SVR",
    "ExpectileRegressor",
    "GroupLasso",
    "KernelRidge",
    "Lasso",
    "LassoPath",
    "LinearRegression",
    "QuantileRegressor",
    "Ridge",
    "alpha_of",
    "lasso_path",
]

__dir__ = __all__.copy
