"""What regressors of non-negative models share: from validated data to a certified fit."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from fenchel._threads import threads_that_pay
from fenchel._typing import ArrayLike, FloatArray, IntArray
from fenchel._validation import check_magnitude, check_number, check_weights
from fenchel.estimator import Searchable
from fenchel.features import FeatureMap, PivotedCholesky, as_feature_map, warn_of_truncation
from fenchel.kernels import Precomputed, as_kernel, resolve
from fenchel.positive._solution import PSDSolution
from fenchel.positive.problem import PSDProblem
from fenchel.positive.solvers import solve

FEATURE_TOL = 1e-8  # finer features add nothing but rounding to products of two of them
MOST_FEATURES = 300
_STRONGEST, _WEAKEST = 1.0, 1e-8


class Prepared(NamedTuple):
    """Rows of positive weight, ready for any strength."""

    kept: IntArray
    n_rows: int
    targets: FloatArray
    """Standardized, (n, t)."""
    shift: FloatArray
    scale: FloatArray
    """The targets were shift + scale * targets, each (t,)."""
    weight: FloatArray
    feature_map: FeatureMap
    features: FloatArray


class SearchablePositive(Searchable):
    """Strengths of non-negative models, in units of loss and kernel, which are both one."""

    def default_grid(self) -> dict[str, Any]:
        """Return 9 strengths, with and without a penalty on the trace."""
        return {"alpha": 9, "trace_penalty": [0.0, 1e-4]}

    def path_grid(self, prepared: Any, name: str, n: int) -> FloatArray:
        """Return n strengths on a geometric grid from 1 to 1e-8."""
        return np.geomspace(_STRONGEST, _WEAKEST, n)


class PositiveRegressor(RegressorMixin, SearchablePositive, BaseEstimator):
    """Base class: subclasses name the problem and what is kept of its solution.

    They store at least the parameters below, whatever their defaults, and have a public
    ``fit`` that calls :meth:`_fit`.
    """

    alpha: float
    trace_penalty: float
    kernel: Any
    features: Any
    rank: int | None
    solver: Any
    tol: float
    max_iter: int
    random_state: Any

    def _problem(self, prepared: Prepared) -> PSDProblem:
        """The problem for standardized targets."""
        raise NotImplementedError

    def _keep(self, prepared: Prepared, problem: PSDProblem, solution: PSDSolution) -> None:
        """Set the attributes that predictions need, in the units of the targets."""
        raise NotImplementedError

    def _standardization(
        self, targets: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """What to subtract and divide targets by, (t,) each: nothing, and their mean size."""
        size = np.average(np.abs(targets), axis=0, weights=weight)
        return np.zeros(targets.shape[1]), np.where(size > 0.0, size, 1.0)

    def _check_targets(self, targets: FloatArray) -> None:
        """Refuse targets that the loss does not know, (n, t)."""

    def check_parameters(self) -> None:
        """Raise a sentence for parameters that are not allowed."""
        check_number(self, "alpha", low=0.0, open_low=True)
        check_number(self, "trace_penalty", low=0.0)
        check_number(self, "tol", low=0.0, open_low=True)
        check_number(self, "max_iter", low=1, integer=True)
        if self.rank is not None:
            check_number(self, "rank", low=1, integer=True)

    def _fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Self:
        """Validate, resolve the kernel, map the rows, solve, and keep the result."""
        self.check_parameters()
        self.fit_prepared(self.prepare(X, y, sample_weight))
        return self

    def prepare(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Prepared:
        """What does not depend on strengths: rows with weight, kernel, features."""
        X, targets = self._validated(X, y)
        weight = check_weights(X, sample_weight)
        kept = np.flatnonzero(weight)
        rows = X[np.ix_(kept, kept)] if self._given_gram() else X[kept]
        weight, targets = weight[kept], targets[kept]
        self._check_targets(targets)
        shift, scale = self._standardization(targets, weight)
        feature_map, features = self._mapped(rows, weight)
        standardized = (targets - shift) / scale
        return Prepared(kept, len(X), standardized, shift, scale, weight, feature_map, features)

    def _mapped(self, rows: FloatArray, weight: FloatArray) -> tuple[FeatureMap, FloatArray]:
        """The feature map fitted to rows, and their features."""
        kernel = resolve(as_kernel(self.kernel), rows, weight, self.random_state)
        feature_map: FeatureMap
        if isinstance(self.features, str) and self.features == "cholesky":
            cap = min(len(rows), self.rank or MOST_FEATURES)
            feature_map = PivotedCholesky(kernel, FEATURE_TOL, cap, self.random_state)
        else:
            feature_map = as_feature_map(
                self.features, kernel, self.rank, self.random_state, *rows.shape
            )
        with threads_that_pay(len(rows)):
            return feature_map, np.asarray(feature_map.fit_transform(rows))

    def fit_prepared(self, prepared: Prepared, warm_start: FloatArray | None = None) -> FloatArray:
        """Solve on prepared rows from a dual point, set the fitted attributes; return a start."""
        self.feature_map_ = prepared.feature_map
        self.kernel_ = self.feature_map_.kernel_
        self.kernel_error_ = float(self.feature_map_.kernel_error_)
        self._kept = prepared.kept
        warn_of_truncation(self.feature_map_, stacklevel=5)
        problem = self._problem(prepared)
        solution = self._solve(problem, warm_start)
        self.certificate_, self.status_ = solution.certificate, solution.status
        self.n_iter_, self.history_ = solution.n_iter, solution.history
        self._keep(prepared, problem, solution)
        if not solution.status.converged:
            warnings.warn(solution.status.message, ConvergenceWarning, stacklevel=4)
        return solution.dual

    def _solve(self, problem: PSDProblem, warm_start: FloatArray | None) -> PSDSolution:
        """Solve the problem that :meth:`_problem` has made."""
        return solve(
            problem, self.solver, float(self.tol), int(self.max_iter), warm_start=warm_start
        )

    def _rows(self, X: ArrayLike) -> FloatArray:
        """New rows, validated, as the feature map takes them."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return X[:, self._kept] if isinstance(self.kernel_, Precomputed) else X

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
        return isinstance(as_kernel(self.kernel), Precomputed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


__all__ = ["PositiveRegressor", "Prepared", "SearchablePositive"]
