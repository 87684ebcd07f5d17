"""Cells that no model can learn from: which they are, and in which row.

Rows are counted from 1, without the header.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fenchel._typing import FloatArray
from fenchel._validation import check_magnitude
from fenchel.cli.errors import InputError, as_input_errors
from fenchel.tables.cells import holes, is_number, numbers_of


def target_of(column: pd.Series[Any], label: str) -> FloatArray:
    """The numbers of a target, NaN where they are missing."""
    with as_input_errors():
        values = numbers_of(column, f"the target {column.name!r} of {label}")
    if np.isnan(values).all():
        raise InputError(f"{label} has no value in the target {column.name}")
    return values


def is_marker(column: pd.Series[Any], markers: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which cells hold one of these words, or the number that it is."""
    found = column.astype(object).isin(markers).to_numpy(dtype=np.bool_)
    if is_number(column):
        numbers = pd.to_numeric(pd.Series(markers, dtype=object), errors="coerce").dropna()
        found = found | column.isin(numbers.astype(float)).to_numpy(dtype=np.bool_)
    return found


def check_values(frame: pd.DataFrame, label: str) -> None:
    """Refuse infinite and overflowing values, and say where."""
    for name, column in frame.items():
        if not is_number(column):
            continue
        values = column[~holes(column)].to_numpy(dtype=np.float64)
        infinite = ~np.isfinite(values)
        if infinite.any():
            row = int(np.flatnonzero(~holes(column))[np.argmax(infinite)]) + 1
            raise InputError(f"{label} has infinite values in {name}, first in row {row}")
        with as_input_errors():
            check_magnitude(np.append(values, 0.0), f"the column {str(name)!r} of {label}")
