"""Regression with predictions that are non-negative everywhere."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any

import numpy as np

from fenchel._parameters import parameters
from fenchel._threads import threads_that_pay
from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import NONE, NOT_NEGATIVE, POSITIVE, declared
from fenchel.certificate import Callback
from fenchel.learning import Learned, Learning
from fenchel.learning.rows import rows_by_content
from fenchel.losses import Loss, Squared, make_loss
from fenchel.losses.registry import loss_choice, measured_thresholds
from fenchel.metrics import d2_poisson_score, d2_score
from fenchel.positive._base import PositiveRegressor, Prepared
from fenchel.positive._row_sums import quadratic_forms
from fenchel.positive._solution import PSDSolution, Start
from fenchel.positive._weaker import with_weaker
from fenchel.positive.conditions import (
    check_conditions,
    refuse_unreachable,
    warn_of_near_contradiction,
)
from fenchel.positive.losses import Poisson, PredictionLoss, Residual
from fenchel.positive.model import PSDModel
from fenchel.positive.problem import PSDPart, PSDProblem

POISSON = "poisson"
"""Name of the only loss that is not a loss of residuals."""
# Of the strength of the linear model, in units of squares: what 6 is for the default kernel. On
# six functions of 60 and 250 rows errors with a Gaussian kernel are the same with 0.3 and 0.6, 8 %
# larger with 2 and 20 % with 6; 0.6 makes those with a constant part of 10 a fifth larger.
_SHARE_OF_SQUARES = 0.3
_SOME_ROWS = 350  # to measure a kernel at


@parameters
class NonNegativeRegressor(PositiveRegressor):
    r"""Regression with predictions that are non-negative at every x, not only at the data.

    .. math:: \min_{A \succeq 0}\; \frac{1}{\sum_i s_i} \sum_i s_i\,
              \ell\Bigl(\frac{y_i}{s}, f_A(x_i)\Bigr)
              + \mathrm{trace\_penalty}\, \operatorname{tr} A
              + \frac{\mathrm{alpha}}{2} \|A\|_F^2, \qquad
              f_A(x) = \varphi(x)^\top A \varphi(x)

    Predictions are :math:`s f_A(x)`, with s the weighted mean of \|y\|. So strengths do not depend
    on the units of y.

    ===================  =================================================  ==================
    ``loss``             ℓ(y, z)                                            estimates
    ===================  =================================================  ==================
    ``"squared"``        ½(y - z)²                                          the mean
    ``"huber"``          ½ξ² up to \|ξ\| = κ, then κ\|ξ\| - ½κ², ξ = y - z  a robust centre
    ``"pinball"``        max(τξ, (τ - 1)ξ)                                  the τ-quantile
    ``"absolute"``, ...  see :func:`fenchel.losses.make_loss`
    ``"poisson"``        z - y log z + y log y - y                          the mean of counts
    a ``Loss``           ℓ(y - z), with thresholds divided by s
    ===================  =================================================  ==================

    Parameters
    ----------
    loss : str or Loss, default="squared"
        See the table; a ``Loss`` is in the units of y, see :meth:`fenchel.losses.Loss.rescaled`.
        For a custom loss of predictions see :func:`fenchel.positive.solve`.
    level : float, default=0.5
        τ in (0, 1), for "pinball" and "squared_pinball".
    kappa : float, optional
        κ > 0 of "huber", in the units of y. None is half of the spread of y, 1.4826 times the
        median absolute deviation from its median.
    epsilon : float, optional
        ε >= 0 of the ε-insensitive losses, in the units of y. None is a tenth of the spread of y.
    alpha : float or None, default=None
        Strength of the squared norm of A, > 0 (λ₂ in the paper). If None, it is learned, or 1e-4
        with ``learn=False``.
    trace_penalty : float, default=1e-6
        Strength of the trace of A, >= 0 (λ₁ in the paper). It lowers the rank.
    conditions : sequence of Condition, default=()
        Linear conditions on the function: its integrals, values, derivatives and moments. See
        :class:`Condition`.
    kernel : None, str, kernel or callable, default=None
        See :func:`fenchel.kernels.as_kernel`. None is a Gaussian kernel with learned length scales
        plus the constant 10, which represents a level and small waves around it. The constant is
        larger if predictions would otherwise be shrunk from the level: by the learned alpha, or
        far from the rows if the level is over ten times the mean distance of y from it (but of
        constant y, from which nothing is learned: far away 7 to 17 % are lost). With a
        condition on an integral over all of space, None is the Gaussian kernel alone. With
        ``learn=False`` or random features, length scales are computed from X. f consists of
        products of two kernel values, so with a Gaussian kernel it varies on a scale that is
        smaller by a factor of √2.
    learn : bool or Learning, default=True
        Whether, or how, to learn length scales that are "learned", and alpha if it is None, from
        held-out rows; see :class:`fenchel.learning.Learning`. The criterion is the held-out loss
        of a linear model in the features; for "poisson" it is the squared loss. Alpha is 6 times
        that of the linear model; with a ``kernel`` k that is given, 0.3 v(k²)/v(k) times, v the
        mean of k(x, x) less that of all values. Where features repeat, at least twice on average,
        and there are no conditions, it is divided by 6, up to three times, as long as the
        held-out loss of the non-negative model itself falls by a standard error.
    features : {"cholesky", "nystroem", "fourier"} or FeatureMap, default="cholesky"
        Feature map of the kernel.
    rank : int, optional
        Maximum number of features; at most 300 by default.
    solver : {"auto", "newton", "proximal_newton", "fista"} or solver, default="auto"
        "auto" is "proximal_newton", and before it "newton" down to a gap of 1e-4 if the conjugate
        of the loss is quadratic on an interval, as for "absolute" and "huber". Other losses have
        no "newton".
    tol : float, default=1e-6
        Relative duality gap to reach, in units of the mean loss of the best constant.
    max_iter : int, default=200
        Maximum number of iterations.
    warm_start : bool, default=False
        Whether to start from the solution of the previous call to ``fit``.
    random_state : int, RandomState or None, default=None
        Seed of random features and subsamples; None is a fixed seed.
    verbose : int, default=0
        If positive, print a line for each certificate, and for each evaluation of learning.
    callback, max_time
        As in :class:`fenchel.QuantileRegressor`.

    Attributes
    ----------
    model_ : PSDModel
        The fitted function in the units of y, with methods for gradient, marginals and integrals.
    rank_ : int
        Rank of A.
    scale_ : float
        The scale s.
    loss_ : Loss or None
        The loss of residuals in the units of y; None for "poisson".
    kappa_, epsilon_ : float
        As given, or computed from y.
    alpha_ : float
        As given or learned.
    learned_ : Learned or None
        What was learned, and how; None if nothing was.
    certificate_ : Certificate
        Primal objective of the fit and dual objective of a feasible point.
    dual_coef_ : ndarray of shape (n_samples,)
        Dual variables times the weights; zero for rows of weight zero. Without ``conditions``, A
        is the negative part of Σ dual_coef_i φ(x_i) φ(x_i)ᵀ + trace_penalty I, divided by alpha.
        Multipliers of conditions add further matrices to the sum.
    kernel_, kernel_error_, feature_map_ :
        The kernel, the approximation error of its trace, and the feature map. The certificate is
        for the kernel of the feature map.
    n_iter_, history_, status_ :
        Number of iterations, history of certificates, and status of the solver.
    n_features_in_, feature_names_in_ :
        Number and names of the columns seen during ``fit``.

    Raises
    ------
    ValueError
        If a target is negative with the Poisson loss, or no function meets the conditions. Other
        losses accept any targets.

    Notes
    -----
    Far from the data the prediction decays to zero with kernels that do, and to a level with the
    default learned kernel. Integrals over all of space need a kernel that vanishes, such as
    ``Gaussian("learned")``. Negative targets are fitted by values near zero.

    References
    ----------
    Marteau-Ferey, Bach, Rudi (2020), Non-parametric models for non-negative functions, (5),
    Theorems 1 and 2. The dual printed there is that of half the squared norm.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import NonNegativeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2.0, 2.0, size=(100, 1))
    >>> y = np.maximum(X[:, 0], 0.0) + 0.1 * rng.normal(size=100)
    >>> model = NonNegativeRegressor().fit(X, y)
    >>> bool(model.predict(np.linspace(-9.0, 9.0, 1000)[:, None]).min() >= 0.0)
    True
    >>> bool(model.certificate_.relative_gap <= 1e-6)
    True
    """

    # With 1, 3 and 6 times the strength of the linear model errors on 17 tables are the same up to
    # 3 %; the deviance of rare counts in 4 columns is 1.2 and 1.05 times that of a constant with 3
    # and 6. A constant part of 1 loses waves on a large level, and one of 100 is as good.
    constant_part = 10.0
    learned_share = 6.0
    feature_parameters = (*PositiveRegressor.feature_parameters, "loss")
    constraints = declared(
        loss=loss_choice(POISSON),
        kappa=NONE | POSITIVE,
        epsilon=NONE | NOT_NEGATIVE,
        conditions=check_conditions,
    )
    kappa_ = 1.0
    epsilon_ = 0.1

    loss: Any = "squared"
    _: KW_ONLY
    level: float = 0.5
    kappa: float | None = None
    epsilon: float | None = None
    alpha: float | None = None
    conditions: Any = ()
    learn: bool | Learning = True
    trace_penalty: float = 1e-6

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict non-negative values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions, >= 0.
        """
        return quadratic_forms(self._features_of(X), self.model_.factor_)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return D², the share of the loss of the best constant that is explained.

        1 is perfect, 0 is as good as the best constant for ``y``. It is R² for the squared loss,
        and D² of the deviance for the Poisson loss.
        """
        prediction, loss = self.predict(X), self.loss_
        if loss is None:
            return d2_poisson_score(y, prediction, sample_weight=sample_weight)
        return float(d2_score(y, prediction, loss, sample_weight=sample_weight))

    def _problem(self, prepared: Prepared) -> PSDProblem:
        inputs, targets = prepared.inputs, prepared.targets
        part = PSDPart(inputs.features, self._strength(), float(self.trace_penalty))
        scale = float(prepared.scale[0])
        loss = self._loss_of(targets, inputs.weight, scale)
        linear = [each.constraint(inputs.feature_map, scale) for each in self.conditions]
        return PSDProblem(loss, [part], inputs.weight, constraints=linear)

    def _solve(
        self, prepared: Prepared, start: Start | None, watch: Callback | None
    ) -> PSDSolution:
        inputs, scale = prepared.inputs, float(prepared.scale[0])
        self._measure(scale * prepared.targets, inputs.weight)
        refuse_unreachable(self.conditions, inputs.feature_map, inputs.features, scale)
        solution = super()._solve(prepared, start, watch)
        if len(self.conditions) > 1:
            values = quadratic_forms(inputs.features, solution.model.factors[0])
            warn_of_near_contradiction(values, prepared.targets)
        return solution

    def _keep(self, prepared: Prepared, solution: PSDSolution) -> None:
        self.loss_ = self._residual_loss()
        self.scale_ = float(prepared.scale[0])
        factor = np.sqrt(self.scale_) * solution.model.factors[0]
        self.model_ = PSDModel(prepared.inputs.feature_map, factor)
        self.rank_ = self.model_.rank_
        self.dual_coef_ = self.dual_coef_[:, 0]

    def _loss_of(self, targets: FloatArray, weight: FloatArray, scale: float) -> PredictionLoss:
        """The loss of standardized targets."""
        residuals = self._residual_loss()
        if residuals is None:
            return Poisson(targets[:, 0], weight)
        return Residual(residuals.rescaled(scale), targets, weight)

    def _learn(
        self,
        X: FloatArray,
        targets: FloatArray,
        weight: FloatArray,
        kernels: list[Any],
        watch: Callback | None,
    ) -> Learned | None:
        learned = super()._learn(X, targets, weight, kernels, watch)
        if learned is None or self.alpha is not None:
            return learned
        if self.kernel is not None or getattr(self.features, "kernel", None) is not None:
            some = rows_by_content(X, targets, weight, _SOME_ROWS, 1).X
            share = _SHARE_OF_SQUARES * _size_of_squares(learned.kernel(some))
            learned = replace(learned, alpha=learned.alpha * share / self.learned_share)
        if len(self.conditions):
            return learned
        data, options = self._data(X, targets, weight)[0], self._learning()
        scale = float(self._standardization(targets, weight)[1][0])
        loss_of = partial(self._loss_of, scale=scale)
        with threads_that_pay(min(len(X), options.most_rows)):
            return with_weaker(learned, data, loss_of, float(self.trace_penalty), options, watch)

    @property
    def _level(self) -> bool:
        """A constant has no integral over all of space."""
        return super()._level and not any(each.of_all_space for each in self.conditions)

    def _linear_loss(self, scale: float) -> tuple[Loss, bool]:
        residuals = self._residual_loss()
        loss = Squared() if residuals is None else residuals.rescaled(scale)
        return loss, self._level  # that of the non-negative model is as good as free

    @property
    def _free_level(self) -> float:
        return self.constant_part if self._level else 0.0

    def _residual_loss(self) -> Loss | None:
        """The loss of residuals in the units of y; None for one of predictions."""
        if isinstance(self.loss, str) and self.loss == POISSON:
            return None
        kappa, epsilon = self.kappa_, self.epsilon_
        return make_loss(
            self.loss, kappa=kappa, epsilon=epsilon, level=self.level, others=(POISSON,)
        )

    def _measure(self, targets: FloatArray, weight: FloatArray) -> None:
        self.kappa_, self.epsilon_ = measured_thresholds(self.kappa, self.epsilon, targets, weight)

    def _check_targets(self, targets: FloatArray) -> None:
        if self._residual_loss() is None and targets.min() < 0.0:
            row = int(np.argmin(targets[:, 0]))
            raise ValueError(
                f"y must be >= 0 with loss='poisson', got {targets[row, 0]:g} in row {row} of "
                "those with weight"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True  # others are accepted, but cannot be reached
        return tags


def _size_of_squares(values: FloatArray) -> float:
    """How much larger functions that vary are in the space of k² than in that of k, of norm one.

    Non-negative functions are in the space of k². Their strength has the units of that.
    """
    sizes = [float(np.mean(each.diagonal()) - np.mean(each)) for each in (values, values**2)]
    return sizes[1] / sizes[0] if min(sizes) > 0.0 else float(np.mean(values.diagonal())) or 1.0
