"""From curves as users give them to problems, with what is left open learned on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import (
    check_length,
    check_magnitude,
    check_targets,
    check_weights,
    rows_of,
)
from fenchel.certificate import Callback
from fenchel.functional._inputs import as_columns, as_rows, center_of, is_array
from fenchel.functional._learning import coordinates_of, loss_of_coordinates
from fenchel.functional._representation import LossChoice, PreparedCurves
from fenchel.functional._search import SearchableCurves
from fenchel.functional.curves import Curves, as_curves
from fenchel.kernels import Gaussian, Precomputed, as_kernel, resolve, settled
from fenchel.learning import DEFAULT_STRENGTH, Learned
from fenchel.losses.curves import check_order
from fenchel.problem import Problem
from fenchel.solvers import Solver

_WIDTH = 0.1
_FEW = 16


class CurvesFromRows(SearchableCurves):
    """Base class: subclasses make problems of prepared curves, and solve them."""

    norm: float
    kappa: float
    epsilon: float
    level: float
    output_kernel: Any
    center: str | None
    quadrature: Any

    def make_problem(self, prepared: PreparedCurves) -> Problem:
        """Return the problem with the present parameters."""
        raise NotImplementedError

    def _solver(self, problem: Problem) -> Solver:
        """The solver for a problem, or a sentence why it is none for it."""
        raise NotImplementedError

    def prepare(
        self, X: Any, y: Any, theta: Any = None, sample_weight: Any = None
    ) -> PreparedCurves:
        """Validate, and do what depends on neither loss nor strength; nothing is learned."""
        self._learned = None
        return self._prepared(*self._given_curves(X, y, theta), sample_weight)

    def _given_curves(self, X: Any, y: Any, theta: Any) -> tuple[FloatArray, Curves]:
        """Rows and curves, validated."""
        X = rows_of(self, as_rows(X))
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        self._flat = is_array(y) and np.asarray(y).ndim == 1
        curves = as_curves(as_columns(y), theta, self.quadrature)
        check_length(len(curves), len(X))
        check_targets(curves.values[~np.isnan(curves.values)])
        return X, curves

    def _prepared(self, X: FloatArray, curves: Curves, sample_weight: Any) -> PreparedCurves:
        inputs = self._mapped(X, sample_weight)
        curves, center = self._centred(curves.subset(inputs.kept), inputs.weight)
        output, between = self._output(curves.grid)
        return PreparedCurves(inputs, curves, output, between, center)

    def _centred(self, curves: Curves, weight: FloatArray) -> tuple[Curves, FloatArray]:
        """Curves without their center, and that."""
        center = center_of(self.center, curves, weight)
        return replace(curves, values=curves.values - center), center

    def _output(self, grid: FloatArray) -> tuple[Any, FloatArray]:
        """The output kernel, and its values between the points of the grid."""
        output = _output_kernel(self.output_kernel, grid, self.random_state)
        return output, np.asarray(output(grid[:, None]), dtype=np.float64)

    def _learned_and_prepared(
        self, X: FloatArray, curves: Curves, sample_weight: Any, watch: Callback | None
    ) -> PreparedCurves:
        """Curves ready for a fit, after what is left open was learned, if anything is.

        What is not allowed is refused before time is spent: on a few rows, where the kernel is
        to be learned.
        """
        self._learned = None
        kernels = self._open_kernels()
        if not kernels:
            prepared = self._prepared(X, curves, sample_weight)
            if self.alpha is None and self._may_learn():
                self._solver(self.make_problem(prepared))
                inputs = prepared.inputs
                kernels = [settled(inputs.feature_map.kernel_)]
                known = prepared.curves, prepared.between
                self._learned = self._learn(inputs.rows, *known, inputs.weight, kernels, watch)
            return prepared
        check_magnitude(X, "X")
        weight = check_weights(X, sample_weight)
        rows = np.flatnonzero(weight)
        few = rows[:_FEW]
        self._solver(self.make_problem(self._prepared(X[few], curves.subset(few), weight[few])))
        centred, _ = self._centred(curves.subset(rows), weight[rows])
        between = self._output(curves.grid)[1]
        self._learned = self._learn(X[rows], centred, between, weight[rows], kernels, watch)
        return self._prepared(X, curves, sample_weight)

    def _learn(
        self,
        X: FloatArray,
        curves: Curves,
        between: FloatArray,
        weight: FloatArray,
        kernels: list[Any],
        watch: Callback | None,
    ) -> Learned | None:
        """What is left open, from centred curves of positive weight."""
        coordinates = coordinates_of(curves, between, weight)
        data = coordinates.data(X, weight, loss_of_coordinates(self._choice()))
        unit, alpha = coordinates.unit, self.alpha
        given = None if alpha is None else float(alpha) / unit
        learned = self._learned_from(data, kernels, given, watch)
        if learned is None:
            return None
        return replace(learned, alpha=learned.alpha * unit if alpha is None else float(alpha))

    def strength(self, prepared: PreparedCurves) -> float:
        """Alpha as given, as learned, or a thousandth of its unit."""
        if self.alpha is not None:
            return float(self.alpha)
        if self._learned is not None:
            return self._learned.alpha
        return DEFAULT_STRENGTH * self._unit_of_strength(prepared)

    def _choice(self) -> LossChoice:
        numbers = float(self.kappa), float(self.epsilon), float(self.level)
        return LossChoice(self.loss, check_order(self.norm), *numbers)


def _output_kernel(kernel: Any, grid: FloatArray, random_state: Any) -> Any:
    if kernel is None:
        width = _WIDTH * float(grid[-1] - grid[0])
        return Gaussian(width if width > 0.0 else 1.0)
    chosen = as_kernel(kernel, "output_kernel")
    if isinstance(chosen, Precomputed):
        raise ValueError("output_kernel must be a kernel between points, got 'precomputed'")
    return resolve(chosen, grid[:, None], None, random_state)
