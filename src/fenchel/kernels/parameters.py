"""Open kernel parameters, which estimators learn, and derivatives with respect to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.gaussian_process.kernels as sk
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from fenchel._typing import FloatArray
from fenchel.kernels.base import ScalarKernel
from fenchel.kernels.resolving import as_scalar_kernel, parts_of, resolve
from fenchel.kernels.scalar import Gaussian, Matern
from fenchel.kernels.widths import is_data_driven, is_learned

NARROWEST, WIDEST = 0.02, 1000.0
"""Length scales that are learned, in standard deviations of their feature."""


def is_open(kernel: Kernel) -> bool:
    """Whether the kernel has parameters to be learned; invalid parameters raise an error.

    Examples
    --------
    >>> from fenchel.kernels import Gaussian, is_open
    >>> is_open(Gaussian("learned")), is_open(Gaussian(2.0))
    (True, False)
    """
    if isinstance(kernel, ScalarKernel):
        kernel.check_parameters()
    scale = getattr(kernel, "length_scale", None)
    own = isinstance(kernel, ScalarKernel) and is_learned(scale)
    if own or any(is_open(part) for part in parts_of(kernel)):
        return True
    return not parts_of(kernel) and bool(np.size(kernel.theta))


def opened(
    kernel: Kernel,
    X: FloatArray,
    sample_weight: FloatArray | None = None,
    random_state: Any = None,
) -> Kernel:
    """Return a copy with starting values for all parameters, and bounds for those to learn.

    ``theta`` and ``bounds`` of the copy are the logarithms of the open parameters. Length scales
    that are "learned" or "shared" start at the values of the rule "scale", and likewise with
    "shared_range". Numbers start at their own value.

    Parameters
    ----------
    kernel : kernel
        May be a sum, product or power of kernels.
    X : ndarray of shape (n_samples, n_features)
        Rows from which length scales are computed.
    sample_weight : ndarray of shape (n_samples,), optional
        Sample weights.
    random_state : int, RandomState or None
        Seed for the pairs of rows that are drawn if there are many rows.

    Returns
    -------
    kernel

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, opened
    >>> opened(Gaussian(), np.array([[0.0], [1.0], [3.0]])).theta.shape
    (1,)
    """
    measured = resolve(kernel, X, sample_weight, random_state)
    _open(kernel, measured)
    return measured


def _open(given: Kernel, measured: Kernel) -> None:
    """Give bounds to length scales that were to be learned, in place."""
    for part, own in zip(parts_of(given), parts_of(measured), strict=True):
        _open(part, own)
    scale = getattr(given, "length_scale", None)
    if isinstance(given, ScalarKernel) and is_data_driven(scale):
        measured.length_scale_bounds = None
        if is_learned(scale):
            middle = np.asarray(measured.length_scale)
            bounds = np.column_stack([NARROWEST * middle, WIDEST * middle])
            measured.length_scale_bounds = bounds


def settled(kernel: Kernel) -> Kernel:
    """Return a copy whose parameters are fixed.

    Examples
    --------
    >>> from fenchel.kernels import is_open, settled
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> kernel = RBF(2.0)
    >>> is_open(kernel), is_open(settled(kernel))
    (True, False)
    """
    copied = clone(kernel)
    _settle(copied)
    return copied


def _settle(kernel: Kernel) -> None:
    for part in parts_of(kernel):
        _settle(part)
    if isinstance(kernel, ScalarKernel):
        if hasattr(kernel, "length_scale_bounds"):
            kernel.length_scale_bounds = None
    elif not parts_of(kernel):
        fixed = {f"{h.name}_bounds": "fixed" for h in kernel.hyperparameters}
        kernel.set_params(**fixed)


def parameter_gradient(
    kernel: Kernel, X: FloatArray, Z: FloatArray, weights: FloatArray
) -> FloatArray:
    r"""Derivatives of a weighted sum of kernel values with respect to the open parameters.

    .. math:: g_m = \sum_{ij} w_{ij} \frac{\partial k(x_i, z_j)}{\partial \theta_m}

    Parameters
    ----------
    kernel : kernel
        A kernel of this library or of scikit-learn, or a sum, product or power of these.
    X : ndarray of shape (n, d)
    Z : ndarray of shape (m, d)
    weights : ndarray of shape (n, m)

    Returns
    -------
    ndarray of shape (n_dims,)
        In the order of ``kernel.theta``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, parameter_gradient
    >>> kernel = Gaussian(1.0, length_scale_bounds=(0.1, 10.0))
    >>> X = np.array([[0.0], [1.0]])
    >>> parameter_gradient(kernel, X, X, np.ones((2, 2))).round(4)
    array([1.2131])
    """
    if kernel.n_dims == 0:
        return np.empty(0)
    kernel = _own(kernel)
    if isinstance(kernel, ScalarKernel):
        found = kernel.parameter_gradient(X, Z, weights)
        if found is not None:
            return found
    composed = _composed(kernel, X, Z, weights)
    return _by_values(kernel, X, Z, weights) if composed is None else composed


def differentiated(
    kernel: Kernel, X: FloatArray
) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    """Return k(X, X), and :func:`parameter_gradient` on X as a function of the weights.

    Computing the two together costs little more than computing one.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import differentiated
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> values, gradient = differentiated(RBF(1.0), np.array([[0.0], [1.0]]))
    >>> values.shape, gradient(np.ones((2, 2))).shape
    ((2, 2), (1,))
    """
    kernel = _own(kernel)
    found = kernel.differentiated(X) if isinstance(kernel, ScalarKernel) else None
    if found is not None:
        return found
    if type(kernel) is sk.Sum:
        (one, of_one), (two, of_two) = (differentiated(k, X) for k in (kernel.k1, kernel.k2))
        return one + two, lambda weights: np.concatenate([of_one(weights), of_two(weights)])
    return np.asarray(kernel(X)), lambda weights: parameter_gradient(kernel, X, X, weights)


def _own(kernel: Kernel) -> Kernel:
    """scikit-learn's RBF and Matern as kernels of this library, whose derivatives need no array.

    That of scikit-learn has the shape (n, n, n_dims).
    """
    if type(kernel) not in (sk.RBF, sk.Matern):
        return kernel
    found: Any = as_scalar_kernel(kernel)
    if type(found) not in (Gaussian, Matern):  # a smoothness without derivatives here
        return kernel
    found.length_scale_bounds = kernel.length_scale_bounds
    return found


def _composed(
    kernel: Kernel, X: FloatArray, Z: FloatArray, weights: FloatArray
) -> FloatArray | None:
    """By the rules of sums, products and powers; scikit-learn's classes know none."""
    if type(kernel) is sk.Sum:
        parts = [parameter_gradient(part, X, Z, weights) for part in (kernel.k1, kernel.k2)]
        return np.concatenate(parts)
    if type(kernel) is sk.Product:
        one, two = kernel.k1, kernel.k2
        parts = [
            parameter_gradient(own, X, Z, weights * other(X, Z)) if own.n_dims else np.empty(0)
            for own, other in ((one, two), (two, one))
        ]
        return np.concatenate(parts)
    if type(kernel) is sk.Exponentiation:
        power = kernel.exponent
        slopes = power * kernel.kernel(X, Z) ** (power - 1.0)
        return parameter_gradient(kernel.kernel, X, Z, weights * slopes)
    if type(kernel) is sk.ConstantKernel:
        return np.array([kernel.constant_value * weights.sum()])
    return None


def _by_values(kernel: Kernel, X: FloatArray, Z: FloatArray, weights: FloatArray) -> FloatArray:
    """From the array of all derivatives, among all rows of both."""
    same = X is Z
    rows = X if same else np.concatenate([X, Z])
    _, derivatives = kernel(rows, eval_gradient=True)
    block = derivatives if same else derivatives[: len(X), len(X) :]
    return np.asarray(np.einsum("ij,ijm->m", weights, block))
