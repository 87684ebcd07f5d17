"""Matrix-valued kernels that are more general than a scalar kernel times one matrix."""

from __future__ import annotations

from collections.abc import Callable as Function
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from fenchel._typing import FloatArray, IntArray
from fenchel._validation import NUMBERS, shown
from fenchel.kernels.given import Precomputed
from fenchel.kernels.resolving import as_kernel, resolve

_CHUNK_VALUES = 2**22  # values that a function returns at a time: 32 MiB
_DIAGONAL_ROWS = 16
_ROUNDING = 1e-10


class OperatorKernel(BaseEstimator):
    r"""Base class of positive semi-definite kernels whose values are (p, p) matrices.

    .. math:: K(x, x')_{jl} = K(x', x)_{lj}, \qquad
              \sum_{ik} \langle a_i, K(x_i, x_k)\, a_k \rangle \ge 0

    The reproducing kernel Hilbert space contains functions with values in R^p and is spanned by
    the columns :math:`K(\cdot, x)_{:l}`. Subclasses define ``n_outputs``, ``columns``, ``diag``
    and ``resolved``. Their constructors only store parameters, as in scikit-learn. ``+`` returns
    the sum of two kernels.

    References
    ----------
    Micchelli, Pontil (2005), On learning vector-valued functions; Alvarez, Rosasco, Lawrence
    (2012), Kernels for vector-valued functions: a review.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Decomposable, Gaussian, OperatorKernel
    >>> kernel: OperatorKernel = Decomposable(Gaussian(1.0), np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> kernel.n_outputs
    2
    >>> kernel.columns(np.zeros((1, 1)), np.zeros((1, 1)), np.array([0]))[0, :, 0]
    array([1. , 0.5])
    """

    @property
    def n_outputs(self) -> int:
        """Number of outputs p."""
        raise NotImplementedError(f"{type(self).__name__} must define n_outputs")

    def columns(self, X: FloatArray, Z: FloatArray, outputs: IntArray) -> FloatArray:
        """Return K(x_i, z_k)[:, l_k], (n, p, m), with one output l_k for each row z_k."""
        raise NotImplementedError(f"{type(self).__name__} must define columns")

    def diag(self, X: FloatArray) -> FloatArray:
        """Return the diagonal of each K(x_i, x_i), (n, p)."""
        raise NotImplementedError(f"{type(self).__name__} must define diag")

    def resolved(
        self, X: FloatArray, sample_weight: FloatArray | None = None, random_state: Any = None
    ) -> Self:
        """Return a validated copy whose length scales are computed from X."""
        raise NotImplementedError(f"{type(self).__name__} must define resolved")

    def blocks(self, X: npt.ArrayLike, Z: npt.ArrayLike | None = None) -> FloatArray:
        """Return all K(x_i, z_k), (n, m, p, p), for small X and Z."""
        X = np.asarray(X, dtype=np.float64)
        Z = X if Z is None else np.asarray(Z, dtype=np.float64)
        p = self.n_outputs
        values = self.columns(X, np.repeat(Z, p, axis=0), np.tile(np.arange(p), len(Z)))
        return np.ascontiguousarray(values.reshape(len(X), p, len(Z), p).transpose(0, 2, 1, 3))

    def __add__(self, other: OperatorKernel) -> OperatorSum:
        """Return the sum of two kernels."""
        if not isinstance(other, OperatorKernel):
            return NotImplemented
        sums = (k.kernels if isinstance(k, OperatorSum) else [k] for k in (self, other))
        return OperatorSum([part for parts in sums for part in parts])


class Decomposable(OperatorKernel):
    r"""A scalar kernel times an output matrix: :math:`K(x, x') = k(x, x')\, B`.

    The estimators have this kernel built in, and are faster with the built-in form. Use this
    class in sums, for example the linear model of coregionalization
    :math:`\sum_m k_m(x, x')\, B_m`.

    Parameters
    ----------
    kernel : None, str, kernel or callable
        The scalar kernel k, see :func:`fenchel.kernels.as_kernel`; not precomputed.
    output : array-like of shape (p, p)
        The matrix B, symmetric positive semi-definite.

    References
    ----------
    Alvarez, Rosasco, Lawrence (2012), Kernels for vector-valued functions: a review, section 4.

    Examples
    --------
    >>> from fenchel.kernels import Decomposable, Gaussian, Linear
    >>> smooth = Decomposable(Gaussian(1.0), [[1.0, 0.5], [0.5, 1.0]])
    >>> smooth.blocks([[0.0]], [[2.0]]).round(4)
    array([[[[0.1353, 0.0677],
             [0.0677, 0.1353]]]])
    >>> (smooth + Decomposable(Linear(), [[1.0, 0.0], [0.0, 0.0]])).n_outputs
    2
    """

    def __init__(self, kernel: Any, output: Any) -> None:
        self.kernel = kernel
        self.output = output

    @property
    def n_outputs(self) -> int:
        return len(self.output)

    def columns(self, X: FloatArray, Z: FloatArray, outputs: IntArray) -> FloatArray:
        values = np.asarray(as_kernel(self.kernel)(X, Z), dtype=np.float64)
        return values[:, None, :] * np.asarray(self.output, dtype=np.float64)[None, :, outputs]

    def diag(self, X: FloatArray) -> FloatArray:
        output = np.asarray(self.output, dtype=np.float64)
        return np.multiply.outer(as_kernel(self.kernel).diag(X), output.diagonal())

    def resolved(
        self, X: FloatArray, sample_weight: FloatArray | None = None, random_state: Any = None
    ) -> Self:
        kernel = resolve(_scalar(self.kernel), X, sample_weight, random_state)
        return type(self)(kernel, output_matrix(self.output))


