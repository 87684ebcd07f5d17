"""Rows on workers, one part in each future, and computations with them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel.dask import _tasks as tasks
from fenchel.dask._cluster import Cluster
from fenchel.dask._design import Remote
from fenchel.features import FeatureMap
from fenchel.features.base import far_mean


class SpreadRows:
    """Rows (n, k) of numbers on workers: ``rows[numbers]`` and ``rows[10:20]`` fetch some of them.

    ``parts`` are futures of arrays (m, k), or of objects that have these as ``rows``. ``starts``
    are the index of the first row of each part, and the number of all rows, (n_parts + 1,).
    """

    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(self, cluster: Cluster, parts: list[Any], starts: IntArray, width: int) -> None:
        self.cluster, self.parts, self.starts = cluster, parts, starts
        self.shape = int(starts[-1]), width

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def slices(self) -> list[slice]:
        """Rows of each part."""
        return [slice(*pair) for pair in pairwise(self.starts.tolist())]

    def local(self, rows: AnyArray) -> list[tuple[int, AnyArray]]:
        """Parts that contain rows, each with the positions of these rows in the given ones."""
        part = np.searchsorted(self.starts, rows, side="right") - 1
        return [(int(k), np.flatnonzero(part == k)) for k in np.unique(part)]

    def __getitem__(self, rows: slice | AnyArray | list[int]) -> FloatArray:
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        numbers = np.asarray(rows, dtype=np.intp)
        found = np.empty((len(numbers), self.shape[1]))
        wanted = self.local(numbers)
        brought = [self._of(k, numbers[places] - self.starts[k]) for k, places in wanted]
        for (_, places), values in zip(wanted, self.cluster.gathered(brought), strict=True):
            found[places] = values
        return found

    def _of(self, part: int, rows: IntArray) -> Any:
        return self.cluster.submit(tasks.some_rows, self.parts[part], rows)

    def some(self, numbers: IntArray) -> SpreadRows:
        """Select rows by nondecreasing index, on the workers that have them."""
        wanted = self.local(numbers)
        parts = [self._of(k, numbers[places] - self.starts[k]) for k, places in wanted]
        starts = np.cumsum([0, *(len(places) for _, places in wanted)])
        return SpreadRows(self.cluster, parts, starts, self.shape[1])

    def combination(self, feature_map: FeatureMap, weights: FloatArray) -> FloatArray:
        """Features of all rows times weights (k, p), (n, p)."""
        known = self.cluster.held((feature_map, weights))
        found = [self.cluster.submit(tasks.combination, part, known) for part in self.parts]
        return np.concatenate(self.cluster.gathered(found))


class SpreadFeatures(SpreadRows):
    """Features (n, r) of rows on workers, minus a shift, with the passes over them.

    Each pass is one task for each part. Its arguments and results have the size of the targets
    or of the weights, while the features stay on the workers.

    ``left`` and ``kernel_error`` are those of :class:`fenchel.features.FeaturesOnDisk`.
    """

    def __init__(self, rows: SpreadRows, feature_map: FeatureMap) -> None:
        cluster = rows.cluster
        known = cluster.held(feature_map)
        mapped = [cluster.submit(tasks.mapped, part, known) for part in rows.parts]
        super().__init__(cluster, mapped, rows.starts, feature_map.rank_)
        self._shift = np.zeros(feature_map.rank_)
        found = self._pass(tasks.left_out, [(part, known) for part in rows.parts])
        left, squares = zip(*cluster.gathered(found), strict=True)
        self.left, lost = np.concatenate(left), float(sum(each.sum() for each in left))
        self.kernel_error = lost / (lost + float(sum(squares))) if lost > 0.0 else 0.0

    def __sub__(self, shift: FloatArray) -> Self:
        shifted = copy.copy(self)
        shifted._shift = self._shift + shift
        return shifted

    def _of(self, part: int, rows: IntArray) -> Any:
        return self.cluster.submit(tasks.some_features, self.parts[part], self._shift, rows)

    def _pass(self, function: Any, given: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Submit a task for each part, with its arguments."""
        pairs = zip(self.parts, given, strict=True)
        return [self.cluster.submit(function, part, *mine) for part, mine in pairs]

    def _asked(self, method: str, given: Sequence[tuple[FloatArray, ...]], p: int) -> list[Any]:
        """Call a method of the design of each part, for p uncoupled outputs."""
        known = self._shift, np.eye(p), method
        return self._pass(tasks.asked, [(*known, *mine) for mine in given])

    def values(self, directions: FloatArray) -> FloatArray:
        """Φ times directions (r, p), of all rows, (n, p)."""
        given = [(directions,)] * len(self.parts)
        found = self._asked("values", given, directions.shape[1])
        return np.concatenate(self.cluster.gathered(found))

    def pulled(self, push: FloatArray) -> FloatArray:
        """Φᵀ times a push (n, p), (r, p)."""
        found = self._asked("link", [(push[rows],) for rows in self.slices], push.shape[1])
        return np.asarray(self.cluster.summed(found))

    def diagonal(self) -> FloatArray:
        """‖φ_i‖² of all rows, (n,)."""
        found = self._asked("diagonal", [()] * len(self.parts), 1)
        return np.concatenate(self.cluster.gathered(found))

    def hessian(self, rows: IntArray, jacobian: FloatArray, coupling: FloatArray) -> FloatArray:
        """See :meth:`fenchel.design.Plain.hessian`."""
        found = []
        for k, places in self.local(rows):
            mine = rows[places] - self.starts[k], jacobian[places]
            known = self.parts[k], self._shift, coupling, "hessian"
            found.append(self.cluster.submit(tasks.asked, *known, *mine))
        if not found:
            size = self.shape[1] * coupling.shape[1] + len(coupling)
            return np.zeros((size, size))
        return np.asarray(self.cluster.summed(found))

    def design(self, coupling: FloatArray) -> Remote:
        """The design that calls the workers, for outputs coupled by S."""
        return Remote(self, coupling)

    def centre(self, weight: FloatArray) -> FloatArray | None:
        """See :meth:`fenchel.features.FeatureMap.centre`."""
        share = weight / weight.sum()
        found = self._pass(tasks.moments_of, [(share[rows],) for rows in self.slices])
        return far_mean(*self.cluster.summed(found))
