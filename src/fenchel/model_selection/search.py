"""Cross-validation along warm-started paths of the regularization strength."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from fenchel._typing import AnyArray, ArrayLike, FloatArray
from fenchel.kernels import OperatorKernel, as_kernel
from fenchel.model_selection._callbacks import CallbackSupportMixin, Tasks, with_callbacks
from fenchel.regression._base import KernelRegressor

SELECTIONS = ("min", "one_standard_error")
_STRONGEST, _WEAKEST = 10.0, 1e-6  # in units of mean loss / spread² * mean diagonal


class Grid(NamedTuple):
    """Parameters that are varied: the path, and the names and values of the rest."""

    alphas: FloatArray
    features: list[dict[str, Any]]
    """Settings that need a feature map of their own."""
    others: list[dict[str, Any]]


class Search(CallbackSupportMixin, BaseEstimator):
    """Base class of all searches: tasks are run, candidates ranked, and the best one refitted."""

    selection: str
    cv: Any
    n_jobs: int | None
    _kernel = "kernel"
    """The parameter of the plain estimator whose length scale is varied."""

    def _plain(self) -> Any:
        """The estimator that is tuned."""
        raise NotImplementedError

    def _aggregation(self) -> str:
        """Whether candidates are ranked by the mean or the median of their folds."""
        return "mean"

    def _search(self, plain: Any, grid: Grid, tasks: list[Any], data: tuple[Any, ...]) -> None:
        """Run the tasks, choose, and fit the choice to ``data``, the arguments of its fit."""
        report = Tasks.of(self, len(tasks) + 1)
        run = Parallel(
            n_jobs=min(effective_n_jobs(self.n_jobs), len(tasks)), return_as="generator"
        )
        results = run(tasks)
        scores = []
        for _ in tasks:
            task = report.begin("path")
            scores.append(next(results))
            report.end(task)
        self._collect(grid, *self._gathered(grid, scores))
        task = report.begin("refit")
        best = with_parameters(plain, self.best_params_, self._kernel)
        self.best_estimator_ = best.fit(*data)
        report.end(task)
        report.end(report.root)
        self.alpha_ = self.best_params_["alpha"]
        self.n_features_in_ = self.best_estimator_.n_features_in_
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def _gathered(self, grid: Grid, parts: list[Any]) -> tuple[FloatArray, FloatArray | None]:
        """Scores (features, others, alphas, folds) from what the tasks returned.

        With their standard errors, if these are not those of the mean over folds.
        """
        shape = (len(grid.features), -1, len(grid.others), len(grid.alphas))
        return np.reshape(parts, shape).transpose(0, 2, 3, 1), None

    def _collect(self, grid: Grid, scores: FloatArray, errors: FloatArray | None = None) -> None:
        """Set cv_results_ and the choice; scores are (features, others, alphas, folds).

        Scores that are NaN rank last.
        """
        points = product(grid.features, grid.others, grid.alphas.tolist())
        params = [{**own, **other, "alpha": alpha} for own, other, alpha in points]
        flat = scores.reshape(len(params), -1)
        mean, deviation = flat.mean(axis=1), flat.std(axis=1)
        results: dict[str, Any] = {"params": params}
        for name in params[0]:
            results[f"param_{name}"] = np.ma.MaskedArray([p[name] for p in params], mask=False)
        for k in range(flat.shape[1]):
            results[f"split{k}_test_score"] = flat[:, k]
        results["mean_test_score"], results["std_test_score"] = mean, deviation
        middle = mean
        if self._aggregation() == "median":
            middle = results["median_test_score"] = np.median(flat, axis=1)
        worth = np.where(np.isnan(middle), -np.inf, middle)
        order = np.argsort(-worth, kind="stable")
        rank = np.empty(len(worth), dtype=np.int32)
        rank[order] = 1 + np.searchsorted(-worth[order], -worth[order])
        results["rank_test_score"] = rank
        self.cv_results_ = results
        best = int(np.argmax(worth))
        if self.selection == "one_standard_error":
            n_alphas = len(grid.alphas)
            error = _standard_error(flat[best]) if errors is None else errors.flat[best]
            first = best - best % n_alphas  # the largest alpha of the same other parameters
            best = first + int(np.argmax(worth[first : best + 1] >= middle[best] - error))
        self.best_index_ = best
        self.best_params_ = params[best]
        self.best_score_ = float(middle[best])

    @property
    def certificate_(self) -> Any:
        """Certificate of the final fit."""
        check_is_fitted(self)
        return self.best_estimator_.certificate_

    @property
    def n_iter_(self) -> int:
        """Number of steps of the final fit."""
        check_is_fitted(self)
        return int(self.best_estimator_.n_iter_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        plain = self._plain().__sklearn_tags__()
        tags.input_tags.pairwise = plain.input_tags.pairwise
        tags.target_tags.multi_output = plain.target_tags.multi_output
        return tags


class AlphaSearch(Search):
    """Base class of the searches along paths of alpha.

    For each fold and each length scale one feature map is made; on it, for each setting of
    the other parameters, alpha runs from the largest to the smallest, every fit starting
    from the one before. Callbacks of scikit-learn, ``set_callbacks(ProgressBar())``, see a
    task for each path and one for the final fit.
    """

    scoring: Any
    alphas: Any
    length_scales: Any

    def _grid(self) -> dict[str, Any]:
        """Names of further parameters of the plain estimator and their candidates or None."""
        return {}

    @with_callbacks
    def fit(self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the parameters by cross-validation and refit on all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights, for fitting and for scoring.

        Returns
        -------
        self
        """
        if self.selection not in SELECTIONS:
            raise ValueError(f"selection must be one of {SELECTIONS}, got {self.selection!r}")
        plain = self._plain()
        plain.check_parameters()
        X, y = indexable(X, y)
        grid = self._resolved_grid(plain, X, y, sample_weight)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        tasks = self._tasks(plain, grid, X, y, sample_weight)
        self._search(plain, grid, tasks, (X, y, sample_weight))
        return self

    def _tasks(
        self,
        plain: Any,
        grid: Grid,
        X: AnyArray,
        y: Any,
        sample_weight: AnyArray | None,
    ) -> list[Any]:
        """Delayed calls: the scores of one fold with one feature map each."""
        splits = list(check_cv(self.cv).split(X, y))
        scoring = self._natural_scoring() if self.scoring is None else self.scoring
        scorer = check_scoring(plain, scoring=scoring)
        return [
            delayed(_scores)(plain, own, grid, X, y, sample_weight, *split, scorer)
            for own in grid.features
            for split in splits
        ]

    def _natural_scoring(self) -> Any:
        """What ``scoring=None`` stands for; None for the ``score`` of the plain estimator."""
        return None

    def _default_alphas(
        self, plain: Any, X: AnyArray, y: Any, sample_weight: AnyArray | None, n: int
    ) -> FloatArray:
        """Strengths on a geometric grid, largest first."""
        return default_alphas(plain, X, y, sample_weight, n)

    def _resolved_grid(
        self, plain: Any, X: AnyArray, y: Any, sample_weight: AnyArray | None
    ) -> Grid:
        """Candidates for every parameter; alphas from the largest to the smallest."""
        alphas = self.alphas
        if np.ndim(alphas) == 0:
            if not isinstance(alphas, (int, np.integer)) or alphas < 1:
                raise ValueError(
                    "alphas must be a number of strengths >= 1 or a sequence of positive "
                    f"numbers, got {alphas!r}"
                )
            alphas = self._default_alphas(plain, X, y, sample_weight, int(alphas))
        path = as_path(alphas, "alphas")
        scales = [None] if self.length_scales is None else list(self.length_scales)
        own = [{} if scale is None else {"length_scale": scale} for scale in scales]
        varied = {name: values for name, values in self._grid().items() if values is not None}
        settings = [dict(zip(varied, point, strict=True)) for point in product(*varied.values())]
        return Grid(path, own, settings)


