"""Kernels whose values the user provides: as a function, or as X itself."""

from __future__ import annotations

from collections.abc import Callable as Function

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray
from fenchel._validation import CALLABLE, declared
from fenchel.kernels.base import ScalarKernel, two_dimensional


class Callable(ScalarKernel):
    """Kernel defined by a function.

    Parameters
    ----------
    function : callable
        Takes two arrays (n, d) and (m, d) and returns the (n, m) array of kernel values.
        It must be symmetric and positive semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Callable
    >>> Callable(lambda X, Y: np.minimum(X, Y.T))([[1.0], [2.0]])
    array([[1., 1.],
           [1., 2.]])
    """

    _stationary = False

    constraints = declared(function=CALLABLE)

    def __init__(self, function: Function[[FloatArray, FloatArray], FloatArray]) -> None:
        self.function = function

    def _evaluate(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        values = np.asarray(self.function(X, Y), dtype=np.float64)
        if values.shape != (len(X), len(Y)):
            raise ValueError(
                f"a callable kernel must return an array ({len(X)}, {len(Y)}) for arrays with "
                f"that many rows, got shape {values.shape}"
            )
        return values

    def diag(self, X: npt.ArrayLike) -> FloatArray:
        """Return k(x, x) for each row, computed from small square blocks."""
        X = two_dimensional(X)
        parts = [np.diag(self(X[i : i + 64])) for i in range(0, len(X), 64)]
        return np.concatenate(parts) if parts else np.empty(0)


class Precomputed(ScalarKernel):
    """Precomputed kernel: X is the Gram matrix in ``fit``, and k(X, X_train) in ``predict``.

    Examples
    --------
    >>> from fenchel import KernelRidge
    >>> model = KernelRidge(0.5, kernel="precomputed").fit([[2.0, 1.0], [1.0, 2.0]], [0.0, 1.0])
    >>> model.predict([[1.0, 2.0]])  # k(x, x_1), k(x, x_2) of a new row x
    array([0.75])
    """

    _stationary = False

    def __init__(self) -> None:
        pass

    def _evaluate(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        raise ValueError("a precomputed kernel cannot be evaluated: X holds its values already")
