"""Figure 2 of Lambert et al. (2022): how losses of curves bear global and local outliers.

Outliers of type 2 replace training curves by others, those of type 3 some of their points by
noise. Strength λ and threshold κ are chosen by cross-validation with medians over the folds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments import harness
from experiments.drawing import bare
from experiments.functional_common import (
    COLORS,
    DASHES,
    MARKERS,
    NAMES,
    Condition,
    choose,
    contaminate,
)
from experiments.functional_synthetic import (
    PROCESSES,
    RANK,
    at_ends,
    synthetic,
    validation_errors,
)
from fenchel.functional import curve_nmse

NAME = "functional_figure2"
LOSSES = ("square", "H2", "H1")
ALPHAS, KAPPAS = np.geomspace(1e-6, 1e-3, 10), np.geomspace(1e-3, 1e-1, 25)
QUICK = (9, 12)
"""Two and three values of the grids."""
INTENSITY, SHARE, POINTS = 2.0, 0.2, 0.3
"""ζ and τ of type 2 where the other varies, ξ of type 3 where τ varies."""
CLEAN = (2, 0.0, INTENSITY)
SHARES = {2: (0.1, 0.2, 0.3, 0.4), 3: (0.25, 0.5, 0.75, 1.0)}
STRENGTHS = {2: (1.0, 2.0, 3.0, 4.0), 3: (0.1, 0.2, 0.3, 0.4)}
KEY = ((2, SHARE, INTENSITY), (3, 1.0, POINTS))
"""The two conditions whose numbers count."""
DRAWS, QUICK_N = 20, 40

PAGE = """\
# Robustness to two kinds of outliers

Figure 2 of Lambert, Bouche, Szabó, d'Alché-Buc (2022), *Functional output regression with infimal
convolution*: error of the square and of two Huber losses with outliers among the training curves.

    python -m experiments.functional_figure2{options}

![Error against outliers](picture.png)

**To be seen.** In the upper row whole curves are outliers (type 2): the square loss suffers, both
Huber losses far less up to a fifth of the curves. In the lower row points of curves are
(type 3): p = 2 helps as long as there are clean curves, p = 1 also when every curve has outliers.
Bars are standard errors over the draws.

**The paper's claims**, in means over the draws:

- Type 2, {share:.0%} of the curves, ζ = {intensity:g}: above the error {clean:.5f} of the square
  loss without outliers lie the square loss by {excess_square:.4f}, p = 2 by {excess_h2:.4f} and
  p = 1 by {excess_h1:.4f}, {share_h2:.0%} and {share_h1:.0%} of the former. That both Huber losses
  at least halve the excess is **{halved}**.
- Type 3, ξ = {points:g}, all curves: p = 1 has the error {local_h1:.4f}, p = 2 {local_h2:.4f}, the
  square {local_square:.4f}. p = 1 is the better of the two Huber losses in {wins} of {draws}
  draws, and its mean error is {ratio:.2f} times that of p = 2: that it is clearly better (at most
  0.8 times, and better in three of four draws) is **{clearly}**.

{table}

Errors are in units of 0.001, mean ± standard deviation over the draws.

**At the ends of the grids.** λ is one of {n_alphas} values from {low:.0e} to {high:.0e}, κ one of
{n_kappas} from {least:.0e} to {most:.0e}; the paper has 10 and 25 of these. The first and the last
value were chosen

{ends}

