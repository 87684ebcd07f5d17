"""Rows as rows of the Gram matrix."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from fenchel._typing import FloatArray, IntArray
from fenchel.design.base import Coupled, Functions, Rows, Spectrum, in_order
from fenchel.design.columns import KernelColumns
from fenchel.design.factored import Factored

_GATHERED = 6  # times the rows whose copy pays for a product with them alone
_ROUNDING = 1e-16  # eigenvalues below this share of the largest are rounding errors


class Gram(Coupled):
    r"""Scalar kernel values among the rows, and a matrix S for the outputs.

    Functions are given by coefficients u (n, p): predictions :math:`K u B`, norm
    :math:`\langle u, K u B\rangle`, B = S Sᵀ, and a push stands for :math:`u` itself. The
    objectives are those of :class:`Plain` for any factor of K.

    Parameters
    ----------
    values : ndarray of shape (n, n)
        K.
    coupling : ndarray of shape (p, q)
        S; the identity for independent outputs.
    """

    is_gram = True
    by_rows = True
    refusal = "needs explicit features: features='cholesky' in place of kernel rows"

    def __init__(self, values: FloatArray, coupling: FloatArray) -> None:
        self._values, self.coupling = values, coupling
        self.n_rows = self.width = len(values)
        self.n_outputs = len(coupling)
        self._images: list[tuple[FloatArray, FloatArray]] = []
        self._factor: FloatArray | None = None
        self._factored: Factored | None = None

    @property
    def gram(self) -> FloatArray:
        """K."""
        self.restore()
        return self._values

    def factored(self, shift: FloatArray) -> Factored:
        """The factor of K + diag(shift), in the array of K until :meth:`restore`."""
        self.restore()
        if not (self._values.flags.carray and self._values.dtype == np.float64):
            return super().factored(shift)
        self._factored = Factored(self._values)
        return self._factored.factor(shift)

    @property
    def left_factor(self) -> Factored | None:  # noqa: D102
        return self._factored

    def restore(self) -> None:  # noqa: D102
        if self._factored is not None:
            self._factored.restore()
            self._factored = None

    def zero(self) -> FloatArray:  # noqa: D102
        return np.zeros((self.n_rows, self.n_outputs))

    def directions(self, weights: FloatArray) -> FloatArray:
        """K u B, kept for the last two arrays that were asked for: a product costs n² p."""
        for known, image in self._images:
            if known is weights:
                return image
        nothing = not weights.any()
        image = np.zeros_like(weights) if nothing else self.image(weights)
        self.remember(weights, image)
        return image

    def feature_weights(self, weights: FloatArray) -> FloatArray:
        """u B: what kernel values of new rows are multiplied with."""
        return weights @ self.output_matrix

    def remember(self, weights: FloatArray, image: FloatArray) -> None:
        """Take note of a product that is there already."""
        self._images[:] = [(weights, image), *self._images[:1]]

    def predict(  # noqa: D102
        self, rows: Rows, directions: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        if out is None:
            return directions[rows]
        out[...] = directions[rows]
        return out

    def pull(self, rows: Rows, push: FloatArray) -> FloatArray:  # noqa: D102
        whole = self.zero()
        whole[rows] = push
        return whole

    def weights_of(self, pulled: FloatArray) -> FloatArray:  # noqa: D102
        return pulled

    def link(self, push: FloatArray) -> FloatArray:  # noqa: D102
        return push

    def squared_norm(self, weights: FloatArray) -> float:
        """<u, K u B>."""
        return float(np.vdot(weights, self.directions(weights)))

    def image(self, push: FloatArray, rows: IntArray | None = None) -> FloatArray:  # noqa: D102
        mixed = push @ self.output_matrix
        if rows is not None:
            if _GATHERED * len(rows) < self.n_rows:
                return self.gram[rows].T @ mixed
            whole = np.zeros((self.n_rows, self.n_outputs))
            whole[rows] = mixed
            mixed = whole
        factor = self._factor
        if factor is not None:
            return factor @ (factor.T @ mixed)
        return self._values @ mixed if self._factored is None else self._factored.product(mixed)

    def functions(self, rows: IntArray, vectors: FloatArray) -> Functions:  # noqa: D102
        return KernelColumns(self, rows, vectors)

    def subset(self, rows: IntArray) -> Gram:  # noqa: D102
        return Gram(self.gram[np.ix_(rows, rows)], self.coupling)

    def _with(self, coupling: FloatArray) -> Gram:
        return Gram(self.gram, coupling)

    def join(self, parts: list[FloatArray]) -> FloatArray:  # noqa: D102
        return np.hstack(parts)

    def _decomposed(self, root: FloatArray) -> Spectrum:
        """Where few eigenvalues are not zero, products use them from then on."""
        scaled = root * self.gram * root.T
        found = in_order(*eigh(scaled, overwrite_a=True, check_finite=False))
        some = found.values > _ROUNDING * found.values[-1]
        if 2 * np.count_nonzero(some) < self.n_rows:
            self._factor = found.vectors[:, some] * np.sqrt(found.values[some]) / root
        return found

    def _scalar_diagonal(self) -> FloatArray:
        return self.gram.diagonal()
