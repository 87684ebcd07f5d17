"""Non-negative models that choose their own parameters."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from fenchel._typing import AnyArray, ArrayLike, FloatArray
from fenchel.model_selection.search import AlphaSearch, PathSearch
from fenchel.positive.density import DensityEstimator
from fenchel.positive.heteroscedastic import HeteroscedasticRegressor
from fenchel.positive.non_crossing import NonCrossingQuantileRegressor
from fenchel.positive.non_negative import NonNegativeRegressor

_SHARED = ("kernel", "features", "rank", "solver", "tol", "max_iter", "random_state")
_STRONGEST, _WEAKEST = 1.0, 1e-8


class _PositiveSearch(AlphaSearch):
    """What the searches below share: strengths in units of loss and kernel, both one."""

    trace_penalties: Any

    def _grid(self) -> dict[str, Any]:
        return {"trace_penalty": self.trace_penalties}

    def _default_alphas(
        self, plain: Any, X: AnyArray, y: Any, sample_weight: AnyArray | None, n: int
    ) -> FloatArray:
        return np.geomspace(_STRONGEST, _WEAKEST, n)

    @property
    def model_(self) -> Any:
        """The non-negative function of the final fit."""
        check_is_fitted(self)
        return self.best_estimator_.model_


class NonNegativeRegressorCV(_PositiveSearch, PathSearch):
    """Non-negative regression whose strengths and width are cross-validated.

    Parameters
    ----------
    loss, level, kappa, epsilon
        As in :class:`fenchel.positive.NonNegativeRegressor`.
    alphas : int or sequence of float, default=9
        Strengths of the squared norm, or how many of them on a geometric grid from 1 to 1e-8.
        Each path runs from the largest to the smallest, warm-started.
    trace_penalties : sequence of float, default=(0.0, 1e-4)
        Candidates for the strength of the trace.
    length_scales : sequence, optional
        Candidates for the ``length_scale`` of the kernel, numbers or rules; None keeps the
        kernel as it is. A rule is measured on each training fold.
    cv : int, splitter or iterable, default=5
        Folds, as in :class:`sklearn.model_selection.GridSearchCV`.
    scoring : str or callable, optional
        As in scikit-learn; by default the ``score`` of the plain estimator, D².
    selection : {"min", "one_standard_error"}, default="min"
        The best mean score, or the largest alpha within one standard error of it, the other
        parameters being those of the best.
    n_jobs : int, optional
        Number of processes over folds and length scales.
    kernel, features, rank, solver, tol, max_iter, random_state
        As in :class:`fenchel.positive.NonNegativeRegressor`.

    Attributes
    ----------
    best_estimator_ : NonNegativeRegressor
        Fitted on all rows with the chosen parameters.
    best_params_, best_index_, best_score_, cv_results_
        As in :class:`sklearn.model_selection.GridSearchCV`.
    alpha_ : float
        The chosen strength.
    model_ : PSDModel
        Of the final fit.
    certificate_ : Certificate
        Of the final fit.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.model_selection import NonNegativeRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2.0, 2.0, size=(100, 1))
    >>> y = rng.poisson(np.exp(X[:, 0]))
    >>> model = NonNegativeRegressorCV("poisson", alphas=[1e-1, 1e-3, 1e-5]).fit(X, y)
    >>> model.alpha_ in (1e-1, 1e-3, 1e-5)
    True
    """

    def __init__(
        self,
        loss: Any = "squared",
        *,
        level: float = 0.5,
        kappa: float = 1.0,
        epsilon: float = 0.1,
        alphas: Any = 9,
        trace_penalties: Any = (0.0, 1e-4),
        length_scales: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        kernel: Any = None,
        features: Any = "cholesky",
        rank: int | None = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.level = level
        self.kappa = kappa
        self.epsilon = epsilon
        self.alphas = alphas
        self.trace_penalties = trace_penalties
        self.length_scales = length_scales
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.kernel = kernel
        self.features = features
        self.rank = rank
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _plain(self) -> NonNegativeRegressor:
        names = ("level", "kappa", "epsilon", *_SHARED)
        return NonNegativeRegressor(self.loss, **{name: getattr(self, name) for name in names})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


class HeteroscedasticRegressorCV(_PositiveSearch, PathSearch):
    """Mean and variance, with cross-validated strengths and width.

    Parameters
    ----------
    alphas : int or sequence of float, default=9
        Strengths, or how many of them on a geometric grid from 1 to 1e-8. Each path runs from
        the largest to the smallest, warm-started.
    scoring : str or callable, optional
        As in scikit-learn; by default the mean log-likelihood.
    selection : {"min", "one_standard_error"}, default="one_standard_error"
        As in :class:`NonNegativeRegressorCV`. One target where a small variance is predicted can
        cost more than all others: the largest alpha within one standard error is the safer
        choice.
    trace_penalties, length_scales, cv, n_jobs
        As in :class:`NonNegativeRegressorCV`.
    max_std, kernel, features, rank, solver, tol, max_iter, random_state
        As in :class:`fenchel.positive.HeteroscedasticRegressor`.

    Attributes
    ----------
    best_estimator_ : HeteroscedasticRegressor
        Fitted on all rows with the chosen parameters.
    best_params_, best_index_, best_score_, cv_results_
        As in :class:`sklearn.model_selection.GridSearchCV`.
    alpha_ : float
        The chosen strength.
    certificate_ : Certificate
        Of the final fit.

    Examples
    --------
    >>> from sklearn.model_selection import KFold
    >>> from fenchel.datasets import load_mcycle
    >>> from fenchel.model_selection import HeteroscedasticRegressorCV
    >>> X, y = load_mcycle(return_X_y=True)
    >>> folds = KFold(5, shuffle=True, random_state=0)  # the rows are sorted
    >>> model = HeteroscedasticRegressorCV([1.0, 1e-2, 1e-4], cv=folds).fit(X, y)
    >>> model.alpha_
    0.0001
    """

    def __init__(
        self,
        alphas: Any = 9,
        *,
        trace_penalties: Any = (0.0, 1e-4),
        length_scales: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "one_standard_error",
        n_jobs: int | None = None,
        max_std: float = 3.0,
        kernel: Any = None,
        features: Any = "cholesky",
        rank: int | None = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        self.alphas = alphas
        self.trace_penalties = trace_penalties
        self.length_scales = length_scales
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.max_std = max_std
        self.kernel = kernel
        self.features = features
        self.rank = rank
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _plain(self) -> HeteroscedasticRegressor:
        shared = {name: getattr(self, name) for name in _SHARED}
        return HeteroscedasticRegressor(max_std=self.max_std, **shared)

    def _natural_scoring(self) -> Any:
        return _log_likelihood

    def predict(  # type: ignore[override]
        self, X: ArrayLike, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict mean and standard deviation, see :class:`HeteroscedasticRegressor`."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, return_std)

    def predict_interval(self, X: ArrayLike, coverage: float = 0.95) -> FloatArray:
        """Predict the central interval that holds y with a probability, (n_samples, 2)."""
        check_is_fitted(self)
        return self.best_estimator_.predict_interval(X, coverage)

    def log_likelihood(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean logarithm of the density of targets y at rows X."""
        check_is_fitted(self)
        return self.best_estimator_.log_likelihood(X, y, sample_weight)

    @property
    def model_(self) -> Any:
        """The precision as a non-negative function."""
        check_is_fitted(self)
        return self.best_estimator_.precision_model_


