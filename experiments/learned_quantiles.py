"""Learned parameters against the published protocol, on the 20 data sets of joint quantiles.

The protocol is that of ``experiments.joint_quantiles_table1``: levels 0.1, 0.3, 0.5, 0.7 and 0.9,
standardized data, and random splits in 0.7 for training and 0.3 for testing. The grids are read
from the table of that experiment: one width, the 0.7-quantile of the distances between training
rows, and by 5-fold cross-validation of the pinball loss 11 strengths for independent levels
(IND), 143 pairs of strength and coupling for joint ones (JQR). ``QuantileRegressor`` with its
defaults learns a length scale for each feature and its strength in its fit. No choice sees a test
row. The search of JQR's grid is run again beside the first split of each set, for its time.
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
from threadpoolctl import threadpool_limits

from experiments import harness
from experiments.drawing import BLUE, ORANGE, VERMILION, draw_ratios
from experiments.joint_quantiles_page import compare
from experiments.joint_quantiles_table1 import LEVELS, best_pairs
from fenchel import QuantileRegressor

NAME = "learned_quantiles"
THEIRS = "joint_quantiles_table1"
OURS, GRIDS = "learned", ("IND", "JQR")
STYLES = {OURS: (VERMILION, "o"), "IND": (BLUE, "s"), "JQR": (ORANGE, "^")}
QUICK_SETS = ("mcycle", "topo")
TIMED_SPLITS = 1
GOAL_SHARE = 0.2

PAGE = """\
# Learned parameters against grids on small samples

`QuantileRegressor` with its defaults, which learns a length scale for each feature and alpha, on
the protocol of Table 1 of Sangnier, Fercoq, d'Alché-Buc (2016): 20 data sets of 38 to 1375 rows,
{splits}, 0.7 for training and 0.3 for testing, levels 0.1, 0.3, 0.5, 0.7, 0.9.
The grids are those of [joint_quantiles_table1](../joint_quantiles_table1/page.md), on the same
splits.

    python -m experiments.learned_quantiles{options}
{quick}
{verdict}

*Better or equal*: data sets on which the mean loss over splits is at most the grid's; in brackets
those where a Wilcoxon signed-rank test over the splits is significant at 0.05, which is too easily
said of random splits of one sample. *Ratio*: learned over grid, geometric mean over data sets.

Time of learning and its fit over that of the search of JQR's grid alone, in the same process, by
the processor's time: median {share:.2f}, {n_fast} of {n_timed} data sets at most {goal:.0%}; the
largest {largest}.

![](picture.png)

## Every data set

Pinball losses times 100, means over splits; ratios of the means.

{every}
"""


def one_split(name: str, k: int, quick: bool) -> list[dict[str, Any]]:
    """Learn on the training rows of one split, measure on its test rows."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        X, y = harness.standardized(name)
        train, test = harness.split(len(X), k)
        started = time.process_time()
        model = QuantileRegressor(LEVELS).fit(X[train], y[train])
        record = {
            "data_set": name,
            "split": k,
            "method": OURS,
            "training_rows": len(train),
            "pinball": harness.pinball(y[test], model.predict(X[test]), LEVELS),
            "criterion": np.nan if model.learned_ is None else model.learned_.criterion,
            "alpha": model.alpha_,
            "relative_gap": model.certificate_.relative_gap,
            "seconds": time.process_time() - started,
            "grid_seconds": np.nan,
        }
        if k < TIMED_SPLITS:
            started = time.process_time()
            best_pairs(X[train], y[train], GRIDS, quick)
            record["grid_seconds"] = time.process_time() - started
    return [record]


def with_grids(results: pd.DataFrame) -> pd.DataFrame:
    """The same with the losses of the grids on the same splits."""
    stored = pd.read_csv(harness.HERE / "results" / THEIRS / "results.csv")
    stored = stored.loc[stored["method"].isin(GRIDS), ["data_set", "split", "method", "pinball"]]
    return pd.concat([results, results[["data_set", "split"]].merge(stored)], ignore_index=True)


def means(results: pd.DataFrame) -> pd.DataFrame:
    """Mean loss over the splits, a row for each data set and a column for each method."""
    return results.pivot_table("pinball", "data_set", "method", sort=False)[[OURS, *GRIDS]]


def verdict(results: pd.DataFrame) -> str:
    """How often learning is as good as each grid."""
    mean, lines = means(results), []
    for grid in GRIDS:
        ratio = mean[OURS] / mean[grid]
        each = {name: compare(results, "pinball", name, grid, OURS) for name in ratio.index}
        good = [one.significant for one in each.values() if not one.worse]
        worse = {name: one.significant for name, one in each.items() if one.worse}
        lines.append(
            {
                "grid": grid,
                "better or equal": f"{len(good)} ({sum(good)})",
                "worse": f"{len(worse)} ({sum(worse.values())}): {', '.join(worse)}",
                "ratio": f"{np.exp(np.log(ratio).mean()):.3f}",
                "worst": f"{ratio.max():.3f}, {ratio.idxmax()}",
            }
        )
    return harness.markdown_table(pd.DataFrame(lines))


def picture(results: pd.DataFrame) -> Figure:
    """Losses over those of joint quantile regression for each data set."""
    mean = means(results)
    figure = Figure(figsize=(7.0, 0.28 * len(mean) + 1.2))
    axes = figure.subplots()
    draw_ratios(axes, mean.div(mean["JQR"], axis=0), STYLES, OURS, "JQR")
    axes.invert_yaxis()
    return figure


def page(results: pd.DataFrame, quick: bool) -> str:
    """What was measured."""
    mean, own = means(results), results[results["method"] == OURS]
    groups = own.groupby("data_set", sort=False)
    every = (100.0 * mean).map("{:.2f}".format)
    every.insert(0, "training rows", groups["training_rows"].first().astype(int))
    for grid in GRIDS:
        every[f"over {grid}"] = (mean[OURS] / mean[grid]).map("{:.3f}".format)
    every["seconds"] = groups["seconds"].median().map("{:.2f}".format)
    timed = own.dropna(subset="grid_seconds").groupby("data_set")[["seconds", "grid_seconds"]]
    share = timed.sum()["seconds"] / timed.sum()["grid_seconds"]
    splits = own["split"].nunique()
    return PAGE.format(
        splits="one random split" if splits == 1 else f"{splits} random splits",
        options=harness.options(splits, 2 if quick else 20),
        quick="\nQuick version: few data sets, splits and candidates.\n" if quick else "",
        verdict=verdict(results),
        share=share.median(),
        n_fast=int((share <= GOAL_SHARE).sum()),
        n_timed=len(share),
        goal=GOAL_SHARE,
        largest=f"{share.max():.2f} on {share.idxmax()}",
        every=harness.markdown_table(every.reset_index(names="data set")),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is asked for and write table, picture and page."""
    asked = harness.arguments(NAME, __doc__, 20, argv)
    sets = QUICK_SETS if asked.quick else harness.DATA_SETS
    tasks = [(name, k, asked.quick) for k in range(asked.splits) for name in sets]
    results = with_grids(asked.run(one_split, tasks))
    asked.write(results, picture(results), page(results, asked.quick))


if __name__ == "__main__":
    main()
