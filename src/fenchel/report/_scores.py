"""Scores: mean losses of a model, compared with those of the best constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel.inspection import level_losses, levels_of, percent, statistic_of
from fenchel.losses import Absolute, Loss, Squared
from fenchel.metrics import explained_share


@dataclass(frozen=True)
class Measure:
    """A multiple of the loss of one column of predictions."""

    name: str
    column: int
    output: int
    loss: Loss
    factor: float = 1.0

    def values(self, residual: FloatArray) -> FloatArray:
        """The loss of each row."""
        return self.factor * self.loss.value(residual[:, None])

    def constant(self, targets: FloatArray) -> float:
        """The constant with the smallest mean loss."""
        column = targets[:, [self.output]]
        return float(self.loss.minimizing_offset(column, np.ones(len(column)))[0])


@dataclass(frozen=True)
class Score:
    """Mean loss of a model and of a constant on the same rows.

    ``gain`` is the mean of the differences of their losses, positive if the model is better.
    ``error`` is the standard error of that mean, for independent rows.
    """

    name: str
    model: float
    constant: float
    baseline: float
    gain: float
    error: float

    @property
    def explained(self) -> float | None:
        """Share of the loss of the constant that the model saves."""
        return explained_share(self.model, self.baseline) if self.baseline > 0.0 else None


def measures_of(estimator: Any, n_outputs: int, names: tuple[str, ...] = ()) -> list[Measure]:
    """The losses by which a model is scored: those of its levels, or of residuals."""
    losses, levels = level_losses(estimator), levels_of(estimator)
    if losses is None or levels is None:
        return [
            m
            for k in range(n_outputs)
            for m in _of_residuals(k, f" of {names[k]}" if names else "")
        ]
    squared = "squared " if statistic_of(estimator) == "expectiles" else ""
    return [
        Measure(f"{squared}pinball loss at {percent(float(level))}", j, 0, loss)
        for j, (level, loss) in enumerate(zip(levels, losses, strict=True))
    ]


def _of_residuals(output: int, of: str) -> list[Measure]:
    return [
        Measure(f"squared error{of}", output, output, Squared(), factor=2.0),
        Measure(f"absolute error{of}", output, output, Absolute()),
    ]


def scores(
    measures: list[Measure],
    predictions: FloatArray,
    targets: FloatArray,
    constants: tuple[float, ...],
) -> list[Score]:
    """Score columns of predictions, (n, p), on targets, (n, n_outputs)."""
    found = []
    for measure, constant in zip(measures, constants, strict=True):
        y = targets[:, measure.output]
        mine = measure.values(y - predictions[:, measure.column])
        theirs = measure.values(y - constant)
        gains = theirs - mine
        error = float(gains.std(ddof=1) / np.sqrt(len(y))) if len(y) > 1 else float("nan")
        model, baseline, gain = (float(each.mean()) for each in (mine, theirs, gains))
        found.append(Score(measure.name, model, constant, baseline, gain, error))
    return found
