"""What all kernel regressors share: from validated data to a certified fit."""

from __future__ import annotations

import copy
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    check_is_fitted,
    validate_data,
)

from fenchel._threads import threads_that_pay
from fenchel._typing import AnyArray, ArrayLike, FloatArray, IntArray
from fenchel._validation import check_magnitude, check_number, check_weights
from fenchel.features import (
    FeatureMap,
    KernelRows,
    OperatorCholesky,
    fit_feature_map,
    warn_of_truncation,
)
from fenchel.kernels import OperatorKernel, Precomputed, as_kernel, resolve
from fenchel.losses import Loss
from fenchel.operator_problem import OperatorProblem
from fenchel.problem import GramProblem, Problem
from fenchel.solvers import Callback, Solution, WarmStart, make_solver, takes_gram
from fenchel.solvers.base import printer


class Prepared(NamedTuple):
    """Rows of positive weight, ready for any strength and loss."""

    kept: IntArray
    n_rows: int
    targets: FloatArray
    shift: FloatArray
    """Taken off the targets, to keep digits where they are far from zero."""
    weight: FloatArray
    feature_map: FeatureMap
    features: FloatArray
    rows: FloatArray
    """What the feature map was made of."""
    idle: tuple[FloatArray, FloatArray]
    """Rows and targets of weight zero."""


