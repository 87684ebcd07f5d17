"""What a fan is drawn from: a model's outputs along one feature, the others held fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._typing import AnyArray, FloatArray


@dataclass(frozen=True)
class Slice:
    """A grid along one feature, as rows for ``predict``, and the data it lies in."""

    rows: Any
    grid: FloatArray
    values: FloatArray
    name: str
    fixed: dict[str, Any]


def along(X: Any, feature: int | str | None, n_points: int) -> Slice:
    """Rows along a feature of a table or array, the other features at their typical values.

    Those are the median, or for what is not a number the most frequent value.
    """
    if n_points < 2:
        raise ValueError(f"grid_resolution must be at least 2, got {n_points!r}")
    frame = hasattr(X, "iloc")
    if not frame:
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}")
    names = [str(name) for name in X.columns] if frame else [f"x{j}" for j in range(X.shape[1])]
    columns = [X.iloc[:, j].to_numpy() if frame else X[:, j] for j in range(len(names))]
    chosen = _position(feature, names, columns)
    values = np.asarray(columns[chosen], dtype=np.float64)
    grid = np.linspace(values.min(), values.max(), n_points)
    others = [j for j in range(len(names)) if j != chosen]
    fixed = {names[j]: _typical(columns[j]) for j in others}
    if frame:
        rows = X.iloc[np.zeros(n_points, dtype=np.intp)].reset_index(drop=True)
        for j in others:
            rows[X.columns[j]] = _constant(X.iloc[:, j], fixed[names[j]], n_points)
        rows[X.columns[chosen]] = grid
    else:
        rows = np.empty((n_points, len(names)))
        rows[:, chosen] = grid
        for j in others:
            rows[:, j] = fixed[names[j]]
    return Slice(rows, grid, values, names[chosen], fixed)


def _position(feature: int | str | None, names: list[str], columns: list[AnyArray]) -> int:
    numeric = [j for j, column in enumerate(columns) if _is_number(column)]
    if not numeric:
        raise ValueError("a fan is drawn along a feature that is a number, and X has none")
    if feature is None:
        return numeric[0]
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"feature must be one of {', '.join(names)}, got {feature!r}")
        position = names.index(feature)
    else:
        position = int(feature)
        if not 0 <= position < len(names):
            raise ValueError(f"feature must be in 0..{len(names) - 1}, got {feature!r}")
    if position not in numeric:
        raise ValueError(f"feature must be a number to draw along, and {names[position]!r} is not")
    return position


def _is_number(column: AnyArray) -> bool:
    return bool(np.issubdtype(column.dtype, np.number))


def _typical(column: AnyArray) -> Any:
    if _is_number(column):
        return float(np.median(column))
    labels, counts = np.unique(column.astype(str), return_counts=True)
    first = np.flatnonzero(column.astype(str) == labels[np.argmax(counts)])[0]
    return column[first]


def _constant(column: Any, value: Any, n_points: int) -> Any:
    """A column of one value, of the same kind as the given one."""
    if _is_number(column.to_numpy()):
        return np.full(n_points, value)
    first = int(np.flatnonzero(column.to_numpy() == value)[0])
    return column.iloc[np.full(n_points, first)].to_numpy()


def describe_fixed(fixed: dict[str, Any]) -> str:
    """Say where the other features are held; empty if there are none."""
    if not fixed:
        return ""
    if len(fixed) > 3:
        return f"the other {len(fixed)} features at their median or most frequent value"
    parts = [
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in fixed.items()
    ]
    return f"at {', '.join(parts)}"


__all__ = ["Slice", "along", "describe_fixed"]
