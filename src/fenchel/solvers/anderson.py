"""Anderson acceleration of a fixed-point iteration."""

from __future__ import annotations

import numpy as np

from fenchel._compiling import njit
from fenchel._memory import empty
from fenchel._typing import FloatArray

# Evidence is the number of turns of the splitting on its 695 random problems.
_MEMORY = 10  # differences kept; 5 take 4 % more turns, 17 % of the hard ones; 20 save 1.5 %
_RIDGE = 1e-10  # of the trace; 1e-12 and 1e-8 are alike
_WORSE = 10.0  # times the last step is one so long that the extrapolation is taken back: 5 and
# infinity are alike on average, but without it two of 557 fits of a search took 73 and 226 turns
_IDLE, _PLAIN = 50, 20  # steps without progress, and plain steps then; half and twice are alike


class Anderson:
    """Anderson acceleration of z -> z + step(z), from the last few points.

    ``_changes`` are those of steps, ``_moves`` those of points after their plain steps, and
    ``_along`` the products of the last step with the changes.

    Parameters
    ----------
    size : int
        Number of entries of a point.
    carried : int, default=0
        Number of entries after them that are linear in them, such as coordinates: they are
        extrapolated with them.

    References
    ----------
    Walker, Ni (2011), Anderson acceleration for fixed-point iterations. Zhang, O'Donoghue, Boyd
    (2020), Globally convergent type-I Anderson acceleration, for the use with splittings.
    """

    def __init__(self, size: int, carried: int = 0) -> None:
        self._changes, self._moves = empty((_MEMORY, size)), empty((_MEMORY, size + carried))
        self._gram, self._along = np.zeros((_MEMORY, _MEMORY)), np.zeros(_MEMORY)
        self._step = np.zeros(size + carried)
        self._size = size
        self.forget()

    def forget(self) -> None:
        """Restart, after the map has changed."""
        self._least, self._idle = np.inf, 0
        self._drop()

    def _drop(self) -> None:
        self._count = 0
        self._point: FloatArray | None = None
        self._length = np.inf

    def __call__(self, point: FloatArray, step: FloatArray, length: float) -> FloatArray:
        """Return the next point from a point, the step there, and the length of that step.

        If a step is longer than the previous one, the extrapolation has failed and the plain
        step is taken: from the previous point, if the step is much longer. If steps no longer
        become shorter, for example because extrapolation cycles, a number of plain steps are
        taken, which always converge.
        """
        if length < self._least:
            self._least, self._idle = length, 0
        else:
            self._idle += 1
        if self._idle >= _IDLE:
            self._drop()
            if self._idle == _IDLE + _PLAIN:
                self._least, self._idle = length, 0
            return point + step
        if self._point is not None and length > _WORSE * self._length:
            plain = self._point + self._step
            self._drop()
            return plain
        if length > self._length:
            self._drop()
        if self._point is not None:
            self._take(point, step, self._point, self._step)
        self._point, self._step, self._length = point, step, length
        known = min(self._count, _MEMORY)
        gram, following = self._gram[:known, :known], empty(point.shape)
        ridge = _RIDGE * np.trace(gram) * np.eye(known)
        if known and ridge[0, 0] > 0.0:
            mix = np.linalg.solve(gram + ridge, self._along[:known])
            np.dot(mix, self._moves[:known], out=following)
            _follow(point, step, following)
            return following
        return np.add(point, step, out=following)

    def _take(
        self, point: FloatArray, step: FloatArray, before: FloatArray, last: FloatArray
    ) -> None:
        """Remember what has changed since the last call, and products of the step with it.

        Products of changes are differences of those with steps: one pass over what is kept.
        """
        at, size = self._count % _MEMORY, self._size
        change = self._changes[at]
        _compare(point, step, before, last, change, self._moves[at])
        self._count += 1
        known = min(self._count, _MEMORY)
        before = self._along[:known].copy()
        self._along[:known] = self._changes[:known] @ step[:size]
        self._gram[at, :known] = self._along[:known] - before
        self._gram[at, at] = change @ change
        self._gram[:known, at] = self._gram[at, :known]


@njit(cache=True, nogil=True)
def _compare(
    point: FloatArray,
    step: FloatArray,
    before: FloatArray,
    last: FloatArray,
    change: FloatArray,
    move: FloatArray,
) -> None:
    """Changes of a step, and of a point after it, since the step and the point before.

    Loops over views without an offset are the ones that are compiled for several numbers at once.
    """
    size = len(change)
    here, ago, now, then = point[:size], before[:size], step[:size], last[:size]
    moved = move[:size]
    for i in range(size):
        change[i] = now[i] - then[i]
        moved[i] = (here[i] - ago[i]) + change[i]
    here, ago, now, then = point[size:], before[size:], step[size:], last[size:]
    moved = move[size:]
    for i in range(len(moved)):
        moved[i] = (here[i] - ago[i]) + (now[i] - then[i])


@njit(cache=True, nogil=True)
def _follow(point: FloatArray, step: FloatArray, less: FloatArray) -> None:
    """The point after the step, in place of what is to be taken off it."""
    for i in range(len(less)):
        less[i] = (point[i] + step[i]) - less[i]
