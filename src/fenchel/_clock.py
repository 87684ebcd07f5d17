"""Work that ends in the middle once its time is over."""

from __future__ import annotations

import time
from contextvars import ContextVar
from types import TracebackType

_SPEED = 8e10  # operations a second: what one core does in products of matrices at best

_ends: ContextVar[float] = ContextVar("ends", default=float("inf"))


class OutOfTime(Exception):
    """Raised in the middle of work whose time is over; what it was to find is not there."""


class within:
    """What is done inside raises :class:`OutOfTime` after so many seconds, where it looks.

    Passes over rows and tiles do, in all threads that they are shared by. Of nested ones the
    first end counts. Only for work whose half is of no harm to anybody: there is nothing to undo.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.perf_counter() + seconds

    def __enter__(self) -> None:
        limited = self._end < float("inf")  # nothing to do in most fits, of whose steps each asks
        self._token = _ends.set(min(_ends.get(), self._end)) if limited else None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._token is not None:
            _ends.reset(self._token)


def check_time(operations: float = 0.0) -> None:
    """Raise :class:`OutOfTime` where the time is over, if there is a limit.

    Or where it would be after so many operations of linear algebra that no clock can end.
    """
    if (end := _ends.get()) < float("inf") and time.perf_counter() + operations / _SPEED >= end:
        raise OutOfTime
