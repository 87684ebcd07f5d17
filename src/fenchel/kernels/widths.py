"""Length scales read off the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from fenchel._typing import FloatArray

_MAX_ROWS = 1000


@dataclass(frozen=True)
class DistanceQuantile:
    """A length scale: a quantile of the positive distances between pairs of rows.

    A pair counts with the product of its sample weights, and rows at distance zero do not
    count, so that an integer weight is the same as repeating the row. Of more than 1000
    rows, a seeded subsample of 1000 is used.

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
        deviation = None
        if self.standardize:
            variance = np.average((X - np.average(X, 0, weights=weight)) ** 2, 0, weights=weight)
            constant = np.ptp(X[weight > 0], axis=0) == 0.0
            deviation = np.where(constant | (variance == 0.0), 1.0, np.sqrt(variance))
        rows = np.flatnonzero(weight)
        if len(rows) > _MAX_ROWS:
            random = check_random_state(0 if random_state is None else random_state)
            rows = rows[random.choice(len(rows), _MAX_ROWS, replace=False)]
        chosen = X[rows] if deviation is None else X[rows] / deviation
        length = _positive_quantile(chosen, weight[rows], self.q)
        return length if deviation is None else length * deviation


def _positive_quantile(X: FloatArray, weight: FloatArray, q: float) -> float:
    """Weighted quantile of the positive distances; 1 if there is none."""
    distance = pdist(X)
    positive = distance > 0.0
    if not positive.any():
        return 1.0
    if weight.min() == weight.max():
        # the smallest distance with at least a share q of the pairs at or below it
        distance = distance[positive]
        rank = max(int(np.ceil(q * len(distance) * (1.0 - 1e-12))) - 1, 0)
        return float(np.partition(distance, rank)[rank])
    first, second = np.triu_indices(len(X), 1)
    pair = (weight[first] * weight[second])[positive]
    distance = distance[positive]
    order = np.argsort(distance, kind="stable")
    share = np.cumsum(pair[order])
    rank = int(np.searchsorted(share, q * share[-1] * (1.0 - 1e-12)))
    return float(distance[order[min(rank, len(order) - 1)]])


NAMED_WIDTHS = {
    "median": DistanceQuantile(0.5),
    "scale": DistanceQuantile(0.5, standardize=True),
}
