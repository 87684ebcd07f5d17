"""Joint regression of mean and variance as one convex problem."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from scipy.stats import norm

from fenchel._parameters import parameters
from fenchel._threads import threads_that_pay
from fenchel._typing import AnyArray, ArrayLike, FloatArray
from fenchel._validation import (
    COUNT,
    NONE,
    NUMBERS,
    POSITIVE,
    SHARE,
    Number,
    check_weights,
    declared,
    shown,
    targets_of,
)
from fenchel.certificate import Callback
from fenchel.distributions import NormalDistribution
from fenchel.estimator import KeptRows
from fenchel.features import default_kernel
from fenchel.kernels import as_kernel, resolve
from fenchel.learning import Learned, Learning
from fenchel.positive._base import PositiveRegressor, Prepared, mean_of_counted
from fenchel.positive._row_sums import quadratic_forms
from fenchel.positive._solution import PSDSolution
from fenchel.positive._spread import (
    PRECISION_RANK,
    Known,
    Mean,
    Spread,
    SpreadSearch,
)
from fenchel.positive.model import PSDModel
from fenchel.positive.normal_likelihood import NormalRows, NormalStrengths
from fenchel.positive.problem import PSDProblem


def _with(learned: Learned, spread: Spread, log_scale: float) -> Learned:
    """What is learned of the mean alone, with what the likelihood has chosen after it."""
    history = learned.history + spread.history
    learned = spread.pair.mean.learned
    early = learned.ended_early or spread.reason != ""
    message = learned.message
    if spread.reason:
        message = f"{message}; what mean and precision share ended early: {spread.reason}"
    found = replace(
        learned,
        kernel=spread.pair.kernel,
        alpha=spread.strengths.alpha,
        history=history,
        message=message,
        ended_early=early,
    )
    if spread.criterion is None:
        return found
    return replace(found, criterion=spread.criterion + log_scale, in_nats=True)


_SMALLEST = 1e-140  # the square of a deviation of 1e-12 of it is still a normal number


@parameters
class HeteroscedasticRegressor(PositiveRegressor):
    r"""Regression of the mean and variance of a normal distribution at each x.

    With the natural parameters θ = 1/v and η = μ/v the negative log-likelihood is jointly convex.
    Mean and variance are fitted together, with one global optimum and a certificate:

    .. math:: \min_{A \succeq 0,\, w}\; \frac{1}{\sum_i s_i} \sum_i \frac{s_i}{2} \Bigl(
              \theta(x_i) y_i^2 - 2 \eta(x_i) y_i + \frac{\eta(x_i)^2}{\theta(x_i)}
              - \log \theta(x_i) \Bigr)
              + \mathrm{trace\_penalty}\, \operatorname{tr} A
              + \frac{\mathrm{alpha}}{2} \bigl(\|w\|^2
              + \mathrm{precision\_strength}\, \|A\|_F^2\bigr)

    .. math:: \theta(x) = \chi(x)^\top A \chi(x) + \mathrm{max\_std}^{-2}, \qquad
              \eta(x) = w^\top \varphi(x)

    with φ the features of ``kernel`` and χ those of ``precision_kernel``. The targets y are
    standardized first, so the fit does not depend on the units of y.

    Parameters
    ----------
    alpha : float or None, default=None
        Strength of the squared norm of w, > 0. If None, it is learned, or 1e-4 with
        ``learn=False``.
    precision_strength : float or None, default=None
        Ratio of the strength of the squared norm of A to ``alpha``, > 0; their product is λ₂ in
        the paper. If None, it is learned if alpha is learned, and 1 otherwise.
    trace_penalty : float, default=1e-4
        Strength of the trace of A, >= 0 (λ₁ in the paper). It lowers the rank.
    max_std : float, default=3.0
        Largest predicted standard deviation, in units of the standard deviation of y; inf for no
        limit.
    precision_kernel : None, str, kernel or callable, default=None
        Kernel of the precision. If None, it is learned if alpha and ``kernel`` are None, and is
        the kernel of the mean otherwise. A given kernel must have length scales that are numbers
        or rules; they are not learned.
    precision_rank : int or None, default=None
        Maximum number of features of a separate precision kernel. None is 30 if that kernel is
        learned, and ``rank`` otherwise.
    learn : bool or Learning, default=True
        As in :class:`NonNegativeRegressor`, with a constant of 100 instead of 10 added to the
        Gaussian kernel, which may also be of the features and their ranks. If alpha is None, mean
        and precision are then learned together, see Notes.
    solver : {"auto", "newton", "proximal_newton", "fista"} or solver, default="auto"
        "auto" is "newton".
    tol : float, default=1e-6
        Duality gap to reach, in nats per row.
    kernel, features, rank, max_iter, warm_start, random_state, verbose, callback, max_time
        As in :class:`NonNegativeRegressor`.

    Attributes
    ----------
    precision_model_ : PSDModel
        θ - ``floor_``, in the units of y.
    precision_kernel_ : kernel
        Kernel of the precision.
    mean_weights_ : ndarray of shape (n_map_features,)
        The weights w, for standardized y.
    floor_ : float
        Smallest precision, in the units of y.
    shift_, scale_ : float
        Mean and standard deviation of y.
    rank_ : int
        Rank of A.
    certificate_ : Certificate
        Primal objective of the fit and dual objective of a feasible point.
    dual_coef_ : ndarray of shape (n_samples, 2)
        Dual variables times the weights, for η and θ; zero for rows of weight zero.
    precision_strength_ : float
        As given or learned.
    alpha_, learned_, kernel_, kernel_error_, feature_map_, n_iter_, history_, status_
        As in :class:`NonNegativeRegressor`.
    n_features_in_, feature_names_in_
        As in :class:`NonNegativeRegressor`.

    Notes
    -----
    Learning starts with a linear least-squares model of the mean. Let q be the share of the
    variance that it does not explain. Its alpha times q gives the same mean at a constant
    precision of 1/q. With this alpha, the strength of A starts at 3 q² / n, with n distinct rows.
    From there both strengths, in steps of a factor 10, and the kernels are chosen by held-out
    likelihood. It uses 3 folds, or 5 with fewer than 150 rows, and at most 1000 rows. The held-out
    likelihood allows one row in n to have any value, so that no single row decides. The simplest
    choice within one standard error of the best is taken: a constant precision before a varying
    one, and larger strengths before smaller ones. The candidate kernels are that of the linear
    model; the same relearned with weights, for both functions; a constant; and a kernel for the
    precision alone, learned from absolute residuals. If no kernel is given, the linear model is
    also learned with a kernel of the features and their ranks
    (:class:`~fenchel.kernels.WithRanks`), and the other candidates are of the better one of the
    two. ``learned_.criterion`` is minus the held-out log-likelihood.

    With a kernel that decays to zero, far from the data the mean is the mean of y and the standard
    deviation is ``max_std`` times that of y. The kernel learned by default does not decay: far
    from the data, mean and standard deviation tend to constants that no row determines. These may
    be far from all targets, with small standard deviations, also in wide gaps between rows. On the
    Engel data the predicted mean at an income of 10 000, twice the largest one, is 156, below all
    targets, which are between 242 and 2033; with a kernel of the features alone,
    ``Gaussian() + ConstantKernel(100.0, "fixed")``, it is -4900. If new rows may be far from the
    training rows, predict quantiles instead. Between rows, a precision without a constant part can
    reach its floor before η decays, and the mean overshoots. With ``max_std=inf`` and a decaying
    kernel, the standard deviation grows without bound and the mean is the quotient of two
    vanishing numbers, which may be far from all targets. If θ underflows to zero, the mean is that
    of y and the standard deviation is inf. Weights count rows and do not scale the variance.

    References
    ----------
    Marteau-Ferey, Bach, Rudi (2020), Non-parametric models for non-negative functions, section
    6, heteroscedastic Gaussian process estimation; Le, Smola, Canu (2005).

    Examples
    --------
    >>> from fenchel.datasets import load_mcycle
    >>> from fenchel.positive import HeteroscedasticRegressor
    >>> X, y = load_mcycle(return_X_y=True)
    >>> model = HeteroscedasticRegressor().fit(X, y)
    >>> mean, std = model.predict([[5.0], [35.0]], return_std=True)
    >>> bool(std[0] < std[1])
    True
    """

    # One target where a small variance is predicted can cost more than all others together.
    constant_part = 100.0
    default_selection = "one_standard_error"
    second_kernel = "precision_kernel"
    feature_parameters = (*PositiveRegressor.feature_parameters, second_kernel, "precision_rank")
    constraints = declared(
        max_std=Number(0.0, open_low=True, infinite=True),
        precision_strength=NONE | POSITIVE,
        precision_kernel=as_kernel,
        precision_rank=NONE | COUNT,
    )

    alpha: float | None = None
    _: KW_ONLY
    precision_strength: float | None = None
    learn: bool | Learning = True
    max_std: float = 3.0
    precision_kernel: Any = None
    precision_rank: int | None = None

    _own_kernel = None
    """Learned kernel of the precision and its strength."""
    _own_alpha = None

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict the mean and, optionally, the standard deviation of y.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.
        return_std : bool, default=False
            Whether to return the standard deviations as well.

        Returns
        -------
        ndarray of shape (n_samples,), or two of them
            Means, or with ``return_std=True`` means and standard deviations.
        """
        mean, std = self._distribution(X)
        return (mean, std) if return_std else mean

    def predict_interval(self, X: ArrayLike, coverage: float = 0.95) -> FloatArray:
        """Predict the central interval of the normal distributions.

        Its coverage is correct if y is normal with the predicted mean and standard deviation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.
        coverage : float, default=0.95
            Probability of the interval, in (0, 1).

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper bounds.
        """
        reach = norm.ppf(0.5 + 0.5 * SHARE(coverage, "coverage"))
        mean, std = self._distribution(X)
        reach = reach * std
        return np.stack([mean - reach, mean + reach], axis=1)

    def predict_quantiles(self, X: ArrayLike, levels: Any) -> FloatArray:
        """Predict quantiles of the normal distributions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.
        levels : float or sequence of float
            Quantile levels in (0, 1).

        Returns
        -------
        ndarray of shape (n_samples, n_levels)
            Predicted quantiles, one column for each level.
        """
        levels = np.atleast_1d(np.asarray(NUMBERS(levels, "levels"), dtype=np.float64))
        if levels.ndim != 1 or not np.all((levels > 0.0) & (levels < 1.0)):
            raise ValueError(f"levels must be numbers in (0, 1), got {shown(levels)}")
        return self.predict_distribution(X).ppf(levels)

    def predict_distribution(self, X: ArrayLike) -> NormalDistribution:
        """Predict the normal distributions of the targets, one for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        NormalDistribution
            The distributions of all rows.
        """
        return NormalDistribution(*self._distribution(X))

    def log_likelihood(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the mean log-density of targets y at rows X.

        :meth:`score` is R² of the means, as for all scikit-learn regressors that return standard
        deviations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test samples.
        y : array-like of shape (n_samples,)
            True targets.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights.

        Returns
        -------
        float
            Weighted mean of the log-density.
        """
        mean, std = self._distribution(X)
        y = targets_of(type(self).__name__, y, len(mean))
        weight = check_weights(y[:, None], sample_weight)
        return mean_of_counted(norm.logpdf(y, mean, std), weight)

    def search_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood."""
        return self.log_likelihood(X, y, sample_weight)

    def _distribution(self, X: AnyArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation, (n,) each."""
        features, own = self._both_features(X)
        theta = quadratic_forms(own, self._factor) + self.floor_ * self.scale_**2
        positive = theta > 0.0
        safe = np.where(positive, theta, 1.0)
        mean = np.where(positive, features @ self.mean_weights_ / safe, 0.0)
        std = np.where(positive, 1.0 / np.sqrt(safe), np.inf)
        return self.shift_ + self.scale_ * mean, self.scale_ * std

    def _floor(self) -> float:
        return float(self.max_std) ** -2.0

    def _standardization(
        self, targets: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        mean = np.average(targets, axis=0, weights=weight)
        size = np.abs(targets).max(axis=0)
        if 0.0 < size[0] < _SMALLEST:
            raise ValueError(
                f"y must be zero or reach {_SMALLEST:g} in absolute value, got {size[0]:g} at "
                "most: its variance would underflow"
            )
        deviation = np.sqrt(np.average((targets - mean) ** 2, axis=0, weights=weight))
        least = np.where(size > 0.0, 1e-12 * size, 1.0)  # constant targets deviate by less
        return mean, np.maximum(deviation, least)

    def _problem(self, prepared: Prepared) -> PSDProblem:
        alpha, inputs = self._strength(), prepared.inputs
        own_alpha = alpha * self._precision_strength()
        strengths = NormalStrengths(alpha, own_alpha, float(self.trace_penalty), self._floor())
        own = prepared.positive.features
        return NormalRows(inputs.features, own, prepared.targets[:, 0], inputs.weight).problem(
            strengths
        )

    def _learn(
        self,
        X: FloatArray,
        targets: FloatArray,
        weight: FloatArray,
        kernels: list[Any],
        watch: Callback | None,
    ) -> Learned | None:
        self._own_kernel, self._own_alpha = None, None
        learned = super()._learn(X, targets, weight, kernels, watch)
        if learned is None or self.alpha is not None:
            return learned
        data, _ = self._data(X, targets, weight)
        ratio = None if self.precision_strength is None else float(self.precision_strength)
        ranks = self.rank, self.precision_rank
        known = Known(ratio, float(self.trace_penalty), self._floor(), *ranks)
        own = self.precision_kernel
        if own is not None:
            own = resolve(as_kernel(own, "precision_kernel"), X, weight, self.random_state)
        options, kernels, ranked = self._learning(), kernels if self._level else [], []
        if self._level:
            ranked = [self._with_level(default_kernel(self.features, "gaussian"))]
        search = SpreadSearch(data, Mean(learned, kernels), ranked, known, own, options, watch)
        with threads_that_pay(min(len(X), options.most_rows)):
            spread = search.run()
        self._own_alpha = spread.strengths.own_alpha
        if self._level and own is None:
            self._own_kernel = spread.pair.own
        _, scale = self._standardization(targets, weight)
        return _with(learned, spread, float(np.log(scale[0])))

    def _second(self, inputs: KeptRows) -> KeptRows | None:
        kernel = None if self._learned is None else self._own_kernel
        return super()._second(inputs) if kernel is None else self._mapped_second(kernel, inputs)

    @property
    def _second_rank(self) -> int | None:
        learned = self._learned is not None and self._own_kernel is not None
        if self.precision_rank is not None or not learned:
            return self.precision_rank
        return PRECISION_RANK if self.rank is None else min(self.rank, PRECISION_RANK)

    def _precision_strength(self) -> float:
        """The multiple of alpha that is the strength of A."""
        if self.precision_strength is not None:
            return float(self.precision_strength)
        if self._learned is None or self._own_alpha is None:
            return 1.0
        return self._own_alpha / self._strength()

    def with_learned(self, times_rows: float = 1.0, *, held_out: bool = True) -> Self:
        copy = super().with_learned(times_rows, held_out=held_out)
        known: dict[str, Any] = {"precision_strength": self.precision_strength_}
        if self._own_kernel is not None and self.learned_ is not None:
            known |= {"precision_kernel": self._own_kernel, "precision_rank": self._second_rank}
        return copy.with_parameters(**known)

    def _keep(self, prepared: Prepared, solution: PSDSolution) -> None:
        self.precision_strength_ = self._precision_strength()
        self.shift_, self.scale_ = float(prepared.shift[0]), float(prepared.scale[0])
        self._factor = solution.model.factors[0]
        self.precision_kernel_ = self._keep_second(prepared)
        self.precision_model_ = PSDModel(prepared.positive.feature_map, self._factor / self.scale_)
        self.floor_ = self._floor() / self.scale_**2
        self.mean_weights_ = solution.model.weights[0]
        self.rank_ = self.precision_model_.rank_
