"""Base classes of the linear models: fitting, and the problem with a norm."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from fenchel._parameters import parameters
from fenchel._threads import threads_that_pay
from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import (
    NONE,
    POSITIVE,
    check_magnitude,
    check_one_strength,
    check_spread,
    check_weights,
    declared,
)
from fenchel.certificate import Callback
from fenchel.design import CentredRows, linear_values
from fenchel.estimator import CertifiedEstimator, CheckedRegressor, all_or_nothing
from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm
from fenchel.searchable import Searchable, strengths
from fenchel.solvers import LeastSquares, Solution, judged_again

_DEFAULT_ALPHA = 1e-3
_LARGEST_ARRAY = 2**27  # numbers: 1 GiB
_LEAST_SPREAD = 1e-4  # with smaller strengths, nearly collinear columns are beyond rounding
_WEAKEST = 1e-3  # of the strength at which all coefficients become zero, as elsewhere
_LEAST = 1e-10  # mean square of a column, of the mean of all, that a grid goes down for


class LinearModel(CheckedRegressor, CertifiedEstimator):
    """Base class: subclasses check their parameters, make a problem and choose its solver."""

    _multi_output = True
    _takes_sparse = True
    _keeps_sparse: ClassVar[bool] = False
    """Whether sparse rows are never made dense."""
    fit_intercept: bool

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit all outputs at once.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights: an integer weight is the same as repeating the row.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For parameters or data that are not allowed; the message says which.
        """
        self.check_parameters()
        self.fit_prepared(self.prepare(X, y, sample_weight))
        return self

    def prepare(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> CentredRows:
        """Validate the data and do what does not depend on the strength."""
        X, targets = self._validated(X, y)
        if sparse.issparse(X) and not self._keeps_sparse:
            X = self._dense(X)
        check_magnitude(X, "X")
        check_spread(X, "X")
        weight = check_weights(X, sample_weight)
        return CentredRows.of(X, targets, weight, bool(self.fit_intercept))

    def fit_prepared(self, prepared: CentredRows, start: FloatArray | None = None) -> FloatArray:
        """Solve on prepared rows, starting from the weights of another fit; set the attributes."""
        with threads_that_pay(min(prepared.features.shape)):
            problem = self.make_problem(prepared)
            solution = self._solve(prepared, problem, start)
        coef = np.ascontiguousarray(self._coefficients(solution.weights).T)
        offset, loss = prepared.settled(coef.T)  # as predict has it, whose product rounds alike
        primal = loss + problem.penalty(solution.weights)
        solution = judged_again(solution, primal, float(getattr(self, "tol", LeastSquares.tol)))
        single = self._flat
        self.coef_: FloatArray = coef[0] if single else coef
        self.intercept_ = float(offset[0]) if single else offset
        self._keep_end(solution)
        return solution.weights

    def make_problem(self, rows: CentredRows) -> Any:
        """Return the problem with the present parameters."""
        raise NotImplementedError

    def _coefficients(self, weights: FloatArray) -> FloatArray:
        """Coefficients (d, p) of the columns of X, usually the weights of the problem."""
        return weights

    def _solve(self, rows: CentredRows, problem: Any, start: FloatArray | None) -> Solution:
        """Solve the problem of these rows, and keep what is not common to all linear models."""
        raise NotImplementedError

    def _dense(self, X: Any) -> FloatArray:
        """Sparse rows as a dense array, if that is not too large."""
        if X.shape[0] * X.shape[1] > _LARGEST_ARRAY:
            raise ValueError(
                f"X must have at most {_LARGEST_ARRAY} entries as an array for "
                f"{type(self).__name__}, which makes sparse rows dense, got shape {X.shape}: "
                "Lasso and GroupLasso keep them sparse"
            )
        return np.asarray(X.toarray(), order="C")

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict all outputs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return np.asarray(linear_values(self._new_rows(X), self.coef_.T) + self.intercept_)


class Penalized(Searchable, LinearModel):
    """Base class of the models with a strength that a search may choose."""

    feature_parameters = ("fit_intercept",)
    alpha: Any

    def default_grid(self) -> dict[str, Any]:
        """Return the default candidates: 50 strengths."""
        return {"alpha": 50}

    def path_grid(self, prepared: CentredRows, name: str, n: int) -> FloatArray:
        """Return n strengths on a geometric grid in the units of the problem, largest first.

        The curvature of the squared loss is the mean squared length of the rows. At the weakest
        strength, columns with a small standard deviation are hardly penalized either, whatever
        the units of the other columns.
        """
        share = prepared.weight / prepared.weight.sum()
        squares = np.einsum("ij,ij,i->j", prepared.features, prepared.features, share)
        varying = squares[squares > 0.0]
        least = max(varying.min() / varying.mean(), _LEAST) if len(varying) else 1.0
        return strengths(n, float(least)) * float(squares.sum() or 1.0)


@parameters
class NormModel(Penalized):
    """Base class of least squares with a norm as penalty or as constraint."""

    _keeps_sparse = True
    path_parameters: ClassVar[dict[str, str]] = {"alpha": "falling", "radius": "rising"}
    constraints = declared(alpha=NONE | POSITIVE, radius=NONE | POSITIVE)

    _: KW_ONLY
    radius: float | None = None
    fit_intercept: bool = True
    tol: float = 1e-6
    max_iter: int = 10_000
    verbose: int = 0
    callback: Callback | None = None
    max_time: float | None = None

    def check_parameters(self) -> None:
        super().check_parameters()
        check_one_strength(self.alpha, self.radius)

    def make_norm(self, n_features: int) -> GroupNorm:
        """Return the norm of the coefficients."""
        raise NotImplementedError

    def make_problem(self, rows: CentredRows) -> NormProblem:
        """Return the problem with the present parameters."""
        norm = self.make_norm(rows.features.shape[1])
        if self.radius is not None:
            return NormProblem.of(rows, norm, float(self.radius), constrained=True)
        alpha = _DEFAULT_ALPHA if self.alpha is None else float(self.alpha)
        return NormProblem.of(rows, norm, alpha)

    def path_grid(self, prepared: CentredRows, name: str, n: int) -> FloatArray:
        """Return n strengths on a geometric grid; at the first one all coefficients are zero."""
        if name == "radius":
            raise ValueError(
                f"param_grid['radius'] must be a sequence of numbers, got their number {n}"
            )
        problem = self.make_problem(prepared)
        pull = problem.norm.dual.value(problem.features.T @ problem.targets) / problem.count
        least = self._least_spread(problem.by_rows())
        return np.geomspace(1.0, _WEAKEST * least, n) * (pull or 1.0)

    def _least_spread(self, problem: NormProblem) -> float:
        """Spread of the group whose columns vary least, relative to the one where they vary most.

        The strength at which a group enters is in the units of its columns.
        """
        if not problem.is_sum_of_groups:
            return 1.0
        squares = problem.largest_squares()
        varying = squares[squares > 0.0]
        if not len(varying):
            return 1.0
        return max(float(np.sqrt(varying.min() / varying.max())), _LEAST_SPREAD)
