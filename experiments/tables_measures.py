"""What the experiment ``tables`` measures of one method on one split of one table."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from experiments import tables_data
from experiments.harness import pinball
from experiments.tables_methods import METHODS

LEVELS = (0.1, 0.5, 0.9)
MANY = tuple(round(0.05 * k, 2) for k in range(1, 20))
QUICK_MANY = MANY[1::4]
CONFORMAL_SHARE = 0.25
WARM_UP_ROWS = 60
QUICK_ROWS, QUICK_TEST_ROWS = 120, 300
STATUS = Path("/proc/self/status")
START = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
IMPORTED = ("fenchel", "lightgbm", "xgboost", "quantile_forest")
"""What processes have imported when they begin, where it is installed."""


class Split(NamedTuple):
    """Rows for training and for testing, and what is known of the table."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    facts: dict[str, Any]
    small: bool
    """Whether fits are cheap enough for many levels and for calibration."""
    quick: bool


def split(name: str, k: int, rows: int, quick: bool) -> Split:
    """The k-th random split of a table."""
    table = tables_data.load(name)
    train, test = table.split(k, rows)
    if quick:
        train, test = train[:QUICK_ROWS], test[:QUICK_TEST_ROWS]
    facts = {
        "table": name,
        "split": k,
        "rows": len(table.y),
        "columns": table.X.shape[1],
        "categories": int(table.groups.max()) + 1,
        "train": len(train),
        "test": len(test),
    }
    small = rows == min(tables_data.ENOUGH_FOR)
    return Split(table.X[train], table.y[train], table.X[test], table.y[test], facts, small, quick)


def relative_loss(data: Split, curves: np.ndarray, levels: tuple[float, ...]) -> float:
    """Loss of the test rows over that of the quantiles of the training rows."""
    constants = np.quantile(data.y, levels)[None]
    return pinball(data.y_test, curves, levels) / pinball(data.y_test, constants, levels)


def crossing(curves: np.ndarray) -> float:
    """Share of rows in which a curve lies above the next one, by more than rounding."""
    rounding = 1e-9 * np.abs(curves).max()
    return float((np.diff(curves, axis=1) < -rounding).any(axis=1).mean())


def correction(y: np.ndarray, curves: np.ndarray) -> float:
    """What conformalized quantile regression adds to both ends of the 80 % interval.

    The value of rank ⌈0.8 (n + 1)⌉ among the scores max(low - y, y - high) of n rows that the
    curves have not seen (Romano, Patterson, Candès 2019).
    """
    scores = np.sort(np.maximum(curves[:, 0] - y, y - curves[:, -1]))
    rank = int(np.ceil((LEVELS[-1] - LEVELS[0]) * (len(y) + 1) - 1e-9))
    return float(scores[rank - 1]) if rank <= len(y) else np.inf


def interval(data: Split, curves: np.ndarray, added: float = 0.0) -> tuple[float, float]:
    """Coverage of the 80 % interval, and mean width over that of the constant interval."""
    low, high = curves[:, 0] - added, curves[:, -1] + added
    constant = np.ptp(np.quantile(data.y, (LEVELS[0], LEVELS[-1])))
    inside = (low <= data.y_test) & (data.y_test <= high)
    return float(inside.mean()), float((high - low).mean() / constant)


def memory(entry: str) -> float:
    """MiB that this process has, ``VmRSS``, or has had, ``VmHWM``, where the system says it."""
    lines = STATUS.read_text().splitlines() if STATUS.exists() else []
    sizes = [int(line.split()[1]) for line in lines if line.startswith(f"{entry}:")]
    return sizes[0] / 1024.0 if sizes else np.nan


def measure(data: Split, method: str) -> dict[str, Any]:
    """The record of one method; memory is that of the method if the process did nothing else."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is in the record
        tune, fit = METHODS[method].tune, METHODS[method].fit
        X, y = data.X, data.y
        if not data.quick:  # what is loaded and compiled once is not part of the work
            few = slice(WARM_UP_ROWS)
            fit(tune(X[few], y[few], LEVELS, True), X[few], y[few], LEVELS)
        before, started = memory("VmRSS"), time.perf_counter()
        chosen = tune(X, y, LEVELS, data.quick)
        tuned = time.perf_counter()
        model = fit(chosen, X, y, LEVELS)
        done, peak = time.perf_counter(), memory("VmHWM")
        curves = model.predict(data.X_test)
        coverage, width = interval(data, curves)
        record = {
            **data.facts,
            "method": method,
            "loss": relative_loss(data, curves, LEVELS),
            "crossing": crossing(curves),
            "coverage": coverage,
            "width": width,
            "tuning_seconds": tuned - started,
            "fit_seconds": done - tuned,
            "memory": np.nan if data.quick else peak - before,
            "gap": model.gap,
        }
        if data.small:
            record |= many_levels(data, method, chosen) | calibrated(data, method)
    return record


def many_levels(data: Split, method: str, chosen: Any) -> dict[str, float]:
    """CRPS of 19 levels, over that of the best constants, and the crossings among them."""
    levels = QUICK_MANY if data.quick else MANY
    curves = METHODS[method].fit(chosen, data.X, data.y, levels).predict(data.X_test)
    return {"crps": relative_loss(data, curves, levels), "crossing_many": crossing(curves)}


def calibrated(data: Split, method: str) -> dict[str, float]:
    """The interval of three quarters of the training rows, calibrated by the last quarter."""
    size = len(data.y) - int(CONFORMAL_SHARE * len(data.y))
    X, y = data.X[:size], data.y[:size]
    chosen = METHODS[method].tune(X, y, LEVELS, data.quick)
    model = METHODS[method].fit(chosen, X, y, LEVELS)
    added = correction(data.y[size:], model.predict(data.X[size:]))
    coverage, width = interval(data, model.predict(data.X_test), added)
    return {"coverage_calibrated": coverage, "width_calibrated": width}


def in_fresh_process(data: Split, method: str) -> dict[str, Any]:
    """``measure`` in a process of its own, which has imported the packages and done nothing."""
    context = multiprocessing.get_context(START)
    if START == "forkserver":
        context.set_forkserver_preload([__name__, *IMPORTED])
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(measure, data, method).result()
