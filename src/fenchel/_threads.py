"""What a process has once: threads of linear algebra, none more than pay, and warning filters."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, RLock
from typing import Any

from threadpoolctl import LibController, ThreadpoolController

_SMALL = 1000
_filters = RLock()


@cache
def _libraries() -> list[LibController]:
    """The libraries of linear algebra that are loaded."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set(library: LibController, number: int) -> None:
    """Set the threads of a library, from whatever thread of Python.

    From version 3.8 on, threadpoolctl listens to the first thread that asks, until that gives up
    control or ends, and ignores all others without a word.
    """
    release = getattr(library, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
    library.set_num_threads(number)
    if release is not None:
        release(force=True)


class _OneThread:
    """One thread for the process as long as anybody holds this, then what it was before.

    The libraries know one number for the whole process, so holders in several threads share it:
    the first sets it, the last one sets it back. An interrupt may fall between any two calls of
    Python. So who holds it is a set, changed by single calls in C, and ``settle`` does whatever
    brings the libraries in line with it, from wherever it was left.
    """

    def __init__(self) -> None:
        self.holders: set[object] = set()
        self._lock = Lock()
        self._before: list[tuple[LibController, int]] = []
        self._limited = False

    def settle(self) -> None:
        """Bring the libraries in line with the holders."""
        with self._lock:
            if self.holders and not self._limited:
                if not self._before:
                    self._before = [(each, each.num_threads) for each in _libraries()]
                for library, _ in self._before:
                    _set(library, 1)
                self._limited = True
            elif not self.holders and self._before:
                self._limited = False
                for library, number in self._before:
                    _set(library, number)
                self._before = []

    def renew(self) -> None:
        """Forget holders that are not there in a process that was forked while they were."""
        self._lock = Lock()
        self.holders.clear()
        self.settle()


_one_thread = _OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_thread.renew)


@contextmanager
def threads_that_pay(size: int) -> Iterator[Any]:
    """One thread for matrices with fewer than 1000 rows or columns, else what the user has set.

    Waking threads for small matrices costs several times what they save. May be nested, and
    entered from several threads: sums are then in the same order whatever runs beside them.
    """
    if size >= _SMALL:
        yield
        return
    holder = object()
    try:
        _one_thread.holders.add(holder)
        _one_thread.settle()
        yield
    finally:
        try:
            _one_thread.holders.discard(holder)
            _one_thread.settle()
        except BaseException:  # an interrupt in the middle of it
            _one_thread.settle()
            raise


@contextmanager
def without_warnings(category: type[Warning]) -> Iterator[None]:
    """Warnings of a kind are not shown, and one thread at a time changes what is shown.

    Two at once would set back the filters of each other, and in the end those of neither.
    """
    with _filters, warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield
