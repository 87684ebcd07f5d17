"""Features of rows that are on disk, on disk too or made anew in each pass."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from fenchel._typing import FloatArray
from fenchel.design import RowBlocks, Streamed
from fenchel.features.base import FeatureMap
from fenchel.spool import RowsOnDisk, Spool, fits_on_disk

_FEW_ROWS = 2**13


class FeaturesOnDisk(RowsOnDisk):
    """Features (n, r) of rows, less a shift: of these slices, or the numbers of some, are read.

    They are written into a temporary file where there is room for it, and else made anew from
    the rows whenever they are read. In the file they are less their :meth:`centre`, so that those
    which most fits pass over, less their centre too, are read as they are.

    Parameters
    ----------
    rows : RowsOnDisk of shape (n, d)
    feature_map : FeatureMap
        A fitted one.

    Attributes
    ----------
    left : ndarray of shape (n,)
        What the features leave out of the diagonal, see :meth:`FeatureMap.residual`.
    kernel_error : float
        Share of the trace of the kernel that they leave out.
    """

    def __init__(self, rows: RowsOnDisk, feature_map: FeatureMap) -> None:
        super().__init__(len(rows), feature_map.rank_)
        self._rows, self._map = rows, feature_map
        some = feature_map.transform(rows[np.arange(0, len(rows), -(-len(rows) // _FEW_ROWS))])
        self._centre = feature_map.centre(some, np.ones(len(some)))
        none = np.zeros(feature_map.rank_)
        self._written = none if self._centre is None else self._centre
        self._shift = none
        self._beside = None if self._centre is None else -self._centre  # what is taken off yet
        self._spool = Spool(*self.shape[::-1]) if fits_on_disk(*self.shape) else None
        self.left = np.zeros(len(rows))

        def task(block: slice) -> tuple[float, float]:
            X = rows[block]
            features = feature_map.transform(X)
            if feature_map.in_space:
                self.left[block] = feature_map.residual(X, features)
            squares = float(np.einsum("ij,ij->", features, features))
            if self._spool is not None:
                self._spool.write(block.start, features - self._written)
            return float(self.left[block].sum()), squares

        left, squares = (float(part) for part in self.blocks.sum(task))
        self.kernel_error = left / (left + squares) if left > 0.0 else 0.0

    @property
    def blocks(self) -> RowBlocks:
        """Passes over the rows and their features."""
        return RowBlocks(len(self), self.shape[1] + self._rows.shape[1])

    def centre(self, weight: FloatArray) -> FloatArray | None:
        """See :meth:`FeatureMap.centre`, of a few rows at equal steps, whatever the weights.

        With a free constant any centre leaves the same functions.
        """
        return self._centre

    def design(self, coupling: FloatArray) -> Streamed:
        """The design that reads them, for outputs coupled by S."""
        return Streamed(self, coupling)

    def __sub__(self, shift: FloatArray) -> Self:
        shifted = copy.copy(self)
        shifted.forget()
        shifted._shift = self._shift + shift
        beside = shifted._shift - self._written
        shifted._beside = beside if beside.any() else None
        return shifted

    def _read(self, start: int, stop: int) -> FloatArray:
        if self._spool is None:
            return np.asarray(self._map.transform(self._rows[start:stop]) - self._shift)
        found = self._spool.read(start, stop)
        if self._beside is not None:
            found -= self._beside
        return found
