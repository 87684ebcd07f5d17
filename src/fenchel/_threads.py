"""What a process has once: threads, none more than pay, and warning filters.

The user says how many by what linear algebra may use: ``OMP_NUM_THREADS``,
``threadpoolctl.threadpool_limits``, and joblib, which leaves its workers their share.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from itertools import count
from threading import RLock, get_ident
from typing import TypeVar

import numpy as np
from threadpoolctl import LibController, ThreadpoolController

from fenchel._clock import check_time
from fenchel._typing import FloatArray

_SMALL = 1000
_Part = TypeVar("_Part")
_Result = TypeVar("_Result")
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
        self.holders: set[int] = set()  # threads of Python
        self._lock = RLock()  # a holder may be deleted, and let go, in the middle of it
        self._before: list[tuple[LibController, int]] = []
        self._limited = False

    def add(self, holder: int) -> None:
        """Limit the libraries: at once where they are, as within another holder."""
        self.holders.add(holder)
        if not self._limited:
            self.settle()

    def discard(self, holder: int) -> None:
        """Let go of the libraries, if nobody else holds them."""
        self.holders.discard(holder)
        if not self.holders:
            self.settle()

    def settle(self) -> None:
        """Bring the libraries in line with the holders."""
        with self._lock:
            if self.holders and not self._limited:
                if not self._before:  # those with one thread stay as they are
                    now = [(each, each.num_threads) for each in _libraries()]
                    self._before = [each for each in now if each[1] != 1]
                for library, _ in self._before:
                    _set(library, 1)
                self._limited = True
            elif not self.holders and (self._limited or self._before):
                self._limited = False
                if self.holders:  # one that came in between, and may have been told it is limited
                    self._limited = True
                    return
                for library, number in self._before:
                    _set(library, number)
                self._before = []

    @property
    def asked(self) -> int:
        """The number of threads that the user allows, whoever holds this."""
        before = [number for _, number in self._before]
        return max(before or [each.num_threads for each in _libraries()], default=1)

    def renew(self) -> None:
        """Forget holders that are not there in a process that was forked while they were."""
        self._lock = RLock()
        self.holders.clear()
        self.settle()


_one_thread = _OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_thread.renew)


def _held(holder: int) -> Generator[None]:
    """Hold one thread until this is closed or deleted."""
    try:
        _one_thread.add(holder)
        yield
    finally:
        try:
            _one_thread.discard(holder)
        except BaseException:  # an interrupt in the middle of it
            _one_thread.holders.discard(holder)
            _one_thread.settle()
            raise


class threads_that_pay:
    """One thread for matrices with at most 1000 rows or columns, else what the user has set.

    Waking threads for small matrices costs several times what they save. May be nested, where
    inner ones do nothing, and entered from several threads: sums are then in the same order
    whatever runs beside them. An interrupt may fall between the call of ``__exit__`` and its first
    line: then what is held is let go as the generator is deleted. A method ``__del__`` would do
    the same, but it is called each time, and an interrupt in it is lost.
    """

    def __init__(self, size: int) -> None:
        self._holds = size <= _SMALL

    def __enter__(self) -> None:
        if self._holds and (here := get_ident()) not in _one_thread.holders:
            self._hold = _held(here)
            next(self._hold)
        else:
            self._holds = False

    def __exit__(self, *error: object) -> None:
        if self._holds:
            self._hold.close()


def dot(one: FloatArray, other: FloatArray) -> float:
    """Sum of the products of two arrays' numbers, from one thread.

    Linear algebra would wake others for more than ten thousand numbers: they save little, and go
    on waiting for work at full speed for a tenth of a second, in the way of passes over rows.
    """
    with threads_that_pay(0):
        return float(np.vdot(one, other))


def threads_allowed() -> int:
    """How many the user allows, for what is no linear algebra."""
    return _one_thread.asked


class _Pool:
    """Threads that wait for work, for one pass at a time: those beside it go without."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Forget threads that are not there in a process that was forked."""
        self._owner: dict[str, object] = {}
        self._executor: ThreadPoolExecutor | None = None
        self._size = 0

    def enter(self, holder: object) -> bool:
        """Whether the threads are now those of a holder: a single call in C, as in others here."""
        return self._owner.setdefault("pass", holder) is holder

    def leave(self, holder: object) -> None:
        """Leave the threads to others, if they are those of this holder."""
        if self._owner.get("pass") is holder:
            self._owner.pop("pass", None)

    def run(self, work: Callable[[], None], helpers: int, end: Callable[[], object]) -> None:
        """Do work here and in some threads at once; ``end`` makes it end early everywhere."""
        if self._executor is None or self._size < helpers:
            self._executor, self._size = ThreadPoolExecutor(helpers, "fenchel"), helpers
        others: list[Future[None]] = []
        try:
            while len(others) < helpers:
                others.append(self._executor.submit(copy_context().run, work))
            work()
        finally:  # an interrupt comes to the thread of the caller
            end()
            wait(others)


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.renew)


def in_threads(task: Callable[[_Part], _Result], parts: Sequence[_Part]) -> list[_Result]:
    """Results of a task for each part, in their order, from as many threads as the user allows.

    Linear algebra has one thread meanwhile, however many there are, so that results are the same
    bit for bit. A task should run for milliseconds, most of them in compiled code. Its products of
    arrays are ``np.dot``: ``@`` holds Python's lock, so that other threads wait, where its result
    has less than 500 numbers (numpy 2.4). Of several that fail, the error of the first part is
    raised. Where the time is over, no further part is begun, see :mod:`fenchel._clock`.
    """
    if len(parts) < 2:
        return [task(part) for part in parts]

    def in_time(part: _Part) -> _Result:
        check_time()
        return task(part)

    with threads_that_pay(0):
        helpers, holder = min(_one_thread.asked, len(parts)) - 1, object()
        try:
            if helpers < 1 or not _pool.enter(holder):
                return [in_time(part) for part in parts]
            return _shared(in_time, parts, helpers)
        finally:
            try:
                _pool.leave(holder)
            except BaseException:  # an interrupt in the middle of it
                _pool.leave(holder)
                raise


def _shared(
    task: Callable[[_Part], _Result], parts: Sequence[_Part], helpers: int
) -> list[_Result]:
    """Results of parts that each thread takes as it comes to them."""
    results: dict[int, _Result] = {}
    errors: dict[int, Exception] = {}
    numbers = count()
    ended: list[bool] = []

    def work() -> None:
        while not (ended or errors) and (number := next(numbers)) < len(parts):
            try:
                results[number] = task(parts[number])
            except Exception as error:
                errors[number] = error

    _pool.run(work, helpers, lambda: ended.append(True))
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(parts))]


@contextmanager
def without_warnings(category: type[Warning]) -> Iterator[None]:
    """Warnings of a kind are not shown, and one thread at a time changes what is shown.

    Two at once would set back the filters of each other, and in the end those of neither.
    """
    with _filters, warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield
