"""Reading tables of numbers from text, and conversion to data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fenchel._typing import FloatArray


def read_table(
    content: bytes, codes: Mapping[str, float] | None = None
) -> tuple[list[str], FloatArray]:
    """Header and values of a comma-separated file of numbers and of words that have a code."""
    words = dict(codes or {})
    names, *rows = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
    values = [[words[cell] if cell in words else float(cell) for cell in row] for row in rows]
    return names, np.array(values, dtype=np.float64)


def to_frame(
    values: FloatArray, names: Sequence[str], categories: Mapping[str, Sequence[str]]
) -> Any:
    """Data frame whose categorical columns carry labels instead of codes."""
    try:
        import pandas as pd  # noqa: PLC0415  (an optional dependency)
    except ImportError as error:
        raise ImportError("as_frame=True needs pandas: install fenchel[cli] or pandas.") from error
    frame = pd.DataFrame(values, columns=list(names))
    for column in frame.columns.intersection(list(categories)):
        codes = frame[column].to_numpy().astype(np.intp)
        frame[column] = pd.Categorical.from_codes(codes, pd.Index(categories[column]))
    return frame
