"""What a fit is doing: a line that moves on a terminal, a line now and then anywhere else."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

Show = Callable[[str, int, int | None], None]
"""Is told what is being done, and how many parts of it of how many, None if that is not known."""

_SILENT = 20.0  # seconds before the first line
_SLOWER = 1.5


def _now() -> float:
    return time.monotonic()


@dataclass
class Clock:
    """How long it has taken, and how long it may take."""

    max_time: float | None = None
    started: float = field(default_factory=_now)
    begun: float = field(default_factory=_now)
    """When the present count was, which begins anew where it falls."""
    counted: int = 0

    def left(self, done: int, total: int | None) -> str:
        """Words for the time that is left, empty where it is not known."""
        now = _now()
        if done < self.counted:
            self.begun = now
        self.counted = done
        if total is not None and 0 < done < total:
            return f"about {_time((now - self.begun) / done * (total - done))} left"
        elapsed = now - self.started
        if total is None and self.max_time is not None and elapsed < self.max_time:
            return f"at most {_time(self.max_time - elapsed)} left"
        return ""

    @property
    def elapsed(self) -> str:
        """Words for the time that has gone by."""
        return _time(_now() - self.started)


def _time(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole / 3600:.1f} h"


def _share(done: int, total: int | None) -> str:
    return "" if total is None else f", {100.0 * done / total:.0f} %"


@contextlib.contextmanager
def shown(*, hidden: bool, max_time: float | None = None, hint: str = "") -> Iterator[Show]:
    """What to tell of progress, on standard error; a hint comes where it takes long."""
    console = Console(stderr=True)
    clock = Clock(max_time)
    if hidden:
        yield lambda what, done, total: None
    elif console.is_terminal:
        with _on_a_terminal(console, clock, hint) as show:
            yield show
    else:
        yield _Lines(clock, hint).show


@contextlib.contextmanager
def _on_a_terminal(console: Console, clock: Clock, hint: str) -> Iterator[Show]:
    columns = TextColumn("{task.description}"), BarColumn(bar_width=20), TimeElapsedColumn()
    with Progress(
        *columns, TextColumn("{task.fields[left]}"), console=console, transient=True
    ) as bar:
        task = bar.add_task("reading", total=None, left="")
        hints = [hint] * bool(hint)

        def show(what: str, done: int, total: int | None) -> None:
            while hints and _now() - clock.started > _SILENT:
                console.print(f"fenchel: {hints.pop()}", markup=False, highlight=False)
            bar.update(
                task,
                description=what + _share(done, total),
                completed=done,
                total=total,
                left=clock.left(done, total),
            )

        yield show


@dataclass
class _Lines:
    """A line on what is being done, after twenty seconds, and then after ever longer times."""

    clock: Clock
    hint: str = ""
    pause: float = _SILENT
    last: float = field(default_factory=_now)

    def show(self, what: str, done: int, total: int | None) -> None:
        left = self.clock.left(done, total)
        if _now() - self.last < self.pause:
            return
        self.last, self.pause = _now(), _SLOWER * self.pause
        after = f" after {self.clock.elapsed}" + (f", {left}" if left else "")
        sys.stderr.write(f"fenchel: {what}{_share(done, total)}{after}\n")
        if self.hint:
            sys.stderr.write(f"fenchel: {self.hint}\n")
            self.hint = ""
        sys.stderr.flush()
