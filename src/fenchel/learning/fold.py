"""Folds of the criterion: training and test rows; closed form for the squared loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from fenchel._typing import FloatArray
from fenchel.learning.rows import Rows
from fenchel.losses import Loss
from fenchel.solvers.newton_system import cholesky_of, solve_cholesky

_DIGITS = 12  # of the eigenvalues of a coupling
MANY_STRENGTHS = 16
"""Of more, an eigenbasis takes less time than their factorizations."""


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
        return len(self.coupling) == 1 and _is_squared(self.loss)


def tasks_of(
    loss: Loss, coupling: FloatArray, targets: FloatArray, fit_intercept: bool
) -> list[Task]:
    """Return problems that do not interact, or one of all outputs.

    Outputs of the squared loss do not interact in the eigenbasis of their coupling.
    """
    p, own = len(coupling), np.diag(coupling)
    found = [loss.output(j, p) for j in range(p)] if p > 1 else []
    losses = [each for each in found if each is not None]
    apart = is_diagonal(coupling)
    targets_of_each = np.broadcast_to(targets, (len(targets), p))
    if len(losses) == p > 1 and not apart and all(map(_is_squared, losses)):
        sizes, basis = np.linalg.eigh(coupling @ coupling.T)
        roots, largest = np.sqrt(np.maximum(sizes, 0.0)), np.sqrt(sizes[-1]) or 1.0
        own = np.round(roots / largest, _DIGITS) * largest  # equal ones share a factorization
        apart, targets_of_each = True, targets_of_each @ basis
    if not apart or len(losses) < p or p == 1:
        return [Task(loss, coupling, targets, fit_intercept)]
    return [
        Task(each, own[[j], None], np.ascontiguousarray(targets_of_each[:, [j]]), fit_intercept)
        for j, each in enumerate(losses)
    ]


def is_diagonal(coupling: FloatArray) -> bool:
    """Whether outputs are not coupled."""
    return np.array_equal(coupling, np.diag(np.diag(coupling)))


def _is_squared(loss: Loss) -> bool:
    box = loss.box(1)
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
    """Outputs of the squared loss, all solved with one factorization or one eigenbasis.

    Parameters
    ----------
    rows : Rows
    k : int
    tasks : sequence of Task
        All ``is_ridge``, and all with an intercept or all without. If their couplings are equal,
        there is a factorization.
    """

    def __init__(self, rows: Rows, k: int, tasks: Sequence[Task]) -> None:
        super().__init__(rows, k)
        self.sizes = np.array([float(task.coupling[0, 0]) for task in tasks]) ** 2
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
        solve = self._solver(among, alpha)
        ones = solve(np.ones((len(among), 1)))

        def solved(right: FloatArray, total: FloatArray) -> tuple[FloatArray, FloatArray]:
            found = solve(right)
            if not self.fit_intercept:
                return found, np.zeros(right.shape[1])
            offset = (found.sum(axis=0) - total) / ones.sum(axis=0)
            return found - ones * offset, offset

        coef, offset = solved(self.targets, np.zeros(self.targets.shape[1]))
        mixed = self.sizes * coef
        image = self.image(across, mixed)
        residual = self.residual = self.held_targets - image - offset
        slopes = -self.held_weight[:, None] * residual
        pulled = self.sizes * self.outer(across.T @ slopes)
        push, _ = solved(pulled, slopes.sum(axis=0))
        slope = float(np.vdot(push, among @ mixed)) - float(np.vdot(slopes, image))
        left, right = self.slopes_in_values(slopes, push, mixed)
        return Judged(self._loss(residual), slope, left, right)

    def _solver(self, among: FloatArray, alpha: float) -> Callable[[FloatArray], FloatArray]:
        """Return what solves with λ K + α S / s of each output."""
        shift = self.weight.sum() / self.weight
        if np.all(self.sizes == self.sizes[0]):
            system = self.sizes[0] * among
            np.einsum("ii->i", system)[...] += alpha * shift
            return partial(solve_cholesky, cholesky_of(system))
        root = 1.0 / np.sqrt(shift)[:, None]
        found, basis = np.linalg.eigh(root * among * root.T)
        shrunk = 1.0 / (np.maximum(found, 0.0)[:, None] * self.sizes + alpha)
        return lambda right: root * (basis @ (shrunk * (basis.T @ (root * right))))


def ridge_folds(rows: Rows, tasks: Sequence[Task]) -> list[RidgeFold]:
    """Folds of tasks that are all ``is_ridge``, together if their strengths are equal.

    If many differ, all are together.
    """
    groups: dict[tuple[float, bool], list[Task]] = {}
    for task in tasks:
        groups.setdefault((float(task.coupling[0, 0]), task.fit_intercept), []).append(task)
    if len(groups) > MANY_STRENGTHS:
        several = [[task for task in tasks if task.fit_intercept is own] for own in (True, False)]
        return [RidgeFold(rows, k, each) for each in several if each for k in range(rows.n_folds)]
    return [RidgeFold(rows, k, group) for group in groups.values() for k in range(rows.n_folds)]
