"""Nyström approximation, with landmarks that are given, sampled, or cluster centres."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas, cholesky, eigh, lapack, solve_triangular
from sklearn.utils.validation import check_is_fitted

from fenchel._parameters import parameters
from fenchel._typing import AnyArray, FloatArray
from fenchel._validation import COUNT, NONE, NUMBERS, OneOf, declared, random_of, shown
from fenchel.features.base import FeatureMap, in_chunks
from fenchel.features.gram import not_positive, residual_diagonal
from fenchel.kernels import Precomputed, for_threads

CENTRES = "kmeans"
"""The name of landmarks that are centres of clusters."""
_CUT = 1e-12
_CERTAIN = 1e-10  # smallest share of an eigenvalue with which a matrix has a Cholesky factor


@parameters
class Nystroem(FeatureMap):
    r"""Nyström approximation of a kernel on landmarks Z.

    .. math:: \varphi(x) = W^\top k(Z, x), \qquad W W^\top = k(Z, Z)^{-1}

    W is the inverse of the transposed Cholesky factor of k(Z, Z). If k(Z, Z) is nearly singular, W
    is computed from its eigenvectors, and eigenvalues below 1e-12 times the largest are dropped.

    Parameters
    ----------
    kernel : None, str, kernel or callable
        See :func:`fenchel.kernels.as_kernel`.
    rank : int
        Number of landmarks, unless ``landmarks`` is an array.
    landmarks : None, "kmeans" or array-like of shape (n_landmarks, n_features)
        None: rows sampled without replacement. "kmeans": centres of clusters of the distinct
        rows, by scikit-learn's ``KMeans``, with columns divided by the length scales of the
        kernel, or by their standard deviations if it has none for the columns. An array: the
        landmarks, or their row indices (n_landmarks,) with a precomputed kernel.
    random_state : int, RandomState or None
        Seed of the sample; None is the fixed seed 0.

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_landmarks, n_features)
        The landmarks (row indices with a precomputed kernel).
    rank_, kernel_, kernel_error_, n_features_in_
        See :class:`FeatureMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import Nystroem
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> Nystroem("laplacian", rank=50).fit(X).kernel_error_ < 0.05
    True

    References
    ----------
    Williams, Seeger (2001), Using the Nyström method to speed up kernel machines.
    """

    in_space = True
    _triangular = False
    constraints = declared(rank=COUNT, landmarks=NONE | OneOf((CENTRES,)) | NUMBERS)

    kernel: Any = None
    rank: int = 100
    landmarks: AnyArray | str | None = None
    random_state: Any = None

    def _fit(self, X: FloatArray) -> FloatArray:
        given = isinstance(self.kernel_, Precomputed)
        self.landmarks_ = self._choose(X, given)
        square = self._values(X[self.landmarks_] if given else self.landmarks_)
        values, vectors = eigh(square)
        if values[0] < -1e-6 * max(values[-1], 0.0):
            raise not_positive(float(values[0]))
        kept = (values > _CUT * values[-1]) & (values > 0.0)
        if kept.any():
            self._whiten(square, values, vectors, kept)
        else:  # no kernel value but zero: a feature that says so
            self._triangular, self.whitening_ = False, np.zeros((len(square), 1))
        self.rank_ = self.whitening_.shape[1]
        features = in_chunks(self._map, X, len(self.landmarks_), for_threads(self.kernel_))
        diagonal = np.diag(X) if given else self.kernel_.diag(X)
        left = diagonal - np.einsum("ij,ij->i", features, features)
        self._set_kernel_error(diagonal, left)
        return features

    def _whiten(
        self, square: FloatArray, values: FloatArray, vectors: FloatArray, kept: AnyArray
    ) -> None:
        """Set the matrix W, triangular where it can be: products cost half, and take no memory."""
        self._triangular = bool(values[0] > _CERTAIN * values[-1])
        if self._triangular:
            factor = cholesky(square, lower=True, check_finite=False)
            inverse, _ = lapack.dtrtri(factor, lower=1)
            self.whitening_ = np.ascontiguousarray(inverse.T)
        else:
            self.whitening_ = vectors[:, kept] / np.sqrt(values[kept])

    def _choose(self, X: FloatArray, given: bool) -> AnyArray:
        """Landmarks, or with a Gram matrix their row indices; given or sampled."""
        if self.landmarks is None:
            size = min(int(self.rank), len(X))
            chosen = np.sort(random_of(self.random_state).choice(len(X), size, replace=False))
            return chosen if given else X[chosen]
        if isinstance(self.landmarks, str):
            if given:
                raise ValueError(
                    "with kernel='precomputed', landmarks must be None or row indices, got "
                    f"{self.landmarks!r}: clusters need the rows themselves"
                )
            return self._centres(X)
        if given:
            rows = np.asarray(self.landmarks)
            numbers = rows.ndim == 1 and rows.dtype.kind in "iu" and rows.size > 0
            if not numbers or rows.min() < 0 or rows.max() >= len(X):
                raise ValueError(
                    "with kernel='precomputed', landmarks must be row indices from 0 to "
                    f"{len(X) - 1}, got {shown(self.landmarks)}"
                )
            return rows
        landmarks = np.asarray(self.landmarks, dtype=np.float64)
        if landmarks.ndim != 2 or landmarks.shape[1] != X.shape[1] or len(landmarks) == 0:
            raise ValueError(
                f"landmarks must be rows with {X.shape[1]} columns as X has, got an array of "
                f"shape {landmarks.shape}"
            )
        return landmarks

    def _centres(self, X: FloatArray) -> FloatArray:
        """Centres of clusters of the different rows, so that order and repeats play no part."""
        from sklearn.cluster import KMeans  # noqa: PLC0415  # of no use to most, and slow to import

        rows = np.unique(X, axis=0)
        units = getattr(self.kernel_, "length_scale", None)
        if units is None or np.size(units) not in (1, X.shape[1]):  # of channels of curves
            deviations = rows.std(axis=0)
            units = np.where(deviations > 0.0, deviations, 1.0)
        middle, seed = rows.mean(axis=0), random_of(self.random_state).randint(2**31)
        clusters = KMeans(min(int(self.rank), len(rows)), n_init=1, random_state=seed)
        found = clusters.fit((rows - middle) / units).cluster_centers_
        return np.asarray(found * units + middle)

    def residual(self, X: FloatArray, features: FloatArray) -> FloatArray:
        """Return the diagonal of the residual kernel matrix."""
        return residual_diagonal(self._gram(X).diagonal, features)

    def coefficients(self, weights: FloatArray) -> FloatArray:
        """Return ``whitening_ @ weights``, coefficients on the landmarks.

        Their shape is (n_landmarks, n_outputs).
        """
        check_is_fitted(self)
        return self.whitening_ @ weights

    def _values(self, X: FloatArray) -> FloatArray:
        if isinstance(self.kernel_, Precomputed):
            return X[:, self.landmarks_]
        return np.asarray(self.kernel_(X, self.landmarks_))

    def _map(self, X: FloatArray) -> FloatArray:
        values = self._values(X)
        if not self._triangular:
            return values @ self.whitening_
        values = np.require(values, np.float64, ["C", "W"])
        return blas.dtrmm(1.0, self.whitening_.T, values.T, lower=1, overwrite_b=1).T

    def _at_landmarks(self, weights: FloatArray) -> FloatArray:
        if self._triangular:
            return np.asarray(solve_triangular(self.whitening_, weights, trans="T"))
        return self.whitening_ / np.einsum("ij,ij->j", self.whitening_, self.whitening_) @ weights
