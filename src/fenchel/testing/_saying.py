"""How checks fail: with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def require(condition: Any, sentence: str) -> None:
    """Raise an AssertionError with this sentence unless the condition holds."""
    if not condition:
        raise AssertionError(sentence)


def require_rows(good: Any, sentence: Callable[[int], str]) -> None:
    """Raise an AssertionError about the first row that is not good."""
    bad = np.flatnonzero(~np.asarray(good, dtype=bool))
    if len(bad):
        raise AssertionError(sentence(int(bad[0])))


def require_shape(array: Any, shape: tuple[int, ...], what: str) -> None:
    """Raise an AssertionError unless this is a float array of that shape."""
    require(
        isinstance(array, np.ndarray) and array.dtype.kind == "f",
        f"{what} must be an array of floating-point numbers, got {array!r}",
    )
    require(array.shape == shape, f"{what} must have shape {shape}, got {array.shape}")


def show(array: Any) -> str:
    """A short text for a point."""
    values = ", ".join(f"{float(value):.6g}" for value in np.ravel(array))
    return f"[{values}]"
