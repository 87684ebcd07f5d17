"""Group Lasso: sets whole groups of coefficients to zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, replace
from typing import Any

import numpy as np

from fenchel._groups import is_missing, numbers_of
from fenchel._parameters import parameters
from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import NONE, ORDER, POSITIVES, WITH_DATA, OneOf, declared, shown
from fenchel.design import CentredRows, column_copies
from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm
from fenchel.regression._linear import NormModel
from fenchel.solvers import NormFista, NormNewton, NormSolver, Solution

_WEIGHTS = NONE | OneOf(("size",)) | POSITIVES


@parameters
class GroupLasso(NormModel):
    r"""Linear least squares with a group norm as penalty (Group Lasso) or as constraint.

    .. math:: \min_{W, b}\; \alpha \|W\|_{q,p}
              + \frac{1}{2 \sum_i s_i} \sum_i s_i\, \|y_i - W^\top x_i - b\|^2, \qquad
              \|W\|_{q,p} = \Big( \sum_j \|W_j\|_q^p \Big)^{1/p}

    With ``radius``, the second term is minimized subject to :math:`\|W\|_{q,p} \le` ``radius``.
    W_j are the coefficients of the columns in group j, for all outputs together; q is the norm
    within groups and p the norm over groups. The default is the Group Lasso, L_{2,1}, which
    selects or omits whole groups. With several outputs and one group for each column it is the
    multi-task Lasso.

    Parameters
    ----------
    groups : array-like of shape (n_features,), or list of lists of int, optional
        A label for each column, or the list of columns of each group. With None each column is
        its own group. Each column must be in at least one group. Groups given as lists may
        overlap: a column then has a coefficient in each of its groups, and ``coef_`` is their
        sum (the latent Group Lasso), so that the selected columns are a union of groups.
    alpha : float, optional
        Strength of the penalty, > 0; 1e-3 if neither ``alpha`` nor ``radius`` is given. For a
        penalized problem with the sum of squares in place of half their mean, λ is
        2 * alpha * N, with N the sum of the weights. scikit-learn's ``MultiTaskLasso`` has the
        same alpha.
    radius : float, optional
        Bound on the norm, > 0, used instead of ``alpha``.
    group_weights : "size" or array-like of shape (n_groups,), optional
        Weights w_j > 0 that multiply ‖W_j‖_q in the norm. "size" takes the square roots of the
        group sizes, so that groups of different sizes are selected alike.
    q, p : float, default=2 and 1
        The norms within groups and over groups: numbers >= 1 or inf (below 1 they are not
        convex). Only p = 1 sets whole groups to zero. With 1, 2 and inf a step takes a tenth of
        the time that other values take.
    max_iter : int, default=20000
        Maximum number of steps: of the gradient, then, for q = 2 and p = 1, of Newton's method.
    fit_intercept, tol, verbose, callback, max_time
        As in :class:`Lasso`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_copies,)
        Index of the group of each column (of each copy of a column if groups overlap). Groups
        given by labels are numbered in sorted order of the labels.
    columns_ : ndarray of shape (n_copies,)
        The column of each copy; 0, 1, ... unless groups overlap.
    group_weights_ : ndarray of shape (n_groups,)
        The weights w.
    group_norms_ : ndarray of shape (n_groups,)
        ‖W_j‖_q of each group, without its weight.
    selected_groups_ : ndarray of int
        Indices of the groups with a nonzero coefficient.
    selected_ : ndarray of int
        Indices of the columns with a nonzero coefficient.
    norm_ : float
        ‖W‖_{q,p}, including the weights.
    certificate_ : Certificate
        Certificate of the problem above. The dual point is the best multiple of the residuals. In
        the penalized problem its dual norm, with 1/q + 1/q* = 1/p + 1/p* = 1, is at most alpha.
    status_, n_iter_, history_, n_features_in_, feature_names_in_
        As in :class:`QuantileRegressor`.
    coef_, intercept_
        As in :class:`Lasso`.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.5. Yuan, Lin
    (2006), Model selection and estimation in regression with grouped variables, for the weights.
    Jacob, Obozinski, Vert (2009), Group lasso with overlap and graph lasso.

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

    constraints = declared(groups=WITH_DATA, group_weights=_WEIGHTS, q=ORDER, p=ORDER)

    groups: Any = None
    alpha: float | None = None
    _: KW_ONLY
    group_weights: Any = None
    q: float = 2
    p: float = 1
    max_iter: int = 20_000

    def make_norm(self, n_features: int) -> GroupNorm:
        labels = group_labels(self.groups, n_features)[0]
        return GroupNorm(labels, float(self.q), float(self.p))

    def make_problem(self, rows: CentredRows) -> NormProblem:
        """Return the problem in the copies of the columns, divided by their group weights.

        With V_j = w_j W_j the norm is that of V without weights, and X_j / w_j replaces X_j.
        """
        problem, n_features = super().make_problem(rows), rows.features.shape[1]
        labels, columns = group_labels(self.groups, n_features)
        scales = _weights(self.group_weights, labels)[labels]
        if len(columns) == n_features and np.all(scales == 1.0):
            return problem
        copies = column_copies(problem.features, columns, scales)
        return replace(problem, features=copies, sizes=None)

    def _coefficients(self, weights: FloatArray) -> FloatArray:
        coef = np.zeros((self.n_features_in_, weights.shape[1]))
        np.add.at(coef, self.columns_, weights / self.group_weights_[self.labels_, None])
        return coef

    def _solve(
        self, rows: CentredRows, problem: NormProblem, start: FloatArray | None
    ) -> Solution:
        settings = float(self.tol), int(self.max_iter)
        newton = NormNewton(*settings)
        solver: NormSolver = NormFista(*settings) if newton.requires(problem) else newton
        solution = solver.solve(problem, start, self._callback())
        norm, weights = problem.norm, solution.weights
        self.labels_, self.columns_ = group_labels(self.groups, rows.features.shape[1])
        self.group_weights_ = _weights(self.group_weights, self.labels_)
        self.norm_ = norm.value(weights)
        self.group_norms_ = norm.lengths(weights) / self.group_weights_
        self.selected_groups_ = np.flatnonzero(self.group_norms_)
        self.selected_ = np.unique(self.columns_[np.any(weights != 0.0, axis=1)])
        return solution


