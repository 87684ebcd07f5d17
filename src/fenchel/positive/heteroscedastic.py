"""Mean and variance together, as one convex problem."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from scipy.stats import norm

from fenchel._parameters import parameters
from fenchel._typing import AnyArray, ArrayLike, FloatArray
from fenchel._validation import (
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
from fenchel.distributions import NormalDistribution
from fenchel.kernels import as_kernel
from fenchel.learning import Learned, Learning
from fenchel.positive._base import PositiveRegressor, Prepared
from fenchel.positive._row_sums import quadratic_forms
from fenchel.positive._solution import PSDSolution
from fenchel.positive.losses import PredictionLoss
from fenchel.positive.model import PSDModel
from fenchel.positive.problem import LinearPart, PSDPart, PSDProblem

_STEPS = 200


class NormalLikelihood(PredictionLoss):
    r"""Negative log-likelihood of normal distributions, in their natural parameters.

    With θ = 1/v and η = μ/v, and a floor t that is added to the prediction of θ:

    .. math:: \ell_i(\eta, z) = \tfrac12\Bigl(\theta y_i^2 - 2 \eta y_i + \frac{\eta^2}{\theta}
              - \log \theta\Bigr), \qquad \theta = z + t

    It is jointly convex, and log √(2π) less than minus the log-likelihood. With
    :math:`a = \beta_\eta + y_i` and :math:`s = \tfrac12 y_i^2 - \beta_z - \tfrac12 a^2 > 0`:

    .. math:: \ell_i^*(\beta) = -\tfrac12 - \tfrac12 \log(2 s) - t \beta_z

    attained at :math:`\theta = 1/(2s)`, η = aθ.

    Parameters
    ----------
    targets : ndarray of shape (n,)
        The y.
    floor : float
        t >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import NormalLikelihood
    >>> loss = NormalLikelihood(np.array([1.0]))
    >>> loss.value(np.array([[1.0, 1.0]]))  # of the mean 1 and the variance 1
    array([0.])
    """

    n_outputs = 2
    smooth = True

    def __init__(self, targets: FloatArray, floor: float = 0.0) -> None:
        self.targets = np.asarray(targets, dtype=np.float64)
        self.floor = floor

    def value(self, prediction: FloatArray) -> FloatArray:
        eta, theta = prediction[:, 0], prediction[:, 1] + self.floor
        positive = theta > 0.0
        safe = np.where(positive, theta, 1.0)
        residual = self.targets - eta / safe
        return np.where(positive, 0.5 * (safe * residual**2 - np.log(safe)), np.inf)

    def conjugate(self, dual: FloatArray) -> FloatArray:
        _, s = self._slack(dual)
        inside = s > 0.0
        value = -0.5 - 0.5 * np.log(2.0 * np.where(inside, s, 1.0)) - self.floor * dual[:, 1]
        return np.where(inside, value, np.inf)

    def conjugate_derivatives(self, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        a, s = self._slack(dual)
        theta = 0.5 / s
        gradient = np.stack([a * theta, theta - self.floor], axis=1)
        return gradient, _hessian(a, theta)

    def conjugate_prox(self, point: FloatArray, step: float | FloatArray) -> FloatArray:
        r"""Return the prox, from its one unknown θ.

        The conditions :math:`\beta + \mathrm{step} \nabla \ell^*(\beta) = p` say that
        :math:`a = A / (1 + \mathrm{step}\, \theta)`, :math:`A = p_\eta + y`, and that

        .. math:: h(\theta) = \mathrm{step}\, \theta - T
                  - \frac{A^2}{2 (1 + \mathrm{step}\, \theta)^2} - \frac{1}{2\theta} = 0, \qquad
                  T = p_z - \tfrac12 y^2 + \mathrm{step}\, t

        h is increasing and concave: Newton's method from the left never leaves it.
        """
        steps = np.ravel(step)
        a, theta = self._prox(point, steps)
        return np.stack([a - self.targets, point[:, 1] - steps * (theta - self.floor)], axis=1)

    def conjugate_prox_jacobian(self, point: FloatArray, step: float | FloatArray) -> FloatArray:
        steps = np.ravel(step)
        hessian = _hessian(*self._prox(point, steps))
        return np.asarray(np.linalg.inv(np.eye(2) + steps[:, None, None] * hessian))

    def _slack(self, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A and s."""
        a = dual[:, 0] + self.targets
        # ½y² - ½a² without cancellation
        return a, -0.5 * dual[:, 0] * (self.targets + a) - dual[:, 1]

    def _prox(self, point: FloatArray, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A and θ of the prox."""
        size = point[:, 0] + self.targets
        total = point[:, 1] - 0.5 * self.targets**2 + step * self.floor
        # the root without the term in A², which is to the left of the root
        reach = np.hypot(total, np.sqrt(2.0 * step))
        theta = np.where(
            total > 0.0, (total + reach) / (2.0 * step), 1.0 / (reach + np.abs(total))
        )
        for _ in range(_STEPS):
            shrink = 1.0 / (1.0 + step * theta)
            height = step * theta - total - 0.5 * (size * shrink) ** 2 - 0.5 / theta
            slope = step + size**2 * step * shrink**3 + 0.5 / theta**2
            move = height / slope
            theta = theta - np.minimum(move, 0.5 * theta)
            if np.all(np.abs(move) <= 1e-15 * theta):
                break
        return size / (1.0 + step * theta), theta


def _hessian(a: FloatArray, theta: FloatArray) -> FloatArray:
    """Second derivatives of the conjugate, (n, 2, 2)."""
    curvature = 2.0 * theta**2
    mixed = curvature * a
    first = theta + mixed * a
    return np.stack([first, mixed, mixed, curvature], axis=1).reshape(-1, 2, 2)


def _left(learned: Learned) -> float:
    """The share of the variance of y that is left on held-out rows."""
    return float(np.clip(learned.criterion, _LEAST_LEFT, 1.0))


# Rows times the strength of A where precisions are about 1. With 1, 3 and 10, 18 tables and
# generators of at most 250 rows gain 0.71, 0.73 and 0.74 nats over one normal distribution, and
# the largest error of a standard deviation on 2000 rows is 12, 16 and 24 %.
_OF_PRECISION = 3.0
_LEAST_LEFT = 1e-4  # of rows without noise
_SMALLEST = 1e-140  # the square of a deviation of 1e-12 of it is still a normal number


@parameters
class HeteroscedasticRegressor(PositiveRegressor):
    r"""Mean and variance of a normal distribution at each x, both fitted at once.

    In the natural parameters θ = 1/v and η = μ/v the likelihood is jointly convex, so there is
    one optimum, with a certificate:

    .. math:: \min_{A \succeq 0,\, w}\; \frac{1}{\sum_i s_i} \sum_i \frac{s_i}{2} \Bigl(
              \theta(x_i) y_i^2 - 2 \eta(x_i) y_i + \frac{\eta(x_i)^2}{\theta(x_i)}
              - \log \theta(x_i) \Bigr)
              + \mathrm{trace\_penalty}\, \operatorname{tr} A
              + \frac{\mathrm{alpha}}{2} \bigl(\|w\|^2
              + \mathrm{precision\_strength}\, \|A\|_F^2\bigr)

    .. math:: \theta(x) = \chi(x)^\top A \chi(x) + \mathrm{max\_std}^{-2}, \qquad
              \eta(x) = w^\top \varphi(x)

    with φ of ``kernel`` and χ of ``precision_kernel``, for y with its mean subtracted and divided
    by its standard deviation, so that the fit does not depend on the units of y.

    Parameters
    ----------
    alpha : float or None, default=None
        Strength of the squared norm of w, > 0. None is learned, and 1e-4 without learning.
    precision_strength : float or None, default=None
        That of the squared norm of A is this multiple of ``alpha``, > 0 (their product is λ₂ of
        the paper). None is 1; where alpha is learned, the product is 3 q² / n, with n distinct
        rows from which it was learned, and q the share of the variance of y that the linear model
        of the mean leaves on held-out rows. Precisions are about 1/q: so it is the same strength
        whatever q is.
    trace_penalty : float, default=1e-4
        Strength of the trace of A, >= 0 (λ₁ of the paper); it lowers the rank.
    max_std : float, default=3.0
        Largest standard deviation that can be predicted, in units of the standard deviation of
        y; inf for no limit.
    precision_kernel : None, str, kernel or callable, default=None
        The kernel of the precision; None is that of the mean. Its length scales are numbers or
        rules, and are not learned.
    learn : bool or Learning, default=True
        As in :class:`NonNegativeRegressor`, by the squared loss of a linear model of the mean,
        and with 100 in place of 10 beside the Gaussian kernel. Alpha is q times that of the linear
        model: with the precision 1/q everywhere the mean is the same.
    solver : {"auto", "newton", "proximal_newton", "fista"} or solver, default="auto"
        "auto" is "newton".
    tol : float, default=1e-6
        Duality gap to reach, in nats for each row.
    kernel, features, rank, max_iter, warm_start, random_state, verbose, callback, max_time
        As in :class:`NonNegativeRegressor`.

    Attributes
    ----------
    precision_model_ : PSDModel
        θ - ``floor_``, in the units of y.
    precision_kernel_ : kernel
        Its kernel.
    mean_weights_ : ndarray of shape (n_map_features,)
        w, for standardized y.
    floor_ : float
        The least precision, in the units of y.
    shift_, scale_ : float
        Mean and standard deviation of y.
    rank_ : int
        Rank of A.
    certificate_ : Certificate
        Objectives, as above, of the fit and of a feasible dual point.
    dual_coef_ : ndarray of shape (n_samples, 2)
        Dual points times the weights, for η and θ; zero for rows without weight.
    precision_strength_ : float
        As given, or as it follows from what was learned.
    alpha_, learned_, kernel_, kernel_error_, feature_map_, n_iter_, history_, status_
        As in :class:`NonNegativeRegressor`.
    n_features_in_, feature_names_in_
        As in :class:`NonNegativeRegressor`.

    Notes
    -----
    Far from the data φ falls to zero with kernels that do: there the mean is that of y and the
    standard deviation ``max_std`` times that of y. The kernel that is learned by default does
    not: there mean and standard deviation are constants. Between rows a precision without a
    constant part can fall to its floor sooner than η does, and the mean overshoots. With
    ``max_std=inf`` and a kernel that falls to zero the standard deviation grows without bounds
    instead, and the mean becomes the quotient of two vanishing numbers, which may be far from all
    targets; where θ is zero in floating point numbers, the mean is that of y and the standard
    deviation inf. Weights are counts of rows: they do not scale the variance.

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
    feature_parameters = (*PositiveRegressor.feature_parameters, second_kernel)
    constraints = declared(
        max_std=Number(0.0, open_low=True, infinite=True),
        precision_strength=NONE | POSITIVE,
        precision_kernel=as_kernel,
    )

    alpha: float | None = None
    _: KW_ONLY
    precision_strength: float | None = None
    learn: bool | Learning = True
    max_std: float = 3.0
    precision_kernel: Any = None

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict the mean, and the standard deviation of y on request.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether the standard deviations are returned as well.

        Returns
        -------
        ndarray of shape (n_samples,), or two of them
            Means; with ``return_std=True`` means and standard deviations.
        """
        mean, std = self._distribution(X)
        return (mean, std) if return_std else mean

    def predict_interval(self, X: ArrayLike, coverage: float = 0.95) -> FloatArray:
        """Predict the central interval of the normal distributions.

        It has this coverage as far as y is normal with the predicted mean and deviation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.95
            In (0, 1).

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends.
        """
        reach = norm.ppf(0.5 + 0.5 * SHARE(coverage, "coverage"))
        mean, std = self._distribution(X)
        reach = reach * std
        return np.stack([mean - reach, mean + reach], axis=1)

    def predict_quantiles(self, X: ArrayLike, levels: Any) -> FloatArray:
        """Predict quantiles of the normal distributions, (n_samples, n_levels)."""
        levels = np.atleast_1d(np.asarray(NUMBERS(levels, "levels"), dtype=np.float64))
        if levels.ndim != 1 or not np.all((levels > 0.0) & (levels < 1.0)):
            raise ValueError(f"levels must be numbers in (0, 1), got {shown(levels)}")
        mean, std = self._distribution(X)
        return mean[:, None] + std[:, None] * norm.ppf(levels)

    def predict_distribution(self, X: ArrayLike) -> NormalDistribution:
        """Predict the normal distributions of the targets, one for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        NormalDistribution
        """
        return NormalDistribution(*self._distribution(X))

    def log_likelihood(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean logarithm of the density of targets y at rows X.

        :meth:`score`, as for all regressors of scikit-learn that return standard deviations, is
        R² of the means.
        """
        mean, std = self._distribution(X)
        y = targets_of(type(self).__name__, y, len(mean))
        weight = check_weights(y[:, None], sample_weight)
        return float(np.average(norm.logpdf(y, mean, std), weights=weight))

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
        return mean, np.where(deviation > 1e-12 * size, deviation, np.where(size > 0.0, size, 1.0))

    def _problem(self, prepared: Prepared) -> PSDProblem:
        alpha, features = self._strength(), prepared.inputs.features
        own_alpha = alpha * self._precision_strength()
        mean, precision = np.eye(2)
        return PSDProblem(
            NormalLikelihood(prepared.targets[:, 0], self._floor()),
            [PSDPart(prepared.positive.features, own_alpha, float(self.trace_penalty), precision)],
            prepared.inputs.weight,
            linear=[LinearPart(features, alpha, mean)],
        )

    def _learn(self, *known: Any) -> Learned | None:
        learned = super()._learn(*known)
        if learned is None or self.alpha is not None:
            return learned
        return replace(learned, alpha=learned.alpha * _left(learned))

    def _precision_strength(self) -> float:
        """The multiple of alpha that is the strength of A."""
        if self.precision_strength is not None:
            return float(self.precision_strength)
        if self._learned is None or self.alpha is not None:
            return 1.0
        own = _OF_PRECISION / self._learned.n_rows * _left(self._learned) ** 2
        return own / self._strength()

    def with_learned(self, times_rows: float = 1.0, *, held_out: bool = True) -> Self:
        copy = super().with_learned(times_rows, held_out=held_out)
        return copy.with_parameters(precision_strength=self.precision_strength_)

    def _keep(self, prepared: Prepared, solution: PSDSolution) -> None:
        self.precision_strength_ = self._precision_strength()
        self.shift_, self.scale_ = float(prepared.shift[0]), float(prepared.scale[0])
        self._factor = solution.model.factors[0]
        self.precision_kernel_ = self._keep_second(prepared)
        self.precision_model_ = PSDModel(prepared.positive.feature_map, self._factor / self.scale_)
        self.floor_ = self._floor() / self.scale_**2
        self.mean_weights_ = solution.model.weights[0]
        self.rank_ = self.precision_model_.rank_
