"""Rows to fit and rows to hold out, from whatever says which they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from fenchel._typing import IntArray
from fenchel._validation import shown

Fold = tuple[IntArray, IntArray]
"""Numbers of the rows that are fitted, and of those that are held out."""


def folds_of(cv: Any, X: Any, y: Any, n_rows: int) -> list[Fold]:
    """Folds by a splitter, by a number or as they are given: numbers of rows, none of them empty.

    Masks and numbers from the end become numbers from the beginning.
    """
    try:
        splits = list(check_cv(cv).split(X, y))
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(_refusal(cv, error)) from error
    if not splits:
        raise ValueError(
            f"cv must have a split, got {described(cv)} with none: an iterator is at its end "
            "after one fit, and a list is not"
        )
    rows = np.arange(n_rows)
    return [(_numbered(rows, train, cv), _numbered(rows, out, cv)) for train, out in splits]


def described(cv: Any) -> str:
    """What was given, splits without all their rows."""
    if isinstance(cv, (list, tuple)):
        return f"{len(cv)} split{'s' * (len(cv) != 1)}"
    return shown(cv)


def _refusal(cv: Any, error: Exception) -> str:
    """What a splitter says, in one sentence that says what to do where it asks for groups."""
    said = " ".join(str(error).split()).rstrip(".")
    if "groups" in said:
        return (
            f"cv must be a splitter that needs no groups, got {described(cv)}: give its splits, "
            "cv=list(splitter.split(X, y, groups))"
        )
    return f"cv must be able to split the rows of X, got {described(cv)}: {said}"


def _numbered(rows: IntArray, given: Any, cv: Any) -> IntArray:
    """The rows on one side of a split."""
    array = np.asarray(given)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iub"):
        raise TypeError(
            "cv must be pairs of numbers of rows to fit and to hold out, got "
            f"{shown(given)} in {described(cv)}"
        )
    try:
        chosen = rows[array] if array.size else rows[:0]
    except IndexError:
        which = f"a mask of {len(array)}" if array.dtype.kind == "b" else _outside(array, rows)
        raise ValueError(
            f"cv must be pairs of numbers of the {len(rows)} rows of X, from 0 to "
            f"{len(rows) - 1}, got {which} in {described(cv)}"
        ) from None
    if not len(chosen):
        raise ValueError(
            "cv must have rows to fit and rows to hold out in each split, got an empty side in "
            f"{described(cv)}"
        )
    return np.asarray(chosen)


def _outside(numbers: IntArray, rows: IntArray) -> str:
    """The first number that is that of no row."""
    return str(next(k for k in numbers.tolist() if not -len(rows) <= k < len(rows)))
