"""The base class of feature maps."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar, Self, cast
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from fenchel._bases import BaseEstimator, TransformerMixin
from fenchel._threads import in_threads, threads_that_pay
from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import CheckedParameters, declared, rows_of
from fenchel.design import Design, Plain, RowBlocks
from fenchel.features.gram import Gram, forms_of
from fenchel.kernels import (
    Box,
    KernelFunctions,
    Normal,
    Precomputed,
    SparsePoints,
    as_kernel,
    as_scalar_kernel,
    for_threads,
    resolve,
)

_FAR = 1 - 1e-4  # of the mean square: deviations of 1 % of the mean
_CHUNK_VALUES = 2**22  # 32 MiB of kernel values at a time
_TASK_VALUES = 2**19  # of a thread at a time
_LEAST_ROWS = 64
_MANY = 256  # features, from which on solving for them is what predictions cost
_SOUND = 1e-10 / np.finfo(float).eps  # features lose as many digits: within 2 times up to here


_prepared: WeakKeyDictionary[FeatureMap, KernelFunctions] = WeakKeyDictionary()


class FeatureMap(CheckedParameters, TransformerMixin, BaseEstimator):
    r"""Finite-rank feature map φ with :math:`k(x, x') \approx \varphi(x)^\top \varphi(x')`.

    This is a scikit-learn transformer. Subclasses define ``_fit(X)``, which returns the features
    of the training rows and sets the attributes that ``_map(X)`` reads, and ``_map`` itself.

    Attributes
    ----------
    rank_ : int
        Number of features r.
    kernel_ : kernel
        The kernel with numerical length scales.
    kernel_error_ : float
        trace(K - ΦΦᵀ) / trace(K) on the training rows, unless the subclass documents another
        error.
    n_features_in_ : int
        Number of columns of X.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import FeatureMap, PivotedCholesky
    >>> from fenchel.kernels import Gaussian
    >>> feature_map: FeatureMap = PivotedCholesky(Gaussian(1.0), rank=3)
    >>> feature_map.fit_transform(np.linspace(0, 1, 10)[:, None]).shape
    (10, 3)
    >>> feature_map.kernel_error_ < 0.01
    True
    """

    constraints = declared(kernel=as_kernel)

    kernel: Any
    random_state: Any
    rank_: int
    kernel_: Kernel
    kernel_error_: float
    landmarks_: AnyArray
    nested: ClassVar[bool] = False
    """Whether the first features are those of a map of lower rank."""
    in_space: ClassVar[bool] = False
    """Whether features are functions in the space of the kernel, and norms the same there.

    Certificates are then of the kernel as given, by :meth:`residual`.
    """
    reads_kernel: ClassVar[bool] = True
    """Whether features are made of a kernel, and not known without one."""
    needs_frequencies: ClassVar[bool] = False
    """Whether the kernel must have ``frequencies``."""

    def _fit(self, X: FloatArray) -> FloatArray:
        raise NotImplementedError(f"{type(self).__name__} must define _fit")

    def _map(self, X: FloatArray) -> FloatArray:
        raise NotImplementedError(f"{type(self).__name__} must define _map")

    def fit(self, X: AnyArray, y: Any = None) -> Self:
        """Fit the feature map to the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, or the Gram matrix if ``kernel="precomputed"``.
        y : None
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are invalid; the message names it.
        """
        self.fit_transform(X)
        return self

    def to_arrays(self) -> Self:
        """Return arrays, whatever ``set_config(transform_output=)`` of scikit-learn is."""
        return self.set_output(transform="default")

    def fit_transform(self, X: AnyArray, y: Any = None) -> FloatArray:
        """Fit the map and return the features of the training rows, (n_samples, rank_)."""
        self.check_parameters()
        X = self._rows(X, reset=True)
        self.kernel_ = self._resolved_kernel(X)
        if isinstance(self.kernel_, Precomputed):
            check_gram(X)
        with threads_that_pay(0):  # passes have threads of their own: the same bits for any number
            features = self._fit(X)
        self.rank_ = features.shape[-1]
        return features

    def _rows(self, X: Any, *, reset: bool) -> FloatArray:
        """Rows, validated; sparse ones are so already."""
        if not isinstance(X, SparsePoints):
            return np.asarray(rows_of(self, X, reset=reset))
        self.n_features_in_ = X.shape[1]
        return cast(FloatArray, X)

    def _resolved_kernel(self, X: FloatArray) -> Kernel:
        return resolve(as_kernel(self.kernel), X, random_state=self.random_state)

    def transform(self, X: AnyArray) -> FloatArray:
        """Return the features of new rows, (n_samples, rank_), computed in chunks."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        with threads_that_pay(0):
            return in_chunks(self._map, rows, self._values_per_row(), for_threads(self.kernel_))

    def combination(self, X: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the function values φ(X) @ weights, (n, p), for validated rows (n, d).

        Computed in several threads. The result does not depend on their number.
        """
        coefficients = self.sound_coefficients(weights)
        if coefficients is not None:
            return self._functions().combined(X, coefficients)
        size = max(_LEAST_ROWS, _TASK_VALUES // max(1, self._values_per_row()))
        starts = range(0, max(1, len(X)), size)

        def values(start: int) -> FloatArray:
            return np.asarray(np.dot(self._map(X[start : start + size]), weights))

        with threads_that_pay(0):
            several = for_threads(self.kernel_)
            parts = in_threads(values, starts) if several else [values(i) for i in starts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def sound_coefficients(self, weights: FloatArray) -> FloatArray | None:
        """Return :meth:`coefficients` if they are as accurate as features and faster, else None.

        Their rounding errors are at most 1e-10 times the values at the landmarks.
        """
        given = isinstance(self.kernel_, Precomputed)
        values = None if given or self.rank_ < _MANY else self._at_landmarks(weights)
        if values is None:
            return None
        coefficients = self.coefficients(weights)
        largest = float(np.abs(self.kernel_.diag(self.landmarks_)).max())
        sizes = largest * np.abs(coefficients).sum(axis=0)
        return coefficients if np.all(sizes <= _SOUND * np.abs(values).max(axis=0)) else None

    def _at_landmarks(self, weights: FloatArray) -> FloatArray | None:
        """Values of functions at the landmarks, None if features are no functions of these."""
        return None

    def _functions(self) -> KernelFunctions:
        """The kernel at the landmarks, prepared once for all predictions."""
        found = _prepared.get(self)
        kernel, landmarks = self.kernel_, self.landmarks_
        if found is None or found.kernel is not kernel or found.rows is not landmarks:
            found = _prepared[self] = KernelFunctions(kernel, landmarks)
        return found

    def _values_per_row(self) -> int:
        return self.rank_

    def _set_kernel_error(self, diagonal: FloatArray, left: FloatArray) -> None:
        """From the diagonal of the kernel on the training rows, and what is left of it."""
        trace = float(diagonal.sum())
        self.kernel_error_ = float(np.maximum(left, 0.0).sum()) / trace if trace > 0.0 else 0.0

    def residual(self, X: FloatArray, features: FloatArray) -> FloatArray:
        r"""Return the diagonal of :math:`E = K - \Phi\Phi^\top`; rounding errors are set to zero.

        It is needed only if the map is ``in_space``. This default returns zeros.
        """
        return np.zeros(features.shape[:-1])

    def wider(
        self, X: FloatArray, features: FloatArray, share: float
    ) -> tuple[Self, FloatArray] | None:
        """Return a map with more features, and the features of the rows by this map.

        The new features begin with ``features``. They are added until the residual has fallen to
        ``share`` times its largest entry. Returns None if no features can be added.
        """
        return None

    def forms(self, X: FloatArray, push: FloatArray) -> FloatArray:
        """Return the quadratic forms pushᵀ K push of the exact kernel, (q, q), for push (n, q)."""
        return forms_of(self._gram(X), push)

    def _gram(self, X: FloatArray) -> Gram:
        return Gram(self.kernel_, X, isinstance(self.kernel_, Precomputed))

    def design(self, features: FloatArray, coupling: FloatArray) -> Design:
        """Return the design for these features, for outputs coupled by S."""
        return Plain(features, coupling)

    def centre(self, features: FloatArray, weight: FloatArray) -> FloatArray | None:
        """Return the centre to subtract from the features in fits with an intercept, or None.

        The centre is the mean, for features whose mean is large relative to their deviations.
        With an intercept, centring does not change the set of functions. It improves precision.
        """
        return far_mean(*moments(features, weight / weight.sum()))

    def limited(self, seconds: float, n_rows: int) -> Self:
        """Return a map that fits within a part of ``seconds``; this default returns the map."""
        return self

    def restricted(self, features: FloatArray, rows: IntArray) -> tuple[Self, FloatArray]:
        """Return the map and the features restricted to some of the training rows."""
        return copy.copy(self), features[rows]

    def coefficients(self, weights: FloatArray) -> FloatArray:
        r"""Return coefficients A on the landmarks Z with :math:`\varphi(x)^\top V = k(x, Z) A`.

        V (rank_, n_outputs) are weights of the features. Raises NotImplementedError if the
        features are not linear combinations of kernel values at landmarks.
        """
        raise NotImplementedError(
            f"the features of {type(self).__name__} are not combinations of kernel values at "
            "landmarks: predict with transform(X) @ weights"
        )

    def from_kernel_values(self, values: FloatArray) -> FloatArray:
        """Return features (n, rank_) from kernel values (n, m) at the landmarks.

        This is the transpose of :meth:`coefficients` and raises the same error.
        """
        return values @ self.coefficients(np.eye(self.rank_))

    def _known_landmarks(self) -> AnyArray | None:
        """``landmarks_``, if :meth:`coefficients` are those of kernel values there; else None."""
        own = type(self).coefficients is not FeatureMap.coefficients
        return getattr(self, "landmarks_", None) if own else None

    def product_integrals(self, measure: Box | Normal) -> FloatArray | None:
        r"""Integrals :math:`\int \varphi \varphi^\top d\mu`, or None if no closed form is known.

        Returns a (rank_, rank_) array. This default computes it from ``product_integrals`` of the
        kernel at the landmarks ``landmarks_``.
        """
        landmarks = self._known_landmarks()
        if landmarks is None:
            return None
        inner = as_scalar_kernel(self.kernel_).product_integrals(landmarks, measure)
        if inner is None:
            return None
        whole = self.from_kernel_values(self.from_kernel_values(inner).T)
        return np.asarray(0.5 * (whole + whole.T))

    def gradient(self, X: FloatArray, weights: FloatArray) -> FloatArray | None:
        r"""Gradients of linear combinations of features, or None if not available.

        .. math:: G_i = \sum_j w_{ij} \nabla \varphi_j(x_i)

        Returns an (n, n_features) array for X (n, n_features) and weights (n, rank_). This
        default uses ``gradient`` of the kernel at the landmarks ``landmarks_``.
        """
        landmarks = self._known_landmarks()
        if landmarks is None:
            return None
        kernel = as_scalar_kernel(self.kernel_)
        return kernel.gradient(X, landmarks, self.coefficients(weights.T).T)

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )
        return tags

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return the names of the features, for ``set_output``."""
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{i}" for i in range(self.rank_)], dtype=object)


def moments(features: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return weighted sums of the features and of their squares, for row weights (n,)."""

    def task(rows: slice) -> tuple[FloatArray, FloatArray]:
        mine, part = features[rows], share[rows]
        square = np.einsum("i,i...,i...->...", part, mine, mine)
        return np.tensordot(part, mine, axes=1), square

    mean, square = RowBlocks(len(features), int(np.prod(features.shape[1:]))).sum(task)
    return mean, square


def far_mean(mean: FloatArray, square: FloatArray) -> FloatArray | None:
    """Means of features whose mean is large, zero for the others; None if no mean is large.

    See :meth:`FeatureMap.centre`.
    """
    far = np.abs(mean) > np.sqrt(_FAR * square)
    return np.where(far, mean, 0.0) if far.any() else None


def in_chunks(
    function: Callable[[FloatArray], FloatArray], X: FloatArray, width: int, threads: bool = False
) -> FloatArray:
    """Apply a row-wise function, of ``width`` values a row, to chunks of rows."""
    size = max(1, _CHUNK_VALUES // max(1, width))
    if len(X) <= size:
        return function(X)
    first = function(X[:size])
    features = np.empty((len(X), *first.shape[1:]))
    features[:size] = first

    def run(start: int) -> None:
        features[start : start + size] = function(X[start : start + size])

    starts = range(size, len(X), size)
    if threads:
        in_threads(run, starts)
    else:
        for start in starts:
            run(start)
    return features


def check_square(K: FloatArray) -> None:
    """Raise ValueError unless the matrix is square."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"with kernel='precomputed', X must be a square Gram matrix, got shape {K.shape}"
        )


def check_gram(K: FloatArray) -> None:
    """Raise ValueError if a matrix is not a valid Gram matrix."""
    check_square(K)
    largest = max(float(K.max()), -float(K.min()))
    size = max(1, _CHUNK_VALUES // len(K))
    chunks = (slice(i, i + size) for i in range(0, len(K), size))
    if any(np.abs(K[rows] - K[:, rows].T).max() > 1e-8 * largest for rows in chunks):
        raise ValueError(
            "with kernel='precomputed', X must be symmetric, got a matrix that differs from its "
            "transpose"
        )
