"""Kernel values at all training rows as features, for kernels of full rank."""

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
    r"""Kernel values at the training rows, as features.

    .. math:: \varphi(x) = (k(x, x_1), \dots, k(x, x_n))

    The features are not orthonormal as those of the other maps are: a function with coefficients
    u has the squared norm :math:`u^\top K u`, see :class:`fenchel.design.Gram`. There is no
    approximation and no factorization. Use this map if the rank is close to n.

    Parameters
    ----------
    kernel : None, str, kernel or callable
        See :func:`fenchel.kernels.as_kernel`; not precomputed.
    stored : bool
        Whether the (n, n) kernel values of the training rows are stored in memory. If False,
        they are recomputed whenever needed, and ``fit_transform`` returns X.
    random_state : int, RandomState or None
        Seed for length scales that are computed from random pairs of rows.

    Attributes
    ----------
    landmarks_ : ndarray of shape (rank_, n_features)
        The training rows; in fitted models, only those that predictions need.
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
        self.landmarks_ = X.copy()  # the array of the caller may change after the fit
        self.kernel_error_ = 0.0
        return np.asarray(self.kernel_(X), dtype=np.float64) if self.stored else X

    def fit_transform(self, X: AnyArray, y: Any = None) -> FloatArray:
        """Fit, and return the kernel values of the rows, (n, n), or X if not ``stored``."""
        features = super().fit_transform(X, y)
        self.rank_ = len(features)
        return features

    def _map(self, X: FloatArray) -> FloatArray:
        return np.asarray(self.kernel_(X, self.landmarks_), dtype=np.float64)

    def coefficients(self, weights: FloatArray) -> FloatArray:
        """Return the weights, as the features are the kernel values."""
        return weights

    def sound_coefficients(self, weights: FloatArray) -> FloatArray:
        """Return the weights."""
        return weights

    def from_kernel_values(self, values: FloatArray) -> FloatArray:
        """Return the kernel values, which are the features."""
        return values

    def design(self, features: FloatArray, coupling: FloatArray) -> Design:
        """Return the design of the Gram matrix, stored or recomputed."""
        if self.stored:
            return Gram(features, coupling)
        low_rank = PivotedCholesky(self.kernel_, rank=_LOW_RANK, random_state=self.random_state)
        values = Computed(features, self.kernel_, lambda: low_rank.fit_transform(features))
        return Gram(values, coupling)

    def centre(self, features: FloatArray, weight: FloatArray) -> None:
        """Return None: these features are not centred."""

    def restricted(self, features: FloatArray, rows: IntArray) -> tuple[Self, FloatArray]:
        """Return the map and the features restricted to some of the training rows."""
        part = copy.copy(self)
        part.landmarks_, part.rank_ = self.landmarks_[rows], len(rows)
        some = np.ix_(rows, rows) if self.stored else rows
        return part, np.ascontiguousarray(features[some])


def compacted(feature_map: FeatureMap, weights: FloatArray) -> tuple[FeatureMap, FloatArray]:
    r"""Return a smaller map for predictions: kernel values at landmarks, if accurate enough.

    :math:`\varphi(x)^\top V = k(x, Z) A` for the landmarks Z whose coefficients A are not zero.
    Predictions then need no (rank_, rank_) factor of their kernel values, and no solves with it.

    Parameters
    ----------
    feature_map : FeatureMap
        A fitted map.
    weights : ndarray of shape (rank_, n_outputs)
        V.

    Returns
    -------
    feature_map : FeatureMap
        :class:`KernelRows` of the landmarks. The given map, if the coefficients would lose
        digits or if there are few features.
    weights : ndarray
        Weights of the features of this map.

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
