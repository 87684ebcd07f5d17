"""What estimators of non-negative models share: from validated data to a certified fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from fenchel._threads import threads_that_pay
from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import NOT_NEGATIVE, declared
from fenchel.estimator import CheckedRegressor, KeptRows, KernelEstimator, all_or_nothing
from fenchel.features import NO_KERNEL_ROWS, FeatureMap, PivotedCholesky, fit_feature_map
from fenchel.kernels import as_kernel, resolve
from fenchel.positive._solution import PSDSolution, Start
from fenchel.positive.integrals import Moment
from fenchel.positive.problem import PSDProblem, Squares
from fenchel.positive.solvers import SOLVER_CHOICE, solve

FEATURE_TOL = 1e-8  # finer features add nothing but rounding to products of two of them
MOST_FEATURES = 300
_STRONGEST, _WEAKEST = 1.0, 1e-8


@dataclass(frozen=True)
class Prepared:
    """Rows of positive weight, ready for any strength."""

    inputs: KeptRows
    targets: FloatArray
    """Standardized, (n, t); none for a density."""
    shift: FloatArray
    scale: FloatArray
    """The targets were shift + scale * targets, each (t,); densities are scale * f, (1,)."""
    integrals: FloatArray | None = None
    """Of products of features, for a density f."""
    moment: Moment | None = None
    """The same for the density itself, with its error."""
    squares: Squares = field(default_factory=Squares)
    """Of features, for problems of all strengths."""


class PositiveEstimator(KernelEstimator):
    """Base class: subclasses name the problem and what is kept of its solution.

    They store at least the parameters below, whatever their defaults.
    """

    constraints = declared(kernel=as_kernel, solver=SOLVER_CHOICE, trace_penalty=NOT_NEGATIVE)

    trace_penalty: float
    warm_start: bool

    _most_features: ClassVar[int | None] = None
    """Cap where ``rank`` is None, for maps other than pivoted Cholesky; None is their own."""

    def prepare(self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None = None) -> Prepared:
        """What does not depend on strengths: rows with weight, kernel, features."""
        raise NotImplementedError

    def default_grid(self) -> dict[str, Any]:
        """Return 9 strengths, with and without a penalty on the trace."""
        return {"alpha": 9, "trace_penalty": [0.0, 1e-4]}

    def path_grid(self, prepared: Any, name: str, n: int) -> FloatArray:
        """Return n strengths on a geometric grid from 1 to 1e-8."""
        return np.geomspace(_STRONGEST, _WEAKEST, n)

    def _problem(self, prepared: Prepared) -> PSDProblem:
        """The problem for standardized targets."""
        raise NotImplementedError

    def _keep(self, prepared: Prepared, solution: PSDSolution) -> None:
        """Set the attributes that predictions need, in the units of the targets."""
        raise NotImplementedError

    @all_or_nothing
    def _fit(self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None) -> Self:
        """Validate, resolve the kernel, map the rows, solve, and keep the result."""
        self.check_parameters()
        prepared = self.prepare(X, y, sample_weight)
        inputs, last = prepared.inputs, getattr(self, "_last", None)
        if not self.warm_start or last is None or len(last.dual) != inputs.n_rows:
            start = self.fit_prepared(prepared)
        else:
            start = self.fit_prepared(prepared, last._replace(dual=last.dual[inputs.kept]))
        self._last = None
        if self.warm_start:
            whole = np.zeros((inputs.n_rows, start.dual.shape[1]))
            whole[inputs.kept] = start.dual
            self._last = start._replace(dual=whole)
        return self

    def fit_prepared(self, prepared: Prepared, start: Start | None = None) -> Start:
        """Solve on prepared rows, set the fitted attributes, and return a point to start from."""
        inputs = prepared.inputs
        self._keep_map(inputs, stacklevel=7)
        solution = self._solve(prepared, start)
        share = inputs.weight / inputs.weight.sum()
        self.dual_coef_ = np.zeros((inputs.n_rows, solution.dual.shape[1]))
        self.dual_coef_[inputs.kept] = share[:, None] * solution.dual
        self._keep(prepared, solution)
        self._keep_end(solution, stacklevel=6)
        return Start(solution.dual, solution.multipliers)

    def _solve(self, prepared: Prepared, start: Start | None) -> PSDSolution:
        """Solve the problem, from a point where its shape fits."""
        problem = replace(self._problem(prepared), shared=prepared.squares)
        fits = start is not None and start.dual.shape == (len(problem.weight), problem.n_outputs)
        tol, limit = float(self.tol), int(self.max_iter)
        return solve(problem, self.solver, tol, limit, start if fits else None, self._callback())

    def _resolved_kernel(self, rows: FloatArray, weight: FloatArray) -> Any:
        return resolve(as_kernel(self.kernel), rows, weight, self.random_state)

    def _feature_map(self, rows: FloatArray, weight: FloatArray) -> tuple[FeatureMap, FloatArray]:
        kernel, rank = self._resolved_kernel(rows, weight), self.rank
        if isinstance(self.features, str) and self.features == "cholesky":
            cholesky = PivotedCholesky(
                kernel, FEATURE_TOL, rank or MOST_FEATURES, self.random_state
            )
            return cholesky, cholesky.fit_transform(rows)
        if rank is None and self._most_features is not None:
            rank = min(self._most_features, len(rows))
        return fit_feature_map(
            self.features, kernel, rank, self.random_state, rows, NO_KERNEL_ROWS
        )

    def _features_of(self, X: ArrayLike) -> FloatArray:
        """Features of new rows, validated."""
        rows = self._new_rows(X)
        with threads_that_pay(self.feature_map_.rank_):
            return self._new_features(rows)


class PositiveRegressor(CheckedRegressor, PositiveEstimator):
    """Base class of those with targets."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows X (n_samples, n_features), or a square Gram matrix, and targets y.

        y is (n_samples,) or (n_samples, n_outputs). Weights are non-negative: an integer weight
        is the same as repeating the row.
        """
        return self._fit(X, y, sample_weight)

    def prepare(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Prepared:
        """What does not depend on strengths: rows with weight, kernel, features."""
        X, targets = self._validated(X, y)
        inputs = self._mapped(X, sample_weight)
        targets = targets[inputs.kept]
        self._check_targets(targets)
        shift, scale = self._standardization(targets, inputs.weight)
        return Prepared(inputs, (targets - shift) / scale, shift, scale)

    def _check_targets(self, targets: FloatArray) -> None:
        """Refuse targets that the loss does not know, (n, t)."""

    def _standardization(
        self, targets: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """What to subtract and divide targets by, (t,) each: nothing, and their mean size."""
        size = np.average(np.abs(targets), axis=0, weights=weight)
        return np.zeros(targets.shape[1]), np.where(size > 0.0, size, 1.0)


def with_constant(features: FloatArray) -> FloatArray:
    """Features ψ = (φ, 1), (n, r + 1)."""
    return np.concatenate([features, np.ones((len(features), 1))], axis=1)
