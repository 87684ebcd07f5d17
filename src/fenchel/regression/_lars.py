"""The path of the Lasso: coefficients are piecewise linear in the strength."""

from __future__ import annotations

import warnings
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_X_y

from fenchel._typing import ArrayLike, FloatArray, IntArray
from fenchel.regression._linear_base import prepare

# lars_path takes an absolute strength of 1.2e-7 for zero: this is the strength to begin with
_TOP = 1e6
_END = 1e-10  # of the first strength: that counts as zero


class LassoPath(NamedTuple):
    """Knots of a path, from the zero model to least squares; linear in between.

    Attributes
    ----------
    alphas : ndarray of shape (k,)
        Strengths, decreasing; the last is zero unless columns are nearly dependent.
    coefs : ndarray of shape (k, n_features)
        Coefficients w.
    intercepts : ndarray of shape (k,)
        Offsets b.
    radii : ndarray of shape (k,)
        ‖w‖₁, not decreasing.
    """

    alphas: FloatArray
    coefs: FloatArray
    intercepts: FloatArray
    radii: FloatArray

    def at(
        self, *, alpha: float | None = None, radius: float | None = None
    ) -> tuple[FloatArray, float]:
        """Coefficients and offset at a strength, or at a bound on ‖w‖₁.

        Parameters
        ----------
        alpha, radius : float
            One of the two, >= 0. Beyond the ends of the path it is that end.

        Returns
        -------
        tuple of ndarray of shape (n_features,) and float
        """
        if alpha is not None and radius is None:
            weights = along(-self.alphas, -alpha)
        elif radius is not None and alpha is None:
            weights = along(self.radii, radius)
        else:
            raise ValueError(
                f"exactly one of alpha and radius must be given, got alpha={alpha!r} and "
                f"radius={radius!r}"
            )
        return weights @ self.coefs, float(weights @ self.intercepts)


def along(knots: FloatArray, value: float) -> FloatArray:
    """Weights of the knots, a convex combination of two neighbours, at a value between them."""
    last = len(knots) - 1
    weights = np.zeros(last + 1)
    right = int(np.searchsorted(knots, value))
    if right == 0 or right > last:
        weights[min(right, last)] = 1.0
        return weights
    part = (value - knots[right - 1]) / (knots[right] - knots[right - 1])
    weights[right - 1], weights[right] = 1.0 - part, part
    return weights


def lasso_path(
    X: ArrayLike,
    y: ArrayLike,
    *,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
) -> LassoPath:
    r"""All solutions of the Lasso, by its knots.

    .. math:: w(\alpha) = \operatorname{argmin}_w\; \min_b\; \alpha \|w\|_1
              + \frac{1}{2 \sum_i s_i} \sum_i s_i\, (y_i - w \cdot x_i - b)^2

    computed by LARS. The textbook's λ in (11.29) is 2 * alpha * N, with N the sum of the weights.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Targets.
    fit_intercept : bool, default=True
        Whether there is a free offset.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    LassoPath
        ``alphas``, ``coefs``, ``intercepts``, ``radii`` of the knots, and ``at`` for all between.

    Warns
    -----
    ConvergenceWarning
        If columns are so nearly dependent that the path could not be followed to its end.

    References
    ----------
    Efron, Hastie, Johnstone, Tibshirani (2004), Least angle regression; Mohri, Rostamizadeh,
    Talwalkar, Foundations of Machine Learning, section 11.3.4.

    Examples
    --------
    >>> from fenchel import Lasso, lasso_path
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [4.0, 3.0]], [0.0, 1.0, 2.5, 4.0]
    >>> coef, intercept = lasso_path(X, y).at(alpha=0.1)
    >>> bool(abs(coef - Lasso(alpha=0.1).fit(X, y).coef_).max() < 1e-3)
    True
    """
    X, y = check_X_y(X, y, dtype=np.float64, y_numeric=True)
    rows = prepare(X, y, sample_weight, bool(fit_intercept))
    design, target = rows.weighted()
    alphas, coefs = knots(design, target[:, 0])
    sound = _sound(design, target, alphas, coefs)
    alphas, coefs = alphas[:sound], coefs[:sound]
    if alphas[-1] > 0.0:
        message = f"the path ends at alpha={alphas[-1]:.3g}: the columns of X are too nearly "
        message += "dependent to follow it further; use Lasso for smaller alphas"
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    intercepts = rows.target_mean - coefs @ rows.center
    radii = np.maximum.accumulate(np.abs(coefs).sum(axis=1))
    return LassoPath(alphas, coefs, intercepts, radii)


def _sound(design: FloatArray, target: FloatArray, alphas: FloatArray, coefs: FloatArray) -> int:
    """Number of knots, from the first, at which no column is pulled more than by its strength.

    LARS leaves out columns that it takes for combinations of others.
    """
    pull = design.T @ (target - design @ coefs.T)
    off = np.abs(pull).max(axis=0) / len(target) - alphas
    wrong = np.flatnonzero(off > _END * alphas[0])
    return max(int(wrong[0]), 1) if len(wrong) else len(alphas)


def knots(design: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Strengths (k,) and coefficients (k, d) of ½‖y - Xw‖²/m + α‖w‖₁ where LARS finds them."""
    from sklearn.linear_model import lars_path  # noqa: PLC0415  (not with every estimator)

    longest = float(np.sqrt(np.einsum("ij,ij->j", design, design).max()))
    first = float(np.abs(design.T @ target).max()) / len(target)
    if first == 0.0:
        return np.zeros(1), np.zeros((1, design.shape[1]))
    scale = _TOP * longest / first
    once = _different(design)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # judged here by what is returned
        alphas, _, coefs = lars_path(
            design[:, once] / longest,
            target * scale,
            method="lasso",
            max_iter=16 * min(design.shape) + 16,
        )
    rising = np.flatnonzero(np.diff(alphas) > 0.0)
    if len(rising):
        alphas, coefs = alphas[: rising[0] + 1], coefs[:, : rising[0] + 1]
    alphas = alphas * (longest / scale)
    if alphas[-1] <= _END * first:
        alphas[-1] = 0.0
    points = np.zeros((len(alphas), design.shape[1]))
    points[:, once] = coefs.T / (longest * scale)
    return alphas, points


def _different(design: FloatArray) -> IntArray:
    """Columns without repetitions, up to sign, with which lars_path leaves the path."""
    found: dict[bytes, int] = {}
    for j, column in enumerate(design.T):
        sign = np.sign(column[np.argmax(np.abs(column))])
        found.setdefault(blake2b((sign * column + 0.0).tobytes()).digest(), j)
    return np.array(list(found.values()), dtype=np.intp)


__all__ = ["LassoPath", "along", "knots", "lasso_path"]
