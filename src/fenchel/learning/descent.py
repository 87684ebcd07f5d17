"""Quasi-Newton descent on a criterion, which keeps the best point it has seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from fenchel._typing import FloatArray

Criterion = Callable[[FloatArray], tuple[float, FloatArray]]

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
        From θ to a number that is added to the criterion, and its gradient.
    watch : callable, optional
        Called with the criterion after each evaluation; a truthy value ends the descent.
    """

    start: FloatArray
    bounds: FloatArray
    penalty: Criterion
    watch: Callable[[float], bool] | None = None
    best: tuple[float, float, FloatArray] | None = None
    """Penalized and plain criterion, and θ."""
    history: list[float] = field(default_factory=list)
    """The criterion at each evaluation."""

    def run(self, criterion: Criterion, max_calls: int, tol: float) -> bool:
        """Descend from the best point so far; whether it was not stopped from outside.

        It ends after ``max_calls``, or where six evaluations together have gained less than a
        share ``tol``: single steps may gain little and the next one much.
        """
        free = self.bounds[:, 0] < self.bounds[:, 1]
        theta = self.start.copy() if self.best is None else self.best[2].copy()
        self.best = None
        calls = 0
        bests: list[float] = []

        def objective(part: FloatArray) -> tuple[float, FloatArray]:
            nonlocal calls
            if calls == max_calls:
                raise Stopped
            calls += 1
            theta[free] = part
            value, gradient = criterion(theta)
            added, of_added = self.penalty(theta)
            whole = value + added
            if not np.isfinite(whole) or not np.isfinite(gradient).all():
                return 1e10, np.zeros(len(part))
            if self.best is None or whole < self.best[0]:
                self.best = whole, value, theta.copy()
            self.history.append(value)
            bests.append(self.best[0])
            if len(bests) > _PATIENCE and bests[-1 - _PATIENCE] - bests[-1] < tol * bests[-1]:
                raise Stopped
            if self.watch is not None and self.watch(value):
                raise _Ended
            return whole, (gradient + of_added)[free]

        try:
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


class _Ended(Stopped):
    """From outside."""
