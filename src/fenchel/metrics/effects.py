"""Importance of features: total effects (total Sobol indices) of predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.utils import check_array

from fenchel._sentences import said_of
from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import check_dense

_SHIFTS = 4
_PAIRS = 512  # of rows, that are enough
_ROUNDING = 1e-14  # of predictions: a spread below is that of a constant in floating point

IDLE = 1e-3
"""Importance below which a feature counts as unused."""


def total_effects(
    predict: Callable[[FloatArray], FloatArray],
    X: ArrayLike,
    groups: Sequence[Sequence[int]] | None = None,
) -> FloatArray:
    r"""Total effects: shares of the variance of predictions due to each feature.

    .. math:: T_j = \frac{\mathrm{E}\, (f(x) - f(x_{-j}, x'_j))^2}{2 \operatorname{Var} f(x)}

    where the value of feature j is taken from another row x'. A total effect includes interactions
    with other features. Features that the function does not use have 0. An interaction counts
    fully for each of its features, so the sum may exceed 1. With several outputs, effects are
    averaged over outputs. For predictions that are constant up to rounding all effects are zero.

    Parameters
    ----------
    predict : callable
        Function from rows (n, d) to predictions (n,) or (n, p).
    X : array-like of shape (n, d)
        Rows in random order. The rows that follow a row serve as x'.
    groups : sequence of sequences of int, optional
        Groups of column indices that are taken from another row together, such as the indicators
        of one categorical variable. By default each column is its own group.

    Returns
    -------
    ndarray of shape (d,) or (n_groups,)
        Total effects.

    Raises
    ------
    ValueError
        If X is not a matrix of finite numbers, or ``predict`` returns others.

    References
    ----------
    Jansen (1999), Analysis of variance designs for model output.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.metrics import total_effects
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> total_effects(lambda X: 2.0 * X[:, 0] + X[:, 1], X).round(1)
    array([0.8, 0.2, 0. ])
    >>> total_effects(lambda X: 2.0 * X[:, 0] + X[:, 1], X, [[0, 1], [2]]).round(1)
    array([1., 0.])
    """
    check_dense(X)
    with said_of("X"):
        rows = check_array(X, dtype=np.float64, input_name="X")
    n, d = rows.shape
    together = [[j] for j in range(d)] if groups is None else [list(group) for group in groups]
    whole = _predicted(predict, rows)
    variance = whole.var(axis=0) * (n / max(n - 1, 1))  # pairs are of two different rows
    least = (_ROUNDING * np.abs(whole).max(axis=0)) ** 2
    shifts = range(1, 1 + min(_SHIFTS, n - 1, max(_PAIRS // max(n, 1), 1)))
    squares = np.zeros((len(together), whole.shape[1]))
    for place, group in enumerate(together):
        if (rows[:, group] == rows[0, group]).all():
            continue
        changed = np.concatenate([rows] * len(shifts))
        changed[:, group] = np.concatenate([np.roll(rows[:, group], k, axis=0) for k in shifts])
        moved = _predicted(predict, changed).reshape(len(shifts), n, -1) - whole
        squares[place] = 0.5 * np.mean(moved**2, axis=(0, 1))
    shares = np.divide(squares, variance, out=np.zeros_like(squares), where=variance > least)
    return np.asarray(shares.mean(axis=1))


def _predicted(predict: Callable[[FloatArray], FloatArray], rows: FloatArray) -> FloatArray:
    """All outputs for the rows."""
    values = np.reshape(predict(rows), (len(rows), -1))
    if not np.isfinite(values).all():
        raise ValueError("predict must return finite numbers, got NaN or infinite ones")
    return values
