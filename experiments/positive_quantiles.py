"""Quantiles that cross nowhere, against joint quantile regression, on the 20 data sets.

The protocol is that of ``experiments.joint_quantiles_table1``: levels 0.1, 0.3, 0.5, 0.7 and 0.9,
standardized data, random splits in 0.7 for training and 0.3 for testing, a Gaussian kernel whose
σ is the 0.7-quantile of the distances between training rows, and 5-fold cross-validation of the
pinball loss. The curves of ``NonCrossingQuantileRegressor`` choose alpha and gap_strength; those
of joint quantile regression (JQR), which may cross, are read from the table of that experiment:
they were tuned on the same folds of the same splits.

Crossings are counted at points drawn uniformly over a box of twice the range of the data.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from experiments import harness
from experiments.joint_quantiles_table1 import LEVELS, crossing, quantile_loss
from fenchel.kernels import DistanceQuantile, Gaussian
from fenchel.model_selection import PathSearchCV
from fenchel.positive import NonCrossingQuantileRegressor

NAME = "positive_quantiles"
OURS, THEIRS = "NonCrossing", "JQR"
ALPHAS = tuple(float(10.0**k) for k in range(0, -7, -1))
GAP_STRENGTHS = (1.0, 0.01)
FOLDS, QUICK_FOLDS = 5, 2
QUICK_SETS, QUICK_ALPHAS = ("mcycle", "CobarOre"), (1e-1, 1e-3, 1e-5)
GAP_RANK = 20
CV_TOL, CV_STEPS, TOL, STEPS = 2e-3, 20, 1e-4, 200
POINTS, QUICK_POINTS = 1_000_000, 10_000
BLOCK = 100_000
GOAL = 1.03


def far_crossings(model: Any, X: np.ndarray, n_points: int, seed: int) -> int:
    """Pairs of neighbouring curves in the wrong order at points over twice the range of X."""
    rng = np.random.default_rng(seed)
    low, high = X.min(axis=0), X.max(axis=0)
    middle, reach = 0.5 * (low + high), high - low
    count = 0
    for start in range(0, n_points, BLOCK):
        size = min(BLOCK, n_points - start)
        points = middle + reach * rng.uniform(-1.0, 1.0, (size, X.shape[1]))
        count += int(np.count_nonzero(np.diff(model.predict(points), axis=1) < 0.0))
    return count


def one_split(name: str, k: int, quick: bool) -> list[dict[str, Any]]:
    """Tune and fit on the training rows of one split, measure on its test rows."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is in the records
        X, y = harness.standardized(name)
        train, test = harness.split(len(X), k)
        shared = {"kernel": Gaussian(DistanceQuantile(0.7)), "gap_rank": GAP_RANK}
        shared["trace_penalty"] = 0.0
        started = time.perf_counter()
        search = PathSearchCV(
            NonCrossingQuantileRegressor(LEVELS, tol=CV_TOL, max_iter=CV_STEPS, **shared),
            {
                "alpha": QUICK_ALPHAS if quick else ALPHAS,
                "gap_strength": (1.0,) if quick else GAP_STRENGTHS,
            },
            cv=KFold(QUICK_FOLDS if quick else FOLDS),
            scoring=lambda model, X, y: -harness.pinball(y, model.predict(X), LEVELS),
        ).fit(X[train], y[train])
        seconds = time.perf_counter() - started
        started = time.perf_counter()
        model = NonCrossingQuantileRegressor(
            LEVELS, tol=TOL, max_iter=STEPS, **shared, **search.best_params_
        ).fit(X[train], y[train])
        fit_seconds = time.perf_counter() - started
        prediction = model.predict(X[test])
        return [
            {
                "data_set": name,
                "split": k,
                "method": OURS,
                "pinball": harness.pinball(y[test], prediction, LEVELS),
                "crossing": crossing(prediction),
                "quantile_loss": quantile_loss(y[test], prediction),
                "far_crossings": far_crossings(model, X, QUICK_POINTS if quick else POINTS, k),
                "alpha": search.best_params_["alpha"],
                "gap_strength": search.best_params_["gap_strength"],
                "relative_gap": model.certificate_.relative_gap,
                "fit_seconds": fit_seconds,
                "search_seconds": seconds,
            }
        ]


