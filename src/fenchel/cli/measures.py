"""What is reported of a model on a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel.losses import Pinball, SquaredPinball
from fenchel.regression import ExpectileRegressor, QuantileRegressor

PREFIXES = {QuantileRegressor: "q", ExpectileRegressor: "e"}
LOSS_NAMES = {
    "QuantileRegressor": "pinball loss",
    "ExpectileRegressor": "squared pinball loss",
    "SVR": "ε-insensitive loss",
    "KernelRidge": "squared loss",
}


@dataclass(frozen=True)
class Column:
    """What is known of one column of predictions."""

    level: float | None
    coverage: float
    loss: float


@dataclass(frozen=True)
class Measures:
    """What is known of all of them."""

    n_rows: int
    columns: list[Column]
    crossing_loss: float | None
    score: float | None
    score_name: str


def outputs(prediction: FloatArray) -> FloatArray:
    """Return predictions with one column for each level, (n, p)."""
    return prediction[:, None] if prediction.ndim == 1 else prediction


def output_names(model: Any) -> list[str]:
    """Names of the columns of predictions."""
    prefix = PREFIXES.get(type(model))
    if prefix is None:
        return ["prediction"]
    return [f"{prefix}{level:g}" for level in model.levels_]


def column_losses(model: Any, prediction: FloatArray, y: FloatArray) -> FloatArray:
    """Loss of each row and column, (n, p), without any insensitivity of level models."""
    prediction = outputs(prediction)
    residual = y[:, None] - prediction
    levels = getattr(model, "levels_", None)
    if levels is None:
        return np.asarray(model.loss_.value(residual)[:, None])
    loss = Pinball if isinstance(model, QuantileRegressor) else SquaredPinball
    parts = [loss(level).value(residual[:, [j]]) for j, level in enumerate(levels)]
    return np.column_stack(parts)


def row_losses(model: Any, prediction: FloatArray, y: FloatArray) -> FloatArray:
    """Loss of each row, summed over the levels."""
    return np.asarray(column_losses(model, prediction, y).sum(axis=1))


def measure(pipeline: Any, X: Any, target: Any) -> Measures:
    """Loss, coverage, crossing and share of the loss explained, on a prepared table."""
    model = pipeline[-1]
    y = np.asarray(target, dtype=np.float64)
    prediction = pipeline.predict(X)
    losses = column_losses(model, prediction, y).mean(axis=0)
    coverage = np.mean(y[:, None] <= outputs(prediction), axis=0)
    of_levels = hasattr(model, "levels_")
    levels = [float(level) for level in model.levels_] if of_levels else [None]
    columns = [
        Column(level, float(covered), float(loss))
        for level, covered, loss in zip(levels, coverage, losses, strict=True)
    ]
    crossing = float(model.crossing_loss(pipeline[:-1].transform(X))) if of_levels else None
    score = float(pipeline.score(X, y)) if len(y) > 1 else None
    return Measures(len(y), columns, crossing, score, "D²" if of_levels else "R²")


__all__ = [
    "LOSS_NAMES",
    "Column",
    "Measures",
    "column_losses",
    "measure",
    "output_names",
    "outputs",
    "row_losses",
]
