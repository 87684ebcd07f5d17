"""Our model beside a linear one and gradient boosting, on rows that none of them has seen."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table as RichTable
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel.cli import checks, data_io, fitting, printing
from fenchel.cli.errors import InputError, as_input_errors
from fenchel.cli.progress import Show, shown
from fenchel.cli.roles import Roles
from fenchel.cli.settings import Settings, parse_levels
from fenchel.cli.warned import warn
from fenchel.inspection import percent
from fenchel.losses import Pinball
from fenchel.metrics import crossing_loss, mean_loss
from fenchel.regression import QuantileRegressor
from fenchel.tables import TableEncoder

_LEAST_ROWS = 8
_MOST_VALUES = 255  # that HistGradientBoosting takes as categories
_SHOWN = 5  # levels with a column of their own


@dataclass(frozen=True)
class Task:
    """Training rows and new rows, as tables; and the columns of words."""

    X: pd.DataFrame
    y: FloatArray
    new: pd.DataFrame
    words: list[str]
    levels: list[float]
    settings: Settings
    groups: AnyArray | None = None
    """Labels of training rows that depend on each other."""

    def fit(self, pipeline: Any) -> Any:
        """Fit a pipeline to the training rows, with their groups."""
        last = pipeline.steps[-1][0]
        options = {} if self.groups is None else {f"{last}__groups": self.groups}
        return pipeline.fit(self.X, self.y, **options)


@dataclass(frozen=True)
class Result:
    """What a method does on the new rows; the losses are pinball losses, one for each level."""

    method: str
    losses: list[float]
    coverage: float
    crossing_loss: float
    seconds: float
    note: str = ""

    @property
    def loss(self) -> float:
        """The sum of its losses."""
        return sum(self.losses)


Predictions = tuple[FloatArray, str]
"""A column for each level, and what is to be said of the fit."""


def _ours(task: Task) -> Predictions:
    """With the defaults of ``fenchel fit``."""
    estimator = fitting.make_estimator(task.settings)
    model = task.fit(fitting.make_pipeline(estimator))
    gap = model[-1].certificate_.relative_gap
    early = "" if model[-1].status_.converged else f"stopped at a gap of {gap:.0e}"
    return model.predict(task.new), early


def _linear(task: Task) -> Predictions:
    """Linear quantiles on standardized columns, level by level, with a learned strength."""
    linear = QuantileRegressor(task.levels, kernel="linear", level_gamma=np.inf)
    model = task.fit(make_pipeline(TableEncoder(), StandardScaler(), linear))
    return model.predict(task.new), ""


def _histograms(task: Task) -> Predictions:
    """scikit-learn's boosting with its defaults, a model for each level."""

    def of(level: float) -> Any:
        return HistGradientBoostingRegressor(
            loss="quantile", quantile=level, categorical_features="from_dtype", random_state=0
        )

    return _boosted(task, of)


def _lightgbm(task: Task) -> Predictions:
    """LightGBM with its defaults, a model for each level."""
    room, n_threads = import_module("lightgbm"), fitting.threads_allowed()

    def of(level: float) -> Any:
        return room.LGBMRegressor(
            objective="quantile", alpha=level, random_state=0, verbose=-1, n_jobs=n_threads
        )

    return _boosted(task, of)


def _boosted(task: Task, of: Callable[[float], Any]) -> Predictions:
    X, new = _for_trees(task)
    columns = [of(level).fit(X, task.y).predict(new) for level in task.levels]
    return np.column_stack(columns), ""


