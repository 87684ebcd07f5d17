"""Ctrl-C as a wish to end: the first one is noted, for whoever asks; the second one is raised."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Interrupts come at its end: packages being imported may answer them by other errors."""
    if not _is_told():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def _is_told() -> bool:
    """Whether this thread may say what interrupts do."""
    return threading.current_thread() is threading.main_thread()


_ANSWER = "stopping with the best so far; Ctrl-C again stops at once and keeps nothing"


@dataclass
class Wish:
    """Whether the user wants an end."""

    is_there: bool = False

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take interrupts as wishes meanwhile; only the main thread is told of any."""
        if not _is_told():
            yield
            return
        before = signal.signal(signal.SIGINT, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _note(self, *_: Any) -> None:
        if self.is_there:
            raise KeyboardInterrupt
        self.is_there = True
        sys.stderr.write(f"\nfenchel: {_ANSWER}\n")
