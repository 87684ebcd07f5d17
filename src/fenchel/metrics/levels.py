"""Calibration of predicted quantiles, and crossing of their curves."""

from __future__ import annotations

import numpy as np
from scipy.stats import betabinom, binom

from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import COUNT, SHARE, check_levels, check_weights, shown
from fenchel.metrics._checks import checked, predictions

_SAME = 1e-9  # (1 - coverage)/2 of decimal numbers is the level meant up to its last digits
_ROUNDING = 1e-12  # of ranks, as in conformal intervals: 0.07 * 100 is 7 and not 8


def quantile_coverage(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    strict: bool = False,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    r"""Fraction of targets at or below each predicted quantile (empirical level).

    .. math:: \hat\tau_j = \frac{1}{\sum_i s_i} \sum_i s_i\, 1(y_i \le h_j(x_i))

    For a true quantile it is close to the level τ_j on new rows, see :func:`calibration_band`.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        As in :func:`mean_pinball_loss`.
    strict : bool, default=False
        Whether to count only targets strictly below the quantile.

    Returns
    -------
    ndarray of shape (n_levels,)
        Fractions in [0, 1].

    Raises
    ------
    ValueError
        If shapes do not agree.

    Examples
    --------
    >>> from fenchel.metrics import quantile_coverage
    >>> quantile_coverage([1.0, 2.0], [[0.0, 1.0], [0.0, 2.0]])
    array([0., 1.])
    """
    y, prediction, weight = checked(y_true, y_pred, sample_weight)
    covered = y < prediction if strict else y <= prediction
    return np.average(covered, axis=0, weights=weight)


def calibration_band(
    levels: ArrayLike,
    n_samples: int,
    confidence: float = 0.95,
    *,
    n_calibration: int | None = None,
) -> FloatArray:
    r"""Central interval of the empirical level of a true quantile, at each level.

    .. math:: n \hat\tau_j \sim \mathrm{Binomial}(n, \tau_j)

    for a continuous target and rows independent of the fit. The band holds for each level
    separately, not for all levels simultaneously. If the quantile was calibrated on m other rows,
    its own level is random, and

    .. math:: n \hat\tau_j \sim \mathrm{BetaBinomial}(n, k_j, m + 1 - k_j), \qquad
              k_j = \lceil \tau_j (m + 1) \rceil

    for split conformal intervals of coverage τ, whose scores have no ties. With k = m + 1 they
    are infinite and hold all rows.

    Parameters
    ----------
    levels : array-like of shape (n_levels,)
        Nominal levels τ in [0, 1], or in (0, 1) with ``n_calibration``.
    n_samples : int
        Number of rows n.
    confidence : float, default=0.95
        Probability of the interval at each level, in (0, 1).
    n_calibration : int, optional
        Number of calibration rows m. By default levels are taken to be exact.

    Returns
    -------
    ndarray of shape (2, n_levels)
        Lower and upper bounds.

    Raises
    ------
    ValueError
        If the confidence or a level is out of range, or a number of rows is not positive.

    References
    ----------
    Vovk (2012), Conditional validity of inductive conformal predictors: given the calibration
    rows, the coverage has a beta distribution.

    Examples
    --------
    >>> from fenchel.metrics import calibration_band
    >>> calibration_band([0.1, 0.5], 100)
    array([[0.05, 0.4 ],
           [0.16, 0.6 ]])

    For intervals calibrated on 100 rows:

    >>> calibration_band([0.8], 100, n_calibration=100).ravel()
    array([0.68, 0.9 ])
    """
    SHARE(confidence, "confidence")
    COUNT(n_samples, "n_samples")
    tail, known = 0.5 * (1.0 - confidence), np.asarray(levels, dtype=np.float64)
    allowed, valid = "[0, 1]", (known >= 0.0) & (known <= 1.0)
    if n_calibration is not None:
        allowed, valid = "(0, 1) with n_calibration", (known > 0.0) & (known < 1.0)
    if not np.all(valid):
        raise ValueError(f"levels must lie in {allowed}, got {shown(levels)}")
    parts = np.array([tail, 1.0 - tail]).reshape(-1, *[1] * known.ndim)
    if n_calibration is None:
        return np.asarray(binom.ppf(parts, n_samples, known) / n_samples)
    size = COUNT(n_calibration, "n_calibration") + 1.0
    rank = np.ceil(size * known * (1.0 - _ROUNDING))
    counts = betabinom.ppf(parts, n_samples, rank, np.maximum(size - rank, 1.0))
    return np.where(rank < size, counts / n_samples, 1.0)


def crossing_amounts(y_pred: ArrayLike, levels: ArrayLike) -> FloatArray:
    r"""Amounts by which curves of neighbouring levels cross, for each row.

    .. math:: \max(0, h_j(x_i) - h_{j+1}(x_i)) \quad \text{for } \tau_j < \tau_{j+1}

    Parameters
    ----------
    y_pred : array-like of shape (n_samples,) or (n_samples, n_levels)
        Predictions, one column for each level.
    levels : float or sequence of float
        Levels of the columns, in any order.

    Returns
    -------
    ndarray of shape (n_samples, n_levels - 1)
        Amounts >= 0, for neighbours in increasing order; 0 where curves do not cross.

    Raises
    ------
    ValueError
        If there is not one level for each column.

    Examples
    --------
    >>> from fenchel.metrics import crossing_amounts
    >>> crossing_amounts([[1.0, 2.0], [3.0, 2.5]], [0.1, 0.9])
    array([[0. ],
           [0.5]])
    """
    prediction = predictions(y_pred)
    order = np.argsort(check_levels(levels, number=prediction.shape[1]))
    low, high = prediction[:, order[:-1]], prediction[:, order[1:]]
    # equal infinite curves do not cross, and their difference is no number
    return np.subtract(low, high, out=np.zeros_like(low), where=low > high)


def crossing_loss(
    y_pred: ArrayLike, levels: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Mean amount by which curves of neighbouring levels cross.

    .. math:: \sum_j \frac{1}{\sum_i s_i} \sum_i s_i \max(0, h_j(x_i) - h_{j+1}(x_i))

    with levels in increasing order. It is 0 if no curves cross at these rows.

    Parameters
    ----------
    y_pred, levels
        As in :func:`crossing_amounts`.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights s.

    Returns
    -------
    float
        Mean amount in the units of y, at least 0.

    Raises
    ------
    ValueError
        If there is not one level for each column.

    References
    ----------
    Sangnier, Fercoq, d'Alché-Buc (2016), Joint quantile regression in vector-valued RKHSs,
    section 5.

    Examples
    --------
    >>> from fenchel.metrics import crossing_loss
    >>> crossing_loss([[1.0, 2.0], [3.0, 2.5]], [0.1, 0.9])
    0.25
    """
    amounts = crossing_amounts(y_pred, levels)
    weight = check_weights(amounts, sample_weight)
    counted = weight > 0.0
    return float(np.average(amounts[counted], axis=0, weights=weight[counted]).sum())


def position_of_level(levels: FloatArray, level: float) -> int | None:
    """Return the index of a level among others, to a tolerance of 1e-9; None if absent.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.metrics import position_of_level
    >>> position_of_level(np.array([0.1, 0.5]), 0.5)
    1
    """
    match = np.flatnonzero(np.isclose(levels, level, rtol=0.0, atol=_SAME))
    return int(match[0]) if len(match) else None
