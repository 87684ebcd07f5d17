"""D² scores: the fraction of the loss of the best constant that predictions explain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import kl_div

from fenchel._typing import ArrayLike, FloatArray
from fenchel.losses import Loss, Pinball, SquaredPinball
from fenchel.metrics._checks import averaged, checked, losses_of, only_column, parts

_ROUNDING = 1e-14  # of a target: residuals below are those of a constant in floating point


def explained_share(loss: float, baseline: float, rounding: float = 0.0) -> float:
    r"""Fraction of the loss of a baseline that is explained, :math:`1 - \ell / \ell_0`.

    Parameters
    ----------
    loss, baseline : float
        Loss of the predictions and of the baseline, >= 0.
    rounding : float, default=0.0
        A baseline loss up to this value counts as zero. The result is then 1 if the loss does too,
        and 0 otherwise.

    Returns
    -------
    float
        The explained fraction, at most 1.

    Examples
    --------
    >>> from fenchel.metrics import explained_share
    >>> explained_share(1.0, 4.0), explained_share(0.0, 0.0), explained_share(1.0, 0.0)
    (0.75, 1.0, 0.0)
    """
    if baseline > rounding:
        return 1.0 - loss / baseline
    return 1.0 if loss <= rounding else 0.0


def d2_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    loss: Loss | Sequence[Loss],
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> float | FloatArray:
    r"""D² for any loss of residuals: the fraction of the loss of the best constant explained.

    .. math:: 1 - \frac{\sum_i s_i\, \ell(y_i - h(x_i))}{\min_c \sum_i s_i\, \ell(y_i - c)}

    For the squared loss it is R² of one target. Of several it is R² with
    ``multioutput="variance_weighted"``, since one loss is of whole rows. If targets are constant
    up to rounding, it is 1 for predictions equal to them up to rounding, and 0 otherwise.

    Parameters
    ----------
    y_true, y_pred, loss, sample_weight, multioutput
        As in :func:`mean_loss`.

    Returns
    -------
    float or ndarray of shape (n_losses,)
        1 is perfect; 0 is as good as the best constant for ``y_true``.

    Raises
    ------
    ValueError
        If shapes do not agree, or weights are negative or all zero.

    Examples
    --------
    >>> from fenchel.losses import Squared
    >>> from fenchel.metrics import d2_score
    >>> d2_score([0.0, 1.0, 2.0], [0.0, 1.0, 1.0], Squared())
    0.5
    """
    y, prediction, weight = checked(y_true, y_pred, sample_weight)
    scores = []
    for one, t, z in parts(y, prediction, loss):
        left = weight @ one.value(t - z)
        total = weight @ one.value(t - one.minimizing_offset(t, weight))
        rounding = weight @ one.value(_ROUNDING * np.abs(t))
        scores.append(explained_share(float(left), float(total), float(rounding)))
    return averaged(np.array(scores), multioutput)


def d2_pinball_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    levels: ArrayLike = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> float | FloatArray:
    r"""D² for predicted quantiles: the fraction of the pinball loss explained at each level.

    .. math:: 1 - \frac{\sum_i s_i\, \rho_{\tau_j}(y_i - h_j(x_i))}
                       {\min_c \sum_i s_i\, \rho_{\tau_j}(y_i - c)}

    Parameters
    ----------
    y_true, y_pred, levels, sample_weight, multioutput
        As in :func:`mean_pinball_loss`.

    Returns
    -------
    float or ndarray of shape (n_levels,)
        1 is perfect; 0 is as good as the constant quantile of ``y_true``.

    Raises
    ------
    ValueError
        If shapes do not agree or a level is not in (0, 1).

    References
    ----------
    Koenker, Machado (1999), Goodness of fit and related inference processes for quantile
    regression, eq. (3).

    Examples
    --------
    >>> from fenchel.metrics import d2_pinball_score
    >>> d2_pinball_score([1.0, 2.0, 3.0], [1.0, 2.0, 2.0], 0.5)
    0.5
    """
    losses = losses_of(Pinball, levels, y_pred)
    return d2_score(y_true, y_pred, losses, sample_weight=sample_weight, multioutput=multioutput)


def d2_squared_pinball_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    levels: ArrayLike = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> float | FloatArray:
    """D² for predicted expectiles: the fraction of the squared pinball loss explained.

    Like :func:`d2_pinball_score`, with the loss of :func:`mean_squared_pinball_loss`. At level 0.5
    it is R².

    Parameters
    ----------
    y_true, y_pred, levels, sample_weight, multioutput
        As in :func:`mean_squared_pinball_loss`.

    Returns
    -------
    float or ndarray of shape (n_levels,)
        1 is perfect; 0 is as good as the constant expectile of ``y_true``.

    Raises
    ------
    ValueError
        If shapes do not agree or a level is not in (0, 1).

    Examples
    --------
    >>> from fenchel.metrics import d2_squared_pinball_score
    >>> d2_squared_pinball_score([0.0, 1.0, 2.0], [0.0, 1.0, 1.0], 0.5)
    0.5
    """
    losses = losses_of(SquaredPinball, levels, y_pred)
    return d2_score(y_true, y_pred, losses, sample_weight=sample_weight, multioutput=multioutput)


def d2_poisson_score(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""D² for predicted means of counts: the fraction of the Poisson deviance explained.

    .. math:: 1 - \frac{\sum_i s_i\, d(y_i, z_i)}{\sum_i s_i\, d(y_i, \bar y)}, \qquad
              d(y, z) = z - y - y \log \frac{z}{y}

    It is :func:`sklearn.metrics.d2_tweedie_score` with ``power=1``, but accepts predictions of
    zero. These have zero deviance if the target is zero, and infinite deviance otherwise.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Counts, >= 0.
    y_pred : array-like of shape (n_samples,)
        Predicted means z, >= 0.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights s.

    Returns
    -------
    float
        1 is perfect; 0 is as good as the mean of ``y_true``.

    Raises
    ------
    ValueError
        If shapes do not agree, or a target or prediction is negative.

    Examples
    --------
    >>> from fenchel.metrics import d2_poisson_score
    >>> round(d2_poisson_score([0.0, 1.0, 2.0], [0.0, 1.0, 3.0]), 3)
    0.864
    """
    targets, prediction, weight = checked(y_true, y_pred, sample_weight)
    y = only_column(targets, "y_true")
    if y.min() < 0.0:
        raise ValueError(f"y_true must be >= 0 for the Poisson deviance, got {y.min():g}")
    means = only_column(prediction, "y_pred")
    if means.min() < 0.0:
        raise ValueError(f"y_pred must be >= 0 for the Poisson deviance, got {means.min():g}")
    left = weight @ kl_div(y, means)
    total = weight @ kl_div(y, np.average(y, weights=weight))
    return explained_share(float(left), float(total), _ROUNDING * float(weight @ y))
