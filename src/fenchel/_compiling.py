"""What is said while loops are compiled, which happens once on each machine."""

from __future__ import annotations

import sys
from typing import Any

from numba.core import event

_MESSAGE = (
    "fenchel: compiling for this machine, which takes some ten seconds and is kept for the next "
    "time"
)


class Announcement(event.Listener):
    """Says it at the first loop of this library that is compiled, to people only."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        """Look at what is compiled: nothing is where the cache has it."""
        ours = event.data["dispatcher"].py_func.__module__.startswith("fenchel.")
        if ours and not self.said and _people_read():
            self.said = True
            print(_MESSAGE, file=sys.stderr, flush=True)  # noqa: T201  (a program would seem to hang)

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


def announce_compilation() -> None:
    """Say once in a process, in a terminal or a notebook, that loops are being compiled."""
    event.register("numba:compile", Announcement())  # type: ignore[no-untyped-call]  # numba's


def _people_read() -> bool:
    """Whether what is printed is read as it appears."""
    return "ipykernel" in sys.modules or bool(sys.stderr is not None and sys.stderr.isatty())


__all__ = ["Announcement", "announce_compilation"]
