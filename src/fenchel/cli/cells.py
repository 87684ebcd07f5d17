"""Cells that are not what their column is: which they are, and in which row.

Rows are counted from 1, without the header.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fenchel._validation import check_magnitude
from fenchel.cli.errors import InputError, listed

_Mask = npt.NDArray[np.bool_]
_MOST = 0.5  # a column with more numbers than that is one of numbers


def is_number(column: pd.Series[Any]) -> bool:
    """Whether all cells are numbers, or missing."""
    kinds, dtype = pd.api.types, column.dtype
    return kinds.is_numeric_dtype(dtype) and not (
        kinds.is_bool_dtype(dtype) or kinds.is_complex_dtype(dtype)
    )


def is_words(column: pd.Series[Any]) -> bool:
    """Whether all cells are words, or true and false."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return True
    if pd.api.types.is_object_dtype(dtype):
        return all(isinstance(value, (str, bool, np.bool_)) for value in column)
    return pd.api.types.is_string_dtype(dtype)


def first(column: pd.Series[Any], bad: _Mask) -> str:
    """Words for the first bad cell."""
    row = int(np.argmax(bad))
    return f"{str(column.iloc[row])!r} in row {row + 1}"


def not_numbers(column: pd.Series[Any]) -> _Mask:
    """Which cells, of words, are no numbers."""
    words = column.astype(str)
    return np.asarray(pd.to_numeric(words, errors="coerce").isna())


def check_number(column: pd.Series[Any], what: str) -> None:
    """Refuse a column that is not of numbers, and say where."""
    if is_number(column):
        return
    bad = not_numbers(column)
    where = f", and {first(column, bad)} is not" if bad.any() else f", and is {column.dtype}"
    raise InputError(f"{what} must be a number in every row{where}")


def check_flag(column: pd.Series[Any], what: str) -> None:
    """Refuse a column that is not of true and false, and say where."""
    if pd.api.types.is_bool_dtype(column):
        return
    bad = ~column.astype(str).str.lower().isin(["true", "false"]).to_numpy(dtype=np.bool_)
    where = f", and {first(column, bad)} is not" if bad.any() else f", and is {column.dtype}"
    raise InputError(f"{what} must be true or false in every row{where}")


def check_words(column: pd.Series[Any], what: str) -> None:
    """Refuse words most of which are numbers: one cell would make each number a category."""
    bad = not_numbers(column)
    commas = not_numbers(column.astype(str).str.replace(",", "."))
    if bad.any() and np.mean(bad & commas) < 1.0 - _MOST:
        count = int(bad.sum())
        cells = "one cell" if count == 1 else f"{count} cells, the first of them"
        raise InputError(
            f"{what} holds numbers but for {cells} {first(column, bad)}: write numbers there, "
            "with a decimal point, or leave out such rows, or make every cell a word if they are "
            "labels"
        )


def check_values(frame: pd.DataFrame, label: str) -> None:
    """Refuse missing, infinite and overflowing values, and say where."""
    gaps = {str(name): column.isna().to_numpy() for name, column in frame.items()}
    found = [
        f"{name} ({int(bad.sum())}, first in row {int(np.argmax(bad)) + 1})"
        for name, bad in gaps.items()
        if bad.any()
    ]
    if found:
        raise InputError(
            f"{label} has missing values in {listed(found)}: fill them or leave out these rows"
        )
    for name, column in frame.items():
        if not is_number(column):
            continue
        values = column.to_numpy(dtype=np.float64)
        infinite = ~np.isfinite(values)
        if infinite.any():
            row = int(np.argmax(infinite)) + 1
            raise InputError(f"{label} has infinite values in {name}, first in row {row}")
        try:
            check_magnitude(values, f"the column {str(name)!r} of {label}")
        except ValueError as error:
            raise InputError(str(error)) from error
