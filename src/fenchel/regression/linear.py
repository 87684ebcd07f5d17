"""Least squares and ridge regression on the columns of X."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel._threads import threads_that_pay
from fenchel._typing import AnyArray, FloatArray
from fenchel.design import CentredRows, Plain
from fenchel.losses import Squared
from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm
from fenchel.problem import Problem
from fenchel.regression._linear import LinearModel, Penalized
from fenchel.solvers import ClosedForm, LeastSquares, Solution
from fenchel.solvers.leave_one_out import LeaveOneOutPath, leave_one_out


class LinearRegression(LinearModel):
    r"""Linear least squares, with the minimum-norm solution if it is not unique.

    .. math:: \min_{w, b}\; \frac{1}{2 \sum_i s_i} \sum_i s_i\, \|y_i - W^\top x_i - b\|^2

    Among all minimizers, the one with the smallest ‖W‖ is chosen (11.11); the offset b is not
    part of that norm. The textbook's objective (11.8) is twice this one and has the same
    solutions.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether each output has an unpenalized offset.

    Attributes
    ----------
    coef_, intercept_
        W and b, with shapes as in :class:`Lasso`.
    rank_ : int
        Numerical rank of the centred rows. Singular values are computed with each column in units
        of its largest entry before centring. Those above 8.9e-16 √(rows · columns) and
        max(shape) · 2.2e-16 times the largest count.
    singular_values_ : ndarray of shape (min(n_rows, n_features),)
        Singular values of the rows √s_i (x_i - x̄); without intercept, x̄ is not subtracted.
    certificate_ : Certificate
        See Notes.
    status_, n_iter_, history_, n_features_in_, feature_names_in_
        As in :class:`QuantileRegressor`.

    Notes
    -----
    There is no regularization, so the dual point θ, a vector of residuals, must satisfy an
    equation: X̃ᵀθ = 0 for the centred and weighted rows X̃. It is obtained by subtracting from
    the residuals r their part in the range of X̃: θ = r - UUᵀr, with U an orthonormal basis of
    that range. Then ``gap`` = ½‖UUᵀr‖² (divided by m, the number of rows). This is not an
    estimate but the exact distance from the optimum, up to the rounding errors of ``primal``,
    which is computed from ``coef_`` and ``intercept_`` on X as given. Two conditions apply.
    First, the range is that of the first ``rank_`` singular vectors: directions with smaller
    singular values count as rounding errors. Second, the equation holds only up to rounding:
    ``feasibility`` is ‖X̃ᵀθ‖ / (‖X̃‖ ‖θ‖), and coefficients of length R could be better than
    ``dual`` by at most R ‖X̃ᵀθ‖.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.1. The matrix
    W₀ in the text before (11.11) should be a vector.

    Examples
    --------
    >>> from fenchel import LinearRegression
    >>> model = LinearRegression().fit([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], [1.0, 3.0, 5.0])
    >>> model.coef_.round(12), round(model.intercept_, 12)
    (array([2., 0.]), 1.0)
    """

    def __init__(self, *, fit_intercept: bool = True) -> None:
        self.fit_intercept = fit_intercept

    def make_problem(self, rows: CentredRows) -> NormProblem:
        """Return the problem, on fewer rows if they are many."""
        length = GroupNorm(np.zeros(rows.features.shape[1], dtype=np.intp), 2.0, 2.0)
        return NormProblem.of(rows, length, strength=0.0).reduced()

    def _solve(
        self, rows: CentredRows, problem: NormProblem, start: FloatArray | None
    ) -> Solution:
        self.rank_ = problem.range.basis.shape[1]
        self.singular_values_ = problem.singular_values * np.sqrt(rows.weight.mean())
        return LeastSquares().solve(problem)


class _Fitted(NamedTuple):
    """What leave-one-out residuals need of a fit; the caller's arrays may change after it."""

    features: FloatArray
    residual: FloatArray
    """(m, p)."""
    weight: FloatArray
    kept: AnyArray
    """Which rows have a weight, (n,)."""
    idle: tuple[FloatArray, FloatArray]
    """X and y of the others."""
    fit_intercept: bool

    @classmethod
    def of(cls, rows: CentredRows, problem: Problem, solution: Solution) -> _Fitted:
        """Copies of what is not the fit's own."""
        X, y = rows.whole
        features: Any = problem.design.features
        residual = rows.targets - (features @ solution.weights + solution.offset)
        if np.may_share_memory(features, X):
            features = features.copy()
        kept, weight = rows.kept, rows.weight.copy()
        return cls(features, residual, weight, kept, (X[~kept], y[~kept]), rows.fit_intercept)


