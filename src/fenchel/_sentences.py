"""Names in sentences; what other libraries say of data that are no numbers, as one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_MAKES = "makes numbers of words, dates and missing values"
_ENCODER = f"fenchel.tables.TableEncoder, as the first step of a pipeline, {_MAKES}"
IN_PARTITIONS = (
    f"fenchel.tables.TableEncoder, fitted to some rows in memory, {_MAKES} by map_partitions"
)
"""What to do about columns of a Dask data frame that are no numbers."""

_DATES = (
    r"could not be promoted|real number, not '(Timestamp|Period|(datetime\.)?(date|datetime))'"
)
"""What NumPy says of dates beside numbers, and of such that are stored as objects."""
_DURATIONS = r"real number, not '(Timedelta|(datetime\.)?timedelta)'"
_AS_NUMBERS = ": give them as numbers in a unit of your choice, such as"
_DAY = "np.timedelta64(1, 'D')"
_ENCODED = "could not convert string|contains NaN|dates or|real number, not"


def listed(names: list[str], limit: int = 12) -> str:
    """Names with commas, not too many of them; those with blanks around them in quotes.

    Examples
    --------
    >>> from fenchel._sentences import listed
    >>> listed(["area", " town"])
    "area, ' town'"
    """
    shown = ", ".join(
        name if name and name == name.strip() else repr(name) for name in names[:limit]
    )
    return shown if len(names) <= limit else f"{shown}, … ({len(names)} in all)"


@contextmanager
def said_of(name: str, place: Callable[[], str] | None = None) -> Iterator[None]:
    """Make what scikit-learn says of data one sentence on one line, which names them.

    ``place`` says, in words, where the first entry is that is no finite number.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        message = str(error)
        if message.startswith("The feature names should match"):  # a list of names, line by line
            raise
        message = re.sub(r":\narray=.*?\n(?=Reshape)", ": ", message, flags=re.DOTALL)
        message = re.sub(r":\n(- )?", ": ", message)  # the first of a list
        message = message.split("\n")[0].rstrip(".!").replace(". ", ": ")
        if re.search(_DURATIONS, message):
            message = f"{name} must be an array of numbers, got durations{_in_a_unit(name)}"
        elif re.search(_DATES, message):
            message = f"{name} must be an array of numbers, got dates or durations"
        if not re.search(rf"\b{name}\b", message):
            message = f"{name} must be an array of numbers: {message}"
        if place is not None and re.search("contains (NaN|infinity)", message):
            message += place()
        if name == "X" and re.search(_ENCODED, message):
            message = f"{message}; {_ENCODER}"
        raise type(error)(message) from error


def check_collected(values: Any, name: str) -> None:
    """Refuse a query of polars, which is no table yet."""
    if type(values).__name__ == "LazyFrame":
        raise TypeError(
            f"{name} must be a table, got a LazyFrame: {name}.collect() makes a table of it"
        )


def check_no_dates(values: Any, name: str, encoder: str = _ENCODER) -> None:
    """Refuse dates and durations, which would be counts of whatever unit they are stored in.

    ``encoder`` says what makes numbers of dates in X.
    """
    while isinstance(values, (list, tuple)) and values:
        values = values[0]  # NumPy makes arrays of dates of lists of its dates
    found = getattr(values, "dtypes", getattr(values, "dtype", None))
    for dtype in found if isinstance(found, Iterable) else [found]:
        given = _of_time(dtype)
        if not given:
            continue
        if given == "durations":
            remedy = _in_a_unit(name)
        else:
            remedy = f"; {encoder}" if name == "X" else f"{_AS_NUMBERS} days since the first"
        raise TypeError(f"{name} must be an array of numbers, got {given} ({dtype}){remedy}")


def _in_a_unit(name: str) -> str:
    """How durations are given."""
    return f"{_AS_NUMBERS} {'column' if name == 'X' else name} / {_DAY}"


def _of_time(dtype: Any) -> str:
    """What a type of NumPy, pandas or polars stands for: "dates", "durations" or neither, ""."""
    kind = getattr(dtype, "kind", "")
    if kind:  # those of polars have none
        return {"M": "dates", "m": "durations"}.get(kind, "")
    if str(dtype).startswith("Duration"):
        return "durations"
    temporal = getattr(dtype, "is_temporal", None)
    return "dates" if temporal is not None and temporal() else ""
