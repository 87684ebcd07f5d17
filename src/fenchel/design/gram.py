"""Design of a Gram matrix."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from fenchel._clock import check_time
from fenchel._typing import FloatArray, IntArray
from fenchel.design.base import DECOMPOSED, ByValues, Design, Functions, Rows, Spectrum, in_order
from fenchel.design.factored import Factored
from fenchel.design.kernel_values import KernelColumns, KernelValues, Stored
from fenchel.design.plain import Plain

_ROUNDED = 64.0 * np.finfo(float).eps  # relative change of a weight that is no change
_FEWER = 2  # times the rows for which a product is corrected in place of computed anew
_ROUNDING = 1e-16  # eigenvalues below this share of the largest are rounding errors


class Gram(ByValues):
    r"""Design of the scalar kernel matrix K of the rows and a matrix S for the outputs.

    Functions are given by coefficients u (n, p), with predictions :math:`K u B` and squared norm
    :math:`\langle u, K u B\rangle`, where B = S Sᵀ. The weights for a push are the push itself.
    The objectives are those of :class:`Plain` for any factor of K.

    Parameters
    ----------
    values : ndarray of shape (n, n), or KernelValues
        K, or an object that computes its values when needed.
    coupling : ndarray of shape (p, q)
        S; the identity for independent outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Gram
    >>> from fenchel.kernels import Gaussian
    >>> design = Gram(Gaussian(1.0)(np.array([[0.0], [1.0]])), np.eye(1))
    >>> design.values(np.array([[1.0], [0.0]])).round(3)[:, 0]
    array([1.   , 0.607])
    """

    is_gram = True
    by_rows = True
    refusal = "needs features, and the fit has kernel values: set features='cholesky'"

    def __init__(self, values: FloatArray | KernelValues, coupling: FloatArray) -> None:
        known = Stored(values) if isinstance(values, np.ndarray) else values
        self.kernel_values: KernelValues = known
        self.coupling = coupling
        self.n_rows = self.width = self.kernel_values.size
        self.n_outputs = len(coupling)
        self._factor: FloatArray | None = None

    @property
    def gram(self) -> FloatArray | None:
        """K, if it is stored."""
        return self.kernel_values.matrix

    def factored(self, shift: FloatArray) -> Factored:
        """Return the factor of K + diag(shift), in the array of K until :meth:`restore`."""
        return self.kernel_values.factored(shift)

    @property
    def left_factor(self) -> Factored | None:
        return self.kernel_values.left_factor

    def restore(self) -> None:
        self.kernel_values.restore()

    def zero(self) -> FloatArray:
        return np.zeros((self.n_rows, self.n_outputs))

    def _computed(self, weights: FloatArray) -> FloatArray:
        """K u B, where kernel values are not stored from that of the nearest known array."""
        stored = self.left_factor is not None or self.gram is not None  # a factor stays
        if not stored:
            for known, image in self._known:
                change = weights - known
                change[np.abs(change) <= _ROUNDED * np.abs(weights)] = 0.0
                rows = np.flatnonzero(change.any(axis=1))
                if len(rows) == 0:
                    return image
                if _FEWER * len(rows) < self.n_rows:
                    return image + self.image(change[rows], rows)
        return self.image(weights)

    def feature_weights(self, weights: FloatArray) -> FloatArray:
        """Return u B, by which kernel values of new rows are multiplied."""
        chain = self.output_chain
        return weights @ self.output_matrix if chain is None else chain.times(weights)

    def pull(self, rows: Rows, push: FloatArray) -> FloatArray:
        whole = self.zero()
        whole[rows] = push
        return whole

    def _pull_all(self, push: FloatArray) -> FloatArray:
        return push

    def weights_of(self, pulled: FloatArray) -> FloatArray:
        return pulled

    def link(self, push: FloatArray) -> FloatArray:
        return push

    def squared_norm(self, weights: FloatArray) -> float:
        """Return <u, K u B>."""
        return float(np.einsum("ip,ip->", weights, self.directions(weights)))  # in one thread

    def image(self, push: FloatArray, rows: IntArray | None = None) -> FloatArray:
        mixed, factor = self.feature_weights(push), self._factor
        if rows is None and factor is not None:
            return factor @ (factor.T @ mixed)
        return self.kernel_values.times(mixed, rows)

    def functions(self, rows: IntArray, vectors: FloatArray) -> Functions:
        return KernelColumns(self, self.kernel_values, rows, vectors)

    def subset(self, rows: IntArray) -> Gram:
        return Gram(self.kernel_values.subset(rows), self.coupling)

    def from_subset(self, rows: IntArray, weights: FloatArray) -> FloatArray:
        return self.pull(rows, weights)

    def _with(self, coupling: FloatArray) -> Gram:
        return Gram(self.kernel_values, coupling)

    def low_rank(self) -> Design | None:
        """Return a design of low-rank features, if kernel values are computed and not stored."""
        features = self.kernel_values.low_rank()
        return None if features is None else Plain(features, self.coupling)

    def join(self, parts: list[FloatArray]) -> FloatArray:
        return np.hstack(parts)

    def _decomposed(self, root: FloatArray) -> Spectrum:
        """Where few eigenvalues are not zero, products use them from then on."""
        gram = self.kernel_values.times(np.eye(self.n_rows)) if self.gram is None else self.gram
        check_time(DECOMPOSED * float(self.n_rows) ** 3)
        scaled = root * gram * root.T
        found = in_order(*eigh(scaled, overwrite_a=True, check_finite=False))
        some = found.values > _ROUNDING * found.values[-1]
        if 2 * np.count_nonzero(some) < self.n_rows:
            self._factor = found.vectors[:, some] * np.sqrt(found.values[some]) / root
        return found

    def _scalar_diagonal(self) -> FloatArray:
        return self.kernel_values.diagonal
