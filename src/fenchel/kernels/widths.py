"""Data-driven length scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform

from fenchel._quantiles import least_quantile
from fenchel._typing import FloatArray
from fenchel._validation import random_of, shown
from fenchel.kernels.sparse import SparsePoints

_ALL_PAIRS_ROWS = 1000
_RANDOM_PAIRS = 100_000


@dataclass(frozen=True)
class DistanceQuantile:
    """Length scale: a quantile of the positive distances between pairs of rows.

    The weight of a pair is the product of its sample weights, and pairs at distance zero are
    ignored. An integer weight is therefore equivalent to repeating the row. With more than
    1000 rows, 100 000 seeded random pairs are used.

    Parameters
    ----------
    q : float
        Level of the quantile, in [0, 1]; 0.7 in Sangnier et al. (2016, 2017).
    standardize : bool or "range"
        If True, each feature is divided by its standard deviation before distances are
        computed, with ``"range"`` by its range. The result is one length scale for each
        feature: what it was divided by, times the quantile.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import DistanceQuantile
    >>> DistanceQuantile(0.5).measure(np.array([[0.0], [1.0], [3.0]]))
    2.0
    """

    q: float = 0.5
    standardize: bool | str = False

    def __post_init__(self) -> None:
        if not (isinstance(self.standardize, bool) or self.standardize == "range"):
            raise ValueError(
                f"standardize must be True, False or 'range', got {shown(self.standardize)}"
            )
        if not 0.0 <= self.q <= 1.0:
            raise ValueError(f"q must be in [0, 1], got {shown(self.q)}")

    def measure(
        self, X: Any, sample_weight: FloatArray | None = None, random_state: Any = None
    ) -> float | FloatArray:
        """Return the length scale for these rows: a number, or (n_features,) if standardized."""
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        measured = _ranges if self.standardize == "range" else _deviations
        deviation = measured(X, weight) if self.standardize else None
        if isinstance(X, SparsePoints):
            unit, X = 1.0, X if deviation is None else X.over(deviation)
        else:
            unit = 1.0 if self.standardize else _power_of_two(np.abs(X).max())
            X = X / unit
        distance, pair_weight = _pairs(X, weight, deviation, random_state)
        length = _positive_quantile(unit * distance, pair_weight, self.q)
        return length if deviation is None else length * deviation


def _power_of_two(sizes: Any) -> Any:
    """The power of two next to each size, in units of which squares do not vanish."""
    return np.ldexp(1.0, np.where(sizes > 0.0, np.frexp(sizes)[1], 0))


def _pairs(
    X: FloatArray | SparsePoints,
    weight: FloatArray,
    deviation: FloatArray | None,
    random_state: Any,
) -> tuple[FloatArray, FloatArray | None]:
    """Distances of pairs of rows in units of ``deviation``, and their weights if not all equal.

    All pairs of few rows, random pairs of many. Sparse rows are in these units already.
    """
    rows = np.arange(len(weight))
    if not weight.all():
        rows = np.flatnonzero(weight)
        weight = weight[rows]
    n = len(rows)
    uniform = weight.min() == weight.max()
    if n <= _ALL_PAIRS_ROWS:
        pair = None if uniform else squareform(np.outer(weight, weight), checks=False)
        if isinstance(X, SparsePoints):
            kept = X[rows]
            return np.sqrt(squareform(kept.squared_distances(kept), checks=False)), pair
        chosen: Any = X[rows] if deviation is None else X[rows] / deviation
        return pdist(chosen), pair
    random = random_of(random_state)
    first = random.randint(0, n, _RANDOM_PAIRS)
    second = first + random.randint(1, n, _RANDOM_PAIRS)
    second[second >= n] -= n
    chosen = X if n == len(X) else X[rows]
    pair = None if uniform else weight[first] * weight[second]
    if isinstance(chosen, SparsePoints):
        return np.sqrt(chosen.squares_of_pairs(first, chosen, second)), pair
    difference = np.take(chosen, first, axis=0)
    difference -= np.take(chosen, second, axis=0)
    if deviation is not None:
        difference /= deviation
    if difference.shape[1] == 1:
        distance = np.abs(difference[:, 0])
    else:
        distance = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return distance, pair


def _deviations(X: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted standard deviation of each feature; 1 for constant ones."""
    if isinstance(X, SparsePoints):
        return X.deviations(weight)
    heavy = weight > 0.0
    if not heavy.all():
        X, weight = X[heavy], weight[heavy]
    weights = None if weight.min() == weight.max() else weight
    centred = X - np.average(X, 0, weights=weights)
    unit = _power_of_two(np.abs(centred).max(axis=0))
    centred /= unit
    np.multiply(centred, centred, out=centred)
    variance = np.average(centred, 0, weights=weights)
    constant = (X.min(axis=0) == X.max(axis=0)) | (variance == 0.0)  # the mean may be rounded
    return np.where(constant, 1.0, unit * np.sqrt(variance))


