"""Rows of which the features are read pass by pass."""

from __future__ import annotations

from typing import Any

from fenchel._typing import FloatArray
from fenchel.design.plain import Plain


class Streamed(Plain):
    """:class:`Plain` with features that are not in memory as a whole.

    Solvers that pass over rows work with it, and those that want all features at once refuse.

    Parameters
    ----------
    features : array-like of shape (n, r)
        What gives the features of a slice of rows, or of rows by their numbers.
    coupling : ndarray of shape (p, q)
        S; the identity for independent outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Streamed
    >>> design = Streamed(np.ones((2, 1)), np.eye(1))  # or what reads rows from a file
    >>> design.features is None, design.values(np.array([[3.0]])).shape
    (True, (2, 1))
    """

    refusal = "needs all features in memory, and these are on disk; solver='newton' takes any"
    by_rows = False
    gram = None

    def __init__(self, features: Any, coupling: FloatArray) -> None:
        super().__init__(features, coupling)
        self.features = None  # type: ignore[assignment]  # of others: here they are read
