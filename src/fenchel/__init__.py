"""Kernel regression beyond the mean, with a certificate for every fit."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fenchel import (
        bounds,
        datasets,
        design,
        distributions,
        features,
        functional,
        inspection,
        kernels,
        learning,
        losses,
        metrics,
        model_selection,
        norms,
        online,
        persistence,
        plotting,
        positive,
        regression,
        report,
        solvers,
        tables,
        testing,
    )
    from fenchel.functional import FunctionalRegressor
    from fenchel.persistence import load, save
    from fenchel.positive import (
        ConeRegressor,
        DensityEstimator,
        HeteroscedasticRegressor,
        NonCrossingQuantileRegressor,
        NonNegativeRegressor,
    )
    from fenchel.regression import (
        SVR,
        ExpectileRegressor,
        GroupLasso,
        KernelRidge,
        Lasso,
        LinearRegression,
        QuantileRegressor,
        Ridge,
        lasso_path,
    )

__version__ = "0.1.0"

_HOMES = {
    "ConeRegressor": "fenchel.positive",
    "DensityEstimator": "fenchel.positive",
    "ExpectileRegressor": "fenchel.regression",
    "FunctionalRegressor": "fenchel.functional",
    "GroupLasso": "fenchel.regression",
    "HeteroscedasticRegressor": "fenchel.positive",
    "KernelRidge": "fenchel.regression",
    "Lasso": "fenchel.regression",
    "LinearRegression": "fenchel.regression",
    "NonCrossingQuantileRegressor": "fenchel.positive",
    "NonNegativeRegressor": "fenchel.positive",
    "QuantileRegressor": "fenchel.regression",
    "Ridge": "fenchel.regression",
    "SVR": "fenchel.regression",
    "lasso_path": "fenchel.regression",
    "load": "fenchel.persistence",
    "save": "fenchel.persistence",
}
_ROOMS = (
    "bounds",
    "dask",
    "datasets",
    "design",
    "distributions",
    "features",
    "functional",
    "inspection",
    "kernels",
    "learning",
    "losses",
    "metrics",
    "model_selection",
    "norms",
    "online",
    "persistence",
    "plotting",
    "positive",
    "regression",
    "report",
    "solvers",
    "tables",
    "testing",
)


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"fenchel.{name}")
    raise AttributeError(f"module 'fenchel' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Everything public, imported or not."""
    return sorted({*globals(), *__all__})


__all__ = [
    "SVR",
    "ConeRegressor",
    "DensityEstimator",
    "ExpectileRegressor",
    "FunctionalRegressor",
    "GroupLasso",
    "HeteroscedasticRegressor",
    "KernelRidge",
    "Lasso",
    "LinearRegression",
    "NonCrossingQuantileRegressor",
    "NonNegativeRegressor",
    "QuantileRegressor",
    "Ridge",
    "bounds",
    "dask",
    "datasets",
    "design",
    "distributions",
    "features",
    "functional",
    "inspection",
    "kernels",
    "lasso_path",
    "learning",
    "load",
    "losses",
    "metrics",
    "model_selection",
    "norms",
    "online",
    "persistence",
    "plotting",
    "positive",
    "regression",
    "report",
    "save",
    "solvers",
    "tables",
    "testing",
]
