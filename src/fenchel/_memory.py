"""Memory of large arrays that a solver lets go of, for the arrays that it makes next.

The system gives and takes memory of this size page by page, each written with zeros first: of a
fit of 10⁶ rows and five levels that took a seventh of the time of two threads, of the fits of 500
curves along a path a quarter.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from math import prod
from threading import Lock
from types import TracebackType

import numpy as np

from fenchel._typing import FloatArray

_LEAST = 2**14  # numbers, 128 KiB: the process keeps the memory of smaller arrays by itself
_MOST = 64  # arrays of which those that are free are kept: a solver has some twenty at a time

_kept: ContextVar[Memory | None] = ContextVar("kept", default=None)


def _holders(arrays: list[FloatArray], k: int) -> int:
    """How many hold an array of a list, this call among them."""
    return sys.getrefcount(arrays[k])


_FREE = _holders([np.empty(0)], 0)


class Memory:
    """Arrays that own memory, each of which is free while nobody has a view of it."""

    def __init__(self) -> None:
        self._owners: dict[int, list[FloatArray]] = {}  # by their sizes
        self._lock = Lock()

    def __len__(self) -> int:
        return sum(map(len, self._owners.values()))

    def view(self, size: int) -> FloatArray:
        """Of memory that is free, else of new memory."""
        with self._lock:
            mine = self._owners.setdefault(size, [])
            for k in range(len(mine)):
                if _holders(mine, k) == _FREE:
                    return mine[k].view()
            if len(self) >= _MOST:  # of sizes that did not come back
                self._let_go()
                mine = self._owners.setdefault(size, [])
            mine.append(np.empty(size))
            return mine[-1].view()

    def _let_go(self) -> None:
        """Leave only what somebody holds."""
        for size, owners in list(self._owners.items()):
            for k in reversed(range(len(owners))):
                if _holders(owners, k) == _FREE:
                    del owners[k]
            if not owners:
                del self._owners[size]


class reused_memory:
    """Within it, arrays of :func:`empty` may lie where others did that nobody holds any more.

    Of nested ones the outermost counts. At its end memory goes back to the system, unless it is
    ``memory`` that somebody keeps for the next time.
    """

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory = memory

    def __enter__(self) -> None:
        used = Memory() if self._memory is None else self._memory
        self._token = _kept.set(used) if _kept.get() is None else None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._token is not None:
            _kept.reset(self._token)


def empty(shape: tuple[int, ...]) -> FloatArray:
    """Return an array of unknown numbers, as ``np.empty`` does."""
    size, kept = prod(shape), _kept.get()
    if kept is None or size < _LEAST:
        return np.empty(shape)
    return kept.view(size).reshape(shape)
