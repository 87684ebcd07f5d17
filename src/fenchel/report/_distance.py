"""Rows that are far from the training rows, in the distance of the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.inspection.tables import some_rows
from fenchel.kernels import OperatorKernel, Precomputed

QUANTILE = 0.99
_VALUES = 2 * 10**7  # of the kernel, for the rows of a report
_QUERIES = 1000  # kept rows whose nearest other is looked for
_CHUNK = 2**20


@dataclass(frozen=True)
class Far:
    r"""Number of rows that are far from the rows that a model keeps.

    The distance of a row is :math:`\min_z \sqrt{k(x, x) + k(z, z) - 2 k(x, z)}` over the kept
    rows z. The row is far if that is more than ``threshold``, the 99 % quantile of the distances
    of kept rows to the nearest different kept row. Equal rows count as one,
    unless the model was fitted on sparse rows.
    """

    n_far: int
    n_rows: int
    n_kept: int
    threshold: float
    median: float

    @property
    def share(self) -> float:
        """Share of the rows that were checked."""
        return self.n_far / self.n_rows


def far_rows(model: Any, X: Any) -> Far | None:
    """Check rows in the form that the model inside takes; None without kernel and kept rows."""
    feature_map = getattr(model, "feature_map_", None)
    kernel = getattr(feature_map, "kernel_", None)
    kept = getattr(feature_map, "landmarks_", None)
    if kernel is None or kept is None or isinstance(kernel, (OperatorKernel, Precomputed)):
        return None
    if not hasattr(kept, "matrix"):  # of rows that are not sparse, equal ones count as one
        kept = np.unique(kept, axis=0)
    if len(kept) < 2:
        return None
    rows = np.asarray(X, dtype=np.float64)
    sample = some_rows(len(kept), min(_QUERIES, max(1, _VALUES // len(kept))))
    spacing = _nearest(kernel, kept[sample], kept, own=sample)
    threshold = float(np.quantile(spacing, QUANTILE, method="higher"))
    looked_at = rows[some_rows(len(rows), max(1, _VALUES // len(kept)))]
    distance = _nearest(kernel, looked_at, kept)
    n_far = int(np.count_nonzero(distance > threshold))
    return Far(n_far, len(distance), len(kept), threshold, float(np.median(distance)))


def _nearest(
    kernel: Any, rows: FloatArray, kept: FloatArray, own: IntArray | None = None
) -> FloatArray:
    """Distance of each row to the nearest kept one, except for itself as given by ``own``."""
    size = max(1, _CHUNK // len(kept))
    theirs, squares = np.asarray(kernel.diag(kept)), np.empty(len(rows))
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        values = kernel.diag(some)[:, None] + theirs - 2.0 * np.asarray(kernel(some, kept))
        if own is not None:
            values[np.arange(len(some)), own[start : start + size]] = np.inf
        squares[start : start + size] = values.min(axis=1)
    return np.sqrt(np.maximum(squares, 0.0))
