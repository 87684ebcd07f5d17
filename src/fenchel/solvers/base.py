"""What a solver takes and returns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol

from fenchel._typing import FloatArray
from fenchel.operator_problem import OperatorProblem
from fenchel.problem import Certificate, Certified, GramProblem, Problem


class Progress(NamedTuple):
    """One line of a solver's history."""

    iteration: int
    seconds: float
    primal: float
    dual: float
    relative_gap: float


Callback = Callable[[Progress], object]
"""Called after each outer iteration; a truthy return value stops the solver."""


@dataclass(frozen=True)
class Status:
    """How a solver ended, as a sentence with its remedy."""

    converged: bool
    message: str


@dataclass(frozen=True)
class Solution:
    """The best certified point that a solver found.

    Attributes
    ----------
    dual : ndarray of shape (n, p)
        Feasible dual vectors β, in units of the subgradient of the loss.
    weights : ndarray of shape (r, q)
        V = Φᵀ (c β) S, the weights that go with ``dual``.
    offset : ndarray of shape (p,)
        The offset b, exactly zero without intercept.
    certificate : Certificate
        Primal and dual objective of this very point.
    status : Status
        Whether it converged, and what to do if not.
    n_iter : int
        Number of Newton steps, sweeps or whatever the solver counts.
    history : list of Progress
        One entry per outer iteration.
    """

    dual: FloatArray
    weights: FloatArray
    offset: FloatArray
    certificate: Certificate
    status: Status
    n_iter: int
    history: list[Progress] = field(default_factory=list)


class WarmStart(NamedTuple):
    """A dual point and an offset to start from, those of a similar problem.

    With the ``alpha`` of that problem, the function it was solved by is the start, and not
    the multiple of it that the dual point stands for at another strength.
    """

    dual: FloatArray
    offset: FloatArray
    alpha: float | None = None


NEEDS_FEATURES = "needs explicit features: features='cholesky' in place of kernel rows"
NEEDS_SCALAR_KERNEL = (
    "needs a decomposable kernel, a scalar one times a matrix; solver='newton' takes any"
)


def needs_plain_features(problem: Problem) -> str | None:
    """Say what is missing for a solver that knows features (n, r) only."""
    if isinstance(problem, GramProblem):
        return NEEDS_FEATURES
    return NEEDS_SCALAR_KERNEL if isinstance(problem, OperatorProblem) else None


class Solver(Protocol):
    """An algorithm that maximizes the dual of a problem.

    ``takes_gram`` says whether it can do with a Gram matrix in place of features.
    """

    takes_gram: ClassVar[bool] = False

    def requires(self, problem: Problem) -> str | None:
        """Return None if it can solve this problem, else a sentence on what is missing."""
        ...

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the best certified point."""
        ...


def printer(name: str) -> Callback:
    """Return a callback that prints one line for each certificate."""

    def report(progress: Progress) -> None:
        print(  # noqa: T201  (asked for by verbose)
            f"[{name}] step {progress.iteration}: relative gap "
            f"{progress.relative_gap:.2e} after {progress.seconds:.2f} s"
        )

    return report


def settled(
    certified: Certified,
    started: float,
    n_iter: int,
    how: str,
    tol: float,
    callback: Callback | None,
) -> Solution:
    """Solution of a solver that certifies once, at its end.

    ``how`` says what it did, and behind a semicolon what to do if that was not good enough.
    """
    certificate = certified.certificate
    progress = Progress(
        iteration=n_iter,
        seconds=time.perf_counter() - started,
        primal=certificate.primal,
        dual=certificate.dual,
        relative_gap=certificate.relative_gap,
    )
    if callback is not None:
        callback(progress)
    good = certificate.relative_gap <= tol
    deed, _, remedy = how.partition("; ")
    message = f"{deed} to a relative gap of {certificate.relative_gap:.1e}"
    if not good:
        message += f" > tol={tol:g}: {remedy}"
    return Solution(
        certified.dual,
        certified.weights,
        certified.offset,
        certificate,
        Status(good, message),
        n_iter,
        [progress],
    )
