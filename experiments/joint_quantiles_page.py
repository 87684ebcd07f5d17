"""Page and picture of Table 1 of Sangnier, Fercoq, d'Alché-Buc (2016)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import wilcoxon

from experiments.drawing import BLUE, VERMILION
from experiments.harness import VARIANTS, markdown_table, own_name, published

COMPETITORS = ("IND", "IND_NC", "MTFL")
METHODS = (*COMPETITORS, "JQR")
CRITERIA = {
    "pinball": ("joint_quantiles_table1", "pinball_x100", "pinball_sd"),
    "crossing": ("joint_quantiles_table1", "crossing_x100", "crossing_sd"),
    "quantile_loss": ("joint_quantiles_suppl_table1", "quantile_loss_x100", "sd"),
}
DECIMALS = {"pinball": 1, "crossing": 2, "quantile_loss": 1}
SIGNIFICANCE = 0.05
PUBLISHED_SPLITS = 20

INTRODUCTION = """\
# Joint quantile regression against its competitors

Table 1 and supplementary Table 1 of Sangnier, Fercoq, d'Alché-Buc (2016), *Joint quantile
regression in vector-valued RKHSs*: losses ×100 on test rows, mean ± standard deviation over
{splits} random splits, 0.7 for training and 0.3 for testing.

    python -m experiments.joint_quantiles_table1 --jobs 2
{quick}
Levels 0.1, 0.3, 0.5, 0.7, 0.9; data standardized; Gaussian kernel, σ the 0.7-quantile of the
distances between training rows; coupling exp(-γ(τ_i - τ_j)²); C in 10⁻⁵, 10⁻⁴, …, 10⁵ for all
methods, γ in the same grid with 0 and ∞ for JQR, by cross-validation of the pinball loss. The
random splits are not those of the paper. What the paper leaves open, and what we chose:

- 5 folds; C multiplies the sum of the losses in folds and final fits alike.
- Fits in the folds to a relative duality gap of 1e-4, final fits to 1e-6. γ ≥ 10³ is γ = ∞ in
  floating point and is fitted once.
- MTFL by an interior-point method over a matrix of the levels in place of the paper's alternation
  over one of the features, which has the same least value: to a relative duality gap of 1e-4, or
  as far as rounding allows.
