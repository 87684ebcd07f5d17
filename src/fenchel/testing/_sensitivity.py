"""Checks of derivatives of fits with a loss, against differences of fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fenchel._typing import FloatArray
from fenchel.design import Gram
from fenchel.kernels import Gaussian
from fenchel.problem import Problem
from fenchel.solvers import Newton, Solution, sensitivity_of
from fenchel.solvers.smoothed import Smoothed, fit_smoothed, unit_step
from fenchel.testing._saying import require
from fenchel.testing._trial import Trial

_ROWS = 14
_STRENGTH = 1e-2  # in units of the problem
_KINKS = 5.0  # of the smoothed loss within a fifth of the spread
_TIGHT = 1e-12
_MOST_STEPS = 80

Fit = Callable[[Problem], Solution | Smoothed]


def check_sensitivity(trial: Trial) -> None:
    """Check derivatives with respect to log alpha of fits with the loss and its envelope."""
    problem = _problem(trial)
    step = _KINKS * unit_step(problem)
    gradient = trial.random.standard_normal((_ROWS, trial.size))
    # a fit with kinks is as good as its gap, whose root is what derivatives feel
    _check(
        problem, gradient, lambda other: fit_smoothed(other, step, None, 0.01 * _TIGHT), step, 1e-4
    )
    _check(problem, gradient, Newton(_TIGHT, _MOST_STEPS).solve, None, 1e-2)


def _problem(trial: Trial) -> Problem:
    """A kernel on a line, and targets in the units of the loss."""
    x = np.linspace(0.0, 3.0, _ROWS)[:, None]
    columns = 1 if trial.loss.cone is not None else trial.size
    targets = trial.scale * trial.random.standard_normal((_ROWS, columns))
    weight = trial.random.uniform(0.5, 2.0, _ROWS)
    design = Gram(Gaussian(1.0)(x), np.eye(trial.size))
    return Problem(trial.loss, design, targets, weight, _STRENGTH * trial.slope / trial.scale)


def _check(
    problem: Problem, gradient: FloatArray, fit: Fit, step: float | None, size: float
) -> None:
    """Differences of predictions to both sides; where they disagree there is a kink between."""
    gram = problem.design.gram
    assert gram is not None

    def moved(by: float) -> tuple[float, Solution | Smoothed]:
        other = replace(problem, alpha=problem.alpha * float(np.exp(by)))
        found = fit(other)
        values = problem.design.image(other.weight[:, None] * found.dual) + found.offset
        return float(np.vdot(gradient, values)), found

    unit = float(np.linalg.norm(gradient) * np.linalg.norm(problem.targets))
    (low, _), (middle, at), (high, _) = (moved(by) for by in (-size, 0.0, size))
    up, down = (high - middle) / (size * unit), (middle - low) / (size * unit)
    expected = 0.5 * (up + down)
    found = sensitivity_of(problem, at, gram, gradient, step).alpha() / unit
    of = "with the loss" if step is None else "with the envelope of the loss"
    require(
        abs(found - expected) <= size + abs(up - down),
        f"a fit {of} changes with log alpha by {expected:.6g}, in differences of fits, and by "
        f"{found:.6g} where conjugate_prox_jacobian is believed",
    )
