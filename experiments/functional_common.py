"""What the experiments on regression of curves share: losses, outliers, selection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.drawing import BLUE, GREEN, GREY, SKY, VERMILION
from fenchel.datasets import local_outliers, process_outliers
from fenchel.kernels import Gaussian
from fenchel.losses import CurveHuber, CurveInsensitive, Loss, Squared
from fenchel.solvers import Solution

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


class Choice(NamedTuple):
    """Strength and κ or ε that were chosen."""

    alpha: float
    value: float


def choose(errors: np.ndarray, alphas: Sequence[float], values: Sequence[float]) -> Choice:
    """The pair with the least median over the folds, of those that all folds have errors of."""
    middle = np.median(errors, axis=0)
    i, j = np.unravel_index(int(np.nanargmin(middle)), middle.shape)
    return Choice(float(alphas[i]), float(values[j]))