**Setting.** {draws} draws (seeds 0 to {last}; the paper has {usual}) of {size} training and as
many clean test curves at 100 points, of processes that stay the same (seed {processes}); outliers
from seed 1000 + draw replace what is there. p = 2 in {rank} eigenfunctions (Algorithm 2), the
others on the points. Five folds, the pair with the least median of their errors, all curves again
with it to a relative gap of 1e-6 (the fits of the folds: 1e-3). Kernels as in Figure 1.
{seconds:.0f} s of processor time.
The paper prints no numbers with its figure, nor the values of τ, ζ and ξ in it.
"""


def run_one(
    draw: int, condition: list[float], steps: list[int], n: int = 100
) -> list[dict[str, Any]]:
    """Choose, fit and test each loss on one draw; ``steps`` thin the grids of λ and κ."""
    kind, share, strength = int(condition[0]), condition[1], condition[2]
    data = synthetic(draw, n=n)
    Y = contaminate(data.Y, (kind, share, strength), 1000 + draw)
    alphas, kappas = ALPHAS[:: steps[0]], KAPPAS[:: steps[1]]
    records = []
    for loss in LOSSES:
        started = time.process_time()
        values = kappas[:1] if loss == "square" else kappas
        chosen = choose(validation_errors(data.train, Y, loss, alphas, values), alphas, values)
        fitted = data.train.fit(Y, loss, chosen.alpha, chosen.value)
        predicted = data.train.predict(fitted, data.gram_test, loss)
        records.append(
            {
                "draw": draw,
                "kind": kind,
                "share": share,
                "strength": strength,
                "loss": loss,
                "alpha": chosen.alpha,
                "kappa": np.nan if loss == "square" else chosen.value,
                "mse": curve_nmse(data.clean_test, predicted),
                "relative_gap": fitted.certificate.relative_gap,
                "seconds": time.process_time() - started,
            }
        )
    return records


def conditions() -> list[Condition]:
    """All that is run, each once."""
    varied = [
        (kind, share, INTENSITY if kind == 2 else POINTS)
        for kind, shares in SHARES.items()
        for share in shares
    ]
    varied += [
        (kind, SHARE if kind == 2 else 1.0, strength)
        for kind, strengths in STRENGTHS.items()
        for strength in strengths
    ]
    return [CLEAN, *dict.fromkeys(varied)]


def at(results: pd.DataFrame, condition: Condition, loss: str) -> pd.Series:
    """Errors of a loss under a condition, by draw."""
    kind, share, strength = condition
    chosen = (results.kind == kind) & (results.share == share) & (results.strength == strength)
    return results[chosen & (results.loss == loss)].set_index("draw").mse.sort_index()


def lines() -> list[tuple[str, str, list[tuple[float, Condition]]]]:
    """Title, name of the axis, and points of each of the four panels."""
    return [
        (
            f"type 2, ζ = {INTENSITY:g}",
            "share τ of the curves",
            [(0.0, CLEAN), *((t, (2, t, INTENSITY)) for t in SHARES[2])],
        ),
        (
            f"type 2, τ = {SHARE:g}",
            "intensity ζ",
            [(0.0, CLEAN), *((z, (2, SHARE, z)) for z in STRENGTHS[2])],
        ),
        (
            f"type 3, ξ = {POINTS:g}",
            "share τ of the curves",
            [(0.0, CLEAN), *((t, (3, t, POINTS)) for t in SHARES[3])],
        ),
        (
            "type 3, τ = 1",
            "share ξ of the points",
            [(0.0, CLEAN), *((x, (3, 1.0, x)) for x in STRENGTHS[3])],
        ),
    ]


def picture(results: pd.DataFrame) -> Figure:
    """Error along the share and along the strength of outliers, a row for each type."""
    figure = Figure(figsize=(8.4, 6.2), layout="constrained")
    panels = figure.subplots(2, 2, sharey="row")
    for axes, (title, label, points) in zip(panels.ravel(), lines(), strict=True):
        for loss in LOSSES:
            shown = [(x, at(results, c, loss)) for x, c in points]
            shown = [(x, errors) for x, errors in shown if len(errors)]
            mean = np.array([errors.mean() for _, errors in shown])
            spread = [errors.std(ddof=1) / np.sqrt(len(errors)) for _, errors in shown]
            axes.errorbar(
                [x for x, _ in shown],
                mean,
                spread,
                color=COLORS[loss],
                linestyle=DASHES[loss],
                marker=MARKERS[loss],
                markersize=5,
                capsize=2.5,
                elinewidth=0.9,
                label=NAMES[loss],
            )
        axes.set(title=title, xlabel=label)
        bare(axes)
    for axes in panels[:, 0]:
        axes.set(ylabel="MSE of clean test curves", ylim=(0.0, None))
    panels[0, 0].legend(frameon=False, loc="upper left")
    return figure


def ends(results: pd.DataFrame, alphas: np.ndarray, kappas: np.ndarray) -> str:
    """How often each loss has chosen the ends of the grids."""
    said = []
    for loss in LOSSES:
        own = results[results.loss == loss]
        kappa = "" if loss == "square" else f"; for κ {at_ends(own.kappa, kappas)}"
        said.append(f"- {NAMES[loss]}: for λ {at_ends(own.alpha, alphas)} times{kappa}")
    return "\n".join(said)


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Errors under each condition."""
    rows = []
    for kind, share, strength in conditions():
        found = {loss: 1e3 * at(results, (kind, share, strength), loss) for loss in LOSSES}
        if not len(found["square"]):
            continue
        rows.append(
            {
                "outliers": "none" if share == 0.0 else f"type {kind}",
                "τ": f"{share:g}",
                "ζ or ξ": "" if share == 0.0 else f"{strength:g}",
                **{NAMES[k]: f"{v.mean():.2f} ± {v.std(ddof=1):.2f}" for k, v in found.items()},
            }
        )
    return pd.DataFrame(rows)


