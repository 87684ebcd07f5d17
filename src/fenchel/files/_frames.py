"""Data frames of the rows of a table, and columns that are made of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel._validation import random_of
from fenchel.files._arrow import ArrowTable, Encoded, arrow, opened, with_doubles, with_index
from fenchel.files._numbered import numbered
from fenchel.files._tables import Passed


def encoded(X: Any, made: list[str], read: list[str], encode: Callable[[Any], FloatArray]) -> Any:
    """A table whose columns ``made`` come from data frames of columns ``read`` of another one."""
    source = _with_columns(X)
    others = [name for name in source.names if name not in made]
    return Encoded(source.label, [*made, *others], source, made, read, encode)


def sample_frame(X: Any, target: Any, size: int) -> tuple[Any, str]:
    """A data frame of at most so many rows, without the target, and its label.

    Of each run of as many rows one is drawn at random: rows at equal steps would be all of one
    kind where kinds take turns. The target is the name of a column, or its values, which are in
    none.
    """
    source = _with_columns(X)
    own = target if isinstance(target, str) else None
    names = [name for name in source.names if name != own]
    steps = max(1, -(-source.count() // size))
    drawn = _one_of_each(steps, size)
    chosen, numbers, row = [], [np.empty(0, dtype=np.intp)], 0
    for piece in source.batches(names, [], "looking at columns"):
        batch = piece.values
        some = drawn[(drawn >= row) & (drawn < row + batch.num_rows)] - row
        chosen.append(batch.take(arrow().array(some)))
        numbers.append(piece.numbers[some])
        row += batch.num_rows
    if not chosen:
        raise ValueError(f"{source.label} must have at least one row, got an empty table")
    of_these = "" if steps == 1 else f" (of which one row in {steps} is looked at)"
    frame = with_index(_joined(source.label, chosen).to_pandas())
    return numbered(frame, np.concatenate(numbers)), source.label + of_these


def _one_of_each(length: int, number: int) -> IntArray:
    """A random row of each run of rows, but the first of the first, of which there is one."""
    found = random_of(None).randint(0, length, number) + length * np.arange(number)
    found[0] = 0
    return np.asarray(found)


def _joined(label: str, batches: list[Any]) -> Any:
    """One table of batches, in which a column may be of several kinds of numbers."""
    pa = arrow()
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    first = tables[0].schema
    try:
        if any(table.schema != first for table in tables):
            tables = [_with_words(with_doubles(table)) for table in tables]
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        for schema in (table.schema for table in tables):
            for mine, other in zip(first, schema, strict=True):
                try:
                    pa.unify_schemas(
                        [pa.schema([mine]), pa.schema([other])], promote_options="permissive"
                    )
                except pa.ArrowException:
                    raise ValueError(
                        f"{label} must hold the same in column {mine.name!r} of all files, got "
                        f"{mine.type} and {other.type}"
                    ) from error
        raise


def _with_words(table: Any) -> Any:
    """A table of Arrow, with words in place of dictionaries, which other files may not have."""
    for j, column in enumerate(table.columns):
        if arrow().types.is_dictionary(column.type):
            decoded = column.cast(column.type.value_type)
            table = table.set_column(j, table.schema.names[j], decoded)
    return table


def only(
    X: Any,
    names: list[str],
    known: str | None = None,
    missing: tuple[str, ...] = (),
    passed: Passed | None = None,
) -> Any:
    """The same table with some of its columns alone.

    Rows without a number in the column ``known`` are left out, cells that hold one of the words
    ``missing`` are empty, and ``passed`` is told how far passes over the rows are.
    """
    source = _with_columns(X)
    for name in names:
        source.check_name(name)
    return replace(
        source,
        names=list(names),
        known=known or source.known,
        missing=missing or source.missing,
        passed=passed or source.passed,
    )


def read_frames(X: Any, names: list[str]) -> Iterator[Any]:
    """Data frames of some columns of a table, block by block, with the numbers of the rows.

    Whole numbers beside holes stay whole numbers.
    """
    for piece in only(X, names).batches(names, []):
        frame = piece.values.to_pandas(types_mapper=_whole)
        yield numbered(with_index(frame), piece.numbers)


def _whole(kind: Any) -> Any:
    """The type of pandas for whole numbers of a type of Arrow, None for anything else."""
    if not arrow().types.is_integer(kind):
        return None
    name = str(kind).replace("uint", "UInt").replace("int", "Int")
    return importlib.import_module("pandas").api.types.pandas_dtype(name)


def _with_columns(X: Any) -> ArrowTable:
    source = opened(X)
    if not isinstance(source, ArrowTable):
        raise ValueError(f"X must be a table of columns with names, got {source.label}")
    return source
