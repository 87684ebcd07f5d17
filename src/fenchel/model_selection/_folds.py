"""Training and held-out rows from splitters, numbers of folds or given folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils.validation import has_fit_parameter

from fenchel._groups import group_labels
from fenchel._typing import AnyArray, ArrayLike, IntArray
from fenchel._validation import shown

Fold = tuple[IntArray, IntArray]
"""Indices of the training rows and of the held-out rows."""


class EachOut(Sequence[Fold]):
    """Folds of one row each; their indices are computed when asked for, as all are n²."""

    def __init__(self, rows: IntArray) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, k: Any) -> Any:
        return np.delete(self.rows, k), self.rows[[k]]


def folds_of(cv: Any, X: Any, y: Any, n_rows: int, groups: AnyArray | None = None) -> list[Fold]:
    """Return the folds of a splitter, a number or given splits, as nonempty index arrays.

    Boolean masks and negative indices are converted to nonnegative indices.
    """
    try:
        splits = list(check_cv(cv).split(X, y, groups))
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(_refusal(cv, error, groups is None)) from error
    if not splits:
        raise ValueError(
            f"cv must have a split, got {described(cv)} with none: an iterator is at its end "
            "after one fit, and a list is not"
        )
    rows = np.arange(n_rows)
    return [(_numbered(rows, train, cv), _numbered(rows, out, cv)) for train, out in splits]


def held_out_once(folds: list[Fold], cv: Any) -> list[Fold]:
    """Return the folds; a row may not be held out twice in a split, or be in its training rows."""
    for train, held_out in folds:
        if np.isin(held_out, train).any():
            raise ValueError(f"cv must not fit to the rows that it holds out, got {described(cv)}")
        if len(np.unique(held_out)) < len(held_out):
            raise ValueError(f"cv must not hold a row out twice in a split, got {described(cv)}")
    return folds


def check_groups(groups: ArrayLike | None, cv: Any, n_rows: int) -> AnyArray | None:
    """Return the group of each row, (n,), for a splitter that uses groups; None if none given."""
    if groups is None:
        return None
    if not asks_for_groups(cv):
        raise ValueError(
            "cv must be a splitter that takes groups, such as GroupKFold(), for groups to be "
            f"given, got {described(cv)}"
        )
    return group_labels(groups, n_rows)


def described(cv: Any) -> str:
    """Describe ``cv``, with splits shown without all their rows."""
    if isinstance(cv, (list, tuple)):
        return f"{len(cv)} split{'s' * (len(cv) != 1)}"
    return shown(cv)


def asks_for_groups(cv: Any) -> bool:
    """Whether it is a splitter, other than those of scikit-learn that ignore groups."""
    if not (hasattr(cv, "split") and hasattr(cv, "get_n_splits")):
        return False
    if not type(cv).__module__.startswith("sklearn."):
        return True
    return "groups" in cv.get_metadata_routing().split.requests


def takes_groups(estimator: Any) -> bool:
    """Whether ``fit`` uses groups; a search does if its folds are by groups."""
    if hasattr(estimator, "cv"):
        return asks_for_groups(estimator.cv)
    return has_fit_parameter(estimator, "groups")


def _refusal(cv: Any, error: Exception, without_groups: bool) -> str:
    """Message of a splitter in one sentence, with advice if groups are missing."""
    said = " ".join(str(error).split()).rstrip(".")
    if without_groups and "groups" in said:
        return f"groups must be given to fit for a cv that splits by groups, {described(cv)}"
    return f"cv must be able to split the rows of X, got {described(cv)}: {said}"


def _numbered(rows: IntArray, given: Any, cv: Any) -> IntArray:
    """Indices of the rows on one side of a split."""
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
    """The first index that is out of range."""
    return str(next(k for k in numbers.tolist() if not -len(rows) <= k < len(rows)))
