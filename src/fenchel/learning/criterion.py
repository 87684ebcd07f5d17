r"""Held-out loss of fits, and its derivatives with respect to all parameters.

.. math:: C(\theta) = \frac{1}{\sum_i s_i} \sum_F \sum_{i \in F} s_i\,
          \ell_t(y_i - h_{-F}(x_i) - b_{-F})

over folds F, with :math:`h_{-F}` the fit of the smoothed loss :math:`\ell_t` to the rows outside
the fold, in units of the loss of the best constant. θ holds the logarithms of the open parameters
of the kernel, and of alpha.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fenchel._threads import in_threads
from fenchel._typing import FloatArray
from fenchel.design import Gram
from fenchel.kernels import differentiated
from fenchel.learning.fold import Fold, Judged, RidgeFold, Task, ridge_folds
from fenchel.learning.parameters import OpenParameters
from fenchel.learning.reach import within_reach
from fenchel.learning.rows import Rows
from fenchel.problem import Problem
from fenchel.solvers.kept_factor import KeptFactor
from fenchel.solvers.sensitivity import adjoint
from fenchel.solvers.smoothed import Smoothed, fit_smoothed, from_residuals, unit_step

_TOL = 1e-4  # of the loss of the best constant: fits whose derivatives are known to a percent


class HeldOut:
    """The criterion: called with θ, it returns its value and its gradient.

    Fits start from those of the last call. Several outputs of the squared loss have a closed form.

    Parameters
    ----------
    rows : Rows
        Rows whose targets are those of the tasks.
    tasks : sequence of Task
        The criterion is the sum of their losses.
    parameters : OpenParameters
        θ without its last entry.
    unit : float
        Unit of alpha.
    smoothing : float
        Width of the smoothed kinks, 1/t, as a share of the spread of the targets.
    before : HeldOut, optional
        Criterion of the same tasks on other rows, whose last fits give the starting points.
    """

    def __init__(
        self,
        rows: Rows,
        tasks: Sequence[Task],
        parameters: OpenParameters,
        unit: float,
        smoothing: float,
        before: HeldOut | None = None,
    ) -> None:
        self.rows, self.parameters, self.unit = rows, parameters, unit
        together = len(tasks) > 1 and all(task.is_ridge for task in tasks)
        several = () if together else tasks
        self._folds = [
            _Fold(rows, k, task, near)
            for task in several
            for near in [within_reach(task.loss, task.targets, rows.weight)]
            for k in range(rows.n_folds)
        ]
        self._ridges = ridge_folds(rows, tasks) if together else []
        whole = sum(fold.constant(smoothing) for fold in self._folds)
        self._constant = whole + sum(fold.constant() for fold in self._ridges) or 1.0
        self._kernel: Any = None
        if before is not None and not together:
            self._start_from(before)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at θ; the value is infinite if rounding errors prevent a fit."""
        try:
            return self._evaluated(theta)
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(theta)

    def _evaluated(self, theta: FloatArray) -> tuple[float, FloatArray]:
        X = self.rows.X
        kernel = self.parameters.with_numbers(theta[:-1])
        values, gradient_of = differentiated(kernel, X)
        self._kernel, alpha = kernel, self.unit * float(np.exp(theta[-1]))
        folds: list[_Fold | RidgeFold] = [*self._folds, *self._ridges]
        judged = in_threads(lambda fold: fold.evaluate(values, alpha), folds)
        value, of_alpha = sum(each.value for each in judged), sum(each.slope for each in judged)
        left, right = (np.hstack([each[k] for each in judged]) for k in (2, 3))
        slopes = np.append(self.parameters.gathered(gradient_of(left @ right.T)), of_alpha)
        return value / self._constant, slopes / self._constant

    def residuals(self, theta: FloatArray) -> FloatArray:
        """Held-out residuals at θ, (n, p), in the order of the rows."""
        self._evaluated(theta)
        folds: list[_Fold | RidgeFold] = [*self._folds, *self._ridges]
        n_folds = self.rows.n_folds
        parts = [folds[i : i + n_folds] for i in range(0, len(folds), n_folds)]
        return np.hstack([np.vstack([fold.residual for fold in part]) for part in parts])

    def _start_from(self, before: HeldOut) -> None:
        """Guess residuals from the mean of the previous functions of the folds."""
        if before._kernel is None or any(fold.last is None for fold in before._folds):
            return
        values, n_folds = before._kernel(self.rows.X, before.rows.X), before.rows.n_folds
        for i in range(0, len(before._folds), n_folds):
            own = before._folds[i : i + n_folds]
            guess = np.mean([fold.predicted(values) for fold in own], axis=0)
            at = i // n_folds * self.rows.n_folds
            for fold in self._folds[at : at + self.rows.n_folds]:
                fold.guess = fold.targets - fold.outer(guess)


