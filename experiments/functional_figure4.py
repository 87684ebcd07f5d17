"""Figure 4 of Lambert et al. (2022): error over strength λ and threshold κ of the Huber losses.

On curves with global outliers (type 2) and with local ones (type 3), beside the square loss.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from experiments import harness
from experiments.drawing import VERMILION
from experiments.functional_common import NAMES, contaminate
from experiments.functional_synthetic import PROCESSES, RANK, synthetic
from fenchel.functional import curve_nmse

NAME = "functional_figure4"
LOSSES = ("H2", "H1")
ALPHAS, KAPPAS = np.geomspace(1e-6, 1e-3, 10), np.geomspace(1e-3, 1e-1, 25)
CONDITIONS = {2: (2, 0.2, 2.0), 3: (3, 0.3, 0.3)}
TITLES = {2: "type 2, τ = 0.2, ζ = 2", 3: "type 3, τ = 0.3, ξ = 0.3"}
TOL = 1e-4
"""Relative gap of the fits, far below what shows in a test error."""
DRAWS, QUICK_N = 20, 40

PAGE = """\
# Error over strength and threshold

Figure 4 of Lambert, Bouche, Szabó, d'Alché-Buc (2022), *Functional output regression with infimal
convolution*: NMSE of the two Huber losses over λ and κ with two kinds of outliers.

    python -m experiments.functional_figure4{options}

![Error over λ and κ](picture.png)

**To be seen.** Mean test error, dark where it is small. The cross marks the least of a map, and
inside the line the error is below the least one that the square loss has for any λ.

{table}

**The paper's claims**, with half the error for "much" and 25 % for "equally". That some λ and κ
are always much more robust than the square loss is **{robust}**. That with local outliers p = 1 is
much better than p = 2 is **{local}** (its least error is {local_ratio:.2f} times that of p = 2),
and that with global ones the two are equally good is **{equal}** ({global_ratio:.3f} times).

**At the ends of the grids.** {ends}

