"""Group Lasso: whole groups of coefficients are zero."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import WITH_DATA, That, declared, shown
from fenchel.certificate import Callback
from fenchel.design import CentredRows
from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm
from fenchel.regression._linear import NormModel
from fenchel.solvers import NormFista, Solution

_NORM = That(
    "1, 2 or inf",
    lambda order: isinstance(order, Real) and order in (1, 2, np.inf) and order is not True,
    ValueError,
)


class GroupLasso(NormModel):
    r"""Least squares with a group norm of the coefficients as penalty or as constraint.

    .. math:: \min_{W, b}\; \alpha \|W\|_{q,p}
              + \frac{1}{2 \sum_i s_i} \sum_i s_i\, \|y_i - W^\top x_i - b\|^2, \qquad
              \|W\|_{q,p} = \Big( \sum_j \|W_j\|_q^p \Big)^{1/p}

    or the second term alone where :math:`\|W\|_{q,p} \le` ``radius``. W_j are the coefficients
    of the columns in group j, those of all outputs together: q is the norm inside of groups and
    p the norm over groups. The default is the Group Lasso, L_{2,1}, which selects or omits
    entire groups. With several outputs and each column a group of its own, that is the
    multi-task Lasso.

    Parameters
    ----------
    groups : array-like of shape (n_features,), or list of lists of int, optional
        A label for each column, or for each group its columns. None makes each column a group.
        Groups must not overlap, and each column must be in one.
    alpha : float, optional
        Strength of the penalty, > 0; 1e-3 if neither it nor ``radius`` is given. In a
        penalized form with the sum of squares in place of half their mean, λ is
        2 * alpha * N, with N the sum of the weights. scikit-learn's ``MultiTaskLasso(alpha)`` is
        alpha here.
    radius : float, optional
        Bound on the norm, > 0, in place of ``alpha``.
    q, p : {1, 2, inf}, default=2 and 1
        The norms inside of groups and over groups. Only p = 1 sets whole groups to zero.
    max_iter : int, default=20000
        Limit on the number of gradient steps.
    fit_intercept, tol, verbose, callback, max_time
        As in :class:`Lasso`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_features,)
        Number of the group of each column. Groups given by labels are numbered in sorted order.
    group_norms_ : ndarray of shape (n_groups,)
        ‖W_j‖_q.
    selected_groups_ : ndarray of int
        Numbers of the groups with a coefficient that is not zero.
    selected_ : ndarray of int
        Columns with a coefficient that is not zero.
    norm_ : float
        ‖W‖_{q,p}.
    certificate_ : Certificate
        Of the very problem above. The dual point is the best multiple of the residuals; in the
        penalized form its dual norm, that with 1/q + 1/q* = 1/p + 1/p* = 1, is kept below alpha.
    status_, n_iter_, history_, n_features_in_, feature_names_in_
        As in :class:`QuantileRegressor`.
    coef_, intercept_
        As in :class:`Lasso`.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.5.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import GroupLasso
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> y = X[:, 0] - 2.0 * X[:, 1]
    >>> model = GroupLasso([0, 0, 1, 1, 2, 2], alpha=0.1).fit(X, y)
    >>> model.selected_groups_
    array([0])
    >>> bool(model.certificate_.relative_gap <= 1e-6)
    True
    """

    constraints = declared(groups=WITH_DATA, q=_NORM, p=_NORM)

    def __init__(
        self,
        groups: Any = None,
        alpha: float | None = None,
        *,
        radius: float | None = None,
        q: float = 2,
        p: float = 1,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 20_000,
        verbose: int = 0,
        callback: Callback | None = None,
        max_time: float | None = None,
    ) -> None:
        self.groups = groups
        self.alpha = alpha
        self.radius = radius
        self.q = q
        self.p = p
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.callback = callback
        self.max_time = max_time

    def make_norm(self, n_features: int) -> GroupNorm:  # noqa: D102
        labels = group_labels(self.groups, n_features)
        return GroupNorm(labels, float(self.q), float(self.p))

    def _solve(
        self, rows: CentredRows, problem: NormProblem, start: FloatArray | None
    ) -> Solution:
        solver = NormFista(float(self.tol), int(self.max_iter))
        solution = solver.solve(problem, start, self._callback())
        norm, coef = problem.norm, solution.weights
        self.labels_, self.norm_ = norm.labels, norm.value(coef)
        self.group_norms_ = norm.lengths(coef)
        self.selected_groups_ = np.flatnonzero(self.group_norms_)
        self.selected_ = np.flatnonzero(np.any(coef != 0.0, axis=1))
        return solution


def group_labels(groups: Any, n_features: int) -> IntArray:
    """Numbers of the groups of the columns, or a sentence on what is wrong with them."""
    if groups is None:
        return np.arange(n_features, dtype=np.intp)
    given = list(groups) if np.iterable(groups) and not isinstance(groups, (str, bytes)) else None
    if given is None:
        raise TypeError(
            f"groups must be one label for each column of X or a list of lists of columns, got "
            f"{shown(groups)}"
        )
    if not any(np.iterable(group) and not isinstance(group, str) for group in given):
        if len(given) != n_features:
            raise ValueError(
                f"groups must have one label for each of the {n_features} columns of X, got "
                f"{len(given)}"
            )
        return np.asarray(np.unique(np.asarray(given), return_inverse=True)[1], dtype=np.intp)
    return _from_lists(given, n_features)


def _from_lists(given: list[Any], n_features: int) -> IntArray:
    labels = np.full(n_features, -1, dtype=np.intp)
    for j, group in enumerate(given):
        columns: AnyArray = np.atleast_1d(np.asarray(group))
        if columns.size == 0 or columns.dtype.kind not in "iu":
            raise ValueError(f"groups must hold lists of one or more integers, got {shown(group)}")
        outside = columns[(columns < 0) | (columns >= n_features)]
        if len(outside):
            raise ValueError(
                f"groups must name columns 0 to {n_features - 1} of X, got {outside[0]}"
            )
        taken = columns[labels[columns] >= 0]
        if len(taken) or len(np.unique(columns)) < len(columns):
            twice = taken[0] if len(taken) else columns[0]
            raise ValueError(
                f"groups must not overlap, got column {twice} twice: repeat the column in X to "
                "have it in two groups"
            )
        labels[columns] = j
    if np.any(labels < 0):
        raise ValueError(
            f"groups must name every column of X, got none with column {np.argmin(labels)}"
        )
    return labels


__all__ = ["GroupLasso", "group_labels"]
