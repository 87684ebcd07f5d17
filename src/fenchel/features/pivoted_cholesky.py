"""Pivoted Cholesky: a low-rank approximation of the kernel to a given accuracy."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils.validation import check_is_fitted

from fenchel._parameters import parameters
from fenchel._threads import threads_that_pay
from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import NONE, Number, declared
from fenchel.design.tiled import solve_rows
from fenchel.features.base import FeatureMap
from fenchel.features.factorizations import BLOCK, Factorization, blocked, dense, further, greedy
from fenchel.features.gram import ROUNDING, Gram, residual_diagonal
from fenchel.kernels import OperatorKernel, Precomputed, stacked

_A_SECOND = 5e9  # rows times squared columns in a quarter of it
_DENSE_ROWS = 5000
_FIRST_TOL = 1e-10
_LEAST_TOL = 1e-14  # below that, residuals are rounding


@parameters
class PivotedCholesky(FeatureMap):
    r"""Greedy partial Cholesky factorization of the Gram matrix.

    .. math:: \varphi(x) = L_{ZZ}^{-1} k(Z, x), \qquad L_{ZZ} L_{ZZ}^\top = k(Z, Z)

    Each step adds to Z the row with the largest residual
    :math:`k(x, x) - \|\varphi(x)\|^2`, until no residual exceeds ``tol`` times the
    largest diagonal entry. Smooth kernels need few rows, however large n is (a Gaussian kernel in
    one dimension a dozen). Rough kernels need all of them. No (n, n) array is formed unless the
    rank may be n.

    If several rows have the same largest residual, the row nearest to the mean of up to 1000
    distinct rows is chosen, in units of the standard deviations. In the first step all rows tie if
    the kernel has a constant diagonal. The choice does not depend on the order of rows, units of
    columns or repeated rows. For sparse rows, zero takes the place of the mean; with a precomputed
    Gram matrix the row with the largest sum is chosen.

    Parameters
    ----------
    kernel : None, str, kernel or callable
        See :func:`fenchel.kernels.as_kernel`.
    tol : float, optional
        Accuracy relative to the largest diagonal entry; at least 1e-14. By default 1e-10, or
        smaller if the certificate of an estimator requires it, see :meth:`wider`.
    rank : int, optional
        Maximum rank; by default min(n, max(100, 25 000 000 / n)).
    random_state : int, RandomState or None
        Seed for length scales that are computed from a subsample.

    Attributes
    ----------
    pivots_ : ndarray of shape (rank_,)
        Indices of the chosen rows.
    landmarks_ : ndarray of shape (rank_, n_features)
        The chosen rows (absent with a precomputed kernel).
    factor_ : ndarray of shape (rank_, rank_)
        The lower triangular L_ZZ.
    rank_, kernel_, kernel_error_, n_features_in_
        See :class:`FeatureMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import PivotedCholesky
    >>> X = np.linspace(0, 1, 1000)[:, None]
    >>> PivotedCholesky("gaussian").fit_transform(X).shape
    (1000, 13)

    References
    ----------
    Harbrecht, Peters, Schneider (2012), On the low-rank approximation by the pivoted Cholesky
    decomposition.
    """

    nested = True
    in_space = True

    constraints = declared(tol=NONE | Number(0.0, 1.0, open_high=True))

    kernel: Any = None
    tol: float | None = None
    rank: int | None = None
    random_state: Any = None

    def _fit(self, X: FloatArray) -> FloatArray:
        gram, cap = self._gram(X), self._cap(len(X))
        if gram.given and cap == gram.size:
            return self._kept(gram, dense(gram, X, self._level(gram)))
        start = greedy(gram, min(cap, BLOCK), self._level(gram))
        return self._kept(gram, self._completed(gram, start))

    def beyond(self, X: FloatArray, features: FloatArray) -> FloatArray:
        """Continue a factorization that a smaller ``rank`` ended.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The rows of :meth:`fit_transform`, as they are after its validation.
        features : ndarray of shape (n_samples, rank_)
            What it returned.

        Returns
        -------
        ndarray of shape (n_samples, rank_)
            More features, for the present ``rank``.

        Examples
        --------
        >>> import numpy as np
        >>> from fenchel.features import PivotedCholesky
        >>> X = np.linspace(0, 1, 1000)[:, None]
        >>> begun = PivotedCholesky("gaussian", rank=5)
        >>> features = begun.fit_transform(X)
        >>> begun.set_params(rank=None).beyond(X, features).shape
        (1000, 13)
        """
        gram = self._gram(X)
        left = gram.diagonal - np.einsum("ij,ij->i", features, features)
        left[self.pivots_] = 0.0
        with threads_that_pay(0):
            found = self._kept(gram, self._completed(gram, (features, self.pivots_, left)))
        self.rank_ = found.shape[1]
        return found

    def _completed(self, gram: Gram, start: Factorization) -> Factorization:
        """The factorization that begins so, to its level or rank."""
        level, cap = self._level(gram), self._cap(gram.size)
        features, pivots, left = start
        if left.max() <= level:
            gram.check_rest(features)
        elif cap == gram.size <= _DENSE_ROWS and len(pivots) < cap:
            return dense(gram, self.kernel_(gram.X), level)
        elif len(pivots) < cap:
            return blocked(gram, cap, level, start)
        return start

    def _kept(self, gram: Gram, found: Factorization) -> FloatArray:
        """Keep what a factorization found; return its features."""
        features, pivots, left = found
        self.pivots_, self.factor_ = pivots, features[pivots]
        if not len(pivots):  # no kernel value but zero: one feature that is
            features, self.pivots_ = np.zeros((gram.size, 1)), np.array([0])
            self.factor_ = np.eye(1)
        if not gram.given:
            self.landmarks_ = gram.X[self.pivots_]
        self._set_kernel_error(gram.diagonal, left)
        return features

    def limited(self, seconds: float, n_rows: int) -> Self:
        """Limit the rank to what takes about a quarter of ``seconds``."""
        columns = max(BLOCK, int(np.sqrt(_A_SECOND * seconds / n_rows)))
        return self if columns >= self._cap(n_rows) else self.set_params(rank=columns)

    def _cap(self, n: int) -> int:
        cap = max(100, int(2.5e7 / n)) if self.rank is None else int(self.rank)
        return min(n, cap)

    def _level(self, gram: Gram) -> float:
        """Residual to end at."""
        relative = _FIRST_TOL if self.tol is None else max(float(self.tol), _LEAST_TOL)
        return relative * max(gram.largest, 0.0)

    def residual(self, X: FloatArray, features: FloatArray) -> FloatArray:
        """Return the diagonal of the residual kernel matrix."""
        diagonal = self._gram(X).diagonal.reshape(features.shape[:-1])
        return residual_diagonal(diagonal, features)

    def fit_among(self, X: AnyArray, some: IntArray) -> FloatArray:
        """Fit with pivots from a subset of rows, and add pivots from all rows if necessary.

        This is faster for many rows, most of which are close to others: a well-spread subset of
        a few thousand rows finds nearly all pivots. ``kernel_error_`` is computed on all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; a Gram matrix is not supported.
        some : ndarray of shape (m,)
            Indices of distinct rows, the subset.

        Returns
        -------
        ndarray of shape (n_samples, rank_)
            The features of all rows.

        Examples
        --------
        >>> import numpy as np
        >>> from fenchel.features import PivotedCholesky
        >>> X = np.linspace(0, 1, 1000)[:, None]
        >>> PivotedCholesky("gaussian").fit_among(X, np.arange(0, 1000, 10)).shape
        (1000, 13)
        """
        self.check_parameters()
        X = self._rows(X, reset=True)
        self.kernel_ = self._resolved_kernel(X)
        self._fit(X[some])
        self.rank_, self.pivots_ = len(self.pivots_), some[self.pivots_]
        features, gram = self.transform(X), self._gram(X)
        if gram.diagonal[self.pivots_[0]] > 0.0:  # and not all kernel values are zero
            features[self.pivots_] = self.factor_
        left = gram.diagonal - np.einsum("ij,ij->i", features, features)
        left[self.pivots_] = 0.0
        gram.check(left)
        level, cap = self._level(gram), self._cap(gram.size)
        if left.max() > level and self.rank_ < cap:
            features, pivots, left = further(gram, features, left, cap, level)
            self._extend(X, pivots, features[pivots])
        self._set_kernel_error(gram.diagonal, left)
        return features

    def wider(
        self, X: FloatArray, features: FloatArray, share: float
    ) -> tuple[Self, FloatArray] | None:
        """Continue the factorization, unless ``tol`` or ``rank`` ended it.

        It ends at ``share`` times the largest residual, or at rounding errors of each entry.
        """
        gram = self._gram(X)
        flat = features.reshape(-1, features.shape[-1])
        cap = self._cap(gram.size)
        if self.tol is not None or flat.shape[1] >= cap:
            return None
        left = gram.diagonal - np.einsum("ij,ij->i", flat, flat)
        level: float | FloatArray = share * float(left.max())
        if level < ROUNDING * gram.largest:
            level = np.maximum(level, ROUNDING * gram.diagonal)
        wide, pivots, left = further(gram, flat, left, cap, level)
        if len(pivots) == 0:
            return None
        found = copy.copy(self)
        found._extend(X, pivots, wide[pivots])
        found._set_kernel_error(gram.diagonal, left)
        return found, wide.reshape(*features.shape[:-1], -1)

    def _extend(self, X: FloatArray, pivots: IntArray, factor: FloatArray) -> None:
        """Add pivots, of which these are the features."""
        above = np.zeros((self.rank_, len(pivots)))
        self.factor_ = np.block([[self.factor_, above], [factor]])
        self.pivots_ = np.concatenate([self.pivots_, pivots])
        self.rank_ = len(self.pivots_)
        self._add_landmarks(X, pivots)

    def _add_landmarks(self, X: FloatArray, pivots: IntArray) -> None:
        if not isinstance(self.kernel_, Precomputed):
            self.landmarks_ = stacked(self.landmarks_, X[pivots])

    def coefficients(self, weights: FloatArray) -> FloatArray:
        """Coefficients ``solve(factor_.T, weights)`` on the landmarks, (rank_, n_outputs)."""
        check_is_fitted(self)
        return np.asarray(solve_triangular(self.factor_, weights, lower=True, trans="T"))

    def from_kernel_values(self, values: FloatArray) -> FloatArray:
        """Return features ``solve(factor_, values.T).T``, (n, rank_)."""
        return solve_rows(self.factor_, np.array(values))

    def _at_landmarks(self, weights: FloatArray) -> FloatArray | None:
        """None for operator-valued kernels: predictions are made of features."""
        return None if isinstance(self.kernel_, OperatorKernel) else self.factor_ @ weights

    def _map(self, X: FloatArray) -> FloatArray:
        given = isinstance(self.kernel_, Precomputed)
        return self._solved(X[:, self.pivots_] if given else self.kernel_(X, self.landmarks_))

    def _solved(self, values: FloatArray) -> FloatArray:
        """Features of rows from their kernel values at the pivots, which are overwritten."""
        return solve_rows(self.factor_, values)
