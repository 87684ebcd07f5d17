"""Validation and conversion of the arguments of displays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import shown


def column(y: Any, output: int = 0) -> FloatArray:
    """One target as numbers."""
    values: FloatArray = np.asarray(y, dtype=np.float64)
    if values.ndim == 1:
        return values
    return np.asarray(values[:, check_output(output, values.shape[1])])


def check_output(output: int, n_outputs: int) -> int:
    """Return the number of an output that is there."""
    if not 0 <= output < n_outputs:
        raise ValueError(f"output must be in 0..{n_outputs - 1}, got {shown(output)}")
    return output


def matrix(values: Any, name: str) -> FloatArray:
    """Numbers with two dimensions; one dimension is one column."""
    array = np.asarray(values, dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} must have one or two dimensions, got shape {np.shape(values)}")
    return array


def vector(values: Any, name: str, length: int | None = None) -> FloatArray:
    """Numbers with one dimension, of a given length."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} must have {length} values, got {len(array)}")
    return array
