"""Content of a column, and the cells that differ from the rest of it.

Rows are counted from 1, without the header; rows of a block are counted in the whole table. Every
message begins with its subject, such as "the column 'area'".
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Collection
from decimal import Decimal
from typing import Any, Never

import numpy as np
import numpy.typing as npt
import pandas as pd

from fenchel._typing import FloatArray
from fenchel.files import row_number
from fenchel.tables.parts import OddCellsError, TableError

_Mask = npt.NDArray[np.bool_]
_MOST = 0.5  # a column with more numbers than that is one of numbers
_MOST_SHOWN = 60  # characters of a cell
_BOTH = ("True", "False")
_FLAGS = {"true": 1.0, "false": 0.0}
_MARKS = "€$£%"
# 1.688,10 and 6'540 and €12 and 34 %: thousands apart, decimals by a comma, a unit before or after
_NUMBER = (
    rf"[{_MARKS}]?\s*[-+]?(?:\d+|\d{{1,3}}(?:[.,'\u2019\u00a0\u202f]\d{{3}})+)(?:[.,]\d+)?"
    rf"\s*[{_MARKS}]?"
)
_READ = "columns must be numbers, words, dates, or true and false"
_INSTEAD = {  # of types, by the beginning of their names
    "timedelta": "; column / np.timedelta64(1, 'D') makes days of durations",
    "duration": "; column / np.timedelta64(1, 'D') makes days of durations",
    "period": "; column.dt.to_timestamp() makes dates of periods",
}
_KINDS: dict[str, tuple[type, ...]] = {
    "true or false": (bool, np.bool_),
    "a number": (Decimal, numbers.Real),
    "a word": (str,),
    "a date": (datetime.date, np.datetime64),
}


def is_number(column: pd.Series[Any]) -> bool:
    """Whether all cells are numbers (including decimals) or missing."""
    kinds, dtype = pd.api.types, column.dtype
    if kinds.is_numeric_dtype(dtype):
        return not (kinds.is_bool_dtype(dtype) or kinds.is_complex_dtype(dtype))
    return _all_are(column, "a number")


def is_flag(column: pd.Series[Any]) -> bool:
    """Whether all cells are true, false, or missing."""
    if pd.api.types.is_bool_dtype(column.dtype):
        return True
    return _all_are(column, "true or false")


def is_date(column: pd.Series[Any]) -> bool:
    """Whether all cells are date objects (not text) or missing."""
    known = pd.api.types.is_datetime64_any_dtype(column.dtype)
    return known or _all_are(column, "a date")


def is_words(column: pd.Series[Any]) -> bool:
    """Whether all cells are text (or true and false) or missing."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return True
    if _all_are(column, "a word", "true or false"):
        return True
    return pd.api.types.is_string_dtype(column.dtype) and not _is_object(column)


