"""How curves enter a problem: as values on the grid, or in eigenfunctions of the output kernel."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from fenchel._typing import FloatArray
from fenchel.design import Design, Masked
from fenchel.features import FeatureMap
from fenchel.functional.curves import Curves
from fenchel.losses import Loss, curve_loss
from fenchel.solvers import Solution


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


class Representation(Protocol):
    """The output side of a problem: coordinates of curves, (n, p)."""

    targets: FloatArray

    def design(self, feature_map: FeatureMap, features: FloatArray) -> Design:
        """Return the rows, for outputs that are these coordinates."""
        ...

    def loss(self, choice: LossChoice) -> Loss:
        """Return the loss in these coordinates."""
        ...

    def on_grid(self, values: FloatArray) -> FloatArray:
        """Return scaled curves (n, m) from these coordinates."""
        ...

    def from_grid(self, values: FloatArray) -> FloatArray:
        """Return these coordinates of scaled curves (n, m)."""
        ...

    def feature_weights(
        self, design: Design, weight: FloatArray, solution: Solution
    ) -> FloatArray:
        """What features of new rows and the output kernel between are multiplied with, (r, m)."""
        ...


class Spline:
    """Values at the points of the grid: linear splines with their anchors there."""

    def __init__(self, curves: Curves, kernel: FloatArray) -> None:
        measure, observed = curves.measure, curves.observed
        self._mask: FloatArray | None = None
        if measure.ndim == 2:
            common = measure.max(axis=0)
            self._mask, measure = np.sqrt(measure / common), common
        elif observed is not None:
            self._mask = observed.astype(float)
        common_root = np.sqrt(measure)
        self._common = common_root
        self.root = common_root[None, :] * (1.0 if self._mask is None else self._mask)
        self._values, self._vectors = spectrum(common_root[:, None] * kernel * common_root)
        self.targets = self.root * np.where(np.isnan(curves.values), 0.0, curves.values)

    def design(self, feature_map: FeatureMap, features: FloatArray) -> Design:
        """Return the rows, for outputs that are values times the root of the measure."""
        complete = feature_map.design(features, self._vectors * np.sqrt(self._values))
        return complete if self._mask is None else Masked(complete, self._mask)

    def loss(self, choice: LossChoice) -> Loss:
        """Return the loss with the measure of the points."""
        root = self.root
        return choice.on((root * root)[0] if len(root) == 1 else root * root)

    def on_grid(self, values: FloatArray) -> FloatArray:
        """Return the values themselves."""
        return values

    def from_grid(self, values: FloatArray) -> FloatArray:
        """Return the values themselves."""
        return values

    def feature_weights(
        self, design: Design, weight: FloatArray, solution: Solution
    ) -> FloatArray:
        """Σ φ(x_i) c_i √μ β_i of the point that the model is that of."""
        return pulled(design, weight, solution, self._values, self._vectors) * self._common


class Eigen:
    r"""Coefficients in the leading eigenfunctions of the output kernel.

    The kernel is truncated to them. What a curve has outside of their span, no model reaches:
    its length is kept as one more coordinate, so that losses of the whole residual are exact.
    """

    def __init__(self, curves: Curves, kernel: FloatArray, n_components: int | None) -> None:
        self._common = root = np.sqrt(curves.measure)
        values, vectors = np.linalg.eigh(root[:, None] * kernel * root)
        count = len(root) if n_components is None else min(n_components, len(root))
        self.basis = np.ascontiguousarray(vectors[:, ::-1][:, :count])
        self._whole = root * curves.values
        self.targets = self.from_grid(self._whole)
        self._values = np.maximum(values[::-1][:count], 0.0)

    def design(self, feature_map: FeatureMap, features: FloatArray) -> Design:
        """Return the rows, for outputs that are coefficients, and one that no model reaches."""
        coupling = np.vstack([np.diag(np.sqrt(self._values)), np.zeros(len(self._values))])
        return feature_map.design(features, coupling)

    def loss(self, choice: LossChoice) -> Loss:
        """Return the loss of the coefficients."""
        return choice.on(np.ones(len(self._values) + 1))

    def on_grid(self, values: FloatArray) -> FloatArray:
        """Return curves from coefficients, along what the curves have outside of the span."""
        inside = values[:, :-1] @ self.basis.T
        length = self.targets[:, -1]
        ratio = np.divide(values[:, -1], length, out=np.zeros_like(length), where=length > 0.0)
        return inside + ratio[:, None] * self._outside(self._whole)

    def from_grid(self, values: FloatArray) -> FloatArray:
        """Return coefficients, and how long the rest is."""
        left = np.linalg.norm(self._outside(values), axis=1)
        return np.column_stack([values @ self.basis, left])

    def _outside(self, values: FloatArray) -> FloatArray:
        return values - (values @ self.basis) @ self.basis.T

    def feature_weights(
        self, design: Design, weight: FloatArray, solution: Solution
    ) -> FloatArray:
        """Σ φ(x_i) c_i √μ β_i of the point that the model is that of."""
        directions = np.vstack([np.eye(len(self._values)), np.zeros(len(self._values))])
        coefficients = pulled(design, weight, solution, self._values, directions)
        return (coefficients[:, :-1] @ self.basis.T) * self._common


def spectrum(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and vectors of a kernel matrix, without those that are rounding errors."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > np.finfo(float).eps * values[-1]
    return values[kept], np.ascontiguousarray(vectors[:, kept])


def pulled(
    design: Design,
    weight: FloatArray,
    solution: Solution,
    values: FloatArray,
    vectors: FloatArray,
) -> FloatArray:
    """Σ φ(x_i) c_i β_i, (r, p), of the point that a model is that of.

    Where that is not known, from its weights, with the output matrix's spectrum.
    """
    if solution.source is None:
        return (solution.weights / np.sqrt(values)) @ vectors.T
    push = weight[:, None] * solution.source
    return design.blocks.sum(lambda rows: (design.pull(rows, push[rows]),))[0]


def represent(
    name: str,
    n_components: int | None,
    choice: LossChoice,
    curves: Curves,
    kernel: FloatArray,
) -> Spline | Eigen:
    """Return the representation of that name, or say why it cannot be."""
    if name not in ("auto", "spline", "eigen"):
        raise ValueError(f"representation must be 'auto', 'spline' or 'eigen', got {name!r}")
    if name == "spline" and n_components is not None:
        raise ValueError(
            "n_components is for representation='eigen', got representation='spline' and "
            f"n_components={n_components!r}"
        )
    complete = curves.observed is None and curves.measure.ndim == 1
    euclidean = complete and choice.on(curves.measure).radial
    if name == "auto":
        name = "eigen" if n_components is not None and euclidean else "spline"
    if name == "spline":
        return Spline(curves, kernel)
    if not complete:
        raise ValueError(
            "representation='eigen' needs curves observed at all points of one grid: use "
            "representation='spline', or fill the gaps"
        )
    if not euclidean:
        raise ValueError(
            "representation='eigen' needs a loss of the length of residual curves, as norm=2 "
            f"gives, got norm={choice.norm:g} and loss={choice.loss!r}: use "
            "representation='spline'"
        )
    return Eigen(curves, kernel, n_components)


__all__ = ["Eigen", "LossChoice", "Representation", "Spline", "represent"]
