"""The base class of designs, with defaults that hold for any design."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.design.chain import Chain, chain_of
from fenchel.design.factored import Factored
from fenchel.design.rows import MOST_SUMS, RowBlocks

_LEAST_PARTS = 48  # of a pass, however large its sums are: fewer would leave threads idle

Rows = slice | IntArray
"""Some of the rows: a block, or their numbers."""

DECOMPOSED = 10.0
"""Times n³: operations in whose time an eigendecomposition is made."""


class Spectrum(NamedTuple):
    """Eigenvalues (k,) >= 0 and orthonormal eigenvectors (n, k); other eigenvalues are zero."""

    values: FloatArray
    vectors: FloatArray


class Functions(Protocol):
    """Collection of k functions K(·, x_i) u, each given by a row i and a vector u of outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Plain
    >>> design = Plain(np.array([[1.0], [2.0]]), np.eye(1))
    >>> functions = design.functions(np.array([0, 1]), np.ones((2, 1)))
    >>> functions.gram()
    array([[1., 2.],
           [2., 4.]])
    """

    def values(self, weights: FloatArray) -> FloatArray:
        """Return inner products (k,) with the function of these weights."""

    def gram(self) -> FloatArray:
        """Return the inner products of the functions with each other, (k, k)."""

    def fill(self, matrix: FloatArray) -> None:
        """Write the lower triangle of the identity plus :meth:`gram`."""

    def weights(self, sizes: FloatArray) -> FloatArray:
        """Return the weights of the sum of ``sizes`` (k,) times the functions."""


class Design:
    r"""Base class of designs, which compute predictions h(x_i) and norms ‖h‖² from weights.

    To write your own design, subclass this class and define :meth:`zero`, :meth:`directions`,
    :meth:`predict`, :meth:`pull`, :meth:`weights_of`, :meth:`functions` and :meth:`subset`. The
    certificate, the losses and the Newton solver then work with it. Other solvers use further
    attributes and methods. If these are None, the solvers refuse the problem and say why.
    :func:`fenchel.testing.check_design` checks a design.

    Attributes
    ----------
    n_rows, n_outputs : int
        Numbers n of rows and p of outputs.
    width : int
        Number of values that a pass reads for each row.
    features : ndarray of shape (n, r) or None
        Features Φ, with predictions Φ V Sᵀ for weights V (r, q), and ‖h‖² = ‖V‖².
    gram : ndarray of shape (n, n) or None
        Scalar kernel values, if they are at most twice as many as the features; else None.
    kernel_values : object or None
        The scalar kernel matrix as an object that computes its blocks and products.
    coupling : ndarray of shape (p, q) or None
        S, where S Sᵀ is the output matrix, if the kernel is a scalar kernel times a matrix.
    mask : ndarray of shape (n, p) or None
        Factors by which the predictions of complete rows are multiplied, entry by entry.
    is_gram : bool
        Whether the features of new rows are their kernel values with these rows.
    spent : bool
        Whether kernel values are not needed after the fit, so a factor may overwrite them.
    refusal : str
        Message of solvers that need plain features, if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Design, Plain
    >>> design: Design = Plain(np.array([[1.0], [2.0]]), np.eye(1))
    >>> weights = design.link(np.array([[1.0], [1.0]]))  # of k(., x_1) + k(., x_2)
    >>> design.values(weights)[:, 0], design.squared_norm(weights)
    (array([3., 6.]), 9.0)
    """

    n_rows: int
    n_outputs: int
    width: int
    features: FloatArray | None = None
    kernel_values: Any = None
    coupling: FloatArray | None = None
    mask: FloatArray | None = None
    is_gram: bool = False
    spent: bool = False
    refusal: str = "needs plain features, which this design lacks; solver='newton' takes any"

    @property
    def gram(self) -> FloatArray | None:
        """Scalar kernel values (n, n), or None."""
        return None

    @property
    def by_rows(self) -> bool:
        """Whether functions are best represented by coefficients of the rows, (n, p)."""
        return False

    @cached_property
    def blocks(self) -> RowBlocks:
        """The rows in blocks."""
        most = max(_LEAST_PARTS, MOST_SUMS // max(self.width * self.n_outputs, 1))
        return RowBlocks(self.n_rows, self.width + self.n_outputs, most)

    def factored(self, shift: FloatArray) -> Factored:
        """Return the Cholesky factor of K + diag(shift), K the scalar kernel matrix of the rows.

        The factor may be stored in the array of K. Until :meth:`restore` is called, only products
        with K are then available.
        """
        gram = self.gram
        if gram is None:
            assert self.features is not None
            return Factored(self.features @ self.features.T).factor(shift)
        return Factored(np.array(gram, order="C")).factor(shift)

    @property
    def left_factor(self) -> Factored | None:
        """The factor that is stored in place of the kernel values, or None."""
        return None

    def restore(self) -> None:
        """Restore kernel values that a factor has overwritten."""

    def zero(self) -> FloatArray:
        """Return the weights of the zero function."""
        raise NotImplementedError(f"{type(self).__name__} must define zero")

    def directions(self, weights: FloatArray) -> FloatArray:
        """Return what :meth:`predict` needs of a function, computed once for all blocks."""
        raise NotImplementedError(f"{type(self).__name__} must define directions")

    def feature_weights(self, weights: FloatArray) -> FloatArray:
        """Return the weights by which features of new rows are multiplied for predictions."""
        return self.directions(weights)

    def predict(
        self, rows: Rows, directions: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        """Return the values of a function on some rows, (m, p), without offset."""
        raise NotImplementedError(f"{type(self).__name__} must define predict")

    def pull(self, rows: Rows, push: FloatArray) -> FloatArray:
        """Return Φᵀ times ``push`` (m, p) for some rows; the results of blocks can be added."""
        raise NotImplementedError(f"{type(self).__name__} must define pull")

    def weights_of(self, pulled: FloatArray) -> FloatArray:
        """Return the weights of the function Σ K(·, x_i) push_i, from results of :meth:`pull`."""
        raise NotImplementedError(f"{type(self).__name__} must define weights_of")

    def link(self, push: FloatArray) -> FloatArray:
        """Return the weights of the function Σ K(·, x_i) push_i over all rows, push (n, p)."""
        return self.weights_of(self.blocks.sum(lambda rows: (self.pull(rows, push[rows]),))[0])

    def squared_norm(self, weights: FloatArray) -> float:
        """Return ‖h‖² for the function with these weights."""
        return float(np.vdot(weights, weights))

    def values(self, weights: FloatArray) -> FloatArray:
        """Return the values of a function on all rows, (n, p)."""
        directions = self.directions(weights)
        if self.n_rows <= self.blocks.block_rows:
            return self.predict(slice(None), directions)
        values = np.empty((self.n_rows, self.n_outputs))
        self.blocks.map(lambda rows: self.predict(rows, directions, out=values[rows]))
        return values

    def image(self, push: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Return the values on all rows of Σ K(·, x_i) push_i over some rows, (n, p)."""
        if rows is not None:
            whole = np.zeros((self.n_rows, self.n_outputs))
            whole[rows] = push
            push = whole
        return self.values(self.link(push))

    def remember(self, weights: FloatArray, image: FloatArray) -> None:
        """Store the values of a function on all rows, if the design can use them."""

    def functions(self, rows: IntArray, vectors: FloatArray) -> Functions:
        """Return the functions K(·, x_i) u of rows (k,) and vectors (k, p)."""
        raise NotImplementedError(f"{type(self).__name__} must define functions")

    def subset(self, rows: IntArray) -> Design:
        """Return the design of some of the rows."""
        raise NotImplementedError(f"{type(self).__name__} must define subset")

    def from_subset(self, rows: IntArray, weights: FloatArray) -> FloatArray:
        """Convert weights in the design of some rows to weights in this design."""
        return weights

    def low_rank(self) -> Design | None:
        """Return a low-rank approximation of the design, if it gives a useful warm start."""
        return None

    def left_out(self, push: FloatArray, residual: FloatArray) -> float:
        r"""Upper bound of Σ push_iᵀ E_ik push_k for a kernel E with known diagonal.

        .. math:: \Bigl\|\sum_i E(\cdot, x_i) u\Bigr\|^2 \le
                  \Bigl(\sum_i |u_i| \sqrt{E_{ii}}\Bigr)^2

        for one output, by the Cauchy-Schwarz inequality. ``residual`` is the residual diagonal of
        the features, (n,) or (n, p), >= 0.
        """
        raise NotImplementedError(f"{type(self).__name__} must define left_out")

    def square_by(self, push: FloatArray, forms: Callable[[FloatArray], FloatArray]) -> float:
        """Return ‖Σ K(·, x_i) push_i‖² from ``forms``, pushᵀ k push of a push (n, q)."""
        raise NotImplementedError(f"{type(self).__name__} must define square_by")

    def output(self, j: int) -> Design | None:
        """Return the design of one output alone, or None if outputs are coupled."""
        return None

    def join(self, parts: list[FloatArray]) -> FloatArray:
        """Return the weights of all outputs from those of the designs of :meth:`output`."""
        raise NotImplementedError(f"{type(self).__name__} has no outputs by themselves")

    def hessian(self, rows: IntArray, jacobian: FloatArray) -> FloatArray | None:
        """Σ (Φ_i, I)ᵀ J_i (Φ_i, I) in weights and offset, J (m, p) or (m, p, p); or None."""
        return None

    def matrix(self) -> Any:
        """Return the matrix (n p, size of the weights) of all predictions, or None."""
        return None

    def spectrum(self, sample_weight: FloatArray) -> Spectrum:
        """Spectrum of √s K √s, s the normalized weights; cached for the last weights."""
        raise NotImplementedError(f"{type(self).__name__} has no scalar kernel")

    def pulled_spectrum(self, sample_weight: FloatArray) -> FloatArray:
        """What :meth:`pull` gives of √s V, V the vectors of the spectrum, (r, k)."""
        raise NotImplementedError(f"{type(self).__name__} has no scalar kernel")

    @cached_property
    def output_matrix(self) -> FloatArray:
        """The matrix S Sᵀ, if there is a coupling."""
        assert self.coupling is not None
        return self.coupling @ self.coupling.T

    @cached_property
    def output_spectrum(self) -> Spectrum:
        """Spectrum of the output matrix."""
        return in_order(*np.linalg.eigh(self.output_matrix))

    @cached_property
    def output_chain(self) -> Chain | None:
        """The output matrix as the covariance matrix of a Markov chain, if it is one."""
        return None if self.coupling is None else chain_of(self.output_matrix)

    def diagonal(self) -> FloatArray:
        """Trace of K(x_i, x_i) over the number of outputs, (n,)."""
        raise NotImplementedError(f"{type(self).__name__} must define diagonal")


