"""Progress lines of a search or a calibration."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

_LINES = 20  # at most so many, however many items there are

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Told:
    """Print, if verbose, how many of the models of an estimator of this name are fitted."""

    name: str
    verbose: bool = False

    def __call__(self, items: Sequence[_Item], what: str) -> Iterator[_Item]:
        """Yield the items, and print a line after each one, or after several if there are many."""
        started, number = time.perf_counter(), len(items)
        every = max(1, number // _LINES)
        for k, item in enumerate(items, 1):
            yield item
            if self.verbose and (k % every == 0 or k == number):
                seconds = time.perf_counter() - started
                left = f", about {seconds / k * (number - k):.0f} s left" if k < number else ""
                line = f"[{self.name}] {what} {k} of {number} after {seconds:.2f} s{left}"
                print(line)  # noqa: T201  (asked for)


SILENT = Told("")
