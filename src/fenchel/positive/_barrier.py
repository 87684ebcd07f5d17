"""The barrier of Newton's method, which shrinks on its way to a solution."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fenchel.positive._solution import Point, Record, Start, point_of, start_of, total
from fenchel.positive.problem import PSDProblem

# Measured as the numbers in ``solvers.py``.
_SHRINK = 0.1  # of the barrier: 638 and 509 with 0.01, 864 and 649 with 0.3
# Predicted decrease over the gap of the barrier below which the barrier shrinks: 1021 and 961 with
# 0.1; 554 and 430 with 100, which hardly solves the problems in between.
_CENTRED = 1.0
# Barrier of a warm start over the gap that it leaves. Steps of a search of 90 densities, and of as
# many models of quantiles: 709 and 1275; 840 and 1217 with 1, 773 and 1225 with 0.3, 687 and 1283
# with 0.03.
_WARM = 0.1


@dataclass
class Path:
    """The barrier, from a gap of about the unit of the loss down to a part of the tolerance."""

    problem: PSDProblem
    barrier: float
    least: float
    unit: float

    @classmethod
    def of(cls, problem: PSDProblem, tol: float, share: float) -> Path:
        unit = (problem.loss.unit or 1.0) / sum(problem.cone.sizes)
        return cls(problem, unit, share * tol * unit, unit)

    def on_grid(self, barrier: float) -> float:
        """Return the next of the barriers of a cold start, so that all fits end with the same."""
        if not barrier > 0.0:
            return self.least
        steps = np.ceil(np.log(barrier / self.unit) / np.log(_SHRINK))
        return max(self.unit * _SHRINK ** max(float(steps), 0.0), self.least)

    @property
    def ended(self) -> bool:
        return self.barrier <= self.least

    @property
    def enough(self) -> float:
        """What a step must be predicted to gain beside the gap that the barrier leaves."""
        if self.ended:
            return -np.inf
        return _CENTRED * self.barrier * sum(self.problem.cone.sizes)

    def eased(self, point: Point) -> tuple[PSDProblem, Point]:
        """The problem with a barrier on the domain of a loss with kinks, and a point of that."""
        problem = self.problem
        if problem.loss.smooth:
            return problem, point
        share = self.barrier * sum(problem.cone.sizes) / (2.0 * problem.n_outputs)
        loss = problem.loss.interior(share)
        assert loss is not None  # the solver has asked for it
        eased = problem.with_loss(loss)
        return eased, replace(point, conjugates=eased.conjugates(point.dual))

    def shrunk(self, point: Point, joint: bool) -> Point:
        """Return the same point with the next barrier."""
        self.barrier = max(_SHRINK * self.barrier, self.least)
        return self.at(point, joint)

    def at(self, point: Point, joint: bool = False) -> Point:
        """Return the same point with the barrier as it is."""
        if joint or not self.problem.constraints:
            return replace(point, spectra=point.spectra.with_barrier(self.barrier))
        nu, known = point.spectra.multipliers, point.conjugates
        return point_of(self.problem, point.dual, point.push, nu, self.barrier, False, known)


def begin(record: Record, warm_start: Start | None, share: float) -> tuple[Path, Point]:
    """The barrier and the point to begin with: near a solution already, so is the barrier."""
    problem = record.problem
    path = Path.of(problem, record.loop.tol, share)
    if warm_start is not None:
        if warm_start.barrier > 0.0:
            path.barrier = path.on_grid(warm_start.barrier)
            return path, start_of(problem, warm_start, path.barrier)
        point = start_of(problem, warm_start)
        if total(problem, point) > total(problem, start_of(problem, None)):  # of other rows
            return path, start_of(problem, None, path.barrier, record.joint)
        gap = record.certified(point, np.zeros(problem.outward.shape[1])).certificate.gap
        path.barrier = path.on_grid(_WARM * gap / sum(problem.cone.sizes))
        return path, path.at(point)
    return path, start_of(problem, None, path.barrier, record.joint)
