"""Base classes of estimators that learn open parameters: length scales, and alpha if None."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from fenchel._clock import OutOfTime, within
from fenchel._parameters import parameters
from fenchel._threads import threads_that_pay
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import (
    BOOLEAN,
    NONE,
    POSITIVE,
    OneOf,
    check_magnitude,
    check_weights,
    declared,
)
from fenchel.certificate import Callback
from fenchel.estimator import KernelEstimator
from fenchel.features import FeatureMap, default_kernel
from fenchel.kernels import OperatorKernel, SparsePoints, as_kernel, is_open, settled
from fenchel.learning import DEFAULT_STRENGTH, GROWTH, LEARNING, Data, Learned, Learning, learn
from fenchel.learning.held_out import why_not
from fenchel.solvers import Solver
from fenchel.solvers.loop import time_left

FEW_ROWS = 16
"""Number of rows on which invalid parameters are detected before time is spent."""

NOT_MOVED = (
    "offsets are those of the fit, not of held-out rows: {}; on new rows the curves are closer to "
    "each other than their levels should be"
)
"""Warning if offsets are not moved although they should be."""


@parameters
class KernelParameters:
    """Parameters of kernel estimators: the kernel, whether it is learned, and the solver.

    Examples
    --------
    >>> from fenchel import SVR
    >>> from fenchel.learning_estimator import KernelParameters
    >>> issubclass(SVR, KernelParameters), SVR().max_iter
    (True, 1000)
    """

    _: KW_ONLY
    kernel: str | Kernel | OperatorKernel | Callable[..., Any] | None = None
    learn: bool | Learning = True
    features: str | FeatureMap = "auto"
    rank: int | None = None
    solver: str | Solver = "auto"
    tol: float = 1e-6
    max_iter: int = 1000
    warm_start: bool = False
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0
    callback: Callback | None = None
    max_time: float | None = None


class LearningEstimator(KernelEstimator):
    """Base class: subclasses define how rows are prepared and what is learned.

    They have at least the parameters below.

    Examples
    --------
    >>> from fenchel import KernelRidge
    >>> from fenchel.datasets import load_engel
    >>> model = KernelRidge(alpha=1e-3, learn=False).fit(*load_engel(return_X_y=True))
    >>> model.alpha_, model.learned_
    (0.001, None)
    """

    constraints = declared(alpha=NONE | POSITIVE, learn=BOOLEAN | LEARNING)

    learn: Any
    alpha_: float
    """Strength of the regularization, as given or as learned."""
    learned_: Learned | None
    """The learned parameters; None if no parameter was left open."""
    _learned: Learned | None = None
    _was_open: bool = False
    """Whether a parameter was left to be learned, even if there were not enough rows for it."""

    def _prepared(self, X: FloatArray, targets: Any, sample_weight: Any) -> Any:
        """Validate rows and targets and return what ``fit_prepared`` takes."""
        raise NotImplementedError

    def _try(self, prepared: Any) -> None:
        """Raise an error if the solver does not suit the problem, as far as few rows show."""
        raise NotImplementedError

    def _data(self, X: FloatArray, targets: Any, weight: FloatArray) -> tuple[Data, float]:
        """Return the data to learn from, with rows of positive weight, and the unit of alpha."""
        raise NotImplementedError

    def _unit_of_strength(self, prepared: Any) -> float:
        """Unit of alpha, of which the default is a share if alpha is None and not learned."""
        raise NotImplementedError

    def strength(self, prepared: Any) -> float:
        """Alpha as given, as learned, or a thousandth of its unit."""
        if self.alpha is not None:
            return float(self.alpha)
        if self._learned is not None:
            return self._learned.alpha
        return DEFAULT_STRENGTH * self._unit_of_strength(prepared)

    def _some(self, targets: Any, rows: IntArray) -> Any:
        """Targets of some rows."""
        return targets[rows]

    def _learned_and_prepared(
        self, X: FloatArray, targets: Any, sample_weight: Any, watch: Callback | None
    ) -> Any:
        """Learn open parameters, if any, and return rows prepared for the fit.

        Invalid parameters are detected before time is spent, on a few rows if the kernel is to be
        learned.
        """
        self._learned, self._was_open = None, False
        kernels = self._open_kernels(X)
        if not kernels:
            prepared = self._prepared(X, targets, sample_weight)
            if self._strength_is_open() and self._may_learn():
                self._try(prepared)
                inputs, kept = prepared.inputs, prepared.inputs.kept
                kernels = [settled(inputs.feature_map.kernel_)]
                known = X[kept], self._some(targets, kept), inputs.weight
                self._learned = self._learn(*known, kernels, watch)
            return prepared
        check_magnitude(X.matrix if isinstance(X, SparsePoints) else X, "X")
        weight = check_weights(X, sample_weight)
        rows = np.flatnonzero(weight)
        few = rows[:FEW_ROWS]
        self._try(self._prepared(X[few], self._some(targets, few), weight[few]))
        known = X[rows], self._some(targets, rows), weight[rows]
        self._learned = self._learn(*known, self._open_kernels(known[0]), watch)
        return self._prepared(X, targets, sample_weight)

    def _may_learn(self) -> bool:
        """Whether the criterion can be computed: kernel values must be functions of the rows."""
        scalar = not isinstance(self.kernel, OperatorKernel) and not self.given_gram
        return bool(self.learn) and scalar and getattr(self.features, "reads_kernel", True)

    def _strength_is_open(self) -> bool:
        """Whether a parameter other than the kernel is open."""
        return self.alpha is None

    def _open_kernels(self, X: FloatArray) -> list[Any]:
        """The kernels to choose among if any of them is to be learned, else none."""
        if not self._may_learn() or getattr(self.features, "kernel", None) is not None:
            return []
        if self.kernel is None:
            return self._default_kernels(X)
        kernel = as_kernel(self.kernel)
        return [kernel] if is_open(kernel) else []

    def _default_kernels(self, X: FloatArray) -> list[Any]:
        """The kernels to choose among for these rows if no kernel is given."""
        names = self._learning().kernels or ("matern32",)
        return [default_kernel(self.features, each) for each in names]

    def _learning(self) -> Learning:
        """Options for learning."""
        return self.learn if isinstance(self.learn, Learning) else Learning()

    def _learn(
        self,
        X: FloatArray,
        targets: Any,
        weight: FloatArray,
        kernels: list[Any],
        watch: Callback | None,
    ) -> Learned | None:
        """Learn the open parameters from rows of positive weight."""
        self._was_open = True
        (data, unit), options = self._data(X, targets, weight), self._learning()
        given = None if self.alpha is None else float(self.alpha)
        alpha = None if given is None else given / unit
        with threads_that_pay(min(len(X), options.most_rows)):
            learned = learn(data, kernels, alpha, options, watch)
        if learned is None:
            return None
        return replace(learned, alpha=learned.alpha * unit if given is None else given)

    def with_learned(self, times_rows: float = 1.0, *, held_out: bool = True) -> Self:
        """Return an unfitted copy that has the learned values of the last fit as parameters.

        Fits of the copy learn nothing.

        Parameters
        ----------
        times_rows : float, default=1.0
            Number of rows the copy will be fitted to, as a multiple of those of the last fit. A
            learned alpha is divided by this number to the power 0.6.
        held_out : bool, default=True
            Whether fits of the copy move their offsets to held-out rows if those of this
            estimator do (only estimators of levels do). Use False if predictions are calibrated
            afterwards: offsets from held-out rows take five more fits, and changed coverage by
            less than a point and scores by 0.2 % on four tables of 2000 rows.

        Returns
        -------
        estimator
            Unfitted.

        Notes
        -----
        If rows that this fit has seen are later held out from the copy, as in cross-validation,
        the parameters have seen them. Scores are then slightly too good, and the coverage of
        conformal intervals is no longer guaranteed.
        """
        check_is_fitted(self)
        times_rows = POSITIVE(times_rows, "times_rows")
        alpha = self.alpha_
        if self.alpha is None and self.learned_ is not None:
            alpha /= times_rows**GROWTH
        if getattr(self, "radius", None) is not None:  # which takes the place of alpha
            return self.with_kernel_of_fit()
        return self.with_kernel_of_fit(alpha=alpha)


@parameters
class HeldOutOffsets(LearningEstimator):
    """Base class: offsets are moved after the fit to the levels of held-out rows.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> QuantileRegressor([0.1, 0.9]).chosen(alpha=1e-3).refit_offsets
    'held_out'
    """

    constraints = declared(refit_offsets=NONE | OneOf(("auto", "held_out")))

    _: KW_ONLY
    refit_offsets: str | None = "auto"

    def _refitted(self) -> str | None:
        """The rows from which offsets are recomputed, or None to keep those of the fit."""
        if self.refit_offsets != "auto":
            return self.refit_offsets
        return "held_out" if self._was_open and self._has_offset() else None

    def _has_offset(self) -> bool:
        """Whether there are offsets to move."""
        return bool(getattr(self, "fit_intercept", True))

    def _held_out(
        self, watch: Callback | None, shift: Callable[[], FloatArray | None]
    ) -> FloatArray | None:
        """Return the shift to held-out rows, or None with a warning."""
        moved = None
        if getattr(watch, "reason", None) is None:
            with suppress(OutOfTime), within(time_left(watch)):
                moved = shift()
        if moved is None:
            warnings.warn(NOT_MOVED.format(why_not(watch)), ConvergenceWarning, stacklevel=7)
        return moved

    def with_learned(self, times_rows: float = 1.0, *, held_out: bool = True) -> Self:
        copy = super().with_learned(times_rows)
        return copy._moving() if held_out and self.learned_ is not None else copy

    def chosen(self, **parameters: Any) -> Self:
        return super().chosen(**parameters)._moving()

    def _moving(self) -> Self:
        """Return self, with offsets from held-out rows unless ``refit_offsets`` is given."""
        if self.refit_offsets == "auto" and self._has_offset():
            self.refit_offsets = "held_out"
        return self


__all__ = ["FEW_ROWS", "NOT_MOVED", "HeldOutOffsets", "LearningEstimator"]

__dir__ = __all__.copy