"""
QUICK = """
**Quick version**: a few data sets, coarse grids, 3 folds. The numbers only show that it runs.
"""


OTHER = """
The published losses of three data sets are far from ours under every method. Under another reading
of the columns they come out, also in the experiment on ε-insensitive losses: CobarOre with the
column `y`, a coordinate, as target while it stays among the features; crabs without the factor
`sp`; UN3 with `ModernC` as target. Several readings were tried for each and the matching one
kept, so this is an inference, not a proof. Pinball and crossing loss ×100 of JQR:
"""


class Comparison(NamedTuple):
    """A method, JQR here, against a competitor on one data set."""

    better: bool
    worse: bool
    significant: bool
    splits: int
    """Number of splits that both were run on, of which the verdict is."""
    own: float
    """Mean of the method over these."""


def measured(results: pd.DataFrame, criterion: str) -> pd.DataFrame:
    """Mean and sd ×100, a row for each data set, a column for each method and statistic."""
    groups = results.groupby(["data_set", "method"])[criterion]
    return 100.0 * groups.agg(["mean", "std"]).unstack("method")


def printed(criterion: str) -> pd.DataFrame:
    """The same as published."""
    name, mean, deviation = CRITERIA[criterion]
    frame = published(name).rename(columns={mean: "mean", deviation: "std"})
    return frame.pivot_table(index="data_set", columns="method", values=["mean", "std"])


def compare(
    results: pd.DataFrame, criterion: str, name: str, competitor: str, method: str = "JQR"
) -> Comparison:
    """Means, and a Wilcoxon signed-rank test on the splits."""
    mine = results[results["data_set"] == name]
    table = mine.pivot_table(index="split", columns="method", values=criterion)
    table = table[[method, competitor]].dropna()
    difference = (table[method] - table[competitor]).to_numpy()
    level = 1.0 if not difference.any() else float(wilcoxon(difference).pvalue)
    mean = difference.mean()
    verdict = bool(mean < 0), bool(mean > 0), level < SIGNIFICANCE
    return Comparison(*verdict, len(table), float(table[method].mean()))


def comparisons(results: pd.DataFrame, criterion: str) -> dict[str, dict[str, Comparison]]:
    """For each competitor that was run and each data set."""
    present = set(results["method"])
    if "JQR" not in present:
        return {}
    return {
        competitor: {
            name: compare(results, criterion, name, competitor)
            for name in results["data_set"].unique()
        }
        for competitor in COMPETITORS
        if competitor in present
    }


def table(results: pd.DataFrame, criterion: str) -> str:
    """Published beside measured; a sign where the difference from JQR is significant."""
    ours, theirs = measured(results, criterion), printed(criterion)
    verdicts = comparisons(results, criterion)
    methods = [method for method in METHODS if method in set(results["method"])]
    splits, rows = set(results["split"]), []
    for name in results["data_set"].unique():
        row = {"data set": name}
        for method in methods:
            row[f"{method} published"] = _cell(theirs, name, method, criterion)
            verdict = verdicts.get(method, {}).get(name)
            sign = ""
            if verdict is not None and verdict.significant:
                sign = " +" if verdict.better else " −"
            row[f"{method} measured"] = _cell(ours, name, method, criterion) + sign
            if verdict is not None and verdict.splits < len(splits):
                mean = f"{100.0 * verdict.own:.{DECIMALS[criterion]}f}"
                row[f"JQR on the splits of {method}"] = mean
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def _cell(frame: pd.DataFrame, name: str, method: str, criterion: str) -> str:
    digits = DECIMALS[criterion]
    mean, deviation = frame.loc[name, ("mean", method)], frame.loc[name, ("std", method)]
    spread = f" ± {deviation:.{digits}f}" if np.isfinite(deviation) else ""
    return f"{mean:.{digits}f}{spread}"


def agreement(results: pd.DataFrame) -> str:
    """Where JQR's means are as published, and where not."""
    lines = []
    tests = {
        "pinball": ("within one published standard deviation of the published mean", True),
        "crossing": ("at most the published mean plus one published standard deviation", False),
    }
    for criterion, (what, both_sides) in tests.items():
        ours, theirs = measured(results, criterion), printed(criterion)
        inside, outside = [], []
        for name in results["data_set"].unique():
            away = ours.loc[name, ("mean", "JQR")] - theirs.loc[name, ("mean", "JQR")]
            away = abs(away) if both_sides else away
            good = away <= theirs.loc[name, ("std", "JQR")]
            (inside if good else outside).append(name)
        total = len(inside) + len(outside)
        lines.append(
            f"- JQR's mean {criterion} loss is {what} on **{len(inside)} of {total}** data sets: "
            f"{', '.join(inside) or 'none'}. Not on: {', '.join(outside) or 'none'}."
        )
    return "\n".join([*lines, _by_errors(results)])


def _by_errors(results: pd.DataFrame) -> str:
    """The stricter question: whether means differ by more than the chance of the splits allows."""
    sentences = []
    for criterion in ("pinball", "crossing"):
        ours, theirs = measured(results, criterion), printed(criterion)
        splits = results[results["method"] == "JQR"].groupby("data_set")["split"].nunique()
        far = []
        for name in results["data_set"].unique():
            mine, other = ours.loc[name], theirs.loc[name]
            error = np.hypot(
                mine["std", "JQR"] / np.sqrt(splits[name]),
                other["std", "JQR"] / np.sqrt(PUBLISHED_SPLITS),
            )
            if abs(mine["mean", "JQR"] - other["mean", "JQR"]) > 2.0 * error:
                far.append(name)
        total = results["data_set"].nunique()
        missed = ", ".join(far) or "none"
        sentences.append(f"{criterion} on **{total - len(far)} of {total}** (not on: {missed})")
    return (
        "- Within two combined standard errors of the two means, √(s²/m + s²/m) of both with m "
        f"splits each: {'; '.join(sentences)}. Tests on random splits of one sample are not "
        "independent, so that these errors are too small, and the question too strict."
    )


def summary(results: pd.DataFrame) -> str:
    """On how many data sets JQR is better, as the paper sums up."""
    said = published("joint_quantiles_wilcoxon").set_index(["criterion", "competitor"])
    rows = []
    for criterion in ("pinball", "crossing"):
        for competitor, verdicts in comparisons(results, criterion).items():
            theirs = said.loc[(criterion, competitor)]
            counts = [
                sum(verdict.better for verdict in verdicts.values()),
                sum(verdict.worse for verdict in verdicts.values()),
                sum(verdict.better and verdict.significant for verdict in verdicts.values()),
                sum(verdict.worse and verdict.significant for verdict in verdicts.values()),
            ]
            rows.append(
                {
                    "criterion": criterion,
                    "JQR against": competitor,
                    "published: better vs worse (significantly)": _counts(*theirs.tolist()),
                    "measured": _counts(*counts),
                }
            )
    return markdown_table(pd.DataFrame(rows))


