"""Interface to a cluster: tasks without side effects, and errors if no result can come."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any

PATIENCE = 60.0
"""Seconds without a worker after which a fit stops, as lost workers may be started again."""
_LOOK = 1.0  # seconds between two looks at the workers
_FAN_IN = 8  # sums that one task adds up


def part_of_dask(name: str) -> Any:
    """Return a module of Dask, or raise an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError("fenchel.dask needs dask: pip install 'fenchel[dask]'") from error


class Cluster:
    """The workers of a client.

    All computations are tasks without side effects, of other tasks and of arguments that the
    scheduler keeps. The results of a lost worker are therefore computed again by others, and
    nothing is stored on a worker that could not be recomputed.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        if not _apart(self._is_alive).result():
            raise RuntimeError(
                "client must have a worker that runs, and its cluster has none: "
                "client.wait_for_workers(1) waits for one"
            )

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a task; arguments that are futures are replaced by results."""
        with part_of_dask("dask").config.set(
            {"distributed.admin.large-graph-warning-threshold": "1GB"}
        ):
            return self.client.submit(function, *arguments, pure=False)

    def held(self, value: Any) -> Any:
        """Return the future of a value that several tasks use, kept by the scheduler."""
        return self.submit(_same, value)

    def gathered(self, futures: Sequence[Any]) -> list[Any]:
        """Return the results of futures.

        Errors of tasks are raised unchanged. A RuntimeError is raised if the cluster has no
        workers or no scheduler for a minute, or if a task repeatedly kills its worker.
        """
        distributed = part_of_dask("distributed")
        gone = part_of_dask("distributed.comm").CommClosedError, CancelledError
        lost = (distributed.KilledWorker, *gone)
        found = _apart(lambda: self.client.gather(list(futures)))
        try:
            self._watch(found)
            return list(found.result())
        except lost as error:
            raise RuntimeError(
                "the cluster of client has lost what the fit needs, and cannot compute it again; "
                f"smaller partitions take less memory of its workers ({error})"
            ) from error

    def _watch(self, found: Future[Any]) -> None:
        """Wait for a result as long as there are workers that may return it."""
        seen = time.monotonic()
        alive: Future[Any] | None = None
        while not _is_done(found, _LOOK):
            if alive is not None and alive.done():
                seen = time.monotonic() if alive.exception() is None and alive.result() else seen
                alive = None
            alive = _apart(self._is_alive) if alive is None else alive
            if time.monotonic() - seen > PATIENCE:
                raise RuntimeError(
                    f"the cluster of client has had no worker that runs for {PATIENCE:g} seconds, "
                    "and the fit has ended without a result"
                )

    def _is_alive(self) -> bool:
        """Whether there is a worker that accepts tasks, as far as the scheduler knows."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return any(worker.get("status", "running") == "running" for worker in workers)

    def summed(self, futures: Sequence[Any]) -> Any:
        """The sum of arrays, computed on the workers and always in the same order."""
        left = list(futures)
        while len(left) > _FAN_IN:
            groups = [left[k : k + _FAN_IN] for k in range(0, len(left), _FAN_IN)]
            left = [self.submit(_total, group) for group in groups]
        return _total(self.gathered(left))


def _is_done(found: Future[Any], seconds: float) -> bool:
    """Whether a future is done, or becomes so within these seconds."""
    done = threading.Event()
    found.add_done_callback(lambda _: done.set())
    return done.wait(seconds)


def _apart(task: Callable[[], Any]) -> Future[Any]:
    """Run a task in a thread, so that nothing waits for it if it hangs."""
    found: Future[Any] = Future()

    def run() -> None:
        try:
            found.set_result(task())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, daemon=True, name="fenchel-dask").start()
    return found


def _same(value: Any) -> Any:
    return value


def _total(values: Sequence[Any]) -> Any:
    first, *others = values
    total = first.copy()
    for other in others:
        total += other
    return total
