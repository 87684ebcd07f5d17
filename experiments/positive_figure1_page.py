"""The page of Figure 1 of the non-negative models: claims, tables and the picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments import harness
from experiments.drawing import BLUE, GREY, SKY, VERMILION, without_box
from experiments.positive_common import VERDICT, mean_and_error

TITLES = {
    "PNM": "partially non-negative",
    "NCM": "non-negative coefficients",
    "GLM": "generalized linear",
    "NW": "Nadaraya–Watson",
    "PSD": "positive semi-definite",
}
ORANGE = "#E69F00"
Curves = dict[str, list[float]]

PAGE = """\
# Three problems, five models

Figure 1 of Marteau-Ferey, Bach, Rudi (2020), *Non-parametric models for non-negative functions*,
with the estimators of Nadaraya and Watson in addition.

    python -m experiments.positive_figure1{options}

![Three problems, five models](picture.png)

**To be seen.** Data in grey, truth in orange, estimates in blue (seed 0); in red where a density
is negative, where there is no variance because the precision is not positive, and where
quantiles cross. Only the models of the last column are found by convex problems, non-negative
and in order at every x, and of exact integral, without being narrowed by their kernel.

**The paper's claims**, over seeds 0 to {last}:

{claims}

{density}

{variance}

{quantiles}

Means ± standard errors over the seeds. Log-likelihoods and pinball losses are of 2000 new rows;
rows with less than 1e-6 count as 1e-6. A density with negative values is judged by its positive
part, divided by the integral of that, and chosen by least squares, 2 mean f(x_i) - ∫f²: its
likelihood grows with what it borrows from where it is negative. The distance is ∫|f - ρ|;
integrals and negative mass are by the trapezoidal rule on a grid of step 0.005 over [-8, 8].
Pinball losses are of x uniform over [0, 1], hole included, and of x as drawn; the error in the
hole is that of 1/3 < x < 2/3. Crossings are shares of 1001 points of [0, 1].

**Data**, those of the authors' code. Density: n = 50 from ½ N(-1, 0.3) + ½ N(1, 0.3), 0.3 read
as variance. Heteroscedastic regression: n = 100, x uniform on [0, 1], mean 2(exp(-30 (x - ¼)²) +
sin πx²), standard deviation exp(sin 2πx). Quantiles: n = 100, x on [0, 1] with a hole, u
uniform, c = 2/3 + 0.2, x = max(2/3, cu + 1 - c) for u > ½ and min(1/3, cu) else, so that some
rows lie exactly at 1/3 and 2/3; y normal with mean 0 and standard deviation 4 max(x - 2/3, 0) +
4 max(1/3 - x, 0). The printed example of the variance has other numbers in the literature it
cites; the authors' decide. The paper prints neither n of the last two nor any tuned value.

**Setting.** Every model chooses by five-fold cross-validation on its training rows, by
likelihood or pinball loss. Density: σ = 1 for all but Nadaraya–Watson, which is there the kernel
density estimate with its own bandwidth; strengths are powers of ten from 1e-6 to 1000 (PSD: also
that of the trace from 0 and 1e-4). The GLM lives on [-4, 4], normalized by 1000 Monte Carlo
points. Variances and quantiles: each of the two functions has a strength and a σ, mean and
precision, median and distances, as in the authors' code. They are searched in turn: the first,
with the same for both, from 1e-5 to 0.1 (quantiles 1e-4 to 0.1) and σ of 0.1, 0.2, 0.4, then the
second from 0.01 to 100 times the first and σ of 0.1, 0.2, 0.4, 0.8. The PNM of the quantiles is
`QuantileRegressor(non_crossing="train")`, three functions of one strength and σ. A first run
searched the first function once more after the second, and had 1e-6 and 1 among the strengths of
the variance; it was cut to this for time after three seeds, at whose chosen values the grid was
trimmed. {seconds:.0f} s of processor time.