def page(results: pd.DataFrame, steps: Sequence[int], n: int) -> str:
    """What is seen, in numbers."""
    clean = at(results, CLEAN, "square").mean()
    mean = {(c, loss): at(results, c, loss).mean() for c in KEY for loss in LOSSES}
    excess = {loss: mean[KEY[0], loss] - clean for loss in LOSSES}
    shares = {loss: excess[loss] / excess["square"] for loss in ("H1", "H2")}
    local = {loss: mean[KEY[1], loss] for loss in LOSSES}
    wins = int((at(results, KEY[1], "H1") < at(results, KEY[1], "H2")).sum())
    draws, ratio = results.draw.nunique(), local["H1"] / local["H2"]
    alphas, kappas = ALPHAS[:: steps[0]], KAPPAS[:: steps[1]]
    return PAGE.format(
        options=harness.options(draws, DRAWS),
        share=SHARE,
        intensity=INTENSITY,
        points=POINTS,
        clean=clean,
        excess_square=excess["square"],
        excess_h2=excess["H2"],
        excess_h1=excess["H1"],
        share_h2=shares["H2"],
        share_h1=shares["H1"],
        halved="confirmed" if max(shares.values()) <= 0.5 else "not confirmed",
        local_h1=local["H1"],
        local_h2=local["H2"],
        local_square=local["square"],
        wins=wins,
        draws=draws,
        usual=DRAWS,
        ratio=ratio,
        last=draws - 1,
        clearly="confirmed" if ratio <= 0.8 and wins >= 0.75 * draws else "not confirmed",
        table=harness.markdown_table(table(results)),
        ends=ends(results, alphas, kappas),
        n_alphas=len(alphas),
        low=alphas[0],
        high=alphas[-1],
        n_kappas=len(kappas),
        least=kappas[0],
        most=kappas[-1],
        processes=PROCESSES,
        rank=RANK,
        size=n,
        seconds=results.seconds.sum(),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Write the tables, the picture and the page."""
    asked = harness.arguments(NAME, __doc__, DRAWS, argv)
    wanted = [CLEAN, *KEY] if asked.quick else conditions()
    steps, n = (QUICK, QUICK_N) if asked.quick else ((1, 1), 100)
    tasks = [(draw, list(c), list(steps), n) for draw in range(asked.splits) for c in wanted]
    results = asked.run(run_one, tasks)
    asked.write(results, picture(results), page(results, steps, n))


if __name__ == "__main__":
    main()
