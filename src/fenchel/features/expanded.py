"""Exact features of polynomial kernels, and separate features for the summands of a kernel."""

from __future__ import annotations

from math import comb
from typing import Any, Self

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from sklearn.preprocessing import PolynomialFeatures

from fenchel._parameters import parameters
from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.features.base import FeatureMap
from fenchel.features.explicit import Explicit
from fenchel.features.pivoted_cholesky import PivotedCholesky
from fenchel.kernels import Linear, Polynomial, SparsePoints, summands_of
from fenchel.kernels.product_integrals import monomials

_MOST_MONOMIALS = 500
_APART = 1e4  # rounding errors of one summand, 1e-14 of it, are then 1e-10 of the other


@parameters
class Monomials(FeatureMap):
    r"""Monomial features of a polynomial kernel.

    .. math:: \varphi_a(x) = \sqrt{\binom{p}{a} \mathrm{gain}^{|a|}\,
              \mathrm{offset}^{p - |a|}}\; x^a, \qquad |a| \le p

    Each feature is accurate to rounding. Kernel values are less accurate: their small terms lose
    digits in the sum with the largest term.

    Parameters
    ----------
    kernel : Polynomial
        The kernel.
    random_state : None
        Unused.

    Attributes
    ----------
    sizes_ : ndarray of shape (rank_,)
        Factors by which the monomials are multiplied.
    rank_, kernel_, kernel_error_, n_features_in_
        See :class:`FeatureMap`.

    Examples
    --------
    >>> from fenchel.features import Monomials
    >>> from fenchel.kernels import Polynomial
    >>> features = Monomials(Polynomial(2)).fit_transform([[1.0], [2.0]])
    >>> (features @ features.T).round(9)
    array([[ 4.,  9.],
           [ 9., 25.]])
    """

    in_space = True

    kernel: Any = None
    random_state: Any = None

    def _fit(self, X: FloatArray) -> FloatArray:
        if not isinstance(self.kernel_, Polynomial):
            raise TypeError(f"kernel must be a Polynomial, got {shown(self.kernel)}")
        self.kernel_.check_parameters()
        degree, offset = int(self.kernel_.degree), float(self.kernel_.offset)
        self._powers = PolynomialFeatures(degree).fit(_dense(X))
        _, rest, count = monomials(X.shape[1], degree)
        squares = count * float(self.kernel_.gain) ** (degree - rest) * offset**rest
        self.sizes_ = np.sqrt(squares)
        self.kernel_error_ = 0.0
        return self._map(X)

    def _map(self, X: FloatArray) -> FloatArray:
        return np.ascontiguousarray(self._powers.transform(_dense(X)) * self.sizes_)


def _dense(X: Any) -> FloatArray:
    """Rows as an array; those whose monomials are few have few columns."""
    return X.toarray() if isinstance(X, SparsePoints) else np.asarray(X)


@parameters
class Summands(FeatureMap):
    r"""Features of the summands of a kernel, side by side.

    .. math:: k = \sum_j k_j, \qquad \varphi = (\varphi_1, \varphi_2, \dots)

    If summands have very different magnitudes, the digits of the smaller one are lost in their
    sum. Each summand is therefore factored separately.

    Parameters
    ----------
    kernel : kernel
        A sum.
    random_state : int, RandomState or None
        Seed of the feature maps of the summands.

    Attributes
    ----------
    maps_ : list of FeatureMap
        Feature maps of the summands.
    rank_, kernel_, kernel_error_, n_features_in_
        See :class:`FeatureMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import Summands
    >>> from fenchel.kernels import Gaussian, Linear
    >>> X = np.linspace(1e5, 1e5 + 10, 50)[:, None]
    >>> Summands(Gaussian(2.0) + Linear()).fit(X).rank_ > 10
    True
    """

    in_space = True

    kernel: Any = None
    random_state: Any = None

    def _fit(self, X: FloatArray) -> FloatArray:
        parts = summands_of(self.kernel_)
        self.maps_ = [map_of(part, self.random_state, *X.shape) for part in parts]
        features = [each.fit_transform(X) for each in self.maps_]
        traces = [float(each.kernel_.diag(X).sum()) for each in self.maps_]
        errors = [
            each.kernel_error_ * trace for each, trace in zip(self.maps_, traces, strict=True)
        ]
        self.kernel_error_ = sum(errors) / sum(traces)
        return np.hstack(features)

    def _map(self, X: FloatArray) -> FloatArray:
        return np.hstack([each.transform(X) for each in self.maps_])

    def _columns(self, features: FloatArray) -> list[FloatArray]:
        return np.split(features, np.cumsum([each.rank_ for each in self.maps_])[:-1], axis=1)

    def residual(self, X: FloatArray, features: FloatArray) -> FloatArray:
        """Sum over the feature maps of the summands."""
        parts = zip(self.maps_, self._columns(features), strict=True)
        return np.sum([each.residual(X, own) for each, own in parts], axis=0)

    def wider(
        self, X: FloatArray, features: FloatArray, share: float
    ) -> tuple[Self, FloatArray] | None:
        """Extend the feature map of each summand."""
        parts = list(zip(self.maps_, self._columns(features), strict=True))
        found = [each.wider(X, own, share) for each, own in parts]
        if all(each is None for each in found):
            return None
        both = [new or old for new, old in zip(found, parts, strict=True)]
        wide, _ = self.restricted(features, np.arange(0))
        wide.maps_ = [each for each, _ in both]
        wide.rank_ = sum(each.rank_ for each in wide.maps_)
        return wide, np.hstack([own for _, own in both])

    def forms(self, X: FloatArray, push: FloatArray) -> FloatArray:
        """Sum over the feature maps of the summands."""
        return np.sum([each.forms(X, push) for each in self.maps_], axis=0)


def map_of(kernel: Kernel, random_state: Any, n_samples: int, n_features: int) -> FeatureMap:
    """Return the unfitted map of a kernel: explicit features, if the kernel has few of them."""
    if isinstance(kernel, Linear) and n_features <= n_samples:
        return Explicit()
    if isinstance(kernel, Polynomial):
        kernel.check_parameters()
        degree = int(kernel.degree)
        if comb(n_features + degree, degree) <= min(n_samples, _MOST_MONOMIALS):
            return Monomials(kernel)
    return PivotedCholesky(kernel, random_state=random_state)


def of_different_size(kernel: Kernel, X: FloatArray) -> bool:
    """Whether a summand of a kernel is lost in the rounding errors of another one."""
    parts = summands_of(kernel)
    sizes = np.array([float(np.mean(each.diag(X))) for each in parts])
    return bool(sizes.max() > _APART * sizes[sizes > 0.0].min(initial=np.inf))