def _counts(better: int, worse: int, clearly_better: int, clearly_worse: int) -> str:
    return f"{better} vs {worse} ({clearly_better} vs {clearly_worse})"


def _other(results: pd.DataFrame, other: pd.DataFrame) -> str:
    """JQR as published, on the data as they are, and in the other reading."""
    rows = []
    for name in other["data_set"].unique():
        row = {"data set": name}
        for criterion in ("pinball", "crossing"):
            sources = {
                "published": (printed(criterion), own_name(name)),
                "as bundled": (measured(results, criterion), own_name(name)),
                "other reading": (measured(other, criterion), name),
            }
            for label, (frame, key) in sources.items():
                row[f"{criterion}, {label}"] = _cell(frame, key, "JQR", criterion)
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def gaps(results: pd.DataFrame) -> str:
    """The largest relative gap of each method's final fits."""
    largest = results.groupby("method")["relative_gap"].max()
    return ", ".join(f"{name} {largest[name]:.1e}" for name in METHODS if name in largest) + "."


def page(results: pd.DataFrame, quick: bool) -> str:
    """The page as markdown."""
    other = results[results["data_set"].isin(VARIANTS)]
    results = results[~results["data_set"].isin(VARIANTS)]
    missing = [method for method in METHODS if method not in set(results["method"])]
    splits = results.groupby("method")["split"].nunique()
    parts = [INTRODUCTION.format(splits=splits.max(), quick=QUICK if quick else "")]
    parts.append("Largest gaps of final fits: " + gaps(results))
    if missing:
        parts.append(f"Not measured here: {', '.join(missing)}.")
    fewer = splits[splits < splits.max()]
    if len(fewer):
        parts.append("; ".join(f"{name}: {k} splits only" for name, k in fewer.items()) + ".")
    if "JQR" in set(results["method"]):
        parts += ["## JQR as published?", agreement(results), "![](picture.png)"]
        if "JQR" in set(other["method"]):
            replaced = [own_name(name) for name in other["data_set"].unique()]
            kept = results[~results["data_set"].isin(replaced)]
            read_so = pd.concat([kept, other.assign(data_set=other["data_set"].map(own_name))])
            parts += ["## Three data sets in another reading", OTHER, _other(results, other)]
            parts += ["With these three read so:", agreement(read_so)]
    if comparisons(results, "pinball"):
        parts += [
            "## JQR against the others",
            f"Data sets where its mean loss is smaller vs larger, in brackets those where a "
            f"Wilcoxon signed-rank test over the splits is significant at {SIGNIFICANCE}. In the "
            "tables below, + is significantly in favour of JQR, − against it.",
            summary(results),
        ]
    titles = {
        "pinball": "Pinball loss ×100",
        "crossing": "Crossing loss ×100",
        "quantile_loss": "Quantile loss ×100 (supplement; the closer to 0, the better)",
    }
    for criterion, title in titles.items():
        parts += [f"## {title}", table(results, criterion)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def picture(results: pd.DataFrame) -> Figure:
    """Published and measured losses of JQR, or of the first method there is."""
    results = results[~results["data_set"].isin(VARIANTS)]
    present = [method for method in reversed(METHODS) if method in set(results["method"])]
    method = present[0]
    names = list(results["data_set"].unique())
    place = np.arange(len(names))
    figure = Figure(figsize=(10.0, 1.4 + 0.34 * len(names)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, criterion in zip(axes, ("pinball", "crossing"), strict=True):
        series = (
            (printed(criterion), "published", BLUE, "o", -0.17),
            (measured(results, criterion), "measured", VERMILION, "s", 0.17),
        )
        for frame, label, colour, marker, shift in series:
            axis.errorbar(
                frame.loc[names, ("mean", method)],
                place + shift,
                xerr=frame.loc[names, ("std", method)],
                fmt=marker,
                color=colour,
                markersize=5,
                elinewidth=1.4,
                label=label,
            )
        axis.set_xlabel(f"{criterion} loss ×100 of {method}, mean ± standard deviation")
        axis.grid(axis="x", color="0.9")
        axis.set_axisbelow(True)
        for row in place[::2]:
            axis.axhspan(row - 0.5, row + 0.5, color="0.96", zorder=0)
    axes[0].set_yticks(place, names)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    axes[0].set_xlim(left=-2.0)
    axes[1].set_xscale("symlog", linthresh=1.0)
    axes[1].set_xlim(left=-0.05)
    axes[1].set_xticks([0.0, 0.5, 1.0, 3.0, 10.0], ["0", "0.5", "1", "3", "10"])
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
