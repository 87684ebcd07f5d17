"""Training rows prepared for fits with any strength and loss."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.design import Design
from fenchel.estimator import KeptRows
from fenchel.kernels import OperatorKernel, Precomputed
from fenchel.losses.quantiles import order_statistic

_ROUNDING = 1e-13  # of a mean of kernel values


@dataclass
class Prepared:
    """Rows of positive weight, prepared for any strength and loss."""

    inputs: KeptRows
    targets: FloatArray
    shift: FloatArray
    """Subtracted from the targets, to keep digits if they are far from zero."""
    idle: tuple[FloatArray, FloatArray]
    """Rows and targets of weight zero."""
    designs: dict[tuple[object, ...], Design] = field(default_factory=dict)
    centre: FloatArray | None = None
    """Subtracted from the features, as the shift is from the targets."""
    once: bool = False
    """Whether the prepared rows serve one fit only."""
    weights: FloatArray | None = None
    """Weights of the last fit, on these features or kernel rows."""
    _wider: Prepared | None = None

    def wider(self, share: float) -> Prepared | None:
        """The same rows with more features, see :meth:`KeptRows.wider`; kept for later fits."""
        inputs = self.inputs.wider(share) if self._wider is None else None
        if inputs is not None:
            self._wider = replace(self, inputs=inputs, designs={})
            if self.centre is not None:
                self._wider.centre = inputs.centre()
        return self._wider

    def adopt(self, other: Prepared) -> None:
        """Take over the features of another instance, which later fits need as well."""
        self.inputs, self.centre = other.inputs, other.centre
        self.designs, self._wider = other.designs, other._wider

    def only(self, rows: IntArray) -> Prepared:
        """Some of these rows, with the feature map of all."""
        inputs = self.inputs.only(rows)
        return Prepared(inputs, self.targets[rows], self.shift, self.idle, centre=self.centre)

    def design(self, coupling: FloatArray) -> Design:
        """Return the design for outputs coupled by S; it serves all strengths."""
        key = coupling.shape, coupling.tobytes()
        if key not in self.designs:
            self.designs.clear()  # one at a time: they may hold (n, n) arrays
            features = self.inputs.features
            centred = features if self.centre is None else features - self.centre
            self.designs[key] = self.inputs.design(centred, coupling)
            self.designs[key].spent = self.once
        return self.designs[key]


def middle(targets: FloatArray) -> FloatArray:
    """Return a value of each column, so that constant targets become exactly zero."""
    return order_statistic(targets, len(targets) // 2)


def size_of_kernel(inputs: Any, n_outputs: int, fit_intercept: bool) -> float:
    """Mean of k(x, x), without what an offset takes of it."""
    diagonal = inputs.design(inputs.features, np.eye(n_outputs)).diagonal()
    size = float(np.average(diagonal, weights=inputs.weight)) or 1.0
    return size - taken_by_offset(inputs, size) if fit_intercept else size


def taken_by_offset(inputs: Any, size: float) -> float:
    """Part of ``size``, the mean of k(x, x), that is due to constants, which an offset absorbs.

    It is nonzero for kernels that are not stationary, as functions may then be large compared with
    their variation: for example linear ones far from zero.
    """
    kernel = inputs.feature_map.kernel_
    if isinstance(kernel, (OperatorKernel, Precomputed)) or kernel.is_stationary():
        return 0.0
    design = inputs.design(inputs.features, np.eye(1))
    share = inputs.weight / inputs.weight.sum()
    taken = design.squared_norm(design.link(share[:, None]))  # of the mean of k(x, ·)
    return taken if size - taken > _ROUNDING * size else 0.0
