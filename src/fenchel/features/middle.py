"""Choice of the row that is nearest to the middle of the data, to break ties between pivots.

The choice depends only on the values of the rows: not on their order, on units, on repeats, or
on threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from fenchel._threads import in_threads
from fenchel._typing import FloatArray, IntArray
from fenchel.design import RowBlocks, distinct_rows
from fenchel.kernels import SparsePoints

_SAMPLE = 1000  # distinct rows that tell the middle
_SAME = 1e-9  # relative difference of distances that rounding may make


class Middle:
    """Mean of the distinct rows, in units of their standard deviations.

    Units and repeated rows have no effect. With the row nearest to the mean as the first pivot of
    a Gaussian or Matérn kernel, the residual trace is 5 % less than with a random one at rank 20,
    and 4 % less at ranks 50 and 100, on average over 240 fits of 600 rows of five kinds. With the
    first row in lexicographic order it is 7, 2 and 1 % more.
    """

    def __init__(self, X: Any) -> None:
        self.X = X

    @cached_property
    def distance(self) -> FloatArray:
        """Squared distance of each row from the middle, (n,)."""
        X = self.X
        each = np.broadcast_to(1.0, len(X))
        sample = distinct_rows(X, X[:, :0], each, _SAMPLE, exact=False)[1]
        size = np.abs(sample).max(axis=0)
        size[size == 0.0] = 1.0
        sample = sample / size  # squares of large numbers overflow
        centre, unit = sample.mean(axis=0), sample.std(axis=0)
        unit[np.ptp(sample, axis=0) == 0.0] = np.inf

        def task(rows: slice) -> FloatArray:
            off = X[rows] / size
            off -= centre
            off /= unit
            return np.asarray(np.einsum("ij,ij->i", off, off))

        return np.concatenate(RowBlocks(len(X), X.shape[1]).map(task))

    def told(self, some: IntArray) -> FloatArray:
        """Return values that distinguish these rows, (m, k)."""
        return np.asarray(self.X[some])

    def nearest(self, parts: Sequence[IntArray]) -> int:
        """Return the nearest row of these parts; among ties, the first in lexicographic order."""
        if len(parts) == len(parts[0]) == 1:
            return int(parts[0][0])
        distance = self.distance

        def nearest_ones(some: IntArray) -> IntArray:
            mine = distance[some]
            return some[mine <= (1.0 + _SAME) * mine.min()]

        some = nearest_ones(np.concatenate(in_threads(nearest_ones, parts)))
        table = self.told(some)
        for j in range(table.shape[1]):
            first = table[:, j] == table[:, j].min()
            some, table = some[first], table[first]
        return int(some[0])

    def distinct(self, some: IntArray) -> IntArray:
        """Return one of each group of equal rows, in lexicographic order."""
        table = self.told(some)
        order = np.lexsort(table.T[::-1])
        some, table = some[order], table[order]
        new = np.ones(len(some), dtype=bool)
        new[1:] = (table[1:] != table[:-1]).any(axis=1)
        return some[new]


class SparseMiddle(Middle):
    """The origin as the middle of sparse rows, in units of the largest entries of columns."""

    @cached_property
    def _scaled(self) -> SparsePoints:
        size = np.asarray(abs(self.X.matrix).max(axis=0).toarray()).ravel()
        size[size == 0.0] = 1.0
        scaled: SparsePoints = self.X.over(size)
        return scaled

    @cached_property
    def distance(self) -> FloatArray:
        """Squared distance of each row from the middle, (n,)."""
        return self._scaled.squares

    @cached_property
    def _combined(self) -> FloatArray:
        """A combination of the columns with random weights: different for different rows."""
        weights = np.random.default_rng(0).uniform(size=self.X.shape[1])
        return np.asarray(self._scaled.matrix @ weights)

    def told(self, some: IntArray) -> FloatArray:
        """Return values that distinguish these rows, (m, 1)."""
        return self._combined[some, None]


class GramMiddle(Middle):
    """Middle of the rows of a Gram matrix: a row with a larger sum is nearer."""

    @cached_property
    def distance(self) -> FloatArray:
        """Largest row sum minus the sum of each row, (n,)."""
        total = self.X.sum(axis=1)
        lacking: FloatArray = total.max() - total
        return lacking

    def told(self, some: IntArray) -> FloatArray:
        """Return values that distinguish these rows, (m, 2): row sums, then indices."""
        return np.column_stack([self.distance[some], some])


def middle_of(X: Any, given: bool) -> Middle:
    """Return the middle of dense or sparse rows, or of the rows of a Gram matrix."""
    if given:
        return GramMiddle(X)
    return SparseMiddle(X) if isinstance(X, SparsePoints) else Middle(X)
