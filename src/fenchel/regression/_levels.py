"""Base class of quantile and expectile regression: levels and their coupling."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any

import numpy as np

from fenchel._parameters import parameters
from fenchel._typing import AnyArray, ArrayLike, FloatArray
from fenchel._validation import (
    NONE,
    Number,
    OneOf,
    check_levels,
    check_read,
    declared,
    shown,
    targets_of,
)
from fenchel.certificate import Callback
from fenchel.distributions import QuantileDistribution
from fenchel.features import KernelRowLimits
from fenchel.kernels import check_coupling, level_coupling, output_coupling
from fenchel.learning.held_out import HalfTime, held_out_shift, in_order
from fenchel.learning_estimator import NOT_MOVED, HeldOutOffsets
from fenchel.losses import Loss
from fenchel.metrics import crossing_loss, d2_score
from fenchel.problem import Problem
from fenchel.regression._base import KernelRegressor
from fenchel.regression._held_out import residuals_of_parts
from fenchel.regression._prepared import Prepared
from fenchel.solvers import Solution, WarmStart
from fenchel.solvers.loop import InTime

_FLEXIBLE = (
    0.02  # features for a row: of fewer, levels of the rows of the fit are those of new ones
)
_LEAST_LIMIT = 10_000  # of rows with many coupled outputs
_ELSEWHERE = "the rows are not in memory"


@parameters
class LevelRegressor(HeldOutOffsets, KernelRegressor):
    """Base class: regression at several levels, jointly, for one or several targets.

    Each output is a pair of a level and a column of y. All columns at the first level come first.
    """

    _multi_output = True
    feature_parameters = (*KernelRegressor.feature_parameters, "levels")
    constraints = declared(
        levels=check_levels,
        level_gamma=Number(0.0, infinite=True),
        coupling=check_coupling,
        refit_offsets=NONE | OneOf(("auto", "held_out", "train")),
    )

    levels: float | Sequence[float] | FloatArray = 0.5
    _: KW_ONLY
    level_gamma: float = 1.0
    coupling: ArrayLike | None = None
    epsilon: float = 0.0

    def _level_loss(self, levels: Any, n_targets: int = 1) -> Loss:
        """Return the loss that elicits the statistic of each target at these levels."""
        raise NotImplementedError

    def _distribution(self, curves: FloatArray) -> QuantileDistribution:
        """Return the distributions that have these curves at the levels of the fit."""
        raise NotImplementedError

    def _validated(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Rows, and targets with a column for each output; y with one column counts as flat."""
        X, targets = super()._validated(X, y)
        if targets.shape[1] == 1:
            if getattr(y, "ndim", 0) != 1:
                targets_of(type(self).__name__, y, len(X))  # which warns of a column
            self._flat = True
            return X, targets
        return X, np.tile(targets, len(self.levels_))

    def _n_columns(self, n_outputs: int) -> int:
        """Number of columns of y for this number of outputs."""
        return max(1, n_outputs // len(self.levels_))

    def _curves(self, X: AnyArray) -> FloatArray:
        """Predictions of all levels of all columns of y, (n, n_levels, n_columns)."""
        outputs = self._decision(X)
        return outputs.reshape(len(outputs), len(self.levels_), -1)

    def _as_given(self, outputs: FloatArray) -> FloatArray:
        if len(self.levels_) == 1 or outputs.shape[1] == len(self.levels_):
            return super()._as_given(outputs)
        return outputs.reshape(len(outputs), len(self.levels_), -1)

    def predict_distribution(self, X: ArrayLike) -> QuantileDistribution:
        """Predict the whole conditional distribution of the target at each row.

        The fitted curves are interpolated, with exponential tails beyond the outermost levels.
        :class:`fenchel.distributions.QuantileDistribution` gives the details, also for rows at
        which curves cross. It has the methods ``cdf``, ``pdf``, ``ppf`` at any levels, ``mean``,
        ``std``, ``interval``, ``sample``, ``crps`` and ``log_prob``. More levels mean fewer
        assumptions: 19 levels, ``np.arange(0.05, 1.0, 0.05)``, cost little more than three.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a table
            Rows, as in ``predict``.

        Returns
        -------
        QuantileDistribution
            One distribution for each row.

        Raises
        ------
        ValueError
            If there are too few levels: quantiles need two; expectiles need 0.5 and one on
            either side. Also if the fit has ``epsilon`` > 0 and its offsets were not moved to
            shares of rows, or if y had several columns.
        """
        curves = self._curves(X)
        self._check_shares("distributions")
        if curves.shape[2] > 1:
            raise ValueError(
                f"y must have one column for distributions, got {curves.shape[2]}; those of "
                "column m are fenchel.distributions.QuantileDistribution.from_quantiles(levels, "
                "predict(X)[:, :, m]), or from_expectiles"
            )
        return self._distribution(curves[:, :, 0])

    _without_tube = "epsilon=0"
    """Parameters with which levels are shares of rows, for the message."""

    @property
    def _levels_are_shares(self) -> bool:
        """Whether the levels are still shares of rows, despite the tube."""
        return self.loss_.epsilon == 0.0

    def _check_shares(self, what: str) -> None:
        if not self._levels_are_shares:
            raise ValueError(
                f"epsilon must be 0 for {what}, got {self.loss_.epsilon:g}: rows inside of the "
                "tube do not count, so that levels are not the shares of rows below; fit with "
                f"{self._without_tube}, or let ConformalQuantileRegressor calibrate"
            )

    def make_loss(self, n_targets: int) -> Loss:
        loss = self._level_loss(self.levels_, self._n_columns(n_targets))
        return loss.insensitive(float(self.epsilon))

    def _moved(
        self, prepared: Prepared, problem: Problem, solution: Solution, watch: Callback | None
    ) -> FloatArray:
        """Shift from the offsets of the fit to those of training or held-out residuals."""
        which, inputs = self._refitted(), prepared.inputs
        if which is None:
            return super()._moved(prepared, problem, solution, watch)
        loss = self._level_loss(self.levels_, self._n_columns(problem.n_outputs))
        moved = None
        if which == "train":
            offset = replace(problem, loss=loss).minimizing_offset(solution.weights)
            moved = offset - solution.offset
        elif which == "held_out" and inputs.in_memory:
            shift = partial(self._shift, prepared, problem, solution, watch, loss)
            moved = self._held_out(watch, shift)
        elif which == "held_out" and inputs.feature_map.rank_ > _FLEXIBLE * problem.n_rows:
            warnings.warn(NOT_MOVED.format(_ELSEWHERE), UserWarning, stacklevel=6)
        if moved is None:
            return super()._moved(prepared, problem, solution, watch)
        return self._parallel(moved, solution.offset) if self.level_gamma == 0.0 else moved

    def _parallel(self, moved: FloatArray, offset: FloatArray) -> FloatArray:
        """Limit the shifts so that parallel curves stay in order."""
        columns = (each.reshape(len(self.levels_), -1).T for each in (moved, offset))
        kept = []
        for shift, known in zip(*columns, strict=True):
            room = np.maximum(np.diff(known[np.argsort(self.levels_)]), 0.0)
            kept.append(in_order(shift, self.levels_, room))
        return np.column_stack(kept).ravel()

    def _shift(
        self,
        prepared: Prepared,
        problem: Problem,
        solution: Solution,
        watch: Callback | None,
        loss: Loss,
    ) -> FloatArray | None:
        """Shift from the offsets of the fit to those of held-out rows."""
        # as near to their optima as the fit of all rows is to that of its features
        gaps = [each.relative_gap for each in solution.history[-1:]]
        reached = min([solution.certificate.relative_gap, *gaps])
        solve = partial(self._solve, InTime(watch), max(1.0, reached / float(self.tol)))
        residuals = residuals_of_parts(problem, solution, solve)
        of_fit = partial(problem.residuals, solution.weights)
        known = prepared.inputs.rows, problem.targets, problem.sample_weight
        return held_out_shift(*known, loss, residuals, of_fit, self._groups)

    def _solved(
        self, prepared: Prepared, start: WarmStart | None, watch: Callback | None
    ) -> tuple[Prepared, Problem, Solution]:
        if watch is not None and self._refitted() == "held_out":
            watch = HalfTime(watch)
        return super()._solved(prepared, start, watch)

    def _kernel_rows(self) -> KernelRowLimits:
        """Lower limits if outputs are coupled, as each step then involves all of them.

        The time of a fit grows with the number of outputs and with the square of that of rows.
        Features leave gaps of 0.006 to 0.3 for three levels of 20 500 rows and 25 columns, in ten
        times to half of the time.
        """
        limits = super()._kernel_rows()
        n_coupled = 1 if self.level_gamma == np.inf else np.size(self.levels)
        n_coupled *= 1 if self.coupling is None else len(np.asarray(self.coupling))
        if n_coupled == 1:
            return limits
        as_much = max(_LEAST_LIMIT, int(limits.computed / np.sqrt(n_coupled)))
        return limits._replace(computed=min(limits.computed, as_much))

    def make_coupling(self, n_targets: int) -> FloatArray:
        return self._coupling_of(self.levels_, self._n_columns(n_targets))

    def _coupling_of(self, levels: FloatArray, n_columns: int) -> FloatArray:
        between = output_coupling(self.coupling, n_columns)
        return np.asarray(np.kron(level_coupling(levels, float(self.level_gamma)), between))

    def _learned_task(self, targets: FloatArray) -> tuple[Loss, FloatArray, FloatArray]:
        """At most three levels, the outermost and the middle one, as these say most."""
        order, d = np.argsort(self.levels_), self._n_columns(targets.shape[1])
        chosen = order[np.unique([0, len(order) // 2, len(order) - 1])]
        some = self.levels_[chosen]
        loss = self._level_loss(some, d).insensitive(float(self.epsilon))
        if targets.shape[1] > 1:
            targets = np.tile(targets[:, :d], len(some))
        return loss, self._coupling_of(some, d), targets

    def check_parameters(self) -> None:
        super().check_parameters()
        self.levels_ = check_levels(self.levels)
        if self.refit_offsets in ("held_out", "train") and not self.fit_intercept:
            raise ValueError(
                f"refit_offsets must be 'auto' or None with fit_intercept=False, "
                f"got {shown(self.refit_offsets)}"
            )

    def crossing_loss(self, X: ArrayLike) -> float:
        r"""Mean amount by which curves of neighbouring levels cross on these rows.

        .. math:: \sum_j \frac1n \sum_i \max(0, h_j(x_i) - h_{j+1}(x_i))

        with levels in increasing order; 0 means that no curves cross at these rows. If y has
        several columns, the mean over them is returned.
        """
        each = [crossing_loss(curves, self.levels_) for curves in self._by_column(X)]
        return float(np.mean(each))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Mean of D², the share of the loss explained, over levels and columns of y.

        D² compares the loss with that of the best constant for ``y`` itself: 1 is perfect, and
        0 is no better than that constant.
        """
        check_read(y, "y")
        curves = self._by_column(X)
        columns: list[Any] = [y]
        if len(curves) > 1:
            targets = targets_of(type(self).__name__, y, len(curves[0]), several=True)
            if targets.shape[1:] != (len(curves),):
                raise ValueError(
                    f"y must have {len(curves)} columns, as in fit, got shape {targets.shape}"
                )
            columns = list(targets.T)
        losses = [self._level_loss(level) for level in self.levels_]
        each = [
            float(d2_score(column, mine, losses, sample_weight=sample_weight))
            for column, mine in zip(columns, curves, strict=True)
        ]
        return float(np.mean(each))

    def _by_column(self, X: AnyArray) -> list[FloatArray]:
        """Predictions of all levels (n, n_levels), for each column of y."""
        return list(np.moveaxis(self._curves(X), 2, 0))
