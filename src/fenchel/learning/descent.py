"""Quasi-Newton descent on a criterion; keeps the best point it has seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from fenchel._typing import FloatArray

Criterion = Callable[[FloatArray], tuple[float, FloatArray]]
Penalty = Callable[[FloatArray, float], tuple[float, FloatArray, float]]

_PATIENCE = 6  # evaluations


class Stopped(Exception):
    """Raised within a descent to end it."""


@dataclass
class Descent:
    """Minimizes a criterion plus a penalty over the free coordinates of θ, within bounds.

    Parameters
    ----------
    start : ndarray of shape (m,)
    bounds : ndarray of shape (m, 2)
        Coordinates whose bounds are equal are not free.
    penalty : callable
        Function of θ and the criterion that returns a number to add to the criterion, its
        gradient, and its derivative with respect to the criterion.
    watch : callable, optional
        Called with the criterion after each evaluation; a true return value ends the descent.
    """

    start: FloatArray
    bounds: FloatArray
    penalty: Penalty
    watch: Callable[[float], bool] | None = None
    best: tuple[float, float, FloatArray] | None = None
    """Penalized and plain criterion, and θ, at the best point."""
    history: list[float] = field(default_factory=list)
    """The criterion at each evaluation."""

    def run(
        self, criterion: Criterion, max_calls: int, tol: float, first_step: float = 0.0
    ) -> bool:
        """Descend from the best point so far; return False if stopped from outside.

        The descent ends after ``max_calls``, or if six evaluations together have gained less
        than a share ``tol``, since a step with little gain may be followed by a larger one. The
        first step is the gradient, or has a given length: near an optimum, gradients are much
        shorter than the distance to it, and the first two evaluations would gain nothing. If no
        coordinate is free, as with constant columns, the criterion is evaluated once.
        """
        free = self.bounds[:, 0] < self.bounds[:, 1]
        theta = self.start.copy() if self.best is None else self.best[2].copy()
        self.best = None
        calls = 0
        bests: list[float] = []
        unit = 0.0 if first_step else 1.0

        def objective(part: FloatArray) -> tuple[float, FloatArray]:
            nonlocal calls, unit
            if calls == max_calls:
                raise Stopped
            calls += 1
            theta[free] = part
            value, gradient = criterion(theta)
            added, of_added, through = self.penalty(theta, value)
            whole, slopes = value + added, (gradient + through * gradient + of_added)[free]
            if not np.isfinite(whole) or not np.isfinite(gradient).all():
                return 1e10, np.zeros(len(part))
            if self.best is None or whole < self.best[0]:
                self.best = whole, value, theta.copy()
            self.history.append(value)
            bests.append(self.best[0])
            if self.watch is not None and self.watch(value):
                raise _Ended
            if len(bests) > _PATIENCE and bests[-1 - _PATIENCE] - bests[-1] < tol * bests[-1]:
                raise Stopped
            if unit == 0.0:
                unit = first_step / (float(np.linalg.norm(slopes)) or 1.0)
            return unit * whole, unit * slopes

        try:
            if not free.any():
                objective(theta[free])
                return True
            minimize(
                objective,
                theta[free],
                jac=True,
                method="L-BFGS-B",
                bounds=self.bounds[free],
                options={"ftol": 0.0, "gtol": 0.0, "maxiter": max_calls},
            )
        except _Ended:
            return False
        except Stopped:
            pass
        return True

    def look(self, criterion: Criterion, points: FloatArray, share: float) -> bool:
        """Take the best of other points if it is better by a share; return whether one is."""
        assert self.best is not None
        known = self.best
        for theta in points:
            value, _ = criterion(theta)
            self.history.append(value)
            whole = value + self.penalty(theta, value)[0]
            if value < (1.0 - share) * known[1] and whole < self.best[0]:
                self.best = whole, value, theta.copy()
            if self.watch is not None and self.watch(value):
                return False
        return self.best is not known


class _Ended(Stopped):
    """Stopped from outside."""
