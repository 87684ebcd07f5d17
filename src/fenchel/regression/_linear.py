"""What models that are linear in the columns of X share: the shell, and the form of a norm."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from fenchel._threads import threads_that_pay
from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import (
    NONE,
    POSITIVE,
    check_magnitude,
    check_spread,
    check_weights,
    declared,
)
from fenchel.certificate import Callback
from fenchel.design import CentredRows
from fenchel.estimator import CertifiedEstimator, CheckedRegressor, all_or_nothing
from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm
from fenchel.solvers import LeastSquares, Solution, judged_again

_DEFAULT_ALPHA = 1e-3


class LinearModel(CheckedRegressor, CertifiedEstimator):
    """Base class: subclasses check their parameters, make a problem and name its solver."""

    _multi_output = True
    fit_intercept: bool

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows X (n_samples, n_features) and targets y.

        y is (n_samples,) or (n_samples, n_outputs). Weights are non-negative: an integer weight
        is the same as repeating the row. Parameters or data that are not allowed raise a
        ValueError or TypeError whose sentence names which.
        """
        self.check_parameters()
        self.fit_prepared(self.prepare(X, y, sample_weight))
        return self

    def prepare(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> CentredRows:
        """Validate data, and do what does not depend on strength."""
        X, targets = self._validated(X, y)
        check_magnitude(X, "X")
        check_spread(X, "X")
        weight = check_weights(X, sample_weight)
        return CentredRows.of(X, targets, weight, bool(self.fit_intercept))

    def fit_prepared(self, prepared: CentredRows, start: FloatArray | None = None) -> FloatArray:
        """Solve on prepared rows, from weights (d, p), and set the fitted attributes."""
        with threads_that_pay(min(prepared.features.shape)):
            problem = self.make_problem(prepared)
            solution = self._solve(prepared, problem, start)
        offset, loss = prepared.settled(solution.weights)
        primal = loss + problem.penalty(solution.weights)
        solution = judged_again(solution, primal, float(getattr(self, "tol", LeastSquares.tol)))
        single, coef = self._flat, solution.weights
        self.coef_ = coef[:, 0].copy() if single else np.ascontiguousarray(coef.T)
        self.intercept_ = float(offset[0]) if single else offset
        self._keep_end(solution)
        return solution.weights

    def make_problem(self, rows: CentredRows) -> Any:
        """Return the problem with the present parameters."""
        raise NotImplementedError

    def _solve(self, rows: CentredRows, problem: Any, start: FloatArray | None) -> Solution:
        """Solve the problem of these rows, and keep what is not common to all linear models."""
        raise NotImplementedError

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict for rows X (n_samples, n_features): (n_samples,), or (n_samples, n_outputs)."""
        return np.asarray(self._new_rows(X) @ self.coef_.T + self.intercept_)


class NormModel(LinearModel):
    """Base class of least squares with a norm as penalty or as bound."""

    constraints = declared(alpha=NONE | POSITIVE, radius=NONE | POSITIVE)

    alpha: float | None
    radius: float | None
    tol: float
    max_iter: int
    verbose: int
    callback: Callback | None
    max_time: float | None

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.alpha is not None and self.radius is not None:
            raise ValueError(
                f"at most one of alpha and radius can be given, got alpha={self.alpha!r} and "
                f"radius={self.radius!r}"
            )

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
