"""The rows themselves as features: kernel values, for kernels whose rank is that of the data."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np

from fenchel._parameters import parameters
from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import BOOLEAN, declared
from fenchel.design import Design, Gram
from fenchel.features.base import FeatureMap
from fenchel.features.pivoted_cholesky import PivotedCholesky
from fenchel.kernels import Computed

_LOW_RANK = 64  # of the features that solvers start from


@parameters
class KernelRows(FeatureMap):
    r"""Kernel values against the training rows.

    .. math:: \varphi(x) = (k(x, x_1), \dots, k(x, x_n))

    Not orthonormal features as those of the other maps: a function with coefficients u has
    the norm :math:`u^\top K u`, see :class:`fenchel.design.Gram`.
    Nothing is left out and nothing is factored: the choice where the rank is close to n.

    Parameters
    ----------
    kernel : None, str, kernel or callable
        See :func:`fenchel.kernels.as_kernel`; not precomputed.
    stored : bool
        Whether kernel values among the training rows are kept in memory, (n, n) numbers. Else
        they are computed again whenever they are needed, and ``fit_transform`` returns X.
    random_state : int, RandomState or None
        Seed for length scales that are read off random pairs.

    Attributes
    ----------
    landmarks_ : ndarray of shape (rank_, n_features)
        The training rows; in fitted models, those that predictions need.
    rank_, kernel_, kernel_error_, n_features_in_
        See :class:`FeatureMap`.

    Examples
    --------
    >>> from fenchel.features import KernelRows
    >>> KernelRows("linear").fit_transform([[1.0], [2.0]])
    array([[1., 2.],
           [2., 4.]])
    """

    in_space = True

    constraints = declared(stored=BOOLEAN)

    kernel: Any = None
    _: KW_ONLY
    stored: bool = True
    random_state: Any = None

    def _fit(self, X: FloatArray) -> FloatArray:
        self.landmarks_ = X
        self.kernel_error_ = 0.0
        return np.asarray(self.kernel_(X), dtype=np.float64) if self.stored else X

    def fit_transform(self, X: AnyArray, y: Any = None) -> FloatArray:
        """Fit, and return the kernel values among the rows, (n, n), or the rows."""
        features = super().fit_transform(X, y)
        self.rank_ = len(features)
        return features

    def _map(self, X: FloatArray) -> FloatArray:
        return np.asarray(self.kernel_(X, self.landmarks_), dtype=np.float64)

    def coefficients(self, weights: FloatArray) -> FloatArray:
        """Return the weights: the features are the kernel values."""
        return weights

    def sound_coefficients(self, weights: FloatArray) -> FloatArray:
        """Return the weights."""
        return weights

    def from_kernel_values(self, values: FloatArray) -> FloatArray:
        """Return the values."""
        return values

    def design(self, features: FloatArray, coupling: FloatArray) -> Design:
        """Return the rows by their Gram matrix, stored or not."""
        if self.stored:
            return Gram(features, coupling)
        low_rank = PivotedCholesky(self.kernel_, rank=_LOW_RANK, random_state=self.random_state)
        values = Computed(features, self.kernel_, lambda: low_rank.fit_transform(features))
        return Gram(values, coupling)

    def centre(self, features: FloatArray, weight: FloatArray) -> None:
        """Nothing: norms are those of all values."""

    def restricted(self, features: FloatArray, rows: IntArray) -> tuple[Self, FloatArray]:
        """Return a map and features for some of the training rows only."""
        part = copy.copy(self)
        part.landmarks_, part.rank_ = self.landmarks_[rows], len(rows)
        some = np.ix_(rows, rows) if self.stored else rows
        return part, np.ascontiguousarray(features[some])


def compacted(feature_map: FeatureMap, weights: FloatArray) -> tuple[FeatureMap, FloatArray]:
    r"""What predictions of functions need of a map: kernel values at landmarks, if these do.

    :math:`\varphi(x)^\top V = k(x, Z) A` for the landmarks Z whose coefficients A are not zero. So
    a factor of their kernel values, (rank_, rank_), is neither kept nor solved with again.

    Parameters
    ----------
    feature_map : FeatureMap
        A fitted one.
    weights : ndarray of shape (rank_, n_outputs)
        V.

    Returns
    -------
    feature_map : FeatureMap
        :class:`KernelRows` of the landmarks, or the map as it is where coefficients would lose
        digits or there are few features.
    weights : ndarray
        Of its features.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import PivotedCholesky, compacted
    >>> from fenchel.kernels import Matern
    >>> X = np.linspace(0.0, 100.0, 400)[:, None]
    >>> feature_map = PivotedCholesky(Matern(1.0, 0.5)).fit(X)
    >>> weights = np.ones((400, 1))
    >>> small, coefficients = compacted(feature_map, weights)
    >>> type(small).__name__, coefficients.shape
    ('KernelRows', (400, 1))
    >>> bool(np.allclose(small.transform(X) @ coefficients, feature_map.transform(X) @ weights))
    True
    """
    coefficients = feature_map.sound_coefficients(weights)
    if coefficients is None:
        return feature_map, weights
    needed = np.flatnonzero(np.any(coefficients != 0.0, axis=1))
    stored = isinstance(feature_map, KernelRows) and feature_map.stored
    found = KernelRows(feature_map.kernel, stored=stored, random_state=feature_map.random_state)
    found.kernel_, found.kernel_error_ = feature_map.kernel_, feature_map.kernel_error_
    found.landmarks_ = feature_map.landmarks_[needed]
    found.n_features_in_, found.rank_ = feature_map.n_features_in_, len(needed)
    return found, coefficients[needed]
