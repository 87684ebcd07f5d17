"""Learned parameters beside a grid: each estimator with its defaults, and with its best grid.

`SVR`, `ExpectileRegressor` of level 0.9 and `KernelRidge` on the 13 tables of ``tables`` that are
not fresh, 1000 training rows (0.7 of smaller tables). The grid is of 9 strengths and 7 widths, one
for all columns, of a Gaussian kernel on standardized columns, by the loss of the estimator in
folds that are dealt as learning deals them.

With ``--methods``, what other methods have left in results.csv stays there.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import PredefinedSplit
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from experiments import harness, tables_data, tables_measures
from fenchel import SVR, ExpectileRegressor, KernelRidge
from fenchel.kernels import Gaussian
from fenchel.learning.rows import rows_by_content
from fenchel.model_selection import PathSearchCV

NAME = "tables_grid"
ROWS = 1000
ESTIMATORS = {
    "SVR": SVR(),
    "ExpectileRegressor": ExpectileRegressor(0.9),
    "KernelRidge": KernelRidge(),
}
TABLES = tuple(name for name in tables_data.TABLES if name not in tables_data.FRESH)
QUICK_TABLES = ("diabetes", "Sacramento")
STRENGTHS, QUICK_STRENGTHS = 9, 3
WIDTHS, QUICK_WIDTHS = tuple(2.0**k for k in range(-3, 4)), (0.5, 2.0)
CV_TOL = 1e-3  # of fits on folds
CLOSE = 0.02
MANY_ROWS, FOLDS, FOLDS_OF_FEW = 500, 3, 5  # as many as learning takes

PAGE = """\
# Learned parameters beside a grid

Defaults of each estimator, whose length scales and alpha are learned, beside the same estimator
with a grid of {strengths} strengths and {widths} widths of a Gaussian kernel, one for all columns,
which are standardized for it. {n_tables} tables, at most {rows} training rows each, {splits}.

    python -m experiments.tables_grid
{quick}
The loss is that of the estimator (of expectiles, of the level 0.9), mean over test rows, divided
by that of the best constant of the training rows. Both choose by it within the training rows, in
folds that are dealt in the same way, and see nothing of the test rows.

{verdict}

*Close*: the learned loss is at most {close:.0%} above the grid's. *Ratio*: learned over grid,
geometric mean over tables. *Seconds*: medians of the processor's time on one core, with the final
fit; the kernel of the default sees the ranks of columns too.

![](picture.png)

## Every table and split

