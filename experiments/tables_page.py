"""Page and picture of the experiment ``tables``, made from its results alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import friedmanchisquare, studentized_range

from experiments import harness, tables_data
from experiments.comparisons.boosting import CONTENDERS, FINALISTS
from experiments.drawing import BLUE, GREEN, ORANGE, SKY, VERMILION, draw_ratios
from experiments.tables_methods import METHODS, PENALTIES, PENALTY_ROWS, SETTINGS, TREES

OURS, REFERENCE = "fenchel", "LightGBM"
CLOSE = 0.01
LEVEL = 0.05
STYLES = {
    "LightGBM": (BLUE, "o"),
    "XGBoost": (SKY, "s"),
    "HistGradientBoosting": (ORANGE, "v"),
    "forest": (GREEN, "^"),
    "linear": ("0.5", "x"),
    "fenchel": (VERMILION, "D"),
}
SMALL_ONLY = ["crps", "crossing_many", "coverage_calibrated", "width_calibrated"]

PAGE = """\
# Quantiles of real tables

The levels 0.1, 0.5 and 0.9 on {n_tables} tables, at most {train} training rows each, {splits}
random splits; defaults of this library beside tuned trees.

    python -m experiments.tables{rows}
{quick}
The loss is the sum of the three pinball losses, mean over test rows, divided by that of the
quantiles of the training rows: 1 is no better than constants, and lower is better.

{verdict}

Geometric means of the ratio of losses, and on how many tables it is below 1 or above it. *Fresh*
are the {fresh} tables that were not looked at while learned kernels were developed.

![](picture.png)

{ranks}
Right, the loss on each table, mean over splits, over that of {reference}.

## All measures

{summary}

- *loss*, *CRPS*: geometric means over tables of the ratio to {reference}. The CRPS is that of 19
  levels 0.05, …, 0.95, which each method fits anew with the parameters chosen for three; {ours}
  learns its own.
- *crossing*: share of test rows in which some curve lies above the next one, among 3 levels and
  among 19. Nobody's curves were sorted.
- *coverage*, *width*: of the interval between the levels 0.1 and 0.9, which is to hold 80 %. The
  mean over tables, in brackets its range; the width is over that of the interval of the best
  constants, geometric mean. *Calibrated*: the same after conformal calibration (split CQR) by a
  quarter of the training rows, which neither tuning nor fit has seen.
- *seconds*: medians over tables and splits on one core, other processes beside it. *MiB*: what
  tuning and fit add to the process at most, median and largest.
{unmeasured}
## Where trees win

{trees}

## Loss on each table

Means over splits; the least of a line is bold.

{means}

## Every split

{every}

## The tables

{tables}

Categories are one column for each value. Rows of the splits come from permutations with seeds
0, 1, …; of smaller tables 0.7 are for training. Columns left out are the response in other units,
other columns in another form, what is known only after the response, and categories of many
values.

## The methods

- *LightGBM*, *XGBoost*: {settings} settings, the first the defaults, the others random (learning
  rate, leaves or the depth of as many, rows in a leaf, shares of columns and rows, l2), by the
  loss above: all at the middle level in one fold, the best {contenders} at all levels of that
  fold, and the best {finalists} of these in three folds, where they stop early; then one model
  for each level.
- *HistGradientBoosting* (scikit-learn), *forest* (quantile-forest): defaults.
- *linear*: scikit-learn's `QuantileRegressor` on standardized columns, the l1 penalty from
  {penalties} in three folds of {penalty_rows} rows at most.
- *fenchel*: `QuantileRegressor([0.1, 0.5, 0.9])`, nothing else. Largest relative duality gap of
  these fits: {gap}.
