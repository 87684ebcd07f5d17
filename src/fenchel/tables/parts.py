"""Kinds and parts of columns; this module does not need pandas."""

from __future__ import annotations

from typing import Any, NamedTuple

from fenchel._typing import AnyArray

NUMBER, FLAG, DATE, CATEGORY, TEXT = "number", "flag", "date", "category", "text"
NUMBERS, FLAGS, CYCLES, CATEGORIES, TEXTS = range(5)  # in the order of the output
NUMBERED = "numbers of words"
"""Name of the encoder that numbers text; it is the last encoder if present."""


class TableError(ValueError):
    """Error in a table: one sentence that names the column, and the row if possible."""


class OddCellsError(TableError):
    """Some cells of a column differ in kind from the others."""


class Part(NamedTuple):
    """Part of a column as an encoder takes it, with its source and its block of the output."""

    block: int
    source: str
    name: str
    values: AnyArray


class Kinds(NamedTuple):
    """Contents of columns: the kind of those that are used, and why the others are left out.

    For each column of dates, ``dates`` has its format, the first date and the cycles that vary;
    ``doubts`` has a sentence for each text column that may be meant as another kind.
    """

    read: dict[str, str]
    dates: dict[str, dict[str, Any]]
    left_out: dict[str, str]
    doubts: list[str]


def key(k: int) -> str:
    """Unique name of the part at a position, whatever the columns are called."""
    return f"part {k}"


def counted(count: int, what: str) -> str:
    """A number with a noun, whose plural ends in s."""
    return f"{count} {what}{'s' * (count != 1)}"