def _ranges(X: FloatArray | SparsePoints, weight: FloatArray) -> FloatArray:
    """Range of each feature over rows of positive weight; 1 for constant ones."""
    if isinstance(X, SparsePoints):
        return X.ranges(weight)
    heavy = weight > 0.0
    if not heavy.all():
        X = X[heavy]
    found = np.ptp(X, axis=0)
    return np.where(found > 0.0, found, 1.0)


def _positive_quantile(distance: FloatArray, weight: FloatArray | None, q: float) -> float:
    """Smallest distance with at least a share q of the positive ones at or below it.

    1 if none is positive.
    """
    positive = distance > 0.0
    if not positive.any():
        return 1.0
    return least_quantile(distance[positive], None if weight is None else weight[positive], q)


LEARNED = "learned"
"""A length scale for each feature, which estimators that learn choose, and others measure."""
SHARED = "shared"
"""The same with one factor for all of them, on their standard deviations."""
SHARED_RANGE = "shared_range"
"""The same on their ranges."""

NAMED_WIDTHS = {
    LEARNED: DistanceQuantile(0.5, standardize=True),
    "median": DistanceQuantile(0.5),
    "scale": DistanceQuantile(0.5, standardize=True),
    SHARED: DistanceQuantile(0.5, standardize=True),
    SHARED_RANGE: DistanceQuantile(0.5, standardize="range"),
}


def is_data_driven(value: Any) -> bool:
    """Whether a length scale still has to be computed from data."""
    return isinstance(value, DistanceQuantile) or (
        isinstance(value, str) and value in NAMED_WIDTHS
    )


def is_learned(value: Any) -> bool:
    """Whether a length scale is chosen by estimators that learn."""
    return isinstance(value, str) and (value == LEARNED or is_shared(value))


def is_shared(value: Any) -> bool:
    """Whether one factor is learned for the length scales of all features.

    Examples
    --------
    >>> from fenchel.kernels import is_shared
    >>> is_shared("shared_range"), is_shared("learned")
    (True, False)
    """
    return isinstance(value, str) and value in (SHARED, SHARED_RANGE)


def check_measured(value: Any) -> None:
    """Raise ValueError if a length scale still has to be computed from data."""
    if is_data_driven(value):
        raise ValueError(
            f"length_scale={value!r} is read off data: fit an estimator, or call "
            "fenchel.kernels.resolve(kernel, X) first"
        )


def check_scale_or_rule(value: Any, name: str = "length_scale") -> None:
    """Raise an error if a length scale is neither numerical nor a valid rule."""
    if not is_data_driven(value):
        check_length_scale(value)


def check_bounds(value: Any, name: str = "length_scale_bounds") -> None:
    """Raise ValueError if bounds are not None, "fixed" or ordered positive pairs."""
    if value is None or (isinstance(value, str) and value == "fixed"):
        return
    try:
        bounds = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        bounds = np.empty(0)
    pairs = bounds.ndim in (1, 2) and bounds.size > 0 and bounds.shape[-1] == 2
    if not (pairs and bounds.min() > 0.0 and np.all(bounds[..., 0] <= bounds[..., 1])):
        raise ValueError(
            f"{name} must be None, 'fixed', or a pair of numbers 0 < low <= high, or one for each "
            f"feature, got {shown(value)}"
        )


def check_length_scale(value: Any, n_features: int | None = None) -> float | FloatArray:
    """Return a length scale as a number or array, or raise an error that says what is allowed."""
    try:
        given = np.asarray(value)
        array = given.astype(np.float64) if given.dtype.kind in "iuf" else np.array(np.nan)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim > 1 or not np.all(np.isfinite(array)) or not np.all(array > 0.0):
        names = ", ".join(repr(name) for name in NAMED_WIDTHS)
        raise ValueError(
            f"length_scale must be a positive number, an array of them, {names} or a "
            f"DistanceQuantile, got {shown(value)}"
        )
    if array.ndim == 1 and n_features is not None and len(array) != n_features:
        raise ValueError(
            f"length_scale must have one entry for each of the {n_features} features, "
            f"got {len(array)}"
        )
    return array if array.ndim else float(array)