def in_order(values: FloatArray, vectors: FloatArray) -> Spectrum:
    """Return the spectrum of a matrix that is positive semi-definite up to rounding."""
    return Spectrum(np.maximum(values, 0.0), vectors)


class Coupled(Design):
    """Base class of designs of a scalar kernel times an output matrix."""

    coupling: FloatArray
    _spectrum: tuple[FloatArray, Spectrum] | None = None
    _pulled: tuple[Spectrum, FloatArray] | None = None

    def _with(self, coupling: FloatArray) -> Coupled:
        """The same rows with other outputs."""
        raise NotImplementedError

    def _decomposed(self, root: FloatArray) -> Spectrum:
        """Spectrum of K times the roots (n, 1) of the weights from both sides."""
        raise NotImplementedError

    def _pull_all(self, push: FloatArray) -> FloatArray:
        """What :meth:`pull` gives of all rows, for any number of columns."""
        raise NotImplementedError

    def _scalar_diagonal(self) -> FloatArray:
        """Values k(x_i, x_i), (n,)."""
        raise NotImplementedError

    def left_out(self, push: FloatArray, residual: FloatArray) -> float:
        """``Σ_jl |B_jl| ‖push_j‖_E ‖push_l‖_E``, norms at most ``Σ_i |push_ij| √E_ii``."""
        sizes = self.blocks.sum(
            lambda rows: (np.dot(np.sqrt(residual[rows]), np.abs(push[rows])),)
        )[0]
        return float(sizes @ np.abs(self.output_matrix) @ sizes)

    def square_by(self, push: FloatArray, forms: Callable[[FloatArray], FloatArray]) -> float:
        """Σ_jl B_jl push_jᵀ k push_l."""
        return float(np.vdot(self.output_matrix, forms(push)))

    def output(self, j: int) -> Coupled | None:
        if np.any(self.output_matrix - np.diag(self.output_matrix.diagonal())):
            return None
        return self._with(np.array([[np.linalg.norm(self.coupling[j])]]))

    def spectrum(self, sample_weight: FloatArray) -> Spectrum:
        if self._spectrum is None or not np.array_equal(self._spectrum[0], sample_weight):
            root = np.sqrt(sample_weight / sample_weight.sum())[:, None]
            self._spectrum = sample_weight, self._decomposed(root)
        return self._spectrum[1]

    def pulled_spectrum(self, sample_weight: FloatArray) -> FloatArray:
        """Computed once for a spectrum."""
        spectrum = self.spectrum(sample_weight)
        if self._pulled is None or self._pulled[0] is not spectrum:
            root = np.sqrt(sample_weight / sample_weight.sum())[:, None]
            self._pulled = spectrum, self._pull_all(root * spectrum.vectors)
        return self._pulled[1]

    def diagonal(self) -> FloatArray:
        size = float(np.vdot(self.coupling, self.coupling)) / self.n_outputs
        return size * self._scalar_diagonal()


