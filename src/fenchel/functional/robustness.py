"""Influence of outliers on a loss, minimized over its threshold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fenchel._grids import as_floats
from fenchel._typing import FloatArray
from fenchel._validation import shown


def robustness_ratio(
    loss: Callable[[FloatArray, float], npt.ArrayLike],
    residuals: npt.ArrayLike,
    contaminated: npt.ArrayLike,
    kappas: npt.ArrayLike,
) -> float:
    r"""Smallest mean ratio of the losses of contaminated and clean residuals over thresholds.

    .. math:: \inf_{\kappa} \frac1n \sum_{i=1}^n
              \frac{H_\kappa(\tilde e_i)}{H_\kappa(e_i)}

    The best value is 1: outliers do not change the loss.

    Parameters
    ----------
    loss : callable
        ``loss(residuals, kappa)`` returns the losses of the rows, (n_curves,), such as
        :math:`H^p_\kappa` of residual curves.
    residuals : array-like of shape (n_curves, n_points)
        Clean residuals e_i, each with a nonzero loss.
    contaminated : array-like of shape (n_curves, n_points)
        The same residuals with outliers.
    kappas : array-like of shape (n_kappas,)
        Candidate thresholds, > 0. The paper uses quantiles of the dual norm of the clean
        residuals, at the levels 0.5, 0.6, 0.7, 0.8, 0.9, 0.95 and 0.99.

    Returns
    -------
    float
        The smallest ratio.

    Raises
    ------
    TypeError, ValueError
        If shapes differ, a threshold is not positive, or a clean residual has zero loss.

    References
    ----------
    Lambert, Bouche, Szabó, d'Alché-Buc (2022), *Functional output regression with infimal
    convolution: exploring the Huber and ε-insensitive losses*, appendix C.1.

    Examples
    --------
    For Huber's loss of numbers, one of which changes from 1 to 9:

    >>> import numpy as np
    >>> from fenchel.functional import robustness_ratio
    >>> def huber(residuals, kappa):
    ...     size = np.abs(residuals[:, 0])
    ...     return np.where(size <= kappa, size**2 / 2, kappa * (size - kappa / 2))
    >>> robustness_ratio(huber, [[1.0], [-2.0]], [[9.0], [-2.0]], [0.5, 1.0, 2.0])
    6.333...
    """
    clean = as_floats(residuals, "residuals", "an array of numbers")
    other = as_floats(contaminated, "contaminated", "an array of numbers")
    if clean.ndim != 2 or not clean.size or clean.shape != other.shape:
        raise ValueError(
            "residuals and contaminated must be two-dimensional of the same shape, got "
            f"{clean.shape} and {other.shape}"
        )
    thresholds = np.atleast_1d(as_floats(kappas, "kappas", "an array of positive numbers"))
    if thresholds.ndim != 1 or not thresholds.size or not np.all(thresholds > 0.0):
        raise ValueError(f"kappas must be an array of positive numbers, got {shown(kappas)}")
    return min(_mean_ratio(loss, clean, other, float(kappa)) for kappa in thresholds)


def _mean_ratio(
    loss: Callable[[FloatArray, float], npt.ArrayLike],
    clean: FloatArray,
    other: FloatArray,
    kappa: float,
) -> float:
    below, above = (np.asarray(loss(rows, kappa), dtype=np.float64) for rows in (clean, other))
    for losses in (below, above):
        if losses.shape != (len(clean),):
            raise ValueError(
                f"loss must return one value for each of the {len(clean)} rows, got shape "
                f"{losses.shape}"
            )
    if not np.all(below > 0.0):
        raise ValueError(
            f"residuals must have positive losses, got {below.min():g} for curve "
            f"{int(np.argmin(below))} at kappa={kappa:g}"
        )
    return float(np.mean(above / below))
