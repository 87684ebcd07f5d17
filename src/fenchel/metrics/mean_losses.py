"""Mean losses of predictions, including losses of quantiles and expectiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fenchel._typing import ArrayLike, FloatArray
from fenchel.losses import Loss, Pinball, SquaredPinball
from fenchel.metrics._checks import averaged, checked, losses_of, parts


def row_losses(y_true: ArrayLike, y_pred: ArrayLike, loss: Loss | Sequence[Loss]) -> FloatArray:
    r"""Losses of all rows, :math:`\ell_j(y_i - h_j(x_i))`, without averaging.

    Parameters
    ----------
    y_true, y_pred, loss
        As in :func:`mean_loss`.

    Returns
    -------
    ndarray of shape (n_samples, n_losses)
        One column for each loss.

    Raises
    ------
    ValueError
        If shapes do not agree.

    Examples
    --------
    >>> from fenchel.losses import Pinball
    >>> from fenchel.metrics import row_losses
    >>> row_losses([1.0, 2.0], [[0.0, 2.0], [2.0, 4.0]], [Pinball(0.25), Pinball(0.75)])
    array([[0.25, 0.25],
           [0.  , 0.5 ]])
    """
    y, prediction, _ = checked(y_true, y_pred, None)
    return np.column_stack([one.value(t - z) for one, t, z in parts(y, prediction, loss)])


def mean_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    loss: Loss | Sequence[Loss],
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> float | FloatArray:
    r"""Weighted mean of a loss of residuals.

    .. math:: \frac{1}{\sum_i s_i} \sum_i s_i\, \ell(y_i - h(x_i))

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets. With one loss for each column of ``y_pred``, a single column.
    y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Predictions.
    loss : Loss or sequence of Loss
        A loss of :mod:`fenchel.losses` for whole rows, or one for each column of ``y_pred``.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights s.
    multioutput : {"uniform_average", "raw_values"}, default="uniform_average"
        Whether to average over several losses or to return all.

    Returns
    -------
    float or ndarray of shape (n_losses,)
        The mean loss, >= 0; 0 is best.

    Raises
    ------
    ValueError
        If shapes do not agree, or weights are negative or all zero.

    Examples
    --------
    >>> from fenchel.losses import Huber
    >>> from fenchel.metrics import mean_loss
    >>> mean_loss([0.0, 4.0], [0.0, 1.0], Huber(1.0))
    1.25
    """
    y, prediction, weight = checked(y_true, y_pred, sample_weight)
    means = [
        np.average(one.value(t - z), weights=weight) for one, t, z in parts(y, prediction, loss)
    ]
    return averaged(np.array(means), multioutput)


def mean_pinball_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    levels: ArrayLike = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> float | FloatArray:
    r"""Mean pinball loss of predicted quantiles.

    .. math:: \frac{1}{\sum_i s_i} \sum_i s_i \max(\tau_j \xi_{ij}, (\tau_j - 1) \xi_{ij}),
              \qquad \xi_{ij} = y_i - h_j(x_i)

    It extends :func:`sklearn.metrics.mean_pinball_loss` with ``alpha`` = τ_j to several levels of
    one target.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Targets.
    y_pred : array-like of shape (n_samples,) or (n_samples, n_levels)
        Predicted quantiles, one column for each level.
    levels : float or sequence of float, default=0.5
        Levels in (0, 1), in the order of the columns.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights s.
    multioutput : {"uniform_average", "raw_values"}, default="uniform_average"
        Whether to average over levels or to return the loss of each.

    Returns
    -------
    float or ndarray of shape (n_levels,)
        The mean loss, in the units of y; 0 is best.

    Raises
    ------
    ValueError
        If shapes do not agree or a level is not in (0, 1).

    Examples
    --------
    >>> from fenchel.metrics import mean_pinball_loss
    >>> mean_pinball_loss([1.0, 2.0], [[0.0, 2.0], [2.0, 4.0]], [0.25, 0.75])
    0.25
    """
    losses = losses_of(Pinball, levels, y_pred)
    return mean_loss(y_true, y_pred, losses, sample_weight=sample_weight, multioutput=multioutput)


def mean_squared_pinball_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    levels: ArrayLike = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> float | FloatArray:
    r"""Mean squared pinball loss of predicted expectiles.

    .. math:: \frac{1}{\sum_i s_i} \sum_i \frac{s_i}{2}\,
              |\tau_j - 1(\xi_{ij} < 0)|\, \xi_{ij}^2, \qquad \xi_{ij} = y_i - h_j(x_i)

    At level 0.5 it is a quarter of the mean squared error.

    Parameters
    ----------
    y_true, y_pred, levels, sample_weight, multioutput
        As in :func:`mean_pinball_loss`, with expectiles as predictions.

    Returns
    -------
    float or ndarray of shape (n_levels,)
        The mean loss, in the squared units of y; 0 is best.

    Raises
    ------
    ValueError
        If shapes do not agree or a level is not in (0, 1).

    Examples
    --------
    >>> from fenchel.metrics import mean_squared_pinball_loss
    >>> mean_squared_pinball_loss([1.0, 2.0], [0.0, 4.0], 0.5)
    0.625
    """
    losses = losses_of(SquaredPinball, levels, y_pred)
    return mean_loss(y_true, y_pred, losses, sample_weight=sample_weight, multioutput=multioutput)
