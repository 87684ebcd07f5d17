"""Columns that belong to one feature: the indicators of a category."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray


def groups_of(X: FloatArray) -> npt.NDArray[np.intp]:
    """Number the features of X, (d,): columns of one category have the same number.

    Neighbouring columns of zeros and ones form one category if no row has two ones among them.
    Encoders write a category in this way, with a column for each value or for each but one.
    """
    marks = ((X == 0.0) | (X == 1.0)).all(axis=0) & (X[0] != X).any(axis=0)
    numbers = np.zeros(X.shape[1], dtype=np.intp)
    ones: FloatArray | None = None
    for j in range(X.shape[1]):
        joined = bool(marks[j]) and ones is not None and not (ones * X[:, j]).any()
        ones = (X[:, j] if ones is None or not joined else ones + X[:, j]) if marks[j] else None
        if j:
            numbers[j] = numbers[j - 1] + (not joined)
    return numbers
