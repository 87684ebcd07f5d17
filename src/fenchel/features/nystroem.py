"""Nyström: given or sampled landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.utils import check_random_state

from fenchel._typing import AnyArray, FloatArray
from fenchel.features.base import FeatureMap, in_chunks, not_positive
from fenchel.kernels import Precomputed

_CUT = 1e-12


class Nystroem(FeatureMap):
    r"""Nyström approximation on landmarks Z.

    .. math:: \varphi(x) = k(Z, Z)^{-1/2} k(Z, x)

    Eigenvalues of k(Z, Z) below 1e-12 times the largest are dropped.

    Parameters
    ----------
    kernel : None, str, kernel or callable
        See :func:`fenchel.kernels.as_kernel`.
    rank : int
        Number of landmarks sampled without replacement, if none are given.
    landmarks : array-like of shape (n_landmarks, n_features), optional
        The landmarks themselves.
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

    def __init__(
        self,
        kernel: Any = None,
        rank: int = 100,
        landmarks: AnyArray | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.rank = rank
        self.landmarks = landmarks
        self.random_state = random_state

    def _fit(self, X: FloatArray) -> FloatArray:
        given = isinstance(self.kernel_, Precomputed)
        if self.landmarks is not None and not given:
            self.landmarks_ = np.asarray(self.landmarks, dtype=np.float64)
            if self.landmarks_.ndim != 2 or self.landmarks_.shape[1] != X.shape[1]:
                raise ValueError(
                    f"landmarks must have {X.shape[1]} columns as X has, got an array of shape "
                    f"{self.landmarks_.shape}"
                )
        else:
            seed = 0 if self.random_state is None else self.random_state
            size = min(self.rank, len(X))
            chosen = np.sort(check_random_state(seed).choice(len(X), size, replace=False))
            self.landmarks_ = chosen if given else X[chosen]
        square = self._values(X[self.landmarks_] if given else self.landmarks_)
        values, vectors = eigh(square)
        if values[-1] <= 0.0 or values[0] < -1e-6 * values[-1]:
            raise not_positive(float(values[0]))
        kept = values > _CUT * values[-1]
        self.whitening_ = vectors[:, kept] / np.sqrt(values[kept])
        self.rank_ = int(np.count_nonzero(kept))
        features = in_chunks(self._map, X, len(self.landmarks_))
        diagonal = np.diag(X) if given else self.kernel_.diag(X)
        left = diagonal - np.einsum("ij,ij->i", features, features)
        self.kernel_error_ = float(np.maximum(left, 0.0).sum() / diagonal.sum())
        return features

    def _values(self, X: FloatArray) -> FloatArray:
        if isinstance(self.kernel_, Precomputed):
            return X[:, self.landmarks_]
        return np.asarray(self.kernel_(X, self.landmarks_))

    def _map(self, X: FloatArray) -> FloatArray:
        return self._values(X) @ self.whitening_
