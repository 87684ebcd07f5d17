"""Kernel regression beyond the mean, with a certificate for every fit."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fenchel import datasets, features, kernels, losses, model_selection, testing
    from fenchel.persistence import load, save
    from fenchel.regression import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor

__version__ = "0.1.0"

_HOMES = {
    "ExpectileRegressor": "fenchel.regression",
    "KernelRidge": "fenchel.regression",
    "QuantileRegressor": "fenchel.regression",
    "SVR": "fenchel.regression",
    "load": "fenchel.persistence",
    "save": "fenchel.persistence",
}
_ROOMS = ("datasets", "features", "kernels", "losses", "model_selection", "testing")


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
    "ExpectileRegressor",
    "KernelRidge",
    "QuantileRegressor",
    "datasets",
    "features",
    "kernels",
    "load",
    "losses",
    "model_selection",
    "save",
    "testing",
]
