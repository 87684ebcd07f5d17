"""Figure 1 of Lambert et al. (2022): strength λ and insensitivity ε, accuracy and sparsity.

Curves of appendix B.2 with noise, and the two losses that have zeros among the dual coefficients.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments import harness
from experiments.drawing import bare
from experiments.functional_common import NAMES, sparsity
from experiments.functional_synthetic import PROCESSES, RANK, at_ends, synthetic
from fenchel.functional import curve_nmse

NAME = "functional_figure1"
NOISE = 0.5
LOSSES = ("eps2", "epsinf", "eps2 whole")
TITLES = {**NAMES, "eps2 whole": "ε-insensitive, p = 2, whole residuals"}
ALPHAS = np.geomspace(1e-6, 1e-3, 10)
EPSILONS = np.concatenate([[0.0], np.geomspace(0.02, 1.0, 25)])
QUICK_ALPHAS, QUICK_EPSILONS = ALPHAS[::3], EPSILONS[[0, 9, 16, 20, 25]]
DRAWS = 20
COMPROMISE, FAIR = 1.1, 20.0
"""How much worse than the best a model may be, and how many percent of zeros it must have."""
MEASURES = {"nmse": "noisy test curves", "clean": "clean test curves"}

PAGE = """\
# Strength and insensitivity together

Figure 1 of Lambert, Bouche, Szabó, d'Alché-Buc (2022), *Functional output regression with infimal
convolution*: error and sparsity of the two ε-insensitive losses.

    python -m experiments.functional_figure1{options}

![Error and sparsity](picture.png)

**To be seen.** Each line is one λ; on the left the error of held-out curves, on the right the
share of dual coefficients that are exactly zero, both along ε (at its left end ε = 0). The smaller
λ, the larger the ε that suits it.

**The paper's claim.** One can reduce λ, increase ε and get a fair amount of sparsity while making
a small compromise in terms of accuracy. By the paper's measure, NMSE on test curves with the noise
that all observations have, and zeros among the coefficients of its representation, this is
**{verdict}**. The table has for each loss the least error without
insensitivity, and the model with the most zeros among those with a smaller λ, some ε > 0, and an
error at most {compromise:.0f} % larger; "fair" is taken as {fair:.0f} % of zeros.

{table}

Of that error {variance:g} is noise, which no model predicts. Against noise-free test curves, with
the same {compromise:.0f} %, which is far less there, the claim is **{strict}**:

{strict_table}

The last loss is not in the paper: ε² of the whole residual, and not of its projection on {rank}
eigenfunctions. Noise has the norm {noise:g} as a curve, and {projected:.2f} as a projection: so
whole residuals are within ε only where ε is twice as large.

**At the ends of the grids.** {ends}

**Setting.** {draws} draws (seeds 0 to {last}) of {size} training and {size} test curves at 100
points, of processes that stay the same (seed {processes}); noise of standard deviation {noise:g}.
ε² in {rank} eigenfunctions, Algorithm 2, ε^∞ on the points, Algorithm 1. Gaussian kernels
exp(-ρd²), with ρ = 0.01 and plain sums of squares for the inputs, ρ = 100 between points. λ:
{n_alphas} values from {low:.0e} to {high:.0e}; ε: 0 and {n_epsilons} values from {first:.2g} to
{most:.2g}, neither of which the paper tells. The largest relative gap of the {fits} fits is
{gap:.0e}; {seconds:.0f} s of processor time. The paper prints no numbers with its figure.
"""


def run_one(draw: int, alphas: list[float], epsilons: list[float]) -> list[dict[str, Any]]:
    """Error and sparsity on the grid, for one draw."""
    data = synthetic(draw, NOISE)
    records = []
    for loss in LOSSES:
        for alpha in alphas:
            started = time.process_time()
            path = data.train.path(data.Y, loss, alpha, epsilons)
            for epsilon, fitted in zip(epsilons, path, strict=True):
                predicted = data.train.predict(fitted, data.gram_test, loss)
                records.append(
                    {
                        "draw": draw,
                        "loss": loss,
                        "alpha": alpha,
                        "epsilon": epsilon,
                        "nmse": curve_nmse(data.Y_test, predicted),
                        "clean": curve_nmse(data.clean_test, predicted),
                        **sparsity(fitted)._asdict(),
                        "relative_gap": fitted.certificate.relative_gap,
                        "seconds": time.process_time() - started,
                    }
                )
                started = time.process_time()
    return records


def averaged(results: pd.DataFrame) -> pd.DataFrame:
    """Means over the draws."""
    means = results.groupby(["loss", "alpha", "epsilon"], as_index=False)
    return means.mean(numeric_only=True)


def trade(results: pd.DataFrame, measure: str = "nmse") -> pd.DataFrame:
    """Best models without zeros, and the sparsest with a smaller λ and nearly their error."""
    means, rows = averaged(results), []
    for loss in [name for name in LOSSES if name in set(means.loss)]:
        own = means[means.loss == loss]
        best = own[own.epsilon == 0.0].nsmallest(1, measure).assign(what="ε = 0")
        allowed = own[
            (own[measure] <= COMPROMISE * best[measure].iloc[0])
            & (own.alpha < best.alpha.iloc[0])
            & (own.epsilon > 0.0)
        ]
        rows += [best, allowed.nlargest(1, "coefficients").assign(what="most zeros")]
    return pd.concat(rows, ignore_index=True)


def verdict(rows: pd.DataFrame) -> str:
    """For which of the paper's losses there is a model with a fair amount of zeros."""
    fair = rows[(rows.what == "most zeros") & (rows.coefficients >= FAIR)].loss
    found = [NAMES[name] for name in LOSSES[:2] if name in set(fair)]
    if len(found) == 2:
        return "confirmed for both losses"
    return f"confirmed for {found[0]} only" if found else "not confirmed"


