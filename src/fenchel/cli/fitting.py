"""From options and a table to a fitted pipeline."""

from __future__ import annotations

import contextlib
import re
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from joblib import cpu_count
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_info, threadpool_limits

from fenchel._typing import FloatArray
from fenchel.certificate import Progress
from fenchel.cli.data_io import Columns, sentences_of_tables
from fenchel.cli.errors import InputError, as_input_errors
from fenchel.cli.interrupts import Wish
from fenchel.cli.progress import Show
from fenchel.cli.settings import (
    CURVES,
    DENSITY,
    EXPECTILE,
    NORMAL,
    OF_LEVELS,
    QUANTILE,
    RIDGE,
    SUPPORT,
    Settings,
    parse_length_scale,
    parse_levels,
)
from fenchel.cli.warned import recorded
from fenchel.functional import FunctionalRegressor
from fenchel.inspection import certified_model
from fenchel.kernels import DistanceQuantile, as_kernel, resolve
from fenchel.model_selection import ConformalQuantileRegressor, ConformalRegressor, PathSearchCV
from fenchel.positive import (
    DensityEstimator,
    HeteroscedasticRegressor,
    NonCrossingQuantileRegressor,
)
from fenchel.regression import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.tables import TableEncoder

_PLAIN: dict[str, Any] = {
    QUANTILE: QuantileRegressor,
    EXPECTILE: ExpectileRegressor,
    SUPPORT: SVR,
    RIDGE: KernelRidge,
    NORMAL: HeteroscedasticRegressor,
    DENSITY: DensityEstimator,
    CURVES: FunctionalRegressor,
}
_FEW_FOLDS, _FOLDS = 5, 10
_ENOUGH_TO_LEARN, _LEARN_SHARE = 500, 0.5
_ENOUGH_TO_SPLIT = 4000
_LEAST_SHARE, _MOST_SHARE, _ENOUGH_ROWS = 0.25, 0.5, 1000  # which leave 0.013 to chance
_WORTH_HAVING = 0.1  # relative gap
_WIDTHS = (1 / 3, 1.0, 3.0, 9.0, 27.0)


@dataclass(frozen=True)
class Search:
    """Cross-validation: what was tried, with the mean score of the folds.

    ``widths`` multiply the kernel's length scales; ``scores`` has a row for each of them and
    a column for each of ``alphas``.
    """

    folds: int
    alphas: list[float]
    widths: list[float]
    score: str
    scores: list[list[float]]
    alpha: float
    width: float

    @property
    def at_the_end(self) -> list[str]:
        """What lies at an end of its grid, so that others may do better."""
        found = []
        tried = (("alpha", self.alpha, self.alphas), ("width", self.width, self.widths))
        for name, value, grid in tried:
            if len(grid) > 1 and value in (min(grid), max(grid)):
                end = "smallest" if value == min(grid) else "largest"
                found.append(f"{name} is the {end} of those tried")
        return found


@dataclass(frozen=True)
class Fit:
    """A fitted pipeline and how it came about."""

    pipeline: Pipeline
    seconds: float
    warnings: list[str] = field(default_factory=list)
    search: Search | None = None
    interrupted: bool = False
    on_disk: bool = False

    @property
    def encoder(self) -> TableEncoder:
        """What makes numbers of columns."""
        return self.pipeline[0]

    @property
    def columns(self) -> Columns:
        """The columns that it reads."""
        return Columns(self.encoder.kinds_)

    @property
    def model(self) -> Any:
        """The regressor with the certificate: inside of calibrated intervals, if there are any."""
        return certified_model(self.pipeline)


