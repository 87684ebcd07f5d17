"""Estimators that choose their strength by a search, with the names of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from fenchel._parameters import parameters
from fenchel._validation import COUNT, NONE, POSITIVES, That, constraints_of, declared
from fenchel.model_selection.search import Estimator, PathSearchCV, of_best
from fenchel.regression import GroupLasso, KernelRidge, Lasso, Ridge

_SQUARES = "neg_mean_squared_error"  # R² of small folds is that of the fold that varies least


def _are_candidates(values: Any) -> bool:
    words = isinstance(values, (str, bytes, Mapping))
    return np.iterable(values) and not words and len(list(values)) > 0


@parameters
class _NamedSearch(PathSearchCV[Estimator]):
    """Base class: strengths, mean scores, and a fit with the best of them to all rows."""

    aggregation, refit = "mean", True
    constraints = declared(alphas=COUNT | POSITIVES)

    _: KW_ONLY
    cv: Any = 5
    scoring: Any = None
    selection: str = "auto"
    n_jobs: int | None = None
    verbose: int = 0

    def _candidates(self) -> dict[str, Any]:
        return {"alpha": getattr(self, "alphas")}  # noqa: B009  (of those that it is the base of)

    def _scoring(self) -> Any:
        return _SQUARES if self.scoring is None else self.scoring


@parameters
class _ByRows(_NamedSearch[Estimator]):
    """Base class: leave-one-out in closed form, unless folds or a scoring are given."""

    _: KW_ONLY
    cv: Any = None

    def _scoring(self) -> Any:
        return "loo" if self.scoring is None and self.cv is None else super()._scoring()


@parameters
class _Linear(_NamedSearch[Estimator]):
    """Base class: with the coefficients of the final fit."""

    _: KW_ONLY
    fit_intercept: bool = True

    coef_ = of_best("coef_", "Coefficients of ``best_estimator_``.")
    intercept_ = of_best("intercept_", "Offset of ``best_estimator_``.")


@parameters
class KernelRidgeCV(_ByRows[KernelRidge]):
    """Kernel ridge regression with cross-validated strength and length scale.

    The same as ``PathSearchCV(KernelRidge(kernel=kernel), grid, scoring="loo")`` with the grid
    ``{"alpha": alphas, "length_scale": length_scales}``, and parameters as those of
    :class:`sklearn.linear_model.RidgeCV`.

    Parameters
    ----------
    alphas : int or sequence of float, default=20
        Strengths, or the number of strengths on a geometric grid in the units of the problem.
    length_scales : sequence, optional
        Candidates for the length scale of the kernel; None keeps the kernel as given.
    kernel : None, str, kernel, callable or OperatorKernel, default=None
        As in :class:`fenchel.KernelRidge`.
    cv : int, splitter or iterable, optional
        Folds. None with ``scoring=None`` uses the exact leave-one-out error.
    scoring : str or callable, optional
        As in :class:`PathSearchCV`; with folds, minus the mean squared error by default.
    selection, n_jobs, verbose
        As in :class:`PathSearchCV`.

    Attributes
    ----------
    alpha_, best_estimator_, best_params_, best_score_, cv_results_
        As in :class:`PathSearchCV`.

    Notes
    -----
    Rows are assumed to be independent. If a row was copied (equal in X and y), its copy remains
    when the row is left out. If all rows appear twice, the choice therefore tends to
    interpolation. Give each row once, with the number of its copies as ``sample_weight``, or keep
    copies together with ``cv=GroupKFold(5)`` and ``groups``. Giving a number of folds does not
    help. Rows that happen to be equal, such as those of factors, are not copies.

    Examples
    --------
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.model_selection import KernelRidgeCV
    >>> X, y, _ = make_sine_quantiles(100, random_state=0)
    >>> model = KernelRidgeCV(alphas=50).fit(X, y)
    >>> abs(model.best_score_ + model.best_estimator_.loo_error_) < 1e-9
    True
    """

    constraints = declared(
        length_scales=NONE | That("a sequence of one or more candidates", _are_candidates),
        kernel=constraints_of(KernelRidge)["kernel"],
    )

    alphas: Any = 20
    _: KW_ONLY
    length_scales: Any = None
    kernel: Any = None

    def tuned(self) -> KernelRidge:
        """Return the estimator whose parameters are searched."""
        return KernelRidge(kernel=self.kernel)

    def _candidates(self) -> dict[str, Any]:
        scales = {} if self.length_scales is None else {"length_scale": self.length_scales}
        return {**super()._candidates(), **scales}


@parameters
class RidgeCV(_Linear[Ridge], _ByRows[Ridge]):
    """Ridge regression with the strength chosen by leave-one-out cross-validation.

    The same as ``PathSearchCV(Ridge(), {"alpha": alphas}, scoring="loo")``: one eigendecomposition
    serves all strengths and all rows left out.

    Parameters
    ----------
    alphas : int or sequence of float, default=50
        Strengths, or the number of strengths on a geometric grid in the units of the problem. At
        the weakest strength of this grid, columns with a small standard deviation are hardly
        penalized either. The alpha of :class:`sklearn.linear_model.RidgeCV` is n_samples times
        this one.
    fit_intercept : bool, default=True
        Whether each output has an unpenalized offset.
    cv : int, splitter or iterable, optional
        Folds. None with ``scoring=None`` uses the exact leave-one-out error.
    scoring : str or callable, optional
        As in :class:`PathSearchCV`; with folds, minus the mean squared error by default.
    selection, n_jobs, verbose
        As in :class:`PathSearchCV`.

    Attributes
    ----------
    alpha_, best_estimator_, best_score_, cv_results_, certificate_
        As in :class:`PathSearchCV`.
    coef_, intercept_
        Coefficients and offset of ``best_estimator_``.

    Notes
    -----
    Copied rows are too easy to predict from their copies, see :class:`KernelRidgeCV`.

    Examples
    --------
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.model_selection import RidgeCV
    >>> X, y = load_engel(return_X_y=True)
    >>> model = RidgeCV().fit(X, y)
    >>> abs(model.best_score_ / model.best_estimator_.loo_error_ + 1.0) < 1e-6
    True
    """

    alphas: Any = 50

    def tuned(self) -> Ridge:
        """Return the estimator whose strength is searched."""
        return Ridge(fit_intercept=self.fit_intercept)


@parameters
class LassoCV(_Linear[Lasso]):
    """The Lasso with the strength chosen by cross-validation along a path in each fold.

    The same as ``PathSearchCV(Lasso(), {"alpha": alphas}, cv=cv)`` with the mean squared error as
    score, as in :class:`sklearn.linear_model.LassoCV`.

    Parameters
    ----------
    alphas : int or sequence of float, default=50
        Strengths, or the number of strengths on a geometric grid, from the one at which all
        coefficients are zero to a thousandth of it, as in :class:`sklearn.linear_model.LassoCV`.
        If columns have different standard deviations, the grid goes down further, by the ratio
        of the smallest to the largest, at least 1e-4, so that columns in all units can enter.
        The strengths are those of scikit-learn, and the penalty still depends on units:
        standardize the columns if all should be penalized alike.
    fit_intercept : bool, default=True
        Whether each output has an unpenalized offset.
    tol, max_iter
        As in :class:`fenchel.Lasso`.
    scoring : str or callable, optional
        As in :class:`PathSearchCV`, minus the mean squared error by default. Means of R² over
        small folds depend most on the fold whose targets vary least.
    cv, selection, n_jobs, verbose
        As in :class:`PathSearchCV`.

    Attributes
    ----------
    alpha_, best_estimator_, best_score_, cv_results_, certificate_
        As in :class:`PathSearchCV`.
    coef_, intercept_
        Coefficients and offset of ``best_estimator_``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.model_selection import LassoCV
    >>> X = np.random.default_rng(0).normal(size=(60, 30))
    >>> y = X[:, 0] - 2.0 * X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=60)
    >>> model = LassoCV(selection="one_standard_error").fit(X, y)
    >>> model.best_estimator_.selected_
    array([0, 1])
    """

    alphas: Any = 50
    _: KW_ONLY
    tol: float = 1e-6
    max_iter: int = 10_000

    def tuned(self) -> Lasso:
        """Return the estimator whose strength is searched."""
        return Lasso(fit_intercept=self.fit_intercept, tol=self.tol, max_iter=self.max_iter)


@parameters
class GroupLassoCV(_Linear[GroupLasso]):
    """The Group Lasso with the strength chosen by cross-validation along a path in each fold.

    The same as ``PathSearchCV(GroupLasso(groups), {"alpha": alphas}, cv=cv)`` with the mean
    squared error as score.

    Parameters
    ----------
    groups, group_weights, q, p
        As in :class:`fenchel.GroupLasso`.
    alphas : int or sequence of float, default=50
        Strengths, or the number of strengths on a geometric grid, as in :class:`LassoCV`; the
        standard deviation of a group is the largest of its columns. For p other than 1 the grid
        always ends at a thousandth of its start.
    fit_intercept, tol, max_iter, cv, scoring, selection, n_jobs, verbose
        As in :class:`LassoCV`.

    Attributes
    ----------
    alpha_, best_estimator_, best_score_, cv_results_, certificate_
        As in :class:`PathSearchCV`.
    coef_, intercept_
        Coefficients and offset of ``best_estimator_``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.model_selection import GroupLassoCV
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> y = X[:, 0] - 2.0 * X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=100)
    >>> model = GroupLassoCV([0, 0, 1, 1, 2, 2], selection="one_standard_error").fit(X, y)
    >>> model.best_estimator_.selected_groups_
    array([0])
    """

    constraints = declared(
        **{
            name: check
            for name, check in constraints_of(GroupLasso).items()
            if name in ("groups", "group_weights", "q", "p")
        }
    )

    groups: Any = None
    alphas: Any = 50
    _: KW_ONLY
    group_weights: Any = None
    q: float = 2
    p: float = 1
    tol: float = 1e-6
    max_iter: int = 20_000

    def tuned(self) -> GroupLasso:
        """Return the estimator whose strength is searched."""
        return GroupLasso(
            self.groups,
            group_weights=self.group_weights,
            q=self.q,
            p=self.p,
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            max_iter=self.max_iter,
        )