def _for_trees(task: Task) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The encoded columns, with categories as what trees know them by."""
    encoder = TableEncoder().fit(task.X)
    few = [n for n in task.words if 0 < task.X[n].nunique() <= _MOST_VALUES]
    few = [name for name in few if name in encoder.kinds_]
    plain = ~np.isin(encoder.sources_, few)
    made = []
    for frame in (task.X, task.new):
        columns = pd.DataFrame(encoder.transform(frame)[:, plain])
        columns.columns = [f"x{j}" for j in range(columns.shape[1])]
        for j, name in enumerate(few):
            values = pd.CategoricalDtype(sorted(task.X[name].dropna().unique()))
            columns[f"c{j}"] = frame[name].reset_index(drop=True).astype(values)
        made.append(columns)
    return made[0], made[1]


METHODS: dict[str, Callable[[Task], Predictions]] = {
    "fenchel": _ours,
    "linear": _linear,
    "HistGradientBoosting": _histograms,
    "LightGBM": _lightgbm,
}


def compare(
    data: str, roles: Roles, settings: Settings, *, test_share: float, as_json: bool, quiet: bool
) -> None:
    """Fit all methods to some rows, and measure them on the others."""
    if not 0.0 < test_share < 1.0:
        raise InputError(f"--test-share must lie strictly between 0 and 1, got {test_share:g}")
    table = data_io.read_data(data, roles.markers)
    targets, names, said = checks.check_roles(
        roles, settings.model, table.names, table.label, table.target
    )
    y = data_io.target_values(table, targets, of_fit=True)
    X, columns = data_io.features_of(table, names)
    groups = data_io.groups_of(table, roles.names("groups", table.names, table.label), y)
    X, y, left_out = data_io.with_targets(X, y, table.label)
    y = y.to_numpy()
    if len(X) < _LEAST_ROWS:
        raise InputError(f"{table.label} has {len(X)} rows, and comparing needs {_LEAST_ROWS}")
    train, test = _split(np.arange(len(X)), groups, test_share, settings.seed, table.label)
    warn([*said, *left_out, *columns.doubts])
    levels = parse_levels(settings.levels)
    seen = None if groups is None else groups[train]
    task = Task(X.iloc[train], y[train], X.iloc[test], columns.words, levels, settings, seen)
    with shown(hidden=quiet or as_json) as show:
        results = run(task, y[test], show)
    if as_json:
        record = [{**asdict(result), "loss": result.loss} for result in results]
        head = {"data": table.label, "target": targets[0], "levels": levels}
        rows = {"n_rows": len(train), "n_test_rows": len(test)}
        printing.print_json({**head, **rows, "methods": record})
        return
    _print(results, levels, f"{targets[0]}: {table.label}", (len(train), len(test)))


def _split(
    rows: IntArray, groups: AnyArray | None, share: float, seed: int, label: str
) -> tuple[IntArray, IntArray]:
    """Rows to fit and rows held out: a share of the rows, or the rows of a share of the groups."""
    units, what = (rows, "rows") if groups is None else (np.unique(groups), "groups")
    if math.ceil(share * len(units)) >= len(units):  # as scikit-learn counts them
        raise InputError(
            f"--test-share={share:g} leaves none of the {len(units)} {what} of {label} to fit"
        )
    kept, held_out = train_test_split(
        units, test_size=math.ceil(share * len(units)), random_state=seed
    )
    if groups is None:
        return kept, held_out
    inside = np.isin(groups, kept)
    return rows[inside], rows[~inside]


def run(task: Task, y: FloatArray, show: Show) -> list[Result]:
    """All methods that are installed, one after the other."""
    methods = {k: v for k, v in METHODS.items() if k != "LightGBM" or find_spec("lightgbm")}
    results = []
    for k, (name, method) in enumerate(methods.items()):
        show(f"comparing: {name}", k, len(methods))
        started = time.perf_counter()
        with (
            as_input_errors(f"{name}: "),
            fitting.threads(task.settings.n_jobs),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # the notes say which fit was stopped
            prediction, note = method(task)
        seconds = time.perf_counter() - started
        results.append(
            _result(name, y, prediction.reshape(len(y), -1), task.levels, seconds, note)
        )
    return results


def _result(
    name: str,
    y: FloatArray,
    prediction: FloatArray,
    levels: list[float],
    seconds: float,
    note: str,
) -> Result:
    losses = mean_loss(y, prediction, list(map(Pinball, levels)), multioutput="raw_values")
    low, high = prediction[:, np.argmin(levels)], prediction[:, np.argmax(levels)]
    coverage = float(np.mean((low <= y) & (y <= high)))
    crossing = crossing_loss(prediction, levels)
    return Result(name, np.asarray(losses).tolist(), coverage, crossing, seconds, note)


def _short(loss: float) -> str:
    """In few enough letters for a line of 80."""
    return f"{loss:.0f}" if loss >= 1000.0 else f"{loss:.{4 if loss >= 0.1 else 3}g}"


def _print(results: list[Result], levels: list[float], of: str, n_rows: tuple[int, int]) -> None:
    console = Console(highlight=False)
    console.print(
        f"Pinball losses for {of}, {n_rows[0]} rows to learn from, {n_rows[1]} held out",
        style="bold",
        markup=False,
    )
    table = RichTable(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("method", no_wrap=True)
    each = len(levels) <= _SHOWN
    inside = max(levels) - min(levels)
    names = [percent(level) for level in levels] if each else []
    names += ["sum"] if len(levels) > 1 else []
    names += ["covered", "crossing"] if inside > 0.0 else []
    for name in [*names, "seconds"]:
        table.add_column(name, justify="right")
    best = min(results, key=lambda result: result.loss)
    for result in results:
        cells = [_short(loss) for loss in result.losses] if each else []
        cells += [_short(result.loss)] if len(levels) > 1 else []
        if inside > 0.0:
            cells += [percent(result.coverage, 3), f"{result.crossing_loss:.2g}"]
        style = "bold" if result is best else None
        table.add_row(result.method, *cells, f"{result.seconds:.1f}", style=style)
    console.print(table)
    if inside > 0.0:
        ends = f"{percent(min(levels))} and {percent(max(levels))}"
        console.print(f" covered: held-out rows between {ends}, ideally {percent(inside)}")
    for result in results:
        if result.note:
            console.print(f" {result.method}: {result.note}", markup=False)
    if len(results) < len(METHODS):
        console.print(" LightGBM is compared with where it is installed: pip install lightgbm")