class _Ticks:
    """Callback of scikit-learn that shows how many paths of a search are done."""

    def __init__(self, show: Show) -> None:
        self.show = partial(show, "searching")
        self.done, self.total = 0, 1

    def setup(self, estimator: Any, context: Any) -> None:
        self.total = context.max_subtasks + 1  # the final fit is made after the search

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.show(self.done, self.total)

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        self.done += context.parent is not None
        self.show(self.done, self.total)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is left to do."""


@dataclass
class _Steps:
    """Callback of an estimator: shows evaluations of learning and steps of the solver, and ends.

    After an interrupt learning ends with the best so far, and the fit where it has a model that
    is worth having.
    """

    show: Show
    wish: Wish
    n_models: int = 1
    begun: int = 0
    last: Progress | None = None
    asked_again = True

    def __call__(self, progress: Progress) -> str | None:
        self._count(progress)
        if progress.is_learning:
            what = f"learning: held-out loss {progress.primal:.3f}"
        else:
            what = f"fitting: relative gap {progress.relative_gap:.0e}"
        if self.n_models == 1:
            self.show(what, progress.iteration, None)
        else:
            which = f"model {self.begun} of {self.n_models}"
            self.show(f"{which}, {what}", self.begun - 1, self.n_models)
        enough = progress.is_learning or progress.relative_gap < _WORTH_HAVING
        return "interrupted" if self.wish.is_there and enough else None

    def passes(self, what: str, done: int, total: int | None) -> None:
        """Show how far a pass over a table is."""
        self.show(what, done, total)

    def _count(self, progress: Progress) -> None:
        """Take note of another model: its steps begin anew, after learning if there is any."""
        last, self.last = self.last, progress
        again = last is not None and progress.iteration <= last.iteration
        learned = last is not None and last.is_learning and not progress.is_learning
        self.begun += last is None or (again and not learned)

    def __deepcopy__(self, _: Any) -> _Steps:
        """Itself, in copies of estimators too: there is one terminal and one user."""
        return self


def _kernel(settings: Settings) -> Any:
    if settings.length_scale is None:
        return None if settings.kernel is None else as_kernel(settings.kernel)
    scale: Any = parse_length_scale(settings.length_scale)
    if isinstance(scale, tuple):
        scale = DistanceQuantile(*scale)
    kernel: Any = as_kernel(settings.kernel)
    return kernel.set_params(length_scale=scale)


def make_estimator(settings: Settings) -> Any:
    """Return the unfitted estimator; what was not asked for is the library's default."""
    settings.check()
    estimator = _PLAIN[settings.model]()
    if settings.non_crossing:
        estimator = NonCrossingQuantileRegressor()
    known = estimator.get_params(deep=False)
    given = {"kernel": _kernel(settings), "tol": settings.tol, "random_state": settings.seed}
    if "learn" in known:
        given["learn"] = settings.learn
    if settings.model in OF_LEVELS:
        given["levels"] = parse_levels(settings.levels)
    for name in ("alpha", "epsilon", "level_gamma", "max_time", "rank"):
        if getattr(settings, name) is not None:
            given[name] = getattr(settings, name)
    return estimator.set_params(**given)


def calibrated(settings: Settings, estimator: Any, n_rows: int, groups: Any = None) -> Any:
    """The estimator, in calibrated intervals if a coverage was asked for.

    Of many rows, or where time is limited, a share calibrates. Of fewer that says too little, and
    the model would miss them: then they calibrate at models without their fold. Parameters are
    learned from other rows where there are enough of them, else anew for each fold. Whole groups
    calibrate, and parameters are then learned anew.
    """
    if settings.coverage is None:
        return estimator
    of_levels = settings.model in OF_LEVELS
    wrapper: Any = ConformalQuantileRegressor if of_levels else ConformalRegressor
    few, many = n_rows < _ENOUGH_TO_LEARN, n_rows >= _ENOUGH_TO_SPLIT
    how: dict[str, Any] = {"method": "cv+", "cv": min(_FEW_FOLDS, n_rows)}
    if many or (settings.max_time is not None and not few):
        how = {"cv": min(max(_LEAST_SHARE, _ENOUGH_ROWS / n_rows), _MOST_SHARE)}
    elif not few and groups is None:
        how |= {"cv": _FOLDS, "learn_share": _LEARN_SHARE if settings.learn else None}
    if groups is not None:
        how["cv"] = _by_groups(how["cv"], groups, settings.seed)
    return wrapper(estimator, coverage=settings.coverage, random_state=settings.seed, **how)


def _by_groups(cv: int | float, groups: Any, seed: int) -> Any:
    """So many folds, or one with a share of the rows, of whole groups."""
    if isinstance(cv, int):
        return GroupKFold(max(min(cv, len(np.unique(groups))), 2))
    return GroupShuffleSplit(1, test_size=cv, random_state=seed)


def make_pipeline(estimator: Any) -> Pipeline:
    """Columns as numbers, then the estimator; a table of numbers passes as it is."""
    return Pipeline([("columns", TableEncoder()), ("model", estimator)])


def _length_scales(estimator: Any, X: FloatArray) -> list[Any]:
    """Length scales to try: that of the kernel, and multiples of what it is on these rows."""
    kernel: Any = as_kernel(estimator.kernel)
    measured: Any = resolve(kernel, X, random_state=estimator.random_state)
    return [
        kernel.length_scale if width == 1.0 else width * measured.length_scale for width in _WIDTHS
    ]