class _Fold(Fold):
    """One fold: rows outside it are fitted, and rows inside it are test rows.

    ``near`` are targets with far outliers moved nearer, for the test loss and the units. Fits use
    the targets as they are, as the final fit does. With moved targets in the fits too, the
    median of 27 rows with one target a hundred times too large (highway) was three times as far
    off.
    """

    def __init__(self, rows: Rows, k: int, task: Task, near: FloatArray) -> None:
        super().__init__(rows, k)
        self.task, self.targets, self.near = task, self.outer(task.targets), self.outer(near)
        self.held_targets = near[self.inside]
        self.output = task.coupling @ task.coupling.T
        self.step = self.size = 0.0
        self.last: Smoothed | None = None
        self.guess: FloatArray | None = None
        self.kept = KeptFactor()

    def predicted(self, values: FloatArray) -> FloatArray:
        """Predictions of the last fit, from kernel values of new rows against all rows."""
        assert self.last is not None
        return self.image(values, self.last.coef @ self.output) + self.last.offset

    def constant(self, smoothing: float) -> float:
        """Held-out loss of the best constant; also sets the step of the smoothing.

        Models without an intercept are compared with it too, since the loss of the zero function
        depends on the origin of the targets' units.
        """
        problem = replace(self._problem(np.zeros((len(self.near),) * 2), 1.0), targets=self.near)
        self.step, self.size = smoothing * unit_step(problem), problem.baseline
        residual = self.held_targets - replace(problem, fit_intercept=True).best_constant
        whole = np.broadcast_to(residual, (len(residual), problem.n_outputs))
        return self._judged(whole.copy())[0]  # loops are compiled once more for what is read only

    def _judged(self, residual: FloatArray) -> tuple[float, FloatArray]:
        """Held-out loss of residuals, and its derivatives with respect to predictions."""
        held = self.task.loss.envelope(np.zeros_like(residual), residual, self.step)
        return float(self.held_weight @ held.value), -self.held_weight[:, None] * held.dual

    def _problem(self, values: FloatArray, alpha: float) -> Problem:
        task = self.task
        design = Gram(values, task.coupling)
        return Problem(task.loss, design, self.targets, self.weight, alpha, task.fit_intercept)

    def evaluate(self, values: FloatArray, alpha: float) -> Judged:
        """Held-out loss and its derivatives; independent of other folds."""
        among, across = self.among(values), values[self.inside]
        problem = self._problem(among, alpha)
        start = self.last
        if start is None and self.guess is not None:
            start, self.guess = from_residuals(problem, self.step, self.guess), None
        tol = _TOL * self.size / problem.baseline if problem.baseline > 0.0 else _TOL
        fit = self.last = fit_smoothed(problem, self.step, start, tol, kept=self.kept)
        mixed = fit.coef @ self.output
        image = self.image(across, mixed)
        self.residual = self.held_targets - image - fit.offset
        value, slopes = self._judged(self.residual)
        pulled = self.outer(across.T @ slopes) @ self.output
        back = adjoint(problem, fit.kinks, pulled, slopes.sum(axis=0), self.kept)
        slope = -float(np.vdot(slopes, image)) + back.through(-(among @ mixed))
        left, right = self.slopes_in_values(slopes, back.push, mixed)
        return Judged(value, slope, left, right)
