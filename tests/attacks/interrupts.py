"""Interrupts, callbacks and limits on time at random moments of the fits of every estimator.

After an interrupt the estimator must be, bit for bit, the one before or the one after; nothing
but KeyboardInterrupt may surface; and linear algebra has the threads it had. A fit that was
stopped must have a certificate that is true of its predictions.
"""

from __future__ import annotations

import copy
import functools
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

from attacks import Outcome
from attacks._objectives import objective
from ecosystem.registry import CASES, Case, X
from fenchel.certificate import Progress

IN_CI, IN_FULL = 32, 800  # three eighths of them are callbacks and limits
_STOPS = 3
_SLACK = 1e-9  # of the unit, for rounding
_THREADS = 2  # of linear algebra, so that one thread would show
STOPPABLE = [case for case in CASES if "max_time" in case.estimator.get_params(deep=False)]


class Run(NamedTuple):
    """Something that changes an estimator, with the state before and after."""

    start: Any
    act: Callable[[Any], Any]
    before: Any
    after: Any
    seconds: float


def state(value: Any) -> Any:
    """All that an object is, as something that can be compared, without times."""
    if isinstance(value, Progress):
        return tuple(value._replace(seconds=0.0))
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (list, tuple, np.ndarray)):
        return type(value).__name__, [state(each) for each in value]
    if isinstance(value, dict):
        own = dict(value)
        if "_rows" in own:  # a buffer of an online learner, of which the rest means nothing
            own["_rows"] = own["_rows"][: len(own["_dual"])]
        return {str(key): state(each) for key, each in own.items()}
    if isinstance(value, functools.partial):
        return state((value.func, value.args))
    if isinstance(value, (FunctionType, MethodType, type)):
        return value.__qualname__
    if hasattr(value, "__dict__"):
        return type(value).__name__, state(vars(value))
    return repr(value)


def differing(one: Any, other: Any) -> list[str]:
    """Names of the attributes that differ between two states of estimators."""
    own, others = one[1], other[1]
    return sorted(name for name in own.keys() | others if own.get(name) != others.get(name))


