"""Explicit features: the columns of X, or the output of a transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from fenchel._parameters import parameters
from fenchel._typing import FloatArray
from fenchel._validation import NONE, Having, declared
from fenchel.features.base import FeatureMap
from fenchel.kernels import Box, Linear, Normal, Precomputed, SparsePoints, as_kernel


@parameters
class Explicit(FeatureMap):
    r"""Explicit features :math:`\varphi(x) = x`, or the output of a transformer.

    The kernel is the linear kernel of these features, so there is no approximation error.

    Parameters
    ----------
    transformer : scikit-learn transformer, optional
        For example ``PolynomialFeatures`` or ``SplineTransformer``.
    kernel : None
        Part of the interface of feature maps. The kernel of these features is linear, so any
        kernel is ignored, except a precomputed one.
    random_state : None
        Unused.

    Attributes
    ----------
    transformer_ : transformer or None
        The fitted transformer.
    rank_, kernel_, kernel_error_, n_features_in_
        See :class:`FeatureMap`.

    Examples
    --------
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from fenchel.features import Explicit
    >>> Explicit(PolynomialFeatures(2)).fit_transform([[2.0], [3.0]])
    array([[1., 2., 4.],
           [1., 3., 9.]])
    """

    in_space = True
    reads_kernel = False
    constraints = declared(transformer=NONE | Having("a transformer", ("fit", "transform")))

    transformer: Any = None
    kernel: Any = None
    random_state: Any = None

    def _resolved_kernel(self, X: FloatArray) -> Kernel:
        if isinstance(as_kernel(self.kernel), Precomputed):
            raise ValueError(
                "explicit features need the rows themselves: kernel must not be 'precomputed'"
            )
        return Linear()

    def _fit(self, X: FloatArray) -> FloatArray:
        self.kernel_error_ = 0.0
        self.transformer_ = None if self.transformer is None else clone(self.transformer).fit(X)
        return self._map(X)

    def product_integrals(self, measure: Box | Normal) -> FloatArray | None:
        """Integrals of products of two features, in closed form without a transformer."""
        if self.transformer_ is not None:
            return None
        return Linear().product_integrals(np.eye(self.n_features_in_), measure)

    def gradient(self, X: FloatArray, weights: FloatArray) -> FloatArray | None:
        """Gradients of linear combinations of features, available without a transformer."""
        return weights if self.transformer_ is None else None

    def _map(self, X: FloatArray) -> FloatArray:
        if isinstance(X, SparsePoints):
            return X.toarray()
        if self.transformer_ is None:
            return X
        features = self.transformer_.transform(X)
        if sparse.issparse(features):
            features = features.toarray()
        return np.ascontiguousarray(features, dtype=np.float64)
