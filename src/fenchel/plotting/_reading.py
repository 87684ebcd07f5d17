"""What displays read off estimators and data: the fitted model inside, names, columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._typing import AnyArray, FloatArray

STATISTICS = {
    "QuantileRegressor": "quantiles",
    "NonCrossingQuantileRegressor": "quantiles",
    "ExpectileRegressor": "expectiles",
}


def final(estimator: Any) -> Any:
    """The model inside pipelines and searches."""
    for name in ("best_estimator_", "regressor_"):
        if hasattr(estimator, name):
            return final(getattr(estimator, name))
    return final(estimator[-1]) if hasattr(estimator, "steps") else estimator


def fitted(estimator: Any, *names: str, what: str) -> Any:
    """The model inside, which must have these attributes."""
    model = final(estimator)
    missing = [name for name in names if not hasattr(model, name)]
    if missing:
        raise ValueError(
            f"estimator must be fitted and have {' and '.join(names)}, {what}, "
            f"got {type(model).__name__} without {' and '.join(missing)}"
        )
    return model


def statistic(model: Any) -> str:
    """What the levels of a model are levels of."""
    elicited = getattr(getattr(model, "loss_", None), "statistic", None)
    if elicited in STATISTICS.values():
        return str(elicited)
    return STATISTICS.get(type(model).__name__, "levels")


def name_of(y: Any, output: int = 0) -> str:
    """Name of a target; "y" where it has none."""
    if hasattr(y, "columns"):
        return str(y.columns[output])
    name = getattr(y, "name", None)
    return "y" if name is None else str(name)


def column(y: Any, output: int = 0) -> FloatArray:
    """One target as numbers."""
    values: AnyArray = np.asarray(y, dtype=np.float64)
    return np.asarray(values if values.ndim == 1 else one_output(values, output)[:, 0])


def one_output(curves: FloatArray, output: int) -> FloatArray:
    """One column, as a matrix."""
    if not 0 <= output < curves.shape[1]:
        raise ValueError(f"output must be in 0..{curves.shape[1] - 1}, got {output!r}")
    return np.asarray(curves[:, [output]])


def matrix(values: Any, name: str) -> FloatArray:
    """Numbers with two dimensions; one dimension is one column."""
    array = np.asarray(values, dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} must have one or two dimensions, got shape {np.shape(values)}")
    return array


def vector(values: Any, name: str, length: int | None = None) -> FloatArray:
    """Numbers with one dimension, of a given length."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} must have {length} values, got {len(array)}")
    return array


def checked_levels(levels: Any, number: int) -> FloatArray:
    """One level in (0, 1) for each column of predictions."""
    array = vector(np.atleast_1d(levels), "levels", number)
    if not np.all((array > 0.0) & (array < 1.0)):
        raise ValueError(f"levels must be in (0, 1), got {levels!r}")
    return array


__all__ = [
    "STATISTICS",
    "checked_levels",
    "column",
    "final",
    "fitted",
    "matrix",
    "name_of",
    "one_output",
    "statistic",
    "vector",
]