class PathSearch(RegressorMixin, AlphaSearch):
    """Base class of the regressors that choose their parameters by cross-validation."""

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict with the chosen parameters, fitted on all rows."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Score of the plain estimator with the chosen parameters."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y, sample_weight))


def _standard_error(folds: FloatArray) -> float:
    return float(folds.std(ddof=1) / np.sqrt(len(folds))) if len(folds) > 1 else 0.0


def as_path(values: Any, name: str, zero: bool = False) -> FloatArray:
    """Positive numbers, or zero where that is allowed; largest first."""
    path = np.sort(np.asarray(values, dtype=np.float64).ravel())[::-1]
    inside = np.isfinite(path) & ((path >= 0.0) if zero else (path > 0.0))
    if np.ndim(values) != 1 or len(path) == 0 or not inside.all():
        allowed = "numbers >= 0" if zero else "positive numbers"
        raise ValueError(f"{name} must be {allowed}, got {values!r}")
    return path


def default_alphas(
    plain: KernelRegressor, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, n: int
) -> FloatArray:
    """Strengths on a geometric grid in the units of the problem, largest first.

    From nearly constant models to nearly interpolating ones: alpha has the units of loss over
    squared function, and the kernel's mean diagonal says how large functions are.
    """
    model = clone(plain)
    model.check_parameters()
    prepared = model.prepare(X, y, sample_weight)
    weight = prepared.inputs.weight
    loss = plain.make_loss(prepared.targets.shape[1])
    shape = (len(prepared.targets), loss.n_outputs or prepared.targets.shape[1])
    targets = np.broadcast_to(prepared.targets, shape)
    centred = targets - loss.minimizing_offset(targets, weight)
    value = float(np.average(loss.value(centred), weights=weight))
    square = float(np.average(np.mean(centred**2, axis=1), weights=weight))
    unit = value / square if value > 0.0 else 1.0
    diagonal = prepared.design(np.eye(shape[1])).diagonal()
    size = float(diagonal.mean()) or 1.0
    return strengths(n) * unit * size