def _weights(given: Any, labels: IntArray) -> FloatArray:
    """Weights of the groups."""
    sizes = np.bincount(labels).astype(float)
    if given is None:
        return np.ones(len(sizes))
    if isinstance(given, str):
        return np.sqrt(sizes)
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != sizes.shape:
        raise ValueError(
            f"group_weights must have one entry for each of the {len(sizes)} groups, got shape "
            f"{weights.shape}"
        )
    return weights


def group_labels(groups: Any, n_features: int) -> tuple[IntArray, IntArray]:
    """Return group indices and column indices, one of each for each column in a group.

    Invalid groups raise an error.
    """
    columns = np.arange(n_features, dtype=np.intp)
    if groups is None:
        return columns, columns
    given = list(groups) if np.iterable(groups) and not isinstance(groups, (str, bytes)) else None
    if given is None or isinstance(groups, Mapping):
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
        for j, label in enumerate(given):
            if is_missing(label):
                raise ValueError(
                    f"groups must have a label for each column of X, got {label} for column {j}"
                )
        as_given = np.empty(n_features, dtype=object)  # an array of words would hold 1 as "1"
        as_given[:] = given
        return numbers_of(as_given), columns
    return _from_lists(given, n_features)


def _from_lists(given: list[Any], n_features: int) -> tuple[IntArray, IntArray]:
    columns: list[AnyArray] = []
    for group in given:
        own: AnyArray = np.atleast_1d(np.asarray(group))
        if own.size == 0 or own.dtype.kind not in "iu":
            raise ValueError(f"groups must hold lists of one or more integers, got {shown(group)}")
        outside = own[(own < 0) | (own >= n_features)]
        if len(outside):
            raise ValueError(
                f"groups must name columns 0 to {n_features - 1} of X, got {outside[0]}"
            )
        if len(np.unique(own)) < len(own):
            raise ValueError(f"groups must not name a column twice in a group, got {shown(group)}")
        columns.append(own)
    labels = np.repeat(np.arange(len(columns)), [len(own) for own in columns])
    named = np.concatenate(columns)
    missing = np.setdiff1d(np.arange(n_features), named)
    if len(missing):
        raise ValueError(f"groups must name every column of X, got none with column {missing[0]}")
    if len(named) == n_features:  # no overlap: in the order of columns
        order = np.argsort(named)
        labels, named = labels[order], named[order]
    return labels.astype(np.intp), named.astype(np.intp)
