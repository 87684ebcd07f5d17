"""Joint quantile regression."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from fenchel._typing import AnyArray, FloatArray
from fenchel.losses import Loss, Pinball
from fenchel.regression._levels import LevelRegressor


class QuantileRegressor(LevelRegressor):
    r"""Kernel quantile regression, several levels at once, with a certificate.

    .. math:: \min_{h, b}\; \frac{\alpha}{2} \|h\|_K^2
              + \frac{1}{\sum_i s_i} \sum_i s_i\, \ell_\varepsilon(y_i - h(x_i) - b), \qquad
              \ell(\xi) = \sum_j \max(\tau_j \xi_j, (\tau_j - 1) \xi_j)

    over functions with values in R^p, one output for each level, in the space of the kernel
    :math:`K(x, x') = k(x, x') B`, :math:`B_{jk} = \exp(-\gamma (\tau_j - \tau_k)^2)`.

    Parameters
    ----------
    levels : float or sequence of float, default=0.5
        Levels in (0, 1), in any order, without repeats.
    kernel : None, str, kernel or callable, default=None
        See :func:`fenchel.kernels.as_kernel`; None is a Gaussian kernel whose width for each
        feature is read off the data.
    alpha : float, default=1e-3
        Strength of the regularization, > 0. The C of the papers is 1 / (alpha * sum of
        weights). Pinball losses grow like y, the penalty like y²: for y in units c times
        smaller, the same fit takes alpha / c.
    level_gamma : float, default=1.0
        γ of the coupling: 0 makes the curves parallel, ``inf`` independent.
    epsilon : float, default=0.0
        Radius of insensitivity, in the units of y: rows whose vector of residuals is shorter
        get exactly zero dual coefficients and leave ``support_``.
    fit_intercept : bool, default=True
        Whether each level has a free offset b_j.
    features : {"auto", "cholesky", "nystroem", "fourier"} or FeatureMap, default="auto"
        How the kernel becomes features; "auto" is pivoted Cholesky, exact to 1e-10 as long
        as the rank allows.
    rank : int, optional
        Cap on the rank of the feature map.
    solver : str or Solver, default="auto"
        A name in ``fenchel.solvers.SOLVERS``, or a solver; "auto" is "newton".
    tol : float, default=1e-6
        Relative duality gap at which the fit has converged.
    max_iter : int, default=1000
        Limit on the number of Newton steps.
    warm_start : bool, default=False
        Whether to start from the previous fit of this estimator.
    random_state : int, RandomState or None, default=None
        Seed of subsamples and random features; None is a fixed seed.
    verbose : int, default=0
        If positive, one line for each outer iteration is printed.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_support, n_levels)
        α with h(x) = k(x, X[support_]) @ dual_coef_ @ coupling_ and
        C s_i (τ_j - 1) <= α_ij <= C s_i τ_j, up to the truncation ``kernel_error_``.
    support_ : ndarray of shape (n_support,)
        Rows with a dual coefficient that is not zero.
    offset_ : ndarray of shape (n_levels,)
        The offsets b.
    coupling_ : ndarray of shape (n_levels, n_levels)
        The matrix B.
    weights_ : ndarray of shape (rank, n_levels)
        h(x) = φ(x) @ weights_, φ the feature map ``feature_map_``.
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``relative_gap``, ``feasibility``; objectives are the
        one above divided by alpha.
    kernel_, kernel_error_, feature_map_
        The kernel with its widths, the share of its trace that the feature map leaves out,
        and the map.
    levels_ : ndarray of shape (n_levels,)
        The levels as an array.
    loss_ : Loss
        The loss of the residual vectors.
    status_ : Status
        ``converged`` and a ``message``: how the solver ended.
    n_iter_, history_
        Number of Newton steps; objectives and gap after each outer iteration.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    References
    ----------
    Sangnier, Fercoq, d'Alché-Buc (2016), Joint quantile regression in vector-valued RKHSs,
    eq. (2); (2017), Data sparse nonparametric regression with ε-insensitive losses, (P2).

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import make_sine_quantiles
    >>> X, y, _ = make_sine_quantiles(200, random_state=0)
    >>> model = QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-4).fit(X, y)
    >>> model.predict(X).shape
    (200, 3)
    >>> model.certificate_.relative_gap <= 1e-6
    True
    """

    def _level_loss(self, levels: Any) -> Loss:
        return Pinball(levels)

    def predict_interval(self, X: AnyArray, coverage: float) -> FloatArray:
        """Predict the central interval of a coverage, from the two levels that bound it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coverage : float
            In (0, 1); the levels (1 - coverage)/2 and (1 + coverage)/2 must have been fitted.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper end.
        """
        if not isinstance(coverage, Real) or not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage must be in (0, 1), got {coverage!r}")
        prediction = self._decision(X)
        ends = []
        for level in (0.5 * (1.0 - coverage), 0.5 * (1.0 + coverage)):
            match = np.flatnonzero(np.isclose(self.levels_, level, rtol=0.0, atol=1e-9))
            if len(match) == 0:
                raise ValueError(
                    f"coverage={coverage:g} needs the levels {0.5 * (1 - coverage):g} and "
                    f"{0.5 * (1 + coverage):g}, but the fitted levels are "
                    f"{[float(level) for level in self.levels_]}"
                )
            ends.append(prediction[:, match[0]])
        return np.column_stack(ends)
