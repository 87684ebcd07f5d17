"""The regularization path of the Lasso."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from fenchel._sentences import said_of
from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import (
    BOOLEAN,
    Number,
    check_magnitude,
    check_spread,
    check_targets,
    check_weights,
    targets_of,
)
from fenchel.design import CentredRows
from fenchel.solvers.lars import along, knots, radii_of, sound_knots

_PLACE = Number(0.0, infinite=True)


class LassoPath(NamedTuple):
    """Knots of a Lasso path, from the zero model to least squares; linear between the knots.

    Attributes
    ----------
    alphas : ndarray of shape (k,)
        Strengths, in decreasing order. The last is zero unless columns are nearly dependent.
    coefs : ndarray of shape (k, n_features)
        Coefficients w.
    intercepts : ndarray of shape (k,)
        Offsets b.
    radii : ndarray of shape (k,)
        ‖w‖₁, nondecreasing.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import lasso_path
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    >>> path = lasso_path(X, [3.0, 1.0, -4.0])
    >>> path.alphas.shape, path.coefs.shape
    ((3,), (3, 2))
    """

    alphas: FloatArray
    coefs: FloatArray
    intercepts: FloatArray
    radii: FloatArray

    def at(
        self, *, alpha: float | None = None, radius: float | None = None
    ) -> tuple[FloatArray, float]:
        """Return coefficients and offset at a strength, or at a bound on ‖w‖₁.

        Parameters
        ----------
        alpha, radius : float
            Penalty or bound, >= 0; give one of the two. A value beyond an end of the path gives
            that end.

        Returns
        -------
        tuple of ndarray of shape (n_features,) and float
        """
        if alpha is not None and radius is None:
            _PLACE(alpha, "alpha")
            weights = along(-self.alphas, -alpha)
        elif radius is not None and alpha is None:
            _PLACE(radius, "radius")
            weights = along(self.radii, radius)
        else:
            raise ValueError(
                f"exactly one of alpha and radius must be given, got alpha={alpha!r} and "
                f"radius={radius!r}"
            )
        return weights @ self.coefs, float(weights @ self.intercepts)


def lasso_path(
    X: ArrayLike,
    y: ArrayLike,
    *,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
) -> LassoPath:
    r"""Compute the whole regularization path of the Lasso, as its knots.

    .. math:: w(\alpha) = \operatorname{argmin}_w\; \min_b\; \alpha \|w\|_1
              + \frac{1}{2 \sum_i s_i} \sum_i s_i\, (y_i - w \cdot x_i - b)^2

    The path is computed by LARS. The textbook's λ in (11.29) is 2 * alpha * N, with N the sum of
    the weights.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Targets.
    fit_intercept : bool, default=True
        Whether there is an unpenalized offset.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights: an integer weight is the same as repeating the row.

    Returns
    -------
    LassoPath
        The knots: ``alphas``, ``coefs``, ``intercepts`` and ``radii``. Its method ``at``
        interpolates between them.

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
    BOOLEAN(fit_intercept, "fit_intercept")
    with said_of("X"):
        X = check_array(X, dtype=np.float64, input_name="X")
    y = targets_of("lasso_path", y, len(X))
    check_magnitude(X, "X")
    check_spread(X, "X")
    check_targets(y)
    weight = check_weights(X, sample_weight)
    rows = CentredRows.of(X, y[:, None], weight, bool(fit_intercept))
    features, targets = rows.weighted
    alphas, coefs = knots(features, targets[:, 0])
    sound = sound_knots(features, targets, alphas, coefs)
    alphas, coefs = alphas[:sound], coefs[:sound]
    if alphas[-1] > 0.0:
        message = f"the path ends at alpha={alphas[-1]:.3g}: the columns of X are too nearly "
        message += "dependent to follow it further; use Lasso for smaller alphas"
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    return LassoPath(alphas, coefs, rows.intercept(coefs.T), radii_of(coefs))
