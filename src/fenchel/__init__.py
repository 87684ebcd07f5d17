"""Kernel regression beyond the mean, with a certificate for every fit."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fenchel import features, kernels, losses
from fenchel.regression import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor

if TYPE_CHECKING:
    from fenchel import datasets, testing
    from fenchel.persistence import load, save

__version__ = "0.1.0"

_ON_DEMAND = {
    "datasets": "fenchel.datasets",
    "load": "fenchel.persistence",
    "save": "fenchel.persistence",
    "testing": "fenchel.testing",
}


def __getattr__(name: str) -> Any:
    """Import the less used parts when they are asked for."""
    if name not in _ON_DEMAND:
        raise AttributeError(f"module 'fenchel' has no attribute {name!r}")
    module = importlib.import_module(_ON_DEMAND[name])
    return module if module.__name__ == f"fenchel.{name}" else getattr(module, name)


__all__ = [
    "SVR",
    "ExpectileRegressor",
    "KernelRidge",
    "QuantileRegressor",
    "datasets",
    "features",
    "kernels",
    "load",
    "losses",
    "save",
    "testing",
]
