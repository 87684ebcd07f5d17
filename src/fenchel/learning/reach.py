"""Targets with far outliers moved nearer, and the units in which alpha is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Product

from fenchel._quantiles import least_quantile
from fenchel._typing import FloatArray
from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, summands_of
from fenchel.losses import Absolute, Loss

_TIMES = 5.0  # the distance that all but a few rows are within: of normal ones six deviations
_MOST = 0.2  # of the rows may be further away
_SINGLE = 0.1  # and a single value that no more rows have, where these would be none
_ROUNDING = 1e-13  # of a mean of kernel values
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


def unit_of_strength(loss: Loss, targets: FloatArray, weight: FloatArray) -> float:
    """Mean loss over mean square around the best constant: the unit of alpha over the kernel's.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning import unit_of_strength
    >>> from fenchel.losses import Squared
    >>> unit_of_strength(Squared(), np.array([[1.0], [3.0]]), np.ones(2))
    0.5
    """
    centred = around_constant(loss, within_reach(loss, targets, weight), weight)
    value = float(np.average(loss.value(centred), weights=weight))
    square = float(np.average(np.mean(centred**2, axis=1), weights=weight))
    return value / square if value > 0.0 and square > 0.0 else 1.0


def size_of_functions(kernel: Any, X: FloatArray, few: FloatArray, fit_intercept: bool) -> float:
    """Mean square at rows of functions of norm one, without the part that an offset absorbs.

    That part is subtracted if the kernel is not stationary, as functions may then be large and
    nearly constant: for example linear ones far from zero. A few of the rows are used.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Linear
    >>> from fenchel.learning.reach import size_of_functions
    >>> X = np.array([[1999.0], [2001.0]])
    >>> size_of_functions(Linear(), X, X, fit_intercept=True)
    1.0
    """
    size = float(np.mean(kernel.diag(X)))
    if fit_intercept and not kernel.is_stationary():
        whole = float(np.mean(kernel.diag(few)))
        left = whole - float(np.mean(kernel(few)))
        size *= left / whole if left > _ROUNDING * whole else 1.0
    return size or 1.0


def sizes_of_summands(
    kernel: Any, X: FloatArray, few: FloatArray, fit_intercept: bool
) -> list[float]:
    """The same for each summand of a kernel whose size depends on the units of X, else nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, Linear
    >>> from fenchel.learning.reach import sizes_of_summands
    >>> X = np.array([[1999.0], [2001.0]])
    >>> sizes_of_summands(Gaussian(1.0) + 64.0 * Linear(), X, X, fit_intercept=True)
    [1.0, 64.0]
    >>> sizes_of_summands(Gaussian(1.0) + 64.0, X, X, fit_intercept=True)
    []
    """
    parts = [] if kernel.is_stationary() else summands_of(kernel)
    return [size_of_functions(part, X, few, fit_intercept) for part in parts]


def middle_of(kernel: Any, X: FloatArray, fit_intercept: bool) -> FloatArray | None:
    """Mean of rows that may be moved there, None where the kernel would be another one.

    Rows far from zero would leave nothing of a stationary kernel beside a linear one but rounding
    errors. Linear functions of moved rows differ by constants, which an offset takes up.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, Linear
    >>> from fenchel.learning.reach import middle_of
    >>> X = np.array([[1999.0], [2001.0]])
    >>> middle_of(Gaussian(1.0) + Linear(), X, fit_intercept=True)
    array([2000.])
    """
    moves = fit_intercept and not kernel.is_stationary() and all(map(_moves, summands_of(kernel)))
    return X.mean(axis=0) if moves else None


def _moves(part: Any) -> bool:
    """Whether moved rows have the same functions, but for constants."""
    if isinstance(part, Product) and isinstance(part.k1, ConstantKernel):
        return _moves(part.k2)
    return isinstance(part, (Gaussian, Laplacian, Linear, Matern))