**Against the paper**, which prints a picture and no numbers but the GLM's integral, 0.987. Its
GLM fails on quantiles; with a rounded pinball loss and three starts of L-BFGS ours does not (the
starts end at different objectives in {apart_quantiles:.0%} of the fits of the figure's models,
in {apart_variance:.0%} for the variance).
"""


def picture(found: pd.DataFrame) -> Figure:
    """A row for each problem, a column for each model."""
    figure = Figure(figsize=(14.5, 8.2), layout="constrained")
    panels = figure.subplots(3, len(TITLES), sharey="row", sharex="row")
    first = found[found.seed == 0].set_index(["problem", "model"])
    painters = {"density": show_density, "variance": show_variance, "quantiles": show_quantiles}
    for row, (problem, paint) in enumerate(painters.items()):
        for column, model in enumerate(TITLES):
            record, axes = first.loc[(problem, model)], panels[row, column]
            curves = {name: np.array(values) for name, values in record["curves"].items()}
            paint(axes, record, curves)
            without_box(axes)
            if row == 0:
                axes.set_title(TITLES[model])
    panels[0, 0].set(ylabel="density", ylim=(-0.25, 0.62), xlim=(-3.6, 3.6))
    panels[1, 0].set(ylabel="mean and twice the standard deviation", ylim=(-8.5, 10.0))
    panels[2, 0].set(ylabel="quartiles", ylim=(-3.0, 3.4))
    return figure


def note(axes: Any, text: str) -> None:
    """What is annotated, in the upper corner."""
    axes.text(0.98, 0.99, text, transform=axes.transAxes, ha="right", va="top", fontsize=8.5)


def show_density(axes: Any, record: Any, curves: Any) -> None:
    grid, values = curves["x"], curves["estimate"]
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    axes.vlines(curves["rows"], 0.0, 0.03, color=GREY, linewidth=0.7)
    axes.plot(grid, curves["truth"], color=ORANGE, linewidth=1.6)
    axes.plot(grid, values, color=BLUE, linewidth=1.8)
    negative = values < 0.0
    axes.fill_between(grid, values, 0.0, where=negative, color=VERMILION, alpha=0.5)
    note(axes, f"∫ = {record.integral:.3f}\nnegative mass {abs(record.negative):.3f}")


def show_variance(axes: Any, record: Any, curves: Any) -> None:
    grid, mean, std = curves["x"], curves["mean"], curves["std"]
    truth, true_std = curves["truth"], curves["true_std"]
    axes.scatter(curves["rows"], curves["targets"], s=6, color=GREY, alpha=0.6, linewidths=0)
    for shift in (-2.0, 0.0, 2.0):
        axes.plot(
            grid, truth + shift * true_std, color=ORANGE, linewidth=1.6 if shift == 0.0 else 1.0
        )
    good = std > 0.0
    axes.fill_between(
        grid, mean - 2.0 * std, mean + 2.0 * std, where=good, color=SKY, alpha=0.3, linewidth=0
    )
    axes.plot(grid, np.where(good, mean, np.nan), color=BLUE, linewidth=1.8)
    _mark(axes, grid, ~good)
    note(axes, f"log-likelihood {record.test:.3f}\nno variance on {record.undefined:.1%}")


def show_quantiles(axes: Any, record: Any, curves: Any) -> None:
    grid = curves["x"]
    estimate = np.stack([curves[f"q{j}"] for j in range(3)], axis=1)
    truth = np.stack([curves[f"truth{j}"] for j in range(3)], axis=1)
    axes.scatter(curves["rows"], curves["targets"], s=6, color=GREY, alpha=0.6, linewidths=0)
    axes.plot(grid, truth, color=ORANGE, linewidth=1.2)
    axes.plot(grid, estimate, color=BLUE, linewidth=1.6)
    _mark(axes, grid, np.any(np.diff(estimate, axis=1) < 0.0, axis=1))
    note(axes, f"pinball loss {record.test:.4f}\ncrossings on {record.crossings:.1%}")


def _mark(axes: Any, grid: np.ndarray, bad: np.ndarray) -> None:
    """Shade where something is wrong."""
    axes.fill_between(
        grid,
        0.0,
        1.0,
        where=bad,
        transform=axes.get_xaxis_transform(),
        color=VERMILION,
        alpha=0.3,
        linewidth=0,
    )


COLUMNS = {
    "density": {
        "test": "log-likelihood",
        "integral": "integral",
        "negative": "negative mass",
        "distance": "distance",
    },
    "variance": {
        "test": "log-likelihood",
        "mean_error": "error of the mean",
        "std_error": "error of log std",
        "undefined": "no variance",
    },
    "quantiles": {
        "test": "pinball loss",
        "drawn": "as drawn",
        "error": "error of the curves",
        "middle": "in the hole",
        "crossings": "crossings",
        "deepest": "deepest crossing",
    },
}


def table(results: pd.DataFrame, problem: str) -> str:
    """Means over the seeds."""
    part = results[results.problem == problem]
    rows = []
    for model, name in TITLES.items():
        own = part[part.model == model]
        row = {problem: name}
        for column, title in COLUMNS[problem].items():
            mean, error = mean_and_error(own[column])
            said = f"{mean:.4f}" if column != "test" else f"{mean:.4f} ± {error:.4f}"
            row[title] = said.replace("-0.0000", "0.0000")
        row["seconds"] = f"{own.seconds.mean():.1f}"
        rows.append(row)
    return harness.markdown_table(pd.DataFrame(rows))


def claims(results: pd.DataFrame) -> str:
    """Each claim of section 6 with its numbers and a verdict."""
    means = results.groupby(["problem", "model"]).mean(numeric_only=True)
    negative = results[(results.problem == "density") & (results.model == "PNM")].negative
    density, variance = means.loc["density"], means.loc["variance"]
    curves = means.loc["quantiles"]
    others = density.drop(["PSD", "NW"])
    crossed = results[(results.problem == "quantiles") & (results.model == "PNM")].crossings
    glm = results[(results.problem == "density") & (results.model == "GLM")]
    off = float((glm.integral - 1.0).abs().max())
    psd = results[(results.problem == "density") & (results.model == "PSD")]
    exact = float((psd.integral - 1.0).abs().max())
    said = [
        (
            "the PNM density takes negative values",
            bool((negative < -1e-4).any()),
            f"negative mass in {int((negative < -1e-4).sum())} of {len(negative)} seeds, "
            f"{-negative.mean():.3f} on average; {-density.borrowed['PNM']:.3g} where the "
            "likelihood of held-out rows chooses the strength, which rewards the borrowing",
        ),
        (
            "the NCM density cannot fit",
            density.distance["NCM"] > 1.5 * density.distance["PSD"],
            f"∫|f - ρ| = {density.distance['NCM']:.3f}, PSD {density.distance['PSD']:.3f}",
        ),
        (
            "the GLM density misses the integral one, the PSD density does not",
            off > 1e-3 and exact < 1e-6,
            f"the GLM is off by up to {off:.3f}, the "
            f"worst of the PSD models by {exact:.0e}; the paper's GLM has 0.987",
        ),
        (
            "the PSD density is the best of the four",
            bool(density.test["PSD"] >= others.test.max()),
            "log-likelihoods " + _listed(density.test),
        ),
        (
            "PSD models fit the variance well, NCM do not",
            bool(variance.test["PSD"] > variance.test["NCM"] + 0.01),
            "log-likelihoods "
            + _listed(variance.test)
            + f"; PSD less NCM {_paired(results, 'variance', 'PSD', 'NCM')}",
        ),
        (
            "quantiles of PNM cross where data are few",
            bool((crossed > 0.0).any()),
            f"in {int((crossed > 0.0).sum())} of {len(crossed)} seeds, on {crossed.mean():.1%} of "
            "the range on average",
        ),
        (
            "those of NCM, GLM and PSD models do not",
            bool((curves.crossings[["NCM", "GLM", "PSD"]] == 0.0).all()),
            "none on the grid",
        ),
        (
            "PSD quantiles are better than those of NCM and GLM",
            bool(curves.test["PSD"] <= curves.test[["NCM", "GLM"]].min()),
            "pinball losses "
            + _listed(curves.test)
            + f"; PSD less GLM {_paired(results, 'quantiles', 'PSD', 'GLM')}, "
            f"less NCM {_paired(results, 'quantiles', 'PSD', 'NCM')}",
        ),
    ]
    return "\n".join(f"- {text}: **{VERDICT[true]}** ({why})." for text, true, why in said)


def _listed(values: pd.Series) -> str:
    return ", ".join(f"{model} {values[model]:.3f}" for model in TITLES)


def _paired(results: pd.DataFrame, problem: str, one: str, other: str) -> str:
    """Mean difference over the seeds, with its standard error."""
    values = results[results.problem == problem].pivot(
        index="seed", columns="model", values="test"
    )
    mean, error = mean_and_error(values[one] - values[other])
    return f"{mean:+.4f} ± {error:.4f}"


def page(results: pd.DataFrame, options: str) -> str:
    """What is seen, in numbers."""
    apart = {
        problem: (part[part.model == "GLM"].spread_of_starts > 1e-4).mean()
        for problem, part in results.groupby("problem")
    }
    return PAGE.format(
        options=options,
        last=results.seed.max(),
        claims=claims(results),
        **{problem: table(results, problem) for problem in COLUMNS},
        seconds=results.seconds.sum(),
        apart_quantiles=apart["quantiles"],
        apart_variance=apart["variance"],
    )