class KernelRegressor(RegressorMixin, BaseEstimator):
    """Base class: subclasses name the loss and the coupling, and hold no mathematics."""

    def _loss(self, n_targets: int) -> Loss:
        """Loss for targets with this number of columns."""
        raise NotImplementedError

    def _coupling(self, n_targets: int) -> FloatArray:
        """S with S Sᵀ the output matrix of the kernel."""
        return np.eye(n_targets)

    def _fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Self:
        """Validate, resolve the kernel, map the rows, solve, and keep the result."""
        self._check_parameters()
        prepared = self._prepare(X, y, sample_weight)
        solution = self._fit_prepared(prepared, self._previous(prepared))
        self._last = None
        if self.warm_start:
            whole = np.zeros((prepared.n_rows, solution.dual.shape[1]))
            whole[prepared.kept] = solution.dual
            self._last = WarmStart(whole, self.offset_, float(self.alpha))
        return self

    def _prepare(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Prepared:
        """What does not depend on strength or loss: rows with weight, kernel, features."""
        X, targets = self._validated(X, y)
        weight = self._weights(X, sample_weight)
        kept = np.flatnonzero(weight)
        rows = X[np.ix_(kept, kept)] if self._given_gram() else X[kept]
        weight = weight[kept]
        if isinstance(self.kernel, OperatorKernel):
            self._check_outputs(self.kernel, targets.shape[1])
            kernel = self.kernel.resolved(rows, weight, self.random_state)
        else:
            kernel = resolve(as_kernel(self.kernel), rows, weight, self.random_state)
        with threads_that_pay(len(rows)):
            feature_map, features = fit_feature_map(
                self.features, kernel, self.rank, self.random_state, rows, takes_gram(self.solver)
            )
        without = np.setdiff1d(np.arange(len(X)), kept, assume_unique=True)
        idle = X[without], targets[without]
        targets, shift = targets[kept], np.zeros(targets.shape[1])
        if self.fit_intercept:
            # a value of the data, so that constant targets become exactly zero
            shift = np.partition(targets, len(targets) // 2, axis=0)[len(targets) // 2]
        shifted = targets - shift
        return Prepared(kept, len(X), shifted, shift, weight, feature_map, features, rows, idle)

    def _fit_prepared(self, prepared: Prepared, warm_start: WarmStart | None) -> Solution:
        """Solve on prepared rows, and set the fitted attributes."""
        self.feature_map_ = copy.copy(prepared.feature_map)
        self.kernel_ = self.feature_map_.kernel_
        self.kernel_error_ = float(self.feature_map_.kernel_error_)
        self._kept = prepared.kept
        warn_of_truncation(self.feature_map_, stacklevel=5)
        n_targets = prepared.targets.shape[1]
        loss = self._loss(n_targets)
        n_outputs = loss.n_outputs or n_targets
        operator = isinstance(self.feature_map_, OperatorCholesky)
        given = GramProblem if isinstance(self.feature_map_, KernelRows) else Problem
        problem = (OperatorProblem if operator else given)(
            loss=loss,
            features=prepared.features,
            targets=prepared.targets,
            coupling=np.eye(n_outputs) if operator else self._coupling(n_outputs),
            sample_weight=prepared.weight,
            alpha=float(self.alpha),
            fit_intercept=bool(self.fit_intercept),
        )
        solver = make_solver(self.solver, problem, float(self.tol), int(self.max_iter))
        with threads_that_pay(min(len(prepared.features), prepared.features.shape[-1])):
            solution = solver.solve(problem, warm_start, self._callback())
            self._keep(problem, solution)
            self._remember(prepared, problem)
            self.offset_ = solution.offset + prepared.shift
        if not solution.status.converged:
            warnings.warn(solution.status.message, ConvergenceWarning, stacklevel=4)
        return solution

    def _keep(self, problem: Problem, solution: Solution) -> None:
        dual = problem.weight[:, None] * solution.dual
        carrying = np.flatnonzero(np.any(dual != 0.0, axis=1))
        self.support_ = self._kept[carrying]
        self.dual_coef_ = dual[carrying]
        self.coupling_ = problem.coupling @ problem.coupling.T
        self.weights_ = problem.directions(solution.weights)
        if isinstance(self.feature_map_, KernelRows):
            needed = np.flatnonzero(np.any(self.weights_ != 0.0, axis=1))
            self.feature_map_.keep(needed)
            self.weights_ = self.weights_[needed]
        self.certificate_ = solution.certificate
        self.history_ = solution.history
        self.n_iter_ = solution.n_iter
        self.loss_ = problem.loss
        self.status_ = solution.status

    def _remember(self, prepared: Prepared, problem: Problem) -> None:
        """Keep of the training rows what attributes computed on demand need: nothing here."""

    def _decision(self, X: AnyArray) -> FloatArray:
        """All outputs for new rows, (n, p)."""
        check_is_fitted(self)
        return self._evaluate(validate_data(self, X, dtype=np.float64, reset=False))

    def _evaluate(self, X: FloatArray) -> FloatArray:
        """The same for rows that are validated."""
        if isinstance(self.kernel_, Precomputed):
            X = X[:, self._kept]
        with threads_that_pay(min(len(X), len(self.weights_))):
            return np.asarray(self.feature_map_.transform(X) @ self.weights_ + self.offset_)

    def _validated(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        multi = self.__sklearn_tags__().target_tags.multi_output
        X, y = validate_data(
            self, X, y, dtype=np.float64, multi_output=multi, y_numeric=True, order="C"
        )
        y = np.asarray(y, dtype=np.float64)
        if self._given_gram() and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"with kernel='precomputed', X must be a square Gram matrix, got shape {X.shape}"
            )
        check_magnitude(y, "y")
        self._flat = y.ndim == 1
        return X, y[:, None] if y.ndim == 1 else y

    def _given_gram(self) -> bool:
        """Whether X holds kernel values."""
        operator = isinstance(self.kernel, OperatorKernel)
        return not operator and isinstance(as_kernel(self.kernel), Precomputed)

    def _check_outputs(self, kernel: OperatorKernel, n_targets: int) -> None:
        wanted = self._loss(n_targets).n_outputs or n_targets
        if kernel.n_outputs != wanted:
            raise ValueError(
                f"kernel must have one output for each level or column of y, {wanted} here, got "
                f"{type(kernel).__name__} with {kernel.n_outputs}"
            )

    def _weights(self, X: FloatArray, sample_weight: AnyArray | None) -> FloatArray:
        return check_weights(X, sample_weight)

    def _check_parameters(self) -> None:
        check_number(self, "alpha", low=0.0, open_low=True)
        check_number(self, "tol", low=0.0, open_low=True)
        check_number(self, "max_iter", low=1, integer=True)
        if self.rank is not None:
            check_number(self, "rank", low=1, integer=True)

    def _previous(self, prepared: Prepared) -> WarmStart | None:
        """Solution of the previous fit, if warm_start asks for it and it fits."""
        last = getattr(self, "_last", None)
        n_outputs = self._loss(prepared.targets.shape[1]).n_outputs or prepared.targets.shape[1]
        if not self.warm_start or last is None:
            return None
        if last.dual.shape != (prepared.n_rows, n_outputs):
            return None
        return last._replace(dual=last.dual[prepared.kept], offset=last.offset - prepared.shift)

    def _callback(self) -> Callback | None:
        return printer(type(self).__name__) if self.verbose else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


__all__ = ["KernelRegressor", "Prepared", "check_number"]
