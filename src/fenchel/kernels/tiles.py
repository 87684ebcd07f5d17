"""Linear combinations of kernel values, in tiles that fit the processor's cache."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sklearn.gaussian_process.kernels as sk
from sklearn.gaussian_process.kernels import Kernel

from fenchel._threads import in_threads, threads_that_pay
from fenchel._typing import FloatArray
from fenchel.kernels.base import ScalarKernel
from fenchel.kernels.given import Callable as OfFunction
from fenchel.kernels.resolving import as_scalar_kernel, parts_of

_COLUMNS = 4096
_TILE_VALUES = 2**19  # 4 MiB of kernel values
_TASK_TILES = 8

Filler = Callable[[slice, slice, FloatArray], None]
"""Writes kernel values of some rows and columns into an array, in C order."""


def against(kernel: Kernel, Z: FloatArray) -> Callable[[FloatArray], Filler]:
    """Return a function of rows X, which returns a function that writes parts of k(X, Z).

    Work that is needed once per row is done once, see ``ScalarKernel.reduced``. scikit-learn's
    sums and products are evaluated by their components.
    """
    if type(kernel) in (sk.Sum, sk.Product):
        return _joined(kernel, Z)
    own = as_scalar_kernel(kernel)
    others, inner = own.reduced(Z)

    def at(X: FloatArray) -> Filler:
        rows = own.reduced(X)[0]
        return lambda some, columns, out: inner.fill(rows[some], others[columns], out)

    return at


def _joined(kernel: Kernel, Z: FloatArray) -> Callable[[FloatArray], Filler]:
    """The same for a sum or product."""
    join = np.add if type(kernel) is sk.Sum else np.multiply
    one, two = against(kernel.k1, Z), against(kernel.k2, Z)

    def at(X: FloatArray) -> Filler:
        first, second = one(X), two(X)

        def fill(some: slice, columns: slice, out: FloatArray) -> None:
            other = np.empty_like(out)
            first(some, columns, out)
            second(some, columns, other)
            join(out, other, out=out)

        return fill

    return at


def for_threads(kernel: Kernel) -> bool:
    """Whether a kernel may be evaluated in several threads: it contains no user function.

    Examples
    --------
    >>> from fenchel.kernels import Callable, Gaussian, for_threads
    >>> for_threads(Gaussian()), for_threads(Callable(lambda X, Y: X @ Y.T))
    (True, False)
    """
    if isinstance(kernel, ScalarKernel):
        return not isinstance(kernel, OfFunction) and all(map(for_threads, parts_of(kernel)))
    return type(kernel).__module__ == sk.__name__ and all(map(for_threads, parts_of(kernel)))


class KernelFunctions:
    r"""The functions k(·, z) of fixed rows z, which are prepared once.

    Parameters
    ----------
    kernel : kernel
        A kernel whose length scales are numbers, not rules.
    Z : ndarray of shape (m, d)
        The rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import KernelFunctions, Linear
    >>> functions = KernelFunctions(Linear(), np.array([[1.0], [3.0]]))
    >>> functions.combined(np.array([[2.0]]), np.ones((2, 1)))
    array([[8.]])
    """

    def __init__(self, kernel: Kernel, Z: FloatArray) -> None:
        self.kernel, self.rows = kernel, Z
        self._at = against(kernel, Z)

    def combined(self, X: FloatArray, coefficients: FloatArray) -> FloatArray:
        r"""Return linear combinations (n, p) for X (n, d) and coefficients (m, p).

        .. math:: h(x_i) = \sum_j k(x_i, z_j)\, a_j

        The (n, m) array of kernel values is not formed: the computation proceeds in tiles, in
        several threads. The result does not depend on the number of threads. It has the
        precision of the coefficients, which must be that of X and Z.
        """
        n, m = len(X), len(self.rows)
        out = np.zeros((n, coefficients.shape[1]), coefficients.dtype)
        width = max(1, min(m, _COLUMNS))
        height = max(1, _TILE_VALUES // width)
        size = height * max(1, _TASK_TILES * width // max(1, m))
        fill = self._at(X)

        def task(start: int) -> None:
            stop = min(start + size, n)
            work = np.empty(min(height, stop - start) * width, coefficients.dtype)
            for first in range(start, stop, height):
                some = slice(first, min(first + height, stop))
                for j in range(0, m, width):
                    columns = slice(j, min(j + width, m))
                    shape = some.stop - some.start, columns.stop - columns.start
                    values = work[: shape[0] * shape[1]].reshape(shape)
                    fill(some, columns, values)
                    out[some] += np.dot(values, coefficients[columns])

        with threads_that_pay(0):
            if for_threads(self.kernel):
                in_threads(task, range(0, n, size))
            else:
                for start in range(0, n, size):
                    task(start)
        return out
