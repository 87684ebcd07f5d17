"""A kernel of the features and of their ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from fenchel._typing import FloatArray
from fenchel._validation import NONE, NUMBERS, That, declared
from fenchel.kernels.of_seen import OfSeen

_KNOTS = 129  # of a distribution function, at most: less than a percent apart


def _are_columns(value: Any) -> bool:
    if NUMBERS.error(value) is not None:
        return False
    columns = np.asarray(value)
    whole = columns.size == 0 or columns.dtype.kind in "iu"
    return columns.ndim == 1 and whole and bool((columns >= 0).all())


def _are_knots(value: Any) -> bool:
    if NUMBERS.error(value) is not None:
        return False
    knots = np.asarray(value)
    shaped = knots.ndim == 3 and knots.shape[1] == 2 and knots.shape[2] > 0
    return shaped and bool((np.diff(knots, axis=2) >= 0.0).all())


class WithRanks(OfSeen):
    r"""Kernel of the columns of X and of their ranks.

    .. math:: k(x, x') = k_0\big((x, F(x)),\, (x', F(x'))\big), \qquad
              F_j(x) = \text{share of rows with a smaller value in column } j

    Each column and each column of ranks has its own length scale. The metric of a feature is thus
    a mixture of differences and of shares of rows between two values, and features with long tails
    need no transformation. Rows that have the value itself count one half. F is piecewise linear
    with at most 129 knots, and constant outside the knots. Columns with two values have no ranks.

    Parameters
    ----------
    kernel : kernel
        The kernel :math:`k_0`.
    columns : array-like of int, optional
        Columns to which ranks are added; by default those with more than two values in the data.
    knots : array-like of shape (n_columns, 2, n_knots), optional
        Values and F at these values for each of the columns, both non-decreasing. Computed from
        the data by default.

    Raises
    ------
    TypeError, ValueError
        On ``resolve``, if X does not have these columns, or if ``knots`` is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, WithRanks, resolve
    >>> X = np.array([[1.0], [10.0], [100.0], [1000.0]])
    >>> resolve(WithRanks(Gaussian()), X).seen(X)[:, 1]
    array([0.125, 0.375, 0.625, 0.875])
    """

    constraints = declared(
        columns=NONE | That("a list of numbers of columns, from 0", _are_columns),
        knots=NONE | That("an array (n_columns, 2, n_knots) in increasing order", _are_knots),
    )

    def __init__(self, kernel: Kernel, columns: Any = None, knots: Any = None) -> None:
        self.kernel = kernel
        self.columns = columns
        self.knots = knots

    def measure(self, X: FloatArray, sample_weight: FloatArray | None) -> None:
        """Compute columns and knots from the rows."""
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        X, weight = X[weight > 0.0], weight[weight > 0.0]
        if self.columns is None:
            two = (X.min(axis=0) == X) | (X.max(axis=0) == X)
            self.columns = np.flatnonzero(~two.all(axis=0))
        last = np.max(self.columns, initial=-1)
        if last >= X.shape[1]:
            raise ValueError(f"columns must be from 0 to {X.shape[1] - 1}, got {last}")
        if self.knots is None:
            knots = [_distribution(X[:, j], weight) for j in self.columns]
            self.knots = np.reshape(knots, (len(knots), 2, _KNOTS))
        if len(self.knots) != len(self.columns):
            raise ValueError(
                f"knots must be given for each of the {len(self.columns)} columns that have "
                f"ranks, got {len(self.knots)}"
            )

    def seen(self, X: FloatArray) -> FloatArray:
        """Return the rows followed by their ranks, (n, d + n_columns)."""
        if self.columns is None or self.knots is None:
            raise ValueError(
                "columns and knots are read off data: fit an estimator, or call "
                "fenchel.kernels.resolve(kernel, X) first"
            )
        pairs = zip(np.asarray(self.columns, dtype=np.intp), np.asarray(self.knots), strict=True)
        ranks = [np.interp(X[:, j], *knots) for j, knots in pairs]
        return np.column_stack([X, *ranks])


def _distribution(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Values and their mid-ranks, (2, m): all of few, else some at equal steps of rank."""
    order = np.argsort(values, kind="stable")
    values, weight = values[order], weight[order]
    first = np.flatnonzero(np.append(True, np.diff(values) > 0.0))
    share = np.add.reduceat(weight, first)
    above = np.cumsum(share)
    values, ranks = values[first], (above - 0.5 * share) / above[-1]
    steps = np.linspace(ranks[0], ranks[-1], _KNOTS)
    chosen = np.unique(np.searchsorted(ranks, steps).clip(0, len(ranks) - 1))
    chosen = np.arange(len(values)) if len(values) <= _KNOTS else chosen
    padded = np.append(chosen, np.full(_KNOTS - len(chosen), chosen[-1]))
    return np.stack([values[padded], ranks[padded]])