class DensityEstimatorCV(DensityMixin, _PositiveSearch):
    """Density whose strengths and width are chosen by the likelihood of held-out rows.

    Parameters
    ----------
    alphas : int or sequence of float, default=9
        Strengths, or how many of them on a geometric grid from 1 to 1e-8. Each path runs from
        the largest to the smallest, warm-started.
    scoring : callable, optional
        As in scikit-learn; by default the mean log-likelihood.
    trace_penalties, length_scales, cv, selection, n_jobs
        As in :class:`NonNegativeRegressorCV`; with ``length_scales=None`` and ``kernel=None``
        the width is that rule of :class:`fenchel.positive.DensityEstimator`.
    support, kernel, features, rank, solver, tol, max_iter, random_state
        As in :class:`fenchel.positive.DensityEstimator`.

    Attributes
    ----------
    best_estimator_ : DensityEstimator
        Fitted on all rows with the chosen parameters.
    best_params_, best_index_, best_score_, cv_results_
        As in :class:`sklearn.model_selection.GridSearchCV`.
    alpha_ : float
        The chosen strength.
    model_ : PSDModel
        Of the final fit.
    certificate_ : Certificate
        Of the final fit.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.model_selection import DensityEstimatorCV
    >>> X = np.random.default_rng(0).normal(size=(100, 1))
    >>> density = DensityEstimatorCV([1e-1, 1e-3, 1e-5], length_scales=[0.02, 1.0]).fit(X)
    >>> density.best_params_["length_scale"]
    1.0
    """

    def __init__(
        self,
        alphas: Any = 9,
        *,
        trace_penalties: Any = (0.0, 1e-4),
        length_scales: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        support: Any = None,
        kernel: Any = None,
        features: Any = "cholesky",
        rank: int | None = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        self.alphas = alphas
        self.trace_penalties = trace_penalties
        self.length_scales = length_scales
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.support = support
        self.kernel = kernel
        self.features = features
        self.rank = rank
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the parameters by cross-validation and refit on all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights, for fitting and for scoring.

        Returns
        -------
        self
        """
        return super().fit(X, None, sample_weight)

    def _plain(self) -> DensityEstimator:
        shared = {name: getattr(self, name) for name in _SHARED}
        return DensityEstimator(support=self.support, **shared)

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Logarithm of the density at rows X, (n_samples,); -inf outside of the support."""
        check_is_fitted(self)
        return self.best_estimator_.score_samples(X)

    def score(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log-likelihood of rows X."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y, sample_weight))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draw rows from the density, (n_samples, n_features)."""
        check_is_fitted(self)
        return self.best_estimator_.sample(n_samples, random_state)

    def integral(self, domain: Any = None) -> float:
        """Probability of a box ``(low, high)``, of everything by default."""
        check_is_fitted(self)
        return self.best_estimator_.integral(domain)


class NonCrossingQuantileRegressorCV(_PositiveSearch, PathSearch):
    """Quantile curves that cross nowhere, with cross-validated strengths and width.

    Parameters
    ----------
    levels, anchor
        As in :class:`fenchel.positive.NonCrossingQuantileRegressor`.
    alphas : int or sequence of float, default=9
        Strengths, or how many of them on a geometric grid from 1 to 1e-8. Each path runs from
        the largest to the smallest, warm-started.
    gap_strengths : sequence of float, default=(1.0, 0.01)
        Candidates for the strength of the distances as a multiple of alpha.
    trace_penalties : sequence of float, default=(1e-4,)
        Candidates for the strength of the traces.
    scoring : str or callable, optional
        As in scikit-learn; by default the ``score`` of the plain estimator, the mean D².
    length_scales, cv, selection, n_jobs
        As in :class:`NonNegativeRegressorCV`.
    kernel, features, rank, gap_rank, solver, tol, max_iter, random_state
        As in :class:`fenchel.positive.NonCrossingQuantileRegressor`.

    Attributes
    ----------
    best_estimator_ : NonCrossingQuantileRegressor
        Fitted on all rows with the chosen parameters.
    best_params_, best_index_, best_score_, cv_results_
        As in :class:`sklearn.model_selection.GridSearchCV`.
    alpha_ : float
        The chosen strength.
    certificate_ : Certificate
        Of the final fit.

    Examples
    --------
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.model_selection import NonCrossingQuantileRegressorCV
    >>> X, y, _ = make_sine_quantiles(60, random_state=0)
    >>> model = NonCrossingQuantileRegressorCV(
    ...     [0.1, 0.5, 0.9], alphas=[1.0, 1e-3], gap_strengths=[1.0], cv=2, tol=1e-4
    ... ).fit(X, y)
    >>> model.alpha_
    0.001
    """

    def __init__(
        self,
        levels: Any = (0.25, 0.5, 0.75),
        *,
        anchor: float | None = None,
        alphas: Any = 9,
        gap_strengths: Any = (1.0, 0.01),
        trace_penalties: Any = (1e-4,),
        length_scales: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        kernel: Any = None,
        features: Any = "cholesky",
        rank: int | None = None,
        gap_rank: int | None = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        self.levels = levels
        self.anchor = anchor
        self.alphas = alphas
        self.gap_strengths = gap_strengths
        self.trace_penalties = trace_penalties
        self.length_scales = length_scales
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.kernel = kernel
        self.features = features
        self.rank = rank
        self.gap_rank = gap_rank
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _plain(self) -> NonCrossingQuantileRegressor:
        shared = {name: getattr(self, name) for name in (*_SHARED, "anchor", "gap_rank")}
        return NonCrossingQuantileRegressor(self.levels, **shared)

    def _grid(self) -> dict[str, Any]:
        return {**super()._grid(), "gap_strength": self.gap_strengths}

    def predict_interval(self, X: ArrayLike, coverage: float) -> FloatArray:
        """Predict the central interval of a coverage, from the two levels that bound it."""
        check_is_fitted(self)
        return self.best_estimator_.predict_interval(X, coverage)


def _log_likelihood(
    model: HeteroscedasticRegressor, X: AnyArray, y: AnyArray, sample_weight: Any = None
) -> float:
    return model.log_likelihood(X, y, sample_weight)


__all__ = [
    "DensityEstimatorCV",
    "HeteroscedasticRegressorCV",
    "NonCrossingQuantileRegressorCV",
    "NonNegativeRegressorCV",
]
