"""What columns are read as, without asking for pandas."""

from __future__ import annotations

from typing import Any, NamedTuple

from fenchel._typing import AnyArray

NUMBER, FLAG, DATE, CATEGORY, TEXT = "number", "flag", "date", "category", "text"
NUMBERS, FLAGS, CYCLES, CATEGORIES, TEXTS = range(5)  # in the order of the output
NUMBERED = "numbers of words"
"""Name of the encoder that numbers words, the last one if it is there."""


class TableError(ValueError):
    """What is wrong with a table: one sentence that names the column, and the row where it can."""


class OddCellsError(TableError):
    """Some cells of a column are not what the others are."""


class Part(NamedTuple):
    """A part of a column, as an encoder reads it; of what source, in which block of the output."""

    block: int
    source: str
    name: str
    values: AnyArray


class Kinds(NamedTuple):
    """What columns hold: those that are read by kind, and why the others are left out.

    ``dates`` has for each column of dates in which format they are written, the first of them,
    and the cycles that vary; ``doubts`` a sentence for each column of words that may be meant as
    another one.
    """

    read: dict[str, str]
    dates: dict[str, dict[str, Any]]
    left_out: dict[str, str]
    doubts: list[str]


def key(k: int) -> str:
    """Name of the part at a position: another for each, whatever the columns are called."""
    return f"part {k}"


def counted(count: int, what: str) -> str:
    """A number and what it is of, which has a plural in s."""
    return f"{count} {what}{'s' * (count != 1)}"
