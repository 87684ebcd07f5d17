"""From options and a table to a fitted pipeline."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from fenchel._typing import FloatArray
from fenchel.cli.data_io import Columns
from fenchel.cli.errors import InputError, one_line
from fenchel.cli.measures import row_losses
from fenchel.kernels import ALIASES, DistanceQuantile, as_kernel, resolve
from fenchel.regression import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor

ESTIMATORS: dict[str, Any] = {
    "quantile": QuantileRegressor,
    "expectile": ExpectileRegressor,
    "svr": SVR,
    "ridge": KernelRidge,
}
_OF_LEVELS = ("quantile", "expectile")
_WIDTHS = (1 / 3, 1.0, 3.0, 9.0, 27.0)
_DEGREE_ONE = ("quantile", "svr")  # their losses grow like y, the penalty like y²


@dataclass(frozen=True)
class Settings:
    """What the user asked for."""

    model: str = "quantile"
    levels: str | None = None
    alpha: float | None = None
    level_gamma: float | None = None
    epsilon: float | None = None
    kernel: str = "gaussian"
    length_scale: str | None = None
    cv: int | None = None
    seed: int = 0
    tol: float = 1e-6


@dataclass(frozen=True)
class Search:
    """Cross-validation: what was tried, with the mean loss of rows held out.

    ``widths`` multiply the kernel's length scales; ``losses`` has a row for each of them and
    a column for each of ``alphas``.
    """

    folds: int
    alphas: list[float]
    widths: list[float]
    losses: list[list[float]]
    alpha: float
    width: float
    kernel: Any

    @property
    def at_the_end(self) -> list[str]:
        """What lies at an end of its grid, so that others may do better."""
        found = []
        for name, value, grid in (
            ("alpha", self.alpha, self.alphas),
            ("width", self.width, self.widths),
        ):
            if len(grid) > 1 and value in (min(grid), max(grid)):
                end = "smallest" if value == min(grid) else "largest"
                found.append(f"{name} is the {end} of those tried")
        return found


@dataclass(frozen=True)
class Fit:
    """A fitted pipeline and how it came about."""

    pipeline: Pipeline
    columns: Columns
    seconds: float
    warnings: list[str] = field(default_factory=list)
    search: Search | None = None

    @property
    def model(self) -> Any:
        """The regressor at the end of the pipeline."""
        return self.pipeline[-1]


Tick = Callable[[], None]


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
    if settings.kernel not in allowed:
        raise InputError(f"--kernel must be one of {', '.join(allowed)}, got {settings.kernel}")
    kernel = as_kernel(settings.kernel)
    if settings.length_scale is None:
        return kernel
    if not hasattr(kernel, "length_scale"):
        raise InputError(f"--length-scale has no meaning for the {settings.kernel} kernel")
    return kernel.set_params(length_scale=_length_scale(settings.length_scale))


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
    return number


def make_estimator(settings: Settings, y: FloatArray) -> Any:
    """Return the unfitted estimator, its strength and tube in the units of y."""
    if settings.model not in ESTIMATORS:
        raise InputError(f"--model must be one of {', '.join(ESTIMATORS)}, got {settings.model}")
    for name, value, low in (("--alpha", settings.alpha, 0.0), ("--tol", settings.tol, 0.0)):
        if value is not None and not low < value < np.inf:
            raise InputError(f"{name} must be a number > 0, got {value:g}")
    if settings.epsilon is not None and not 0.0 <= settings.epsilon < np.inf:
        raise InputError(f"--epsilon must be a number >= 0, got {settings.epsilon:g}")
    given: dict[str, Any] = {
        "kernel": _kernel(settings),
        "alpha": settings.alpha or _default_alpha(settings.model, y),
        "tol": settings.tol,
        "random_state": settings.seed,
    }
    if settings.model in _OF_LEVELS:
        given["levels"] = parse_levels(settings.levels)
        given["epsilon"] = settings.epsilon or 0.0
        if settings.level_gamma is not None:
            if not settings.level_gamma >= 0.0:
                raise InputError(f"--level-gamma must be >= 0, got {settings.level_gamma:g}")
            given["level_gamma"] = settings.level_gamma
    else:
        _refuse_levels(settings)
    if settings.model == "svr":
        given["epsilon"] = 0.1 * _spread(y) if settings.epsilon is None else settings.epsilon
    return ESTIMATORS[settings.model](**given)


def _refuse_levels(settings: Settings) -> None:
    names = [("--levels", settings.levels), ("--level-gamma", settings.level_gamma)]
    if settings.model == "ridge":
        names.append(("--epsilon", settings.epsilon))
    for name, value in names:
        if value is not None:
            raise InputError(f"{name} has no meaning for --model {settings.model}")


def _spread(y: FloatArray) -> float:
    return float(np.std(y)) or 1.0


def _default_alpha(model: str, y: FloatArray) -> float:
    return 1e-3 / _spread(y) if model in _DEGREE_ONE else 1e-3


def alpha_grid(model: str, y: FloatArray) -> FloatArray:
    """Strengths to choose from, strongest first: each fit starts from the one before."""
    if model in _DEGREE_ONE:
        return np.logspace(0, -6, 7) / _spread(y)
    return np.logspace(-1, -7, 7)


def make_pipeline(estimator: Any, columns: Columns) -> Pipeline:
    """One-hot encoding of the categories, then the estimator; numbers pass as they are."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columnwise = ColumnTransformer(
        [
            ("numbers", "passthrough", columns.numeric),
            ("categories", encoder, columns.categorical),
        ],
        verbose_feature_names_out=False,
    )
    return Pipeline([("columns", columnwise), ("model", estimator)])


