"""Entries of a Gram matrix, computed when needed or precomputed."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from fenchel._clock import check_time
from fenchel._typing import FloatArray, IntArray
from fenchel.design import RowBlocks
from fenchel.features.middle import Middle, middle_of
from fenchel.kernels import (
    BetweenCurves,
    Callable,
    OnColumns,
    Precomputed,
    ScalarKernel,
    for_threads,
    parts_of,
)

ROUNDING = 64 * np.finfo(float).eps
"""Residuals below this share of their own diagonal entry are rounding errors."""
UNEXPLAINED = 1e-6
_NEGATIVE = 1e-8
_FEW = 512  # rows: all of their kernel values take as long as ten calls for a column
_TILE = 512  # rows: 2 MiB of kernel values, and as much again within the kernel
PROBES = 500
_PACKAGES = ("fenchel", "sklearn")  # whose kernels return a new array at each call


class Gram:
    """Columns and diagonal of the Gram matrix, computed when needed or precomputed."""

    def __init__(self, kernel: Any, X: FloatArray, given: bool) -> None:
        self.kernel, self.X, self.given = kernel, X, given
        self.diagonal = np.array(np.diag(X) if given else kernel.diag(X), dtype=np.float64)
        self.largest = float(self.diagonal.max())
        self.check(self.diagonal)

    @property
    def size(self) -> int:
        """Number of rows and columns."""
        return len(self.diagonal)

    @cached_property
    def _reduced(self) -> tuple[FloatArray, Any]:
        """Rows with what is the same for all columns done, and the kernel of these."""
        ours = isinstance(self.kernel, ScalarKernel)
        return self.kernel.reduced(self.X) if ours else (self.X, self.kernel)

    @cached_property
    def middle(self) -> Middle:
        """Rule that chooses among rows with equal diagonal entries."""
        return middle_of(self.X, self.given)

    @property
    def shares_values(self) -> bool:
        """Whether arrays of kernel values may be in use elsewhere: a kernel may keep them."""
        return self.given or not _makes_new_arrays(self.kernel)

    @property
    def in_pieces(self) -> bool:
        """Whether kernel values may be computed in pieces and in several threads."""
        return not self.given and for_threads(self.kernel)

    @property
    def few(self) -> bool:
        """Whether all kernel values cost less than calls for some of their columns."""
        return self.size <= _FEW and (self.given or self.in_pieces)

    def block(self, rows: Any, pivots: Any) -> FloatArray:
        """Return k(X[rows], X[pivots]), writeable."""
        if self.given:
            return self.X[rows][:, pivots]
        own, kernel = self._reduced
        values = kernel(own[rows], own[pivots])
        return np.require(values, dtype=np.float64, requirements="W")

    def write_column(self, rows: slice, pivot: int, out: FloatArray) -> None:
        """Write k(X[rows], X[pivot]) into an array (m,), for kernels computed in pieces."""
        own, kernel = self._reduced
        if isinstance(kernel, ScalarKernel):
            kernel.fill(own[pivot : pivot + 1], own[rows], out[None, :])
        else:
            out[...] = kernel(own[rows], own[pivot : pivot + 1])[:, 0]
        if rows.start <= pivot < rows.stop:
            self.check_own(out[pivot - rows.start, None], np.array([pivot]))

    def columns(self, pivots: IntArray) -> FloatArray:
        """Return k(X, X[pivots]), writeable, after a check of its diagonal entries."""
        values = self.block(slice(None), pivots)
        self.check_own(values[pivots, np.arange(len(pivots))], pivots)
        return values

    def check_own(self, own: FloatArray, rows: IntArray) -> None:
        """Raise ValueError if kernel values k(x, x) differ from ``kernel.diag``."""
        difference = float(np.abs(own - self.diagonal[rows]).max(initial=0.0))
        if not difference <= _NEGATIVE * self.largest:
            raise ValueError(
                f"kernel(X, Y) and kernel.diag(X) must agree for equal rows, and differ by "
                f"{difference:.3g} (a WhiteKernel adds noise to the diagonal only: leave it "
                "out and raise alpha instead)"
            )

    def check(self, left: FloatArray) -> None:
        """Raise ValueError if the residual diagonal is negative beyond rounding errors."""
        lowest = float(left.min())
        if not (np.isfinite(lowest) and lowest >= -_NEGATIVE * max(self.largest, 0.0)):
            raise self.refusal(lowest)

    def check_rest(self, features: FloatArray) -> None:
        """Raise ValueError if off-diagonal residuals remain although the diagonal is zero.

        A precomputed matrix is checked completely. For a kernel that is not of this library, 500
        rows are checked.
        """
        n = len(features)
        foreign = (Callable, BetweenCurves, OnColumns)  # or with a part that may be
        ours = isinstance(self.kernel, ScalarKernel) and not isinstance(self.kernel, foreign)
        if ours and not self.given:
            return
        rows = np.arange(n) if self.given else self.probes(n)
        for start in range(0, len(rows), PROBES):
            some = rows[start : start + PROBES]
            rest = np.abs(self.block(some, rows) - features[some] @ features[rows].T).max()
            if not rest <= UNEXPLAINED * self.largest:
                raise self.refusal(-float(rest))

    def probes(self, n: int) -> IntArray:
        """Return the indices of at most 500 rows to check."""
        return np.arange(0, n, -(-n // PROBES))

    def refusal(self, lowest: float) -> ValueError:
        """Return the error for a matrix that is not positive semi-definite."""
        return not_positive(lowest)


def unproved(kernel: Any) -> bool:
    """Whether a kernel has a part that may not be positive semi-definite."""
    return isinstance(kernel, (Callable, Precomputed)) or any(map(unproved, parts_of(kernel)))


def _makes_new_arrays(kernel: Any) -> bool:
    """Whether a kernel and its parts are of this package or of scikit-learn."""
    package = type(kernel).__module__.partition(".")[0]
    known = package in _PACKAGES and not isinstance(kernel, Callable)
    return known and all(map(_makes_new_arrays, parts_of(kernel)))


def not_positive(lowest: float) -> ValueError:
    """Return the error for a kernel that is not positive semi-definite."""
    return ValueError(
        "the kernel must be positive semi-definite on the rows of X, and is not (with "
        f"kernel='precomputed', X is that Gram matrix): a residual of {lowest:.3g} was found"
    )


def residual_diagonal(diagonal: FloatArray, features: FloatArray) -> FloatArray:
    """Return the diagonal entries minus those of the features; rounding errors become zero."""

    def task(rows: slice) -> FloatArray:
        mine, whole = features[rows], diagonal[rows]
        left = whole - np.einsum("...j,...j->...", mine, mine)
        left[left <= ROUNDING * whole] = 0.0
        return left

    return np.concatenate(RowBlocks(len(features), features[0].size).map(task))


def forms_of(gram: Gram, push: FloatArray) -> FloatArray:
    """Return quadratic forms pushᵀ K push, (q, q), from tiles of the upper triangle of K."""
    total = np.zeros((push.shape[1], push.shape[1]))
    carrying = np.flatnonzero(push.any(axis=1))
    tiles = [carrying[i : i + _TILE] for i in range(0, len(carrying), _TILE)]
    for i, rows in enumerate(tiles):
        check_time()
        total += push[rows].T @ (gram.block(rows, rows) @ push[rows])
        for others in tiles[i + 1 :]:
            part = push[rows].T @ (gram.block(rows, others) @ push[others])
            total += part + part.T
    return total
