"""Design of features that are read anew in each pass."""

from __future__ import annotations

from typing import Any

from fenchel._typing import FloatArray, IntArray
from fenchel.design.plain import Plain


class Streamed(Plain):
    """Design as :class:`Plain`, with features that are not all in memory.

    Solvers that pass over rows work with it. Solvers that need all features at once refuse it.

    Parameters
    ----------
    features : array-like of shape (n, r)
        Object that returns the features of a slice of rows, or of row indices.
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

    def _gathered(self, rows: IntArray) -> FloatArray:
        return self._rows[rows]