class Transformable(OperatorKernel):
    r"""A scalar kernel between transformed rows: :math:`K(x, x')_{jl} = k(T_j x, T_l x')`.

    Each output has its own transformation of the rows: h_j(x) = g(T_j x), with one function g
    in the space of k.

    Parameters
    ----------
    kernel : None, str, kernel or callable
        The scalar kernel k, see :func:`fenchel.kernels.as_kernel`; not precomputed.
        Data-driven length scales are computed from the transformed rows of all outputs.
    transforms : sequence of array-like of shape (d', n_features) or callable
        T_1, …, T_p: matrices, or functions that transform an array (n, n_features) row by row
        into an array (n, d'). All have the same d'.

    References
    ----------
    Caponnetto, Micchelli, Pontil, Ying (2008), Universal multi-task kernels, example 5.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, Transformable
    >>> shift = Transformable(Gaussian(1.0), [np.eye(1), lambda X: X - 2.0])
    >>> shift.blocks([[0.0]], [[2.0]]).round(4)
    array([[[[1.353e-01, 1.000e+00],
             [3.000e-04, 1.353e-01]]]])
    """

    def __init__(self, kernel: Any, transforms: Sequence[Any]) -> None:
        self.kernel = kernel
        self.transforms = transforms

    @property
    def n_outputs(self) -> int:
        return len(self.transforms)

    def columns(self, X: FloatArray, Z: FloatArray, outputs: IntArray) -> FloatArray:
        rows = self._all_transformed(X)
        columns = np.empty((len(Z), rows.shape[1]))
        for output in np.unique(outputs):
            mine = outputs == output
            columns[mine] = self._transformed(Z[mine], int(output))
        values = as_kernel(self.kernel)(rows, columns)
        return np.asarray(values, dtype=np.float64).reshape(len(X), self.n_outputs, len(Z))

    def diag(self, X: FloatArray) -> FloatArray:
        values = as_kernel(self.kernel).diag(self._all_transformed(X))
        return np.asarray(values, dtype=np.float64).reshape(len(X), self.n_outputs)

    def resolved(
        self, X: FloatArray, sample_weight: FloatArray | None = None, random_state: Any = None
    ) -> Self:
        """Return a validated copy whose length scales are computed from the transformed rows."""
        if self.n_outputs == 0:
            raise ValueError("transforms must have one entry for each output, got none")
        weight = None if sample_weight is None else np.repeat(sample_weight, self.n_outputs)
        rows = self._all_transformed(X)
        kernel = resolve(_scalar(self.kernel), rows, weight, random_state)
        return type(self)(kernel, self.transforms)

    def _all_transformed(self, X: FloatArray) -> FloatArray:
        """T_1 x_1, …, T_p x_1, T_1 x_2, …, (n p, d')."""
        parts = [self._transformed(X, j) for j in range(self.n_outputs)]
        if len({part.shape[1] for part in parts}) > 1:
            raise ValueError(
                "transforms must all have the same number of columns, got "
                f"{[part.shape[1] for part in parts]}"
            )
        return np.stack(parts, axis=1).reshape(-1, parts[0].shape[1])

    def _transformed(self, X: FloatArray, j: int) -> FloatArray:
        transform = self.transforms[j]
        if callable(transform):
            image = np.asarray(transform(X), dtype=np.float64)
            if image.ndim != 2 or len(image) != len(X):
                raise ValueError(
                    f"transforms[{j}] must return an array (n, d') for an array of n rows, got "
                    f"shape {image.shape} for {len(X)} rows"
                )
            return image
        matrix = np.asarray(transform, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != X.shape[1]:
            raise ValueError(
                f"transforms[{j}] must be a function or a matrix with one column for each of "
                f"the {X.shape[1]} features, got shape {matrix.shape}"
            )
        return X @ matrix.T


class OperatorCallable(OperatorKernel):
    r"""Operator-valued kernel defined by a function.

    Parameters
    ----------
    function : callable
        Takes two arrays (n, d) and (m, d) and returns the (n, m, p, p) array of
        :math:`K(x_i, z_k)`. It must be symmetric, K(x, z) = K(z, x)ᵀ, and positive
        semi-definite.
    n_outputs : int
        Number of outputs p.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import OperatorCallable
    >>> def brownian(X, Z):
    ...     return np.minimum(X, Z.T)[:, :, None, None] * np.eye(2)
    >>> OperatorCallable(brownian, n_outputs=2).diag(np.array([[1.0], [3.0]]))
    array([[1., 1.],
           [3., 3.]])
    """

    n_outputs: int = 0  # a parameter here, in place of the property

    def __init__(
        self, function: Function[[FloatArray, FloatArray], FloatArray], n_outputs: int
    ) -> None:
        self.function = function
        self.n_outputs = n_outputs

    def columns(self, X: FloatArray, Z: FloatArray, outputs: IntArray) -> FloatArray:
        """Return K(x_i, z_k)[:, l_k], (n, p, m), computed in chunks of rows."""
        values = np.empty((len(X), self.n_outputs, len(Z)))
        # all outputs of a row come at once
        unique, inverse = np.unique(Z, axis=0, return_inverse=True)
        size = max(1, _CHUNK_VALUES // max(1, len(unique) * self.n_outputs**2))
        for start in range(0, len(X), size):
            part = self._evaluated(X[start : start + size], unique)
            chosen = part[:, inverse.ravel(), :, outputs]  # (m, n, p)
            values[start : start + size] = chosen.transpose(1, 2, 0)
        return values

    def diag(self, X: FloatArray) -> FloatArray:
        """Return the diagonal of each K(x_i, x_i), (n, p), computed from small square blocks."""
        parts = [X[start : start + _DIAGONAL_ROWS] for start in range(0, len(X), _DIAGONAL_ROWS)]
        blocks = [np.einsum("iijj->ij", self._evaluated(part, part)) for part in parts]
        return np.concatenate(blocks) if blocks else np.empty((0, self.n_outputs))

    def resolved(
        self, X: FloatArray, sample_weight: FloatArray | None = None, random_state: Any = None
    ) -> Self:
        """Return a validated copy; no parameter depends on the data."""
        p = self.n_outputs
        if isinstance(p, (bool, np.bool_)) or not isinstance(p, Integral) or p < 1:
            raise ValueError(f"n_outputs must be an integer >= 1, got {shown(p)}")
        return type(self)(self.function, int(p))

    def _evaluated(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        values = np.asarray(self.function(X, Z), dtype=np.float64)
        wanted = (len(X), len(Z), self.n_outputs, self.n_outputs)
        if values.shape != wanted:
            raise ValueError(
                f"function must return an array {wanted} for arrays of {len(X)} and {len(Z)} "
                f"rows and {self.n_outputs} outputs, got shape {values.shape}"
            )
        return values


class OperatorSum(OperatorKernel):
    """Sum of operator-valued kernels, the result of ``+``.

    Parameters
    ----------
    kernels : sequence of OperatorKernel
        At least one, all with the same number of outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.kernels import Decomposable
    >>> X, y, _ = make_sine_quantiles(100, random_state=0)
    >>> parallel = Decomposable("gaussian", np.ones((3, 3)))
    >>> free = Decomposable("linear", np.eye(3))
    >>> model = QuantileRegressor([0.1, 0.5, 0.9], kernel=parallel + free).fit(X, y)
    >>> model.predict(X).shape
    (100, 3)
    """

    def __init__(self, kernels: Sequence[OperatorKernel]) -> None:
        self.kernels = kernels

    @property
    def n_outputs(self) -> int:
        found = [kernel.n_outputs for kernel in self.kernels]
        if len(set(found)) != 1:
            raise ValueError(f"kernels of a sum must have the same number of outputs, got {found}")
        return found[0]

    def columns(self, X: FloatArray, Z: FloatArray, outputs: IntArray) -> FloatArray:
        total = self.kernels[0].columns(X, Z, outputs)
        for kernel in self.kernels[1:]:
            total += kernel.columns(X, Z, outputs)
        return total

    def diag(self, X: FloatArray) -> FloatArray:
        return np.sum([kernel.diag(X) for kernel in self.kernels], axis=0)

    def resolved(
        self, X: FloatArray, sample_weight: FloatArray | None = None, random_state: Any = None
    ) -> Self:
        return type(self)([k.resolved(X, sample_weight, random_state) for k in self.kernels])


def _scalar(kernel: Any) -> Any:
    """Return the scalar kernel inside an operator-valued one."""
    scalar = as_kernel(kernel)
    if isinstance(scalar, Precomputed):
        raise ValueError(
            "the scalar kernel inside an operator-valued kernel cannot be 'precomputed': it is "
            "evaluated at rows of X"
        )
    return scalar


def output_matrix(output: Any, name: str = "output") -> FloatArray:
    """Return B as an array, or raise ValueError that names the parameter."""
    matrix = np.asarray(NUMBERS(output, name), dtype=np.float64)
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] and matrix.size > 0
    if not square:
        raise ValueError(
            f"{name} must be a square matrix of finite numbers, got shape {matrix.shape}"
        )
    size = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > _ROUNDING * size:
        raise ValueError(f"{name} must be symmetric, got a matrix that differs from its transpose")
    lowest = float(np.linalg.eigvalsh(matrix)[0])
    if lowest < -_ROUNDING * size:
        raise ValueError(
            f"{name} must be positive semi-definite, got a matrix with the eigenvalue {lowest:.3g}"
        )
    return matrix
