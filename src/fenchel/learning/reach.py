"""Targets with far outliers moved nearer, for losses whose influence is bounded."""

from __future__ import annotations

import numpy as np

from fenchel._quantiles import least_quantile
from fenchel._typing import FloatArray
from fenchel.losses import Absolute, Loss

_TIMES = 5.0  # the distance that all but a few rows are within: of normal ones six deviations
_MOST = 0.2  # of the rows may be further away
_SINGLE = 0.1  # and a single value that no more rows have, where these would be none
_OF_MANY_EQUAL = 0.05  # where most rows have one value, the others are no outliers


def within_reach(loss: Loss, targets: FloatArray, weight: FloatArray) -> FloatArray:
    r"""Return targets, with those far from the median moved to a maximum distance from it.

    .. math:: |y_i - m| \le 5\, Q_{1 - q}(|y - m|)

    with m the median and Q the quantile, for each column. If the slopes of a loss are bounded,
    this changes neither a fit nor, except for a constant, its loss, as long as predictions stay
    below that distance. It does change the unit in which losses and kinks are measured. For other
    losses the targets are returned unchanged.

    The share q is 0.2; for quantiles it is half of the share beyond the outermost level, if that
    is less. With a tenth of the rows or fewer, a single value may always be farther away. If more
    than half of the rows are at the median, q is at most 0.05.

    Parameters
    ----------
    loss : Loss
    targets : ndarray of shape (n, p)
    weight : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n, p)

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning.reach import within_reach
    >>> from fenchel.losses import Absolute, Squared
    >>> y = np.append(np.arange(20.0), 1900.0)[:, None]
    >>> within_reach(Absolute(), y, np.ones(21))[-1]
    array([50.])
    >>> within_reach(Squared(), y, np.ones(21))[-1]
    array([1900.])
    """
    share = _share(loss, targets.shape[1])
    if share is None:
        return targets
    middle = Absolute().minimizing_offset(targets, weight)
    distance = np.abs(targets - middle)
    reach = np.array([_TIMES * _quantile(column, weight, share) for column in distance.T])
    reach[reach == 0.0] = np.inf
    if (distance <= reach).all():
        return targets
    return np.clip(targets, middle - reach, middle + reach)


def is_bounded(loss: Loss, n_targets: int) -> bool:
    """Whether the slopes of a loss are, so that a target far from all others matters little.

    Examples
    --------
    >>> from fenchel.learning.reach import is_bounded
    >>> from fenchel.losses import Huber, Squared
    >>> is_bounded(Huber(1.0), 1), is_bounded(Squared(), 1)
    (True, False)
    """
    return _share(loss, n_targets) is not None


def _share(loss: Loss, n_targets: int) -> float | None:
    """Share of rows that may be farther away, less than beyond any curve; None if not bounded."""
    box = loss.box(loss.n_outputs or n_targets)
    if box is None:
        return _MOST if np.isfinite(loss.lipschitz) else None
    if not (np.isfinite(box.lower).all() and np.isfinite(box.upper).all()):
        return None
    beyond = np.minimum(-box.lower, box.upper) / (box.upper - box.lower)
    return min(_MOST, 0.5 * float(beyond.min()))


def _quantile(distance: FloatArray, weight: FloatArray, share: float) -> float:
    """The smallest distance exceeded by at most this share of the rows."""
    total = weight.sum()
    if weight[distance == 0.0].sum() > 0.5 * total:
        share = min(share, _OF_MANY_EQUAL)
    single = weight[distance == distance.max()].sum()
    if single <= _SINGLE * total:
        share = max(share, single / total)
    return least_quantile(distance, weight, 1.0 - share)


def around_constant(loss: Loss, targets: FloatArray, weight: FloatArray) -> FloatArray:
    """Residuals of the best constant, (n, p)."""
    shape = (len(targets), loss.n_outputs or targets.shape[1])
    targets = np.broadcast_to(targets, shape)
    return np.asarray(targets - loss.minimizing_offset(targets, weight))


def is_perfect(loss: Loss, targets: FloatArray, weight: FloatArray) -> bool:
    """Whether the best constant has no loss: targets are constant, or all within a tube."""
    if np.ptp(targets, axis=0).max() == 0.0:
        return True
    return not float(weight @ loss.value(around_constant(loss, targets, weight))) > 0.0
