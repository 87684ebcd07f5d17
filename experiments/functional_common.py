"""What the experiments on regression of curves share: losses, fits on Gram matrices, selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import KFold

from experiments.epsilon_common import BLUE, GREEN, GREY, SKY, VERMILION
from fenchel.datasets import local_outliers, process_outliers
from fenchel.design import Gram
from fenchel.kernels import Gaussian
from fenchel.losses import CurveHuber, CurveInsensitive, Loss, Squared
from fenchel.problem import Problem
from fenchel.solvers import ClosedForm, Solution, Splitting, first_that_can

NAMES = {
    "square": "square",
    "H1": "Huber, p = 1",
    "H2": "Huber, p = 2",
    "eps2": "ε-insensitive, p = 2",
    "epsinf": "ε-insensitive, p = ∞",
}
COLORS = {"square": GREY, "H1": BLUE, "H2": VERMILION, "eps2": GREEN, "epsinf": SKY}
DASHES = {
    "square": (0, (1.2, 1.4)),
    "H1": "solid",
    "H2": (0, (6, 1.8)),
    "eps2": (0, (6, 1.6, 1.2, 1.6)),
    "epsinf": (0, (3, 1)),
}
MARKERS = {"square": "^", "H1": "o", "H2": "s", "eps2": "D", "epsinf": "v"}
SIZE = 100
"""Rows to train on, and as many to test on."""
INPUT_RHO, OUTPUT_RHO = 0.01, 100.0
TOL, SELECTION_TOL = 1e-6, 1e-3
"""Relative duality gaps of fits that are reported, and of fits that are only compared."""
Condition = tuple[int, float, float]
"""Type of outliers, share τ of the curves, and intensity ζ (type 2) or share ξ of the points."""


def gaussian(rho: float) -> Gaussian:
    """Make the kernel exp(-ρ d²)."""
    return Gaussian(1.0 / np.sqrt(2.0 * rho))


def make_loss(name: str, value: float, measure: np.ndarray) -> Loss:
    """Loss of a name with its κ or ε."""
    if name == "square":
        return Squared()
    if name in ("H1", "H2"):
        return CurveHuber(value, float(name[1]), measure)
    return CurveInsensitive(value, 2.0 if name == "eps2" else np.inf, measure)


@dataclass(frozen=True, eq=False)
class Points:
    """The output kernel between the points of the curves, and the weights of the points."""

    kernel: np.ndarray
    measure: np.ndarray

    @cached_property
    def coupling(self) -> np.ndarray:
        """S with S Sᵀ = √μ k √μ: curves are scaled by √μ."""
        root = np.sqrt(self.measure)
        values, vectors = np.linalg.eigh(root[:, None] * self.kernel * root)
        return vectors * np.sqrt(np.maximum(values, 0.0))


@dataclass(frozen=True, eq=False)
class Curves:
    """Rows to train on as Gram matrices, and kernel and measure of the curves."""

    gram: np.ndarray
    """Between training rows, (n, n)."""
    outputs: Points

    @cached_property
    def design(self) -> Gram:
        """All rows; the spectrum is kept for further fits."""
        return Gram(self.gram, self.outputs.coupling)

    @cached_property
    def weight(self) -> np.ndarray:
        """Equal weights."""
        return np.ones(len(self.gram))

    def fit(
        self, Y: np.ndarray, name: str, alpha: float, value: float = 1.0, tol: float = TOL
    ) -> Solution:
        """Fit curves on the grid; ``value`` is κ or ε."""
        measure = self.outputs.measure
        loss = make_loss(name, value, measure)
        targets = Y * np.sqrt(measure)
        problem = Problem(loss, self.design, targets, self.weight, alpha, fit_intercept=False)
        solver = first_that_can([ClosedForm(tol), Splitting(tol, 2000)], problem)
        return solver.solve(problem)

    def predict(self, solution: Solution, gram: np.ndarray) -> np.ndarray:
        """Curves of rows, from the kernel between them and the training rows."""
        outputs = self.outputs
        return gram @ (solution.weights * np.sqrt(outputs.measure)) @ outputs.kernel


class Sparsity(NamedTuple):
    """Percent of dual coefficients, and of whole rows of them, that are exactly zero."""

    coefficients: float
    rows: float


def sparsity(solution: Solution) -> Sparsity:
    """Count exact zeros of the dual curves."""
    zero = solution.dual == 0.0
    return Sparsity(100.0 * float(zero.mean()), 100.0 * float(zero.all(axis=1).mean()))


def contaminate(Y: np.ndarray, condition: Condition, seed: int) -> np.ndarray:
    """Put outliers among curves."""
    kind, share, strength = condition
    if kind == 2:
        return process_outliers(Y, share, intensity=strength, random_state=seed)[0]
    return local_outliers(Y, share, share_of_points=strength, random_state=seed)[0]


def validation_errors(
    curves: Curves,
    Y: np.ndarray,
    name: str,
    alphas: Sequence[float],
    values: Sequence[float],
    weight: np.ndarray | None = None,
    folds: int = 5,
) -> np.ndarray:
    """Squared errors of the folds, (folds, alphas, values): means over the points of their rows.

    ``weight`` (n, m) is 1 where a curve counts and 0 elsewhere.
    """
    errors = np.empty((folds, len(alphas), len(values)))
    counted = np.ones_like(Y) if weight is None else weight
    splitter = KFold(folds, shuffle=True, random_state=0)
    for k, (inside, outside) in enumerate(splitter.split(Y)):
        part = Curves(curves.gram[np.ix_(inside, inside)], curves.outputs)
        across = curves.gram[np.ix_(outside, inside)]
        for i, alpha in enumerate(alphas):
            for j, value in enumerate(values):
                solution = part.fit(Y[inside], name, alpha, value, SELECTION_TOL)
                squares = (part.predict(solution, across) - Y[outside]) ** 2
                errors[k, i, j] = np.average(squares, weights=counted[outside])
    return errors


class Choice(NamedTuple):
    """Strength and κ or ε that were chosen."""

    alpha: float
    value: float


def choose(
    errors: np.ndarray, alphas: Sequence[float], values: Sequence[float], robust: bool = True
) -> Choice:
    """The pair with the least median over the folds, or the least mean."""
    middle = np.median(errors, axis=0) if robust else np.mean(errors, axis=0)
    i, j = np.unravel_index(int(middle.argmin()), middle.shape)
    return Choice(float(alphas[i]), float(values[j]))


def mse(predicted: np.ndarray, Y: np.ndarray) -> float:
    """Mean squared difference over curves and points, the NMSE of the paper."""
    return float(np.mean((predicted - Y) ** 2))


def bare(axes: Any) -> None:
    """Take the box away and draw a faint grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.92", linewidth=0.6)


def options(draws: int, usual: int) -> str:
    """What to add to the command of an experiment for another number of draws."""
    return "" if draws == usual else f" --splits {draws}"
