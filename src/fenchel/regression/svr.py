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
    r"""Support vector regression with a choice of losses, one or several outputs.

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

    Several outputs share their support vectors: the dual coefficients of a row are zero together.

    Parameters
    ----------
    loss : str or Loss, default="epsilon_insensitive"
        See the table.
    epsilon : float, optional
        Half-width ε >= 0 of the tube of the insensitive losses, in the units of y. None is a tenth
        of the spread of y, which is the median absolute deviation from the median times 1.4826.
        If kernel or alpha is learned, it is at most half of the size of the held-out residuals,
        which is the median of their absolute values times 1.4826.
    kappa : float, optional
        Threshold κ > 0 of "huber", in the units of y: the residual at which the loss becomes
        linear. None is half of the spread of y.
    level : float, default=0.5
        Level τ in (0, 1) of "pinball" and "squared_pinball".
    kernel : None, str, kernel, callable or OperatorKernel, default=None
        See :func:`fenchel.kernels.as_kernel`. Outputs share only the loss, unless an
        :class:`fenchel.kernels.OperatorKernel` couples them. Open parameters are learned, see
        :class:`QuantileRegressor`.
    alpha : float, optional
        Strength of the regularization, > 0. The C of scikit-learn and of the textbook is
        1 / (alpha * n_samples). The squared loss has a factor ½ here and none there, so that
        C is 1 / (2 * alpha * n_samples). If None, alpha is learned, see
        :class:`QuantileRegressor`.
    learn : bool or Learning, default=True
        As in :class:`QuantileRegressor`.
    radius : float, optional
        Bound Λ on ‖h‖, used instead of ``alpha``, see :class:`QuantileRegressor`.
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
        Indices of the support vectors: rows outside the tube or on its edge.
    offset_ : ndarray of shape (n_outputs,)
        The offsets b.
    epsilon_, kappa_ : float
        The values used: as given, or as computed from y and held-out residuals.
    weights_, norm_, certificate_, loss_, alpha_, learned_, feature_importances_, idle_features_
        As in :class:`QuantileRegressor`.
    status_, kernel_, kernel_error_, certified_kernel_, feature_map_
        As in :class:`QuantileRegressor`.
    n_iter_, history_, n_features_in_, feature_names_in_
        As in :class:`QuantileRegressor`.

    Notes
    -----
    With C as above, f = K a and a the dual coefficients (zero if a row is not a support vector),
    the textbook's dual problems for one output without weights, under Σ a = 0, are

    - ``"epsilon_insensitive"``: max aᵀy - ε‖a‖₁ - ½aᵀK a, \|a_i\| <= C;
      b = y_i - f_i - ε sign(a_i) where 0 < \|a_i\| < C;
    - ``"squared_epsilon_insensitive"``: max aᵀy - ε‖a‖₁ - ½aᵀ(K + I/(2C))a;
      b = y_i - f_i - (ε + \|a_i\|/(2C)) sign(a_i) where a_i is not zero;
    - ``"huber"``: max aᵀy - ½aᵀ(K + I/C)a, \|a_i\| <= C κ; b = y_i - f_i - a_i/C where
      \|a_i\| < C κ.

    ``"squared_epsilon_insensitive"`` with ``epsilon=0`` is :class:`KernelRidge` with the same
    alpha.

    For normal noise of known standard deviation, the best half-width of the tube is 0.6 standard
    deviations (Smola et al., 1998). Held-out residuals are somewhat larger than the noise.

    References
    ----------
    Smola, Murata, Schölkopf, Müller (1998), Asymptotically optimal choice of ε-loss for support
    vector machines, ICANN.

    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.3, (11.23) to
    (11.28), and exercise 11.5. (11.27) is printed with K + I/C, which belongs to half of the
    loss stated in the text, and with the bound C and the offsets of (11.23).

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
        """Compute the tube and the threshold from the targets if they are not given.

        The tube is no wider than the noise that held-out residuals show.
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
        """The task without a tube if residuals have shown that the tube is too wide."""
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
        """Learn again without a tube if held-out residuals are small beside a tenth of y."""
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
        """Return an unfitted copy with the learned parameters and the tube of this fit.

        Parameters
        ----------
        times_rows : float, default=1.0
            Number of rows the copy will be fitted to, as a multiple of those of the last fit.
        held_out : bool, default=True
            Ignored, since this estimator does not move offsets.

        Returns
        -------
        estimator
            Unfitted.
        """
        found: Self = super().with_learned(times_rows, held_out=held_out)
        if self._learns_tube() and self.learned_ is not None:
            return found.with_parameters(epsilon=self.epsilon_)
        return found
