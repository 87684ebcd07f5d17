"""Units in which alpha is learned: of the loss, and of the kernel and its summands."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Product

from fenchel._typing import FloatArray
from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, summands_of
from fenchel.learning.reach import around_constant, within_reach
from fenchel.losses import Loss

_ROUNDING = 1e-13  # of a mean of kernel values


def unit_of_strength(loss: Loss, targets: FloatArray, weight: FloatArray) -> float:
    """Mean loss over mean square around the best constant: the unit of alpha over the kernel's.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning import unit_of_strength
    >>> from fenchel.losses import Squared
    >>> unit_of_strength(Squared(), np.array([[1.0], [3.0]]), np.ones(2))
    0.5
    """
    centred = around_constant(loss, within_reach(loss, targets, weight), weight)
    value = float(np.average(loss.value(centred), weights=weight))
    square = float(np.average(np.mean(centred**2, axis=1), weights=weight))
    return value / square if value > 0.0 and square > 0.0 else 1.0


def size_of_functions(kernel: Any, X: FloatArray, few: FloatArray, fit_intercept: bool) -> float:
    """Mean square at rows of functions of norm one, without the part that an offset absorbs.

    That part is subtracted if the kernel is not stationary, as functions may then be large and
    nearly constant: for example linear ones far from zero. A few of the rows are used.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Linear
    >>> from fenchel.learning.units import size_of_functions
    >>> X = np.array([[1999.0], [2001.0]])
    >>> size_of_functions(Linear(), X, X, fit_intercept=True)
    1.0
    """
    size = float(np.mean(kernel.diag(X)))
    if fit_intercept and not kernel.is_stationary():
        whole = float(np.mean(kernel.diag(few)))
        left = whole - float(np.mean(kernel(few)))
        size *= left / whole if left > _ROUNDING * whole else 1.0
    return size or 1.0


def sizes_of_summands(
    kernel: Any, X: FloatArray, few: FloatArray, fit_intercept: bool
) -> list[float]:
    """The same for each summand of a kernel whose size depends on the units of X, else nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, Linear
    >>> from fenchel.learning.units import sizes_of_summands
    >>> X = np.array([[1999.0], [2001.0]])
    >>> sizes_of_summands(Gaussian(1.0) + 64.0 * Linear(), X, X, fit_intercept=True)
    [1.0, 64.0]
    >>> sizes_of_summands(Gaussian(1.0) + 64.0, X, X, fit_intercept=True)
    []
    """
    parts = [] if kernel.is_stationary() else summands_of(kernel)
    return [size_of_functions(part, X, few, fit_intercept) for part in parts]


def middle_of(kernel: Any, X: FloatArray, fit_intercept: bool) -> FloatArray | None:
    """Mean of rows that may be moved there, None where the kernel would be another one.

    Rows far from zero would leave nothing of a stationary kernel beside a linear one but rounding
    errors. Linear functions of moved rows differ by constants, which an offset takes up.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, Linear
    >>> from fenchel.learning.units import middle_of
    >>> X = np.array([[1999.0], [2001.0]])
    >>> middle_of(Gaussian(1.0) + Linear(), X, fit_intercept=True)
    array([2000.])
    """
    moves = fit_intercept and not kernel.is_stationary() and all(map(_moves, summands_of(kernel)))
    return X.mean(axis=0) if moves else None


def _moves(part: Any) -> bool:
    """Whether moved rows have the same functions, but for constants."""
    if isinstance(part, Product) and isinstance(part.k1, ConstantKernel):
        return _moves(part.k2)
    return isinstance(part, (Gaussian, Laplacian, Linear, Matern))
