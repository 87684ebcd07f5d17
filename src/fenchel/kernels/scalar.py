"""Scalar kernels in the protocol of scikit-learn's Gaussian-process kernels."""

from __future__ import annotations

from collections.abc import Callable as Function
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.gaussian_process.kernels import Kernel

from fenchel._typing import FloatArray
from fenchel.kernels.distances import squared_distances, symmetric
from fenchel.kernels.widths import NAMED_WIDTHS, DistanceQuantile


class ScalarKernel(Kernel):
    """Base class: a kernel whose parameters are fixed, not optimized by a marginal likelihood.

    Subclasses define ``_evaluate(X, Y)`` for two-dimensional float arrays. ``+``, ``*`` and
    ``**`` with numbers, with each other and with scikit-learn's own kernels come from there.
    """

    def __call__(self, X: npt.ArrayLike, Y: Any = None, eval_gradient: bool = False) -> FloatArray:
        """Return k(X, Y), (n_X, n_Y); k(X, X) if Y is None."""
        if eval_gradient:
            raise ValueError(
                f"{type(self).__name__} has no gradient in its parameters: "
                "eval_gradient must be False"
            )
        X = two_dimensional(X)
        return self._evaluate(X, X if Y is None else two_dimensional(Y))

    def _evaluate(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        raise NotImplementedError

    def diag(self, X: npt.ArrayLike) -> FloatArray:
        """Return k(x, x) for each row, (n,): 1 for stationary kernels."""
        return np.ones(len(two_dimensional(X)))

    def is_stationary(self) -> bool:
        """Whether k(x, x') depends on x - x' only."""
        return True

    def seen(self, X: FloatArray) -> FloatArray:
        """Rows as length scales are to be measured on: here X itself."""
        return X

    __hash__ = None  # type: ignore[assignment]  # parameters may change

    def __eq__(self, other: object) -> bool:
        """Whether class and parameters are the same."""
        if type(self) is not type(other):
            return False
        mine, theirs = self.get_params(), other.get_params()
        return all(_same(value, theirs[name]) for name, value in mine.items())

    def __repr__(self) -> str:
        """Show the constructor call."""
        arguments = ", ".join(f"{k}={_short(v)}" for k, v in self.get_params().items())
        return f"{type(self).__name__}({arguments})"


class _Radial(ScalarKernel):
    """Kernels of the scaled distance ||(x - x') / length_scale||."""

    def __init__(self, length_scale: Any = "scale") -> None:
        self.length_scale = length_scale

    def _scaled(self, X: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        check_measured(self.length_scale)
        scale = check_length_scale(self.length_scale, X.shape[1])
        scaled = X / scale
        return scaled, scaled if Y is X else Y / scale

    def _evaluate(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        X, Y = self._scaled(X, Y)
        return symmetric(self._of_distances, X) if Y is X else self._of_distances(X, Y)

    def _of_distances(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        return self._of_squares(squared_distances(X, Y))

    def _of_squares(self, squares: FloatArray) -> FloatArray:
        """Turn squared distances into kernel values, in place where possible."""
        raise NotImplementedError


class Gaussian(_Radial):
    r"""Gaussian kernel.

    .. math:: k(x, x') = \exp\left(-\frac{\|x - x'\|^2}{2\, \mathrm{length\_scale}^2}\right)

    Parameters
    ----------
    length_scale : float, array-like of shape (n_features,), str or DistanceQuantile
        Width, in the units of the features. ``"scale"`` (default): for each feature its
        standard deviation times the median distance of standardized rows, sensible whatever
        the units. ``"median"``: the median distance of the rows as they are.
        :class:`DistanceQuantile` for any other quantile. These are read off the data when an
        estimator is fitted.

    Examples
    --------
    >>> from fenchel.kernels import Gaussian
    >>> Gaussian(length_scale=1.0)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353]])
    """

    def _of_squares(self, squares: FloatArray) -> FloatArray:
        squares *= -0.5
        return np.exp(squares, out=squares)


class Laplacian(_Radial):
    r"""Laplacian kernel of the Euclidean distance.

    .. math:: k(x, x') = \exp\left(-\frac{\|x - x'\|_2}{\mathrm{length\_scale}}\right)

    The papers write :math:`\exp(-\rho \|x - x'\|)`: length_scale is 1/ρ.

    Parameters
    ----------
    length_scale : float, array-like of shape (n_features,), str or DistanceQuantile
        As in :class:`Gaussian`.

    Examples
    --------
    >>> from fenchel.kernels import Laplacian
    >>> Laplacian(length_scale=2.0)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.3679]])
    """

    def _of_squares(self, squares: FloatArray) -> FloatArray:
        np.sqrt(squares, out=squares)
        np.negative(squares, out=squares)
        return np.exp(squares, out=squares)


class Matern(_Radial):
    r"""Matérn kernel of smoothness 1/2, 3/2 or 5/2.

    .. math:: k = e^{-d},\quad (1 + \sqrt3 d)\, e^{-\sqrt3 d},\quad
              (1 + \sqrt5 d + \tfrac53 d^2)\, e^{-\sqrt5 d},
              \qquad d = \|x - x'\| / \mathrm{length\_scale}

    Parameters
    ----------
    length_scale : float, array-like of shape (n_features,), str or DistanceQuantile
        As in :class:`Gaussian`.
    nu : {0.5, 1.5, 2.5}
        Smoothness.

    Examples
    --------
    >>> from fenchel.kernels import Matern
    >>> Matern(length_scale=1.0, nu=1.5)([[0.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 0.4834]])
    """

    def __init__(self, length_scale: Any = "scale", nu: float = 1.5) -> None:
        super().__init__(length_scale)
        self.nu = nu

    def _of_squares(self, squares: FloatArray) -> FloatArray:
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {self.nu!r}")
        squares *= 2.0 * self.nu
        distance = np.sqrt(squares)
        if self.nu == 0.5:
            return np.exp(np.negative(distance, out=distance), out=distance)
        if self.nu == 1.5:
            factor = np.add(distance, 1.0, out=squares)
        else:
            factor = np.divide(squares, 3.0, out=squares)
            factor += distance
            factor += 1.0
        np.negative(distance, out=distance)
        factor *= np.exp(distance, out=distance)
        return factor


class Linear(ScalarKernel):
    r"""Linear kernel, the inner product: :math:`k(x, x') = \langle x, x' \rangle`.

    Examples
    --------
    >>> from fenchel.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def __init__(self) -> None:
        pass

    def _evaluate(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        return X @ Y.T

    def diag(self, X: npt.ArrayLike) -> FloatArray:
        """Squared length of each row."""
        X = two_dimensional(X)
        return np.einsum("ij,ij->i", X, X)

    def is_stationary(self) -> bool:
        """Not stationary."""
        return False


class Polynomial(ScalarKernel):
    r"""Polynomial kernel.

    .. math:: k(x, x') = (\mathrm{gain}\, \langle x, x' \rangle
              + \mathrm{offset})^{\mathrm{degree}}

    Parameters
    ----------
    degree : int
        At least 1.
    gain : float
        Positive; 1 / n_features / variance is a sensible choice for centred features.
    offset : float
        At least 0, or the kernel is not positive semi-definite.

    Examples
    --------
    >>> from fenchel.kernels import Polynomial
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    def __init__(self, degree: int = 3, gain: float = 1.0, offset: float = 1.0) -> None:
        self.degree = degree
        self.gain = gain
        self.offset = offset

    def _power(self, products: FloatArray) -> FloatArray:
        """(gain · products + offset) ** degree, in place, by repeated squaring."""
        self._check()
        products *= self.gain
        products += self.offset
        power = products.copy()
        for bit in bin(int(self.degree))[3:]:
            power *= power
            if bit == "1":
                power *= products
        return power

    def _check(self) -> None:
        degree, gain, offset = self.degree, self.gain, self.offset
        if not isinstance(degree, Real) or degree != degree // 1 or not 1 <= degree < np.inf:
            raise ValueError(f"degree must be an integer >= 1, got {degree!r}")
        if not isinstance(gain, Real) or not 0 < gain < np.inf:
            raise ValueError(f"gain must be a finite number > 0, got {gain!r}")
        if not isinstance(offset, Real) or not 0 <= offset < np.inf:
            raise ValueError(f"offset must be a finite number >= 0, got {offset!r}")

    def _evaluate(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        return self._power(X @ Y.T)

    def diag(self, X: npt.ArrayLike) -> FloatArray:
        """k(x, x) of each row."""
        X = two_dimensional(X)
        return self._power(np.einsum("ij,ij->i", X, X))

    def is_stationary(self) -> bool:
        """Not stationary."""
        return False


class Callable(ScalarKernel):
    """Any function as a kernel.

    Parameters
    ----------
    function : callable
        Called with two arrays (n, d) and (m, d), returns the (n, m) array of kernel values.
        It must be symmetric and positive semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Callable
    >>> Callable(lambda X, Y: np.minimum(X, Y.T))([[1.0], [2.0]])
    array([[1., 1.],
           [1., 2.]])
    """

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
        """k(x, x) of each row, from small square blocks."""
        X = two_dimensional(X)
        parts = [np.diag(self(X[i : i + 64])) for i in range(0, len(X), 64)]
        return np.concatenate(parts) if parts else np.empty(0)

    def is_stationary(self) -> bool:
        """Not known to be stationary."""
        return False


class Precomputed(ScalarKernel):
    """Marks that X holds kernel values: the Gram matrix at fit, k(X, X_train) at predict."""

    def __init__(self) -> None:
        pass

    def _evaluate(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        raise ValueError("a precomputed kernel cannot be evaluated: X holds its values already")

    def is_stationary(self) -> bool:
        """Not known to be stationary."""
        return False


def is_data_driven(value: Any) -> bool:
    """Whether a length scale is yet to be read off data."""
    return isinstance(value, DistanceQuantile) or (
        isinstance(value, str) and value in NAMED_WIDTHS
    )


def check_measured(value: Any) -> None:
    """Raise a sentence if a length scale is yet to be read off data."""
    if is_data_driven(value):
        raise ValueError(
            f"length_scale={value!r} is read off data: fit an estimator, or call "
            "fenchel.kernels.resolve(kernel, X) first"
        )


def check_length_scale(value: Any, n_features: int | None = None) -> float | FloatArray:
    """Return a length scale as number or array, or say what is allowed."""
    try:
        if isinstance(value, str):
            raise TypeError("a name, or a number in quotes")
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim > 1 or not np.all(np.isfinite(array)) or not np.all(array > 0.0):
        names = ", ".join(repr(name) for name in NAMED_WIDTHS)
        raise ValueError(
            f"length_scale must be a positive number, an array of them, {names} or a "
            f"DistanceQuantile, got {value!r}"
        )
    if array.ndim == 1 and n_features is not None and len(array) != n_features:
        raise ValueError(
            f"length_scale must have one entry for each of the {n_features} features, "
            f"got {len(array)}"
        )
    return array if array.ndim else float(array)


def two_dimensional(X: npt.ArrayLike) -> FloatArray:
    """Rows as an array of float64, (n_samples, n_features)."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"a kernel takes two-dimensional arrays, got {X.ndim} dimension(s)")
    return X


def _same(first: Any, second: Any) -> bool:
    """Equality of parameters; an array equals only an array of the same length."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return type(first) is type(second) and np.array_equal(first, second)
    return bool(first == second)


def _short(value: Any) -> str:
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    return np.array2string(value, precision=3) if isinstance(value, np.ndarray) else repr(value)
