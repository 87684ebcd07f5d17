"""What estimators of non-negative models share: from validated data to a certified fit."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel

from fenchel._parameters import parameters
from fenchel._threads import threads_that_pay
from fenchel._typing import ArrayLike, FloatArray, IntArray
from fenchel._validation import NOT_NEGATIVE, declared, shown
from fenchel.certificate import Callback
from fenchel.estimator import CheckedRegressor, KeptRows, KernelEstimator, all_or_nothing
from fenchel.features import (
    FEATURE_MAPS,
    NO_KERNEL_ROWS,
    FeatureMap,
    PivotedCholesky,
    fit_feature_map,
    warn_of_truncation,
)
from fenchel.kernels import Precomputed, as_kernel, resolve
from fenchel.learning import Data, Learned, Learning
from fenchel.learning.reach import around_constant
from fenchel.learning_estimator import KernelParameters, LearningEstimator
from fenchel.losses import Loss, Squared
from fenchel.positive._few_rows import FewRows
from fenchel.positive._in_time import better_of, model_of, some_rows
from fenchel.positive._solution import PSDSolution, Start
from fenchel.positive.integrals import Moment
from fenchel.positive.problem import PSDProblem, Squares
from fenchel.positive.solvers import SOLVER_CHOICE, make_solver, solve

FEATURE_TOL = 1e-8  # finer features add nothing but rounding to products of two of them
MOST_FEATURES = 300
# What a level costs at most, alpha * level / constant²: of squares it falls short by that, which
# is a thousandth of a level of one, and two thousandths of a deviation r where the slope is r / 2
_COST_OF_LEVEL, _COST_OVER_SLOPE = 1e-3, 4e-3
# Of a constant c beside a Gaussian kernel, 2 / c of the level is lost far from the rows. Times the
# mean distance from the level over it: with 0, 1/2, 1, 2 the held-out errors of 15 tables whose
# levels are 40 deviations larger are 0.211, 0.203, 0.204, 0.206 of the constant's; of 200
# deviations 0.262, 0.204, 0.204, 0.204; without that they are the same.
_OVER_SPREAD = 1.0
_STRONGEST, _WEAKEST = 1.0, 1e-8


@dataclass(frozen=True)
class Prepared:
    """Rows of positive weight with features, ready to solve for any strength."""

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
    second: KeptRows | None = None
    """The rows with the features of a second kernel, None where there is one kernel."""
    few: FewRows | None = None
    """Few points that stand for many rows, None where there are none."""

    @property
    def positive(self) -> KeptRows:
        """The rows with the features of the non-negative functions."""
        return self.inputs if self.second is None else self.second

    def only(self, rows: IntArray) -> Prepared:
        """Some of these rows, with the units and the features of all."""
        second = None if self.second is None else self.second.only(rows)
        inputs, targets, squares = self.inputs.only(rows), self.targets[rows], Squares()
        return replace(
            self, inputs=inputs, targets=targets, second=second, squares=squares, few=None
        )


@parameters
class _Parameters(KernelParameters):
    """What all of these take; their alpha has a default of its own."""

    _: KW_ONLY
    trace_penalty: float = 1e-4
    learn: bool | Learning = False
    features: str | FeatureMap = "cholesky"
    solver: Any = "auto"
    max_iter: int = 200


class PositiveEstimator(_Parameters, KernelEstimator):
    """Base class of non-negative models; subclasses define the problem and the attributes."""

    constraints = declared(kernel=as_kernel, solver=SOLVER_CHOICE, trace_penalty=NOT_NEGATIVE)

    alpha_: float

    _most_features: ClassVar[int | None] = None
    """Cap where ``rank`` is None, for maps other than pivoted Cholesky; None is their own."""

    def prepare(self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None = None) -> Prepared:
        """Compute what does not depend on strengths: weighted rows, kernel, features."""
        raise NotImplementedError

    def default_grid(self) -> dict[str, Any]:
        """Return a grid with 9 values of alpha, with and without a penalty on the trace."""
        return {"alpha": 9, "trace_penalty": [0.0, 1e-4]}

    def path_grid(self, prepared: Any, name: str, n: int) -> FloatArray:
        """Return n values of alpha on a geometric grid from 1 to 1e-8."""
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
        watch = self._callback()
        prepared = self._prepared_for_fit(X, y, sample_weight, watch)
        inputs, last = prepared.inputs, getattr(self, "_last", None)
        if not self.warm_start or last is None or len(last.dual) != inputs.n_rows:
            start = self._fit_prepared(prepared, None, watch)
        else:
            near = last._replace(dual=last.dual[inputs.kept])
            start = self._fit_prepared(prepared, near, watch)
        self._last = self._learned = None
        if self.warm_start:
            whole = np.zeros((inputs.n_rows, start.dual.shape[1]))
            whole[inputs.kept] = start.dual
            self._last = start._replace(dual=whole)
        return self

    def _strength(self) -> float:
        """The alpha of the fit."""
        return float(self.alpha)

    def _prepared_for_fit(
        self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None, watch: Callback | None
    ) -> Prepared:
        """What :meth:`prepare` returns, after what is to be learned was."""
        return self.prepare(X, y, sample_weight)

    def fit_prepared(self, prepared: Prepared, start: Start | None = None) -> Start:
        """Solve on prepared rows, set the fitted attributes, and return a point to start from."""
        return self._fit_prepared(prepared, start, self._callback())

    def _fit_prepared(
        self, prepared: Prepared, start: Start | None, watch: Callback | None
    ) -> Start:
        inputs, self.alpha_ = prepared.inputs, self._strength()
        self._keep_map(inputs, stacklevel=8)
        if prepared.second is not None and self._second_rank is None:  # else it was asked for
            warn_of_truncation(prepared.second.feature_map, stacklevel=7)
        solution = self._solve(prepared, start, watch)
        share = inputs.weight / inputs.weight.sum()
        self.dual_coef_ = np.zeros((inputs.n_rows, solution.dual.shape[1]))
        self.dual_coef_[inputs.kept] = share[:, None] * solution.dual
        self._keep(prepared, solution)
        self._move(prepared, solution, watch)
        self._keep_end(solution, stacklevel=7)
        return Start(solution.dual, solution.multipliers)

    def _move(self, prepared: Prepared, solution: PSDSolution, watch: Callback | None) -> None:
        """Change what is kept to what other rows say: here nothing."""

    def _solve(
        self, prepared: Prepared, start: Start | None, watch: Callback | None
    ) -> PSDSolution:
        """Solve the problem of a fit."""
        return self._solve_to(float(self.tol), prepared, start, watch)

    def _solve_to(
        self, tol: float, prepared: Prepared, start: Start | None, watch: Callback | None
    ) -> PSDSolution:
        """Solve the problem, from a point where its shape fits."""
        problem = replace(self._problem(prepared), shared=prepared.squares)
        fits = start is not None and start.dual.shape == (len(problem.weight), problem.n_outputs)
        rows = None if fits else some_rows(len(problem.weight), watch)
        solver, limit = self._chosen_solver(prepared, start), int(self.max_iter)
        first = None
        if rows is not None:  # the model of some of the rows, in the features of all
            first = model_of(self._problem(prepared.only(rows)), self.solver, limit, watch)
        found = solve(problem, solver, tol, limit, start if fits else None, watch)
        return better_of(problem, found, first)

    def _chosen_solver(self, prepared: Prepared, start: Start | None = None) -> Any:
        """The solver as given, or one that knows more of the rows."""
        return self.solver

    @property
    def _second_rank(self) -> int | None:
        """The cap on features of a second kernel, where it is not that of the first."""
        return None

    def _feature_map(self, rows: FloatArray, weight: FloatArray) -> tuple[FeatureMap, FloatArray]:
        return self._map_of(self._resolved_kernel(rows, weight), rows)

    def _map_of(
        self, kernel: Any, rows: FloatArray, rank: int | None = None
    ) -> tuple[FeatureMap, FloatArray]:
        """The fitted map of a kernel, of a rank of its own or that of all, and the features."""
        rank = self.rank if rank is None else rank
        if isinstance(self.features, str) and self.features == "cholesky":
            return self._cholesky(kernel, rows, rank)
        if rank is None and self._most_features is not None:
            rank = min(self._most_features, len(rows))
        return fit_feature_map(
            self.features, kernel, rank, self.random_state, rows, NO_KERNEL_ROWS
        )

    def _cholesky(
        self, kernel: Any, rows: FloatArray, rank: int | None
    ) -> tuple[FeatureMap, FloatArray]:
        """The pivoted Cholesky factorization that products of two features need."""
        cholesky = PivotedCholesky(kernel, FEATURE_TOL, rank or MOST_FEATURES, self.random_state)
        return cholesky, cholesky.to_arrays().fit_transform(rows)

    def _features_of(self, X: ArrayLike) -> FloatArray:
        """Features of new rows, validated."""
        rows = self._new_rows(X)
        with threads_that_pay(self.feature_map_.rank_):
            return self._new_features(rows)


def mean_of_counted(values: FloatArray, weight: FloatArray) -> float:
    """Weighted mean without the values of weight zero, which may be infinite."""
    counted = weight > 0.0
    return float(np.average(values[counted], weights=weight[counted]))


class PositiveRegressor(CheckedRegressor, LearningEstimator, PositiveEstimator):
    """Base class of non-negative regressors, which learn their kernel and strength.

    The criterion of learning is that of an unconstrained linear model with the same features.
    """

    unlearned_alpha: ClassVar[float] = 1e-4
    """Value of alpha if it is None and not learned."""
    learned_share: ClassVar[float] = 1.0
    """Ratio of a learned alpha to that of the linear model."""
    smooth_by_default: ClassVar[bool] = True
    """Whether the default learned kernel has gradients and integrals."""
    constant_part: ClassVar[float] = 0.0
    """Variance of the constant that is added to the default learned kernel."""
    second_kernel: ClassVar[str | None] = None
    """Name of the parameter for a separate kernel of the non-negative functions, if any."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, or the Gram matrix (n_samples, n_samples) if
            ``kernel="precomputed"``.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target values.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights. An integer weight is equivalent to repeating the row.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For invalid parameters or data; the message names them.
        """
        return self._fit(X, y, sample_weight)

    def prepare(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Prepared:
        """Compute what does not depend on strengths: weighted rows, kernel, features."""
        self._learned, self._was_open = None, False
        return self._prepared(*self._validated(X, y), sample_weight)

    def _prepared_for_fit(
        self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None, watch: Callback | None
    ) -> Prepared:
        rows, targets = self._validated(X, y)
        prepared: Prepared = self._learned_and_prepared(rows, targets, sample_weight, watch)
        self.learned_ = self._learned
        return prepared

    def _prepared(self, X: FloatArray, targets: FloatArray, sample_weight: Any) -> Prepared:
        inputs = self._mapped(X, sample_weight)
        targets = targets[inputs.kept]
        self._check_targets(targets)
        self._measure(targets, inputs.weight)
        shift, scale = self._standardization(targets, inputs.weight)
        second = self._second(inputs)
        return Prepared(inputs, (targets - shift) / scale, shift, scale, second=second)

    def _second(self, inputs: KeptRows) -> KeptRows | None:
        """The rows with the features of the second kernel, None where there is none."""
        name = self.second_kernel
        kernel = None if name is None else getattr(self, name)
        if kernel is None:
            return None
        kernel = as_kernel(kernel, str(name))
        if self.given_gram or isinstance(kernel, Precomputed):
            raise ValueError(
                f"{name} must be None or a kernel of rows, and None with kernel='precomputed', "
                f"got {shown(getattr(self, str(name)))} with kernel={shown(self.kernel)}"
            )
        if getattr(self.features, "kernel", None) is not None:
            raise ValueError(
                f"features must be a name or a FeatureMap with kernel=None where {name} is given, "
                f"got {shown(self.features)}"
            )
        kernel = resolve(kernel, inputs.rows, inputs.weight, self.random_state)
        return self._mapped_second(kernel, inputs)

    def _mapped_second(self, kernel: Any, inputs: KeptRows) -> KeptRows:
        """The rows with the features of a second kernel, which has numbers."""
        with threads_that_pay(len(inputs.rows)):
            feature_map, features = self._map_of(kernel, inputs.rows, self._second_rank)
        return replace(inputs, feature_map=feature_map, features=features)

    def _keep_second(self, prepared: Prepared) -> Any:
        """Keep the map of the second kernel; return the kernel of the non-negative functions."""
        second = prepared.second
        self._second_map = None if second is None else second.feature_map
        return prepared.positive.feature_map.kernel_

    def _both_features(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Features of new rows, validated: of the first kernel, and of the second if there is."""
        rows = self._new_rows(X)
        with threads_that_pay(self.feature_map_.rank_):
            features = self._new_features(rows)
            if self._second_map is None:
                return features, features
            return features, np.asarray(self._second_map.transform(rows))

    def _try(self, prepared: Prepared) -> None:
        make_solver(self.solver, self._problem(prepared), 1.0, 1)

    def _default_kernels(self, X: FloatArray) -> list[Any]:
        if not self.smooth_by_default:
            return super()._default_kernels(X)
        smooth = as_kernel(None)  # few features, gradients and integrals in closed form
        return [self._with_level(smooth) if self._level else smooth]

    def _with_level(self, kernel: Any) -> Any:
        """The kernel and a constant."""
        return kernel + ConstantKernel(self.constant_part, "fixed")

    @property
    def _level(self) -> bool:
        """Whether what is learned has a constant part."""
        return self.constant_part > 0.0 and self._chooses_kernel

    @property
    def _chooses_kernel(self) -> bool:
        """Whether the kernel may have a constant part, as nothing says what it is."""
        given = self.features
        kind = FEATURE_MAPS.get(given, FeatureMap) if isinstance(given, str) else given
        if self.kernel is not None or getattr(kind, "kernel", None) is not None:
            return False
        return not getattr(kind, "needs_frequencies", False)

    def _data(self, X: FloatArray, targets: FloatArray, weight: FloatArray) -> tuple[Data, float]:
        self._check_targets(targets)
        self._measure(targets, weight)
        shift, scale = self._standardization(targets, weight)
        loss, fit_intercept = self._linear_loss(float(scale[0]))
        coupling = self._linear_coupling(loss.n_outputs or targets.shape[1])
        standard = (targets - shift) / scale
        data = Data(X, standard, weight, loss, coupling, fit_intercept)
        return data, self.learned_share

    @property
    def _free_level(self) -> float:
        """The variance of the constant that makes a level, where it is to be as good as free."""
        return 0.0

    def _learn(
        self, X: FloatArray, targets: FloatArray, weight: FloatArray, *more: Any
    ) -> Learned | None:
        """With a larger constant where a level would fall short, at the rows or far from them.

        With a constant and a strength that are s times as large, small waves around a level cost
        what they did, and the level an s-th: little beside its loss, as nothing in the linear
        model. Waves as large as the level, as where a single target makes the units, cost more.
        """
        learned, constant = super()._learn(X, targets, weight, *more), self._free_level
        if learned is None or self.alpha is not None or constant == 0.0:
            return learned
        level, slope, away = _level_and_slope(self._data(X, targets, weight)[0])
        most = min(_COST_OF_LEVEL, _COST_OVER_SLOPE * slope)
        least = _OVER_SPREAD * level / away if self._level else 0.0
        times = max(learned.alpha * level / (most * constant), least) / constant
        if times <= 1.0:
            return learned
        larger = ConstantKernel((times - 1.0) * constant, "fixed")
        return replace(learned, kernel=learned.kernel + larger, alpha=times * learned.alpha)

    def _resolved_kernel(self, rows: FloatArray, weight: FloatArray) -> Any:
        """With a level where nothing could be learned too: of constants, of one or two rows."""
        if self._learned is not None or not (self._was_open and self._level):
            return super()._resolved_kernel(rows, weight)
        return resolve(self._default_kernels(rows)[0], rows, weight, self.random_state)

    def _linear_loss(self, scale: float) -> tuple[Loss, bool]:
        """The loss of a linear model of standardized targets, and whether it has an offset."""
        return Squared(), True

    def _linear_coupling(self, n_outputs: int) -> FloatArray:
        """How outputs of the linear model are coupled: not at all."""
        return np.eye(n_outputs)

    def _strength(self) -> float:
        if self.alpha is not None:
            return float(self.alpha)
        return self.unlearned_alpha if self._learned is None else self._learned.alpha

    def strength(self, prepared: Prepared) -> float:
        """Return alpha as given or learned, or the default of the class."""
        return self._strength()

    def _check_targets(self, targets: FloatArray) -> None:
        """Refuse targets that the loss does not know, (n, t)."""

    def _measure(self, targets: FloatArray, weight: FloatArray) -> None:
        """Read off targets, in their units, what is not given: here nothing."""

    def _standardization(
        self, targets: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """What to subtract and divide targets by, (t,) each: nothing, and their mean size."""
        size = np.average(np.abs(targets), axis=0, weights=weight)
        return np.zeros(targets.shape[1]), np.where(size > 0.0, size, 1.0)


def _level_and_slope(data: Data) -> tuple[float, float, float]:
    """The best constant, its mean loss over its mean residual, how steep the loss is, and that."""
    residual = around_constant(data.loss, data.targets, data.weight)
    level = float(np.abs(data.targets - residual)[0].max())
    loss = float(np.average(data.loss.value(residual), weights=data.weight))
    away = float(np.average(np.abs(residual).max(axis=1), weights=data.weight))
    return level, loss / away, away


def with_constant(features: FloatArray) -> FloatArray:
    """Features ψ = (φ, 1), (n, r + 1)."""
    return np.concatenate([features, np.ones((len(features), 1))], axis=1)
