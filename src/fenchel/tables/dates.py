"""Dates: recognizing them in text, and converting them to numbers."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
from pandas.tseries.api import guess_datetime_format

from fenchel._typing import FloatArray
from fenchel.tables import cells
from fenchel.tables.parts import OddCellsError, TableError

_GUESSED = 20  # cells that are looked at for formats of dates
_MOST = 0.5  # a column with more dates than that is one of dates
_NEARLY_ALL = 0.9
# 03/2019 and 3-2019, which pandas does not guess
_MONTHS = {f"%m{mark}%Y": rf"(?:0?[1-9]|1[0-2]){mark}(?:1[89]|2[01])\d\d" for mark in "/-"}
_DAY = pd.Timedelta(days=1)
WEEKDAY = "weekday"
CYCLES = ("month", WEEKDAY, "hour")
_NAME = "date"
_NEEDS = "dates, and words of many values, need skrub: pip install 'fenchel[tables]'"


def format_of(words: pd.Series[Any], what: str) -> str | None:
    """The format in which all texts are dates with a year and a month; None if they are not.

    Raises
    ------
    TableError
        If most of them are dates, and some are not.
    """
    some = words.dropna()
    guesses = _guesses(some)
    if not guesses or not cells.not_numbers(some).all():
        return None
    found = _common_format(some)
    if found is not None:
        return found
    parsed = {each: _parsed(words, each).notna().to_numpy() for each in guesses}
    best = max(guesses, key=lambda each: int(parsed[each].sum()))
    bad = ~parsed[best] & words.notna().to_numpy()
    if parsed[best].sum() <= _MOST * len(some):
        return None
    if not bad.any():
        return best
    raise OddCellsError(
        f"{what} holds dates ({best}) but for {cells.but_for(words, bad)}: write dates there in "
        "the same way, or leave these cells empty"
    )


def several_formats(words: pd.Series[Any]) -> tuple[Any, Any] | None:
    """Which texts are dates in one format, and which in others, if nearly all are dates."""
    some = words.dropna()
    guesses = _guesses(some)
    if len(guesses) < 2 or not cells.not_numbers(some).all():
        return None
    parsed = np.array([_parsed(words, each).notna().to_numpy() for each in guesses])
    best, dates = parsed[parsed.sum(axis=1).argmax()], parsed.any(axis=0)
    others = dates & ~best
    nearly_all = dates.sum() >= _NEARLY_ALL * len(some)
    return (best, others) if nearly_all and others.any() else None


def _guesses(words: pd.Series[Any]) -> list[str]:
    """Formats that the first texts may have."""
    found: dict[str, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of days that cannot be months
        for cell in words.unique()[:_GUESSED]:
            for day_first in (False, True):
                guess = guess_datetime_format(cell, dayfirst=day_first)
                if guess is not None and _has_month(guess):
                    found[guess] = None
            of_months = (form for form, each in _MONTHS.items() if re.fullmatch(each, cell))
            found |= dict.fromkeys(of_months)
    return list(found)


def _has_month(form: str) -> bool:
    return "%Y" in form and any(part in form for part in ("%m", "%b", "%B"))


def _common_format(words: pd.Series[Any]) -> str | None:
    """The common format of all texts; if ambiguous, month first unless separated by dots."""
    for form in _MONTHS:
        if _parsed(words, form).notna().all():
            return form
    skrub = needed_skrub()
    try:
        form = skrub.ToDatetime().fit(words.astype(object)).format_
    except ValueError:  # of which its RejectColumn is one
        return None
    if form is None or not _has_month(form):
        return None
    dotted = form.replace("%m.%d.", "%d.%m.")  # where days are first, if both are possible
    return dotted if _parsed(words, dotted).notna().all() else form


def needed_skrub() -> Any:
    """Return the package skrub, or raise an error that asks for it; its import takes seconds."""
    try:
        import skrub  # noqa: PLC0415  (an optional dependency)
    except ImportError as error:
        raise ImportError(_NEEDS) from error
    return skrub


def _parsed(column: pd.Series[Any], form: str | None) -> pd.Series[Any]:
    """Dates in UTC, NaT for text that is not a date."""
    if form in _MONTHS:
        column = column.where(column.astype(str).str.fullmatch(_MONTHS[form]))
    found = pd.to_datetime(column, format=form, utc=True, errors="coerce")
    return found.dt.tz_localize(None)


def dates_of(column: pd.Series[Any], form: str | None, what: str) -> pd.Series[Any]:
    """The dates of a column, NaT if missing; those with a time zone in UTC.

    Raises
    ------
    TableError
        For cells that are not dates.
    """
    gaps = cells.holes(column)
    found = pd.Series(pd.NaT, index=column.index, dtype="datetime64[us]")
    if gaps.all():
        return found
    if cells.is_date(column):
        found = _parsed(column, None)
    elif cells.is_words(column):
        words = cells.words_of(column)
        form = form or format_of(words, what)
        if form is not None:  # without one, pandas would guess it for each word
            found = _parsed(words, form)
    bad = found.isna().to_numpy() & ~gaps
    if bad.any():
        written = f" ({form})" if form else ""
        raise TableError(
            f"{what} must be a date{written} in every row, and {cells.first(column, bad)} is not"
        )
    return found


def zone_of(column: pd.Series[Any]) -> str | None:
    """The time zone of a column of date objects; None if it has none."""
    zone = getattr(column.dtype, "tz", None) or getattr(
        getattr(column.dtype, "pyarrow_dtype", None), "tz", None
    )
    if zone is None:
        return None
    try:  # by name, as which it is kept: some objects of zones have none
        return str(zone) if pd.Timestamp(0, tz=str(zone)) else None
    except (KeyError, ValueError):
        return None


def local(dates: pd.Series[Any], zone: str | None) -> pd.Series[Any]:
    """Clocks in a time zone, from dates in UTC."""
    if zone is None:
        return dates
    return dates.dt.tz_localize("UTC").dt.tz_convert(zone).dt.tz_localize(None)


def days_since(dates: pd.Series[Any], origin: str) -> FloatArray:
    """Days since a date, including fractions; NaN for NaT."""
    return np.asarray((dates - pd.Timestamp(origin)) / _DAY, dtype=np.float64)


def are_months(dates: pd.Series[Any]) -> bool:
    """Whether all are the first of a month; months without days are read in this way."""
    return bool((dates.dropna().dt.day == 1).all())


def cycles_of(dates: pd.Series[Any]) -> dict[str, FloatArray]:
    """Sine and cosine of month, weekday and hour by skrub, two columns each; NaN for NaT."""
    # whether there are hours is read off the rows of the fit: these have some
    example = pd.Series([pd.Timestamp("2000-01-01 01:00")], name=_NAME)
    encoder = needed_skrub().DatetimeEncoder(
        resolution="hour", add_weekday=True, add_total_seconds=False, periodic_encoding="circular"
    )
    found = encoder.fit(example).transform(dates.rename(_NAME).reset_index(drop=True))
    return {
        cycle: found[[f"{_NAME}_{cycle}_circular_{k}" for k in range(2)]].to_numpy(np.float64)
        for cycle in CYCLES
    }
