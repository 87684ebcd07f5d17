"""Labels of groups of rows that depend on each other, such as the visits of a patient."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._typing import AnyArray, ArrayLike, IntArray
from fenchel._validation import check_length, check_weights, shown


def group_labels(groups: ArrayLike, n_rows: int) -> AnyArray:
    """The label of the group of each row, (n,); a sentence says what is wrong with others.

    Examples
    --------
    >>> from fenchel._groups import group_labels
    >>> group_labels(["a", "b", "a"], 3).shape
    (3,)
    """
    if hasattr(groups, "compute") or hasattr(groups, "collect"):
        raise TypeError(
            f"groups must be an array in memory, got {type(groups).__name__}: compute it before"
        )
    try:
        array = np.asarray(groups)
    except ValueError as error:  # lists of several lengths
        raise ValueError("groups must be an array of shape (n_samples,), got lists") from error
    if array.ndim != 1:
        given = shown(groups) if array.ndim == 0 else f"one of shape {array.shape}"
        raise ValueError(f"groups must be an array of shape (n_samples,), got {given}")
    check_length(len(array), n_rows, "groups")
    loose = array.dtype.kind in "OfcmM"  # others have no sign for what is missing
    if np.ma.is_masked(groups) or (loose and any(map(is_missing, array))):
        raise ValueError("groups must have no missing labels, got some: each row needs one")
    return array


def group_numbers(groups: ArrayLike, X: Any, sample_weight: ArrayLike | None) -> IntArray:
    """Number the groups of rows of positive weight, in the order of their labels.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel._groups import group_numbers
    >>> group_numbers(["b", "a", "b", "c"], np.ones((4, 1)), [1.0, 1.0, 2.0, 0.0])
    array([1, 0, 1])
    """
    weight = check_weights(X, sample_weight)
    labels = group_labels(groups, len(weight))[weight > 0.0]
    numbers = numbers_of(labels)
    if not numbers.any():
        raise ValueError("groups must have two different labels or more, got 1")
    return numbers


def numbers_of(labels: AnyArray) -> IntArray:
    """Number labels in their order, (n,); those of several types are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel._groups import numbers_of
    >>> numbers_of(np.array(["b", "a", "b"]))
    array([1, 0, 1])
    """
    try:
        numbers = np.unique(labels, return_inverse=True)[1]
    except TypeError as error:
        raise TypeError(
            "groups must have labels of one type, such as words or numbers, got several"
        ) from error
    return np.asarray(numbers, dtype=np.intp).ravel()


def check_no_groups(groups: ArrayLike | None) -> None:
    """Refuse groups of rows that are read block by block."""
    if groups is not None:
        raise ValueError(
            "groups must be None for rows that are not in memory: read them into memory"
        )


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN or another sign of a missing value.

    Examples
    --------
    >>> from fenchel._groups import is_missing
    >>> is_missing(float("nan")), is_missing("nan")
    (True, False)
    """
    try:
        return bool(label is None or label != label)  # noqa: PLR0124  (NaN is not itself)
    except TypeError:  # pandas.NA
        return True
