"""Warnings on text columns that may be meant as numbers or dates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fenchel.tables import cells, dates

_NEARLY_ALL = 0.9
_LEAST = 3  # values with the same unit
# 5 EUR and 1.250,5 km/h and 12kg: a number and one word or mark
_WITH_UNIT = r"\s*[-+]?\d+(?:[.,']\d+)*\s*([^\W\d_][^\s\d]{0,11}|[°%‰²³]\S{0,3})\s*"
# EUR 5: of words before numbers only currencies, as others are names such as Room 5
_CURRENCY_FIRST = r"\s*([A-Z]{3})\s+[-+]?\d+(?:[.,']\d+)*\s*"

# −5 with a sign that is no hyphen, (5) and 5- of accounts, 1_000, 1 000, 12:30, 1.5D0 of Fortran,
# and durations as pandas and Python write them: 0 days 01:10:28 and -1 day, 23:59:00.5
_ODD_NUMBER = (
    r"\s*(?:[\u2212\u2013]\s*\d[\d.,]*|\(\s*\d[\d.,]*\s*\)|\d[\d.,]*\s*[-\u2212\u2013]"
    r"|[-+]?\d+(?:_\d+)+(?:\.\d+)?"
    r"|[-+]?\d{1,3}(?: \d{3})+(?:[.,]\d+)?|[-+]?\d+(?:\.\d*)?[dD][-+]?\d+"
    r"|(?:-?\d+ days?,? [-+]?)?\d+(?::\d\d){1,2}(?:\.\d+)?)\s*"
)

# 24.12.21 and 24-Dec-21, which do not say which part is the year, and months in words
_SHORT_DATES = ("%d %m %y", "%m %d %y", "%y %m %d", "%d %b %y", "%b %y", "%b %Y", "%B %Y")
_QUARTER = r"(?:\d{4}[- ]?Q[1-4]|Q[1-4][- /]?\d{4})"
_CLOCK = r"(?:[ T]\d{1,2}:\d\d(?::\d\d)?)?"
_MARK = r"[-./ ]"
_LIKE_A_DATE = rf"(?:\d{{1,2}}{_MARK}+)?(?:\d{{1,2}}|[^\W\d_]{{3,9}}){_MARK}+\d{{2,4}}"


def doubt_of(column: pd.Series[Any], name: str, are_labels: bool) -> str | None:
    """A sentence on a text column that looks like another kind of column, if it does.

    If texts are used as labels, also a sentence on labels that may be meant to be the same. A
    column of type category always contains labels.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return None
    words = cells.words_of(column)
    unit = _with_unit(words)
    if unit is not None:
        return (
            f"the column {name!r} holds numbers with a unit, such as {cells.first(words, unit)}, "
            "and is not read as numbers: write them alone for that"
        )
    odd = _odd_numbers(words)
    if odd is not None:
        return (
            f"the column {name!r} holds numbers such as {cells.first(words, odd)}, and is not "
            "read as numbers: write them like -1234.5 for that"
        )
    short = _short_dates(words)
    if short is not None:
        return (
            f"the column {name!r} holds dates such as {cells.first(words, short)}, and is not "
            "read as dates: write them like 2021-12-24, or 2021-12 for months, for that"
        )
    several = dates.several_formats(words)
    if several is None:
        return _same_labels(words, name) if are_labels else None
    one, other = (cells.first(words, mask) for mask in several)
    return (
        f"the column {name!r} holds dates in several formats, such as {one} and {other}, and is "
        "not read as dates: write all of them in the same way for that"
    )


def _same_labels(words: pd.Series[Any], name: str) -> str | None:
    """A sentence on labels that differ only in capitals or surrounding blanks, if any do."""
    labels = pd.Series(words.dropna().unique(), dtype=object).astype(str)
    plain = labels.str.strip().str.casefold()
    again = plain.duplicated()
    if not again.any():
        return None
    one, other = labels[plain == plain[again].iloc[0]].iloc[:2]
    return (
        f"the column {name!r} holds {one!r} and {other!r}, which are different labels: write them "
        "in the same way if they are the same"
    )


def _with_unit(words: pd.Series[Any]) -> Any:
    """Which cells are numbers with the unit that nearly all have; None if there is none."""
    values = words.dropna()
    codes, labels = pd.factorize(values)
    texts = pd.Series(labels, dtype=object).str
    found = texts.extract(f"^{_WITH_UNIT}$")[0].str.lower()
    first = texts.extract(f"^{_CURRENCY_FIRST}$")[0]
    found = pd.Series(np.where(found.notna(), found, first), dtype=object)
    if found.nunique() == 0:
        return None
    usual = found.mode()[0]
    same = (found == usual).to_numpy(dtype=np.bool_)
    if same.sum() < _LEAST or same[codes].mean() < _NEARLY_ALL:
        return None
    return words.isin(labels[same]).to_numpy(dtype=np.bool_)


def _odd_numbers(words: pd.Series[Any]) -> Any:
    """Which cells are numbers in an unusual notation, if nearly all cells are numbers."""
    values = words.dropna()
    codes, labels = pd.factorize(values)
    found = pd.Series(labels, dtype=object).astype(str)
    odd = found.str.fullmatch(_ODD_NUMBER).to_numpy(dtype=np.bool_)
    if not odd.any() or (odd | ~cells.not_numbers(found))[codes].mean() < _NEARLY_ALL:
        return None
    return words.isin(labels[odd]).to_numpy(dtype=np.bool_)


def _short_dates(words: pd.Series[Any]) -> Any:
    """Which cells are dates without a day or a full year, if nearly all cells are."""
    codes, labels = pd.factorize(words.dropna())
    found = pd.Series(labels, dtype=object).astype(str).str.strip()
    quarters = found.str.fullmatch(_QUARTER).to_numpy(dtype=np.bool_)
    like = quarters | found.str.fullmatch(_LIKE_A_DATE + _CLOCK).to_numpy(dtype=np.bool_)
    if np.sum(like[codes]) < max(_LEAST, _NEARLY_ALL * len(codes)):
        return None
    days = found.str.replace(f"{_CLOCK}$", "", regex=True).str.replace(
        f"{_MARK}+", " ", regex=True
    )
    parsed = [pd.to_datetime(days, format=form, errors="coerce") for form in _SHORT_DATES]
    ways = [quarters, *(each.notna().to_numpy(dtype=np.bool_) for each in parsed)]
    short = max(ways, key=lambda each: int(each[codes].sum()))
    if short[codes].mean() < _NEARLY_ALL:
        return None
    return words.isin(labels[short]).to_numpy(dtype=np.bool_)
