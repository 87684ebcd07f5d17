"""Greedy ascent where kernel values are computed: few rows at a time."""

from __future__ import annotations

from math import fsum

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.design import KernelValues
from fenchel.problem import Problem
from fenchel.solvers.ascent import Ascent
from fenchel.solvers.base import WarmStart

_SET = 1024
_SHARE = 0.1  # of the slope among all rows that steps within a set leave
_TURNS = 20  # steps for each row of a set
_WORK = 10  # kernel values that sets may take, for each value of the matrix


class OnSets(Ascent):
    """In sets of rows, with slopes of all rows.

    First with kernel values in single precision, whose errors add up in the slopes; then with
    exact slopes, until these are small.
    """

    def __init__(self, problem: Problem, spread: float) -> None:
        super().__init__(problem, spread, np.float64)
        assert problem.design.kernel_values is not None
        self.exact: KernelValues = problem.design.kernel_values
        self.values = self.exact.in_single
        self.image = np.zeros(len(self.dual))

    def times(self, vector: FloatArray) -> FloatArray:
        """K times a vector, each value once; kept as the image of the dual vector."""
        self.image = self.scale * self.values.times(vector[:, None])[:, 0]
        return self.image

    def run(self, slope: float) -> None:
        """Half of each set are the rows that gain most, half those of the sets before."""
        work = self._ascend(slope, _WORK * len(self.dual))
        self.values = self.exact
        self.start(self.dual / self.unit)
        self._ascend(slope, work)

    def _ascend(self, slope: float, work: int) -> int:
        """Ascend with the present values; return what is left of the work."""
        rows = np.empty(0, dtype=np.intp)
        left, self.offset = self.steepest()
        while left > slope and work > 0:
            rows = self._next_set(rows)
            gram = (self.scale * self.values.block(rows, rows)).astype(np.float32)
            goal = max(_SHARE * left, 0.5 * slope)
            done = self.steps_among(rows, gram, goal, _TURNS * len(rows))
            if done.steps == 0:
                break
            moved = self.scale * self.values.times(done.change[:, None], done.rows)[:, 0]
            self.image = self.image + moved
            self.pull += moved
            work -= len(rows)
            left, self.offset = self.steepest()
        return work

    def _next_set(self, before: IntArray) -> IntArray:
        """Rows that gain most by growing and by shrinking, and the best of those before."""
        grow, shrink = self.edges()
        quarter = min(_SET // 4, len(self.dual) // 4)
        up = np.argpartition(grow, quarter)[:quarter]
        down = np.argpartition(-shrink, quarter)[:quarter]
        chosen = np.union1d(up, down)
        kept = np.setdiff1d(before, chosen, assume_unique=True)
        room = _SET - len(chosen)
        if len(kept) > room:
            gains = self.gains()[kept]
            kept = kept[np.argpartition(-gains, room)[:room]]
        return np.union1d(chosen, kept)

    def result(self) -> WarmStart:
        """The dual vector and the offset; the design takes note of what function it is."""
        if self.problem.fit_intercept:
            self._balance()
        found = super().result()
        push = self.problem.weight[:, None] * found.dual
        self.problem.design.remember(push, self.spread * self.image[:, None])
        return found

    def _balance(self) -> None:
        """Take the rounding errors of the sum off the coordinate with most room."""
        room = np.minimum(self.dual - self.box[0], self.box[1] - self.dual)
        self.dual[int(np.argmax(room))] -= fsum(self.dual)