def arguments(case: Case, again: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the estimator is fitted to, and what it is fitted to again."""
    shrink = 0.9 if again else 1.0
    targets = case.y
    if targets is not None and again:
        targets = targets[::-1].copy()
    return (shrink * X, targets), case.extra


def run_of(case: Case, how: str) -> Run:
    """The first fit, the second, or more rows for a learner that is fitted."""
    start, (data, extra) = case.fresh(), arguments(case, again=False)
    if how != "fit":
        start.fit(*data, **extra)
        data, extra = arguments(case, again=True)

    def act(model: Any) -> Any:
        return getattr(model, "partial_fit" if how == "partial_fit" else "fit")(*data, **extra)

    act(copy.deepcopy(start))  # compiled, and read from files, before anything is timed
    model, began = copy.deepcopy(start), time.perf_counter()
    act(model)
    seconds = time.perf_counter() - began
    # what is interrupted is a copy, and copies of some leave the rows of the fit behind
    return Run(start, act, state(copy.deepcopy(start)), state(model), seconds)


def threads() -> tuple[int, ...]:
    """Threads of all libraries of linear algebra."""
    return tuple(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


@contextmanager
def alarms() -> Iterator[list[str]]:
    """Timers interrupt as Ctrl-C does; what Python could not raise is in the list."""
    lost: list[str] = []
    hook, handler = sys.unraisablehook, signal.getsignal(signal.SIGALRM)
    sys.unraisablehook = lambda event: lost.append(f"{event.exc_value!r} in {event.object!r}")
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        yield lost
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
        sys.unraisablehook = hook


def interrupted(run: Run, delay: float) -> tuple[str, str | None]:
    """How a run with an interrupt after some seconds ended, and what is wrong with that."""
    model, before, filters = copy.deepcopy(run.start), threads(), list(warnings.filters)
    surfaced = False
    with alarms() as lost:
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, max(delay, 1e-5))
                run.act(model)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
        except KeyboardInterrupt:
            surfaced = True
        except BaseException as error:
            return "failed", f"{type(error).__name__} surfaced: {error}"
        if lost:
            return "failed", f"the interrupt was lost: {lost}"
    now = state(model)
    if threads() != before:
        return "failed", f"linear algebra has {threads()} threads, and had {before}"
    if warnings.filters != filters:
        return "failed", "the filters of warnings have changed"
    if now == run.after:
        return ("interrupted, fitted" if surfaced else "fitted before the interrupt"), None
    if now == run.before and surfaced:
        return "interrupted, as before", None
    return "failed", f"neither before nor after: {differing(now, run.after)}"


def stopped(case: Case, share: float, limit: int) -> tuple[str, str | None]:
    """How a fit with a callback, or a limit on its time if that is 0, ended, and what is wrong."""
    (data, extra), tol = arguments(case, again=False), 1e-7
    full = case.fresh().set_params(tol=tol)
    began = time.perf_counter()
    full.fit(*data, **extra)
    seconds = time.perf_counter() - began
    seen: list[Progress] = []

    def enough(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) >= limit

    how = {"callback": enough} if limit else {"max_time": max(share * seconds, 1e-9)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = case.fresh().set_params(tol=tol, **how).fit(*data, **extra)
    warned = any(issubclass(each.category, ConvergenceWarning) for each in caught)
    found, best, status = model.certificate_, full.certificate_, model.status_
    slack = _SLACK * found.unit
    judged = objective(model, data[0], data[1])
    if getattr(model, "learned_", None) is not None:  # the optimum is that of what was learned
        other = {"callback": None, "max_time": None}
        best = model.with_learned().set_params(**other).fit(*data, **extra).certificate_
    problems = {
        "converged and warned, or neither": warned == status.converged,
        "not a word on why": not (status.converged or next(iter(how)) in status.message),
        "the dual is above the optimum": not found.dual <= best.primal + slack,
        "the primal is below the optimum": not found.primal >= best.dual - slack,
        f"the primal is {judged} in truth": judged is not None
        and not abs(judged - found.primal) <= slack,
        "more calls than allowed": limit > 0 and len(seen) > limit,
    }
    wrong = [name for name, holds in problems.items() if holds]
    ended = "converged" if status.converged else f"stopped by {next(iter(how))}"
    return ended, f"{wrong}: {found}, {status.message}" if wrong else None


def attack(count: int, seed: int) -> Outcome:
    """Interrupt, and stop, at random moments."""
    outcome, random = Outcome(), np.random.default_rng(seed)
    if not hasattr(signal, "setitimer"):  # Windows has no timers
        outcome.counts["no timers here"] = count
        return outcome
    runs: dict[tuple[str, str], Run] = {}
    with threadpool_limits(_THREADS, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # feature maps are small on purpose
        for i in range(count):
            if i % 8 < _STOPS:
                case = STOPPABLE[random.integers(len(STOPPABLE))]
                limit = int(random.integers(1, 6)) * int(random.integers(2))
                share = float(random.uniform())
                try_ = f"limit={limit}, share={share:.3f}"
                ended, wrong = stopped(case, share, limit)
            else:
                case = CASES[random.integers(len(CASES))]
                ways = ["fit", "refit"] + ["partial_fit"] * hasattr(case.estimator, "partial_fit")
                how, share = ways[random.integers(len(ways))], float(random.uniform(0.0, 1.05))
                try_ = f"{how}, {share:.3f} of its time"
                if (case.name, how) not in runs:
                    runs[case.name, how] = run_of(case, how)
                run = runs[case.name, how]
                ended, wrong = interrupted(run, share * run.seconds)
            outcome.counts[ended] += 1
            if wrong is not None:
                outcome.failures.append(f"{case.name}, {try_}: {wrong}")
    return outcome
