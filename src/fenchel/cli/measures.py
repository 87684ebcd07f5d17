"""What is reported of a model on a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel.inspection import level_losses, levels_of, statistic_of
from fenchel.metrics import crossing_loss, mean_loss, quantile_coverage

_PREFIXES = {"quantiles": "q", "expectiles": "e"}
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


def output_names(model: Any) -> list[str]:
    """Names of the columns of predictions."""
    levels = levels_of(model)
    if levels is None:
        return ["prediction"]
    prefix = _PREFIXES[statistic_of(model)]
    return [f"{prefix}{level:g}" for level in levels]


def measure(pipeline: Any, X: Any, target: Any) -> Measures:
    """Loss, coverage, crossing and share of the loss explained, on a prepared table."""
    model = pipeline[-1]
    y = np.asarray(target, dtype=np.float64)
    prediction = pipeline.predict(X)
    levels = levels_of(model)
    losses = level_losses(model) or [model.loss_]
    known = zip(
        [None] if levels is None else levels.tolist(),
        quantile_coverage(y, prediction).tolist(),
        np.asarray(mean_loss(y, prediction, losses, multioutput="raw_values")).tolist(),
        strict=True,
    )
    crossing = None if levels is None else crossing_loss(prediction, levels)
    score = float(pipeline.score(X, y)) if len(y) > 1 else None
    score_name = "R²" if levels is None else "D²"
    return Measures(len(y), [Column(*column) for column in known], crossing, score, score_name)
