"""Coverage, width and score of prediction intervals."""

from __future__ import annotations

import numpy as np

from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import SHARE, check_levels, check_weights
from fenchel.metrics._checks import checked, only_column, predictions
from fenchel.metrics.levels import position_of_level


def interval_coverage(
    y_true: ArrayLike, intervals: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Coverage of intervals: the fraction of targets inside, bounds included.

    .. math:: \frac{1}{\sum_i s_i} \sum_i s_i\, 1(l_i \le y_i \le u_i)

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Targets.
    intervals : array-like of shape (n_samples, 2)
        Lower and upper bounds, as returned by ``predict_interval``; they may be infinite.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights s.

    Returns
    -------
    float
        Coverage in [0, 1].

    Raises
    ------
    ValueError
        If shapes do not agree.

    Examples
    --------
    >>> from fenchel.metrics import interval_coverage
    >>> interval_coverage([1.0, 2.0], [[0.0, 1.0], [3.0, 4.0]])
    0.5
    """
    targets, ends, weight = checked(y_true, _ends(intervals), sample_weight)
    y = only_column(targets, "y_true")
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    return float(np.average(inside, weights=weight))


def mean_interval_width(intervals: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    r"""Mean width of intervals, :math:`\sum_i s_i (u_i - l_i) / \sum_i s_i`.

    Parameters
    ----------
    intervals, sample_weight
        As in :func:`interval_coverage`.

    Returns
    -------
    float
        Mean width in the units of y.

    Examples
    --------
    >>> from fenchel.metrics import mean_interval_width
    >>> mean_interval_width([[0.0, 1.0], [3.0, 6.0]])
    2.0
    """
    ends = _ends(intervals)
    if np.isnan(ends).any():
        row = int(np.flatnonzero(np.isnan(ends).any(axis=1))[0])
        raise ValueError(f"intervals must be numbers, which may be infinite, got NaN in row {row}")
    weight = check_weights(ends, sample_weight)
    kept = weight > 0.0
    return float(np.average(ends[kept, 1] - ends[kept, 0], weights=weight[kept]))


def mean_interval_score(
    y_true: ArrayLike,
    intervals: ArrayLike,
    coverage: float,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Mean interval score: the width plus a penalty for targets outside the interval.

    .. math:: (u - l) + \frac{2}{\delta} \max(0, l - y) + \frac{2}{\delta} \max(0, y - u),
              \qquad \delta = 1 - \mathrm{coverage}

    Its expectation is minimized by the quantiles of the levels δ/2 and 1 - δ/2. It equals 2/δ
    times the sum of their pinball losses.

    Parameters
    ----------
    y_true, intervals, sample_weight
        As in :func:`interval_coverage`.
    coverage : float
        Nominal coverage of the intervals, in (0, 1).

    Returns
    -------
    float
        Mean score in the units of y; smaller is better.

    Raises
    ------
    ValueError
        If shapes do not agree or the coverage is not in (0, 1).

    References
    ----------
    Gneiting, Raftery (2007), Strictly proper scoring rules, prediction, and estimation, eq. (43).

    Examples
    --------
    >>> from fenchel.metrics import mean_interval_score
    >>> mean_interval_score([1.0, 2.0], [[0.0, 1.0], [3.0, 4.0]], 0.5)
    3.0
    """
    SHARE(coverage, "coverage")
    targets, ends, weight = checked(y_true, _ends(intervals), sample_weight)
    y, (low, high) = only_column(targets, "y_true"), ends.T
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return float(np.average(high - low + 2.0 / (1.0 - coverage) * outside, weights=weight))


def central_interval(
    y_pred: ArrayLike, levels: ArrayLike, coverage: float | None = None
) -> FloatArray:
    """Central interval for a coverage, from two predicted quantiles.

    Parameters
    ----------
    y_pred, levels
        As in :func:`crossing_amounts`.
    coverage : float, optional
        In (0, 1). The levels (1 - coverage)/2 and (1 + coverage)/2 must be among ``levels``. By
        default it is the coverage of the outermost pair of levels that is symmetric around 0.5.

    Returns
    -------
    ndarray of shape (n_samples, 2)
        Lower and upper bounds.

    Raises
    ------
    ValueError
        If the coverage is not in (0, 1), or its levels are not among ``levels``. Without a
        coverage, if no two levels are symmetric around 0.5.

    Examples
    --------
    >>> from fenchel.metrics import central_interval
    >>> central_interval([[1.0, 2.0, 5.0]], [0.1, 0.5, 0.9], 0.8)
    array([[1., 5.]])
    """
    prediction = predictions(y_pred)
    known = check_levels(levels, number=prediction.shape[1])
    share = SHARE(_widest(known) if coverage is None else coverage, "coverage")
    wanted = 0.5 * (1.0 - share), 0.5 * (1.0 + share)
    low, high = (position_of_level(known, level) for level in wanted)
    if low is None or high is None:
        raise ValueError(
            f"coverage={share:g} needs the levels {wanted[0]:g} and {wanted[1]:g}, but the fitted "
            f"levels are {known.tolist()}"
        )
    return prediction[:, [low, high]]


def _widest(levels: FloatArray) -> float:
    """Coverage of the outermost two levels that are as far from 0 as from 1."""
    for level in np.sort(levels[levels < 0.5]):
        if position_of_level(levels, 1.0 - level) is not None:
            return float(1.0 - 2.0 * level)
    raise ValueError(
        "levels must hold a pair around the median, such as 0.1 and 0.9, for an interval, got "
        f"{levels.tolist()}"
    )


def _ends(intervals: ArrayLike) -> FloatArray:
    ends = np.asarray(intervals, dtype=np.float64)
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise ValueError(
            f"intervals must have two columns, lower and upper ends, got shape {ends.shape}"
        )
    return ends
