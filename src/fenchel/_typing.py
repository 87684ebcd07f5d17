"""Shorthands for the array types of the library."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.intp]
AnyArray: TypeAlias = npt.NDArray[Any]
ArrayLike: TypeAlias = Any
"""What users may give: arrays, lists, tables and columns of pandas and Polars.

NumPy's type of that name would also stand for what validation has made of them.
"""
