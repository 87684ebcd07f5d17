"""Online linear regression."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from fenchel._parameters import parameters
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import NOT_NEGATIVE, declared
from fenchel.online._base import OnlineRegressor
from fenchel.online._linear_steps import lasso_steps, squared_steps
from fenchel.online._pace import AVERAGED, LARGEST_CURVATURE, ROWS


class _Linear(OnlineRegressor):
    """Base class: subclasses name the loop, and their strength if they have one."""

    _steps: Callable[..., int] = staticmethod(squared_steps)
    _signs: FloatArray = np.array([1.0])

    def _strength(self) -> float:
        return 0.0

    def _begin(self, X: FloatArray, weight: FloatArray) -> None:
        self._state = np.zeros((len(self._signs), X.shape[1] + 1))
        self._mean = np.zeros(X.shape[1] + 1)
        self._track = np.zeros(5)

    def _learn(
        self, X: FloatArray, y: FloatArray, weight: FloatArray, orders: Iterable[IntArray]
    ) -> None:
        parts = self._state.copy(), self._mean.copy(), self._track.copy()
        state, mean, track = parts
        pace, alpha, offset = self._pace(), self._strength(), float(bool(self.fit_intercept))
        for order in orders:
            k = self._steps((X, y, weight), order, parts, pace, alpha, offset)
            if k >= 0 or not np.all(np.isfinite(state)):
                row = int(order[k])  # the last one, if it is only now that numbers overflow
                raise self._too_long(self._curvature_name(), float(track[LARGEST_CURVATURE]), row)
        self._state, self._mean, self._track = state, mean, track
        self.t_ = int(track[ROWS])
        shown = mean if self.average and track[AVERAGED] > 0.0 else self._signs @ state
        self.coef_ = shown[:-1].copy()
        self.intercept_ = float(shown[-1]) if self.fit_intercept else 0.0

    def _curvature_name(self) -> str:
        return "the weight times (||x||² + 1)" if self.fit_intercept else "the weight times ||x||²"

    def _predicted(self, X: FloatArray) -> FloatArray:
        return np.asarray(X @ self.coef_ + self.intercept_)


@parameters
class WidrowHoff(_Linear):
    r"""Online least squares with the Widrow-Hoff algorithm (least mean squares).

    .. math:: w_{t+1} = w_t - 2 \eta_t s_t\, (w_t \cdot x_t - y_t)\, x_t

    starting from w₁ = 0, with s_t the weight of the row. With η the ``step`` and D the ``delay``,
    the step η_t of row t = 1, 2, … is

    ==================  =====================================================================
    ``schedule``        η_t
    ==================  =====================================================================
    ``"constant"``      η
    ``"inverse_sqrt"``  η / √(1 + (t - 1)/D), which for D = 1 is η / √t
    ``"inverse"``       η / (1 + (t - 1)/D), which for D = 1 is η / t
    ==================  =====================================================================

    Parameters
    ----------
    step : float, optional
        η > 0. Steps below 1 / max s‖x‖² (with intercept: s(‖x‖² + 1)) never increase the distance
        to a perfect solution. None, the default, uses half of that bound for the rows seen so far,
        so it never diverges. The column of the intercept then has the value c instead of one,
        where c² is the mean square of all entries so far, and the first row changes the intercept
        only. The model then does not depend on the units of X or y. Columns should still have
        similar standard deviations.
    schedule : {"constant", "inverse_sqrt", "inverse"}, default="constant"
        See the table.
    delay : float, default=1.0
        D > 0, the number of rows after which the step of ``"inverse"`` has halved.
    average : bool or int, default=False
        Whether the model is the average of the iterates w₂, …, w_{t+1} (Polyak-Ruppert averaging)
        instead of the last iterate. An integer n omits iterates before row n. The iteration itself
        is the same.
    fit_intercept : bool, default=True
        Whether to fit an intercept, the weight of a column of ones; see ``step``. The textbook has
        no intercept.
    n_epochs : int, default=10
        Number of passes of ``fit`` over the rows; ``partial_fit`` makes one pass.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the rows in each epoch.
    random_state : int, RandomState or None, default=None
        Seed of the shuffling; None is a fixed seed.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights w, or their average.
    intercept_ : float
        The intercept; 0.0 without one.
    t_ : int
        Number of steps, one for each row of positive weight in each epoch.
    n_features_in_, feature_names_in_
        Number and names of the columns seen during ``fit``.

    Notes
    -----
    A weight scales the gradient, and thus the step of its row. On average over many rows this
    solves the weighted problem, but a weight of 2 is not the same as repeating the row.

    A given step raises a ValueError for divergence in two cases: a row with a too long step (η_t
    s‖x‖² > 1) is predicted with an error a thousand times the largest \|y\| so far, or a number
    overflows. The model is then the one before the call.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.6 and Figure
    11.7, where the sign is printed the other way round. Bach and Moulines (2013), Non-strongly-
    convex smooth stochastic approximation with convergence rate O(1/n), on the mean of the
    iterates with a constant step.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.online import WidrowHoff
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> y = X @ [1.0, -2.0] + 3.0
    >>> model = WidrowHoff()
    >>> for start in range(0, 2000, 500):
    ...     model = model.partial_fit(X[start : start + 500], y[start : start + 500])
    >>> model.coef_.round(3), round(model.intercept_, 3)
    (array([ 1., -2.]), 3.0)
    """

    step: float | None = None


@parameters
class _Penalized(_Linear):
    """Strength of the learners with a penalty."""

    constraints = declared(alpha=NOT_NEGATIVE)

    alpha: float = 1e-3

    def _strength(self) -> float:
        return float(self.alpha)


class OnlineRidge(_Penalized):
    r"""Online ridge regression.

    .. math:: w_{t+1} = w_t - 2 \eta_t s_t \left[(w_t \cdot x_t - y_t)\, x_t
              + \alpha w_t\right]

    In expectation over rows, half the objective is that of :class:`fenchel.Ridge`,
    :math:`\tfrac{\alpha}{2} \|w\|^2 + \tfrac12 \overline{(w \cdot x - y)^2}`, with the same alpha.
    The intercept is not penalized.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the regularization, >= 0. The textbook's λ in (11.12) is alpha times the number
        of rows.
    step : float, optional
        η > 0, safe below 1 / max s(‖x‖² + α), or s(‖x‖² + 1 + α) with an intercept. None uses half
        of that bound for the rows seen so far, as in :class:`WidrowHoff`, where c² is at least α.
    schedule, delay, average, fit_intercept, n_epochs, shuffle, random_state
        As in :class:`WidrowHoff`.

    Attributes
    ----------
    coef_, intercept_, t_, n_features_in_, feature_names_in_
        As in :class:`WidrowHoff`.

    Notes
    -----
    A weight scales the whole step including the penalty, so the average is the weighted one.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.6, which names
    the algorithm without pseudocode.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.online import OnlineRidge
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> model = OnlineRidge(alpha=1.0, schedule="inverse", delay=100.0)
    >>> model.fit(X, X @ [1.0, -2.0]).coef_.round(1)
    array([ 0.5, -1. ])
    """

    def _curvature_name(self) -> str:
        return f"the weight times (||x||² + {'1 + ' if self.fit_intercept else ''}alpha)"


class OnlineLasso(_Penalized):
    r"""Online Lasso, with separate positive and negative parts of the weights.

    .. math:: w^\pm_{t+1} = \max\left(0,\; w^\pm_t - \eta_t s_t \left[\alpha \mp
              (y_t - (w^+_t - w^-_t) \cdot x_t)\, x_t\right]\right), \qquad w = w^+ - w^-

    In expectation over rows the objective is
    :math:`\alpha \|w\|_1 + \tfrac12 \overline{(w \cdot x - y)^2}`, which is that of
    :class:`fenchel.Lasso` and of scikit-learn's ``Lasso`` with the same
    alpha. The intercept is not penalized.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the penalty, >= 0: λ in Figure 11.9. The λ of (11.29), whose squared loss has
        no factor ½ and is a sum, is 2 * alpha times the number of rows.
    step : float, optional
        η > 0, safe below 1 / max s‖x‖², or s(‖x‖² + 1) with an intercept. None uses half of that
        bound for the rows seen so far, as in :class:`WidrowHoff`.
    schedule, delay, average, fit_intercept, n_epochs, shuffle, random_state
        As in :class:`WidrowHoff`. An average of iterates has fewer zeros than the last iterate.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        w⁺ - w⁻, or its average over the iterates; exactly zero where both parts are zero.
    intercept_, t_, n_features_in_, feature_names_in_
        As in :class:`WidrowHoff`.

    Notes
    -----
    A weight scales the whole step including the penalty.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.4, exercise 11.10
    and Figure 11.9.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.online import OnlineLasso
    >>> X = np.random.default_rng(0).standard_normal((2000, 3))
    >>> model = OnlineLasso(alpha=0.5, schedule="inverse", delay=200.0)
    >>> model.fit(X, X @ [2.0, 0.0, -1.0]).coef_.round(1)
    array([ 1.5,  0. , -0.5])
    """

    _steps = staticmethod(lasso_steps)
    _signs = np.array([1.0, -1.0])
