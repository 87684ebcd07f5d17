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
from experiments.functional_common import NAMES, bare, mse, options, sparsity, synthetic

NAME = "functional_figure1"
NOISE = 0.5
LOSSES = ("eps2", "epsinf")
ALPHAS = np.geomspace(1e-6, 1e-3, 7)
EPSILONS = np.concatenate([[0.0], np.geomspace(0.05, 0.8, 13)])
QUICK_ALPHAS, QUICK_EPSILONS = ALPHAS[::3], EPSILONS[[0, 5, 9, 13]]
DRAWS = 20
COMPROMISE = 1.1
"""How much worse than the best a model may be for the sake of zeros."""

PAGE = """\
# Strength and insensitivity together

Figure 1 of Lambert, Bouche, Szabó, d'Alché-Buc (2022), *Functional output regression with infimal
convolution*: mean squared error and sparsity of the two ε-insensitive losses.

    python -m experiments.functional_figure1{options}

![Error and sparsity](picture.png)

**To be seen.** Each line is one λ; on the left the error of held-out curves, on the right the
share of dual coefficients that are exactly zero, both along ε (at its left end ε = 0). The smaller
λ, the larger the ε that suits it.

**The paper's claim**, that one can reduce λ, increase ε and gain sparsity at a small cost in
accuracy, is {verdict}:

{table}

For each loss, first stands the least error without insensitivity, then the model with the
most zeros whose error is at most {compromise:.0f} % larger: strictly, by the error given here, and
loosely, by the error to test curves that had the same noise, {variance:g} more.
Insensitivity makes up for a λ that is too small: with λ = {least:.0e}, the error falls from
{before:.4f} at ε = 0 to {after2:.4f} with ε² and to {after_inf:.4f} with ε^∞.
With ε², zeros come as whole curves, and only where ε exceeds the norm of a residual, which the
noise alone makes about {noise:g}; with ε^∞ they come point by point, from the smallest ε on.

**Setting.** {draws} draws (seeds 0 to {last}) of {size} training and {size} test curves at 100
points; noise of standard deviation {noise:g} on the training curves, none on the test curves,
whose error is the mean over points and curves. Gaussian kernels exp(-ρd²), with ρ = 0.01 and
plain sums of squares for the inputs, ρ = 100 between points. λ: {n_alphas} values from {low:.0e}
to {high:.0e}; ε: 0 and {n_epsilons} values from {first:.2g} to {most:.2g}. The largest relative
gap of the {fits} fits is {gap:.0e}; {seconds:.0f} s of processor time. The paper prints no numbers
with its figure.
"""


def run_one(draw: int, alphas: list[float], epsilons: list[float]) -> list[dict[str, Any]]:
    """Error and sparsity on the grid, for one draw."""
    data = synthetic(draw, NOISE)
    records = []
    for loss in LOSSES:
        for alpha in alphas:
            for epsilon in epsilons:
                started = time.process_time()
                fitted = data.train.fit(data.Y, loss, alpha, epsilon)
                records.append(
                    {
                        "draw": draw,
                        "loss": loss,
                        "alpha": alpha,
                        "epsilon": epsilon,
                        "mse": mse(data.train.predict(fitted, data.gram_test), data.Y_test),
                        **sparsity(fitted)._asdict(),
                        "relative_gap": fitted.certificate.relative_gap,
                        "seconds": time.process_time() - started,
                    }
                )
    return records


def trade(results: pd.DataFrame) -> pd.DataFrame:
    """Best models without zeros, and the sparsest ones of nearly their error."""
    means = results.groupby(["loss", "alpha", "epsilon"], as_index=False).mean(numeric_only=True)
    rows = []
    for loss in LOSSES:
        own = means[means.loss == loss]
        best = own[own.epsilon == 0.0].nsmallest(1, "mse").assign(what="ε = 0")
        strict = own[own.mse <= COMPROMISE * best.mse.iloc[0]]
        loose = own[own.mse + NOISE**2 <= COMPROMISE * (best.mse.iloc[0] + NOISE**2)]
        rows += [
            best,
            strict.nlargest(1, "coefficients").assign(what="strictly"),
            loose.nlargest(1, "coefficients").assign(what="loosely"),
        ]
    return pd.concat(rows, ignore_index=True)