def _is_object(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_object_dtype(column.dtype)


def _all_are(column: pd.Series[Any], *kinds: str) -> bool:
    return _is_object(column) and all(
        _kind_of(t) in kinds for t in set(map(type, column.dropna()))
    )


def _kind_of(type_: type) -> str:
    """Name of the kind of cell that a type is."""
    known = (kind for kind, types in _KINDS.items() if issubclass(type_, types))
    return next(known, f"of type {type_.__name__}")


def _kinds_in(column: pd.Series[Any]) -> pd.Series[Any]:
    """Name of the kind of each cell."""
    return column.astype(object).map(type).map(_kind_of)


def holes(column: pd.Series[Any]) -> _Mask:
    """Which cells are missing."""
    return column.isna().to_numpy(dtype=np.bool_)


def first(column: pd.Series[Any], bad: _Mask) -> str:
    """Description of the first bad cell."""
    position = int(np.argmax(bad))
    return f"{_shown(column.iloc[position])} in row {row_number(column, position)}"


def _shown(cell: Any) -> str:
    """A cell in quotes, shortened if it is long."""
    try:
        text = str(cell)
    except ValueError:  # Python writes whole numbers up to 4300 digits
        return "a number of thousands of digits"
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…")


def is_text(word: str) -> bool:
    """Whether a word can be written in UTF-8."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def but_for(column: pd.Series[Any], bad: _Mask) -> str:
    """Description of the number of bad cells, and of the first of them."""
    count = int(bad.sum())
    cells = "one cell" if count == 1 else f"{count} cells, the first of them"
    return f"{cells} {first(column, bad)}"


def not_numbers(column: pd.Series[Any]) -> _Mask:
    """Which cells of a text column are not numbers."""
    words = column.astype(str)
    return pd.to_numeric(words, errors="coerce").isna().to_numpy(dtype=np.bool_)


def floats_of(column: pd.Series[Any]) -> FloatArray:
    """The cells of a column of numbers in double precision, NaN if missing."""
    filled = ~holes(column)
    values = np.full(len(column), np.nan)
    try:
        with np.errstate(over="ignore"):
            values[filled] = column[filled].to_numpy(dtype=np.float64)
    except OverflowError:
        values[filled] = [_float(cell) for cell in column[filled]]
    return values


def _float(cell: Any) -> float:
    """The number in double precision, infinite if it is too large."""
    try:
        return float(cell)
    except OverflowError:
        return np.inf if cell > 0 else -np.inf


def numbers_of(column: pd.Series[Any], what: str) -> FloatArray:
    """The numbers of a column, NaN if missing.

    Raises
    ------
    TableError
        For cells that are not numbers, or infinite.
    """
    gaps = holes(column)
    if not is_number(column) and not gaps.all():
        bad = not_numbers(column) & ~gaps
        if bad.any():
            kind = TableError if bad[~gaps].all() else OddCellsError
            raise kind(f"{what} must be a number in every row, and {first(column, bad)} is not")
        # all are written as numbers are: some are words, or the column is one of categories
        bad = (_kinds_in(column) != "a number").to_numpy() & ~gaps
        is_, bad = ("a word", bad) if bad.any() else ("a category", ~gaps)
        raise TableError(
            f"{what} must be a number in every row, and {first(column, bad)} is {is_}"
        )
    values = floats_of(column)
    infinite = np.isinf(values)  # columns of Arrow may hold NaN beside missing values
    if infinite.any():
        raise TableError(f"{what} must be finite, and {first(column, infinite)} is not")
    return values


def flags_of(column: pd.Series[Any], what: str) -> FloatArray:
    """1 for true, 0 for false, NaN if missing.

    Raises
    ------
    TableError
        For other cells.
    """
    gaps = holes(column)
    read = column.astype(str).str.lower().map(_FLAGS).to_numpy(dtype=np.float64)
    values: FloatArray = np.where(gaps, np.nan, read)
    bad = np.isnan(values) & ~gaps
    if bad.any():
        raise TableError(
            f"{what} must be true or false in every row, and {first(column, bad)} is not"
        )
    return values


def flags_as_words(column: pd.Series[Any], known: Collection[str]) -> pd.Series[Any]:
    """True and false as they are written in the known words: a CSV file may have true and TRUE."""
    if not known or not is_flag(column):
        return column
    plain = {word.lower(): word for word in known}
    written = {word: word if word in known else plain.get(word.lower(), word) for word in _BOTH}
    return words_of(column).map(written, na_action="ignore")


def words_of(column: pd.Series[Any]) -> pd.Series[Any]:
    """The text of a column, None if missing; whole numbers are written without decimals."""
    codes, labels = pd.factorize(column)
    words = np.array([*map(_word, labels), None], dtype=object)
    return pd.Series(words[codes], index=column.index, dtype=object)


def _word(label: Any) -> str:
    """A label as text: numbers are written in the same way for all types."""
    if isinstance(label, numbers.Integral) or _kind_of(type(label)) != "a number":
        return str(label)
    value = _float(label)
    if value.is_integer() and int(label) == label:
        return str(int(label))
    return str(value if isinstance(label, Decimal) else label)


def check_words(column: pd.Series[Any], what: str) -> None:
    """Raise an error if most texts are numbers: one cell would make each number a category.

    Raises
    ------
    TableError
        For such a column.
    """
    gaps = holes(column)
    if gaps.all():
        return
    bad = not_numbers(column) & ~gaps
    words = column.astype(str)
    others = not_numbers(words.str.replace(",", "."))
    if not isinstance(column.dtype, pd.CategoricalDtype):  # those may be named 10 % and 20 %
        others = others & ~words.str.fullmatch(_NUMBER).to_numpy(dtype=np.bool_)
    if bad.any() and np.mean((bad & others)[~gaps]) < 1.0 - _MOST:
        remedy = (
            "write numbers there, with a decimal point, or leave these cells empty, or make every "
            "cell a word if they are labels"
        )
        if bad[~gaps].all():
            how = f"{what} holds numbers that are not written as such, {first(column, bad)}"
            raise OddCellsError(f"{how} being the first: {remedy}")
        raise OddCellsError(f"{what} holds numbers but for {but_for(column, bad)}: {remedy}")


def check_no_decimals(column: pd.Series[Any], what: str) -> None:
    """Raise an error for decimal numbers given as text, which would lose their values.

    Whole numbers may be codes, and a column of type category contains labels.

    Raises
    ------
    TableError
        For such a column.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return
    words = column[~holes(column)].astype(str)
    if not not_numbers(words).any() and words.str.contains(r"[.eE]").any():
        raise OddCellsError(
            f"{what} holds numbers that are text, such as {words.iloc[0]!r}: make them "
            "numbers, as by pandas.to_numeric, or a column of type category if they are labels"
        )


def check_known(column: pd.Series[Any], what: str) -> None:
    """Raise an error for cells of a kind that is not read, such as bytes.

    Raises
    ------
    TableError
        For such a column.
    """
    if not _is_object(column):
        return
    kinds = _kinds_in(column)
    strange = ~holes(column) & ~kinds.isin(list(_KINDS)).to_numpy()
    if strange.any():
        kind = kinds[strange].iloc[0]
        raise TableError(f"{what} holds {first(column, strange)}, which is {kind}: {_READ}")


def check_labels(column: pd.Series[Any], what: str) -> None:
    """Raise an error for new cells that cannot be labels, such as dates.

    Raises
    ------
    TableError
        For such a column.
    """
    filled = ~holes(column)
    if isinstance(column.dtype, pd.CategoricalDtype) and is_date(pd.Series(column.cat.categories)):
        column = column.astype(object)
    if not filled.any() or is_words(column) or is_number(column) or is_flag(column):
        return
    check_known(column, what)
    if not _is_object(column) and not is_date(column):
        _refuse_type(column, what)
    dates = filled & (_kinds_in(column) == "a date").to_numpy()
    if dates.any():
        raise TableError(
            f"{what} must hold words, as in the fit, and {first(column, dates)} is a date"
        )


def _refuse_type(column: pd.Series[Any], what: str) -> Never:
    cell = first(column, ~holes(column))
    kind = str(column.dtype)
    instead = next((how for name, how in _INSTEAD.items() if kind.startswith(name)), "")
    raise TableError(f"{what} is of type {kind}, with {cell}: {_READ}{instead}")


def refuse(column: pd.Series[Any], what: str) -> Never:
    """Raise an error for the cell of a column that differs from the others or is not readable.

    Raises
    ------
    TableError
        Always.
    """
    filled = ~holes(column)
    if not _is_object(column):
        _refuse_type(column, what)
    check_words(column, what)
    check_known(column, what)
    kinds = _kinds_in(column)
    usual = kinds[filled].mode()[0]
    same = filled & (kinds == usual).to_numpy()
    odd = filled & ~same
    raise OddCellsError(
        f"{what} must hold one kind of cells, and {first(column, odd)} is {kinds[odd].iloc[0]} "
        f"where {first(column, same)} is {usual}"
    )