"""
QUICK = """
**Quick version**: few rows, small tables, two settings in place of 25, five levels in place of 19;
memory is not measured.
"""
NOT_MEASURED = "Not measured here: {methods}.\n"
NO_MANY = "CRPS and calibrated intervals are measured with 1000 rows only.\n"


def means_of(results: pd.DataFrame, measure: str = "loss") -> pd.DataFrame:
    """Means over splits: a line for each table, a column for each method, in their order."""
    frame = results.pivot_table(
        index="table", columns="method", values=measure, sort=False, dropna=False
    )
    return frame[[method for method in METHODS if method in frame]]


def reference_of(results: pd.DataFrame) -> str:
    """LightGBM, or the first method where it was not run."""
    methods = list(means_of(results))
    return REFERENCE if REFERENCE in methods else methods[0]


def ranks_of(means: pd.DataFrame) -> pd.Series:
    """Mean over tables of the rank of each method, 1 the best; only where all were run."""
    return means.dropna().rank(axis=1).mean()


def critical_difference(n_methods: int, n_tables: int) -> float:
    """From which difference on mean ranks differ at the level 0.05 (Nemenyi; Demšar 2006)."""
    quantile = studentized_range.ppf(1.0 - LEVEL, n_methods, np.inf) / np.sqrt(2.0)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_tables)))


def alike(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """First and last of each longest run of increasing ranks that do not differ."""
    runs: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(k for k, other in enumerate(ranks) if other - rank <= difference)
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs


def draw_ranks(axes: Axes, means: pd.DataFrame) -> None:
    """Critical-difference diagram: a scale of ranks, names below it, bars over the alike."""
    ranks = ranks_of(means).sort_values()
    n = len(ranks)
    difference = critical_difference(n, len(means.dropna()))
    runs = alike(ranks.tolist(), difference)
    axes.set_axis_off()
    axes.set(xlim=(n + 0.1, 0.9), ylim=(-1.4 - 0.5 * n, 1.6))
    axes.plot([1, n], [0, 0], color="black", linewidth=1.2)
    for rank in range(1, n + 1):
        axes.plot([rank, rank], [0, 0.12], color="black", linewidth=1.2)
        axes.text(rank, 0.2, str(rank), ha="center", va="bottom")
    axes.plot([1, 1 + difference], [1.1, 1.1], color="black", linewidth=1.2)
    axes.text(1 + difference / 2, 1.18, f"critical difference {difference:.2f}", ha="center")
    for k, (first, last) in enumerate(runs):
        ends = [ranks.iloc[first] - 0.04, ranks.iloc[last] + 0.04]
        axes.plot(ends, [-0.22 - 0.16 * k] * 2, color="0.25", linewidth=3.5)
    low = -0.5 - 0.16 * len(runs)
    half = (n + 1) // 2
    for k, (method, rank) in enumerate(ranks.items()):
        best = k < half
        height = low - 0.55 * (k if best else n - 1 - k)
        edge = 1.0 if best else float(n)
        axes.plot([rank, rank, edge], [0, height, height], color=STYLES[method][0], linewidth=1.2)
        axes.text(
            edge,
            height + 0.04,
            f"{method} {rank:.2f}",
            ha="right" if best else "left",
            va="bottom",
            color=STYLES[method][0],
            weight="bold" if method == OURS else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
    axes.set_ylim(low - 0.55 * half, 1.6)


def picture(results: pd.DataFrame) -> Figure:
    """Ranks beside the losses on each table."""
    means = means_of(results)
    figure = Figure(figsize=(15.0, 2.4 + 0.28 * max(len(means), 8)), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.0))
    if means.shape[1] > 2:
        draw_ranks(left, means)
    else:
        left.set_axis_off()
    reference = reference_of(results)
    ratios = means.div(means[reference], axis=0)
    last = OURS if OURS in ratios else ratios.columns[-1]
    draw_ratios(right, ratios.sort_values(last, ascending=False), STYLES, OURS, reference)
    return figure


def geometric(ratios: pd.Series) -> float:
    """Geometric mean of what was measured."""
    return float(np.exp(np.log(ratios.dropna()).mean())) if ratios.notna().any() else np.nan


def shown(value: float, form: str) -> str:
    """A number, or a dash where there is none."""
    return "–" if np.isnan(value) else format(value, form)


def ranks_sentence(means: pd.DataFrame) -> str:
    """What the left half of the picture shows."""
    complete = means.dropna()
    if complete.shape[1] < 3 or len(complete) < 2:
        return "Left, nothing: too little was measured for ranks."
    p = friedmanchisquare(*(complete[method] for method in complete)).pvalue
    difference = critical_difference(complete.shape[1], len(complete))
    return (
        f"Left, the mean rank over tables: methods under one bar do not differ at the {LEVEL:.0%} "
        f"level by\nthe test of Nemenyi, whose critical difference is {difference:.2f} ranks. By "
        f"the test of Friedman,\nthat all are alike has p = {p:.1g}."
    )


def verdict(results: pd.DataFrame) -> str:
    """By how much this library is ahead of each method or behind it, and how often."""
    means = means_of(results)
    if OURS not in means or means.shape[1] < 2:
        return ""
    fresh = means.index.isin(tables_data.FRESH)
    rows = []
    for method in means.columns.drop(OURS):
        ratio = means[OURS] / means[method]
        measured, better, worse = ratio.notna(), ratio < 1 - CLOSE, ratio > 1 + CLOSE
        rows.append(
            {
                f"{OURS} over": method,
                "all tables": shown(geometric(ratio), ".3f"),
                "known tables": shown(geometric(ratio[~fresh]), ".3f"),
                "fresh tables": shown(geometric(ratio[fresh]), ".3f"),
                "better": int(better.sum()),
                f"within {CLOSE:.0%}": int((measured & ~better & ~worse).sum()),
                "worse": int(worse.sum()),
            }
        )
    return harness.markdown_table(pd.DataFrame(rows))


def with_range(results: pd.DataFrame, column: str) -> str:
    """Mean in per cent, and the range of the means of tables."""
    values = results.groupby("table")[column].mean()
    if values.isna().all():
        return "–"
    return f"{values.mean():.1%} ({values.min():.0%} to {values.max():.0%})"


def summary(results: pd.DataFrame) -> str:
    """A line for each method, a column for each measure."""
    results = results.reindex(columns=results.columns.union(SMALL_ONLY, sort=False))
    means, reference = means_of(results), reference_of(results)
    ranks, rows = ranks_of(means), []
    crps = means_of(results, "crps")
    for method in means:
        own = results[results["method"] == method]
        by_table = own.groupby("table").mean(numeric_only=True)
        seconds = own[["tuning_seconds", "fit_seconds"]].median()
        total = (own["tuning_seconds"] + own["fit_seconds"]).median()
        rows.append(
            {
                "method": method,
                "loss": shown(geometric(means[method] / means[reference]), ".3f"),
                "rank": shown(ranks[method], ".2f"),
                "CRPS": shown(geometric(crps[method] / crps[reference]), ".3f"),
                "crossing, 3 and 19": f"{shown(own['crossing'].mean(), '.2%')}, "
                f"{shown(own['crossing_many'].mean(), '.2%')}",
                "coverage": with_range(own, "coverage"),
                "width": shown(geometric(by_table["width"]), ".3f"),
                "calibrated coverage": with_range(own, "coverage_calibrated"),
                "calibrated width": shown(geometric(by_table["width_calibrated"]), ".3f"),
                "seconds to tune": f"{seconds['tuning_seconds']:.1f}",
                "to fit": f"{seconds['fit_seconds']:.2f}",
                "both": f"{total:.1f}",
                "MiB": f"{shown(own['memory'].median(), '.0f')}, "
                f"{shown(own['memory'].max(), '.0f')}",
            }
        )
    return harness.markdown_table(pd.DataFrame(rows))


def tree_wins(results: pd.DataFrame) -> str:
    """The tables on which some method of trees has the lower loss, the clearest first."""
    means = means_of(results)
    trees = [method for method in TREES if method in means]
    if OURS not in means or not trees:
        return "Not measured here."
    rows = []
    for name, line in means.dropna().iterrows():
        best = line[trees].astype(float).idxmin()
        ratio = line[OURS] / line[best]
        if ratio > 1.0:
            rows.append(
                {
                    "table": name,
                    OURS: f"{line[OURS]:.3f}",
                    "best of trees": f"{best}, {line[best]:.3f}",
                    "ratio": f"{ratio:.3f}",
                    "trees ahead of it": f"{int((line[trees] < line[OURS]).sum())} "
                    f"of {len(trees)}",
                }
            )
    rows.sort(key=lambda row: -float(row["ratio"]))
    said = (
        f"On {len(rows)} of {len(means.dropna())} tables the best of {len(trees)} methods of "
        "trees, chosen afterwards by the test rows, has a lower loss"
    )
    return f"{said}:\n\n{harness.markdown_table(pd.DataFrame(rows))}" if rows else f"{said}."


def losses(results: pd.DataFrame, index: list[str]) -> str:
    """Losses with the least of each line in bold."""
    frame = results.pivot_table(index=index, columns="method", values="loss", sort=False)
    frame = frame[[method for method in METHODS if method in frame]]
    rows = []
    for key, line in frame.iterrows():
        keys = key if isinstance(key, tuple) else (key,)
        cells = {
            method: f"**{value:.3f}**" if value == line.min() else shown(value, ".3f")
            for method, value in line.items()
        }
        rows.append({**dict(zip(index, keys, strict=True)), **cells})
    return harness.markdown_table(pd.DataFrame(rows))


def table_facts(results: pd.DataFrame) -> str:
    """Sizes and sources."""
    rows = [
        {
            "table": name,
            "rows": first["rows"],
            "training": first["train"],
            "test": first["test"],
            "columns": first["columns"],
            "categories": first["categories"],
            "source": tables_data.described(name),
        }
        for name, first in results.drop_duplicates("table").set_index("table").iterrows()
    ]
    return harness.markdown_table(pd.DataFrame(rows))


def page(results: pd.DataFrame, quick: bool) -> str:
    """The page as markdown."""
    means = means_of(results)
    train = int(results["train"].max())
    absent = [method for method in METHODS if method not in means]
    unmeasured = NOT_MEASURED.format(methods=", ".join(absent)) if absent else ""
    unmeasured += "" if "crps" in results else NO_MANY
    return PAGE.format(
        n_tables=len(means),
        train=train,
        splits=results["split"].nunique(),
        rows=" --rows 10000" if train > min(tables_data.ENOUGH_FOR) else "",
        quick=QUICK if quick else "",
        verdict=verdict(results),
        fresh=int(means.index.isin(tables_data.FRESH).sum()),
        ranks=ranks_sentence(means),
        reference=reference_of(results),
        ours=OURS,
        summary=summary(results),
        unmeasured=unmeasured,
        trees=tree_wins(results),
        means=losses(results, ["table"]),
        every=losses(results, ["table", "split"]),
        tables=table_facts(results),
        settings=SETTINGS,
        contenders=CONTENDERS,
        finalists=FINALISTS,
        penalties=", ".join(f"{strength:g}" for strength in PENALTIES),
        penalty_rows=PENALTY_ROWS,
        gap=shown(float(results["gap"].max()), ".1g"),
    )
