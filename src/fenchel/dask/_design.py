"""Design of rows whose features are on workers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.design import RowBlocks, Streamed
from fenchel.design.base import ByValues

Rows = slice | IntArray
Sums = tuple[FloatArray | float, ...]


class Remote(ByValues, Streamed):
    """:class:`fenchel.design.Streamed` with features on workers, one task for a part and pass.

    The directions of a function, which are computed for all blocks, are its values on all rows.
    The pushes of all blocks are collected and pulled on all workers at once. Features (n, r) have
    ``values``, ``pulled``, ``hessian`` and ``diagonal``, in one pass each.
    """

    refusal = "needs all features in memory, and these are on workers; solver='newton' takes any"

    def __init__(self, features: Any, coupling: FloatArray) -> None:
        super().__init__(features, coupling)
        self._spread = features

    @cached_property
    def blocks(self) -> RowBlocks:
        """The rows in blocks."""
        return _CollectingBlocks(self._spread, self.n_outputs)

    def _computed(self, weights: FloatArray) -> FloatArray:
        return np.asarray(self._spread.values(self.feature_weights(weights)))

    def feature_weights(self, weights: FloatArray) -> FloatArray:
        """V Sᵀ, (r, p)."""
        return weights @ self.coupling.T

    def pull(self, rows: Rows, push: FloatArray) -> FloatArray:
        """Φᵀ push, (r, p), computed when it is used, in one pass for all blocks."""
        pulled: Any = _Pushed(self._spread, rows, push)
        return pulled

    def link(self, push: FloatArray) -> FloatArray:
        return self.weights_of(self._spread.pulled(push))

    def hessian(self, rows: IntArray, jacobian: FloatArray) -> FloatArray:
        return np.asarray(self._spread.hessian(rows, jacobian, self.coupling))

    def _scalar_diagonal(self) -> FloatArray:
        return np.asarray(self._spread.diagonal())


class _Pushed:
    """A push on some rows that is not pulled yet."""

    def __init__(self, features: Any, rows: Rows, push: FloatArray) -> None:
        self.features, self.rows, self.push = features, rows, push

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        whole = np.zeros((len(self.features), self.push.shape[1]))
        whole[self.rows] = self.push
        return np.asarray(self.features.pulled(whole))

    def __add__(self, other: Any) -> FloatArray:
        return np.asarray(self) + np.asarray(other)


class _CollectingBlocks(RowBlocks):
    """Blocks whose pushes are pulled together, in one pass over the workers."""

    def __init__(self, features: Any, n_outputs: int) -> None:
        super().__init__(len(features), 2 * n_outputs)
        self._features = features

    def sum(self, task: Callable[[slice], Sums]) -> tuple[FloatArray, ...]:
        """Add up, entry by entry, what ``task`` returns for each block."""
        collected: dict[int, FloatArray] = {}

        def run(rows: slice) -> Sums:
            found: list[Any] = list(task(rows))
            for k, each in enumerate(found):
                if isinstance(each, _Pushed):
                    shape = self.n_rows, each.push.shape[1]
                    collected.setdefault(k, np.empty(shape))[rows] = each.push
                    found[k] = 0.0
            return tuple(found)

        sums = list(super().sum(run))
        for k, push in collected.items():
            sums[k] = self._features.pulled(push)
        return tuple(sums)
