"""What displays take, checked and brought to arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._typing import AnyArray, FloatArray
from fenchel._validation import shown


def column(y: Any, output: int = 0) -> FloatArray:
    """One target as numbers."""
    values: AnyArray = np.asarray(y, dtype=np.float64)
    return np.asarray(values if values.ndim == 1 else one_output(values, output)[:, 0])


def one_output(curves: FloatArray, output: int) -> FloatArray:
    """One column, as a matrix."""
    if not 0 <= output < curves.shape[1]:
        raise ValueError(f"output must be in 0..{curves.shape[1] - 1}, got {shown(output)}")
    return np.asarray(curves[:, [output]])


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
