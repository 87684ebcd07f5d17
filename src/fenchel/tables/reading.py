"""Kinds of the columns of a data frame, and the parts of them that encoders take."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from fenchel._sentences import check_collected, listed
from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.files import is_numbered
from fenchel.tables import cells, dates
from fenchel.tables.doubts import doubt_of
from fenchel.tables.parts import (
    CATEGORIES,
    CATEGORY,
    CYCLES,
    DATE,
    FLAG,
    FLAGS,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    Kinds,
    Part,
    TableError,
    key,
)

_FEW = 10  # of more values none of which occurs twice, words without a blank are names of rows


def frame_of(X: Any) -> pd.DataFrame:
    """Return a table as a DataFrame of pandas, in which empty strings are missing values."""
    frame = X if isinstance(X, pd.DataFrame) else _of_pandas(X)
    frame = frame if is_numbered(frame) else frame.reset_index(drop=True)
    try:
        frame = frame.infer_objects()
    except UnicodeEncodeError as error:
        raise TableError(_no_text(frame)) from error
    except OverflowError:  # of pandas 2: a number too large, which is named later
        frame = frame.copy()
    frame.columns = frame.columns.map(str)
    twice = list(frame.columns[frame.columns.duplicated()])
    if twice:
        raise TableError(f"X must have different names of columns, got {twice[0]!r} twice")
    if 0 in frame.shape:
        raise TableError(f"X must have a row and a column, got the shape {frame.shape}")
    return frame.apply(_without_empty_words)


def _of_pandas(X: Any) -> pd.DataFrame:
    """A table of another kind as a DataFrame of pandas."""
    check_collected(X, "X")
    try:
        frame = getattr(X, "to_pandas", lambda: None)()
    except (NotImplementedError, TypeError, ValueError) as error:
        for name in getattr(X, "columns", ()):
            try:
                X[name].to_pandas()
            except (NotImplementedError, TypeError, ValueError):
                raise TableError(
                    f"the column {name!r} of X must be of a type that pandas has, got "
                    f"{X[name].dtype}: cast it, to 64 bits for instance"
                ) from error
        raise
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"X must be a data frame of pandas or Polars, got {shown(X)}")
    return frame


def _no_text(frame: pd.DataFrame) -> str:
    """Message on the first text that cannot be written in UTF-8."""
    for name, column in frame.select_dtypes(object).items():
        bad = np.array([isinstance(c, str) and not cells.is_text(c) for c in column], np.bool_)
        if bad.any():
            return (
                f"the column {str(name)!r} of X must be text, and {cells.first(column, bad)} has "
                "half of a character (a lone surrogate)"
            )
    return "X must have columns of text, got half of a character (a lone surrogate)"


def _without_empty_words(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column in which empty strings are missing values, as in CSV files.

    A column stored as a dictionary of Arrow is one of categories.
    """
    if str(column.dtype).startswith("dictionary"):
        column = pd.Series(pd.Categorical(column.astype(object)), index=column.index)
    if not cells.is_words(column):
        return column
    empty = column.astype(object) == ""
    return column.mask(empty) if empty.any() else column


def kinds_of(frame: pd.DataFrame, most: int, label: str = "X") -> Kinds:
    """Determine the kind of each column; text of at most ``most`` values is a category.

    Raises
    ------
    TableError
        If a column of the table is of no known kind, or no column is left.
    """
    kinds = Kinds({}, {}, {}, [])
    as_it_is = all(cells.is_number(c) and not c.isna().any() for _, c in frame.items())
    for name, column in frame.items():
        what = f"the column {name!r} of {label}"
        kind, form, reason = _kind_of(column, what, most)
        if kind in (CATEGORY, TEXT):
            doubt = doubt_of(column, str(name), kind == CATEGORY and not reason)
            kinds.doubts.extend([] if doubt is None else [doubt])
        if reason and not as_it_is:
            kinds.left_out[str(name)] = reason
            continue
        kinds.read[str(name)] = kind
        if kind == DATE:
            found = dates.dates_of(column, form, what)
            kinds.dates[str(name)] = _calendar(found, form, dates.zone_of(column))
    if not kinds.read:
        reasons = [f"{name} ({reason})" for name, reason in kinds.left_out.items()]
        raise TableError(f"{label} has no column to learn from: {listed(reasons)}")
    return kinds


