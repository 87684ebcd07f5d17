"""Folds of the criterion: training and test rows; closed form for the squared loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fenchel._typing import FloatArray
from fenchel.learning.rows import Rows
from fenchel.losses import Loss
from fenchel.solvers.newton_system import cholesky_of, solve_cholesky


@dataclass(frozen=True)
class Task:
    """A problem fitted to rows, for all parameter values: outputs that depend on each other."""

    loss: Loss
    coupling: FloatArray
    targets: FloatArray
    fit_intercept: bool

    @property
    def is_ridge(self) -> bool:
        """Whether it is a single output with the squared loss."""
        box = self.loss.box(1) if len(self.coupling) == 1 else None
        return box is not None and box.is_squared


class Judged(NamedTuple):
    """Result of a fold at given parameters."""

    value: float
    """Held-out loss."""
    slope: float
    """Its derivative with respect to log alpha."""
    left: FloatArray
    right: FloatArray
    """(n, p): left rightᵀ are the derivatives with respect to kernel values."""


class Fold:
    """Training rows, outside the fold, and test rows, inside it."""

    def __init__(self, rows: Rows, k: int) -> None:
        self.inside = rows.fold(k)
        self.outside = (slice(0, self.inside.start), slice(self.inside.stop, len(rows.X)))
        self.weight, self.held_weight = self.outer(rows.weight), rows.weight[self.inside]
        self.residual = np.zeros((len(self.held_weight), 0))
        """Residuals of the rows inside, for the last fit that was evaluated."""

    def outer(self, values: FloatArray) -> FloatArray:
        """Select the rows outside the fold."""
        return np.concatenate([values[part] for part in self.outside])

    def among(self, values: FloatArray) -> FloatArray:
        """Kernel values between the rows outside the fold."""
        return np.block([[values[a, b] for b in self.outside] for a in self.outside])

    def image(self, values: FloatArray, mixed: FloatArray) -> FloatArray:
        """Kernel values (m, n) against all rows times coefficients of the rows outside."""
        before, after = self.outside
        at = before.stop
        return np.asarray(values[:, before] @ mixed[:at] + values[:, after] @ mixed[at:])

    def slopes_in_values(
        self, slopes: FloatArray, push: FloatArray, mixed: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Derivatives with respect to kernel values as two factors, for all rows."""
        at = self.inside.start
        left = np.concatenate([-push[:at], slopes, -push[at:]])
        return left, np.concatenate([mixed[:at], np.zeros_like(slopes), mixed[at:]])


class RidgeFold(Fold):
    """Outputs of the squared loss with the same strength, all solved with one factorization.

    Parameters
    ----------
    rows : Rows
    k : int
    tasks : sequence of Task
        All ``is_ridge``, with the same coupling, and all with an intercept or all without.
    """

    def __init__(self, rows: Rows, k: int, tasks: Sequence[Task]) -> None:
        super().__init__(rows, k)
        self.size = float(tasks[0].coupling[0, 0]) ** 2
        self.fit_intercept = tasks[0].fit_intercept
        targets = np.hstack([task.targets for task in tasks])
        self.targets, self.held_targets = self.outer(targets), targets[self.inside]

    def constant(self) -> float:
        """Held-out loss of the best constants."""
        best = np.average(self.targets, axis=0, weights=self.weight)
        return self._loss(self.held_targets - best)

    def _loss(self, residual: FloatArray) -> float:
        return 0.5 * float(self.held_weight @ (residual**2).sum(axis=1))

    def evaluate(self, values: FloatArray, alpha: float) -> Judged:
        """Held-out loss and its derivatives, from (λ K + α S / s) a = y - b with Σ a_i = 0."""
        among, across = self.among(values), values[self.inside]
        system = self.size * among
        np.einsum("ii->i", system)[...] += alpha * self.weight.sum() / self.weight
        factor = cholesky_of(system)
        ones = solve_cholesky(factor, np.ones((len(system), 1)))

        def solved(right: FloatArray, total: FloatArray) -> tuple[FloatArray, FloatArray]:
            found = solve_cholesky(factor, right)
            if not self.fit_intercept:
                return found, np.zeros(right.shape[1])
            offset = (found.sum(axis=0) - total) / ones.sum()
            return found - ones * offset, offset

        coef, offset = solved(self.targets, np.zeros(self.targets.shape[1]))
        mixed = self.size * coef
        image = self.image(across, mixed)
        residual = self.residual = self.held_targets - image - offset
        slopes = -self.held_weight[:, None] * residual
        pulled = self.size * self.outer(across.T @ slopes)
        push, _ = solved(pulled, slopes.sum(axis=0))
        slope = float(np.vdot(push, among @ mixed)) - float(np.vdot(slopes, image))
        left, right = self.slopes_in_values(slopes, push, mixed)
        return Judged(self._loss(residual), slope, left, right)


def ridge_folds(rows: Rows, tasks: Sequence[Task]) -> list[RidgeFold]:
    """Folds of tasks that are all ``is_ridge``, together if their strengths are equal."""
    groups: dict[tuple[float, bool], list[Task]] = {}
    for task in tasks:
        groups.setdefault((float(task.coupling[0, 0]), task.fit_intercept), []).append(task)
    return [RidgeFold(rows, k, group) for group in groups.values() for k in range(rows.n_folds)]
