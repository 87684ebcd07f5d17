"""Validation and conversion of the arguments of metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import check_levels, check_read, check_weights, shown
from fenchel.losses import Loss

MULTIOUTPUT = ("uniform_average", "raw_values")


def checked(
    y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Targets (n, 1) or (n, p), predictions (n, p) and weights (n,), of rows with weight > 0."""
    check_read(y_true, "y_true")
    y = check_array(y_true, ensure_2d=False, dtype=np.float64, input_name="y_true")
    y, prediction = y.reshape(len(y), -1), predictions(y_pred)
    check_consistent_length(y, prediction)
    if y.shape[1] not in (1, prediction.shape[1]):
        raise ValueError(
            f"y_true must have one column, or {prediction.shape[1]} as y_pred has, got "
            f"{y.shape[1]}"
        )
    weight = check_weights(y, sample_weight)
    kept = weight > 0.0  # infinite predictions times zero are not numbers
    return y[kept], prediction[kept], weight[kept]


def predictions(y_pred: ArrayLike) -> FloatArray:
    """Predictions as a matrix; they may be infinite."""
    values = np.asarray(y_pred, dtype=np.float64)
    if values.ndim not in (1, 2) or values.size == 0:
        raise ValueError(f"y_pred must have one or two dimensions, got shape {values.shape}")
    if np.isnan(values).any():
        raise ValueError("y_pred contains NaN: predictions may be infinite, but must be numbers")
    return values.reshape(len(values), -1)


def only_column(values: FloatArray, name: str) -> FloatArray:
    """The column of a matrix that must have one, (n,)."""
    if values.shape[1] != 1:
        raise ValueError(f"{name} must have one column, got {values.shape[1]}")
    return values[:, 0]


def losses_of(loss: Callable[[float], Loss], levels: Any, y_pred: ArrayLike) -> list[Loss]:
    """The loss of the level of each column of predictions."""
    return [loss(each) for each in check_levels(levels, number=predictions(y_pred).shape[1])]


def parts(
    y: FloatArray, prediction: FloatArray, loss: Loss | Sequence[Loss]
) -> list[tuple[Loss, FloatArray, FloatArray]]:
    """Each loss with the columns of targets and predictions that it is of."""
    if isinstance(loss, Loss):
        return [(loss, np.broadcast_to(y, prediction.shape), prediction)]
    if len(loss) != prediction.shape[1]:
        raise ValueError(
            f"loss must be one, or one for each of the {prediction.shape[1]} columns of y_pred, "
            f"got {len(loss)}"
        )
    if y.shape[1] > 1:
        raise ValueError(
            f"y_true must have one column where there is a loss for each column of y_pred, got "
            f"{y.shape[1]}"
        )
    return [(one, y, prediction[:, [j]]) for j, one in enumerate(loss)]


def averaged(values: FloatArray, multioutput: str) -> float | FloatArray:
    """One value for each column, or their mean."""
    if not isinstance(multioutput, str) or multioutput not in MULTIOUTPUT:
        raise ValueError(f"multioutput must be one of {MULTIOUTPUT}, got {shown(multioutput)}")
    return values if multioutput == "raw_values" else float(values.mean())
