"""Accelerated proximal gradient on the dual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel._typing import FloatArray
from fenchel.certificate import Certified
from fenchel.problem import Problem
from fenchel.solvers.accelerated import Accelerated, Moving
from fenchel.solvers.base import LoopSolver, WarmStart, start_of
from fenchel.solvers.coordinates import judged
from fenchel.solvers.loop import Iterate

_ROOT_STEPS = 60
_ROUNDING = 1e-9  # of the curvature along a step
_SHORTER = 0.9  # of the step that the curvature along this one allows: 1 to 0.8 are alike


@dataclass(frozen=True)
class Fista(LoopSolver):
    r"""FISTA with adaptive restart on the dual, in the metric of the weights c.

    .. math:: \beta^+ = \operatorname{prox}_{\ell^*/L}
              \left(\beta + \tfrac1L (y - S V^\top \varphi - b)\right),
              \qquad V = \Phi^\top (c \beta) S,

    where b is the offset for which :math:`\sum_i c_i \beta^+_i = 0`, found output by output. L is
    the curvature along the first gradient; it is doubled if the curvature along a step is larger.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Maximum number of gradient steps.
    check : int
        Number of steps between certificates.

    References
    ----------
    Beck, Teboulle (2009); O'Donoghue, Candès (2015) for the restart.

    Examples
    --------
    >>> from fenchel.solvers import Fista
    >>> from fenchel.testing import small_problems
    >>> Fista(tol=1e-5).solve(small_problems()[0]).status.converged
    True
    """

    takes_gram: ClassVar[bool] = True
    tol: float = 1e-6
    max_iter: int = 100_000
    check: int = 50

    def requires(self, problem: Problem) -> str | None:
        """Return None, unless there is an intercept and a loss that couples the outputs."""
        if problem.fit_intercept and not problem.separable:
            return (
                "needs a loss that is a sum over outputs, or fit_intercept=False; solver='newton' "
                "takes any loss"
            )
        return None

    def _iterates(
        self, problem: Problem, warm_start: WarmStart | None
    ) -> Iterator[Iterate[Certified]]:
        dual, offset, first = start_of(problem, warm_start)
        yield Iterate(0, first)
        weight, design = problem.weight[:, None], problem.design
        image = design.values(problem.link(dual))
        size = _first_size(problem, problem.targets - offset - image)

        def step(ahead: Moving) -> Moving:
            nonlocal offset, size
            point, image = ahead
            gradient = problem.targets - image
            while True:
                new, offset = _proximal(problem, point + size * gradient, size, offset)
                new_image = design.values(problem.link(new))
                pushed = weight * (new - point)
                bend, length = np.vdot(pushed, new_image - image), np.vdot(pushed, new - point)
                if not size * bend > (1.0 + _ROUNDING) * length:  # nor if it is not a number
                    return new, new_image
                size = float(_SHORTER * length / bend)

        points = Accelerated(
            step, (dual, image), check=self.check, max_iter=self.max_iter, weight=weight
        )
        for done, dual in points:
            yield judged(problem, done, dual, offset)


def _first_size(problem: Problem, gradient: FloatArray) -> float:
    """Step size for the curvature along the gradient: too long rather than too short."""
    push = problem.weight[:, None] * gradient
    bend = float(np.vdot(push, problem.design.image(push)))
    return float(np.vdot(push, gradient)) / bend if bend > 0.0 else 1.0


def _proximal(
    problem: Problem, point: FloatArray, step: float, offset: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Prox of ℓ*/L at ``point`` - step b, and the b for which it is feasible."""
    loss = problem.loss
    if not problem.fit_intercept:
        return loss.conjugate_prox(point, step), np.zeros_like(offset)
    weight = problem.weight

    def total(b: FloatArray) -> FloatArray:
        return weight @ loss.conjugate_prox(point - step * b, step)

    low, high = offset.copy(), offset.copy()
    width = np.full_like(offset, max(np.ptp(point) / step, np.finfo(float).tiny) * 1e-3)
    for _ in range(_ROOT_STEPS):
        below, above = total(low) < 0.0, total(high) > 0.0
        if not (below.any() or above.any()):
            break
        low, high = np.where(below, low - width, low), np.where(above, high + width, high)
        width = width * 2.0
    for _ in range(_ROOT_STEPS):
        middle = 0.5 * (low + high)
        positive = total(middle) > 0.0
        low, high = np.where(positive, middle, low), np.where(positive, high, middle)
    middle = 0.5 * (low + high)
    return loss.conjugate_prox(point - step * middle, step), middle