def cells(rows: pd.DataFrame) -> str:
    """The two models of each loss."""
    shown = pd.DataFrame(
        {
            "loss": [TITLES[name] for name in rows.loss],
            "model": rows.what,
            "λ": [f"{alpha:.1e}" for alpha in rows.alpha],
            "ε": [f"{epsilon:.2g}" for epsilon in rows.epsilon],
            **{
                f"NMSE, {what}": [f"{error:.4f}" for error in rows[measure]]
                for measure, what in MEASURES.items()
            },
            "zero coefficients": [f"{zero:.0f} %" for zero in rows.coefficients],
            "zero curves": [f"{zero:.0f} %" for zero in rows.rows],
        }
    )
    return harness.markdown_table(shown)


def ends(results: pd.DataFrame, shown: pd.DataFrame) -> str:
    """How many of the models shown lie at the ends of the grids."""
    alphas, epsilons = np.unique(results.alpha), np.unique(results.epsilon)
    sparse = shown[shown.what == "most zeros"]
    widest = int((sparse.epsilon == epsilons[-1]).sum())
    least = averaged(results).sort_values("nmse").groupby("loss").first()
    return (
        f"λ is {alphas[0]:.0e} or {alphas[-1]:.0e} in {at_ends(shown.alpha, alphas)} of the "
        f"models in the tables,\nand ε is {epsilons[-1]:g} in {widest} of {len(sparse)} with "
        "zeros. The least errors of all, with or without zeros, have\n"
        + ", ".join(
            f"λ = {least.alpha[name]:.1e} and ε = {least.epsilon[name]:.2g} ({TITLES[name]})"
            for name in LOSSES
        ).replace(" (ε-insensitive, p = ∞), ", " (ε-insensitive, p = ∞),\n")
        + "."
    )


def picture(results: pd.DataFrame) -> Figure:
    """A row for each loss: error and share of zeros along ε, a line for each λ."""
    figure = Figure(figsize=(8.4, 9.0), layout="constrained")
    panels = figure.subplots(len(LOSSES), 2, sharex=True, sharey="col")
    means = averaged(results)
    alphas = np.unique(means.alpha)
    positive = np.unique(means.epsilon)[1:]
    zero_at = positive[0] / 1.6
    colors = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.88, len(alphas)))
    for row, loss in zip(panels, LOSSES, strict=True):
        for alpha, color in zip(alphas, colors, strict=True):
            line = means[(means.loss == loss) & (means.alpha == alpha)].sort_values("epsilon")
            at = np.maximum(line.epsilon, zero_at)
            for axes, column in zip(row, ("nmse", "coefficients"), strict=True):
                axes.plot(
                    at,
                    line[column],
                    color=color,
                    marker="o",
                    markersize=2.5,
                    linewidth=1.3,
                    label=f"{alpha:.1e}",
                )
        row[0].set(title=TITLES[loss], ylabel="NMSE of noisy test curves", yscale="log")
        row[1].set(title=TITLES[loss], ylabel="zero coefficients, %", ylim=(-3.0, 103.0))
    ticks = [zero_at, 0.03, 0.1, 0.3, 1.0]
    for axes in panels.ravel():
        axes.set_xscale("log")
        axes.set_xticks(ticks, ["0", *[f"{tick:g}" for tick in ticks[1:]]])
        axes.minorticks_off()
        bare(axes)
    errors = [0.26, 0.3, 0.35, 0.4, 0.5]
    for row in panels:
        row[0].set_yticks(errors, [f"{error:g}" for error in errors])
    for axes in panels[-1]:
        axes.set_xlabel("ε")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, title="λ", loc="outside right center", frameon=False)
    return figure


def page(results: pd.DataFrame, draws: int) -> str:
    """What is seen, in numbers."""
    rows, strict = trade(results), trade(results, "clean")
    shown = pd.concat([rows, strict])
    epsilons = np.unique(results.epsilon)
    return PAGE.format(
        options=harness.options(draws, DRAWS),
        verdict=verdict(rows),
        strict=verdict(strict),
        table=cells(rows),
        strict_table=cells(strict),
        ends=ends(results, shown),
        compromise=100 * (COMPROMISE - 1),
        fair=FAIR,
        rank=RANK,
        processes=PROCESSES,
        noise=NOISE,
        variance=NOISE**2,
        projected=NOISE * np.sqrt(RANK / 100),
        draws=draws,
        last=draws - 1,
        size=100,
        n_alphas=results.alpha.nunique(),
        low=results.alpha.min(),
        high=results.alpha.max(),
        n_epsilons=len(epsilons) - 1,
        first=epsilons[1],
        most=epsilons[-1],
        fits=len(results),
        gap=results.relative_gap.max(),
        seconds=results.seconds.sum(),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table, the picture and the page."""
    asked = harness.arguments(NAME, __doc__, DRAWS, argv)
    alphas, epsilons = (QUICK_ALPHAS, QUICK_EPSILONS) if asked.quick else (ALPHAS, EPSILONS)
    tasks = [(draw, alphas.tolist(), epsilons.tolist()) for draw in range(asked.splits)]
    results = asked.run(run_one, tasks)
    asked.write(results, picture(results), page(results, asked.splits))


if __name__ == "__main__":
    main()
