"""Which rows of a table a data frame holds, for what is said of them."""

from __future__ import annotations

import importlib
from typing import Any

from fenchel._typing import IntArray

_NAME = "row of the table"  # of an index; any other is no number of a row


def numbered(frame: Any, numbers: IntArray) -> Any:
    """A data frame whose index holds the numbers of its rows, from 0, in the table it is of.

    Examples
    --------
    >>> import pandas as pd
    >>> from fenchel.files import numbered, row_number
    >>> some = numbered(pd.DataFrame({"area": [1.0, 2.0]}), [800, 801])
    >>> row_number(some["area"], 1)
    802
    """
    return frame.set_axis(importlib.import_module("pandas").Index(numbers, name=_NAME), axis=0)


def is_numbered(frame: Any) -> bool:
    """Whether the index of a data frame, or of a column, holds numbers of rows."""
    return bool(frame.index.name == _NAME)


def row_number(frame: Any, position: int) -> int:
    """The number of a row in the table, from 1: its position where no other is known."""
    return 1 + int(frame.index[position] if is_numbered(frame) else position)
