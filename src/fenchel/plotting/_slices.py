"""What pictures along a feature are drawn from: rows that differ in that feature only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel.plotting._style import short

_BLOCK = 2**16  # rows predicted at a time


@dataclass(frozen=True)
class Slice:
    """A grid along one feature, as rows for ``predict``, and the data it lies in."""

    rows: Any
    grid: FloatArray
    values: FloatArray
    name: str
    fixed: dict[str, Any]


@dataclass(frozen=True)
class Table:
    """Columns of an array or DataFrame, by name and by position."""

    X: Any
    names: list[str]
    columns: list[AnyArray]

    @classmethod
    def of(cls, X: Any) -> Table:
        """Read an array or a DataFrame."""
        if hasattr(X, "iloc"):
            columns = [X.iloc[:, j].to_numpy() for j in range(X.shape[1])]
            return cls(X, [str(name) for name in X.columns], columns)
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}")
        return cls(X, [f"x{j}" for j in range(X.shape[1])], list(X.T))

    def position(self, feature: int | str | None) -> int:
        """Where a feature that is a number stands; the first of them by default."""
        numeric = [j for j, column in enumerate(self.columns) if _is_number(column)]
        names = self.names
        if not numeric:
            raise ValueError("a picture is drawn along a feature that is a number, and X has none")
        if feature is None:
            return numeric[0]
        if isinstance(feature, str):
            if feature not in names:
                raise ValueError(f"feature must be one of {', '.join(names)}, got {feature!r}")
            place = names.index(feature)
        else:
            place = int(feature)
            if not 0 <= place < len(names):
                raise ValueError(f"feature must be in 0..{len(names) - 1}, got {feature!r}")
        if place not in numeric:
            raise ValueError(
                f"feature must be a number to draw along, and {names[place]!r} is not"
            )
        return place

    def numbers(self, position: int) -> FloatArray:
        """The values of a feature."""
        values = np.asarray(self.columns[position], dtype=np.float64)
        if not np.any(np.isfinite(values)):
            raise ValueError(f"{self.names[position]!r} must have a finite value, got none")
        return values

    def constant(self, position: int, n_points: int) -> tuple[Any, Any]:
        """The typical value of a column, and a column of nothing else, of the same kind."""
        values = self.columns[position]
        if _is_number(values):
            typical = float(np.nanmedian(values))
            return typical, np.full(n_points, typical)
        labels, counts = np.unique(values.astype(str), return_counts=True)
        first = int(np.flatnonzero(values.astype(str) == labels[np.argmax(counts)])[0])
        index = np.full(n_points, first)
        frame = hasattr(self.X, "iloc")  # whose array knows its categories
        return values[first], self.X.iloc[index, position].array if frame else values[index]

    def rows(self, index: IntArray, changed: dict[int, Any]) -> Any:
        """Rows by their positions, some columns changed, in the form of X."""
        if hasattr(self.X, "iloc"):
            made = self.X.iloc[index].reset_index(drop=True)
            for j, values in changed.items():
                made.isetitem(j, values)
            return made
        objects = self.X.dtype == object
        made = self.X[index].astype(object if objects else np.float64)
        for j, values in changed.items():
            made[:, j] = values
        return made


def along(X: Any, feature: int | str | None, n_points: int) -> Slice:
    """Rows along a feature of a table or array, the other features at their typical values.

    Those are the median, or for what is not a number the most frequent value.
    """
    table = Table.of(X)
    chosen = table.position(feature)
    grid = _grid(table.numbers(chosen), n_points)
    changed: dict[int, Any] = {chosen: grid}
    fixed: dict[str, Any] = {}
    for j, name in enumerate(table.names):
        if j != chosen:
            fixed[name], changed[j] = table.constant(j, n_points)
    rows = table.rows(np.zeros(n_points, dtype=np.intp), changed)
    return Slice(rows, grid, table.numbers(chosen), table.names[chosen], fixed)


@dataclass(frozen=True)
class Dependence:
    """Mean predictions over a sample of rows, along a grid of one feature."""

    grid: FloatArray
    curves: FloatArray
    values: FloatArray
    name: str
    n_rows: int


def averaged(
    predict: Any,
    X: Any,
    feature: int | str | None,
    n_points: int,
    subsample: int,
    random_state: Any,
) -> Dependence:
    """Partial dependence: the feature set to each grid point in all rows, predictions averaged."""
    if subsample < 1:
        raise ValueError(f"subsample must be at least 1, got {subsample!r}")
    table = Table.of(X)
    chosen = table.position(feature)
    values = table.numbers(chosen)
    grid = _grid(values, n_points)
    sample = np.arange(len(values))
    if len(sample) > subsample:
        sample = np.sort(check_random_state(random_state).permutation(len(values))[:subsample])
    means = []
    for part in _parts(grid, len(sample)):
        rows = table.rows(np.tile(sample, len(part)), {chosen: part.repeat(len(sample))})
        predicted = np.asarray(predict(rows), dtype=np.float64)
        means.append(predicted.reshape(len(part), len(sample), -1).mean(axis=1))
    return Dependence(grid, np.concatenate(means), values, table.names[chosen], len(sample))


def _parts(grid: FloatArray, n_rows: int) -> Iterator[FloatArray]:
    step = max(1, _BLOCK // n_rows)
    for start in range(0, len(grid), step):
        yield grid[start : start + step]


def _grid(values: FloatArray, n_points: int) -> FloatArray:
    if n_points < 2:
        raise ValueError(f"grid_resolution must be at least 2, got {n_points!r}")
    finite = values[np.isfinite(values)]
    return np.linspace(finite.min(), finite.max(), n_points)


def _is_number(column: AnyArray) -> bool:
    return bool(np.issubdtype(column.dtype, np.number))


def describe_fixed(fixed: dict[str, Any]) -> str:
    """Say where the other features are held; empty if there are none."""
    if not fixed:
        return ""
    if len(fixed) > 3:
        return f"the other {len(fixed)} features at their median or most frequent value"
    parts = [
        f"{short(name, 24)} = "
        + (f"{value:.4g}" if isinstance(value, float) else short(value, 24))
        for name, value in fixed.items()
    ]
    return f"at {', '.join(parts)}"


__all__ = ["Dependence", "Slice", "Table", "along", "averaged", "describe_fixed"]
