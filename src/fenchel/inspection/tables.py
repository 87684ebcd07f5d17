"""Tables by column, feature slices and partial dependence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import check_dense, shown
from fenchel.inspection.text import short_name

_BLOCK = 2**16  # rows predicted at a time
_LEAST_CROWD, _FEW, _HIDDEN = 10, 0.02, 4.0
_MOST_NAMED, _WIDTH = 3, 24  # features named in a note, and letters of each name


@dataclass(frozen=True)
class FeatureTable:
    """Columns of an array or DataFrame, by name and by position.

    Attributes
    ----------
    X : DataFrame or ndarray of shape (n_samples, n_features)
        The table.
    names : list of str
        Names of the columns; x0, x1, … for arrays.
    columns : list of ndarray
        Values of the columns.

    Examples
    --------
    >>> from fenchel.inspection import FeatureTable
    >>> table = FeatureTable.of([[1.0, 2.0], [3.0, 4.0]])
    >>> table.names, table.numbers(table.position("x1"))
    (['x0', 'x1'], array([2., 4.]))
    """

    X: Any
    names: list[str]
    columns: list[AnyArray]

    @classmethod
    def of(cls, X: Any) -> FeatureTable:
        """Read an array or a DataFrame; one of Polars is converted to pandas."""
        if not hasattr(X, "iloc") and hasattr(X, "to_pandas"):
            X = X.to_pandas()
        if hasattr(X, "iloc"):
            columns = [X.iloc[:, j].to_numpy() for j in range(X.shape[1])]
            return cls(X, [str(name) for name in X.columns], columns)
        check_dense(X)
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}")
        return cls(X, [f"x{j}" for j in range(X.shape[1])], list(X.T))

    def position(self, feature: int | str | None) -> int:
        """Position of a numeric feature; by default the first one."""
        numeric = [j for j in range(len(self.columns)) if self.has_numbers(j)]
        names = self.names
        if not numeric:
            raise ValueError("X must have a numeric feature to draw along, got none")
        if feature is None:
            return numeric[0]
        if isinstance(feature, str):
            if feature not in names:
                raise ValueError(
                    f"feature must be one of {', '.join(names)}, got {shown(feature)}"
                )
            place = names.index(feature)
        else:
            place = int(feature)
            if not 0 <= place < len(names):
                raise ValueError(f"feature must be in 0..{len(names) - 1}, got {shown(feature)}")
        if place not in numeric:
            raise ValueError(
                f"feature must be numeric to draw along it, got {shown(names[place])}"
            )
        return place

    def numbers(self, position: int) -> FloatArray:
        """The values of a numeric feature."""
        values = np.asarray(self.columns[position], dtype=np.float64)
        if not np.any(np.isfinite(values)):
            raise ValueError(f"{self.names[position]!r} must have a finite value, got none")
        return values

    def constant(self, position: int, n_points: int) -> tuple[Any, Any]:
        """The typical value of a column, and a column of the same kind with only this value."""
        values = self.columns[position]
        if self.has_numbers(position):
            typical = float(np.nanmedian(values))
            return typical, np.full(n_points, typical)
        labels, counts = np.unique(values.astype(str), return_counts=True)
        first = int(np.flatnonzero(values.astype(str) == labels[np.argmax(counts)])[0])
        index = np.full(n_points, first)
        frame = hasattr(self.X, "iloc")  # whose array knows its categories
        return values[first], self.X.iloc[index, position].array if frame else values[index]

    def has_numbers(self, position: int) -> bool:
        """Whether a column has numbers; categories are labels, even if they are numbers."""
        labels = hasattr(self.X, "iloc") and str(self.X.dtypes.iloc[position]) == "category"
        return not labels and _is_number(self.columns[position])

    def rows(self, index: IntArray, changed: dict[int, Any]) -> Any:
        """Select rows by position, with some columns changed, in the form of X."""
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


@dataclass(frozen=True)
class FeatureSlice:
    """Rows along one feature, with the other features at typical values.

    Attributes
    ----------
    rows : DataFrame or ndarray
        The rows, for ``predict``.
    grid : ndarray of shape (n_points,)
        Values of the feature in these rows.
    values : ndarray of shape (n_samples,)
        Values of the feature in the data.
    name : str
        Name of the feature.
    fixed : dict
        The values of the other features, by name.

    Examples
    --------
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.inspection import feature_slice
    >>> along = feature_slice(load_engel(as_frame=True).data, "income", grid_resolution=3)
    >>> along.name, along.rows.shape, along.fixed
    ('income', (3, 1), {})
    """

    rows: Any
    grid: FloatArray
    values: FloatArray
    name: str
    fixed: dict[str, Any]

    @property
    def note(self) -> str:
        """Text with the values of the other features; empty if there are none."""
        if not self.fixed:
            return ""
        if len(self.fixed) > _MOST_NAMED:
            return f"the other {len(self.fixed)} features at their median or most frequent value"
        parts = [
            f"{short_name(name, _WIDTH)} = "
            + (f"{value:.4g}" if isinstance(value, float) else short_name(value, _WIDTH))
            for name, value in self.fixed.items()
        ]
        return f"at {', '.join(parts)}"


def feature_slice(
    X: Any, feature: int | str | None = None, grid_resolution: int = 300
) -> FeatureSlice:
    """Make rows along a feature of a table, with the other features at typical values.

    The typical value is the median, or the most frequent value if a feature is not numeric.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n_samples, n_features)
        The data.
    feature : int or str, optional
        The feature; by default the first numeric one.
    grid_resolution : int, default=300
        Number of rows, evenly spaced from the smallest to the largest value of the feature. If
        there are outliers, half of the rows are in the :func:`robust_range`.

    Returns
    -------
    FeatureSlice

    Raises
    ------
    ValueError
        If the feature is unknown or not numeric.

    Examples
    --------
    >>> from fenchel.inspection import feature_slice
    >>> feature_slice([[0.0, 1.0], [4.0, 3.0], [5.0, 8.0]], grid_resolution=2).rows
    array([[0., 3.],
           [5., 3.]])
    """
    table = FeatureTable.of(X)
    chosen = table.position(feature)
    grid = _grid(table.numbers(chosen), grid_resolution)
    changed: dict[int, Any] = {chosen: grid}
    fixed: dict[str, Any] = {}
    for j, name in enumerate(table.names):
        if j != chosen:
            fixed[name], changed[j] = table.constant(j, grid_resolution)
    rows = table.rows(np.zeros(grid_resolution, dtype=np.intp), changed)
    return FeatureSlice(rows, grid, table.numbers(chosen), table.names[chosen], fixed)


@dataclass(frozen=True)
class PartialDependence:
    """Partial dependence of predictions on one feature.

    Attributes
    ----------
    grid, values, name
        As in :class:`FeatureSlice`.
    curves : ndarray of shape (n_points, n_outputs)
        Mean predictions.
    n_rows : int
        Number of rows in the averages.

    Examples
    --------
    >>> from fenchel import KernelRidge
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.inspection import partial_dependence
    >>> X, y = load_engel(return_X_y=True)
    >>> model = KernelRidge(learn=False).fit(X, y)
    >>> along = partial_dependence(model.predict, X, 0, grid_resolution=5)
    >>> along.curves.shape
    (5, 1)
    """

    grid: FloatArray
    curves: FloatArray
    values: FloatArray
    name: str
    n_rows: int


def partial_dependence(
    predict: Any,
    X: Any,
    feature: int | str | None = None,
    *,
    grid_resolution: int = 300,
    subsample: int = 1000,
    random_state: Any = 0,
) -> PartialDependence:
    r"""Compute the partial dependence of predictions on a feature.

    The feature is set to each value of a grid in all rows, and the predictions are averaged:

    .. math:: \frac1n \sum_i h(x_{i1}, \dots, x_{i,j-1}, t, x_{i,j+1}, \dots)

    Parameters
    ----------
    predict : callable
        Function of rows in the form of X.
    X, feature, grid_resolution
        As in :func:`feature_slice`.
    subsample : int, default=1000
        Maximum number of rows in the averages; if there are more, they are drawn at random.
    random_state : int, RandomState or None, default=0
        Seed of the random rows.

    Returns
    -------
    PartialDependence

    Raises
    ------
    ValueError
        If the feature is unknown or not numeric.

    References
    ----------
    Friedman (2001), Greedy function approximation, section 8.2.

    Examples
    --------
    >>> from fenchel.inspection import partial_dependence
    >>> X = [[0.0, 1.0], [1.0, 3.0]]
    >>> partial_dependence(lambda rows: rows.sum(axis=1), X, grid_resolution=2).curves
    array([[2.],
           [3.]])
    """
    if subsample < 1:
        raise ValueError(f"subsample must be at least 1, got {shown(subsample)}")
    table = FeatureTable.of(X)
    chosen = table.position(feature)
    values = table.numbers(chosen)
    grid = _grid(values, grid_resolution)
    sample = some_rows(len(values), subsample, random_state)
    means = []
    step = max(1, _BLOCK // len(sample))
    for start in range(0, len(grid), step):
        part = grid[start : start + step]
        rows = table.rows(np.tile(sample, len(part)), {chosen: part.repeat(len(sample))})
        predicted = np.asarray(predict(rows), dtype=np.float64)
        means.append(predicted.reshape(len(part), len(sample), -1).mean(axis=1))
    return PartialDependence(grid, np.concatenate(means), values, table.names[chosen], len(sample))


def some_rows(n: int, most: int, random_state: Any = 0) -> IntArray:
    """Positions of all rows, or of some drawn at random, in increasing order."""
    if n <= most:
        return np.arange(n)
    return np.sort(check_random_state(random_state).permutation(n)[:most])


def robust_range(values: FloatArray) -> tuple[float, float] | None:
    """Range of values without a few outliers that would hide the others in a picture.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Numbers; those that are not finite are ignored.

    Returns
    -------
    (float, float) or None
        The range of all but the outermost 2 % on either side, extended by half of its length but
        not beyond the range of all values. None if the range of all values is at most four times
        as wide, if the inner range is zero, or if there are fewer than ten values.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.inspection import robust_range
    >>> robust_range(np.append(np.arange(20.0), 1e6))
    (0.0, 28.0)
    >>> robust_range(np.arange(20.0)) is None
    True
    """
    ordered = np.sort(values[np.isfinite(values)])
    n = len(ordered)
    few = max(1, int(_FEW * n))
    if n < _LEAST_CROWD:
        return None
    low, high = float(ordered[few]), float(ordered[n - 1 - few])
    spread = high - low
    if not 0.0 < _HIDDEN * spread < float(ordered[-1] - ordered[0]):
        return None
    low, high = low - 0.5 * spread, high + 0.5 * spread
    return max(low, float(ordered[0])), min(high, float(ordered[-1]))


def _grid(values: FloatArray, n_points: int) -> FloatArray:
    """Evenly spaced grid; if most values lie in a narrow range, half of the points are there."""
    if n_points < 2:
        raise ValueError(f"grid_resolution must be at least 2, got {shown(n_points)}")
    finite = values[np.isfinite(values)]
    crowd = robust_range(finite)
    if crowd is None or n_points < _LEAST_CROWD:
        return np.linspace(finite.min(), finite.max(), n_points)
    inside = np.linspace(*crowd, n_points - n_points // 2)
    return np.sort(np.append(inside, np.linspace(finite.min(), finite.max(), n_points // 2)))


def _is_number(column: AnyArray) -> bool:
    return bool(np.issubdtype(column.dtype, np.number))
