"""Online support vector regression with any kernel."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np

from fenchel._parameters import parameters
from fenchel._threads import threads_that_pay
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import COUNT, NONE, OneOf, declared, shown
from fenchel.kernels import Precomputed, as_kernel, has_measured_scale, resolve
from fenchel.online._base import OnlineRegressor
from fenchel.online._dual_steps import dual_steps
from fenchel.online._pace import AVERAGED, LARGEST_CURVATURE, ROWS
from fenchel.online._points import Coordinates, Points

_REMOVALS = ("smallest", "oldest")
_BLOCK_VALUES = 2**19  # kernel values at a time: 4 MiB
_BLOCK_ROWS = 256
_NO_BUDGET = np.iinfo(np.int64).max


@parameters
class _Dual(OnlineRegressor):
    """Base class: subclasses say what bounds and what bends the dual objective."""

    constraints = declared(kernel=as_kernel, budget=NONE | COUNT, removal=OneOf(_REMOVALS))

    C: float = 1.0
    _: KW_ONLY
    epsilon: float = 0.1
    kernel: Any = None
    budget: int | None = None
    removal: str = "smallest"
    verbose: int = 0

    def _shape(self) -> FloatArray:
        """ε, the upper bound, and what the loss adds to the diagonal of the kernel."""
        raise NotImplementedError

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.budget is not None and self.average:
            raise ValueError(
                f"average must be False with a budget, got average={self.average!r} and "
                f"budget={self.budget!r}: the average needs every row that was seen"
            )

    def _begin(self, X: FloatArray, weight: FloatArray) -> None:
        kernel = as_kernel(self.kernel)
        if isinstance(kernel, Precomputed):
            raise ValueError("kernel must be computed from rows, got 'precomputed'")
        seen = np.flatnonzero(weight)
        if len(seen) < 2 and has_measured_scale(kernel):
            raise ValueError(
                "kernel must have a number as length_scale, "
                f"got {shown(kernel)}: its scale is read "
                f"off the first rows, two at least, and these are n_samples = {len(seen)}"
            )
        self.kernel_ = resolve(kernel, X[seen], weight[seen], self.random_state)
        self._rows = np.zeros((0, X.shape[1]))
        self._dual = np.zeros((0, 3))
        self._track = np.zeros(4)

    def _learn(
        self, X: FloatArray, y: FloatArray, weight: FloatArray, orders: Iterable[IntArray]
    ) -> None:
        coordinates = Coordinates(self.kernel_, self._rows, self._dual, len(X))
        track = self._track.copy()
        shape = np.append(self._shape(), float(bool(self.fit_intercept)))
        budget = _NO_BUDGET if self.budget is None else int(self.budget)
        limits = shape, (budget, self.removal == "oldest")
        started = time.perf_counter()
        with threads_that_pay(_BLOCK_ROWS):
            for epoch, order in enumerate(orders, 1):
                done = 0
                while done < len(order):
                    size = max(_BLOCK_VALUES // (coordinates.count + _BLOCK_ROWS), 1)
                    block = order[done : done + min(size, _BLOCK_ROWS)]
                    done += len(block)
                    rows = X[block]
                    kernel = coordinates.enter(rows, block)
                    diagonal = np.ascontiguousarray(self.kernel_.diag(rows), dtype=np.float64)
                    data, points = (diagonal, y[block], weight[block]), coordinates.state
                    k = dual_steps(kernel, data, points, track, self._pace(), *limits)
                    if k >= 0 or not np.all(np.isfinite(coordinates.dual)):
                        top = float(track[LARGEST_CURVATURE])
                        raise self._too_long(self._curvature_name(), top, int(block[k]))
                    coordinates.settle()
                if self.verbose:
                    seconds = time.perf_counter() - started
                    line = f"epoch {epoch}: {coordinates.count} points after {seconds:.2f} s"
                    print(f"[{type(self).__name__}] {line}")  # noqa: T201  (asked for)
        self._rows, self._track = coordinates.points.rows, track
        self._dual = coordinates.dual.copy()
        if self._rows.flags.writeable:  # rows that are no points are not kept
            self._rows[len(self._dual) :] = 0.0
        self._show()

    def _show(self) -> None:
        """Set the public attributes."""
        n_averaged = self._track[AVERAGED]
        mean = self.average and n_averaged > 0.0
        self.t_ = int(self._track[ROWS])
        up, down, total = self._dual.T
        self.support_vectors_ = self._rows[: len(self._dual)]
        self.dual_coef_ = total / n_averaged if mean else up - down
        self.intercept_ = float(self.dual_coef_.sum()) if self.fit_intercept else 0.0

    def _curvature_name(self) -> str:
        return "k(x, x) + 1" if self.fit_intercept else "k(x, x)"

    def _predicted(self, X: FloatArray) -> FloatArray:
        points = Points(self.kernel_, self.support_vectors_, len(self.support_vectors_))
        prediction = np.full(len(X), self.intercept_)
        size = max(_BLOCK_VALUES // (points.count + 1), 1)
        with threads_that_pay(min(size, points.count)):
            for start in range(0, len(X) if points.count else 0, size):
                rows = X[start : start + size]
                values = points.values(rows)
                prediction[start : start + size] += values @ self.dual_coef_
        return prediction

    def __getstate__(self) -> dict[str, Any]:
        """Without the room for more points."""
        state = {**super().__getstate__()}
        if "_rows" in state:
            state["_rows"] = state["_rows"][: len(self._dual)].copy()
        return state

    def __copy__(self) -> Self:
        """A copy that does not share the buffer, in which both would go on."""
        return copy.deepcopy(self)


class OnlineSVR(_Dual):
    r"""Online support vector regression, by dual coordinate steps.

    .. math::
        \hat y_t &= \sum_s (a'_s - a_s)\, k(x_s, x_t) \\
        a'_t &\leftarrow a'_t + \min(\max(\eta_t (y_t - \hat y_t - \epsilon),
                              -a'_t),\; C s_t - a'_t) \\
        a_t &\leftarrow a_t + \min(\max(\eta_t (\hat y_t - y_t - \epsilon),
                              -a_t),\; C s_t - a_t)

    starting from zero, with s_t the weight of the row. With many epochs over the same rows in
    ``fit``, it converges to the minimizer of

    .. math:: \tfrac12 \|h\|_K^2 + C \sum_i s_i \max(0, |y_i - h(x_i)| - \epsilon),

    which for n rows is ``fenchel.SVR(alpha=1 / (C * n), fit_intercept=False)``. In a stream each
    row is a new point, even if its values repeat those of an earlier row.

    Parameters
    ----------
    C : float, default=1.0
        Bound on the dual coefficient of a row of weight one, > 0, in the units of y. If targets
        are a thousand times larger than C allows, the function cannot follow them: standardize y
        or increase C. It corresponds to 1 / (alpha n) in the batch estimators for n rows, see
        :func:`fenchel.regression.alpha_of`.
    epsilon : float, default=0.1
        Half the width of the ε-insensitive tube, >= 0, in the units of y.
    kernel : None, str, kernel or callable, default=None
        See :func:`fenchel.kernels.as_kernel`; any kernel but "precomputed". Length scales that are
        not numbers are computed from the rows of ``fit`` or of the first ``partial_fit``. To
        obtain the same model from blocks of any size, give a number.
    step : float, optional
        η > 0. Steps below 1 / k(x_t, x_t) (with intercept: 1 / (k(x_t, x_t) + 1)) never decrease
        the dual objective. None, the default, uses half of that bound, separately for each row.
    schedule, delay, average, n_epochs, shuffle, random_state
        As in :class:`WidrowHoff`; coefficients are averaged.
    budget : int, optional
        Maximum number of stored points; None for no limit. It cannot be combined with ``average``,
        which needs every point.
    removal : {"smallest", "oldest"}, default="smallest"
        Which point to remove when the budget is exceeded: the one with the smallest \|a' - a\|, or
        the one stored longest. The newest point is never removed.
    fit_intercept : bool, default=True
        Whether to add a constant to the functions. It is penalized, unlike the offset of
        :class:`fenchel.SVR`: the kernel becomes k + 1 and the intercept is Σ (a' - a). The
        textbook has no intercept.
    verbose : int, default=0
        If positive, print a line for each epoch.

    Attributes
    ----------
    support_vectors_ : ndarray of shape (n_support, n_features)
        Stored points, in the order in which they arrived.
    dual_coef_ : ndarray of shape (n_support,)
        The coefficients a' - a, or their averages.
    intercept_ : float
        The intercept; 0.0 without one.
    kernel_ : kernel
        The kernel with numerical length scales.
    t_ : int
        Number of steps, one for each row of positive weight in each epoch.
    n_features_in_, feature_names_in_
        Number and names of the columns seen during ``fit``.

    Notes
    -----
    A weight scales the bound C, not the step, as it does in the dual problem.

    Time and memory grow with the number of points. Each row needs as many kernel values as there
    are points; they are computed for blocks of rows at once.

    In one step a' and a can both change, in opposite directions, and their difference then changes
    twice as much. The safe step is therefore 1 / k(x, x) and not 2 / k(x, x).

    A given step raises a ValueError for divergence in two cases: a row with a too long step (η_t
    k(x, x) > 1) is predicted with an error a thousand times the largest \|y\| so far, or a number
    overflows. The model is then the one before the call.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.6 and Figure
    11.8; its a'_{t+1} is the coefficient of row t after the step, and its sum runs over the rows.
    Vijayakumar and Wu (1999), Sequential support vector classifiers and regression. On
    budgets: Kivinen, Smola, Williamson (2004), Online learning with kernels ("oldest"); Wang,
    Crammer, Vucetic (2012), Breaking the curse of kernelization ("smallest").

    Examples
    --------
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.online import OnlineSVR
    >>> X, y, _ = make_sine_quantiles(2000, random_state=0)
    >>> model = OnlineSVR(epsilon=0.5, kernel=Gaussian(0.2), budget=200)
    >>> for start in range(0, 2000, 500):
    ...     model = model.partial_fit(X[start : start + 500], y[start : start + 500])
    >>> len(model.support_vectors_)
    200
    """

    def _shape(self) -> FloatArray:
        return np.array([self.epsilon, self.C, 0.0], dtype=np.float64)


class OnlineQuadraticSVR(_Dual):
    r"""Online support vector regression with the squared ε-insensitive loss.

    .. math::
        \hat y_t &= \sum_s (a'_s - a_s)\, k(x_s, x_t) \\
        r_t &= y_t - \hat y_t - \frac{a'_t - a_t}{2 C s_t} \\
        a'_t &\leftarrow \max(0,\; a'_t + \eta_t (r_t - \epsilon)) \\
        a_t &\leftarrow \max(0,\; a_t + \eta_t (-r_t - \epsilon))

    starting from zero, with s_t the weight of the row. With many epochs over the same rows in
    ``fit``, it converges to the minimizer of

    .. math:: \tfrac12 \|h\|_K^2 + C \sum_i s_i \max(0, |y_i - h(x_i)| - \epsilon)^2,

    which for n rows is ``fenchel.SVR("squared_epsilon_insensitive", alpha=1 / (2 * C * n),
    fit_intercept=False)``, whose loss includes a factor ½. For ε = 0 it is kernel ridge
    regression.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the squared errors, > 0. Coefficients are not bounded.
    step : float, optional
        η > 0. Steps below 1 / (k(x_t, x_t) + 1/(2 C s_t)), with k + 1 in place of k with an
        intercept, never decrease the dual objective. None uses half of that bound, separately for
        each row.
    epsilon, kernel, schedule, delay, average, budget, removal, fit_intercept, n_epochs
        As in :class:`OnlineSVR`.
    shuffle, random_state, verbose
        As in :class:`OnlineSVR`.

    Attributes
    ----------
    support_vectors_, dual_coef_, intercept_, kernel_, t_, n_features_in_, feature_names_in_
        As in :class:`OnlineSVR`.

    Notes
    -----
    A weight scales C. This reduces the curvature in its coordinate and increases the default step.
    Divergence is reported as in :class:`OnlineSVR`, with the curvature k(x, x) + 1/(2 C s) in
    place of k(x, x).

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, exercise 11.11, with the dual
    problem (11.27), where 1/C should be 1/(2C).

    Examples
    --------
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.online import OnlineQuadraticSVR
    >>> X, y, _ = make_sine_quantiles(200, random_state=0)
    >>> model = OnlineQuadraticSVR(epsilon=0.5, n_epochs=50).fit(X, y)
    >>> len(model.support_vectors_) < 200
    True
    """

    def _shape(self) -> FloatArray:
        return np.array([self.epsilon, np.inf, 0.5 / self.C], dtype=np.float64)

    def _curvature_name(self) -> str:
        return f"{super()._curvature_name()} + 1 / (2 C s)"
