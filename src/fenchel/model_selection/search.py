"""Cross-validation along warm-started paths of the regularization strength."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, Generic, Self, TypeVar

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.metrics import get_scorer_names
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from fenchel._bases import FEATURES, BaseEstimator, MetaEstimatorMixin, take_features
from fenchel._typing import AnyArray, ArrayLike, FloatArray
from fenchel._validation import (
    BOOLEAN,
    CALLABLE,
    NONE,
    CheckedParameters,
    Having,
    OneOf,
    That,
    declared,
)
from fenchel.estimator import all_or_nothing
from fenchel.model_selection._callbacks import CallbackSupportMixin, Tasks, with_callbacks
from fenchel.model_selection._candidates import Grid, column, make_grid
from fenchel.model_selection._fold_scores import (
    Data,
    Scores,
    scorer_of,
    scores_of_fold,
    scores_of_rows,
)
from fenchel.model_selection._folds import check_groups
from fenchel.model_selection._progress import Told
from fenchel.positive import (
    DensityEstimator,
    HeteroscedasticRegressor,
    NonCrossingQuantileRegressor,
)
from fenchel.regression import KernelRidge, QuantileRegressor
from fenchel.searchable import Searchable

SELECTIONS = ("auto", "min", "one_standard_error")
AGGREGATIONS = ("mean", "median")
_GRID = "a dict from names of parameters to their candidates"
_OURS = Having(
    "one of fenchel with a kernel, such as KernelRidge() (GridSearchCV of scikit-learn takes any)",
    ("prepare", "fit_prepared", "path_grid"),
)
_SCORERS = That(
    "'loo', a name of sklearn.metrics.get_scorer_names() such as 'r2'",
    lambda name: isinstance(name, str) and name in {"loo", *get_scorer_names()},
    ValueError,
)
_NO_SCORE = (
    "no candidate has a score that is a finite number, so that the choice of {} says nothing: "
    "choose another scoring, or folds with more rows (R² needs two)"
)

Estimator = TypeVar("Estimator", bound=Searchable)


def _delegated(like: Callable[..., Any]) -> Any:
    """Return a method of the best estimator with this signature, if the estimator has it."""
    name = like.__name__

    def available(search: PathSearchCV[Any]) -> bool:
        getattr(getattr(search, "best_estimator_", search.tuned()), name)
        return True

    def method(self: PathSearchCV[Any], *args: Any, **options: Any) -> Any:
        check_is_fitted(self, "best_estimator_")
        return getattr(self.best_estimator_, name)(*args, **options)

    method = wraps(like)(method)
    method.__doc__ = f"Call ``{name}`` of ``best_estimator_``, fitted on all rows."
    decorated: Callable[..., Any] = available_if(available)(method)
    return decorated


def of_best(name: str, doc: str) -> property:
    """Return an attribute of the best estimator, available after a fit."""

    def value(search: PathSearchCV[Any]) -> Any:
        check_is_fitted(search, "best_estimator_")
        return getattr(search.best_estimator_, name)

    return property(value, doc=doc)


class PathSearchCV(
    CheckedParameters, CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator, Generic[Estimator]
):
    r"""Grid search by cross-validation along warm-started paths of the strength.

    .. math:: \max_{\mathrm{parameters}}\;
              \operatorname*{mean\ or\ median}_{\mathrm{folds}\ F}\;
              \mathrm{score}(h_{-F};\, F)

    where :math:`h_{-F}` is fitted without fold F. It chooses the same parameters as
    :class:`sklearn.model_selection.GridSearchCV` of the estimator with ``learn=False``, up to the
    tolerance of the fits, in less time.
    For each fold, one feature map is computed for each setting of the parameters that need one
    (kernel, length scale, features, rank, ...). On this map, and for each setting of the other
    parameters, alpha runs from the largest to the smallest value, and every fit starts from the
    one before. For functional outputs, κ or ε is varied in the same way for each alpha, with
    starting points extrapolated from the last two fits.

    A search replaces learning: candidates and the final fit use ``learn=False``, with length
    scales computed from the data by rules. If ``refit_offsets`` of the estimator is "auto", the
    offsets of the final fit are moved to held-out rows, as they are if parameters are learned.
    This takes additional fits with the chosen parameters, since the folds of the search may be of
    any kind. Candidates keep the offsets of their fits.

    Parameters
    ----------
    estimator : estimator, optional
        A kernel estimator of this library, by default :class:`fenchel.KernelRidge`. Its
        parameters that are not in the grid are kept.
    param_grid : dict, optional
        Candidates for parameters of the estimator, as in GridSearchCV. ``"alpha"``, and
        ``"kappa"`` and ``"epsilon"`` of :class:`fenchel.functional.FunctionalRegressor`, may also
        be a number of values on a geometric grid in the units of the problem: ``{"alpha": 20}``.
        ``"length_scale"`` is that of the kernel, or of the kernel within it;
        ``"gap_length_scale"`` is that of ``gap_kernel``, and so on. Its values are numbers, or
        rules such as "median", which are evaluated on each training fold. None is the default
        grid of the estimator: 20 strengths for regressors; 10 for functional outputs, each with
        10 values of κ or ε if the loss has this parameter; 9 for non-negative models, each with
        and without ``trace_penalty``.
    cv : int, splitter or iterable, default=5
        Folds, as in GridSearchCV. A splitter by groups, such as GroupKFold, uses the ``groups``
        of ``fit``. If a number, only the rows of positive weight are split, as if those of
        weight zero were absent. A splitter sees all rows.
    scoring : str or callable, optional
        As in scikit-learn; or "loo", which is minus the ``loo_error_`` of
        :class:`fenchel.KernelRidge`, for all strengths from one eigendecomposition. With "loo",
        ``cv`` and ``solver`` are not used in the search, ``cv_results_`` has one split, and the
        standard error is that of the mean of the n squared residuals. Strengths at which a
        residual is undefined have the score NaN and rank last. If a row appears twice in the
        table, its copy remains when it is left out, so that the scores reward interpolation.
        The same happens with folds that separate copies. Give such rows once, with their number
        as ``sample_weight``, or keep copies together by ``groups``. The default is the ``score``
        of the estimator; for :class:`fenchel.HeteroscedasticRegressor` it is the mean
        log-likelihood, and for functional outputs minus the mean squared error of functions,
        ∫(y - h(x))² over what is observed.
    selection : {"auto", "min", "one_standard_error"}, default="auto"
        "min" takes the best score. "one_standard_error" takes the largest alpha within one
        standard error of it, with the other parameters as at the best score; without candidates
        for alpha, as in a grid of ``"radius"``, it is "min". "auto" is "one_standard_error" for
        :class:`fenchel.HeteroscedasticRegressor`, where one target with a small predicted
        variance can cost more than all others, and "min" otherwise.
    aggregation : {"mean", "median"}, default="mean"
        Whether candidates are ranked by the mean or by the median score over folds. Outliers in a
        minority of the folds do not move the median.
    refit : bool, default=True
        Whether to fit the chosen estimator to all rows.
    n_jobs : int, optional
        Number of processes over folds and feature maps; 1 for rows in files and on clusters.
    verbose : int, default=0
        If positive, one line is printed for each fold and feature map, with the time left.

    Attributes
    ----------
    best_estimator_ : estimator
        Fitted to all rows with the chosen parameters. The search has its methods.
    best_params_, best_index_, best_score_, cv_results_, n_splits_
        As in GridSearchCV, except for the order of candidates. It is that of the paths, however
        the grid was given: alpha varies fastest, from the largest to the smallest, then κ from
        the largest or ε from the smallest; ``cv_results_["params"]`` lists them.
        ``cv_results_["split0_relative_gap"]`` and so on hold the gaps of the certificates. With
        ``aggregation="median"``, ranks and ``best_score_`` are those of
        ``cv_results_["median_test_score"]``.
    alpha_ : float
        The chosen strength. If alpha is neither given nor searched, it is that of the final fit,
        for example at the chosen radius, and None with ``refit=False``.
    certificate_, n_iter_ :
        Of the final fit.
    scoring_ : str, callable or None
        The scoring of the fit: that of the constructor, or the default of the class.
    n_early_stops_ : int
        Number of fits on folds that stopped before reaching their tolerance.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Callbacks of scikit-learn, ``set_callbacks(ProgressBar())``, receive one task for each fold and
    feature map and one for the final fit.

    References
    ----------
    Breiman, Friedman, Olshen, Stone (1984), Classification and regression trees, section 3.4.3,
    for the rule of one standard error. Lambert, Bouche, Szabó, d'Alché-Buc (2022), Functional
    output regression with infimal convolution, section 5, for the median.

    Examples
    --------
    >>> from fenchel import KernelRidge, QuantileRegressor
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.model_selection import PathSearchCV
    >>> X, y, _ = make_sine_quantiles(100, random_state=0)
    >>> quantiles = QuantileRegressor([0.1, 0.9], kernel=Gaussian())
    >>> search = PathSearchCV(quantiles, {"alpha": 5, "length_scale": [0.1, "median"]}).fit(X, y)
    >>> search.predict_interval(X, 0.8).shape
    (100, 2)
    >>> search = PathSearchCV(KernelRidge(), {"alpha": 50}, scoring="loo").fit(X, y)
    >>> abs(search.best_score_ + search.best_estimator_.loo_error_) < 1e-9
    True
    """

    constraints = declared(
        estimator=NONE | _OURS,
        param_grid=NONE | That(_GRID, lambda grid: isinstance(grid, Mapping), ValueError),
        scoring=NONE | _SCORERS | CALLABLE,
        selection=OneOf(SELECTIONS),
        aggregation=OneOf(AGGREGATIONS),
        refit=BOOLEAN,
    )

    def __init__(
        self,
        estimator: Estimator | None = None,
        param_grid: dict[str, Any] | None = None,
        *,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "auto",
        aggregation: str = "mean",
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.aggregation = aggregation
        self.refit = refit
        self.n_jobs = n_jobs
        self.verbose = verbose

    best_estimator_: Estimator

    @all_or_nothing
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        theta: Any = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose the parameters by cross-validation and refit on all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, in any form that the estimator takes. These may be a table in a file, and
            collections of Dask for estimators of :mod:`fenchel.dask`. They are then split into
            folds without being moved.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets; none for densities.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights, for fitting and for scoring.
        theta : array-like of shape (m,), optional
            The grid of the functions, see :meth:`fenchel.functional.FunctionalRegressor.fit`.
        groups : array-like of shape (n_samples,), optional
            Group labels of the rows, for a splitter ``cv`` that uses them. They are also passed
            to the final fit of rows in memory, if the estimator holds out groups itself. An array
            in memory, even if the rows are in files or on a cluster.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For parameters or data that are not allowed; the message says which.
        """
        estimator = self._checked()
        options = {} if theta is None else {"theta": theta}
        if options and "theta" not in signature(estimator.prepare).parameters:
            raise ValueError(
                "theta must be None for an estimator that is not one of curves, got it for "
                f"{type(estimator).__name__}"
            )
        given = Data.of(estimator, X, y, sample_weight, options)
        data = given.checked()
        labels = self._groups(groups, data.n_rows)
        grid = make_grid(estimator, self._candidates(), data.arguments)
        tasks = self._tasks(estimator, grid, data, labels)
        for name in ("best_estimator_", *FEATURES):
            self.__dict__.pop(name, None)  # of a fit before
        report = Tasks.of(self, len(tasks) + bool(self.refit))
        self.scoring_ = self._scoring()
        self._choose(estimator, grid, self._scores(grid, tasks, data, report))
        if not np.isfinite(self.best_score_):
            warnings.warn(_NO_SCORE.format(self.best_params_), UserWarning, stacklevel=4)
        self.alpha_ = self.best_params_.get("alpha", estimator.alpha)
        if self.refit:
            task = report.begin("refit")
            best = estimator.chosen(**self.best_params_)
            self.best_estimator_ = given.refit(best, labels)
            report.end(task)
            take_features(self, best)
            if self.alpha_ is None:
                self.alpha_ = getattr(best, "alpha_", None)
        report.end(report.root)
        return self

    def tuned(self) -> Any:
        """Return the estimator whose parameters are searched."""
        return KernelRidge() if self.estimator is None else self.estimator

    def _candidates(self) -> dict[str, Any] | None:
        return self.param_grid

    def _scoring(self) -> Any:
        return self.scoring

    def _checked(self) -> Any:
        """Return a copy of the estimator with all parameters checked."""
        self.check_parameters()
        estimator: Any = clone(self.tuned())
        estimator.check_parameters()
        return estimator

    def _leaves_one_out(self) -> bool:
        scoring = self._scoring()
        return isinstance(scoring, str) and scoring == "loo"

    def _groups(self, groups: ArrayLike | None, n_rows: int) -> AnyArray | None:
        """Group labels for the splitter, which must use groups if any are given."""
        if groups is not None and self.cv is not None and self._leaves_one_out():
            raise ValueError(
                "groups must be None for scoring='loo', which leaves out one row at a time: "
                "another scoring makes use of cv, and of groups"
            )
        return check_groups(groups, self.cv, n_rows)

    def _tasks(self, estimator: Any, grid: Grid, data: Data, groups: AnyArray | None) -> list[Any]:
        """Return delayed calls, each for the scores of one fold with one feature map."""
        models = [estimator.with_parameters(**own) for own in grid.features]
        if self._leaves_one_out():
            return [delayed(scores_of_rows)(model, grid, data) for model in models]
        scoring = self._scoring()
        scorer = scorer_of(estimator, scoring)
        folds = data.folds(self.cv, groups)
        return [
            delayed(scores_of_fold)(model, grid, data, *fold, scorer)
            for model in models
            for fold in folds
        ]

    def _scores(self, grid: Grid, tasks: list[Any], data: Data, report: Tasks) -> Scores:
        """Run the tasks and return scores (candidates, folds) with their standard errors."""
        n_jobs = min(data.n_jobs(self.n_jobs), len(tasks))
        run = Parallel(n_jobs=n_jobs, return_as="generator")
        results, parts = run(tasks), []
        told = Told(type(self).__name__, bool(self.verbose))
        for _ in told(tasks, "path"):
            task = report.begin("path")
            parts.append(next(results))
            report.end(task)
        shape, n_folds = grid.shape, len(parts) // len(grid.features)

        def of_folds(values: Any) -> FloatArray:
            apart = np.reshape(values, (shape[0], n_folds, *shape[1:]))
            return np.moveaxis(apart, 1, -1).reshape(-1, n_folds)

        errors = None if parts[0].errors is None else np.ravel([part.errors for part in parts])
        gaps = None if parts[0].gaps is None else of_folds([part.gaps for part in parts])
        early = sum(part.n_early_stops for part in parts)
        return Scores(of_folds([part.values for part in parts]), errors, early, gaps)

    def _choose(self, estimator: Any, grid: Grid, scores: Scores) -> None:
        """Set ``cv_results_`` and the choice; scores that are NaN rank last."""
        folds, params = scores.values, grid.points()
        mean = folds.mean(axis=1)
        results: dict[str, Any] = {"params": params}
        for name in params[0]:
            results[f"param_{name}"] = column([point[name] for point in params])
        for k, fold in enumerate(folds.T):
            results[f"split{k}_test_score"] = fold
            if scores.gaps is not None:
                results[f"split{k}_relative_gap"] = scores.gaps[:, k]
        results["mean_test_score"], results["std_test_score"] = mean, folds.std(axis=1)
        middle = mean
        if self.aggregation == "median":
            middle = results["median_test_score"] = np.median(folds, axis=1)
        worth = np.where(np.isnan(middle), -np.inf, middle)
        results["rank_test_score"] = rankdata(-worth, method="min").astype(np.int32)
        best = int(np.argmax(worth))
        rule = estimator.default_selection if self.selection == "auto" else self.selection
        if rule == "one_standard_error":
            error = _standard_error(folds[best]) if scores.errors is None else scores.errors[best]
            first = best - best % len(grid.alphas)  # the largest alpha, all else the same
            best = first + int(np.argmax(worth[first : best + 1] >= middle[best] - error))
        self.cv_results_, self.n_splits_ = results, folds.shape[1]
        self.best_index_, self.best_params_ = best, params[best]
        self.best_score_ = float(middle[best])
        self.n_early_stops_ = scores.n_early_stops

    predict = _delegated(QuantileRegressor.predict)
    predict_interval = _delegated(QuantileRegressor.predict_interval)
    predict_distribution = _delegated(QuantileRegressor.predict_distribution)
    predict_quantiles = _delegated(HeteroscedasticRegressor.predict_quantiles)
    predict_gaps = _delegated(NonCrossingQuantileRegressor.predict_gaps)
    crossing_loss = _delegated(QuantileRegressor.crossing_loss)
    log_likelihood = _delegated(HeteroscedasticRegressor.log_likelihood)
    score_samples = _delegated(DensityEstimator.score_samples)
    sample = _delegated(DensityEstimator.sample)
    integral = _delegated(DensityEstimator.integral)

    def score(
        self, X: Any, y: Any = None, *, theta: Any = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the ``score`` of ``best_estimator_``, fitted on all rows."""
        check_is_fitted(self, "best_estimator_")
        best: Any = self.best_estimator_
        options = {} if theta is None else {"theta": theta}
        return float(best.score(X, y, sample_weight=sample_weight, **options))

    certificate_ = of_best("certificate_", "Certificate of the final fit.")
    n_iter_ = of_best("n_iter_", "Number of steps of the final fit.")

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.tuned())
        tags.estimator_type, tags.regressor_tags = inner.estimator_type, inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags


def _standard_error(folds: FloatArray) -> float:
    return float(folds.std(ddof=1) / np.sqrt(len(folds))) if len(folds) > 1 else 0.0