def _kind_of(column: pd.Series[Any], what: str, most: int) -> tuple[str, str | None, str]:
    """Kind, format of dates, and reason to leave the column out, if any."""
    some = column.dropna()
    if some.empty:
        return NUMBER, None, "empty"
    kind, form = _type_of(column, what)
    if kind == NUMBER:
        cells.numbers_of(column, what)
    labels = cells.words_of(some) if kind == CATEGORY else some
    n_labels = labels.nunique()
    if n_labels == 1 and len(some) == len(column):
        return kind, form, "the same in every row"
    if kind == CATEGORY and n_labels > min(most, len(some) - 1):
        cells.check_no_decimals(column, what)
    if kind == CATEGORY and n_labels == len(some) > _FEW and not _has_blanks(labels):
        return kind, form, "all values differ"
    return TEXT if kind == CATEGORY and n_labels > most else kind, form, ""


def _type_of(column: pd.Series[Any], what: str) -> tuple[str, str | None]:
    """Number, flag, date with its format, or category."""
    for kind, holds in ((NUMBER, cells.is_number), (FLAG, cells.is_flag), (DATE, cells.is_date)):
        if holds(column):
            return kind, None
    if not cells.is_words(column):
        cells.refuse(column, what)
    cells.check_words(column, what)
    form = dates.format_of(cells.words_of(column), what)
    return (CATEGORY, None) if form is None else (DATE, form)


def _has_blanks(words: pd.Series[Any]) -> bool:
    return any(" " in word.strip() for word in words)


def _calendar(found: pd.Series[Any], form: str | None, zone: str | None) -> dict[str, Any]:
    clock = dates.local(found, zone)
    varying = [
        cycle
        for cycle, values in dates.cycles_of(clock).items()
        if np.ptp(values[clock.notna()], axis=0).max() > 0.0
    ]
    if dates.are_months(clock):
        varying = [cycle for cycle in varying if cycle != dates.WEEKDAY]
    origin = found.min().isoformat()
    return {"format": form, "origin": origin, "cycles": varying, "zone": zone}


def parts_of(
    frame: pd.DataFrame,
    read: dict[str, str],
    calendars: dict[str, dict[str, Any]],
    label: str = "X",
    known: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> list[Part]:
    """The parts of the columns that are used, in the order of the output.

    ``known`` are the words of the fit for columns of categories.

    Raises
    ------
    TableError
        If a column is missing, or has cells of another kind.
    """
    check_there(frame.columns, read, label)
    parts = []
    for name, kind in read.items():
        column, what = frame[name], f"the column {name!r} of {label}"
        if kind == NUMBER:
            parts.append(Part(NUMBERS, name, name, cells.numbers_of(column, what)))
        elif kind == FLAG:
            parts.append(Part(FLAGS, name, name, cells.flags_of(column, what)))
        elif kind == DATE:
            found = dates.dates_of(column, calendars[name]["format"], what)
            parts += _date_parts(found, name, calendars[name])
        else:
            cells.check_labels(column, what)
            words = cells.words_of(cells.flags_as_words(column, known.get(name, ())))
            block = CATEGORIES if kind == CATEGORY else TEXTS
            values = words if kind == CATEGORY else words.fillna("")
            parts.append(Part(block, name, name, values.to_numpy(dtype=object)))
    return sorted(parts, key=lambda part: part.block)


def _date_parts(found: pd.Series[Any], name: str, calendar: dict[str, Any]) -> list[Part]:
    parts = [Part(NUMBERS, name, f"{name}.days", dates.days_since(found, calendar["origin"]))]
    clock = dates.local(found, calendar.get("zone"))  # which models of version 0.1.0 lack
    cycles: dict[str, FloatArray] = dates.cycles_of(clock) if calendar["cycles"] else {}
    for cycle in calendar["cycles"]:
        for k, wave in enumerate(("sin", "cos")):
            parts.append(Part(CYCLES, name, f"{name}.{cycle}_{wave}", cycles[cycle][:, k]))
    return parts


def check_there(names: Collection[Any], read: Collection[str], what: str) -> None:
    """Raise an error that names the missing columns, if any.

    Raises
    ------
    TableError
        If a column that is used is missing.
    """
    missing = [name for name in read if name not in names]
    if missing:
        raise TableError(
            f"{what} lacks the column{'s' * (len(missing) > 1)} {listed(missing)} that the model "
            f"reads; its columns are {listed([str(name) for name in names])}"
        )


def table_of(parts: list[Part]) -> pd.DataFrame:
    """The parts as columns of a table, with unique names whatever the table's names are."""
    columns = {key(k): pd.Series(p.values, dtype=p.values.dtype) for k, p in enumerate(parts)}
    return pd.DataFrame(columns)