def picture(results: pd.DataFrame) -> Figure:
    """A row for each loss: error and share of zeros along ε, a line for each λ."""
    figure = Figure(figsize=(8.4, 6.4), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey="col")
    means = results.groupby(["loss", "alpha", "epsilon"], as_index=False).mean(numeric_only=True)
    alphas = np.unique(means.alpha)
    positive = np.unique(means.epsilon)[1:]
    zero_at = positive[0] / 1.6
    colors = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.88, len(alphas)))
    markers = "osD^vP<"
    for row, loss in zip(panels, LOSSES, strict=True):
        for alpha, color, marker in zip(alphas, colors, markers, strict=False):
            line = means[(means.loss == loss) & (means.alpha == alpha)].sort_values("epsilon")
            at = np.maximum(line.epsilon, zero_at)
            for axes, column in zip(row, ("mse", "coefficients"), strict=True):
                axes.plot(at, line[column], color=color, marker=marker, markersize=4,
                          linewidth=1.3, label=f"{alpha:.0e}")  # fmt: skip
        row[0].set(title=NAMES[loss], ylabel="MSE of held-out curves", yscale="log")
        row[1].set(title=NAMES[loss], ylabel="zero coefficients, %", ylim=(-3.0, 103.0))
    ticks = [zero_at, 0.1, 0.2, 0.4, 0.8]
    for axes in panels.ravel():
        axes.set_xscale("log")
        axes.set_xticks(ticks, ["0", *[f"{tick:g}" for tick in ticks[1:]]])
        axes.minorticks_off()
        bare(axes)
    for axes in panels[1]:
        axes.set_xlabel("ε")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, title="λ", loc="outside right center", frameon=False)
    return figure


def verdict(rows: pd.DataFrame) -> str:
    """Whether there are models of nearly the best error with a fifth of zeros or more."""
    found = {
        what: [
            NAMES[name] for name in rows[(rows.what == what) & (rows.coefficients >= 20.0)].loss
        ]
        for what in ("strictly", "loosely")
    }
    if len(found["strictly"]) == len(LOSSES):
        return "confirmed for both losses"
    if len(found["loosely"]) == len(LOSSES):
        only = " and ".join(found["strictly"]) or "neither loss"
        return f"confirmed for both losses by the loose measure,\nby the strict one for {only}"
    return "not confirmed for both losses"


def page(results: pd.DataFrame, draws: int) -> str:
    """What is seen, in numbers."""
    rows = trade(results)
    cells = pd.DataFrame(
        {
            "loss": [NAMES[name] for name in rows.loss],
            "model": rows.what,
            "λ": [f"{alpha:.0e}" for alpha in rows.alpha],
            "ε": [f"{epsilon:.2g}" for epsilon in rows.epsilon],
            "MSE": [f"{error:.4f}" for error in rows.mse],
            "zero coefficients": [f"{zero:.0f} %" for zero in rows.coefficients],
            "zero curves": [f"{zero:.0f} %" for zero in rows.rows],
        }
    )
    epsilons = np.unique(results.epsilon)
    least = results[results.alpha == results.alpha.min()].groupby(["loss", "epsilon"]).mse.mean()
    return PAGE.format(
        options=options(draws, DRAWS),
        least=results.alpha.min(), before=least["eps2", 0.0], after2=least["eps2"].min(),
        after_inf=least["epsinf"].min(),
        verdict=verdict(rows), table=harness.markdown_table(cells),
        compromise=100 * (COMPROMISE - 1),
        noise=NOISE, variance=NOISE**2, draws=draws, last=draws - 1, size=100,
        n_alphas=results.alpha.nunique(), low=results.alpha.min(), high=results.alpha.max(),
        n_epsilons=len(epsilons) - 1, first=epsilons[1], most=epsilons[-1], fits=len(results),
        gap=results.relative_gap.max(), seconds=results.seconds.sum(),
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table, the picture and the page."""
    asked = harness.arguments(NAME, __doc__, DRAWS, argv)
    alphas, epsilons = (QUICK_ALPHAS, QUICK_EPSILONS) if asked.quick else (ALPHAS, EPSILONS)
    tasks = [(draw, alphas.tolist(), epsilons.tolist()) for draw in range(asked.splits)]
    log = asked.out / "tasks.jsonl"
    results = harness.run_tasks(run_one, tasks, log, asked.jobs)
    harness.write_csv(asked.out / "results.csv", results)
    harness.save_picture(asked.out / "picture.png", picture(results))
    harness.write_text(asked.out / "page.md", page(results, asked.splits))
    log.unlink()


if __name__ == "__main__":
    main()
