"""Features of rows on disk, stored on disk too or recomputed in each pass."""

from __future__ import annotations

import copy
from itertools import count
from threading import get_ident
from typing import Self

import numpy as np

from fenchel._typing import FloatArray
from fenchel.design import RowBlocks, Streamed
from fenchel.features.base import FeatureMap
from fenchel.spool import RowsOnDisk, Spool, fits_on_disk

_FEW_ROWS = 2**13


class FeaturesOnDisk(RowsOnDisk):
    """Features (n, r) of rows on disk, minus a shift, read by slices or by row indices.

    They are written to a temporary file if there is room for it. Otherwise they are recomputed
    from the rows whenever they are read. The file contains the features minus their
    :meth:`centre`: most fits use centred features, and read them without further computation.

    Parameters
    ----------
    rows : RowsOnDisk of shape (n, d)
    feature_map : FeatureMap
        A fitted map.

    Attributes
    ----------
    left : ndarray of shape (n,)
        Residual diagonal of the kernel, see :meth:`FeatureMap.residual`.
    kernel_error : float
        Share of the trace of the kernel that the features leave out.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import FeaturesOnDisk, PivotedCholesky
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.spool import Spool
    >>> rows = Spool(1)
    >>> rows.append(np.linspace(0.0, 1.0, 100)[:, None])
    >>> feature_map = PivotedCholesky(Gaussian(1.0), rank=4).fit(rows[:50])
    >>> FeaturesOnDisk(rows, feature_map)[10:20].shape
    (10, 4)
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
        done, caller = count(1), get_ident()
        blocks = self.blocks

        def task(block: slice) -> tuple[float, float]:
            X = rows[block]
            features = feature_map.transform(X)
            if feature_map.in_space:
                self.left[block] = feature_map.residual(X, features)
            squares = float(np.einsum("ij,ij->", features, features))
            if self._spool is not None:
                self._spool.write(block.start, features - self._written)
            rows_done = min(next(done) * blocks.block_rows, len(rows))
            if rows.passed is not None and get_ident() == caller:  # others tell nobody
                rows.passed(rows_done, len(rows))
            return float(self.left[block].sum()), squares

        left, squares = (float(part) for part in blocks.sum(task))
        if rows.passed is not None:
            rows.passed(len(rows), len(rows))
        self.kernel_error = left / (left + squares) if left > 0.0 else 0.0

    @property
    def blocks(self) -> RowBlocks:
        """Blocks for passes over the rows and their features."""
        return RowBlocks(len(self), self.shape[1] + self._rows.shape[1])

    def centre(self, weight: FloatArray) -> FloatArray | None:
        """See :meth:`FeatureMap.centre`; computed from a few rows at equal steps, unweighted.

        With an intercept, the set of functions is the same for any centre.
        """
        return self._centre

    def design(self, coupling: FloatArray) -> Streamed:
        """Return the design that reads these features, for outputs coupled by S."""
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
