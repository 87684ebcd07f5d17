"""Designs of partially observed outputs, and of outputs with weights for each entry."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.design.base import Design, Functions, Rows, Spectrum
from fenchel.design.chain import Chain


class Masked(Design):
    r"""Design whose predictions are those of another design times a mask, entry by entry.

    .. math:: h(x_i) = m_i \circ h_0(x_i), \qquad \|h\| = \|h_0\|

    A mask of zeros and ones marks which outputs of which rows are observed. Other numbers are the
    square roots of weights of the outputs of a row.

    Parameters
    ----------
    complete : Design
        The design without the mask.
    mask : ndarray of shape (n, p)
        The factors m, >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Masked, Plain
    >>> complete = Plain(np.ones((2, 1)), np.eye(2))
    >>> design = Masked(complete, np.array([[1.0, 0.0], [1.0, 1.0]]))
    >>> design.values(np.array([[3.0, 5.0]]))
    array([[3., 0.],
           [3., 5.]])
    """

    mask: FloatArray
    refusal = "needs all outputs of all rows, with the same weights; solver='newton' takes any"

    def __init__(self, complete: Design, mask: FloatArray) -> None:
        self.complete, self.mask = complete, mask
        self.n_rows, self.n_outputs = complete.n_rows, complete.n_outputs
        self.width, self.coupling = complete.width, complete.coupling

    @property
    def by_rows(self) -> bool:
        return self.complete.by_rows

    def zero(self) -> FloatArray:
        return self.complete.zero()

    def directions(self, weights: FloatArray) -> FloatArray:
        return self.complete.directions(weights)

    def feature_weights(self, weights: FloatArray) -> FloatArray:
        return self.complete.feature_weights(weights)

    def predict(
        self, rows: Rows, directions: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        return np.multiply(self.complete.predict(rows, directions), self.mask[rows], out=out)

    def pull(self, rows: Rows, push: FloatArray) -> FloatArray:
        return self.complete.pull(rows, self.mask[rows] * push)

    def weights_of(self, pulled: FloatArray) -> FloatArray:
        return self.complete.weights_of(pulled)

    def link(self, push: FloatArray) -> FloatArray:
        return self.complete.link(self.mask * push)

    def squared_norm(self, weights: FloatArray) -> float:
        return self.complete.squared_norm(weights)

    def image(self, push: FloatArray, rows: IntArray | None = None) -> FloatArray:
        mask = self.mask if rows is None else self.mask[rows]
        return self.mask * self.complete.image(mask * push, rows)

    def functions(self, rows: IntArray, vectors: FloatArray) -> Functions:
        return self.complete.functions(rows, self.mask[rows] * vectors)

    def subset(self, rows: IntArray) -> Masked:
        return Masked(self.complete.subset(rows), self.mask[rows])

    def from_subset(self, rows: IntArray, weights: FloatArray) -> FloatArray:
        return self.complete.from_subset(rows, weights)

    def left_out(self, push: FloatArray, residual: FloatArray) -> float:
        return self.complete.left_out(self.mask * push, residual)

    def square_by(self, push: FloatArray, forms: Callable[[FloatArray], FloatArray]) -> float:
        return self.complete.square_by(self.mask * push, forms)

    def matrix(self) -> Any:
        whole = self.complete.matrix()
        return None if whole is None else self.mask.reshape(-1, 1) * whole

    def spectrum(self, sample_weight: FloatArray) -> Spectrum:
        """Return the spectrum of the design without the mask."""
        return self.complete.spectrum(sample_weight)

    @cached_property
    def output_spectrum(self) -> Spectrum:
        """Return the spectrum of the output matrix of the design without the mask."""
        return self.complete.output_spectrum

    @cached_property
    def output_chain(self) -> Chain | None:
        """The output chain of the design without the mask."""
        return self.complete.output_chain

    def diagonal(self) -> FloatArray:
        """The diagonal of the design without the mask."""
        return self.complete.diagonal()