**Setting.** {draws} draws (seeds 0 to {last}) of {n} training and as many clean test curves of
appendix B.2, of processes that stay the same (seed {processes}); outliers from seed 1000 + draw.
p = 2 in {rank} eigenfunctions (Algorithm 2), the others on the points. λ: {n_alphas} values from
1e-6 to 1e-3, κ: {n_kappas} from 1e-3 to 1e-1, the paper's grids for Figure 2. {fits} fits,
relative gap {gap:.0e} at most; {seconds:.0f} s of processor time. The paper prints no numbers with
its figure, nor how many draws it has: its other figures have 20.
"""


def run_one(draw: int, kind: int, steps: list[int], n: int) -> list[dict[str, Any]]:
    """Test errors on one draw; ``steps`` thin the grids of λ and κ."""
    data = synthetic(draw, n=n)
    Y = contaminate(data.Y, CONDITIONS[kind], 1000 + draw)
    records = []
    for loss in ("square", *LOSSES):
        for alpha in ALPHAS[:: steps[0]]:
            started = time.process_time()
            kappas = KAPPAS[:: steps[1]][::-1] if loss != "square" else [np.nan]
            path = data.train.path(Y, loss, alpha, kappas, TOL)
            for kappa, fitted in zip(kappas, path, strict=True):
                predicted = data.train.predict(fitted, data.gram_test, loss)
                records.append(
                    {
                        "draw": draw,
                        "kind": kind,
                        "loss": loss,
                        "alpha": alpha,
                        "kappa": kappa,
                        "mse": curve_nmse(data.clean_test, predicted),
                        "relative_gap": fitted.certificate.relative_gap,
                        "seconds": time.process_time() - started,
                    }
                )
                started = time.process_time()
    return records


def surface(results: pd.DataFrame, kind: int, loss: str) -> pd.DataFrame:
    """Mean errors, a row for each λ and a column for each κ."""
    own = results[(results.kind == kind) & (results.loss == loss)]
    return own.pivot_table(index="alpha", columns="kappa", values="mse", aggfunc="mean")


def least_square(results: pd.DataFrame, kind: int) -> tuple[float, float]:
    """Least mean error of the square loss, and its λ."""
    own = results[(results.kind == kind) & (results.loss == "square")]
    means = own.groupby("alpha").mse.mean()
    return float(means.min()), float(means.idxmin())


def least(table: pd.DataFrame) -> tuple[float, float, float]:
    """Least mean error, and its λ and κ."""
    alpha, kappa = table.stack().idxmin()
    return float(table.min().min()), float(alpha), float(kappa)


def ends(results: pd.DataFrame) -> str:
    """Which of the least errors lie at the ends of the grids."""
    grids = {"λ": np.unique(results.alpha), "κ": np.unique(results.kappa.dropna())}
    found = [
        f"{name} = {value:.0e} ({NAMES[loss]}, type {kind})"
        for kind in CONDITIONS
        for loss in LOSSES
        for name, value in zip("λκ", least(surface(results, kind, loss))[1:], strict=True)
        if value in (grids[name][0], grids[name][-1])
    ]
    if not found:
        return "None of the least errors of the Huber losses lies there."
    return "There lie, of the least errors of the Huber losses:\n" + ",\n".join(found) + "."


def picture(results: pd.DataFrame) -> Figure:
    """Map of the errors, a row for each kind of outliers and a column for each loss."""
    figure = Figure(figsize=(8.6, 6.4), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    tables = {(kind, loss): surface(results, kind, loss) for kind in CONDITIONS for loss in LOSSES}
    lowest = min(table.min().min() for table in tables.values())
    highest = max(table.max().max() for table in tables.values())
    levels = np.geomspace(lowest, highest, 25)
    for row, kind in zip(panels, CONDITIONS, strict=True):
        for axes, loss in zip(row, LOSSES, strict=True):
            table = tables[kind, loss]
            drawn = axes.contourf(
                table.columns, table.index, table, levels=levels, norm=LogNorm(), cmap="viridis"
            )
            limit = least_square(results, kind)[0]
            axes.contour(
                table.columns, table.index, table, levels=[limit], colors="white", linewidths=1.8
            )
            _, alpha, kappa = least(table)
            axes.plot(
                kappa,
                alpha,
                "x",
                color=VERMILION,
                markersize=10,
                markeredgewidth=2.5,
                clip_on=False,
                zorder=5,
            )
            axes.set(xscale="log", yscale="log", title=f"{NAMES[loss]}; {TITLES[kind]}")
            axes.title.set_fontsize("medium")
    for axes in panels[1]:
        axes.set_xlabel("κ")
    for axes in panels[:, 0]:
        axes.set_ylabel("λ")
    ticks = [t for t in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1) if lowest <= t <= highest]
    bar = figure.colorbar(drawn, ax=panels, ticks=ticks, label="NMSE of clean test curves")
    bar.ax.set_yticklabels([f"{tick:g}" for tick in ticks])
    return figure


def page(results: pd.DataFrame, n: int) -> str:
    """What is seen, in numbers."""
    rows, best = [], {}
    for kind in CONDITIONS:
        error, alpha = least_square(results, kind)
        best[kind, "square"] = error
        rows.append([TITLES[kind], NAMES["square"], f"{error:.5f}", f"{alpha:.0e}", ""])
        for loss in LOSSES:
            found = least(surface(results, kind, loss))
            best[kind, loss] = found[0]
            rows.append(
                [
                    TITLES[kind],
                    NAMES[loss],
                    f"{found[0]:.5f}",
                    f"{found[1]:.0e}",
                    f"{found[2]:.2g}",
                ]
            )
    cells = pd.DataFrame(rows, columns=["outliers", "loss", "least NMSE", "λ", "κ"])
    robust = all(
        min(best[kind, loss] for loss in LOSSES) < 0.5 * best[kind, "square"]
        for kind in CONDITIONS
    )
    ratio = {kind: best[kind, "H1"] / best[kind, "H2"] for kind in CONDITIONS}
    draws = results.draw.nunique()
    return PAGE.format(
        options=harness.options(draws, DRAWS),
        table=harness.markdown_table(cells),
        robust="confirmed" if robust else "not confirmed",
        local="confirmed" if ratio[3] < 0.5 else "not confirmed",
        local_ratio=ratio[3],
        equal="confirmed" if 0.8 <= ratio[2] <= 1.25 else "not confirmed",
        global_ratio=ratio[2],
        draws=draws,
        last=draws - 1,
        n=n,
        n_alphas=results.alpha.nunique(),
        n_kappas=results.kappa.nunique(),
        fits=len(results),
        gap=results.relative_gap.max(),
        seconds=results.seconds.sum(),
        processes=PROCESSES,
        rank=RANK,
        ends=ends(results),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table, the picture and the page."""
    asked = harness.arguments(NAME, __doc__, DRAWS, argv)
    steps, n = ([3, 6], QUICK_N) if asked.quick else ([1, 1], 100)
    tasks = [(draw, kind, steps, n) for draw in range(asked.splits) for kind in CONDITIONS]
    results = asked.run(run_one, tasks)
    asked.write(results, picture(results), page(results, n))


if __name__ == "__main__":
    main()