class Ridge(Penalized):
    r"""Ridge regression: kernel ridge regression with the linear kernel, as coefficients.

    .. math:: \min_{W, b}\; \frac{\alpha}{2} \|W\|^2
              + \frac{1}{2 \sum_i s_i} \sum_i s_i\, \|y_i - W^\top x_i - b\|^2

    The offset b is not penalized. The problem is solved in the smaller of the spaces of
    columns, O(n d² + d³), and of rows, O(d n² + n³), as in Table 11.1.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the regularization, > 0. With N the sum of the weights (the number of rows
        without weights), the textbook's λ in (11.12) and scikit-learn's ``Ridge(alpha)`` are
        alpha * N here. ``KernelRidge(alpha, kernel="linear")`` is the same model.
    fit_intercept : bool, default=True
        Whether each output has an unpenalized offset.
    tol : float, default=1e-6
        Relative duality gap. A larger gap gives a warning that rounding errors dominate.

    Attributes
    ----------
    coef_, intercept_
        W and b, with shapes as in :class:`Lasso`.
    solved_in_ : {"primal", "dual"}
        The space of the solution: "primal" is that of columns, "dual" that of rows.
    loo_residuals_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        y_i minus the prediction at x_i of the model fitted without row i. As in
        :class:`KernelRidge`, copies of row i stay in the fit. They are computed at first access,
        at about the cost of the fit, from the training rows. The model keeps these until then;
        its file does not contain them. NaN where undefined, and where rounding errors dominate.
    loo_error_ : float
        Σ_i s_i e_i² / Σ_i s_i, with e_i² the mean square of row i of ``loo_residuals_``.
    certificate_ : Certificate
        In units of the objective above.
    status_, n_iter_, history_, n_features_in_, feature_names_in_
        As in :class:`QuantileRegressor`.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.2: (11.14)
    in the primal, (11.17) and (11.18) in the dual. Its regularization term λ‖w‖ in the remark on
    offsets should be λ‖w‖².

    Examples
    --------
    >>> from fenchel import Ridge
    >>> from fenchel.datasets import load_engel
    >>> X, y = load_engel(return_X_y=True)
    >>> model = Ridge(alpha=0.1).fit(X, y)
    >>> model.coef_.shape, model.solved_in_
    ((1,), 'primal')
    """

    _train: _Fitted | None = None
    _loo: tuple[FloatArray, FloatArray] | None = None

    def __init__(
        self, alpha: float = 1e-3, *, fit_intercept: bool = True, tol: float = 1e-6
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol

    @property
    def loo_residuals_(self) -> FloatArray:
        """Residuals at the models without the row, as y was given."""
        check_is_fitted(self)
        if self._loo is None:
            self._loo = self._leave_one_out()
        return self._loo[0][:, 0] if self._flat else self._loo[0]

    @property
    def loo_error_(self) -> float:
        """Weighted mean of the squares of ``loo_residuals_``."""
        check_is_fitted(self)
        if self._loo is None:
            self._loo = self._leave_one_out()
        residuals, share = self._loo
        squares = np.mean(residuals**2, axis=1)
        return float(share[share > 0.0] @ squares[share > 0.0])

    def _leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Residuals (n, p), and shares of the weights (n,)."""
        rows = self._train
        if rows is None:
            raise AttributeError(
                "loo_residuals_ needs the rows of the fit, and files hold none: fit again"
            )
        share = np.zeros(len(rows.kept))
        share[rows.kept] = rows.weight / rows.weight.sum()
        residuals = np.empty((len(share), rows.residual.shape[1]))
        X, y = rows.idle
        residuals[~rows.kept] = y - (X @ np.atleast_2d(self.coef_).T + self.intercept_)
        with threads_that_pay(0):
            residuals[rows.kept] = leave_one_out(
                rows.features,
                rows.residual,
                share[rows.kept] / self._strength,
                np.eye(y.shape[1]),
                gram=False,
                fit_intercept=rows.fit_intercept,
            )
        self._train = None
        return residuals, share

    def __getstate__(self) -> Any:
        """Without the rows of the fit."""
        state: Any = super().__getstate__()
        return {**state, "_train": None} if "_train" in state else state

    def strength(self, prepared: CentredRows) -> float:
        """Alpha as given."""
        return float(self.alpha)

    def leave_one_out_scores(self, prepared: CentredRows, alphas: FloatArray) -> FloatArray:
        """Return minus ``loo_error_`` and its standard error at each alpha, (2, m)."""
        if len(prepared.targets) == 1:
            raise ValueError("scoring='loo' needs two rows of positive weight, got n_samples = 1")
        with threads_that_pay(0):
            path = LeaveOneOutPath(
                np.ascontiguousarray(prepared.features),
                prepared.targets,
                prepared.weight,
                np.eye(prepared.targets.shape[1]),
                gram=False,
                fit_intercept=prepared.fit_intercept,
            )
            return path.scores(alphas)

    def make_problem(self, rows: CentredRows) -> Problem:
        """Return the problem with the present parameters."""
        return Problem(
            loss=Squared(),
            design=Plain(np.ascontiguousarray(rows.features), np.eye(rows.targets.shape[1])),
            targets=np.ascontiguousarray(rows.targets),
            sample_weight=rows.weight,
            alpha=float(self.alpha),
            fit_intercept=rows.fit_intercept,
        )

    def _solve(self, rows: CentredRows, problem: Problem, start: FloatArray | None) -> Solution:
        n_rows, n_columns = rows.features.shape
        self.solved_in_ = "dual" if n_rows <= n_columns else "primal"
        solver = ClosedForm(float(self.tol), singular_values=True, of_weights=True)
        solution = solver.solve(problem)
        self._train, self._loo = _Fitted.of(rows, problem, solution), None
        self._strength = problem.alpha
        return solution
