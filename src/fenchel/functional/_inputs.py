"""What users may give as rows and curves, brought to arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._typing import FloatArray


def as_rows(X: Any) -> Any:
    """Flatten curves to one row each; leave other inputs as they are."""
    if hasattr(X, "grid_points") and hasattr(X, "data_matrix"):
        X = np.asarray(X.data_matrix, dtype=np.float64)
    if getattr(X, "ndim", 2) == 3:
        return np.reshape(X, (len(X), -1))
    return X


def is_array(y: Any) -> bool:
    """Whether curves are an array or a frame, which does not say on what grid they are.

    Parameters
    ----------
    y : array-like, list of pairs, FDataGrid or Curves
        What :func:`as_curves` takes.

    Returns
    -------
    bool
        False for lists of pairs and for objects with a grid of their own.

    Examples
    --------
    >>> from fenchel.functional import is_array
    >>> is_array([[0.0, 1.0]]), is_array([([0.0, 0.5], [1.0, 2.0])])
    (True, False)
    """
    if isinstance(y, list):
        return not (y and isinstance(y[0], tuple))
    return hasattr(y, "__array__") and not hasattr(y, "data_matrix")


def as_columns(y: Any) -> Any:
    if not is_array(y):
        return y
    values = np.asarray(y)
    return values[:, None] if values.ndim == 1 else values


def center_of(center: str | None, values: FloatArray, weight: FloatArray) -> FloatArray:
    """Mean or median curve, of what is observed at each point; zero where nothing is."""
    share = np.where(np.isnan(values), 0.0, weight[:, None])
    total = share.sum(axis=0)
    if center is None or not len(values):
        return np.zeros(values.shape[1])
    if center == "median":
        order = np.argsort(values, axis=0)  # what is missing comes last
        reached = np.cumsum(np.take_along_axis(share, order, axis=0), axis=0) >= 0.5 * total
        at = np.take_along_axis(order, reached.argmax(axis=0)[None], axis=0)
        return np.nan_to_num(np.take_along_axis(values, at, axis=0)[0])
    mean = (share * np.nan_to_num(values)).sum(axis=0)
    return np.asarray(np.divide(mean, total, where=total > 0.0, out=np.zeros_like(total)))
