"""What models predict, and what is reported of them on a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from fenchel._typing import FloatArray
from fenchel.inspection import certified_model, level_losses, levels_of, statistic_of
from fenchel.metrics import (
    crossing_loss,
    d2_score,
    interval_coverage,
    mean_interval_score,
    mean_interval_width,
    mean_loss,
    quantile_coverage,
)

_PREFIXES = {"quantiles": "q", "expectiles": "e"}
_MEDIAN = 0.5
LOSS_NAMES = {
    "QuantileRegressor": "pinball loss",
    "NonCrossingQuantileRegressor": "pinball loss",
    "ExpectileRegressor": "squared pinball loss",
    "SVR": "ε-insensitive loss",
    "KernelRidge": "squared loss",
    "HeteroscedasticRegressor": "minus log-likelihood",
    "DensityEstimator": "minus log-likelihood",
    "FunctionalRegressor": "squared loss",
}


@dataclass(frozen=True)
class Column:
    """What is known of one column of predictions."""

    level: float | None
    coverage: float | None
    loss: float


@dataclass(frozen=True)
class Measures:
    """What is known of all of them; ``intervals`` of calibrated ones, by name."""

    n_rows: int
    columns: list[Column]
    crossing_loss: float | None = None
    score: float | None = None
    score_name: str = "R²"
    intervals: dict[str, float] = field(default_factory=dict)


def output_names(model: Any) -> list[str]:
    """Names of the columns that ``predict`` of a model has."""
    levels = levels_of(model)
    if levels is None:
        return ["prediction"]
    prefix = _PREFIXES[statistic_of(model)]
    short = [f"{level:g}" for level in levels]
    if len(set(short)) < len(short):
        short = [repr(float(level)) for level in levels]
    return [f"{prefix}{level}" for level in short]


def predictions(
    pipeline: Any, rows: FloatArray, targets: list[str], ends: FloatArray | None = None
) -> dict[str, FloatArray]:
    """What a model says of encoded rows, by the names of the columns of a table.

    With the ends of intervals of another coverage than its own, if there are any.
    """
    columns = _predictions(pipeline, rows, targets, ends)
    return columns if ends is None else columns | {"lower": ends[:, 0], "upper": ends[:, 1]}


def _predictions(
    pipeline: Any, rows: FloatArray, targets: list[str], ends: FloatArray | None
) -> dict[str, FloatArray]:
    model = pipeline[-1]
    if hasattr(model, "score_samples"):
        return {"density": np.exp(model.score_samples(rows))}
    if hasattr(model, "conformity_scores_"):
        low, high = (model.predict_interval(rows) if ends is None else ends).T
        names = output_names(certified_model(pipeline))
        middle = names[0] if len(names) == 1 else names[0][0] + f"{_MEDIAN:g}"
        return {"lower": low, middle: model.predict(rows), "upper": high}
    if hasattr(model, "precision_model_"):
        mean, deviation = model.predict(rows, return_std=True)
        return {"mean": mean, "std": deviation}
    prediction = np.asarray(model.predict(rows))
    names = targets if len(targets) > 1 else output_names(model)
    return dict(zip(names, prediction.reshape(len(prediction), -1).T, strict=True))


def measure(pipeline: Any, X: Any, targets: Any) -> Measures:
    """What the model at the end of a pipeline is worth on a table, prepared or in files.

    There are no targets of densities.
    """
    model = pipeline[-1]
    rows = pipeline[:-1].transform(X)
    if hasattr(model, "score_samples"):
        values = model.score_samples(rows)
        return Measures(len(values), [Column(None, None, -float(values.mean()))])
    y = np.asarray(targets, dtype=np.float64)
    if hasattr(model, "precision_model_"):
        loss, score = -model.log_likelihood(rows, y), _r2(y, model.predict(rows))
        return Measures(len(y), [Column(None, None, loss)], score=score)
    if hasattr(model, "conformity_scores_"):
        return _of_intervals(pipeline, rows, y)
    if y.ndim > 1:
        loss = 0.5 * float(np.square(y - model.predict(rows)).mean())
        return Measures(len(y), [Column(None, None, loss)], score=float(model.score(rows, y)))
    return _of_predictions(model, np.asarray(model.predict(rows)), y)


def _of_predictions(model: Any, prediction: FloatArray, y: FloatArray) -> Measures:
    """Loss, coverage, crossing and share of the loss explained."""
    levels, losses = levels_of(model), level_losses(model)
    found = mean_loss(y, prediction, losses or [model.loss_], multioutput="raw_values")
    known = zip(
        [None] if levels is None else levels.tolist(),
        quantile_coverage(y, prediction).tolist(),
        np.asarray(found).tolist(),
        strict=True,
    )
    columns = [Column(*column) for column in known]
    if levels is None or losses is None:
        return Measures(len(y), columns, score=_r2(y, prediction))
    score = float(d2_score(y, prediction, losses)) if len(y) > 1 else None
    return Measures(len(y), columns, crossing_loss(prediction, levels), score, "D²")


def _of_intervals(pipeline: Any, rows: Any, y: FloatArray) -> Measures:
    """Of calibrated intervals, and of the model in them."""
    wrapper, model = pipeline[-1], certified_model(pipeline)
    ends, coverage = wrapper.predict_interval(rows), float(wrapper.coverage)
    found = {
        "coverage": float(interval_coverage(y, ends)),
        "mean_width": float(mean_interval_width(ends)),
        "score": float(mean_interval_score(y, ends, coverage=coverage)),
    }
    inner = _of_predictions(model, np.asarray(model.predict(rows)), y)
    return Measures(
        inner.n_rows, inner.columns, inner.crossing_loss, inner.score, inner.score_name, found
    )


def _r2(y: FloatArray, prediction: FloatArray) -> float | None:
    return float(r2_score(y, prediction)) if len(y) > 1 else None
