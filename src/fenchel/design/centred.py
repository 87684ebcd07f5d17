"""Rows of linear models: centring, weighting, and reduction to fewer rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import qr

from fenchel._threads import threads_that_pay
from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel.design.sparse_rows import SparseRows

_NOISE = 64 * np.finfo(float).eps  # of their mean: rows that differ by less are constant


@dataclass(frozen=True, eq=False)
class CentredRows:
    """Rows of positive weight, centred by the weighted means if there is an intercept.

    For the squared loss, the best intercept is then known for any coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import CentredRows
    >>> X, y = np.array([[1.0], [3.0]]), np.array([[1.0], [5.0]])
    >>> rows = CentredRows.of(X, y, np.ones(2), fit_intercept=True)
    >>> rows.features[:, 0], rows.target_means
    (array([-1.,  1.]), array([3.]))
    """

    given: tuple[FloatArray, FloatArray]
    """X (m, d) and y (m, p) as they were given."""
    features: Any
    """(m, d), in the order of columns; :class:`SparseRows` where X is sparse."""
    targets: FloatArray
    """(m, p)."""
    weight: FloatArray
    means: FloatArray
    """Of the features, (d,); zero without intercept."""
    target_means: FloatArray
    """(p,), zero without intercept."""
    fit_intercept: bool
    whole: tuple[FloatArray, FloatArray]
    """All rows, those without weight as well."""
    kept: AnyArray
    """Which of them have a weight, (n,)."""

    @classmethod
    def of(
        cls, X: FloatArray, y: FloatArray, weight: FloatArray, fit_intercept: bool
    ) -> CentredRows:
        """Remove rows of X (n, d) and y (n, p) of weight zero, and centre the others."""
        whole, kept = (X, y), weight > 0.0
        if not np.all(kept):
            X, y, weight = X[kept], y[kept], weight[kept]
        given = X, y
        features: Any
        made = _sparse if sparse.issparse(X) else _centred
        features, means = made(X, weight, fit_intercept)
        targets, target_means = _centred(y, weight, fit_intercept)
        averages = means, target_means
        return cls(given, features, targets, weight, *averages, fit_intercept, whole, kept)

    @property
    def root(self) -> FloatArray:
        """Square roots of the weights over their mean, (m, 1); 1 if all are equal."""
        return np.sqrt(self.weight / self.weight.mean())[:, None]

    @cached_property
    def weighted(self) -> tuple[Any, FloatArray]:
        """X and y of the equivalent unweighted problem, with mean loss ½‖y - X w‖²/m."""
        if np.ptp(self.weight) == 0.0:
            return self.features, self.targets
        if isinstance(self.features, SparseRows):
            return self.features.weighted(self.root), self.root * self.targets
        return np.asfortranarray(self.root * self.features), self.root * self.targets

    @cached_property
    def fewer(self) -> tuple[FloatArray, FloatArray]:
        """The same on d + p rows, see :func:`fewer_rows`."""
        return fewer_rows(*self.weighted)

    @cached_property
    def products(self) -> FloatArray:
        """Products of the columns of X, (d, d)."""
        features = self.weighted[0]
        return np.asarray(features.T @ features)

    @cached_property
    def pulled(self) -> FloatArray:
        """Products of the columns of X and y, (d, p)."""
        features, targets = self.weighted
        return np.asarray(features.T @ targets)

    @cached_property
    def sizes(self) -> FloatArray:
        """Largest entries of the weighted columns before centring, (d,)."""
        X = self.given[0]
        if sparse.issparse(X):
            return np.ravel(abs(sparse.diags_array(self.root[:, 0]) @ X).max(axis=0).toarray())
        if np.ptp(self.weight) == 0.0:  # of centred columns, each in one piece
            highest, lowest = self.features.max(axis=0), self.features.min(axis=0)
            return np.asarray(np.maximum(highest + self.means, -(lowest + self.means)))
        weighted = self.root * X
        return np.asarray(np.maximum(weighted.max(axis=0), -weighted.min(axis=0)))

    def intercept(self, coef: FloatArray) -> FloatArray:
        """Return the best intercept (p,) for coefficients (d, p)."""
        with threads_that_pay(0):
            return np.asarray(self.target_means - self.means @ coef)

    def settled(self, coef: FloatArray) -> tuple[FloatArray, float]:
        """Return the best intercept (p,) for coefficients (d, p), and the mean loss.

        The loss is computed from predictions on X as given, not centred. If X is far from zero,
        these have larger rounding errors than predictions on centred rows.
        """
        X, y = self.given
        share = self.weight / self.weight.sum()
        intercept, products = self.intercept(coef), linear_values(X, coef)
        with threads_that_pay(0):  # sums over rows in one order
            if self.fit_intercept:
                intercept = intercept + share @ (y - (products + intercept))
            residual = y - (products + intercept)
            if not self.targets.any():  # rounding errors of constant targets are no loss
                residual[np.abs(residual) <= _NOISE * np.abs(y)] = 0.0
            return intercept, 0.5 * float(share @ np.einsum("ij,ij->i", residual, residual))


def linear_values(X: Any, coef: FloatArray) -> FloatArray:
    """Return X times coefficients (d, p), the same digits for any number of threads.

    They share rows where these are more than ten thousand. Columns are not shared: their sums
    would be in parts.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import linear_values
    >>> linear_values(np.eye(2), np.ones((2, 1)))
    array([[1.],
           [1.]])
    """
    with threads_that_pay(X.shape[0] // 10):  # which has one for 1000
        return np.asarray(X @ coef)


def _sparse(X: Any, weight: FloatArray, fit_intercept: bool) -> tuple[SparseRows, FloatArray]:
    """Rows that are centred without an array, and their means; zero without intercept."""
    means = X.T @ weight / weight.sum() if fit_intercept else np.zeros(X.shape[1])
    columns = X.tocsc()
    if max(columns.nnz, *columns.shape) <= np.iinfo(np.int32).max:  # as compiled loops have it
        places = columns.indices.astype(np.int32), columns.indptr.astype(np.int32)
        columns = sparse.csc_array((columns.data, *places), columns.shape)
    return SparseRows(columns, means, np.ones((X.shape[0], 1))), means


def _centred(
    values: FloatArray, weight: FloatArray, fit_intercept: bool
) -> tuple[FloatArray, FloatArray]:
    """Columns without their weighted means; exactly zero where constant up to rounding.

    As they are, and means of zero, without intercept.
    """
    if not fit_intercept:
        return np.asfortranarray(values), np.zeros(values.shape[1])
    with threads_that_pay(0):  # a sum over rows in one order
        mean = weight @ values / weight.sum()
    centred = np.empty(values.shape, order="F")
    np.subtract(values, mean, out=centred)
    highest, lowest = centred.max(axis=0), centred.min(axis=0)
    constant = np.maximum(highest, -lowest) <= _NOISE * np.abs(mean)
    centred[:, constant] = 0.0
    return centred, mean


def column_squares(features: Any) -> FloatArray:
    """Return the sums of squares of the columns of an array or of :class:`SparseRows`, (d,).

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import column_squares
    >>> column_squares(np.array([[1.0, 0.0], [-1.0, 2.0]]))
    array([2., 4.])
    """
    if not isinstance(features, SparseRows):
        return np.asarray(np.einsum("ij,ij->j", features, features))
    X, m, share = features.matrix, features.means, features.root[:, 0] ** 2
    plain = X.multiply(X).T @ share
    squares = plain - 2.0 * m * (X.T @ share) + m**2 * share.sum()
    return np.where(squares > _NOISE * plain, squares, 0.0)


def column_copies(features: Any, columns: IntArray, scales: FloatArray) -> Any:
    """Return some of the columns, each divided by a number: of an array or of sparse rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import column_copies
    >>> column_copies(np.array([[1.0, 4.0]]), np.array([1, 0, 1]), np.array([2.0, 1.0, 1.0]))
    array([[2., 1., 4.]])
    """
    if isinstance(features, SparseRows):
        return features.copies(columns, scales)
    return np.asfortranarray(features[:, columns] / scales)


def are_many(features: Any, n_outputs: int) -> bool:
    """Return whether rows are worth to be turned into fewer; sparse ones would become dense.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import are_many
    >>> are_many(np.ones((7, 2)), n_outputs=1), are_many(np.ones((6, 2)), n_outputs=1)
    (True, False)
    """
    sparse_ones = isinstance(features, SparseRows)
    return not sparse_ones and len(features) > 2 * (features.shape[1] + n_outputs)


def fewer_rows(features: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Reduce many rows to d + p rows by an orthogonal transformation.

    The lengths of all residuals are preserved.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import fewer_rows
    >>> X, y = np.random.default_rng(0).normal(size=(1000, 2)), np.ones((1000, 1))
    >>> features, targets = fewer_rows(X, y)
    >>> features.shape, np.allclose(features.T @ targets, X.T @ y)
    ((3, 2), True)
    """
    cut, width = features.shape[1], features.shape[1] + targets.shape[1]
    both = np.empty((len(features), width), order="F")
    both[:, :cut], both[:, cut:] = features, targets
    (factor,) = qr(both, mode="r", overwrite_a=True, check_finite=False)
    return np.ascontiguousarray(factor[:width, :cut]), factor[:width, cut:].copy()