def widths_tried(settings: Settings) -> tuple[float, ...]:
    """Multiples of the default length scale that cross-validation tries, if it has the choice."""
    free = settings.length_scale is None and hasattr(_kernel(settings), "length_scale")
    return _WIDTHS if free else (1.0,)


def n_ticks(settings: Settings) -> int:
    """Number of fits that :func:`fit` makes."""
    return 1 + 7 * len(widths_tried(settings)) * (settings.cv or 0)


def fit(settings: Settings, X: Any, y: Any, columns: Columns, tick: Tick) -> Fit:
    """Choose the strength if asked to, and fit."""
    targets = y.to_numpy()
    estimator = make_estimator(settings, targets)
    started = time.perf_counter()
    search, stray = None, 0
    try:
        if settings.cv is not None:
            if settings.alpha is not None:
                raise InputError("--alpha and --cv exclude each other: --cv chooses alpha")
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                search = _search(settings, estimator, X, y, columns, tick)
            stray = sum(issubclass(w.category, ConvergenceWarning) for w in caught)
            estimator.set_params(alpha=search.alpha, kernel=search.kernel)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pipeline = make_pipeline(estimator, columns).fit(X, targets)
        tick()
    except (ValueError, TypeError) as error:
        raise InputError(one_line(error)) from error
    messages = list(dict.fromkeys(one_line(w.message) for w in caught))
    if stray:
        messages.append(f"{stray} of the fits of the cross-validation stopped early")
    return Fit(pipeline, columns, time.perf_counter() - started, messages, search)


def _search(
    settings: Settings, estimator: Any, X: Any, y: Any, columns: Columns, tick: Tick
) -> Search:
    """Mean loss of each row when held out, for each width and strength."""
    folds = settings.cv or 0
    if not 2 <= folds <= len(X):
        raise InputError(f"--cv must be between 2 and the number of rows, {len(X)}, got {folds}")
    targets = y.to_numpy()
    alphas, widths = alpha_grid(settings.model, targets), widths_tried(settings)
    encoded = make_pipeline(estimator, columns)[0].fit_transform(X)
    kernels = [_widened(estimator, np.asarray(encoded, float), width) for width in widths]
    total = np.zeros((len(widths), len(alphas)))
    for kept, held in KFold(folds, shuffle=True, random_state=settings.seed).split(X):
        pipeline = make_pipeline(clone(estimator), columns)
        inner = pipeline[0].fit_transform(X.iloc[kept])
        outer = pipeline[0].transform(X.iloc[held])
        for i, kernel in enumerate(kernels):
            model = clone(estimator).set_params(kernel=kernel, warm_start=True)
            for j, alpha in enumerate(alphas):
                model.set_params(alpha=float(alpha)).fit(inner, targets[kept])
                total[i, j] += row_losses(model, model.predict(outer), targets[held]).sum()
                tick()
    i, j = divmod(int(np.argmin(total)), len(alphas))
    means = (total / len(X)).tolist()
    return Search(
        folds, alphas.tolist(), list(widths), means, float(alphas[j]), widths[i], kernels[i]
    )


def _widened(estimator: Any, X: FloatArray, factor: float) -> Any:
    """Kernel of the estimator with its length scales, read off these rows, times a factor."""
    if factor == 1.0:
        return estimator.kernel
    kernel = resolve(as_kernel(estimator.kernel), X, random_state=estimator.random_state)
    return kernel.set_params(length_scale=factor * kernel.length_scale)


__all__ = [
    "ESTIMATORS",
    "Fit",
    "Search",
    "Settings",
    "alpha_grid",
    "fit",
    "make_estimator",
    "make_pipeline",
    "n_ticks",
    "parse_levels",
    "widths_tried",
]
