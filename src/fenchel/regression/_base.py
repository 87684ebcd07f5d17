"""Base class of the kernel regressors: from validated data to a certified fit."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from fenchel._groups import check_no_groups, group_numbers
from fenchel._parameters import parameters
from fenchel._threads import threads_that_pay
from fenchel._typing import AnyArray, ArrayLike, FloatArray, IntArray
from fenchel._validation import NONE, POSITIVE, check_one_strength, declared
from fenchel.certificate import Callback
from fenchel.design import Gram
from fenchel.estimator import CheckedRegressor, all_or_nothing
from fenchel.features import (
    NO_KERNEL_ROWS,
    FeatureMap,
    KernelRowLimits,
    compacted,
    fit_feature_map,
)
from fenchel.files import is_table, read_blocks
from fenchel.kernels import OperatorKernel, SparsePoints, settled
from fenchel.kernels.levels import size_of_coupling
from fenchel.learning import Data, unit_of_strength
from fenchel.learning_estimator import FEW_ROWS, KernelParameters, LearningEstimator
from fenchel.losses import Loss
from fenchel.named_kernel import solve_named
from fenchel.norm_ball import TOLERANCE, solve_in_ball
from fenchel.problem import Problem
from fenchel.regression._files import OnDisk
from fenchel.regression._importances import Importances
from fenchel.regression._kernels import check_sparse, kernels_to_choose_among
from fenchel.regression._prepared import Prepared, middle, size_of_kernel
from fenchel.regression.elsewhere import Source, check_elsewhere, prepared_from
from fenchel.searchable import strengths
from fenchel.solvers import Solution, WarmStart, judged_again, make_solver, takes_gram
from fenchel.solvers.loop import Watch

_BLOCK = 1024
_BOUNDED_ROWS, _UNBOUNDED_ROWS = KernelRowLimits(2000, 50_000), KernelRowLimits(4000, 10_000)
_SPARSE_ROWS = KernelRowLimits(10_000, 0)  # whose values are not computed again and again


@parameters
class _Parameters(KernelParameters):
    """Parameters common to all kernel regressors."""

    _: KW_ONLY
    alpha: float | None = None
    radius: float | None = None
    fit_intercept: bool = True


class KernelRegressor(Importances, CheckedRegressor, _Parameters, LearningEstimator):
    """Base class: subclasses name the loss and the coupling, and hold no mathematics."""

    feature_parameters = (*LearningEstimator.feature_parameters, "fit_intercept")
    constraints = declared(radius=NONE | POSITIVE)

    norm_: float
    """Norm ‖h‖ of the fitted function."""
    certified_offset_: FloatArray
    """The offsets that ``certificate_`` refers to."""
    _takes_sparse = True
    _sparse: bool = False
    """Whether the training rows are sparse."""
    _groups: IntArray | None = None
    """Groups of the training rows, while a fit runs."""

    def _strength_is_open(self) -> bool:
        return super()._strength_is_open() and self.radius is None

    def check_parameters(self) -> None:
        """Raise an error for parameters that are not allowed."""
        super().check_parameters()
        check_one_strength(self.alpha, self.radius)
        if getattr(self, "coupling", None) is not None and isinstance(self.kernel, OperatorKernel):
            raise ValueError(
                "coupling must be None with an operator-valued kernel, which couples the outputs "
                f"itself, got kernel={type(self.kernel).__name__}"
            )

    def make_loss(self, n_targets: int) -> Loss:
        """Return the loss for targets with this number of columns."""
        raise NotImplementedError

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Validate rows; new rows are sparse if the training rows are."""
        rows = super()._rows(X, reset=reset)
        if reset:
            self._sparse = issparse(rows)
        return SparsePoints(rows) if self._sparse or issparse(rows) else rows

    def _default_kernels(self, X: Any) -> list[Any]:
        return kernels_to_choose_among(self.features, self._learning(), X, self._sparse)

    def _feature_map(self, rows: Any, weight: FloatArray) -> tuple[FeatureMap, FloatArray]:
        if self._sparse:
            check_sparse(self.kernel, self.features)
        return super()._feature_map(rows, weight)

    def _measure(self, targets: FloatArray, weight: FloatArray) -> None:
        """Read parameters of the loss off the targets; by default none."""

    def make_coupling(self, n_targets: int) -> FloatArray:
        """Return S with S Sᵀ the output matrix of the kernel."""
        return np.eye(n_targets)

    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit all outputs at once.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a table
            Rows; the (n_samples, n_samples) Gram matrix if ``kernel="precomputed"``. They may be a
            sparse array of scipy; the kernel must then depend on products or distances of rows,
            as the linear, the Gaussian and the default Matérn kernel do. Learning makes some of
            the rows dense, at most 256 MB of them, and is left out for more than 167 772 columns.
            The fit makes them dense only where this is no larger than explicit features, as with
            a linear kernel on no more columns than rows.
            Tables that are read block by block need not fit into memory: a Parquet file or a
            folder of them, a .npy file, a table or data set of Arrow.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
            Targets, or the name of a column of a table.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Non-negative weights, or the name of a column of a table. An integer weight is the
            same as repeating the row.
        groups : array-like of shape (n_samples,), optional
            Labels of groups of dependent rows, such as the visits of a patient. The rows of a
            group are held out together when parameters are learned and offsets moved, so that
            these are valid for new groups. Only for rows in memory.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For parameters or data that are not allowed; the message says which.
        """
        self.check_parameters()
        watch = self._callback()
        source = self.elsewhere(X, y, sample_weight)
        self._groups = None
        if source is not None:
            check_no_groups(groups)
            prepared, rows, weight = prepared_from(self, source, watch)
        else:
            X, targets = self._validated(X, y)
            if groups is not None:
                self._groups = group_numbers(groups, X, sample_weight)
            prepared = self._learned_and_prepared(X, targets, sample_weight, watch)
            prepared.once = self.radius is None  # else there are several fits
            rows, weight = prepared.inputs.rows, prepared.inputs.weight
        start = self._fit_prepared(prepared, self._previous(prepared), watch)
        self.learned_, self._learned, self._groups = self._learned, None, None
        self.keep_sample(None if self.given_gram or self._sparse else rows, weight)
        self._last = None
        if self.warm_start:
            whole = np.zeros((prepared.inputs.n_rows, start.dual.shape[1]))
            whole[prepared.inputs.kept] = start.dual
            self._last = WarmStart(whole, start.offset + prepared.shift, start.alpha)
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict the targets, or the fitted levels, of new rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a table
            Rows, in any form that ``fit`` takes; kernel values against the training rows if
            ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In the shape of y. With several levels the shape is (n_samples, n_levels) or
            (n_samples, n_levels, n_outputs), in the order of ``levels``.
        """
        return self._as_given(self._decision(X))

    def _as_given(self, outputs: FloatArray) -> FloatArray:
        """Convert all outputs (n, p) to the shape of y."""
        return outputs[:, 0] if self._flat and outputs.shape[1] == 1 else outputs

    def prepare(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Prepared:
        """Validate the data and do what depends on neither strength nor loss; learn nothing."""
        self._learned, self._was_open = None, False
        source = self.elsewhere(X, y, sample_weight)
        if source is not None:
            return prepared_from(self, source, None)[0]
        return self._prepared(*self._validated(X, y), sample_weight)

    def elsewhere(self, X: Any, y: Any, sample_weight: Any = None) -> Source | None:
        """Return a table that is read block by block, or None for rows in memory."""
        if isinstance(X, Source):
            return X
        if not is_table(X):
            return None
        check_elsewhere(self, f"the table {X!r}")
        told = getattr(self._callback(), "passes", None)
        return OnDisk.read(X, y, sample_weight, self.random_state, told)

    def _prepared(
        self, X: FloatArray, targets: FloatArray, sample_weight: ArrayLike | None
    ) -> Prepared:
        if isinstance(self.kernel, OperatorKernel):
            self._check_outputs(self.kernel, targets.shape[1])
        inputs = self._mapped(X, sample_weight)
        idle = X[:0], targets[:0]
        if len(inputs.kept) < len(X):
            without = np.setdiff1d(np.arange(len(X)), inputs.kept, assume_unique=True)
            idle, targets = (X[without], targets[without]), targets[inputs.kept]
        self._measure(targets, inputs.weight)
        shift, centre = np.zeros(targets.shape[1]), None
        if self.fit_intercept:
            centre = inputs.centre()
            shift = middle(targets)
        return Prepared(inputs, targets - shift, shift, idle, centre=centre)

    def make_problem(self, prepared: Prepared) -> Problem:
        """Return the problem with the present parameters."""
        n_targets = prepared.targets.shape[1]
        loss = self.make_loss(n_targets)
        return Problem(
            loss=loss,
            design=prepared.design(self.make_coupling(loss.n_outputs or n_targets)),
            targets=prepared.targets,
            sample_weight=prepared.inputs.weight,
            alpha=self.strength(prepared),
            fit_intercept=bool(self.fit_intercept),
        )

    def fit_prepared(self, prepared: Prepared, start: WarmStart | None = None) -> WarmStart:
        """Solve on prepared rows and set the fitted attributes."""
        self._measure(prepared.targets, prepared.inputs.weight)
        return self._fit_prepared(prepared, start, self._callback())

    def _fit_prepared(
        self, prepared: Prepared, start: WarmStart | None, watch: Callback | None
    ) -> WarmStart:
        with threads_that_pay(0):  # passes have threads of their own
            used, problem, solution = self._solved(prepared, start, watch)
            prepared.adopt(used)
            moved = self._moved(prepared, problem, solution, watch)
            offset, solution = self._as_stored(prepared, problem, solution)
            self._keep_map(prepared.inputs, named=True)
            self._keep(problem, solution)
            self._remember(prepared, problem, solution)
            prepared.weights = problem.design.feature_weights(solution.weights)
            self.certified_offset_ = offset + prepared.shift
            self.offset_ = self.certified_offset_ + moved
            self.alpha_, self.norm_ = problem.alpha, problem.norm(solution.weights)
        self._keep_end(solution)
        return WarmStart(solution.dual, solution.offset, problem.alpha)

    def _moved(
        self, prepared: Prepared, problem: Problem, solution: Solution, watch: Callback | None
    ) -> FloatArray:
        """Shift that is added to the offsets of the fit; by default zero."""
        return np.zeros_like(solution.offset)

    def _solved(
        self, prepared: Prepared, start: WarmStart | None, watch: Callback | None
    ) -> tuple[Prepared, Problem, Solution]:
        """Return the problem, with a penalty or a bound on the norm, and its solution."""
        tol = self._tolerance
        if self.radius is None:
            solve = partial(self._solve, watch, 1.0)
            return solve_named(prepared, self.make_problem, solve, start, tol, watch)
        clock = None if watch is None else Watch("", max_time=getattr(self, "max_time", None))
        solve, radius = partial(self._solve, clock, TOLERANCE), float(self.radius)
        return solve_in_ball(prepared, self.make_problem, solve, start, tol, radius, watch)

    def _solve(
        self, watch: Callback | None, share: float, problem: Problem, start: WarmStart | None
    ) -> Solution:
        """Solve one problem with a penalty, to a share of the tolerance."""
        tol = share * float(self.tol)
        given: Any = self.solver
        solver: Any = make_solver(given, problem, tol, int(self.max_iter))
        if solver is given and share != 1.0:
            solver = replace(solver, tol=share * solver.tol)
        found: Solution = solver.solve(problem, start, watch)
        return found

    def _as_stored(
        self, prepared: Prepared, problem: Problem, solution: Solution
    ) -> tuple[FloatArray, Solution]:
        """Return the offset for the features of new rows, and the objective with these.

        It is recomputed if features were centred, and if weights are so large that the features
        of new rows, computed from kernel values, differ from those of the fit in digits that
        matter.
        """
        inputs, offset = prepared.inputs, solution.offset
        weights = problem.design.feature_weights(solution.weights)
        if prepared.centre is not None:
            offset = offset - prepared.centre @ weights
        large = not problem.design.is_gram and inputs.far_weights(weights, problem.targets)
        if large or prepared.centre is not None:
            features = inputs.as_new() if large else inputs.features
            coupling: Any = problem.design.coupling
            values = inputs.design(features, coupling).values(solution.weights)
            primal = problem.objective(solution.weights, values + offset)
            if np.isfinite(primal):  # rounding may cross curves that were put in order
                solution = judged_again(solution, primal, self._tolerance)
        return offset, solution

    def _kernel_rows(self) -> KernelRowLimits:
        """Limits with which a fit takes some ten seconds, unless the strength is extreme.

        The limits are lower if dual coordinates are unbounded: the last system then contains all
        rows. Stored values are up to one half faster there up to 4000 rows, and slower beyond.
        """
        if self._sparse:
            return _SPARSE_ROWS
        return _BOUNDED_ROWS if self._is_bounded() else _UNBOUNDED_ROWS

    def _is_bounded(self) -> bool:
        """Whether dual coordinates have bounds, as those of losses with bounded slopes do."""
        return False

    def keep_columns(self, number: int, names: list[str] | None, flat: bool) -> None:
        """Set number and names of the columns of a table, and whether y has shape (n,)."""
        self.n_features_in_, self._flat = number, flat
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def map_of_sample(
        self,
        rows: FloatArray,
        targets: FloatArray,
        weight: FloatArray,
        of_all: tuple[FloatArray, FloatArray],
        watch: Callback | None,
    ) -> FeatureMap:
        """Learn open parameters from a sample, and return its feature map.

        ``of_all`` are the targets and weights of all rows.
        """
        self._learned = None
        few = slice(0, FEW_ROWS)
        self._try(self._prepared(rows[few], targets[few], weight[few]))
        kernels = self._open_kernels(rows)
        if kernels:
            self._learned = self._learn(rows, targets, weight, kernels, watch)
        kernel = self._resolved_kernel(rows, weight)
        found, _ = fit_feature_map(
            self.features, kernel, self.rank, self.random_state, rows, NO_KERNEL_ROWS
        )
        if not kernels and self._strength_is_open() and self._may_learn():
            kernels = [settled(found.kernel_)]
            self._learned = self._learn(rows, targets, weight, kernels, watch)
        self._measure(*of_all)
        return found

    def _try(self, prepared: Prepared) -> None:
        """Raise an error if the solver does not suit the problem, as far as few rows show."""
        problem, inputs = self.make_problem(prepared), prepared.inputs
        if takes_gram(self.solver) and problem.design.coupling is not None:  # it may get one
            gram = np.asarray(inputs.feature_map.kernel_(inputs.rows))
            problem = replace(problem, design=Gram(gram, problem.design.coupling))
        make_solver(self.solver, problem, 1.0, 1)

    def _data(self, X: FloatArray, targets: FloatArray, weight: FloatArray) -> tuple[Data, float]:
        self._measure(targets, weight)
        n_outputs = self.make_loss(targets.shape[1]).n_outputs or targets.shape[1]
        loss, coupling, targets = self._learned_task(targets)
        intercept = bool(self.fit_intercept)
        if intercept:
            targets = targets - middle(targets)
        # a function that all outputs share has the losses of all of them against one norm
        whole = self.make_coupling(n_outputs)
        unit = float((np.linalg.norm(whole, 2) / np.linalg.norm(coupling, 2)) ** 2)
        size, groups = size_of_coupling(getattr(self, "coupling", None)), self._groups
        coupling = coupling / size**0.5
        unseen = self.kernel is None and self._learning().kernels is None
        data = Data(X, targets, weight, loss, coupling, intercept, groups=groups, unseen=unseen)
        return data, unit * size

    def _learned_task(self, targets: FloatArray) -> tuple[Loss, FloatArray, FloatArray]:
        """Loss, coupling and targets of the criterion: of all outputs, or of some."""
        n_targets = targets.shape[1]
        loss = self.make_loss(n_targets).unconstrained
        return loss, self.make_coupling(loss.n_outputs or n_targets), targets

    def default_grid(self) -> dict[str, Any]:
        """Return the default candidates: 20 strengths."""
        return {"alpha": 20}

    def path_grid(self, prepared: Prepared, name: str, n: int) -> FloatArray:
        """Return n strengths on a geometric grid in the units of the problem, largest first.

        Alpha has the units of the loss divided by those of squared functions, whose size is
        the mean diagonal of kernel and coupling, without what an offset takes of it.
        """
        return strengths(n) * self._unit_of_strength(prepared)

    def _unit_of_strength(self, prepared: Prepared) -> float:
        inputs, n_targets = prepared.inputs, prepared.targets.shape[1]
        loss = self.make_loss(n_targets)
        size = size_of_kernel(inputs, loss.n_outputs or n_targets, self.fit_intercept)
        size *= size_of_coupling(getattr(self, "coupling", None))
        return unit_of_strength(loss, prepared.targets, inputs.weight) * size

    @property
    def leave_one_out_by(self) -> str | None:
        """How rows are left out of fits on prepared rows: "refits" for a scalar kernel."""
        return None if isinstance(self.kernel, OperatorKernel) else "refits"

    def _keep(self, problem: Problem, solution: Solution) -> None:
        design = problem.design
        dual: FloatArray = np.empty(solution.dual.shape)
        ones = np.ones(problem.n_outputs)

        def carrying(rows: slice) -> IntArray:
            np.multiply(problem.weight[rows, None], solution.dual[rows], out=dual[rows])
            return rows.start + np.flatnonzero(np.dot(np.abs(dual[rows]), ones))

        found = design.blocks.map(carrying)
        if sum(map(len, found)) == len(dual):
            self.support_, self.dual_coef_ = self._kept.copy(), dual
        else:
            some = np.concatenate(found)
            self.support_, self.dual_coef_ = self._kept[some], dual[some]
        coupled = design.coupling is not None
        self.coupling_ = design.output_matrix if coupled else np.eye(problem.n_outputs)
        weights = design.feature_weights(solution.weights)
        self.feature_map_, self.weights_ = compacted(self.feature_map_, weights)
        self.loss_ = problem.loss

    def _remember(self, prepared: Prepared, problem: Problem, solution: Solution) -> None:
        """Keep the training data that attributes computed on demand need; by default nothing."""

    def _decision(self, X: AnyArray) -> FloatArray:
        """Return all outputs for new rows, (n, p)."""
        if isinstance(X, Source):
            return X.combination(self.feature_map_, self.weights_) + self.offset_
        if is_table(X):
            check_is_fitted(self)
            names = getattr(self, "feature_names_in_", None)
            known = None if names is None else list(names)
            blocks = read_blocks(X, known, self.n_features_in_)
            none = np.empty((0, len(self.offset_)))  # of no rows
            return np.concatenate([none, *map(self._evaluate, blocks)])
        return self._evaluate(self._new_rows(X))

    def _evaluate(self, X: Any) -> FloatArray:
        """Return all outputs for validated rows, (n, p)."""
        if isinstance(X, SparsePoints) and not self._sparse:
            starts = range(0, len(X), _BLOCK)
            return np.concatenate([self._evaluate(X[i : i + _BLOCK].toarray()) for i in starts])
        with threads_that_pay(0):
            return self._combination(X, self.weights_) + self.offset_

    def _check_outputs(self, kernel: OperatorKernel, n_targets: int) -> None:
        wanted = self.make_loss(n_targets).n_outputs or n_targets
        if kernel.n_outputs != wanted:
            raise ValueError(
                f"kernel must have one output for each level or column of y, {wanted} here, got "
                f"{type(kernel).__name__} with {kernel.n_outputs}"
            )

    def _previous(self, prepared: Prepared) -> WarmStart | None:
        """Solution of the previous fit, if ``warm_start`` is set and it has the right shape."""
        last = getattr(self, "_last", None)
        if not self.warm_start or last is None:
            return None
        n_targets = prepared.targets.shape[1]
        n_outputs = self.make_loss(n_targets).n_outputs or n_targets
        if last.dual.shape != (prepared.inputs.n_rows, n_outputs):
            return None
        kept = prepared.inputs.kept
        return last._replace(dual=last.dual[kept], offset=last.offset - prepared.shift)
