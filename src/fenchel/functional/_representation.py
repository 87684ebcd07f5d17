"""How curves enter a problem: as values on the grid, or in eigenfunctions of the output kernel."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from fenchel._typing import FloatArray
from fenchel.functional.curves import Curves
from fenchel.functional.problem import Points
from fenchel.losses import Loss, curve_loss


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

    @property
    def radial(self) -> bool:
        """Whether the loss depends on L² norms only."""
        return self.on(np.ones(1)).radial


class Representation(Protocol):
    """The output side of a problem."""

    points: Points
    targets: FloatArray

    def loss(self, choice: LossChoice) -> Loss:
        """Return the loss in these coordinates."""
        ...

    def on_grid(self, values: FloatArray) -> FloatArray:
        """Return scaled curves (n, m) from these coordinates."""
        ...

    def from_grid(self, values: FloatArray) -> FloatArray:
        """Return these coordinates of scaled curves (n, m)."""
        ...


class Spline:
    """Values at the points of the grid: linear splines with their anchors there."""

    def __init__(self, curves: Curves, kernel: FloatArray) -> None:
        measure, observed = curves.measure, curves.observed
        own: FloatArray | None = None
        masked = True
        if measure.ndim == 2:
            common = measure.max(axis=0)
            own, masked = np.sqrt(measure / common), False
            measure = common
        elif observed is not None:
            own = observed.astype(float)
        self.points = Points(kernel, measure, own, masked)
        self.targets = self.points.root * np.where(np.isnan(curves.values), 0.0, curves.values)

    def loss(self, choice: LossChoice) -> Loss:
        """Return the loss with the measure of the points."""
        root = self.points.root
        return choice.on((root * root)[0] if len(root) == 1 else root * root)

    def on_grid(self, values: FloatArray) -> FloatArray:
        """Return the values themselves."""
        return values

    def from_grid(self, values: FloatArray) -> FloatArray:
        """Return the values themselves."""
        return values


class Eigen:
    r"""Coefficients in the leading eigenfunctions of the output kernel.

    The kernel is truncated to them. What a curve has outside of their span, no model reaches:
    its length is kept as one more coordinate, so that losses of the whole residual are exact.
    """

    def __init__(self, curves: Curves, kernel: FloatArray, n_components: int | None) -> None:
        root = np.sqrt(curves.measure)
        values, vectors = np.linalg.eigh(root[:, None] * kernel * root)
        count = len(root) if n_components is None else min(n_components, len(root))
        self.basis = np.ascontiguousarray(vectors[:, ::-1][:, :count])
        self._whole = root * curves.values
        self.targets = self.from_grid(self._whole)
        spectrum = np.append(np.maximum(values[::-1][:count], 0.0), 0.0)
        self.points = Points(np.diag(spectrum), np.ones(count + 1))

    def loss(self, choice: LossChoice) -> Loss:
        """Return the loss of the coefficients."""
        return choice.on(np.ones(len(self.points.measure)))

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
    if name == "auto":
        name = "eigen" if n_components is not None and choice.radial and complete else "spline"
    if name == "spline":
        return Spline(curves, kernel)
    if not choice.radial:
        raise ValueError(
            "representation='eigen' can only project in norm=2, got "
            f"loss={choice.loss!r} and norm={choice.norm:g}: use representation='spline'"
        )
    if not complete:
        raise ValueError(
            "representation='eigen' needs curves observed at all points of one grid: use "
            "representation='spline', or fill the gaps"
        )
    return Eigen(curves, kernel, n_components)


__all__ = ["Eigen", "LossChoice", "Representation", "Spline", "represent"]
