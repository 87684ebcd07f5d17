"""Page and picture of the experiment ``first_hour``, made from its results alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments import harness
from experiments.drawing import BLUE, ORANGE, PURPLE, SKY, VERMILION, draw_ratios
from experiments.first_hour_tasks import (
    CALIBRATED,
    COMMAND,
    DRAWN,
    DRAWS,
    ENGEL,
    FACTOR,
    FOLDS,
    HISTOGRAMS,
    LARGE,
    LIGHTGBM,
    LINEAR,
    MAPIE,
    NEEDS,
    OURS,
    OUTLIERS,
    RANK,
    RANKED,
    SMALL,
    TABLES,
    TEST_ROWS,
)

BOOSTED = (HISTOGRAMS, LIGHTGBM)
PEERS = (HISTOGRAMS, LIGHTGBM, MAPIE, LINEAR)
STYLES = {
    OURS: (VERMILION, "D"),
    RANKED: (PURPLE, "d"),
    CALIBRATED: ("#F0B48A", "P"),  # a light shade
    HISTOGRAMS: (ORANGE, "o"),
    LIGHTGBM: (BLUE, "s"),
    MAPIE: (SKY, "v"),
    LINEAR: ("0.5", "^"),
}

PAGE = """\
# The first hour

What a newcomer would try first: real tables as they are, words and missing values included, with
nothing but defaults, and other packages beside.

    python -m experiments.first_hour
{quick}
The loss is the sum of the three pinball losses at the levels 0.1, 0.5 and 0.9, mean over held-out
rows, in the units of the target; lower is better. Numbers stand beside bars, which are what a
newcomer should find at least.

{bars}

The bars were set beforehand. {ratios}
{cut}
![](picture.png)

The loss over that of the better of the defaults of HGB and LightGBM.

## All measures

{measures}

*Coverage* is that of the interval from the level 0.1 to 0.9, which is to hold 80 %. *Seconds* are
those of fit and prediction together, *MiB* the peak of the whole process, in which Python and the
packages alone take some 300. The line *{command}* is
`fenchel fit rows.csv --target price` from start to end, with reading and reporting, and without
predictions.

{density}
## How it was measured

- One core, a fresh process for each line, compiled code in its cache. Other processes ran beside,
  so that seconds on the clock say little more than those of the processor.
- Rows are drawn at random, {test_rows} held out, or all that are left. The tables with fewer than
  2000 training rows have {folds} folds, and losses and seconds are means over these. No choice has
  seen a held-out row: what is learned or calibrated is so within the training rows.
- *{calibrated}*: what `fenchel fit --coverage 0.8` fits. Of 2000 training rows, kernel and alpha
  are learned from 1000, and the others calibrate in ten folds; of 10 000 rows a quarter is held
  out, and below 500 rows there are five folds that learn anew. The draw of the 1000 rows that
  calibrate alone moves the coverage by a standard deviation of 1.3 points: the line *{drawn}* has
  the mean over {draws} other draws of all rows.
- *{ranked}*: the kernel cut to 500 features, where the fit of all rows takes minutes.
- *HGB*, *LightGBM*: defaults, a model for each level, categories as such. *{mapie}*: MAPIE's
  conformalized quantile regression around HGB, a quarter of the training rows calibrates, a column
  for each category. *{linear}*: `QuantReg` on standardized columns, with no penalty; where columns
  are many it ends at its cap of 1000 iterations.
{absent}
## The tables

{tables}

In the table with outliers {outliers} of the training targets are multiplied by {factor:g};
held-out rows are as they were, so that what is calibrated on rows with outliers covers more of
them. Chicks of *ChickWeight* are held out as a whole.
"""
QUICK = """
**Quick version**: three tables, {rows} training rows, one fold, memory of the command alone. The
bars are not for so few rows.
"""
DENSITY = """\
## A density

