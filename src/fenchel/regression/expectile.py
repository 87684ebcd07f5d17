"""Joint expectile regression."""

from __future__ import annotations

from typing import Any

from fenchel._typing import FloatArray
from fenchel.distributions import QuantileDistribution
from fenchel.losses import Loss, SquaredPinball
from fenchel.regression._levels import LevelRegressor


class ExpectileRegressor(LevelRegressor):
    r"""Kernel expectile regression at one or several levels, with a duality-gap certificate.

    .. math:: \min_{h, b}\; \frac{\alpha}{2} \|h\|_K^2
              + \frac{1}{\sum_i s_i} \sum_i s_i\, \ell_\varepsilon(y_i - h(x_i) - b), \qquad
              \ell(\xi) = \tfrac12 \sum_j |\tau_j - 1(\xi_j < 0)|\, \xi_j^2

    The expectile at level ½ is the mean. Everything but the loss is as in
    :class:`QuantileRegressor`.

    Parameters
    ----------
    levels : float or sequence of float, default=0.5
        Levels in (0, 1), in any order, without repeats.
    kernel : None, str, kernel, callable or OperatorKernel, default=None
        See :func:`fenchel.kernels.as_kernel`. See :class:`QuantileRegressor` for operator-valued
        kernels and for the parameters that are learned.
    alpha : float, optional
        Strength of the regularization, > 0. It does not depend on the units of y. If None, alpha
        is learned, see :class:`QuantileRegressor`.
    learn : bool or Learning, default=True
        As in :class:`QuantileRegressor`.
    radius : float, optional
        Bound Λ on ‖h‖, used instead of ``alpha``, see :class:`QuantileRegressor`.
    level_gamma : float, default=1.0
        Parameter γ of the coupling exp(-γ(τ_j - τ_k)²) between levels. With 0 the curves are
        parallel, with ``inf`` independent. Ignored with an operator-valued kernel.
    coupling : array-like of shape (n_outputs, n_outputs), optional
        Matrix that couples the columns of y, see :class:`QuantileRegressor`.
    epsilon : float, default=0.0
        Radius of insensitivity, in the units of y. A row whose vector of residuals is shorter has
        dual coefficients equal to zero.
    refit_offsets : {"auto", "held_out", "train"} or None, default="auto"
        Whether the offsets are moved after the fit to the expectiles of the residuals, see
        :class:`QuantileRegressor`.
    fit_intercept, features, rank, solver, tol, max_iter, warm_start, random_state, verbose
        As in :class:`QuantileRegressor`.
    callback, max_time
        As in :class:`QuantileRegressor`.

    Attributes
    ----------
    dual_coef_, support_, offset_, certified_offset_, coupling_, weights_, norm_, certificate_,
    loss_, status_
        As in :class:`QuantileRegressor`, except that the dual coefficients are not bounded.
    alpha_, learned_, feature_importances_, idle_features_
        As in :class:`QuantileRegressor`.
    kernel_, kernel_error_, certified_kernel_, feature_map_, levels_
        As in :class:`QuantileRegressor`.
    n_iter_, history_, n_features_in_, feature_names_in_
        As in :class:`QuantileRegressor`.

    References
    ----------
    Sangnier, Fercoq, d'Alché-Buc (2017), Data sparse nonparametric regression with
    ε-insensitive losses, sections 3 and 4.

    Examples
    --------
    >>> from fenchel import ExpectileRegressor
    >>> from fenchel.datasets import make_sine_quantiles
    >>> X, y, _ = make_sine_quantiles(200, random_state=0)
    >>> model = ExpectileRegressor([0.5, 0.9], alpha=1e-4).fit(X, y)
    >>> model.predict(X).shape
    (200, 2)
    """

    def _level_loss(self, levels: Any, n_targets: int = 1) -> Loss:
        return SquaredPinball(levels, n_targets)

    def _distribution(self, curves: FloatArray) -> QuantileDistribution:
        return QuantileDistribution.from_expectiles(self.levels_, curves)