def joint(results: pd.DataFrame) -> pd.DataFrame:
    """The rows of joint quantile regression for the same data sets and splits."""
    table = pd.read_csv(harness.HERE / "results" / "joint_quantiles_table1" / "results.csv")
    wanted = results[["data_set", "split"]].drop_duplicates()
    kept = wanted.merge(table[table["method"] == THEIRS], on=["data_set", "split"])
    if len(kept) < len(wanted):
        raise RuntimeError("run experiments.joint_quantiles_table1 for these splits first")
    columns = ["data_set", "split", "method", "pinball", "crossing", "quantile_loss"]
    return kept[columns]


def ratios(results: pd.DataFrame) -> pd.Series:
    """Mean pinball loss over the splits of each data set, ours over theirs."""
    mean = results.groupby(["data_set", "method"], sort=False)["pinball"].mean().unstack()
    return mean[OURS] / mean[THEIRS]


def page(results: pd.DataFrame, quick: bool) -> str:
    """The page as markdown."""
    ratio, own = ratios(results), results[results["method"] == OURS]
    points = QUICK_POINTS if quick else POINTS
    rows = []
    for name in ratio.index:
        row = {"data set": name}
        part = results[results["data_set"] == name].groupby("method")
        for method in (OURS, THEIRS):
            row[f"pinball ×100, {method}"] = f"{100 * part['pinball'].mean()[method]:.1f}"
        row["ratio"] = f"{ratio[name]:.3f}"
        row[f"crossing ×100, {THEIRS}"] = f"{100 * part['crossing'].mean()[THEIRS]:.2f}"
        mine = own[own["data_set"] == name]
        row[f"crossings at {points:,} points, {OURS}"] = str(int(mine["far_crossings"].sum()))
        row["seconds of a fit"] = f"{mine['fit_seconds'].mean():.1f}"
        row["largest relative gap"] = f"{mine['relative_gap'].max():.0e}"
        rows.append(row)
    verdict = "reached" if ratio.mean() <= GOAL else "not reached"
    parts = [
        "# Quantiles that cross nowhere: 20 data sets",
        (__doc__ or "").split("\n\n", 1)[1],
        "This is the quick form: few data sets, candidates and points." if quick else "",
        f"{own['split'].nunique()} splits of {len(ratio)} data sets. Crossings of {OURS} at "
        f"{points:,} points for each fit, on all fits together: "
        f"**{int(own['far_crossings'].sum())}**. Its pinball loss is **{ratio.mean():.3f}** times "
        f"that of {THEIRS} in the mean over data sets (median {ratio.median():.3f}, from "
        f"{ratio.min():.3f} on {ratio.idxmin()} to {ratio.max():.3f} on {ratio.idxmax()}); the "
        f"goal of at most {GOAL} is {verdict}.",
        f"{THEIRS} chose among {11 * 13} pairs of parameters, {OURS} among "
        f"{len(ALPHAS) * len(GAP_STRENGTHS)}. Searches stop at a relative gap of {CV_TOL:g} or "
        f"after {CV_STEPS} steps, final fits at {TOL:g} or after {STEPS}; seconds are those of "
        "one thread on a machine that did other things as well.",
        "![](picture.png)",
        harness.markdown_table(pd.DataFrame(rows)),
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def picture(results: pd.DataFrame) -> Figure:
    """Ratios of pinball losses."""
    ratio = ratios(results).sort_values()
    figure = Figure(figsize=(7.0, 1.2 + 0.28 * len(ratio)), layout="constrained")
    axes = figure.subplots()
    place = np.arange(len(ratio))
    axes.hlines(place, 1.0, ratio, color="0.75")
    axes.plot(ratio, place, "o", color="#0072b2")
    axes.axvline(1.0, color="0.4", linewidth=0.8)
    axes.axvline(ratio.mean(), color="#d55e00", linestyle="--", label=f"mean {ratio.mean():.3f}")
    axes.set_yticks(place, ratio.index)
    axes.set_xlabel(f"pinball loss of {OURS} / pinball loss of {THEIRS}")
    axes.legend(frameon=False)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is asked for and write table, picture and page."""
    asked = harness.arguments(NAME, __doc__, 3, argv)
    sets = QUICK_SETS if asked.quick else harness.DATA_SETS
    tasks = [(name, k, asked.quick) for k in range(asked.splits) for name in sets]
    results = asked.run(one_split, tasks)
    results = pd.concat([results, joint(results)], ignore_index=True)
    asked.write(results, picture(results), page(results, asked.quick))


if __name__ == "__main__":
    main()
