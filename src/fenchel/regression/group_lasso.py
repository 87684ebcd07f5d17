"""Group Lasso: whole groups of coefficients are zero."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, replace
from typing import Any

import numpy as np

from fenchel._parameters import parameters
from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import NONE, ORDER, POSITIVES, WITH_DATA, OneOf, declared, shown
from fenchel.design import CentredRows
from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm
from fenchel.regression._linear import NormModel
from fenchel.solvers import NormFista, Solution

_WEIGHTS = NONE | OneOf(("size",)) | POSITIVES


@parameters
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
        Each column must be in one. Groups that are lists may overlap: a column then has a
        coefficient in each of its groups, and ``coef_`` is their sum (the latent Group Lasso), so
        that what is selected is a union of groups.
    alpha : float, optional
        Strength of the penalty, > 0; 1e-3 if neither it nor ``radius`` is given. In a
        penalized form with the sum of squares in place of half their mean, λ is
        2 * alpha * N, with N the sum of the weights. scikit-learn's ``MultiTaskLasso(alpha)`` is
        alpha here.
    radius : float, optional
        Bound on the norm, > 0, in place of ``alpha``.
    group_weights : "size" or array-like of shape (n_groups,), optional
        w_j > 0 with ‖W_j‖_q multiplied by w_j in the norm; "size" are the roots of the numbers of
        columns, with which groups of any size are selected alike.
    q, p : float, default=2 and 1
        The norms inside of groups and over groups, numbers >= 1 or inf: below 1 they are not
        convex. Only p = 1 sets whole groups to zero. With 1, 2 and inf a step takes a tenth of
        the time of others.
    max_iter : int, default=20000
        Limit on the number of gradient steps.
    fit_intercept, tol, verbose, callback, max_time
        As in :class:`Lasso`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_copies,)
        Number of the group of each column, of each of its copies where groups overlap. Groups
        given by labels are numbered in sorted order.
    columns_ : ndarray of shape (n_copies,)
        The column of each copy: 0, 1, ... unless groups overlap.
    group_weights_ : ndarray of shape (n_groups,)
        w.
    group_norms_ : ndarray of shape (n_groups,)
        ‖W_j‖_q, without its weight.
    selected_groups_ : ndarray of int
        Numbers of the groups with a coefficient that is not zero.
    selected_ : ndarray of int
        Columns with a coefficient that is not zero.
    norm_ : float
        ‖W‖_{q,p}, with weights.
    certificate_ : Certificate
        Of the very problem above. The dual point is the best multiple of the residuals; in the
        penalized form its dual norm, that with 1/q + 1/q* = 1/p + 1/p* = 1, is kept below alpha.
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
        """Return the problem of the copies of columns, over the weights of their groups.

        With V_j = w_j W_j its norm is that of V without weights, and X_j / w_j is in the place of
        X_j.
        """
        problem, n_features = super().make_problem(rows), rows.features.shape[1]
        labels, columns = group_labels(self.groups, n_features)
        scales = _weights(self.group_weights, labels)[labels]
        if len(columns) == n_features and np.all(scales == 1.0):
            return problem
        if not isinstance(problem.features, np.ndarray):
            return replace(problem, features=problem.features.copies(columns, scales))
        copies = problem.features[:, columns] / scales
        return replace(problem, features=np.asfortranarray(copies), sizes=None)

    def _coefficients(self, weights: FloatArray) -> FloatArray:
        coef = np.zeros((self.n_features_in_, weights.shape[1]))
        np.add.at(coef, self.columns_, weights / self.group_weights_[self.labels_, None])
        return coef

    def _solve(
        self, rows: CentredRows, problem: NormProblem, start: FloatArray | None
    ) -> Solution:
        solver = NormFista(float(self.tol), int(self.max_iter))
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
    """Numbers of groups and of columns, one of each for each column in a group.

    Or a sentence on what is wrong with them.
    """
    columns = np.arange(n_features, dtype=np.intp)
    if groups is None:
        return columns, columns
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
        for j, label in enumerate(given):
            if label is None or (isinstance(label, float) and math.isnan(label)):
                raise ValueError(
                    f"groups must have a label for each column of X, got {label} for column {j}"
                )
        labels = np.unique(np.asarray(given), return_inverse=True)[1]
        return np.asarray(labels, dtype=np.intp), columns
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
