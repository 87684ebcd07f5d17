"""Starting points with shorter length scales: functions that change fast look like noise."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from fenchel._typing import FloatArray, IntArray

_SHORTER, _ALONE = (4.0, 16.0, 64.0), 32.0  # times: the usual scale is that of all rows
_MOST_ALONE = 12
_OF_CHANGING, _MOST_CHANGING = (16.0, 64.0), 3
_OTHERS, _SMALLER = 16.0, 10.0
_DEVIATIONS = 3.0


def shorter_points(start: FloatArray, bounds: FloatArray, scales: IntArray) -> FloatArray:
    """Points with all scales shorter, and with one of them shorter if these are not too many."""
    moves = [(scales, times) for times in _SHORTER if len(scales)]
    if 1 < len(scales) <= _MOST_ALONE:
        moves += [(scales[[j]], _ALONE) for j in range(len(scales))]
    return np.clip(_moved(start, moves), bounds[:, 0], bounds[:, 1])


def points_of_changing(
    start: FloatArray, bounds: FloatArray, scales: IntArray, X: FloatArray, targets: FloatArray
) -> FloatArray:
    """Points with a short scale for one column along which targets change, and else long ones.

    Alpha is smaller at these points, as such functions need it. All scales are shorter unless
    there is one for each column, or one for each column and one for its ranks.
    """
    columns = changing_columns(X, targets) if len(scales) else scales
    apart = len(scales) % X.shape[1] == 0
    moves = [
        (scales[j :: X.shape[1]] if apart else scales, times)
        for j in columns
        for times in _OF_CHANGING
    ]
    others = start.copy()
    others[scales] += np.log(_OTHERS)
    others[-1] -= np.log(_SMALLER)
    points = _moved(others, [(which, _OTHERS * times) for which, times in moves])
    return np.clip(points, bounds[:, 0], bounds[:, 1])


def changing_columns(X: FloatArray, targets: FloatArray) -> IntArray:
    """Columns along which neighbouring targets are alike, three at most.

    They are found by von Neumann's ratio (1941) of ranks: the mean square of the successive
    differences is twice the variance if the ranks are in random order, up to about 1/√n.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning.short_scales import changing_columns
    >>> X = np.random.default_rng(0).uniform(size=(500, 3))
    >>> changing_columns(X, np.sin(200.0 * X[:, [1]]))
    array([1])
    """
    ranks = rankdata(targets, axis=0)
    whole = 2.0 * float(ranks.var(axis=0).sum())
    ratio = np.full(X.shape[1], 1.0)
    for j, column in enumerate(X.T if whole > 0.0 else ()):
        steps = np.diff(ranks[np.argsort(column, kind="stable")], axis=0)
        ratio[j] = float((steps**2).mean(axis=0).sum()) / whole
    order = np.argsort(ratio, kind="stable")[:_MOST_CHANGING]
    return order[ratio[order] < 1.0 - _DEVIATIONS / np.sqrt(len(X))]


def _moved(start: FloatArray, moves: list[tuple[IntArray, float]]) -> FloatArray:
    """Points with some scales shorter by the given factors."""
    points = np.tile(start, (len(moves), 1))
    for point, (which, times) in zip(points, moves, strict=True):
        point[which] -= np.log(times)
    return points
