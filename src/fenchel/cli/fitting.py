"""From options and a table to a fitted pipeline."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline

from fenchel._typing import FloatArray
from fenchel.certificate import Progress
from fenchel.cli.data_io import Columns
from fenchel.cli.errors import InputError, as_input_errors, one_line
from fenchel.kernels import ALIASES, DistanceQuantile, as_kernel, resolve
from fenchel.model_selection import PathSearchCV
from fenchel.regression import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.tables import TableEncoder

ESTIMATORS: dict[str, Any] = {
    "quantile": QuantileRegressor,
    "expectile": ExpectileRegressor,
    "svr": SVR,
    "ridge": KernelRidge,
}
_OF_LEVELS = ("quantile", "expectile")
_WIDTHS = (1 / 3, 1.0, 3.0, 9.0, 27.0)
_LARGEST = 1e150  # squares of what is larger, or smaller than its inverse, are no numbers


@dataclass(frozen=True)
class Settings:
    """What the user asked for."""

    model: str = "quantile"
    levels: str | None = None
    alpha: float | None = None
    level_gamma: float | None = None
    epsilon: float | None = None
    kernel: str | None = None
    length_scale: str | None = None
    learn: bool = True
    cv: int | None = None
    seed: int = 0
    tol: float = 1e-6
    max_time: float | None = None


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
        """The regressor at the end of the pipeline."""
        return self.pipeline[-1]


Show = Callable[[str, int, int | None], None]
"""Is told what is being done, and how many parts of it of how many, None if that is not known."""


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


@dataclass(frozen=True)
class _Steps:
    """Callback of an estimator that shows evaluations of learning, and steps of the solver."""

    show: Show

    def __call__(self, progress: Progress) -> None:
        if progress.is_learning:
            what = f"learning: held-out loss {progress.primal:.3f}"
        else:
            what = f"fitting: relative gap {progress.relative_gap:.0e}"
        self.show(what, progress.iteration, None)


def parse_levels(text: str | None) -> list[float]:
    """Levels from a comma-separated list."""
    if text is None:
        return [0.1, 0.5, 0.9]
    try:
        levels = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"--levels must be numbers with commas between them, such as 0.1,0.5,0.9, got {text!r}"
        ) from error
    if not all(0.0 < level < 1.0 for level in levels):
        raise InputError(f"--levels must lie strictly between 0 and 1, got {text}")
    if len(set(levels)) < len(levels):
        raise InputError(f"--levels must not repeat a level, got {text}")
    return levels


def _kernel(settings: Settings) -> Any:
    allowed = sorted(set(ALIASES) - {"precomputed"})
    if settings.kernel is not None and settings.kernel not in allowed:
        raise InputError(f"--kernel must be one of {', '.join(allowed)}, got {settings.kernel}")
    if settings.length_scale is None:
        return None if settings.kernel is None else as_kernel(settings.kernel)
    kernel = as_kernel(settings.kernel)
    if not hasattr(kernel, "length_scale"):
        raise InputError(f"--length-scale has no meaning for the {settings.kernel} kernel")
    return kernel.set_params(length_scale=_length_scale(settings.length_scale))


def _check_positive(name: str, value: float) -> None:
    if not 0.0 < value < np.inf:
        raise InputError(f"{name} must be a number > 0, got {value:g}")
    if not 1.0 / _LARGEST <= value <= _LARGEST:
        raise InputError(
            f"{name} must be between {1.0 / _LARGEST:g} and {_LARGEST:g}, got {value:g}: its "
            "square would be 0 or infinite"
        )


def _length_scale(text: str) -> Any:
    if text in ("median", "scale"):
        return text
    try:
        if text.startswith("q"):
            return DistanceQuantile(float(text[1:]))
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 < number < np.inf:
        raise InputError(
            "--length-scale must be a number > 0, median, scale, or q with a quantile of the "
            f"distances such as q0.7, got {text}"
        )
    _check_positive("--length-scale", number)
    return number


def make_estimator(settings: Settings) -> Any:
    """Return the unfitted estimator; what was not asked for is the library's default."""
    if settings.model not in ESTIMATORS:
        raise InputError(f"--model must be one of {', '.join(ESTIMATORS)}, got {settings.model}")
    numbers = {"alpha": settings.alpha, "tol": settings.tol, "max-time": settings.max_time}
    for name, value in numbers.items():
        if value is not None:
            _check_positive(f"--{name}", value)
    if settings.epsilon is not None and not 0.0 <= settings.epsilon <= _LARGEST:
        raise InputError(
            f"--epsilon must be a number >= 0 of at most {_LARGEST:g}, got {settings.epsilon:g}"
        )
    if settings.level_gamma is not None and not settings.level_gamma >= 0.0:
        raise InputError(f"--level-gamma must be >= 0, got {settings.level_gamma:g}")
    given = {"kernel": _kernel(settings), "tol": settings.tol, "random_state": settings.seed}
    given["learn"] = settings.learn
    if settings.model in _OF_LEVELS:
        given["levels"] = parse_levels(settings.levels)
    else:
        refused = ["levels", "level_gamma"] + ["epsilon"] * (settings.model == "ridge")
        for name in refused:
            if getattr(settings, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise InputError(f"{option} has no meaning for --model {settings.model}")
    for name in ("alpha", "epsilon", "level_gamma", "max_time"):
        if getattr(settings, name) is not None:
            given[name] = getattr(settings, name)
    return ESTIMATORS[settings.model](**given)


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


def fit(settings: Settings, X: Any, y: Any, show: Show) -> Fit:
    """Choose the strength by cross-validation if asked to, and fit: it learns what is open."""
    targets = y.to_numpy()
    estimator = make_estimator(settings)
    started, ticks = time.perf_counter(), _Ticks(show)
    search, early = None, 0
    with as_input_errors():
        if settings.cv is not None:
            if settings.alpha is not None:
                raise InputError("--alpha and --cv exclude each other: --cv chooses alpha")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the final fit speaks for itself
                found = _search(settings, estimator, X, targets, ticks)
            search, early = _summary(settings, found), found.n_early_stops_
            estimator = estimator.with_parameters(**found.best_params_)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pipeline = make_pipeline(estimator.set_params(callback=_Steps(show))).fit(X, targets)
        pipeline[-1].set_params(callback=None)
        show("fitting", ticks.total, ticks.total)
    messages = list(dict.fromkeys(one_line(w.message) for w in caught))
    if early:
        messages.append(f"{early} of the fits of the cross-validation stopped early")
    return Fit(pipeline, time.perf_counter() - started, messages, search)


def _search(
    settings: Settings,
    estimator: Any,
    X: Any,
    targets: FloatArray,
    ticks: _Ticks,
) -> PathSearchCV[Any]:
    """The library's search over its own strengths, and over widths unless one is given."""
    folds = settings.cv or 0
    if not 2 <= folds <= len(X):
        raise InputError(f"--cv must be between 2 and the number of rows, {len(X)}, got {folds}")
    encoded = TableEncoder().fit_transform(X)
    grid = estimator.default_grid()
    if settings.length_scale is None and hasattr(as_kernel(estimator.kernel), "length_scale"):
        grid["length_scale"] = _length_scales(estimator, encoded)
    splitter = KFold(folds, shuffle=True, random_state=settings.seed)
    search = PathSearchCV(estimator, grid, cv=splitter, refit=False)
    with contextlib.suppress(ImportError):  # scikit-learn before 1.9 has no callbacks
        search.set_callbacks(ticks)
    return search.fit(encoded, targets)


def _summary(settings: Settings, search: PathSearchCV[Any]) -> Search:
    results = search.cv_results_
    alphas = list(dict.fromkeys(float(point["alpha"]) for point in results["params"]))
    scores = np.reshape(results["mean_test_score"], (-1, len(alphas)))
    widths = list(_WIDTHS) if "length_scale" in search.best_params_ else [1.0]
    return Search(
        folds=search.n_splits_,
        alphas=alphas,
        widths=widths,
        score="d2" if settings.model in _OF_LEVELS else "r2",
        scores=scores.tolist(),
        alpha=search.alpha_,
        width=widths[search.best_index_ // len(alphas)],
    )
