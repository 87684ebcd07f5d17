"""Conversion of the ``kernel`` parameter into a kernel with numerical length scales."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import sklearn.gaussian_process.kernels as sk
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.kernels.base import ScalarKernel, two_dimensional
from fenchel.kernels.given import Callable, Precomputed
from fenchel.kernels.scalar import (
    SMOOTHNESS,
    AnyMatern,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
)
from fenchel.kernels.widths import NAMED_WIDTHS, check_length_scale, is_data_driven

ALIASES: dict[str, Kernel] = {
    "gaussian": Gaussian(),
    "rbf": Gaussian(),
    "laplacian": Laplacian(),
    "matern12": Matern(nu=0.5),
    "matern32": Matern(nu=1.5),
    "matern52": Matern(nu=2.5),
    "polynomial": Polynomial(),
    "linear": Linear(),
    "precomputed": Precomputed(),
}


def as_kernel(kernel: Any, name: str = "kernel") -> Kernel:
    """Convert None, a name, a kernel or a function to a kernel.

    Parameters
    ----------
    kernel : None, str, kernel or callable
        None is ``Gaussian()``. Names are the keys of ``fenchel.kernels.ALIASES``. Kernels of
        scikit-learn's Gaussian processes are used unchanged. A function of two arrays is
        wrapped in :class:`Callable`.
    name : str
        Name of the parameter in error messages.

    Returns
    -------
    kernel

    Examples
    --------
    >>> from fenchel.kernels import as_kernel
    >>> as_kernel("matern52")
    Matern(length_scale='learned', nu=2.5)
    """
    if kernel is None:
        return Gaussian()
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel in ALIASES:
            return clone(ALIASES[kernel])
        raise ValueError(f"{name} must be one of {sorted(ALIASES)}, got {shown(kernel)}")
    if callable(kernel) and not isinstance(kernel, type):
        return Callable(kernel)
    raise TypeError(
        f"{name} must be None, a name, a kernel object or a function of two arrays, with one "
        f"number for each pair of rows, got {shown(kernel)}"
    )


def as_scalar_kernel(kernel: Kernel) -> ScalarKernel:
    """Return the equivalent kernel of this library, with its integrals and gradients.

    Parameters
    ----------
    kernel : kernel
        A :class:`ScalarKernel` is returned unchanged. scikit-learn's ``RBF`` and ``Matern``
        are replaced by the kernels of this library with the same values. All others are
        wrapped in :class:`Callable`, which provides only the values, and for sums also the
        gradients.

    Returns
    -------
    kernel

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from fenchel.kernels import as_scalar_kernel
    >>> as_scalar_kernel(RBF(2.0))
    Gaussian(length_scale=2.0)
    """
    if isinstance(kernel, ScalarKernel):
        return kernel
    # exactly these classes: a subclass may have other values
    if type(kernel) is sk.RBF or (type(kernel) is sk.Matern and kernel.nu == np.inf):
        return Gaussian(kernel.length_scale)
    if type(kernel) is sk.Matern:
        known = kernel.nu in SMOOTHNESS
        return (Matern if known else AnyMatern)(kernel.length_scale, kernel.nu)
    return _Sum(kernel) if type(kernel) is sk.Sum else Callable(kernel)


class _Sum(Callable):
    """A sum of scikit-learn, with the gradients of its parts where these have any."""

    def gradient(self, X: FloatArray, Z: FloatArray, weights: FloatArray) -> FloatArray | None:
        total, whole = np.zeros(X.shape), cast(sk.Sum, self.function)
        for part in (whole.k1, whole.k2):
            if type(part) is sk.ConstantKernel:
                continue
            own = as_scalar_kernel(part).gradient(X, Z, weights)
            if own is None:
                return None
            total += own
        return total


def has_measured_scale(kernel: Kernel) -> bool:
    """Whether any length scale of the kernel still has to be computed from data.

    Examples
    --------
    >>> from fenchel.kernels import Gaussian, has_measured_scale
    >>> has_measured_scale(Gaussian("median")), has_measured_scale(Gaussian(2.0))
    (True, False)
    """
    return is_data_driven(getattr(kernel, "length_scale", None)) or any(
        has_measured_scale(part) for part in parts_of(kernel)
    )


def parts_of(kernel: Kernel) -> list[Kernel]:
    """Return the components of a sum, product or power, or of a kernel of transformed rows.

    Examples
    --------
    >>> from fenchel.kernels import Gaussian, Linear, parts_of
    >>> parts_of(Gaussian(2.0) + Linear())
    [Gaussian(length_scale=2.0), Linear()]
    """
    found = (getattr(kernel, name, None) for name in ("kernel", "k1", "k2"))
    return [part for part in found if isinstance(part, Kernel)]


def summands_of(kernel: Kernel) -> list[Kernel]:
    """Return the summands of a kernel; a kernel that is not a sum is its only summand.

    Examples
    --------
    >>> from fenchel.kernels import Gaussian, Linear, summands_of
    >>> summands_of(Gaussian(2.0) + Linear() + Linear())
    [Gaussian(length_scale=2.0), Linear(), Linear()]
    """
    if isinstance(kernel, sk.Sum):
        return summands_of(kernel.k1) + summands_of(kernel.k2)
    return [kernel]


def resolve(
    kernel: Kernel,
    X: FloatArray,
    sample_weight: FloatArray | None = None,
    random_state: Any = None,
) -> Kernel:
    """Return a copy of the kernel with all length scales computed from the data.

    Parameters
    ----------
    kernel : kernel
        May be a sum, product or power of kernels.
    X : ndarray of shape (n_samples, n_features)
        Rows from which length scales are computed.
    sample_weight : ndarray of shape (n_samples,), optional
        Sample weights.
    random_state : int, RandomState or None
        Seed for the pairs of rows that are drawn if there are many rows; None is the fixed
        seed 0.

    Returns
    -------
    kernel

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, resolve
    >>> resolve(Gaussian("median"), np.array([[0.0], [1.0], [3.0]]))
    Gaussian(length_scale=2.0)
    """
    return _resolved(clone(kernel), two_dimensional(X), sample_weight, random_state)


def _resolved(
    kernel: Kernel, X: FloatArray, sample_weight: FloatArray | None, random_state: Any
) -> Kernel:
    """Resolve in place, through sums, products, powers and kernels of a part of the row."""
    if isinstance(kernel, ScalarKernel):
        kernel.check_parameters()
        kernel.measure(X, sample_weight)
        X = kernel.seen(X)
    for part in parts_of(kernel):
        _resolved(part, X, sample_weight, random_state)
    if hasattr(kernel, "length_scale"):
        scale = kernel.length_scale
        if is_data_driven(scale):
            rule = NAMED_WIDTHS[scale] if isinstance(scale, str) else scale
            kernel.length_scale = rule.measure(X, sample_weight, random_state)
        else:
            check_length_scale(scale, getattr(kernel, "n_channels", X.shape[1]))
    return kernel
