"""Accelerated proximal gradient method for the dual of a non-negative model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel.positive._solution import (
    ROUNDING,
    Certified,
    Point,
    PSDSolver,
    Record,
    Start,
    point_of,
    start_of,
)
from fenchel.positive.problem import PSDProblem, Push
from fenchel.solvers.accelerated import Accelerated, Moving
from fenchel.solvers.loop import Iterate


@dataclass(frozen=True)
class DualFista(PSDSolver):
    """Accelerated proximal gradient method on the dual, with backtracking and restart.

    This is the method of the paper. Its steps become shorter with more rows, so it is mainly
    useful as a check.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Squared
    >>> from fenchel.positive import DualFista, PSDPart, PSDProblem, Residual
    >>> loss = Residual(Squared(), np.array([[1.0], [4.0]]))
    >>> part = PSDPart(np.array([[1.0, 0.0], [1.0, 1.0]]), alpha=0.1)
    >>> DualFista(tol=1e-4).solve(PSDProblem(loss, [part], np.ones(2))).status.converged
    True
    """

    tol: float = 1e-6
    remedy: ClassVar[str] = "increase max_iter, or use solver='auto'"
    max_iter: int = 10_000
    check: int = 10

    def requires(self, problem: PSDProblem) -> str | None:
        """Return None if the solver applies to this problem, else a sentence with the reason."""
        if problem.outward.shape[1]:
            return "needs a problem without offsets; solver='proximal_newton' takes them"
        return None

    def _iterates(self, record: Record, warm_start: Start | None) -> Iterator[Iterate[Certified]]:
        problem, none = record.problem, np.zeros(0)
        point, size = start_of(problem, warm_start), problem.loss.step
        yield Iterate(0, record.certified(point, none))

        def step(ahead: Moving) -> Moving:
            nonlocal point, size
            here = point
            if ahead[0] is not point.dual:  # with momentum, and its push with it
                push = _as_push(problem, ahead)
                spectra = problem.cone.solve(push.gram, point.spectra.multipliers)
                here, size = Point(ahead[0], push, spectra, np.nan), 1.05 * size
            point, size = _backtracked(problem, here, size)
            return point.dual, *point.push.gram, *point.push.linear

        start = point.dual, *point.push.gram, *point.push.linear
        limits = {"check": self.check, "max_iter": self.max_iter}
        for done, _ in Accelerated(step, start, **limits, weight=problem.weight[:, None]):
            yield Iterate(done, record.certified(point, none))


def _as_push(problem: PSDProblem, moving: Moving) -> Push:
    """The push behind a dual point, which is linear in it."""
    psd = len(problem.psd)
    return Push(list(moving[1 : 1 + psd]), list(moving[1 + psd :]))


def _backtracked(problem: PSDProblem, here: Point, size: float) -> tuple[Point, float]:
    """Proximal step from a point, with the first halving of the size at which it is one."""
    z = problem.predictions(problem.model(here.push, here.spectra))
    smooth = problem.unpenalized(here.push, here.spectra)
    while True:
        new = problem.loss.conjugate_prox(here.dual + size * z, size)
        point = point_of(problem, new, None, here.spectra.multipliers)
        move = new - here.dual
        weighted = problem.weight[:, None] * move
        bound = smooth - np.vdot(weighted, z) + np.vdot(weighted, move) / (2.0 * size)
        value = problem.unpenalized(point.push, point.spectra)
        if value <= bound + ROUNDING * abs(value):
            return point, size
        size *= 0.5
