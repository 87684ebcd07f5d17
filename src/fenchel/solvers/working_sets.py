"""Greedy ascent on working sets of rows, for kernel values that are not stored."""

from __future__ import annotations

from math import fsum

import numpy as np

from fenchel._clock import check_time
from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel.design import Gram, KernelValues
from fenchel.problem import Problem
from fenchel.solvers import _greedy
from fenchel.solvers.ascent import Ascent, curvature
from fenchel.solvers.base import WarmStart

_SET = 1024
_SHARE = 0.1  # of the slope among all rows that steps within a set leave
_TURNS = 20  # steps for each row of a set
_WORK = 10  # kernel values that sets may take, for each value of the matrix and each output
READ = 20.0  # values that steps may read, for each of the matrix: a set of few rows has them all


class OnSets(Ascent):
    """Ascent on working sets of rows, with the slopes of all rows.

    Kernel values are in single precision, and their errors accumulate in the slopes. The slopes
    are therefore recomputed exactly, and corrected by exact values at the rows that changed, until
    they are small.
    """

    def __init__(self, problem: Problem, spread: float) -> None:
        super().__init__(problem, spread, np.float64)
        design = problem.design
        if not design.is_gram:
            assert design.gram is not None
            assert design.coupling is not None
            design = Gram(design.gram, design.coupling)
        self.exact: KernelValues = design.kernel_values
        self.values = self.exact.in_single
        self.image = np.zeros(len(self.dual))
        self.may_read = 0.0

    def times(self, vector: FloatArray) -> FloatArray:
        """Return K times a vector, each value computed once; kept as image of the dual vector."""
        self.image = self._mixed(self.values.times(self.by_output(vector).T))
        return self.image

    def _mixed(self, product: FloatArray) -> FloatArray:
        """Products (n, p) with kernel values, coupled, as one vector."""
        return (self.outputs @ product.T).ravel()

    def run(self, slope: float) -> None:
        """Ascend on sets: half the coordinates with the largest gains, half from earlier sets."""
        self.may_read = READ * len(self.dual) ** 2
        work = self._ascend(slope, _WORK * len(self.dual))
        self.values = self.exact
        self.renew()
        while work > 0 and self.steepest() > slope:
            before, exact = self.dual.copy(), self.image
            self.values = self.exact.in_single
            left = self._ascend(slope, work)
            if left == work:
                return
            work, self.values = left, self.exact
            change = self.dual - before
            self.image = exact + self._moved(np.flatnonzero(change), change)
            self.pull = self.image + curvature(self.dual, self.box) * self.dual - self.targets

    def _ascend(self, slope: float, work: int) -> int:
        """Ascend with the present values; return what is left of the work."""
        places = np.empty(0, dtype=np.intp)
        left = self.steepest()
        while left > slope and work > 0:
            check_time()
            places = self._next_set(places)
            goal = max(_SHARE * left, 0.5 * slope)
            limit = min(_TURNS * len(places), int(self.may_read) // len(places))
            done = self.steps_among(places, self._among(places), goal, limit)
            if len(done.places) == 0:  # steps below rounding move nothing
                break
            self.may_read -= done.steps * len(places)
            change = np.zeros(len(self.dual))
            change[done.places] = done.change
            self.pull = self.pull + self._moved(done.places, change)
            work -= len(np.unique(done.places % self.problem.n_rows))
            left = self.steepest()
        return work

    def _moved(self, places: IntArray, change: FloatArray) -> FloatArray:
        """K times a change of some coordinates."""
        rows = np.unique(places % self.problem.n_rows)
        return self._mixed(self.values.times(self.by_output(change)[:, rows].T, rows))

    def _among(self, places: IntArray) -> AnyArray:
        """K among some coordinates, in single precision."""
        n, coupling = self.problem.n_rows, self.outputs.astype(np.float32)
        if len(coupling) == 1:
            values = self.values.block(places, places)
            values *= coupling[0, 0]
            return np.asarray(values, np.float32)
        rows, where = np.unique(places % n, return_inverse=True)
        values = self.values.block(rows, rows)
        return _greedy.coupled(values, where, coupling, places // n)

    def _next_set(self, before: IntArray) -> IntArray:
        """Coordinates that gain most by growing and by shrinking, the best of those before."""
        grow, shrink = self.gains()
        quarter = min(_SET // 4, -(-len(self.dual) // 4))
        up = np.argpartition(-grow, quarter - 1)[:quarter]
        down = np.argpartition(-shrink, quarter - 1)[:quarter]
        chosen = np.union1d(up, down)
        kept = np.setdiff1d(before, chosen, assume_unique=True)
        room = _SET - len(chosen)
        if len(kept) > room:
            gains = np.maximum(grow, shrink)[kept]
            kept = kept[np.argpartition(-gains, room)[:room]]
        return np.union1d(chosen, kept)

    def result(self) -> WarmStart:
        """Return the dual vectors and offsets; their function is stored in the design."""
        if self.problem.fit_intercept:
            self._balance()
        found = super().result()
        push = self.problem.weight[:, None] * found.dual
        self.problem.design.remember(push, self.spread * self.by_output(self.image).T)
        return found

    def _balance(self) -> None:
        """Take the rounding errors of the sums off the coordinates with most room."""
        room = np.minimum(self.dual - self.box[0], self.box[1] - self.dual)
        for own, spare in zip(self.by_output(self.dual), self.by_output(room), strict=True):
            own[int(np.argmax(spare))] -= fsum(own)
