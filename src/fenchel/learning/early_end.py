"""Learning that ends before it has converged."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from fenchel.certificate import Callback, Progress
from fenchel.solvers.loop import reason_of, time_left

HALF = "half of max_time was used"


@dataclass
class EarlyEnd:
    """Whether the callback of an estimator asks learning to end; it may use half of the time.

    Examples
    --------
    >>> from fenchel.learning import EarlyEnd
    >>> end = EarlyEnd(lambda progress: "good enough" if progress.primal < 0.5 else None)
    >>> end(0.9), end(0.4), end.reason
    (False, True, 'good enough')
    """

    watch: Callback | None
    reason: str = ""
    """The reason, if it ended."""
    started: float = field(default_factory=time.perf_counter)
    n_calls: int = 0

    def __call__(self, value: float) -> bool:
        """Pass the criterion to the callback."""
        self.n_calls += 1
        if self.watch is not None:
            spent = time.perf_counter() - self.started
            progress = Progress(self.n_calls, spent, value, np.nan, np.nan)
            left = time_left(self.watch)
            answer = self.watch(progress)
            if answer:
                self.reason = reason_of(answer)
            elif left < spent:
                self.reason = HALF
        return self.reached

    def seconds_left(self) -> float:
        """Seconds until half of the time is used."""
        spent = time.perf_counter() - self.started
        return max(0.5 * (time_left(self.watch) - spent), 0.0)

    @property
    def reached(self) -> bool:
        """Whether the callback has asked to end."""
        return self.reason != ""
