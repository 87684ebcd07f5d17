"""Kernel regression beyond the mean, with a certificate for every fit."""

from __future__ import annotations

import ast
import importlib
import sys
from functools import cache
from pathlib import Path
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
    from fenchel.model_selection import (
        ConformalQuantileRegressor,
        ConformalRegressor,
        KernelRidgeCV,
        PathSearchCV,
    )
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
    from fenchel.tables import TableEncoder

__version__ = "0.1.0"

_HOMES = {
    "ConeRegressor": "fenchel.positive",
    "ConformalQuantileRegressor": "fenchel.model_selection",
    "ConformalRegressor": "fenchel.model_selection",
    "DensityEstimator": "fenchel.positive",
    "ExpectileRegressor": "fenchel.regression",
    "FunctionalRegressor": "fenchel.functional",
    "GroupLasso": "fenchel.regression",
    "HeteroscedasticRegressor": "fenchel.positive",
    "KernelRidge": "fenchel.regression",
    "KernelRidgeCV": "fenchel.model_selection",
    "Lasso": "fenchel.regression",
    "LinearRegression": "fenchel.regression",
    "NonCrossingQuantileRegressor": "fenchel.positive",
    "NonNegativeRegressor": "fenchel.positive",
    "PathSearchCV": "fenchel.model_selection",
    "QuantileRegressor": "fenchel.regression",
    "Ridge": "fenchel.regression",
    "SVR": "fenchel.regression",
    "TableEncoder": "fenchel.tables",
    "lasso_path": "fenchel.regression",
    "load": "fenchel.persistence",
    "save": "fenchel.persistence",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"fenchel.{name}")
    rooms = [] if name.startswith("_") else [room for room in _ROOMS if name in _names_in(room)]
    homes = " or ".join(f"fenchel.{room}.{name}" for room in rooms)
    hint = f": it is {homes}" if rooms else ""
    message = f"module 'fenchel' has no attribute {name!r}{hint}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


@cache
def _names_in(room: str) -> frozenset[str]:
    """What a room offers, read off its source: to import all of them would take seconds.

    Read once: skops and pickle look for hundreds of names in every module that is loaded.
    """
    try:
        text = (Path(__file__).parent / room / "__init__.py").read_text(encoding="utf-8")
    except OSError:  # an installation without sources
        return frozenset()
    assigned = [node for node in ast.parse(text).body if isinstance(node, ast.Assign)]
    lists = [node.value for node in assigned if ast.unparse(node.targets[0]) == "__all__"]
    return frozenset(name for each in lists for name in ast.literal_eval(each))


def __dir__() -> list[str]:
    """Everything public, imported or not."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


__all__ = [
    "SVR",
    "ConeRegressor",
    "ConformalQuantileRegressor",
    "ConformalRegressor",
    "DensityEstimator",
    "ExpectileRegressor",
    "FunctionalRegressor",
    "GroupLasso",
    "HeteroscedasticRegressor",
    "KernelRidge",
    "KernelRidgeCV",
    "Lasso",
    "LinearRegression",
    "NonCrossingQuantileRegressor",
    "NonNegativeRegressor",
    "PathSearchCV",
    "QuantileRegressor",
    "Ridge",
    "TableEncoder",
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
_ROOMS = sorted(set(__all__) - _HOMES.keys())
