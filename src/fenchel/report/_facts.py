"""Contents of a report, as numbers and words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fenchel._typing import AnyArray, FloatArray
from fenchel._validation import check_dense
from fenchel.inspection import (
    FeatureTable,
    Importances,
    calibrated_estimator,
    certified_model,
    final_estimator,
    has_other_units,
    importances_of,
    levels_of,
    rows_for_final,
    statistic_of,
    target_name_of,
)
from fenchel.report._distance import Far, far_rows
from fenchel.report._intervals import IntervalScores, interval_scores
from fenchel.report._levels import Calibration, Crossings, calibration, crossings
from fenchel.report._scores import Score, measures_of, scores
from fenchel.report._training import Training

LEAST_UNSEEN = 30  # rows from which on scores are of those only that the fit has not seen


@dataclass(frozen=True)
class Column:
    """A feature: three quantiles of numbers, or the number of labels and the most frequent one."""

    name: str
    numbers: tuple[float, float, float] | None
    n_labels: int
    most_frequent: str


@dataclass(frozen=True)
class Facts:
    """Results for a fitted model on some rows; None or empty if they do not apply."""

    estimator: Any
    model: Any  # the regressor inside
    certified: Any  # the one inside of calibrated intervals, or the same
    data: str
    target: str
    outputs: tuple[str, ...]  # names of several targets; none of a single one
    n_rows: int
    n_seen: int | None  # how many of the rows were in the fit; None where that is not known
    scored: AnyArray  # positions of the rows that scores and calibration are of
    n_training: int | None
    training: Training | None
    same_rows: bool  # whether these are the rows of the fit, in their order
    levels: FloatArray | None
    statistic: str
    scores: list[Score]
    log_likelihood: float | None  # a row, of models that predict a distribution
    calibration: tuple[Calibration, ...]
    crossings: Crossings | None
    intervals: IntervalScores | None
    far: Far | None
    columns: list[Column]
    importances: Importances | None
    predictions: FloatArray = field(repr=False)
    targets: FloatArray = field(repr=False)
    warnings: list[str] = field(default_factory=list)  # what the caller has to say

    @property
    def kind_of_rows(self) -> str:
        """How the scored rows relate to the fit: held-out, training, mixed or unknown."""
        if self.n_seen is None:
            return "unknown"
        if self.n_seen == 0 or len(self.scored) < self.n_rows:
            return "held-out"
        return "training" if self.n_seen == self.n_rows else "mixed"


def gather(
    estimator: Any,
    X: Any,
    y: Any,
    training: Training | None,
    data: str,
    target: str | None,
    warnings: list[str],
) -> Facts:
    """Compute all results that apply to this model."""
    model = final_estimator(estimator)
    targets, predictions = _checked(estimator, X, y)
    curves = levels_of(model)
    seen = None
    if training is not None and training.recognizes(X):
        seen = training.seen(X, targets)
    scored = np.arange(len(targets))
    if seen is not None and LEAST_UNSEEN <= np.count_nonzero(~seen) < len(seen):
        scored = np.flatnonzero(~seen)
    kind, table = statistic_of(model), FeatureTable.of(X)
    outputs = _outputs(y, targets.shape[1])
    measures = measures_of(estimator, targets.shape[1], outputs)
    constants = _constants(training, measures, targets[scored])
    kept = getattr(model, "_kept", None)  # rows of positive weight
    n_kept = None if kept is None else len(kept)
    return Facts(
        estimator=estimator,
        model=model,
        certified=certified_model(model),
        data=data,
        target=_target(y, outputs) if target is None else target,
        outputs=outputs,
        n_rows=len(targets),
        n_seen=None if seen is None else int(np.count_nonzero(seen)),
        scored=scored,
        n_training=n_kept if training is None else training.n_rows,
        training=training,
        same_rows=training is not None and seen is not None and training.same(X, targets),
        levels=curves,
        statistic=kind,
        scores=scores(measures, predictions[scored], targets[scored], constants),
        log_likelihood=_log_likelihood(estimator, X, targets, scored),
        calibration=()
        if curves is None or kind == "expectiles"
        else calibration(curves, predictions[scored], targets[scored, 0]),
        crossings=None if curves is None or len(curves) < 2 else crossings(model, predictions),
        intervals=interval_scores(estimator, model, X, targets, scored),
        far=far_rows(certified_model(model), _rows_for_certified(estimator, X)),
        columns=[_column(table, j) for j in range(len(table.names))],
        importances=importances_of(estimator),
        predictions=predictions,
        targets=targets,
        warnings=list(warnings),
    )


def _outputs(y: Any, number: int) -> tuple[str, ...]:
    """Names of several targets; none of a single one."""
    if number == 1:
        return ()
    named = hasattr(y, "columns")
    return tuple(target_name_of(y, k) if named else f"output {k}" for k in range(number))


def _target(y: Any, outputs: tuple[str, ...]) -> str:
    """Name of the target, or of all."""
    return ", ".join(outputs) if outputs and hasattr(y, "columns") else target_name_of(y)


def _rows_for_certified(estimator: Any, X: Any) -> Any:
    """Rows in the form that the model with the certificate takes."""
    rows, inside = rows_for_final(estimator, X), calibrated_estimator(estimator)
    return rows if inside is None else rows_for_final(inside, rows)


def _log_likelihood(estimator: Any, X: Any, targets: FloatArray, rows: AnyArray) -> float | None:
    """Mean log-likelihood of the rows, for a model that has it."""
    model = final_estimator(estimator)
    if not hasattr(model, "log_likelihood") or has_other_units(estimator):
        return None
    some = rows_for_final(estimator, FeatureTable.of(X).rows(rows, {}))
    return float(model.log_likelihood(some, targets[rows, 0]))


def _checked(estimator: Any, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
    """Targets and predictions as matrices, or an error that says what does not fit."""
    if not hasattr(estimator, "predict"):
        raise ValueError(
            f"estimator must have a method predict, got {type(estimator).__name__} without one"
        )
    check_dense(X)
    shape = X.shape if hasattr(X, "shape") else np.shape(X)  # not of an array of all columns
    if len(shape) != 2:
        raise ValueError("X must be a table or an array with two dimensions, of rows and columns")
    targets = np.asarray(y, dtype=np.float64)
    if targets.ndim not in (1, 2) or targets.size == 0 or len(targets) != len(X):
        raise ValueError(
            f"y must have a target for each of the {len(X)} rows of X, got shape {targets.shape}"
        )
    if not np.all(np.isfinite(targets)):
        raise ValueError("y must be finite, and holds NaN or infinity")
    targets = targets.reshape(len(targets), -1)
    predictions = np.asarray(estimator.predict(X), dtype=np.float64).reshape(len(targets), -1)
    levels = levels_of(estimator)
    wanted = targets.shape[1] if levels is None else len(levels)
    if predictions.shape[1] != wanted or (levels is not None and targets.shape[1] > 1):
        raise ValueError(
            f"y must have as many columns as the estimator predicts, {predictions.shape[1]} "
            f"(one for a model of levels), got {targets.shape[1]}"
        )
    return targets, predictions


def _constants(
    training: Training | None, measures: list[Any], targets: FloatArray
) -> tuple[float, ...]:
    """Constants of the training rows or, if these are unknown, of the scored rows."""
    if training is None:
        return tuple(measure.constant(targets) for measure in measures)
    if len(training.constants) != len(measures):
        raise ValueError(
            f"training must be the record of this model's fit, with {len(measures)} constants, "
            f"got {len(training.constants)}"
        )
    return training.constants


def _column(table: FeatureTable, position: int) -> Column:
    name, values = table.names[position], table.columns[position]
    if table.has_numbers(position):
        known = values[~np.isnan(values)]
        if not known.size:
            return Column(name, None, 0, "–")
        low, middle, high = (float(v) for v in np.quantile(known, [0.0, 0.5, 1.0]))
        return Column(name, (low, middle, high), 0, "")
    labels, counts = np.unique(values.astype(str), return_counts=True)
    return Column(name, None, len(labels), str(labels[np.argmax(counts)]))
