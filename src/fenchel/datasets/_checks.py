"""Checks of what loaders and generators are given."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np


def check_bool(value: Any, name: str) -> None:
    """Refuse what is not a Boolean."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}.")


def check_range(
    value: Any, name: str, allowed: str, kind: Any, low: float, high: float = np.inf
) -> None:
    """Refuse what is no number of this kind, or not in [low, high]; ``allowed`` says so."""
    message = f"{name} must be {allowed}, got {value!r}."
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(message)
    if not low <= value <= high:
        raise ValueError(message)


def check_count(value: Any, name: str) -> None:
    """Refuse what is not a positive integer."""
    check_range(value, name, "an integer of at least 1", Integral, 1)