class ByValues(Coupled):
    """Base class of designs that compute the values of a function on all rows at once."""

    def _computed(self, weights: FloatArray) -> FloatArray:
        """Values on all rows, (n, p)."""
        raise NotImplementedError

    @cached_property
    def _known(self) -> list[tuple[FloatArray, FloatArray]]:
        """Functions and their values."""
        return []

    def directions(self, weights: FloatArray) -> FloatArray:
        """Return the values on all rows, (n, p), cached for the last two functions."""
        for known, values in self._known:
            if known is weights:
                return values
        nothing = not weights.any()
        values = np.zeros((self.n_rows, self.n_outputs)) if nothing else self._computed(weights)
        self.remember(weights, values)
        return values

    def remember(self, weights: FloatArray, values: FloatArray) -> None:
        """Store values that have been computed already."""
        self._known[:] = [(weights, values), *self._known[:1]]

    def predict(
        self, rows: Rows, directions: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        if out is None:
            return directions[rows]
        out[...] = directions[rows]
        return out


def distinct(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct row indices, and the position of each row among them.

    As ``numpy.unique``, but faster for increasing indices.
    """
    ahead = np.diff(rows)
    if len(ahead) == 0 or ahead.min() < 0:
        found = np.unique(rows, return_inverse=True)
        return found[0], found[1]
    new = np.concatenate(([True], ahead > 0))
    return rows[new], np.cumsum(new) - 1


def square_roots(rows: IntArray, jacobian: FloatArray) -> tuple[IntArray, FloatArray]:
    """Write matrices (m, p), diagonals, or (m, p, p) as sums of u uᵀ: rows (k,), u (k, p)."""
    if jacobian.ndim == 2:
        which, output = np.nonzero(jacobian)
        vectors = np.zeros((len(which), jacobian.shape[1]))
        vectors[np.arange(len(which)), output] = np.sqrt(jacobian[which, output])
        return rows[which], vectors
    values, bases = np.linalg.eigh(jacobian)
    keep = values > 1e-14 * values.max(initial=0.0)
    which, column = np.nonzero(keep)
    vectors = bases[which, :, column] * np.sqrt(values[which, column])[:, None]
    return rows[which], vectors
