"""Kernels of distances and of inner products of vectors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import Hyperparameter

from fenchel._typing import FloatArray
from fenchel._validation import COUNT, NOT_NEGATIVE, POSITIVE, That, declared
from fenchel.kernels import exponential
from fenchel.kernels.base import ScalarKernel, two_dimensional
from fenchel.kernels.distances import squared_distances, symmetric, values_of_sums
from fenchel.kernels.measures import Box, Normal
from fenchel.kernels.mixture_integrals import mixture_distance, mixture_products, rough_mixture
from fenchel.kernels.product_integrals import (
    gaussian_products,
    matern_products,
    polynomial_products,
)
from fenchel.kernels.sparse import SparsePoints, over, products
from fenchel.kernels.widths import (
    LEARNED,
    check_bounds,
    check_length_scale,
    check_measured,
    check_scale_or_rule,
    is_data_driven,
)

SMOOTHNESS = (0.5, 1.5, 2.5)
_BLOCK = 256  # rows, of which derivatives are taken at a time


class _Radial(ScalarKernel):
    """Kernels of the scaled distance ||(x - x') / length_scale||."""

    of_whole_rows = True
    constraints = declared(length_scale=check_scale_or_rule, length_scale_bounds=check_bounds)

    def __init__(self, length_scale: Any = LEARNED, length_scale_bounds: Any = None) -> None:
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds

    @property
    def hyperparameter_length_scale(self) -> Hyperparameter:
        """Length scales within bounds, fixed where there are none or no numbers yet."""
        bounds, scale = self.length_scale_bounds, self.length_scale
        if bounds is None or isinstance(bounds, str) or is_data_driven(scale):
            return Hyperparameter("length_scale", "numeric", "fixed")
        return Hyperparameter("length_scale", "numeric", np.array(bounds), np.size(scale))

    def _measured_scale(self, n_features: int | None = None) -> float | FloatArray:
        """The length scale, which is not to be read off data any more."""
        check_measured(self.length_scale)
        return check_length_scale(self.length_scale, n_features)

    def _scaled(self, X: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        if type(self.length_scale) is float and self.length_scale == 1.0:
            return X, Y
        scale = self._measured_scale(X.shape[1])
        scaled = over(X, scale)
        return scaled, scaled if Y is X else over(Y, scale)

    def _evaluate(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        X, Y = self._scaled(X, Y)
        return symmetric(self._of_distances, X) if Y is X else self._of_distances(X, Y)

    def _of_distances(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        return self._of_squares(squared_distances(X, Y))

    def reduced(self, X: FloatArray) -> tuple[FloatArray, ScalarKernel]:
        """Scaled rows, and the kernel of length scale 1."""
        kernel = copy.copy(self)
        kernel.length_scale, kernel.length_scale_bounds = 1.0, None
        return self._scaled(X, X)[0], kernel

    def fill(self, X: FloatArray, Y: FloatArray, out: FloatArray) -> None:
        X, Y = self._scaled(X, Y)
        if isinstance(X, SparsePoints):
            out[...] = self._of_distances(X, Y)
            return
        X, Y = np.asarray(X, out.dtype), np.asarray(Y, out.dtype)
        twice = self._twice_smoothness()
        if twice is None or not values_of_sums(X, Y, out, twice):
            self._of_squares(squared_distances(X, Y, out))

    def _twice_smoothness(self) -> int | None:
        """What ``exponential.shape`` knows the kernel by, if it does."""
        return None

    def _of_squares(self, squares: FloatArray) -> FloatArray:
        """Turn squared distances into kernel values, in place where possible."""
        return exponential.shaped(squares, self._twice_smoothness())

    def gradient(self, X: FloatArray, Z: FloatArray, weights: FloatArray) -> FloatArray | None:
        scaled, centres = self._scaled(X, Z)
        slopes = self._slopes(squared_distances(scaled, centres))
        if slopes is None:
            return None
        slopes *= weights
        pulled = slopes @ centres - slopes.sum(axis=1)[:, None] * scaled
        return np.asarray(pulled / self.length_scale)

    def _slopes(self, squares: FloatArray) -> FloatArray | None:
        """Return ρ with ∇k(x, z) = ρ (z - x) / length_scale², of squared distances that stay."""
        raise NotImplementedError

    def _values_and_slopes(self, squares: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Kernel values, in the place of squared distances, and ρ."""
        slopes = self._slopes(squares)
        return None if slopes is None else (self._of_squares(squares), slopes)

    def parameter_gradient(
        self, X: FloatArray, Z: FloatArray, weights: FloatArray
    ) -> FloatArray | None:
        """In the logarithms of length scales: Σ w ρ(d) (x_j - z_j)² / length_scale_j²."""
        if self.hyperparameter_length_scale.fixed:
            return np.empty(0)
        scaled, centres = self._scaled(X, Z)
        slopes = self._slopes(squared_distances(scaled, centres))
        return None if slopes is None else self._pulled(scaled, centres, slopes * weights)

    def _pulled(self, scaled: FloatArray, centres: FloatArray, slopes: FloatArray) -> FloatArray:
        """Σ slopes (x_j - z_j)² of scaled rows, for each column or for all together.

        Around their middle: far from zero the squares of rows cancel.
        """
        middle = centres.mean(axis=0)
        scaled, centres = scaled - middle, centres - middle
        cross = np.einsum("ij,ij->j", scaled, slopes @ centres)
        squares = slopes.sum(axis=1) @ scaled**2 + slopes.sum(axis=0) @ centres**2
        each = squares - 2.0 * cross
        return each if np.ndim(self.length_scale) else np.array([each.sum()])

    def differentiated(
        self, X: FloatArray
    ) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]] | None:
        if self.hyperparameter_length_scale.fixed:
            return None
        scaled, _ = self._scaled(X, X)
        both = self._values_and_slopes(symmetric(squared_distances, scaled))
        if both is None:
            return None
        values, slopes = both

        def gradient(weights: FloatArray) -> FloatArray:
            blocks = (slice(at, at + _BLOCK) for at in range(0, len(scaled), _BLOCK))
            each = [self._pulled(scaled[b], scaled, slopes[b] * weights[b]) for b in blocks]
            return np.asarray(np.sum(each, axis=0))

        return values, gradient

    def frequencies(
        self, n_features: int, size: int, random: np.random.RandomState
    ) -> FloatArray | None:
        """Draw from the spectral density: Student's t, normal with infinite degrees of freedom."""
        freedom = self._degrees_of_freedom()
        draws = random.standard_normal((n_features, size))
        if freedom < np.inf:
            draws /= np.sqrt(random.chisquare(freedom, size) / freedom)
        return np.asarray(draws / self._widths(n_features)[:, None])

    def _degrees_of_freedom(self) -> float:
        """Of the Student distribution that the spectral density is; inf for the normal one."""
        raise NotImplementedError

    def _widths(self, n_features: int) -> FloatArray:
        """Length scale of each feature."""
        return np.array(np.broadcast_to(self._measured_scale(n_features), n_features))


class Gaussian(_Radial):
    r"""Gaussian kernel.

    .. math:: k(x, x') = \exp\left(-\frac{\|x - x'\|^2}{2\, \mathrm{length\_scale}^2}\right)

    Parameters
    ----------
    length_scale : float, array-like of shape (n_features,), str or DistanceQuantile
        Length scale, in the units of the features. ``"learned"`` (default): one for each
        feature, learned by estimators, see :class:`fenchel.learning.Learning`; where nothing is
        learned, as ``"scale"``. ``"scale"``: for each feature, its standard deviation times the
        median distance of standardized rows, for features of any units. ``"shared"``: as
        ``"learned"``, with one learned factor for all features, for example for points of a
        curve. ``"shared_range"``: the same with ranges of features in the place of standard
        deviations, for example for words, most of which are rare. ``"median"``: the median
        distance of the rows, not standardized. :class:`DistanceQuantile`: another quantile. All
        are computed from the data in ``fit``.
    length_scale_bounds : pair of floats, array-like of shape (n_features, 2), "fixed" or None
        Bounds within which numerical length scales are learned, from the given values. With
        "fixed" or None (default) they keep the given values.

    Examples
    --------
    >>> from fenchel.kernels import Gaussian
    >>> Gaussian(length_scale=1.0)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353]])
    """

    tail = 6.5  # exp(-6.5² / 2) = 7e-10

    def _twice_smoothness(self) -> int:
        return exponential.GAUSSIAN

    def _slopes(self, squares: FloatArray) -> FloatArray:
        return exponential.gaussian(squares.copy())

    def _values_and_slopes(self, squares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """They are the same."""
        values = self._of_squares(squares)
        return values, values.copy()

    def _degrees_of_freedom(self) -> float:
        return np.inf

    def log_values(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """Return minus half the squared distances, (n, m), in units of the length scales."""
        return np.asarray(-0.5 * squared_distances(*self._scaled(X, Z)))

    def product_integrals(self, Z: FloatArray, measure: Box | Normal) -> FloatArray:
        """Integrals of products over any box and against any normal density."""
        return gaussian_products(Z, self._widths(Z.shape[1]), measure)

    def factor(self, columns: Sequence[int]) -> Gaussian:
        """Return the Gaussian kernel of some columns."""
        scale = self._measured_scale()
        return Gaussian(scale[list(columns)] if isinstance(scale, np.ndarray) else scale)


class Matern(_Radial):
    r"""Matérn kernel of smoothness 1/2, 3/2 or 5/2.

    .. math:: k = e^{-d},\quad (1 + \sqrt3 d)\, e^{-\sqrt3 d},\quad
              (1 + \sqrt5 d + \tfrac53 d^2)\, e^{-\sqrt5 d},
              \qquad d = \|x - x'\| / \mathrm{length\_scale}

    Parameters
    ----------
    length_scale, length_scale_bounds
        As in :class:`Gaussian`.
    nu : {0.5, 1.5, 2.5}
        Smoothness.

    Examples
    --------
    >>> from fenchel.kernels import Matern
    >>> Matern(length_scale=1.0, nu=1.5)([[0.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 0.4834]])
    """

    constraints = declared(
        nu=That(
            "0.5, 1.5 or 2.5", lambda nu: isinstance(nu, Real) and nu in SMOOTHNESS, ValueError
        )
    )

    def __init__(
        self, length_scale: Any = LEARNED, nu: float = 1.5, length_scale_bounds: Any = None
    ) -> None:
        super().__init__(length_scale, length_scale_bounds)
        self.nu = nu

    def _twice_smoothness(self) -> int | None:
        if type(self.nu) is not float or self.nu not in SMOOTHNESS:
            self.check_parameters()
        return round(2 * float(self.nu))

    def _slopes(self, squares: FloatArray) -> FloatArray | None:
        if self.nu not in SMOOTHNESS:
            return None
        squares = 2.0 * self.nu * squares
        root = np.sqrt(squares)
        slopes = exponential.matern(squares, 0.5)
        if self.nu == 0.5:  # at z itself there is a kink, and 0 is the mean slope
            return np.divide(slopes, root, out=np.zeros_like(slopes), where=root > 0.0)
        if self.nu == 1.5:
            slopes *= 3.0
            return slopes
        slopes *= 5.0 / 3.0 * (1.0 + root)
        return slopes

    def _values_and_slopes(self, squares: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """With one exponential for both, where ν is the default."""
        if self.nu != 1.5:
            return super()._values_and_slopes(squares)
        return exponential.matern32_with_slopes(squares)

    def _degrees_of_freedom(self) -> float:
        return 2.0 * float(self.nu)

    def product_integrals(self, Z: FloatArray, measure: Box | Normal) -> FloatArray:
        """Integrals of products over any box and against any normal density.

        They are in closed form over R^d, over intervals, and for nu = 1/2 against
        one-dimensional normal densities. Otherwise the kernel is approximated by a sum of
        Gaussian kernels; :meth:`product_distance` bounds the error.
        """
        scale, nu = self._widths(Z.shape[1]), float(self.nu)
        exact = matern_products(Z, scale, nu, measure)
        return mixture_products(Z, scale, nu, measure) if exact is None else exact

    def mixture(self, dimension: int) -> tuple[FloatArray, FloatArray]:
        return rough_mixture(float(self.nu), dimension)

    def product_distance(self, measure: Box | Normal) -> float:
        scale, nu = self._widths(measure.dimension), float(self.nu)
        exact = matern_products(np.zeros((1, len(scale))), scale, nu, measure)
        return mixture_distance(nu, scale, measure) if exact is None else 0.0


class AnyMatern(Matern):
    r"""Matérn kernel of any smoothness ν, as in scikit-learn.

    .. math:: k = \frac{2^{1 - \nu}}{\Gamma(\nu)} r^\nu K_\nu(r), \qquad
              r = \sqrt{2 \nu}\, \|x - x'\| / \mathrm{length\_scale}
    """

    constraints = declared(nu=POSITIVE)

    def _twice_smoothness(self) -> None:
        return None

    def _of_squares(self, squares: FloatArray) -> FloatArray:
        root = np.sqrt(2.0 * self.nu * squares)
        here = root == 0.0
        root[here] = 1.0  # K is infinite at zero, where the kernel is 1
        values = 2.0 ** (1.0 - self.nu) / gamma(self.nu) * root**self.nu * kv(self.nu, root)
        squares[...] = np.where(here, 1.0, values)
        return squares


class Laplacian(Matern):
    r"""Laplacian kernel of the Euclidean distance.

    .. math:: k(x, x') = \exp\left(-\frac{\|x - x'\|_2}{\mathrm{length\_scale}}\right)

    The papers write :math:`\exp(-\rho \|x - x'\|)`, where ρ is 1/length_scale. This is the
    Matérn kernel of smoothness 1/2.

    Parameters
    ----------
    length_scale, length_scale_bounds
        As in :class:`Gaussian`.

    Examples
    --------
    >>> from fenchel.kernels import Laplacian
    >>> Laplacian(length_scale=2.0)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.3679]])
    """

    nu = 0.5

    def __init__(self, length_scale: Any = LEARNED, length_scale_bounds: Any = None) -> None:
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds


class _OfProducts(ScalarKernel):
    """Kernels of the inner product of two rows."""

    _stationary = False
    of_whole_rows = True

    def _of_products(self, products: FloatArray) -> FloatArray:
        """Turn inner products into kernel values, in place where possible."""
        return products

    def _evaluate(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        return self._of_products(products(X, Y))

    def fill(self, X: FloatArray, Y: FloatArray, out: FloatArray) -> None:
        sparse = isinstance(X, SparsePoints)
        values = self._of_products(products(X, Y) if sparse else np.matmul(X, Y.T, out=out))
        if values is not out:
            out[...] = values

    def diag(self, X: npt.ArrayLike) -> FloatArray:
        """k(x, x) of each row."""
        X = two_dimensional(X)
        if isinstance(X, SparsePoints):
            return self._of_products(X.squares.copy())
        return self._of_products(np.einsum("ij,ij->i", X, X))


class Linear(_OfProducts):
    r"""Linear kernel, the inner product :math:`k(x, x') = \langle x, x' \rangle`.

    Examples
    --------
    >>> from fenchel.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def __init__(self) -> None:
        pass

    def product_integrals(self, Z: FloatArray, measure: Box | Normal) -> FloatArray | None:
        """Integrals of products over bounded boxes and against normal densities."""
        return polynomial_products(Z, 1, 1.0, 0.0, measure)

    def gradient(self, X: FloatArray, Z: FloatArray, weights: FloatArray) -> FloatArray:
        return weights @ Z


class Polynomial(_OfProducts):
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
        At least 0; the kernel is not positive semi-definite otherwise.

    Examples
    --------
    >>> from fenchel.kernels import Polynomial
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    constraints = declared(degree=COUNT, gain=POSITIVE, offset=NOT_NEGATIVE)

    def __init__(self, degree: int = 3, gain: float = 1.0, offset: float = 1.0) -> None:
        self.degree = degree
        self.gain = gain
        self.offset = offset

    def _of_products(self, products: FloatArray) -> FloatArray:
        """(gain · products + offset) ** degree, by repeated squaring."""
        self.check_parameters()
        products *= self.gain
        products += self.offset
        power = products.copy()
        for bit in bin(int(self.degree))[3:]:
            power *= power
            if bit == "1":
                power *= products
        return power

    def product_integrals(self, Z: FloatArray, measure: Box | Normal) -> FloatArray | None:
        """Integrals of products over bounded boxes and against normal densities."""
        self.check_parameters()
        parameters = int(self.degree), float(self.gain), float(self.offset)
        return polynomial_products(Z, *parameters, measure)

    def gradient(self, X: FloatArray, Z: FloatArray, weights: FloatArray) -> FloatArray:
        self.check_parameters()
        slopes = weights * (self.gain * X @ Z.T + self.offset) ** (self.degree - 1)
        return np.asarray(self.degree * self.gain * slopes @ Z)
