"""Non-negative models φ(x)ᵀ A φ(x) with A positive semi-definite."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from fenchel._threads import threads_that_pay
from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.features import FeatureMap
from fenchel.kernels import as_box, as_measure, as_scalar_kernel
from fenchel.positive._differences import gradient_by_differences
from fenchel.positive._forms import product_form, root_of
from fenchel.positive._row_sums import quadratic_forms
from fenchel.positive._sampling import sample_by_conditionals
from fenchel.positive.integrals import moment, on_support

_NO_RANK = 1e-9
_SMALL = 1e-280  # squares of kernel values below it are no normal numbers
_NEGATIVE = 1e-10


class Integral(NamedTuple):
    """Value of an integral with a bound on its error."""

    value: float
    error: float
    """Bound on the error, from rounding and from quadrature if there is no closed form."""


class PSDModel:
    r"""A non-negative function, given by a positive semi-definite matrix (PSD model).

    .. math:: f(x) = \varphi(x)^\top A \varphi(x) = \|F^\top \varphi(x)\|^2, \qquad
              A = F F^\top \succeq 0

    f is linear in A, so sums and non-negative multiples of such functions are again PSD models.
    Integrals and marginals have closed forms for the usual kernels.

    Parameters
    ----------
    feature_map : FeatureMap
        The fitted feature map φ.
    factor : array-like of shape (rank of the map, q)
        The factor F of A; :meth:`from_matrix` takes A itself.
    support : None, (low, high) or Box
        Box outside of which f is zero; all of R^d by default.

    Attributes
    ----------
    feature_map_ : FeatureMap
        The feature map φ.
    factor_ : ndarray of shape (r, q)
        The factor F.
    rank_ : int
        Number of eigenvalues of A above 1e-9 times the largest.
    support_ : Box
        Box outside of which f is zero.
    n_features_in_ : int
        Dimension of x.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import PivotedCholesky
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.positive import PSDModel
    >>> features = PivotedCholesky(Gaussian(1.0)).fit(np.array([[0.0]]))
    >>> bump = PSDModel(features, [[1.0]])  # exp(-x²)
    >>> bump([[0.0], [1.0]]).round(4)
    array([1.    , 0.3679])
    >>> round(bump.integral(), 4)
    1.7725

    References
    ----------
    Marteau-Ferey, Bach, Rudi (2020), (4) and Proposition 1.
    """

    def __init__(
        self, feature_map: FeatureMap, factor: npt.ArrayLike, support: Any = None
    ) -> None:
        self.feature_map_ = feature_map
        self.factor_ = np.asarray(factor, dtype=np.float64)
        if self.factor_.ndim != 2 or len(self.factor_) != feature_map.rank_:
            raise ValueError(
                f"factor must have shape ({feature_map.rank_}, q), got {self.factor_.shape}"
            )
        self.n_features_in_ = int(feature_map.n_features_in_)
        self.support_ = as_box(support, self.n_features_in_, "support")

    @classmethod
    def from_matrix(
        cls, feature_map: FeatureMap, matrix: npt.ArrayLike, support: Any = None
    ) -> Self:
        """Return the model of a symmetric positive semi-definite matrix A, (r, r)."""
        matrix = np.asarray(matrix, dtype=np.float64)
        r = feature_map.rank_
        if matrix.shape != (r, r):
            raise ValueError(f"matrix must have shape ({r}, {r}), got {matrix.shape}")
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        if values[0] < -_NEGATIVE * float(np.abs(values).max()):
            raise ValueError(
                "matrix must be positive semi-definite, got one with the eigenvalue "
                f"{values[0]:.3g}"
            )
        kept = values > 0.0
        return cls(feature_map, vectors[:, kept] * np.sqrt(values[kept]), support)

    @property
    def matrix_(self) -> FloatArray:
        """The matrix A, (r, r)."""
        return self.factor_ @ self.factor_.T

    @property
    def rank_(self) -> int:
        """Number of eigenvalues of A above 1e-9 times the largest."""
        if not self.factor_.size:
            return 0
        sizes = np.linalg.svd(self.factor_, compute_uv=False) ** 2
        return int(np.count_nonzero(sizes > _NO_RANK * sizes[0]))

    def __call__(self, X: npt.ArrayLike) -> FloatArray:
        """Values f(x) >= 0 of rows X (n, d), (n,)."""
        X = np.asarray(X)
        with threads_that_pay(len(self.factor_)):
            values = quadratic_forms(self.feature_map_.transform(X), self.factor_)
        return np.where(self.support_.contains(X), values, 0.0)

    def log_values(self, X: npt.ArrayLike) -> FloatArray:
        """Return log f at rows X, (n,); -inf where f is zero.

        With a Gaussian kernel the logarithm is also finite far from all landmarks, where f
        underflows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Values of log f.
        """
        X = np.asarray(X, dtype=np.float64)
        values = self(X)
        found = np.log(values, out=np.full(len(values), -np.inf), where=values > 0.0)
        far = np.flatnonzero((values < _SMALL) & self.support_.contains(X))
        if len(far):
            found[far] = self._far_out(X[far], found[far])
        return found

    def _far_out(self, X: FloatArray, instead: FloatArray) -> FloatArray:
        """Logarithms by kernel values over the largest of each row, where these are known."""
        landmarks = getattr(self.feature_map_, "landmarks_", None)
        kernel = as_scalar_kernel(self.feature_map_.kernel_)
        logs = None if landmarks is None else kernel.log_values(X, landmarks)
        if logs is None:
            return instead
        largest = logs.max(axis=1, keepdims=True)
        known = np.isfinite(largest[:, 0])
        over = np.exp(logs[known] - largest[known])
        values = quadratic_forms(self.feature_map_.from_kernel_values(over), self.factor_)
        with np.errstate(divide="ignore"):
            instead[known] = np.log(values) + 2.0 * largest[known, 0]
        return instead

    def gradient(self, X: npt.ArrayLike) -> FloatArray:
        """Return the gradient of f at rows X, (n, d).

        It has a closed form for the Gaussian, Laplacian, Matérn, polynomial and linear kernels,
        and for kernels and feature maps with their own ``gradient``. Others use central
        differences with extrapolation, row by row, from a step in which features change little.
        Where f is smooth, these are accurate to about eight digits of the largest gradient within
        a step.
        """
        X = np.asarray(X, dtype=np.float64)
        weights = 2.0 * (self.feature_map_.transform(X) @ self.factor_) @ self.factor_.T
        gradient = self.feature_map_.gradient(X, weights)
        if gradient is None:
            gradient = gradient_by_differences(self.feature_map_.transform, self.factor_, X)
        return np.where(self.support_.contains(X)[:, None], gradient, 0.0)

    def integral(self, domain: Any = None) -> float:
        """Return ∫ f over all of R^d or a box ``(low, high)``, or against Normal or Points.

        See :func:`fenchel.positive.moment` for the method and :meth:`integral_with_error` for an
        error bound.

        Parameters
        ----------
        domain : None, (low, high), Box, Normal or Points
            Domain or measure of the integral; all of R^d by default. It is restricted to the
            support.

        Returns
        -------
        float
            The integral.
        """
        return self.integral_with_error(domain).value

    def integral_with_error(self, domain: Any = None) -> Integral:
        """Return the integral with a bound on its error.

        Parameters
        ----------
        domain : None, (low, high), Box, Normal or Points
            Domain or measure of the integral; all of R^d by default. It is restricted to the
            support.

        Returns
        -------
        Integral
            ``value`` and ``error``.
        """
        measure = on_support(as_measure(domain, self.n_features_in_), self.support_, "domain")
        if measure is None:
            return Integral(0.0, 0.0)
        found = moment(self.feature_map_, measure)
        value = float(np.vdot(self.factor_, found.matrix @ self.factor_))
        return Integral(value, found.error_of(self.factor_))

    def marginal(self, coordinates: Any, domain: Any = None) -> PSDModel:
        r"""Integrate f over all other coordinates, in closed form.

        .. math:: \int f(x)\, dx_{\text{others}}
                  = \sum_{ab} B_{ab} I_{ab}\, k(u, z_a) k(u, z_b)

        with B the matrix in terms of the landmarks and I the integrals of products of kernels over
        the other coordinates. The result is again a PSD model, because Schur products of positive
        semi-definite matrices are positive semi-definite. A Matérn kernel is approximated by a sum
        of Gaussian kernels, to four digits.

        Parameters
        ----------
        coordinates : int or sequence of int
            Coordinates to keep, in this order.
        domain : None, (low, high) or Box
            Box to integrate over; the support by default.

        Raises
        ------
        ValueError
            If the kernel is neither a product over coordinates nor a Matérn kernel, or if a Matérn
            kernel has too many landmarks.
        """
        given = np.atleast_1d(np.asarray(coordinates))
        d, whole = self.n_features_in_, given.ndim == 1 and given.dtype.kind in "iu"
        kept: list[int] = given.tolist() if whole else []
        if not kept or len(set(kept)) < len(kept) or not all(0 <= j < d for j in kept):
            raise ValueError(
                f"coordinates must be distinct integers from 0 to {d - 1}, "
                f"got {shown(coordinates)}"
            )
        others = [j for j in range(d) if j not in kept]
        form = product_form(self.feature_map_, self.factor_, "a marginal")
        measure = self.support_.intersection(as_box(domain, d))
        inner = form.coefficients @ form.coefficients.T
        if measure is None:
            inner = 0.0 * inner
        elif others:
            inner = inner * form.integrals(others, measure)
        low, high = self.support_.bounds
        return PSDModel(form.features(kept), root_of(inner), (low[kept], high[kept]))

    def sample(
        self, n_samples: int = 1, random_state: Any = None, domain: Any = None
    ) -> FloatArray:
        """Draw samples from the density f / ∫ f, (n_samples, d).

        Coordinates are drawn one after the other, each given the previous ones. The conditional
        densities are exact. Their distribution functions are integrals of polynomials of degree 8
        on panels of at most a length scale, and are inverted to 1e-6. Panels are placed around
        landmarks, so distances between landmarks do not matter. If a kernel does not decay, or its
        length scale is not known, panels divide the domain into equal parts. In more than one
        dimension Matérn kernels are expanded in Gaussian kernels, to four digits. In two
        dimensions any kernel is supported, because the density of the first coordinate is a sum
        over panels.

        Parameters
        ----------
        n_samples : int
            Number of samples.
        random_state : int, RandomState or None
            Seed of the random numbers.
        domain : None, (low, high) or Box
            Domain to sample from; the support by default.

        Raises
        ------
        ValueError
            In more than two dimensions under the conditions of :meth:`marginal`; in one and two
            dimensions if neither the domain nor the kernel bounds the range.
        """
        part = self.support_.intersection(as_box(domain, self.n_features_in_))
        if part is None:
            raise ValueError(
                f"domain must meet the support {self.support_!r}, got {shown(domain)}"
            )
        return sample_by_conditionals(
            self, self.feature_map_, self.factor_, n_samples, random_state, part
        )

    def __add__(self, other: object) -> PSDModel:
        if not isinstance(other, PSDModel):
            return NotImplemented
        if other.feature_map_ is not self.feature_map_:
            raise ValueError(
                "models to be added must share their feature map, got two different ones"
            )
        if not np.array_equal(self.support_.bounds, other.support_.bounds):
            raise ValueError("models to be added must share their support, got two different ones")
        factor = np.concatenate([self.factor_, other.factor_], axis=1)
        return PSDModel(self.feature_map_, factor, self.support_)

    def __mul__(self, number: object) -> PSDModel:
        if isinstance(number, (bool, np.bool_)) or not isinstance(number, Real):
            return NotImplemented
        if not 0.0 <= float(number) < np.inf:
            raise ValueError(
                f"a model can be multiplied by a finite number >= 0, got {shown(number)}"
            )
        return PSDModel(self.feature_map_, np.sqrt(float(number)) * self.factor_, self.support_)

    __rmul__ = __mul__
