"""How curves enter a problem: as values on the grid, or in eigenfunctions of the output kernel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpstrf

from fenchel._memory import Memory, empty
from fenchel._typing import FloatArray
from fenchel.design import Design, Gram, Masked
from fenchel.design.base import Spectrum, in_order
from fenchel.estimator import KeptRows
from fenchel.functional.curves import Curves
from fenchel.losses import Loss, curve_loss
from fenchel.problem import Problem
from fenchel.solvers import Solution, WarmStart, judged_again

_MANY = 300  # points from which on few eigenvectors cost less than all
_FEW = 0.3  # of the points
_COLUMNS = 100  # with fewer, products cost too little for threads: from tests with 30 and 200


def spectrum_beyond_rounding(matrix: FloatArray) -> Spectrum:
    """Eigenvalues, in increasing order, and eigenvectors of a positive semi-definite matrix.

    Without those below rounding if they are most of many: those of a smooth kernel are.
    """
    if len(matrix) >= _MANY:
        least = np.finfo(float).eps * float(matrix.diagonal().max())
        factor, pivots, rank, _ = dpstrf(matrix, tol=least, lower=1)
        if rank < _FEW * len(matrix):
            columns = np.empty((len(matrix), rank))
            columns[pivots - 1] = np.tril(factor)[:, :rank]
            vectors, roots, _ = np.linalg.svd(columns, full_matrices=False)
            return Spectrum(roots[::-1] ** 2, np.ascontiguousarray(vectors[:, ::-1]))
    return in_order(*np.linalg.eigh(matrix))


class LossChoice(NamedTuple):
    """Which loss of curves, before the measure is known."""

    loss: str | Loss
    norm: float
    kappa: float
    epsilon: float
    level: float

    def on(self, measure: FloatArray) -> Loss:
        """Make the loss for a measure (m,) or (n, m)."""
        numbers = {"kappa": self.kappa, "epsilon": self.epsilon, "level": self.level}
        return curve_loss(self.loss, measure, self.norm, **numbers)


class Outputs:
    """The output side of a problem: coordinates of curves, (n, p), and the kernel between them."""

    targets: FloatArray
    spectrum: Spectrum
    """Of the kernel between the coordinates."""
    mask: FloatArray | None = None
    """Which coordinates of which curves are observed, or roots of weights of their own."""

    def loss(self, choice: LossChoice) -> Loss:
        """Return the loss in these coordinates."""
        raise NotImplementedError

    def on_grid(self, values: FloatArray) -> FloatArray:
        """Return scaled curves (n, m) from these coordinates."""
        raise NotImplementedError

    def from_grid(self, values: FloatArray) -> FloatArray:
        """Return these coordinates of scaled curves (n, m)."""
        raise NotImplementedError

    def kernel_weights(self, coefficients: FloatArray) -> FloatArray:
        """Return what kernel values at the points are multiplied with, (r, m), from (r, p)."""
        raise NotImplementedError

    def start(self, curves: FloatArray, alpha: float) -> WarmStart:
        """Return where to start from what :meth:`following` returned."""
        point = self.from_grid(curves[0])
        values = None if np.isnan(curves[1, 0, 0]) else self.from_grid(curves[1]) / alpha
        return WarmStart(point, np.zeros(point.shape[1]), alpha, values)

    def following(self, solution: Solution, alpha: float) -> FloatArray:
        """Return a point to start from, and alpha times the values of its function, (2, n, m).

        As scaled curves, NaN where the values are not known.
        """
        near, values = solution.nearby, solution.nearby_values
        point = self.on_grid(solution.dual if near is None else near)
        found = empty((2, *point.shape))
        found[0], found[1] = point, np.nan
        if near is not None and values is not None:
            np.multiply(self.on_grid(values), alpha, out=found[1])
        return found


class Spline(Outputs):
    """Values at the points of the grid: linear splines with their anchors there."""

    def __init__(self, curves: Curves, kernel: FloatArray) -> None:
        measure, observed = curves.measure, curves.observed
        if measure.ndim == 2:
            common = measure.max(axis=0)  # zero where these curves are not observed
            share = np.divide(measure, common, out=np.zeros_like(measure), where=common > 0.0)
            self.mask, measure = np.sqrt(share), common
        elif observed is not None:
            self.mask = observed.astype(float)
        self._common = root = np.sqrt(measure)
        self._root = root[None, :] if self.mask is None else root * self.mask
        self.targets = self._root * np.where(np.isnan(curves.values), 0.0, curves.values)
        matrix = root[:, None] * kernel * root
        if self.mask is None:  # solvers in closed form take all coordinates
            self.spectrum = in_order(*np.linalg.eigh(matrix))
        else:  # points of all curves: there may be thousands
            self.spectrum = spectrum_beyond_rounding(matrix)

    def loss(self, choice: LossChoice) -> Loss:
        """Return the loss with the measure of the points."""
        measure = self._root**2
        return choice.on(measure[0] if len(measure) == 1 else measure)

    def on_grid(self, values: FloatArray) -> FloatArray:
        """Return the values themselves."""
        return values

    def from_grid(self, values: FloatArray) -> FloatArray:
        """Return the values themselves."""
        return values

    def kernel_weights(self, coefficients: FloatArray) -> FloatArray:
        """Return them times the root of the measure."""
        return coefficients * self._common


class Projected(Outputs):
    r"""Coefficients in the leading eigenfunctions of the output kernel, and nothing else.

    Kernel and curves are truncated to them: losses are of the part of a residual in their span.
    """

    def __init__(self, curves: Curves, kernel: FloatArray, n_components: int | None) -> None:
        self._root = root = np.sqrt(curves.measure)
        values, vectors = np.linalg.eigh(root[:, None] * kernel * root)
        count = len(root) if n_components is None else min(n_components, len(root))
        self.basis = np.ascontiguousarray(vectors[:, ::-1][:, :count])
        self._whole = root * curves.values
        self.targets = self.from_grid(self._whole)
        # eigenvalues ascend; no model reaches coordinates beside the coefficients
        ascending = np.maximum(values[len(root) - count :], 0.0)
        more = self.targets.shape[1] - count
        self.spectrum = Spectrum(
            np.append(np.zeros(more), ascending), np.eye(count + more)[:, ::-1]
        )

    def loss(self, choice: LossChoice) -> Loss:
        """Return the loss of the coefficients."""
        return choice.on(np.ones(self.targets.shape[1]))

    def on_grid(self, values: FloatArray) -> FloatArray:
        """Return curves from coefficients."""
        return values @ self.basis.T

    def from_grid(self, values: FloatArray) -> FloatArray:
        """Return coefficients."""
        return values @ self.basis

    def kernel_weights(self, coefficients: FloatArray) -> FloatArray:
        """Return the sum of the eigenfunctions with these coefficients."""
        return (coefficients[:, : self.basis.shape[1]] @ self.basis.T) * self._root


class Eigen(Projected):
    r"""Coefficients in the leading eigenfunctions, and the length of the rest.

    What a curve has outside of their span, no model reaches: its length is kept as one more
    coordinate, so that losses of the whole residual are exact.
    """

    def on_grid(self, values: FloatArray) -> FloatArray:
        """Return curves from coefficients, along what the curves have outside of the span."""
        length = self.targets[:, -1]
        ratio = np.divide(values[:, -1], length, out=np.zeros_like(length), where=length > 0.0)
        inside = values[:, :-1] - ratio[:, None] * self.targets[:, :-1]
        return super().on_grid(inside) + ratio[:, None] * self._whole

    def from_grid(self, values: FloatArray) -> FloatArray:
        """Return coefficients, and how long the rest is."""
        inside = super().from_grid(values)
        return np.column_stack([inside, np.linalg.norm(values - inside @ self.basis.T, axis=1)])


REPRESENTATIONS = ("spline", "eigen", "projected")


def outputs_of(name: str, curves: Curves, kernel: FloatArray, n_components: int | None) -> Outputs:
    """Curves in a representation, with the output kernel between their points, (m, m)."""
    if name == "spline":
        return Spline(curves, kernel)
    return (Eigen if name == "eigen" else Projected)(curves, kernel, n_components)


class Represented:
    """Outputs in their coordinates, and the rows for them."""

    def __init__(self, outputs: Outputs, inputs: KeptRows) -> None:
        features = inputs.features
        values, vectors = outputs.spectrum
        kept = values > np.finfo(float).eps * values[-1]  # the rest are rounding errors
        self._inverse = vectors[:, kept] / np.sqrt(values[kept])
        coupling = vectors[:, kept] * np.sqrt(values[kept])
        self.outputs, self._inputs = outputs, inputs
        self._rows = self._complete = inputs.feature_map.design(features, coupling)
        if self._rows.features is not None and 2 * features.shape[1] >= len(features):
            # products with Φ Φᵀ cost no more than those with Φᵀ, S, Sᵀ and Φ in turn
            self._complete = Gram(features @ features.T, coupling)
        self._complete.output_spectrum = outputs.spectrum
        self._longest = float(np.linalg.norm(coupling, axis=1).max())
        self.design: Design = self._complete
        if outputs.mask is not None:
            self.design = Masked(self._complete, outputs.mask)

    @cached_property
    def _between(self) -> FloatArray:
        """The kernel between the coordinates, (p, p); a design need not know it."""
        eigenvalues, vectors = self.outputs.spectrum
        return (vectors * eigenvalues) @ vectors.T

    @cached_property
    def _as_new(self) -> FloatArray:
        """Features of the rows as those of new rows, the same for all fits of a path."""
        return self._inputs.as_new()

    def as_stored(
        self, problem: Problem, solution: Solution, tol: float
    ) -> tuple[Solution, FloatArray]:
        """The solution with the objective of the model as new rows meet it, and that model.

        Computed anew where weights are so large that the rounding of features counts, and where
        functions were known by coefficients of the rows. The model is what features of new rows
        and the output kernel between are multiplied with, (r, m).
        """
        coefficients = self._coefficients(solution.weights)
        model = self.outputs.kernel_weights(coefficients)
        if not self._complete.is_gram:
            lengths = np.linalg.norm(solution.weights, axis=1, keepdims=True)
            if not self._inputs.far_weights(self._longest * lengths, problem.targets):
                return solution, model
        weights = coefficients @ self._between
        by_rows = self._complete.is_gram and self._rows.features is not None
        if not by_rows and not self._inputs.far_weights(weights, problem.targets):
            return solution, model
        values = self._as_new @ weights
        if self.outputs.mask is not None:
            values *= self.outputs.mask
        return judged_again(solution, problem.objective(solution.weights, values), tol), model

    def _coefficients(self, weights: FloatArray) -> FloatArray:
        """Σ φ(x_i) c_i β_i, (r, p), of the point β of the dual that has these weights.

        Where the kernel between the coordinates is nearly singular, they are those up to what its
        functions do not see: an error e of weights changes values by no more than its length.
        """
        if not self._complete.is_gram:
            return weights @ self._inverse.T
        rows = self._rows  # the weights are these c_i β_i
        return rows.blocks.sum(lambda block: (rows.pull(block, weights[block]),))[0]


@dataclass
class PreparedCurves:
    """Curves of positive weight, ready for any loss and strength."""

    inputs: KeptRows
    curves: Curves
    output_kernel: Any
    between: FloatArray
    """The output kernel between the points of the grid."""
    center: FloatArray
    """What was taken off all curves, (m,)."""
    spread: float
    """Of the values about their pointwise median: the unit of κ and ε that are not given."""
    represented: dict[Any, Represented] = field(default_factory=dict)
    """The representations that were in use, with the rows for them and their spectra."""
    memory: Memory = field(default_factory=Memory)
    """Of the arrays of a fit, for the next one."""
    _wider: PreparedCurves | None = None

    def size(self, n_components: int | None) -> int:
        """Number of curves or points, for ``threads_that_pay``: less where components are few."""
        n, m = self.curves.values.shape
        return min(max(n, m), n * min(m, n_components or m) // _COLUMNS)

    def wider(self, share: float) -> PreparedCurves | None:
        """The same curves with more features of their rows; kept for later fits."""
        inputs = self.inputs.wider(share) if self._wider is None else None
        if inputs is not None:
            self._wider = replace(self, inputs=inputs, represented={})
        return self._wider

    def adopt(self, other: PreparedCurves) -> None:
        """Take the features of another one: those that later fits need as well."""
        self.inputs, self.represented = other.inputs, other.represented
        self._wider = other._wider


def represent(name: str, n_components: int | None, choice: LossChoice, curves: Curves) -> str:
    """Return which of the representations it is, or say why it cannot be."""
    if name == "spline" and n_components is not None:
        raise ValueError(
            "n_components is for representation='eigen' and 'projected', got "
            f"representation='spline' and n_components={n_components!r}"
        )
    if name == "spline" or (name == "auto" and n_components is None):
        return "spline"
    lacking = lacking_for_eigenfunctions(choice, curves)
    if name == "auto":
        return "spline" if lacking else "eigen"
    if lacking:
        raise ValueError(f"representation={name!r} needs {lacking}: use representation='spline'")
    return name


def lacking_for_eigenfunctions(choice: LossChoice, curves: Curves) -> str | None:
    """Return what coefficients in eigenfunctions need and is not there, or None."""
    if curves.observed is not None or curves.measure.ndim == 2:
        return "curves observed at all points of one grid, without gaps"
    if not choice.on(curves.measure).radial:
        return (
            "a loss of the length of residual curves, as norm=2 gives, got "
            f"norm={choice.norm:g} and loss={choice.loss!r}"
        )
    return None