{every}
"""


def score(
    model: Any, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None
) -> float:
    """Minus the mean loss of a fitted model, of all its levels together."""
    residual = y[:, None] - model.predict(X).reshape(len(y), -1)
    return -float(np.average(model.make_loss(1).value(residual), weights=sample_weight))


def relative_loss(model: Any, data: tables_measures.Split) -> float:
    """Loss of the test rows over that of the best constants of the training rows."""
    own, n_outputs = model.make_loss(1), model.predict(data.X[:1]).size
    targets = np.repeat(data.y[:, None], n_outputs, axis=1)
    residual = data.y_test[:, None] - own.minimizing_offset(targets, np.ones(len(targets)))
    return -score(model, data.X_test, data.y_test) / float(own.value(residual).mean())


def searched(estimator: Any, X: np.ndarray, y: np.ndarray, quick: bool) -> Any:
    """The estimator with the best of the grid, fitted to all rows."""
    n_folds = FOLDS if len(X) >= MANY_ROWS else FOLDS_OF_FEW
    rows = rows_by_content(X, y[:, None], np.ones(len(X)), len(X), n_folds)
    fold = np.repeat(np.arange(rows.n_folds), np.diff(rows.starts))
    widths = np.sqrt(X.shape[1]) * np.array(QUICK_WIDTHS if quick else WIDTHS)
    search = PathSearchCV(
        clone(estimator).set_params(kernel=Gaussian(), tol=CV_TOL),
        {
            "alpha": QUICK_STRENGTHS if quick else STRENGTHS,
            "length_scale": widths.tolist(),
        },
        cv=PredefinedSplit(fold),
        scoring=score,
        refit=False,
    ).fit(rows.X, rows.targets[:, 0], sample_weight=rows.weight)
    best = search.best_params_
    estimator.set_params(kernel=Gaussian(best["length_scale"]), alpha=best["alpha"])
    return estimator.fit(X, y)


def one_task(name: str, k: int, method: str, quick: bool) -> list[dict[str, Any]]:
    """Losses of one estimator on one split, learned and searched."""
    data = tables_measures.split(name, k, ROWS, quick)
    scaler = StandardScaler().fit(data.X)
    scaled = data._replace(X=scaler.transform(data.X), X_test=scaler.transform(data.X_test))
    record = {**data.facts, "method": method}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        started = time.process_time()
        learned = clone(ESTIMATORS[method]).fit(data.X, data.y)
        record["learned_seconds"] = time.process_time() - started
        record["learned"] = relative_loss(learned, data)
        grid = clone(ESTIMATORS[method])
        if method == "SVR":
            grid.set_params(epsilon=learned.epsilon_)  # or losses of folds differ
        started = time.process_time()
        chosen = searched(grid, scaled.X, data.y, quick)
        record["grid_seconds"] = time.process_time() - started
        record["grid"] = relative_loss(chosen, scaled)
        record["grid_alpha"], record["grid_width"] = chosen.alpha_, chosen.kernel_.length_scale
    return [record]


def picture(results: pd.DataFrame) -> Figure:
    """Learned over grid for each table."""
    names = list(dict.fromkeys(results["table"]))
    figure = Figure(figsize=(7.0, 0.3 * len(names) + 1.2))
    axes = figure.subplots()
    axes.axvspan(0.0, 1.0 + CLOSE, color="0.93")
    axes.axvline(1.0, color="0.6", linewidth=0.8)
    for (method, group), mark in zip(results.groupby("method", sort=False), "osv^", strict=False):
        ratio = group["learned"] / group["grid"]
        axes.plot(ratio, [names.index(name) for name in group["table"]], mark, label=method)
    low = float((results["learned"] / results["grid"]).min())
    axes.set(yticks=range(len(names)), yticklabels=names, xlabel="learned loss over the grid's")
    axes.set_xlim(left=low - 0.03)
    axes.invert_yaxis()
    axes.legend(fontsize="small", loc="lower right")
    return figure


def verdict(results: pd.DataFrame) -> str:
    """How often learning is as good as the grid, and what both cost."""
    lines = []
    for method, group in results.groupby("method", sort=False):
        means = group.groupby("table")[["learned", "grid"]].mean()
        ratio = means["learned"] / means["grid"]
        lines.append(
            {
                "estimator": method,
                "close or better": f"{(ratio <= 1.0 + CLOSE).sum()} of {len(ratio)}",
                "better": (ratio < 1.0).sum(),
                "ratio": f"{np.exp(np.log(ratio).mean()):.3f}",
                "worst": f"{ratio.max():.3f}, {ratio.idxmax()}",
                "seconds, learned": f"{group['learned_seconds'].median():.1f}",
                "grid": f"{group['grid_seconds'].median():.1f}",
            }
        )
    return harness.markdown_table(pd.DataFrame(lines))


def page(results: pd.DataFrame, quick: bool) -> str:
    """What was measured."""
    results = results.assign(ratio=results["learned"] / results["grid"])
    every = results[["method", "table", "split", "train", "learned", "grid", "ratio"]].copy()
    for column in ("learned", "grid", "ratio"):
        every[column] = every[column].map("{:.3f}".format)
    splits = results["split"].nunique()
    return PAGE.format(
        strengths=QUICK_STRENGTHS if quick else STRENGTHS,
        widths=len(QUICK_WIDTHS if quick else WIDTHS),
        n_tables=results["table"].nunique(),
        rows=ROWS,
        splits="one random split" if splits == 1 else f"{splits} random splits",
        quick="\nQuick version: few rows, tables and candidates.\n" if quick else "",
        verdict=verdict(results),
        close=CLOSE,
        every=harness.markdown_table(every),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is asked for and write table, picture and page."""
    asked = harness.arguments(NAME, __doc__, 1, argv, tuple(ESTIMATORS))
    tasks = [
        (name, k, method, asked.quick)
        for method in asked.methods
        for k in range(asked.splits)
        for name in (QUICK_TABLES if asked.quick else TABLES)
    ]
    results, order = asked.run(one_task, tasks), list(ESTIMATORS).index
    results = results.sort_values("method", key=lambda names: names.map(order), kind="stable")
    asked.write(results, picture(results), page(results, asked.quick))


if __name__ == "__main__":
    main()