def fit(
    settings: Settings, X: Any, y: Any, show: Show, weight: Any = None, groups: Any = None
) -> Fit:
    """Choose the strength by cross-validation if asked to, and fit: it learns what is open.

    ``y`` is a series, a frame of curves, None for a density, or the name of a column of a table
    in a file. Rows of a group are held out together.
    """
    targets: Any = y.to_numpy() if hasattr(y, "to_numpy") else y
    estimator = make_estimator(settings)
    started, ticks = time.perf_counter(), _Ticks(show)
    search, early, wish = None, 0, Wish()
    with as_input_errors(), threads(settings.n_jobs):
        if settings.cv is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the final fit speaks for itself
                found = _search(settings, estimator, X, targets, ticks, groups)
            search, early = _summary(settings, found), found.n_early_stops_
            estimator = estimator.chosen(**found.best_params_)
        steps = _Steps(show, wish)
        model = calibrated(settings, estimator.set_params(callback=steps), _n_rows(X), groups)
        several = getattr(model, "method", "split") != "split"
        if several:
            folds = model.cv if groups is None else model.cv.get_n_splits()
            steps.n_models += folds + (model.learn_share is not None)
        pipeline = make_pipeline(model)
        options = {} if weight is None else {"model__sample_weight": weight}
        if groups is not None:
            options["model__groups"] = groups
        if settings.model == CURVES:
            options["model__theta"] = curve_points(list(y))
        # of several models none may be worse than the others: there is no best so far
        listening = contextlib.nullcontext() if several else wish.listening()
        with recorded() as messages, listening, sentences_of_tables():
            pipeline.fit(X, targets, **options)
        without_callbacks(pipeline)
        show("fitting", ticks.total, ticks.total)
    if early:
        messages.append(f"{early} of the fits of the cross-validation stopped early")
    return Fit(pipeline, time.perf_counter() - started, messages, search, wish.is_there)


def _n_rows(X: Any) -> int:
    """Of a table in memory; those in files have enough."""
    return len(X) if hasattr(X, "__len__") else _ENOUGH_TO_SPLIT


def without_callbacks(pipeline: Pipeline) -> None:
    """Leave to files and to other fits nothing of this one's terminal."""
    model = pipeline[-1]
    for each in (getattr(model, "estimator", model), *getattr(model, "models_", [])):
        each.set_params(callback=None)


@contextlib.contextmanager
def threads(number: int | None) -> Iterator[None]:
    """As many threads as were asked for: -1 stands for all cores, None for the environment's."""
    if number is None:
        yield
        return
    wanted = number if number > 0 else max(1, cpu_count() + 1 + number)
    with threadpool_limits(wanted):
        yield


def threads_allowed() -> int:
    """As many as linear algebra may use, for what does not ask it."""
    return max((each["num_threads"] for each in threadpool_info()), default=1)


def curve_points(names: list[str]) -> FloatArray:
    """Where columns are on a curve: the increasing numbers that names end in, or equal steps.

    A hyphen before them is a sign where numbers increase with it, as in t-1, t0, t1, and stands
    between a word and its number otherwise, as in h-1, h-2.
    """
    for number in (r"-?\d+(\.\d+)?$", r"\d+(\.\d+)?$"):
        found = [re.search(number, name) for name in names]
        points = np.array([float(match[0]) for match in found if match])
        if len(points) == len(names) and (np.diff(points) > 0.0).all():
            return points
    if len(np.unique(points)) == len(names):
        order = [names[j] for j in np.argsort(points)]
        raise InputError(
            "--target must name the points of curves in the order of the numbers that they end "
            f"in, {','.join(order)}, got {','.join(names)}"
        )
    return np.linspace(0.0, 1.0, len(names))


def _search(
    settings: Settings, estimator: Any, X: Any, targets: FloatArray, ticks: _Ticks, groups: Any
) -> PathSearchCV[Any]:
    """The library's search over its own strengths, and over widths unless one is given."""
    folds = settings.cv or 0
    if not 2 <= folds <= len(X):
        raise InputError(f"--cv must be between 2 and the number of rows, {len(X)}, got {folds}")
    encoded = TableEncoder().fit_transform(X)
    grid = estimator.default_grid()
    if settings.length_scale is None and hasattr(as_kernel(estimator.kernel), "length_scale"):
        grid["length_scale"] = _length_scales(estimator, encoded)
    splitter: Any = KFold(folds, shuffle=True, random_state=settings.seed)
    if groups is not None:
        splitter = _by_groups(folds, groups, settings.seed)
    search = PathSearchCV(estimator, grid, cv=splitter, refit=False)
    with contextlib.suppress(ImportError):  # scikit-learn before 1.9 has no callbacks
        search.set_callbacks(ticks)
    return search.fit(encoded, targets, groups=groups)


def _summary(settings: Settings, search: PathSearchCV[Any]) -> Search:
    results = search.cv_results_
    alphas = list(dict.fromkeys(float(point["alpha"]) for point in results["params"]))
    scores = np.reshape(results["mean_test_score"], (-1, len(alphas)))
    widths = list(_WIDTHS) if "length_scale" in search.best_params_ else [1.0]
    return Search(
        folds=search.n_splits_,
        alphas=alphas,
        widths=widths,
        score="d2" if settings.model in OF_LEVELS else "r2",
        scores=scores.tolist(),
        alpha=search.alpha_,
        width=widths[search.best_index_ // len(alphas)],
    )
