"""Support vector regression."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np

from fenchel._parameters import parameters
from fenchel._typing import FloatArray
from fenchel._validation import NONE, NOT_NEGATIVE, POSITIVE, declared
from fenchel.certificate import Callback
from fenchel.learning import Data, Learned
from fenchel.losses import Loss, make_loss, parameters_of
from fenchel.losses.registry import loss_choice, measured_thresholds
from fenchel.regression._base import KernelRegressor

_OF_NOISE = 0.5  # 0.6 is best for normal noise, Smola et al. (1998): residuals are a little larger


@parameters
class SVR(KernelRegressor):
    r"""Support vector regression with any loss, one or several outputs, with a certificate.

    .. math:: \min_{h, b}\; \frac{\alpha}{2} \|h\|_K^2
              + \frac{1}{\sum_i s_i} \sum_i s_i\, \ell(y_i - h(x_i) - b)

    ======================================  ==============================================
    ``loss``                                ℓ(ξ), with \|·\| the length of the residual
    ======================================  ==============================================
    ``"epsilon_insensitive"``               max(0, \|ξ\| - ε)
    ``"squared_epsilon_insensitive"``       ½ max(0, \|ξ\| - ε)²
    ``"huber"``                             ½ξ² up to \|ξ\| = κ, then κ\|ξ\| - ½κ²
    ``"pinball"``, ...                      see :func:`fenchel.losses.make_loss`
    a :class:`fenchel.losses.Loss`          itself
    ======================================  ==============================================

    Several outputs share their support: whole rows of dual coefficients are zero.

    Parameters
    ----------
    loss : str or Loss, default="epsilon_insensitive"
        See the table.
    epsilon : float, optional
        ε >= 0 in the units of y, of the insensitive losses: the width of the tube. None is a
        tenth of the spread of y, the median absolute deviation from its median times 1.4826;
        where kernel or alpha is learned, no more than half of the size of held-out residuals,
        the median of their absolute values times 1.4826.
    kappa : float, optional
        κ > 0 in the units of y, of "huber": the residual at which it turns linear. None is half
        of the spread of y.
    level : float, default=0.5
        τ in (0, 1), of "pinball" and "squared_pinball".
    kernel : None, str, kernel, callable or OperatorKernel, default=None
        See :func:`fenchel.kernels.as_kernel`; outputs have nothing in common but the loss,
        unless an :class:`fenchel.kernels.OperatorKernel` couples them. What is left open is
        learned, see :class:`QuantileRegressor`.
    alpha : float, optional
        Strength of the regularization, > 0. The C of scikit-learn and of the textbook is
        1 / (alpha * n_samples); with the squared loss, which carries ½ here and none there,
        it is 1 / (2 * alpha * n_samples). None is learned, see
        :class:`QuantileRegressor`.
    learn : bool or Learning, default=True
        As in :class:`QuantileRegressor`.
    radius : float, optional
        Bound Λ on ‖h‖ in place of ``alpha``, see :class:`QuantileRegressor`.
    fit_intercept, features, rank, solver, tol, max_iter, warm_start, random_state, verbose
        As in :class:`QuantileRegressor`.
    callback, max_time
        As in :class:`QuantileRegressor`.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_support, n_outputs)
        Coefficients a: h(x) = k(x, X[support_]) @ dual_coef_; with an operator-valued kernel K,
        h(x) = Σ_i K(x, X[support_[i]]) @ dual_coef_[i]. See the notes of
        :class:`QuantileRegressor`.
    support_ : ndarray of shape (n_support,)
        Rows outside of the tube or on its edge.
    offset_ : ndarray of shape (n_outputs,)
        The offsets b.
    epsilon_, kappa_ : float
        As given, or as read off y and held-out residuals.
    weights_, norm_, certificate_, loss_, alpha_, learned_, feature_importances_, idle_features_
        As in :class:`QuantileRegressor`.
    status_, kernel_, kernel_error_, feature_map_
        As in :class:`QuantileRegressor`.
    n_iter_, history_, n_features_in_, feature_names_in_
        As in :class:`QuantileRegressor`.

    Notes
    -----
    For one output without weights, with C as above, f = K a and a the dual coefficients, zero
    where a row is no support vector, the textbook's dual problems under Σ a = 0 are

    - ``"epsilon_insensitive"``: max aᵀy - ε‖a‖₁ - ½aᵀK a, \|a_i\| <= C;
      b = y_i - f_i - ε sign(a_i) where 0 < \|a_i\| < C;
    - ``"squared_epsilon_insensitive"``: max aᵀy - ε‖a‖₁ - ½aᵀ(K + I/(2C))a;
      b = y_i - f_i - (ε + \|a_i\|/(2C)) sign(a_i) where a_i is not zero;
    - ``"huber"``: max aᵀy - ½aᵀ(K + I/C)a, \|a_i\| <= C κ; b = y_i - f_i - a_i/C where
      \|a_i\| < C κ.

    ``"squared_epsilon_insensitive"`` with ``epsilon=0`` is :class:`KernelRidge` of the same
    alpha.

    The tube that is best for normal noise of known size is 0.6 of its standard deviation (Smola
    et al., 1998); held-out residuals are somewhat larger than noise.

    References
    ----------
    Smola, Murata, Schölkopf, Müller (1998), Asymptotically optimal choice of ε-loss for support
    vector machines, ICANN.

    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.3, (11.23) to
    (11.28), and exercise 11.5. (11.27) is printed with K + I/C, which belongs to half of the
    loss that the text states, and with the bound C and the offsets of (11.23).

    Examples
    --------
    >>> from fenchel import SVR
    >>> from fenchel.datasets import make_sine_quantiles
    >>> X, y, _ = make_sine_quantiles(200, random_state=0)
    >>> model = SVR(epsilon=1.0).fit(X, y)
    >>> len(model.support_) < 100
    True
    """

    _multi_output = True
    constraints = declared(loss=loss_choice(), epsilon=NONE | NOT_NEGATIVE, kappa=NONE | POSITIVE)
    epsilon_ = 0.1
    kappa_ = 1.0

    loss: str | Loss = "epsilon_insensitive"
    _: KW_ONLY
    epsilon: float | None = None
    kappa: float | None = None
    level: float = 0.5

    def _is_bounded(self) -> bool:
        n = getattr(self.loss, "n_outputs", None) or 1  # of a loss that is given
        box = make_loss(self.loss, n, epsilon=1.0, kappa=1.0, level=self.level).box(n)
        return box is not None and bool(np.isfinite(box.upper).all())

    def make_loss(self, n_targets: int) -> Loss:
        epsilon, kappa = self.epsilon_, self.kappa_
        return make_loss(self.loss, n_targets, epsilon=epsilon, kappa=kappa, level=self.level)

    def _measure(self, targets: FloatArray, weight: FloatArray) -> None:
        """Read the tube and the threshold off targets, where they are not given.

        The tube is no wider than what held-out residuals say of the noise.
        """
        self.kappa_, self.epsilon_ = measured_thresholds(self.kappa, self.epsilon, targets, weight)
        residual = None if self._learned is None else self._learned.residual
        if self.epsilon is None and residual is not None:
            self.epsilon_ = min(self.epsilon_, _OF_NOISE * residual)

    def _learns_tube(self) -> bool:
        return self.epsilon is None and "epsilon" in parameters_of(self.loss)

    def _strength_is_open(self) -> bool:
        return super()._strength_is_open() or (self.alpha is None and self._learns_tube())

    def _data(self, X: FloatArray, targets: FloatArray, weight: FloatArray) -> tuple[Data, float]:
        data, unit = super()._data(X, targets, weight)
        return replace(data, measured=self._learns_tube()), unit

    def _learned_task(self, targets: FloatArray) -> tuple[Loss, FloatArray, FloatArray]:
        """Without a tube where residuals have said that it is too wide."""
        loss, coupling, targets = super()._learned_task(targets)
        if self._learned is not None:
            loss = make_loss(self.loss, targets.shape[1], epsilon=0.0)
        return loss, coupling, targets

    def _learn(
        self,
        X: FloatArray,
        targets: FloatArray,
        weight: FloatArray,
        kernels: list[Any],
        watch: Callback | None,
    ) -> Learned | None:
        """Once more without a tube where held-out residuals are small beside a tenth of y."""
        learned = super()._learn(X, targets, weight, kernels, watch)
        if learned is not None and learned.residual is not None:
            if _OF_NOISE * learned.residual < self.epsilon_:
                self._learned, chosen = learned, [kernels[learned.choice]]
                again = super()._learn(X, targets, weight, chosen, watch)
                if again is not None and again.residual is not None:
                    learned = again
            self._learned = learned
            self._measure(targets, weight)
        return learned

    def with_learned(self, times_rows: float = 1.0, *, held_out: bool = True) -> Self:
        """Return an unfitted copy as other estimators do, with the tube of the fit.

        Parameters
        ----------
        times_rows : float, default=1.0
            How many times the rows of the last fit the copy is for.
        held_out : bool, default=True
            Without effect here, where no offsets move.

        Returns
        -------
        estimator
            Unfitted.
        """
        found: Self = super().with_learned(times_rows, held_out=held_out)
        if self._learns_tube() and self.learned_ is not None:
            return found.with_parameters(epsilon=self.epsilon_)
        return found