def strengths(n: int) -> FloatArray:
    """Strengths on a geometric grid, largest first, where all units are one."""
    return np.geomspace(_STRONGEST, _WEAKEST, n)


def with_parameters(plain: Any, params: dict[str, Any], name: str = "kernel") -> Any:
    """A copy with these parameters; length_scale is that of the kernel of that name."""
    params = dict(params)
    new = clone(plain)
    if "length_scale" in params:
        given = getattr(plain, name)
        kernel = given if isinstance(given, OperatorKernel) else as_kernel(given)
        new.set_params(**{name: _scaled(kernel, params.pop("length_scale"))})
    return new.set_params(**params)


def _scaled(kernel: Any, scale: Any) -> Any:
    """A copy of a kernel with another length scale, its own or that of the kernel within."""
    if hasattr(kernel, "length_scale"):
        return clone(kernel).set_params(length_scale=scale)
    if hasattr(kernel, "kernel"):
        return clone(kernel).set_params(kernel=_scaled(kernel.kernel, scale))
    raise ValueError(f"length_scales are for kernels that have one, got {kernel!r}")


def _scores(
    plain: Any,
    own: dict[str, Any],
    grid: Grid,
    X: AnyArray,
    y: Any,
    sample_weight: AnyArray | None,
    train: AnyArray,
    test: AnyArray,
    scorer: Any,
) -> FloatArray:
    """Test scores (others, alphas) of one fold with one feature map."""

    def part(array: Any, rows: AnyArray) -> Any:
        return None if array is None else _safe_indexing(array, rows)

    base = with_parameters(plain, own)
    base.check_parameters()
    prepared = base.prepare(part(X, train), part(y, train), part(sample_weight, train))
    held_out = part(X, test), part(y, test)
    weights = {} if sample_weight is None else {"sample_weight": part(sample_weight, test)}
    scores = np.empty((len(grid.others), len(grid.alphas)))
    for i, other in enumerate(grid.others):
        start: Any = None
        for j, alpha in enumerate(grid.alphas):
            model = _like(base, {**other, "alpha": float(alpha)})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # told of the final fit
                start = model.fit_prepared(prepared, start)
            scores[i, j] = scorer(model, *held_out, **weights)
    return scores


def _like(base: Any, params: dict[str, Any]) -> Any:
    """A model with other parameters that has seen the same training rows as ``base``."""
    model = clone(base).set_params(**params)
    model.check_parameters()
    for name in ("n_features_in_", "feature_names_in_", "_flat"):
        if hasattr(base, name):
            setattr(model, name, getattr(base, name))
    return model
