"""Length scales read off the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.utils import check_random_state

from fenchel._typing import FloatArray

_ALL_PAIRS_ROWS = 1000
_RANDOM_PAIRS = 100_000


@dataclass(frozen=True)
class DistanceQuantile:
    """A length scale: a quantile of the positive distances between pairs of rows.

    A pair counts with the product of its sample weights, and rows at distance zero do not
    count, so that an integer weight is the same as repeating the row. Of more than 1000
    rows, 100 000 seeded random pairs are used.

    Parameters
    ----------
    q : float
        Level of the quantile, in [0, 1]; 0.7 in Sangnier et al. (2016, 2017).
    standardize : bool
        If True, distances are taken after dividing each feature by its standard deviation,
        and the result is one length scale for each feature: deviation times quantile.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import DistanceQuantile
    >>> DistanceQuantile(0.5).measure(np.array([[0.0], [1.0], [3.0]]))
    2.0
    """

    q: float = 0.5
    standardize: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.q <= 1.0:
            raise ValueError(f"q must be in [0, 1], got {self.q!r}")

    def measure(
        self,
        X: FloatArray,
        sample_weight: FloatArray | None = None,
        random_state: Any = None,
    ) -> float | FloatArray:
        """Return the length scale of these rows: a number, or (n_features,) if standardized."""
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        deviation = _deviations(X, weight) if self.standardize else None
        rows = np.flatnonzero(weight)
        chosen = X[rows] if deviation is None else X[rows] / deviation
        distance, pair_weight = _pairs(chosen, weight[rows], random_state)
        length = _positive_quantile(distance, pair_weight, self.q)
        return length if deviation is None else length * deviation


def _pairs(
    X: FloatArray, weight: FloatArray, random_state: Any
) -> tuple[FloatArray, FloatArray | None]:
    """Distances of pairs of rows and their weights, None if all are equal."""
    n = len(X)
    uniform = weight.min() == weight.max()
    if n <= _ALL_PAIRS_ROWS:
        if uniform:
            return pdist(X), None
        first, second = np.triu_indices(n, 1)
        return pdist(X), weight[first] * weight[second]
    random = check_random_state(0 if random_state is None else random_state)
    first = random.randint(0, n, _RANDOM_PAIRS)
    second = (first + random.randint(1, n, _RANDOM_PAIRS)) % n
    difference = X[first] - X[second]
    distance = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return distance, None if uniform else weight[first] * weight[second]


def _deviations(X: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted standard deviation of each feature; 1 for constant ones."""
    heavy = weight > 0.0
    if not heavy.all():
        X, weight = X[heavy], weight[heavy]
    even = weight.min() == weight.max()
    centred = X - np.average(X, 0, weights=None if even else weight)
    np.multiply(centred, centred, out=centred)
    variance = np.average(centred, 0, weights=None if even else weight)
    constant = (X.min(axis=0) == X.max(axis=0)) | (variance == 0.0)  # the mean may be rounded
    return np.where(constant, 1.0, np.sqrt(variance))


def _positive_quantile(X: FloatArray, weight: FloatArray, q: float) -> float:
    """Weighted quantile of the positive distances; 1 if there is none.

    It is the smallest distance with at least a share q of the weight at or below it.
    """
    distance = pdist(X)
    positive = distance > 0.0
    if not positive.any():
        return 1.0
    distance = distance[positive]
    if weight.min() == weight.max():
        rank = max(int(np.ceil(q * len(distance) * (1.0 - _ROUNDING))) - 1, 0)
        return float(np.partition(distance, rank)[rank])
    pair = squareform(np.outer(weight, weight), checks=False)[positive]
    return _weighted_quantile(distance, pair, q)


def _weighted_quantile(values: FloatArray, weight: FloatArray, q: float) -> float:
    """Smallest value with at least a share q of the weight at or below it.

    One pass finds the bin where it lies, so that only the values in there are sorted.
    """
    low, high = values.min(), values.max()
    cell = np.minimum((values - low) * (_BINS / max(high - low, np.finfo(float).tiny)), _BINS - 1)
    cell = cell.astype(np.intp)
    share = np.cumsum(np.bincount(cell, weight, _BINS))
    goal = q * share[-1] * (1.0 - _ROUNDING)
    chosen = int(np.searchsorted(share, goal)) if goal > 0.0 else int(cell.min())
    inside = np.flatnonzero(cell == chosen)
    inside = inside[np.argsort(values[inside], kind="stable")]
    below = share[chosen - 1] if chosen else 0.0
    rank = int(np.searchsorted(below + np.cumsum(weight[inside]), goal))
    return float(values[inside[min(rank, len(inside) - 1)]])


NAMED_WIDTHS = {
    "median": DistanceQuantile(0.5),
    "scale": DistanceQuantile(0.5, standardize=True),
}
