"""Base class of functional regressors: preparation of curves, learning, and search grids."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Self

import numpy as np

from fenchel._parameters import parameters
from fenchel._quantiles import median
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import ORDER, check_targets, rows_of
from fenchel.certificate import Callback
from fenchel.functional._gaps import (
    center_of,
    common_measure,
    filled_in,
    spread_of_curves,
    usual_width,
)
from fenchel.functional._inputs import (
    as_rows,
    curves_of,
    grid_of_rows,
    is_flat,
    points_and_channels,
)
from fenchel.functional._learning import (
    N_COORDINATES,
    bounds_influence,
    constant_of,
    coordinates_of,
    kernels_of_many_columns,
    loss_of_coordinates,
    losses_of,
    unit_of_loss,
)
from fenchel.functional._observed import POINTS, Choice, Pairs, are_short, better_choice
from fenchel.functional._representation import LossChoice, PreparedCurves
from fenchel.functional._width import OutputWidth, better_width, outputs_to_try
from fenchel.functional.curves import Curves
from fenchel.kernels import Gaussian, Precomputed, as_kernel, resolve
from fenchel.learning import Data, Learned
from fenchel.learning_estimator import KernelParameters, LearningEstimator
from fenchel.losses import Loss, parameters_of
from fenchel.losses.registry import thresholds
from fenchel.problem import Problem
from fenchel.searchable import strengths
from fenchel.solvers import Solver

_SMALLEST = 1e-3  # of the κ and ε that are tried, in units of the curves


class _OfFits:
    """What fits set: annotated here, as it is no parameter."""

    output_kernel_: Any
    kappa_: float
    epsilon_: float
    _width: OutputWidth | None = None  # while a fit learns


@parameters
class CurvesFromRows(KernelParameters, LearningEstimator, _OfFits):
    """Base class of functional regressors; subclasses define the problem and the score."""

    feature_parameters = (
        *LearningEstimator.feature_parameters,
        "output_kernel",
        "center",
        "quadrature",
        "loss",
        "level",
        "norm",
    )
    # ε from the square loss on: its solution is a good start, and has a closed form
    path_parameters: ClassVar[dict[str, str]] = {
        "alpha": "falling",
        "kappa": "falling",
        "epsilon": "rising",
    }

    loss: Any = "squared"
    norm: float = 2
    kappa: float | None = None
    epsilon: float | None = None
    alpha: float | None = None
    _: KW_ONLY
    level: float = 0.5
    output_kernel: Any = None
    center: str | None = "auto"
    quadrature: Any = "monte-carlo"

    def make_problem(self, prepared: PreparedCurves) -> Problem:
        """Return the optimization problem for the current parameters."""
        raise NotImplementedError

    def _solver(self, problem: Problem) -> Solver:
        """The solver for a problem, or a sentence why it is none for it."""
        raise NotImplementedError

    def prepare(
        self, X: Any, y: Any, theta: Any = None, sample_weight: Any = None
    ) -> PreparedCurves:
        """Validate the data and compute all that does not depend on strength, κ or ε."""
        self._learned = self._width = None
        return self._prepared(*self._given_curves(X, y, theta, sample_weight), sample_weight)

    def _given_curves(
        self, X: Any, y: Any, theta: Any, sample_weight: Any
    ) -> tuple[FloatArray, Curves]:
        """Rows and curves, validated."""
        self._rows_grid, self._rows_shape = grid_of_rows(X), points_and_channels(X)
        X = rows_of(self, as_rows(X))
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        self._flat = is_flat(y)
        curves = curves_of(y, len(X), theta, self.quadrature, sample_weight)
        check_targets(curves.values[~np.isnan(curves.values)])
        return X, curves

    def _prepared(self, X: FloatArray, targets: Curves, sample_weight: Any) -> PreparedCurves:
        inputs = self._mapped(X, sample_weight)
        kept = targets.subset(inputs.kept)
        curves, center = self._centred(kept, inputs.weight)
        output, between = self._output(curves.grid)
        spread = self._spread(kept, inputs.weight)
        return PreparedCurves(inputs, curves, output, between, center, spread)

    def _centred(self, curves: Curves, weight: FloatArray) -> tuple[Curves, FloatArray]:
        """Curves without their center, and that."""
        center = center_of(self._to_center(), curves, weight)
        return replace(curves, values=curves.values - center), center

    def _output(self, grid: FloatArray) -> tuple[Any, FloatArray]:
        """The output kernel, and its values between the points of the grid."""
        given = self.output_kernel if self._width is None else self._width.kernel
        output = _output_kernel(given, grid, self.random_state)
        return output, np.asarray(output(grid[:, None]), dtype=np.float64)

    def _some(self, targets: Curves, rows: IntArray) -> Curves:
        return targets.subset(rows)

    def _try(self, prepared: PreparedCurves) -> None:
        self._solver(self.make_problem(prepared))

    def _default_kernels(self, X: FloatArray) -> list[Any]:
        kernels, options = super()._default_kernels(X), self._learning()
        if options.kernels is None:
            kernels += kernels_of_many_columns(X, options.most_rows)
        return kernels

    def _data(self, X: FloatArray, targets: Curves, weight: FloatArray) -> tuple[Data, float]:
        curves = filled_in(self._to_center(), targets, weight)
        count = N_COORDINATES if self._width is None else self._width.n_coordinates
        coordinates = coordinates_of(curves, self._output(curves.grid)[1], weight, count)
        choice = self._choice(self._spread(targets, weight))
        loss = loss_of_coordinates(choice, len(coordinates.coupling))
        data = Data(
            X,
            coordinates.targets,
            weight,
            loss,
            coordinates.coupling,
            fit_intercept=False,
            constant="constant curve",
        )
        return data, coordinates.unit

    def _learn(
        self,
        X: FloatArray,
        targets: Curves,
        weight: FloatArray,
        kernels: list[Any],
        watch: Callback | None,
    ) -> Learned | None:
        """From continued curves; short ones are judged where they are observed, too."""
        learned = self._learn_continued(X, targets, weight, kernels, watch)
        if learned is None or learned.ended_early or not are_short(targets, weight):
            return learned
        return self._judged(X, targets, weight, kernels, learned)

    def _learn_continued(
        self,
        X: FloatArray,
        targets: Curves,
        weight: FloatArray,
        kernels: list[Any],
        watch: Callback | None,
    ) -> Learned | None:
        """With the usual output kernel, and again where curves left out ask for another width."""
        learned = super()._learn(X, targets, weight, kernels, watch)
        if learned is None or learned.ended_early or self.output_kernel is not None:
            return learned
        curves = filled_in(self._to_center(), targets, weight)
        choice = self._choice(self._spread(targets, weight))
        self._width = better_width(
            X,
            curves,
            weight,
            learned,
            n_points=float(np.average((~np.isnan(targets.values)).sum(axis=1), weights=weight)),
            any_alpha=self.alpha is None,
            unit=2.0 * unit_of_loss(choice, curves, weight),  # one for the squared loss
            robust=bounds_influence(choice),
        )
        if self._width is None:
            return learned
        kernel = kernels[learned.choice]
        return super()._learn(X, targets, weight, [kernel], watch) or learned

    def _judged(
        self,
        X: FloatArray,
        targets: Curves,
        weight: FloatArray,
        kernels: list[Any],
        learned: Learned,
    ) -> Learned:
        """What was learned, or what is better where curves that are left out are observed."""
        curves, _ = self._centred(targets, weight)
        pairs, output = Pairs.of(X, curves, weight), self._output(curves.grid)[0]
        others: list[Any] = []
        if self.output_kernel is None:
            others = outputs_to_try(curves.grid, POINTS)
            if self._width is not None:
                others.append(Gaussian(usual_width(curves.grid)))
        if pairs.grouped and (not others or pairs.are_far(output)):
            return learned  # groups of neighbours say nothing of such details
        if self.kernel is None and self._learning().kernels is None:
            kernels = [*kernels, as_kernel(None)]  # the one without learning
        choice = self._choice(self._spread(targets, weight))
        found = better_choice(
            pairs,
            Choice(learned.kernel, output, learned.alpha, learned.choice),
            kernels,
            [resolve(each, curves.grid[:, None]) for each in others],
            any_alpha=self.alpha is None,
            unit=2.0 * unit_of_loss(choice, curves, weight),  # one for the squared loss
            robust=bounds_influence(choice),
        )
        if found is None:
            return learned
        if others:
            self._width = OutputWidth(found.output, N_COORDINATES)
        message = f"{learned.message}, and then by curves left out where they are observed"
        return replace(
            learned,
            kernel=found.kernel,
            alpha=found.alpha if self.alpha is None else learned.alpha,
            criterion=found.criterion,
            choice=found.number,
            message=message,
        )

    def _learned_and_prepared(
        self, X: FloatArray, targets: Curves, sample_weight: Any, watch: Callback | None
    ) -> PreparedCurves:
        self._width = None
        prepared = super()._learned_and_prepared(X, targets, sample_weight, watch)
        if self._width is not None:  # rows may have been prepared before it was chosen
            output, between = self._output(prepared.curves.grid)
            prepared = replace(
                prepared, output_kernel=output, between=between, represented={}, _wider=None
            )
        self._width = None
        return prepared

    def with_learned(self, times_rows: float = 1.0, *, held_out: bool = True) -> Self:
        """Return an unfitted copy with the learned parameters, including the output kernel.

        Parameters
        ----------
        times_rows : float, default=1.0
            Number of rows for which the copy is intended, as a multiple of those of the last fit.
        held_out : bool, default=True
            Has no effect, because no offsets are refitted.

        Returns
        -------
        estimator
            The unfitted copy.
        """
        found: Self = super().with_learned(times_rows, held_out=held_out)
        return found.with_parameters(output_kernel=self.output_kernel_)

    def _spread(self, curves: Curves, weight: FloatArray) -> float:
        """The unit of κ and ε that are not given."""
        return spread_of_curves(curves, weight) if None in (self.kappa, self.epsilon) else 1.0

    def _choice(self, spread: float) -> LossChoice:
        numbers = *thresholds(self.kappa, self.epsilon, spread), float(self.level)
        return LossChoice(self.loss, ORDER(self.norm, "norm"), *numbers)

    def _fitted_choice(self) -> LossChoice:
        """The loss of a fit."""
        return self._choice(1.0)._replace(kappa=self.kappa_, epsilon=self.epsilon_)

    def _to_center(self) -> str | Loss | None:
        """What is taken off the curves."""
        return constant_of(self._choice(1.0)) if self.center == "auto" else self.center

    def compared(
        self, X: Any, y: Any, theta: Any = None, sample_weight: Any = None
    ) -> tuple[Curves, FloatArray, FloatArray]:
        """Return curves to score, predictions at their observed points, and weights."""
        raise NotImplementedError

    def default_grid(self) -> dict[str, Any]:
        """Return a grid with 10 values of alpha, and 10 of κ or ε if the loss uses it."""
        read = [name for name in parameters_of(self.loss) if name in self.path_parameters]
        return dict.fromkeys(["alpha", *read], 10)

    def path_grid(self, prepared: Any, name: str, n: int) -> FloatArray:
        """Return n values of alpha in units of the kernels, or of κ or ε in units of the curves.

        Values of alpha are on a geometric grid over seven decades, in decreasing order. Their unit
        is the mean trace of the operator-valued kernel, k(x, x) ∫ k_Θ(θ, θ) dμ, times the mean
        loss over the mean square of the curves, which is ½ for the squared loss. κ and ε are on a
        geometric grid over three decades, down from the median L² norm of the curves.
        """
        if name == "alpha":
            return self._unit_of_strength(prepared) * strengths(n)
        curves = prepared.curves
        squares = np.nansum(curves.measure * curves.values**2, axis=1)
        unit = float(np.sqrt(median(squares, prepared.inputs.weight))) or 1.0
        values = unit * np.geomspace(1.0, _SMALLEST, n)
        return values[::-1] if self.path_parameters[name] == "rising" else values

    def _unit_of_strength(self, prepared: Any) -> float:
        inputs, curves = prepared.inputs, prepared.curves
        diagonal = inputs.feature_map.design(inputs.features, np.eye(1)).diagonal()
        measure = common_measure(curves, inputs.weight)
        size = float(np.average(diagonal, weights=inputs.weight))
        size *= float(measure @ prepared.between.diagonal())
        choice = self._choice(prepared.spread)
        return unit_of_loss(choice, curves, inputs.weight) * (size or 1.0)

    def search_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the weighted mean of ∫(y - h(x))² dμ over observed points.

        For asymmetric losses the loss is used instead.
        """
        curves, predicted, weight = self.compared(X, y, None, sample_weight)
        errors = losses_of(self._fitted_choice(), curves, predicted)
        total = float(weight.sum())
        return -float(weight @ errors) / total if total > 0.0 else np.nan


def _output_kernel(kernel: Any, grid: FloatArray, random_state: Any) -> Any:
    if kernel is None:
        return Gaussian(usual_width(grid))
    chosen = as_kernel(kernel, "output_kernel")
    if isinstance(chosen, Precomputed):
        raise ValueError("output_kernel must be a kernel between points, got 'precomputed'")
    return resolve(chosen, grid[:, None], None, random_state)
