"""Linear models that choose their strength: the one search, under the names that users expect."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from fenchel._typing import FloatArray
from fenchel._validation import constraints_of, declared
from fenchel.model_selection.search import STRENGTHS, Estimator, PathSearchCV
from fenchel.regression import GroupLasso, Lasso, Ridge


class _LinearCV(PathSearchCV[Estimator]):
    """What the three share: the grid of strengths, and coefficients of the final fit."""

    aggregation, refit = "mean", True
    constraints = declared(alphas=STRENGTHS)

    alphas: Any

    def _candidates(self) -> dict[str, Any]:
        return {"alpha": self.alphas}

    @property
    def coef_(self) -> FloatArray:
        """Coefficients of ``best_estimator_``."""
        check_is_fitted(self, "best_estimator_")
        best: Any = self.best_estimator_
        coef: FloatArray = best.coef_
        return coef

    @property
    def intercept_(self) -> Any:
        """Offset of ``best_estimator_``."""
        check_is_fitted(self, "best_estimator_")
        best: Any = self.best_estimator_
        return best.intercept_


class RidgeCV(_LinearCV[Ridge]):
    """Ridge regression that chooses its strength, by its leave-one-out error.

    ``PathSearchCV(Ridge(), {"alpha": alphas}, scoring="loo")``: all strengths, and all rows left
    out, from one eigendecomposition.

    Parameters
    ----------
    alphas : int or sequence of float, default=50
        Strengths, or how many of them on a geometric grid in the units of the problem. That of
        :class:`sklearn.linear_model.RidgeCV` is n_samples times this.
    fit_intercept : bool, default=True
        Whether each output has a free offset.
    cv : int, splitter or iterable, optional
        Folds; None with ``scoring=None`` is the exact leave-one-out error.
    scoring, selection, n_jobs, verbose
        As in :class:`PathSearchCV`.

    Attributes
    ----------
    alpha_, best_estimator_, best_score_, cv_results_, certificate_
        As in :class:`PathSearchCV`.
    coef_, intercept_
        Those of ``best_estimator_``.

    Examples
    --------
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.model_selection import RidgeCV
    >>> X, y = load_engel(return_X_y=True)
    >>> model = RidgeCV().fit(X, y)
    >>> abs(model.best_score_ / model.best_estimator_.loo_error_ + 1.0) < 1e-6
    True
    """

    def __init__(
        self,
        alphas: Any = 50,
        *,
        fit_intercept: bool = True,
        cv: Any = None,
        scoring: Any = None,
        selection: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.verbose = verbose

    def tuned(self) -> Ridge:
        """Return the estimator whose strength is searched."""
        return Ridge(fit_intercept=self.fit_intercept)

    def _scoring(self) -> Any:
        return "loo" if self.scoring is None and self.cv is None else self.scoring


class LassoCV(_LinearCV[Lasso]):
    """The Lasso with its strength chosen by cross-validation, each fold along one path.

    ``PathSearchCV(Lasso(), {"alpha": alphas}, cv=cv)``.

    Parameters
    ----------
    alphas : int or sequence of float, default=50
        Strengths, or how many of them on a geometric grid, from that at which all coefficients
        are zero to a thousandth of it. Those of :class:`sklearn.linear_model.LassoCV` are the
        same.
    fit_intercept : bool, default=True
        Whether each output has a free offset.
    tol, max_iter
        As in :class:`fenchel.Lasso`.
    cv, scoring, selection, n_jobs, verbose
        As in :class:`PathSearchCV`.

    Attributes
    ----------
    alpha_, best_estimator_, best_score_, cv_results_, certificate_
        As in :class:`PathSearchCV`.
    coef_, intercept_
        Those of ``best_estimator_``.

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

    def __init__(
        self,
        alphas: Any = 50,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.verbose = verbose

    def tuned(self) -> Lasso:
        """Return the estimator whose strength is searched."""
        return Lasso(fit_intercept=self.fit_intercept, tol=self.tol, max_iter=self.max_iter)


class GroupLassoCV(_LinearCV[GroupLasso]):
    """The Group Lasso with its strength chosen by cross-validation, each fold along one path.

    ``PathSearchCV(GroupLasso(groups), {"alpha": alphas}, cv=cv)``.

    Parameters
    ----------
    groups, group_weights, q, p
        As in :class:`fenchel.GroupLasso`.
    alphas : int or sequence of float, default=50
        As in :class:`LassoCV`.
    fit_intercept, tol, max_iter, cv, scoring, selection, n_jobs, verbose
        As in :class:`LassoCV`.

    Attributes
    ----------
    alpha_, best_estimator_, best_score_, cv_results_, certificate_
        As in :class:`PathSearchCV`.
    coef_, intercept_
        Those of ``best_estimator_``.

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

    def __init__(
        self,
        groups: Any = None,
        alphas: Any = 50,
        *,
        group_weights: Any = None,
        q: float = 2,
        p: float = 1,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 20_000,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.groups = groups
        self.alphas = alphas
        self.group_weights = group_weights
        self.q = q
        self.p = p
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.verbose = verbose

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


__all__ = ["GroupLassoCV", "LassoCV", "RidgeCV"]
