"""What searches over the parameters of regressions on curves ask: grids, and what is minimized."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from fenchel._typing import FloatArray
from fenchel.estimator import strengths
from fenchel.functional.curves import Curves
from fenchel.learning_estimator import LearningEstimator
from fenchel.losses import parameters_of

_SMALLEST = 1e-3  # of the κ and ε that are tried, in units of the curves


class SearchableCurves(LearningEstimator):
    """Base class: subclasses have a loss, and compare curves with predictions."""

    feature_parameters = (
        *LearningEstimator.feature_parameters,
        "output_kernel",
        "center",
        "quadrature",
    )
    # ε from the square loss on: its solution is a good start, and has a closed form
    path_parameters: ClassVar[dict[str, str]] = {
        "alpha": "falling",
        "kappa": "falling",
        "epsilon": "rising",
    }

    loss: Any

    def compared(
        self, X: Any, y: Any, theta: Any = None, sample_weight: Any = None
    ) -> tuple[Curves, FloatArray, FloatArray]:
        """Return curves to score, the predictions where they are observed, and their weights."""
        raise NotImplementedError

    def default_grid(self) -> dict[str, Any]:
        """Return 10 strengths, and 10 values of κ or ε if the loss reads it."""
        read = [name for name in parameters_of(self.loss) if name in self.path_parameters]
        return dict.fromkeys(["alpha", *read], 10)

    def path_grid(self, prepared: Any, name: str, n: int) -> FloatArray:
        """Return n strengths in units of the kernels, or n of κ or ε in units of the curves.

        Strengths are on a geometric grid over seven decades, largest first, in units of half the
        trace of the operator-valued kernel, k(x, x) ∫ k_Θ(θ, θ) dμ, on average over rows. κ and ε
        are on one over three decades, down from the median L² norm of the curves.
        """
        if name == "alpha":
            return self._unit_of_strength(prepared) * strengths(n)
        curves = prepared.curves
        squares = np.nansum(curves.measure * curves.values**2, axis=1)
        unit = float(np.sqrt(np.median(squares))) or 1.0
        values = unit * np.geomspace(1.0, _SMALLEST, n)
        return values[::-1] if self.path_parameters[name] == "rising" else values

    def _unit_of_strength(self, prepared: Any) -> float:
        inputs, curves = prepared.inputs, prepared.curves
        diagonal = inputs.feature_map.design(inputs.features, np.eye(1)).diagonal()
        measure = np.atleast_2d(curves.measure).mean(axis=0)
        size = float(np.average(diagonal, weights=inputs.weight))
        size *= float(measure @ prepared.between.diagonal())
        return 0.5 * (size or 1.0)

    def search_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the weighted mean of ∫(y - h(x))² dμ, over what is observed."""
        curves, predicted, weight = self.compared(X, y, None, sample_weight)
        errors = np.nansum(curves.measure * (curves.values - predicted) ** 2, axis=1)
        total = float(weight.sum())
        return -float(weight @ errors) / total if total > 0.0 else np.nan