*faithful*, length of and waiting for eruptions: minus the mean log density of held-out rows, lower
is better. *fenchel* is `fenchel fit --model density`.

{table}

"""


class Bar(NamedTuple):
    """What was asked, what was measured, and whether that is within."""

    case: str
    bar: str
    measured: str
    within: bool


def losses_of(results: pd.DataFrame) -> pd.DataFrame:
    """A line for each table with targets, a column for each method."""
    frame = results.dropna(subset=["coverage"])
    wide = frame.pivot_table(index="table", columns="method", values="loss", sort=False)
    return wide[[method for method in STYLES if method in wide]]


def best_boosted(losses: pd.DataFrame) -> pd.Series:
    """The better of the defaults of HGB and LightGBM on each table."""
    return losses[[method for method in BOOSTED if method in losses]].min(axis=1)


def bars_of(results: pd.DataFrame) -> list[Bar]:
    """Bars of the tables that were run."""
    found, losses = results.set_index(["table", "method"]), losses_of(results)
    bars = []
    for name, limit in ((SMALL, 20.0), (LARGE, 90.0)):
        if (name, COMMAND) in found.index:
            line = found.loc[(name, COMMAND)]
            case = f"{name}: `fenchel fit`, on the clock"
            told = f"{line['seconds']:.0f} s, of the processor {line['cpu_seconds']:.0f} s"
            bars.append(Bar(case, f"{limit:g} s", told, line["seconds"] <= limit))
        if name == SMALL and (name, COMMAND) in found.index:
            size = found.loc[(name, COMMAND), "memory"] * 2**20 / 1e9
            bars.append(Bar(f"{name}: memory", "1 GB", f"{size:.2f} GB", size <= 1.0))
        if name in losses.index and {OURS, HISTOGRAMS} <= set(losses):
            ours, theirs = losses.loc[name, OURS], losses.loc[name, HISTOGRAMS]
            bar = f"HGB's, {theirs:.1f}"
            bars.append(Bar(f"{name}: loss", bar, f"{ours:.1f}", ours <= theirs))
    ratios = losses[OURS] / best_boosted(losses)
    case = "worst loss over that of the better of HGB and LightGBM"
    told = f"{ratios.max():.3f}, {ratios.idxmax()}"
    bars.append(Bar(case, "1.05", told, ratios.max() <= 1.05))
    wide = results[(results["method"] == CALIBRATED) & (results["test"] >= TEST_ROWS)]
    if len(wide):
        low, high = wide["coverage"].min(), wide["coverage"].max()
        case = f"coverage with `--coverage 0.8`, {len(wide)} tables with {TEST_ROWS} rows held out"
        told = f"{100 * low:.1f} to {100 * high:.1f} %"
        bars.append(Bar(case, "78 to 82 %", told, low >= 0.78 and high <= 0.82))
    drawn = results[results["method"] == DRAWN]
    if len(drawn):
        low, high = drawn["coverage"].min(), drawn["coverage"].max()
        off = drawn["coverage_deviation"].max()
        case = f"the same, mean of {DRAWS} other draws of {len(drawn)} tables"
        told = f"{100 * low:.1f} to {100 * high:.1f} %, one draw at most ± {100 * off:.1f}"
        bars.append(Bar(case, "78 to 82 %", told, low >= 0.78 and high <= 0.82))
    if ENGEL in losses.index and LINEAR in losses:
        ours, theirs = losses.loc[ENGEL, OURS], 1.02 * losses.loc[ENGEL, LINEAR]
        bar = f"linear's plus 2 %, {theirs:.1f}"
        bars.append(Bar(f"{ENGEL}: loss", bar, f"{ours:.1f}", ours <= theirs))
    return bars


def picture(results: pd.DataFrame) -> Figure:
    """Losses over those of the better of the boosting defaults, a line for each table."""
    losses = losses_of(results)
    ratios = losses.div(best_boosted(losses), axis=0).iloc[::-1]
    figure = Figure(figsize=(8.5, 1.4 + 0.42 * len(ratios)), layout="constrained")
    draw_ratios(figure.subplots(), ratios, STYLES, OURS, "the better of HGB and LightGBM")
    return figure


def digits(value: float) -> str:
    """A number with four digits, or a dash where there is none."""
    text = np.format_float_positional(value, precision=4, fractional=False, trim="-")
    return "–" if np.isnan(value) else text


def shown(results: pd.DataFrame) -> pd.DataFrame:
    """The records as text."""

    def column(name: str, form: str, factor: float = 1.0) -> list[str]:
        values = factor * results[name]
        return ["–" if np.isnan(value) else format(value, form) for value in values]

    return pd.DataFrame(
        {
            "table": results["table"].mask(results["table"].duplicated(), ""),
            "method": results["method"],
            "loss": [digits(loss) for loss in results["loss"]],
            "coverage, %": column("coverage", ".1f", 100.0),
            "seconds": column("seconds", ".2f"),
            "of the processor": column("cpu_seconds", ".2f"),
            "MiB": column("memory", ".0f"),
        }
    )


def ratios_of(results: pd.DataFrame) -> str:
    """The loss of the defaults beside those of the others, over all tables."""
    losses = losses_of(results)
    told = [
        f"{np.exp(np.log(losses[OURS] / losses[peer]).mean()):.3f} of that of {peer}"
        for peer in PEERS
        if peer in losses
    ]
    return f"Over these {len(losses)} tables the loss is, as a geometric mean, {', '.join(told)}."


def cut_of(results: pd.DataFrame) -> str:
    """What fewer features give on the table with many rows."""
    found = results.set_index(["table", "method"])
    if (LARGE, RANKED) not in found.index:
        return ""
    line = found.loc[(LARGE, RANKED)]
    told = f"{line['seconds']:.0f} s, {line['memory']:.0f} MiB and a loss of {line['loss']:.1f}"
    return f"On {LARGE}, `--rank {RANK}` gives {told}.\n"


def described(results: pd.DataFrame) -> str:
    """Where each table comes from."""
    facts = results.drop_duplicates("table")
    rows = [
        {
            "table": line.table,
            "R package, data": f"{TABLES[line.table].package}, {TABLES[line.table].item}",
            "target": TABLES[line.table].target or "none",
            "features": line.columns,
            "training rows": line.train,
            "held out, over folds": line.test,
        }
        for line in facts.itertuples()
    ]
    return harness.markdown_table(pd.DataFrame(rows))


def page(results: pd.DataFrame, quick: bool) -> str:
    """The whole page."""
    is_density = results["table"].map(lambda name: TABLES[name].target is None)
    lines = [
        {
            "what": each.case,
            "bar": each.bar,
            "measured": each.measured,
            "within": "yes" if each.within else "no",
        }
        for each in bars_of(results)
    ]
    absent = [method for method in NEEDS if method not in set(results["method"])]
    density = shown(results[is_density]).drop(columns=["table", "coverage, %"])
    return PAGE.format(
        quick=QUICK.format(rows=results["train"].min()) if quick else "",
        bars=harness.markdown_table(pd.DataFrame(lines)),
        ratios=ratios_of(results),
        cut=cut_of(results),
        measures=harness.markdown_table(shown(results[~is_density])),
        density=DENSITY.format(table=harness.markdown_table(density)) if len(density) else "",
        command=COMMAND,
        test_rows=TEST_ROWS,
        folds=FOLDS,
        calibrated=CALIBRATED,
        drawn=DRAWN,
        draws=DRAWS,
        ranked=RANKED,
        mapie=MAPIE,
        linear=LINEAR,
        absent=f"- Not installed, and so left out: {', '.join(absent)}.\n" if absent else "",
        tables=described(results),
        outliers=f"{OUTLIERS:.0%}".replace("%", " %"),
        factor=FACTOR,
    )
