"""Mean squared errors of predicted curves, with two normalizations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray
from fenchel._validation import check_weights
from fenchel.functional._inputs import as_columns
from fenchel.functional.curves import Curves, as_curves


def curve_mse(y_true: Any, y_pred: Any, *, sample_weight: npt.ArrayLike | None = None) -> float:
    r"""Mean squared error of curves, summed over the points of each curve.

    .. math:: \mathrm{MSE} = \frac{1}{\sum_i s_i} \sum_i s_i \sum_{j=1}^{m_i}
              \bigl(y_i(\theta_{ij}) - \hat y_i(\theta_{ij})\bigr)^2

    It grows with the number of points; :func:`curve_nmse` does not.

    Parameters
    ----------
    y_true : array-like of shape (n, m) or (n,), list of pairs (θ, y), or FDataGrid
        Observed curves as in :func:`as_curves`. Unobserved points (NaN) are skipped.
    y_pred : array-like of shape (n, m) or (n,), list of pairs (θ, y), or FDataGrid
        Predictions at the points of ``y_true`` in the same format. For pairs they may also be an
        array with one column for each point of ``as_curves(y_true).grid``. Further points of
        pairs are skipped.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights s.

    Returns
    -------
    float
        Mean squared error in the squared units of y, >= 0; 0 is best.

    Raises
    ------
    TypeError, ValueError
        If the curves do not have the same points, or weights are negative or all zero.

    References
    ----------
    Lambert, Bouche, Szabó, d'Alché-Buc (2022), Functional output regression with infimal
    convolution: exploring the Huber and ε-insensitive losses, section 5.

    Examples
    --------
    >>> from fenchel.functional import curve_mse, curve_nmse
    >>> y_true, y_pred = [[1.0, 2.0], [3.0, 4.0]], [[1.0, 3.0], [3.0, 7.0]]
    >>> curve_mse(y_true, y_pred), curve_nmse(y_true, y_pred)
    (5.0, 2.5)
    """
    squares, weight, _ = _compared(y_true, y_pred, sample_weight)
    return float(np.average(squares, weights=weight))


def curve_nmse(y_true: Any, y_pred: Any, *, sample_weight: npt.ArrayLike | None = None) -> float:
    r"""Mean squared error of curves, :func:`curve_mse` over the number of points of a curve.

    .. math:: \mathrm{NMSE} = \frac{\mathrm{MSE}}{m}, \qquad
              m = \frac{\sum_i s_i m_i}{\sum_i s_i}

    In the literature all curves have m points. If the numbers differ, m is their mean.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        As in :func:`curve_mse`, which raises the same errors.

    Returns
    -------
    float
        Mean squared error in the squared units of y, >= 0; 0 is best.

    References
    ----------
    See :func:`curve_mse`.

    Examples
    --------
    >>> from fenchel.functional import curve_nmse
    >>> pairs = [([0.0, 0.5, 1.0], [1.0, 2.0, 3.0]), ([0.25], [0.0])]
    >>> curve_nmse(pairs, [([0.0, 0.5, 1.0], [1.0, 2.0, 5.0]), ([0.25], [2.0])])
    2.0
    """
    squares, weight, points = _compared(y_true, y_pred, sample_weight)
    return float(weight @ squares / (weight @ points))


def _compared(
    y_true: Any, y_pred: Any, sample_weight: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums of squared errors, weights and numbers of points of the curves, (n,) each."""
    with _called("y_true"):
        curves = as_curves(as_columns(y_true))
    predicted = _at_the_points(y_pred, curves)
    seen = ~np.isnan(curves.values)
    if not np.all(np.isfinite(predicted[seen])):
        raise ValueError(
            "y_pred must be finite wherever y_true is observed, got a value that is not"
        )
    errors = np.where(seen, curves.values - predicted, 0.0)
    weight = check_weights(curves.values, sample_weight)
    return np.einsum("ij,ij->i", errors, errors), weight, seen.sum(axis=1).astype(float)


@contextmanager
def _called(name: str) -> Iterator[None]:
    """Have what is said of curves Y said of an argument."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(re.sub(r"\bY\b", name, str(error))) from error


def _at_the_points(y_pred: Any, curves: Curves) -> FloatArray:
    """Predictions, (n, m)."""
    with _called("y_pred"):
        predicted = as_curves(as_columns(y_pred))
    if predicted.given != "array" and len(predicted.grid) > len(curves.grid):
        asked = np.isin(predicted.grid, curves.grid)  # y_true has no points where it is NaN
        predicted = replace(
            predicted, grid=predicted.grid[asked], values=predicted.values[:, asked]
        )
    same = predicted.given == "array" or np.array_equal(predicted.grid, curves.grid)
    if predicted.values.shape != curves.values.shape or not same:
        raise ValueError(
            f"y_pred must be of the {len(curves)} curves of y_true at their "
            f"{len(curves.grid)} points, got {len(predicted)} curves at {len(predicted.grid)} "
            f"{'points' if same else 'other points'}"
        )
    return predicted.values
