"""The loop around every algorithm: keeps the best certified point and decides when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from fenchel._clock import OutOfTime, within
from fenchel.certificate import Callback, Certificate, Progress, Status

_PAUSE = 1.0  # seconds between two lines on rows that are read
_NO_TIME = "the next step would take longer than max_time leaves; increase max_time or tol"
_ROUNDING = 1e-12  # of objectives, in their size: dual points are feasible to that share


class Judged(Protocol):
    """An object with a certificate."""

    @property
    def certificate(self) -> Certificate:
        """The certificate of the object."""
        ...


Found = TypeVar("Found", bound=Judged)
Result = TypeVar("Result")


class Iterate(NamedTuple, Generic[Found]):
    """A point that an algorithm yields, with the number of iterations.

    Examples
    --------
    >>> from fenchel.solvers import Iterate
    >>> from fenchel.testing import small_problems
    >>> problem = small_problems()[0]
    >>> iterate = Iterate(0, problem.certify(0.0 * problem.targets))
    >>> iterate.point.certificate.relative_gap > 0.0
    True
    """

    n_iter: int
    """How many of its steps were made."""
    point: Found
    """A certified point."""


@dataclass
class Loop(Generic[Found]):
    """Loop that runs an algorithm until the relative gap is at most ``tol``.

    An algorithm is a generator of iterates, one for each certificate. The loop keeps the best
    point and the history and calls the callback. It stops if the gap is small enough, if the
    callback returns a truthy value, or if the generator ends. ``reason`` says why it ended early.
    The generator may set it, and a callback sets it.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    callback : callable or None
        Called with the progress of the best point; a truthy return value stops the loop.
    started : float, optional
        Start time of the history; now by default.

    Examples
    --------
    >>> from fenchel.solvers import Iterate, Loop
    >>> from fenchel.testing import small_problems
    >>> problem = small_problems()[0]
    >>> loop = Loop(tol=1e-6)
    >>> best = loop.run(Iterate(k, problem.certify(k * problem.targets)) for k in range(2))
    >>> len(loop.history), loop.reached
    (2, False)
    >>> loop.status("take more steps").message
    'stopped at a relative gap of 3.6e-01 > tol=1e-06 after 1 steps: take more steps'
    """

    tol: float
    callback: Callback | None = None
    started: float = field(default_factory=time.perf_counter)
    history: list[Progress] = field(default_factory=list)
    best: Found | None = None
    count: int = 0
    stopped: bool = False
    reason: str | None = None

    def run(self, iterates: Iterator[Iterate[Found]]) -> Found:
        """Process iterates until one of them ends the loop; return the best point."""
        try:
            for iterate in iterates:
                if self.take(*iterate):
                    break
        finally:  # Python drops an interrupt in a generator that it closes by itself
            if isinstance(iterates, Generator):
                iterates.close()
        assert self.best is not None
        return self.best

    def in_time(self, work: Callable[[], Result]) -> Result | None:
        """Return the result of ``work``, or None, which ends the loop, if time runs out before.

        There is no time limit before the first point. Nothing may depend on the state that an
        interrupted ``work`` leaves.
        """
        if self.best is None:
            return work()
        try:
            with within(self.seconds_left):
                return work()
        except OutOfTime:
            self.tell(self.count, self.best.certificate)
            self.stopped, self.reason = True, self.reason or _NO_TIME
            return None

    def take(self, count: int, point: Found) -> bool:
        """Keep a point if it is the best so far, and call the callback; return whether to stop."""
        self.count = count
        if self.best is None or self._gap(point) < self._gap(self.best):
            self.best = point
        self.tell(count, self.best.certificate)
        return self.stopped or self.reached

    def tell(self, count: int, certificate: Certificate) -> None:
        """Add a line to the history, and call the callback unless it has asked to stop before."""
        progress = Progress(
            iteration=count,
            seconds=time.perf_counter() - self.started,
            primal=certificate.primal,
            dual=certificate.dual,
            relative_gap=certificate.relative_gap,
        )
        self.history.append(progress)
        answer = None if self.callback is None or self.stopped else self.callback(progress)
        if answer:
            self.stopped, self.reason = True, reason_of(answer)

    @property
    def gap(self) -> float:
        """Relative gap of the best point; infinite before the first point."""
        return float("inf") if self.best is None else self._gap(self.best)

    @property
    def seconds_left(self) -> float:
        """Time left, for solvers that cannot be interrupted; infinite without a limit."""
        return time_left(self.callback)

    @property
    def reached(self) -> bool:
        """Whether the gap of the best point is at most ``tol``."""
        return self.gap <= self.tol

    def status(self, remedy: str, unit: str = "steps", gap: float | None = None) -> Status:
        """Return how the loop ended; ``remedy`` says what to do if the gap is above ``tol``."""
        gap = self.gap if gap is None else gap
        if gap <= self.tol:
            return Status(True, f"converged to a relative gap of {gap:.1e} in {self.count} {unit}")
        return Status(
            False,
            f"stopped at a relative gap of {gap:.1e} > tol={self.tol:g} after {self.count} "
            f"{unit}: {self.reason or remedy}",
        )

    @staticmethod
    def _gap(point: Found) -> float:
        return credible_gap(point.certificate)


@dataclass
class Watch:
    """Callback of an estimator: prints, calls the user's callback and checks the time limit.

    Once it has asked to stop, it continues to ask. If several problems are solved one after the
    other, the later ones therefore end at their first certificate. A user's callback with the
    attribute ``asked_again`` may end only the learning of parameters: it is called again during
    the fit.

    Parameters
    ----------
    name : str
        Name of the estimator.
    verbose : bool
        Whether to print a line for each certificate.
    callback : callable or None
        The callback of the user.
    max_time : float or None
        Seconds from now after which to stop.
    """

    name: str
    verbose: bool = False
    callback: Callback | None = None
    max_time: float | None = None
    started: float = field(default_factory=time.perf_counter)
    reason: str | None = None
    _said: float = field(default_factory=time.perf_counter)
    _begun: float = field(default_factory=time.perf_counter)
    _done: int = 0

    def __call__(self, progress: Progress) -> str | None:
        """Process a certificate; return the reason to stop, or None."""
        if self.verbose:
            print(f"[{self.name}] {_said(progress)}")  # noqa: T201  (asked for)
        if self.reason is None and self.callback is not None:
            answer = self.callback(progress)
            if answer and progress.is_learning and getattr(self.callback, "asked_again", False):
                return reason_of(answer)
            self.reason = reason_of(answer) if answer else None
        if self.reason is None and self.seconds_left() <= 0.0:
            self.reason = f"max_time={self.max_time:g} s were reached; increase max_time or tol"
        return self.reason

    def passes(self, what: str, done: int, total: int | None) -> None:
        """Report rows that have been processed: a line per second, and one at the end."""
        now, last = time.perf_counter(), done == total
        if done <= self._done:
            self._begun = now  # another pass, of which one part is done
        self._done = done
        if self.verbose and (last or now - self._said >= _PAUSE):
            self._said, spent = now, now - self._begun
            share = "" if total is None else f" of {total}, {100.0 * done / total:.0f} %"
            left = (
                ""
                if total is None or last
                else f", about {spent / done * (total - done):.0f} s left"
            )
            line = f"[{self.name}] {what}: row {done}{share}, after {spent:.2f} s{left}"
            print(line)  # noqa: T201  (asked for)
        if (told := getattr(self.callback, "passes", None)) is not None:
            told(what, done, total)

    def seconds_left(self) -> float:
        """Seconds left until ``max_time``."""
        if self.max_time is None:
            return float("inf")
        return max(self.started + self.max_time - time.perf_counter(), 0.0)


def _said(progress: Progress) -> str:
    after = f"after {progress.seconds:.2f} s"
    if progress.is_learning:
        loss = f"held-out loss {progress.primal:.3f}"
        return f"learning, evaluation {progress.iteration}: {loss} {after}"
    return f"step {progress.iteration}: relative gap {progress.relative_gap:.2e} {after}"


def time_left(callback: Callback | None) -> float:
    """Return the seconds left by a callback; infinite if it has no limit."""
    left = getattr(callback, "seconds_left", None)
    return float("inf") if left is None else float(left())


@dataclass(frozen=True)
class InTime:
    """Callback that reports nothing, and stops at the time limit of another callback.

    Examples
    --------
    >>> from fenchel.solvers import Newton
    >>> from fenchel.solvers.loop import InTime, Watch
    >>> from fenchel.testing import small_problems
    >>> limited = InTime(Watch("a fit", max_time=60.0))
    >>> Newton().solve(small_problems()[0], None, limited).status.converged
    True
    """

    watch: Callback | None

    def __call__(self, progress: Progress) -> bool:
        return self.seconds_left() <= 0.0

    def seconds_left(self) -> float:
        """Seconds left by the other callback."""
        return time_left(self.watch)


def reason_of(answer: object) -> str:
    """Return the reason of a callback for stopping: its return value, if that is a string."""
    return answer if isinstance(answer, str) else "the callback returned a true value"


def credible_gap(certificate: Certificate) -> float:
    """Return the relative gap, or infinity if it is not valid.

    By weak duality gaps are non-negative. A negative gap is an error of the objectives. Its
    absolute value is returned if rounding and the violation of the constraints explain it. If it
    is more negative, or NaN, an objective or a constraint is wrong.
    """
    gap, unit = certificate.gap, certificate.unit
    size = abs(certificate.primal) + abs(certificate.dual) + unit
    if gap >= 0.0:
        return certificate.relative_gap
    if -gap <= (_ROUNDING + certificate.feasibility) * size:
        return -gap / unit if unit > 0.0 else 0.0
    return float("inf")
