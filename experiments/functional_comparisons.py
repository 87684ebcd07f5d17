"""Regressions of curves that the introduction of Lambert et al. (2022) names, beside ours.

On the artificial curves of its appendix B.2, noisy or with outliers, and on the DTI study.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments import harness
from experiments.comparisons.functional import (
    KernelAdditive,
    MeanCurve,
    Method,
    NadarayaWatson,
    ProjectionLearning,
    TripleBasis,
    chosen,
    spread,
)
from experiments.drawing import BLUE, GREY, bare
from experiments.functional_common import contaminate
from experiments.functional_synthetic import PROCESSES
from fenchel.datasets import load_dti, make_functional
from fenchel.functional import FunctionalRegressor, curve_nmse
from fenchel.kernels import BetweenCurves, Gaussian
from fenchel.learning import Learning
from fenchel.model_selection import PathSearchCV

NAME = "functional_comparisons"
DRAWS, SIZE, QUICK_SIZE = 5, 100, 40
NOISE = 0.5
DATA = {
    "noise": "noise of deviation 0.5",
    "type 2": "outliers of type 2, τ = 0.2, ζ = 2",
    "type 3": "outliers of type 3, τ = 1, ξ = 0.3",
    "DTI": "DTI study, 70 and 30 patients",
}
OTHERS = {
    "mean": "pointwise mean",
    "NW": "Nadaraya-Watson (2011)",
    "3BE": "triple basis, 3BE (2015)",
    "additive": "kernel additive (2018)",
    "KPL": "projection learning, KPL (2021)",
}
OURS = {
    "defaults": "ours, square, defaults",
    "square": "ours, square",
    "H2": "ours, Huber, p = 2",
    "H1": "ours, Huber, p = 1",
}
NAMES = OTHERS | OURS
WIDTHS, ALPHAS = (0.5, 1.0, 2.0), np.geomspace(1e-7, 1e-1, 7)
OUTPUT_WIDTH = 0.07

PAGE = """\
# Regressions of curves beside one another

The introduction of Lambert, Bouche, Szabó, d'Alché-Buc (2022) names four regressions of curves
with the square loss and compares with none. Here they stand beside ours; there are no published
numbers.

    python -m experiments.functional_comparisons{options}

{table}

Mean squared error per point of held-out curves, which are clean, in units of 0.001: mean ±
standard deviation over {draws} draws. In bold the least mean of a column; seconds are of processor
time, for one draw with its selection.

![Errors](picture.png)

**What is seen.**{seen}

**Setting.** Artificial curves: {size} to train and as many to test, of processes that stay the
same (seed {processes}), draws from seed 0 to {last}. DTI: random splits into 70 and 30 patients,
gaps interpolated. Every method chooses its parameters by five folds of the training curves, by the
least mean error, with outliers by the least median: widths from {n_widths} multiples of the median
distance (Nadaraya-Watson: seven from 0.02 to 2), alpha from {n_alphas} values between 1e-7 and
0.1, κ of the Huber losses from {n_kappas} between a thousandth and all of the median norm of the
curves, with the width that the square loss has chosen. "Defaults" is
`FunctionalRegressor(center="mean")`, which learns its kernel by its own means. The other three of
ours have a Gaussian kernel of the L² distance, as KPL has, and one of width {width:g} between
points. 3BE has 20 cosines on either side and 500 random features, KPL 25 cubic splines, the
additive kernel widths of 0.1 between points. {seconds:.0f} s of processor time.
"""


def draw_of(name: str, draw: int, n: int) -> tuple[np.ndarray, ...]:
    """Inputs and outputs to train and to test on."""
    if name == "DTI":
        data = load_dti(case=1, visit=1, interpolate=True)
        train, test = harness.split(len(data.cca), draw)
        return data.cca[train], data.rcst[train], data.cca[test], data.rcst[test]
    seeds: dict[str, Any] = {"random_state": draw, "process_state": PROCESSES}
    X, clean, _ = make_functional(2 * n, **seeds)
    if name == "noise":
        Y = make_functional(2 * n, noise=NOISE, **seeds)[1][:n]
    else:
        condition = (2, 0.2, 2.0) if name == "type 2" else (3, 1.0, 0.3)
        Y = contaminate(clean[:n], condition, 1000 + draw)
    return X[:n], Y, X[n:], clean[n:]


def grids(quick: bool) -> tuple[Sequence[float], np.ndarray, int]:
    """Multiples for widths, strengths, and the number of κ."""
    return (WIDTHS[1:2], ALPHAS[::2], 3) if quick else (WIDTHS, ALPHAS, 7)


def candidates(method: str, X: np.ndarray, quick: bool) -> list[Method]:
    """The settings that are tried."""
    if method == "mean":
        return [MeanCurve()]
    if method == "NW":
        return [NadarayaWatson(spread(X) * width) for width in np.geomspace(0.02, 2.0, 7)]
    make: dict[str, Callable[[float, float], Method]] = {
        # coefficients of orthonormal functions have the distances of the curves
        "3BE": TripleBasis,
        "additive": KernelAdditive,
        "KPL": ProjectionLearning,
    }
    unit = float(X.std()) if method == "additive" else spread(X)
    widths, alphas, _ = grids(quick)
    return [make[method](unit * width, a) for width, a in itertools.product(widths, alphas)]


def ours(method: str, X: np.ndarray, Y: np.ndarray, robust: bool, quick: bool) -> Any:
    """One of our regressions, fitted."""
    if method == "defaults":
        learn = Learning(n_folds=2, max_evaluations=5) if quick else True
        return FunctionalRegressor(center="mean", learn=learn).fit(X, Y)
    widths, alphas, n_kappas = grids(quick)
    middle = "median" if robust else "mean"

    def searched(width: float, loss: str, norm: float, **grid: int) -> Any:
        model = FunctionalRegressor(
            loss,
            norm,
            kernel=BetweenCurves(Gaussian(spread(X) * width)),
            output_kernel=Gaussian(OUTPUT_WIDTH),
            center=middle,
            tol=1e-4,
        )
        given = {"alpha": alphas, **grid}
        return PathSearchCV(model, given, cv=5, aggregation=middle).fit(X, Y)

    square = {width: searched(width, "squared", 2) for width in widths}
    width = max(square, key=lambda width: float(square[width].best_score_))
    if method == "square":
        return square[width]
    return searched(width, "huber", 1 if method == "H1" else 2, kappa=n_kappas)


def run_one(name: str, draw: int, method: str, n: int, quick: bool) -> list[dict[str, Any]]:
    """Error of a method on one draw."""
    X, Y, X_test, Y_test = draw_of(name, draw, n)
    robust, started = name.startswith("type"), time.process_time()
    if method in OTHERS:
        predict = chosen(candidates(method, X, quick), X, Y, robust, draw).fit(X, Y)
    else:
        predict = ours(method, X, Y, robust, quick).predict
    return [
        {
            "data": name,
            "draw": draw,
            "method": method,
            "nmse": curve_nmse(Y_test, predict(X_test)),
            "seconds": time.process_time() - started,
        }
    ]


def means(results: pd.DataFrame) -> pd.DataFrame:
    """Mean errors, a row for each method and a column for each data set."""
    wide = results.pivot_table(index="method", columns="data", values="nmse", aggfunc="mean")
    return wide.loc[[m for m in NAMES if m in wide.index], [d for d in DATA if d in wide.columns]]


def table(results: pd.DataFrame) -> str:
    """Means and deviations, the least mean in bold."""
    mean = means(results)
    deviation = results.groupby(["method", "data"]).nmse.std().unstack()
    seconds = results.groupby("method").seconds.mean()
    rows = []
    for method in mean.index:
        row = {"method": NAMES[method]}
        for data in mean.columns:
            best = "**" if mean[data].idxmin() == method else ""
            value, by = 1e3 * mean[data][method], 1e3 * deviation[data][method]
            row[DATA[data]] = f"{best}{value:.2f}{best} ± {by:.2f}"
        rows.append({**row, "seconds": f"{seconds[method]:.1f}"})
    return harness.markdown_table(pd.DataFrame(rows))


def seen(results: pd.DataFrame) -> str:
    """Which is best where, and how it compares with the best of the others."""
    mean, said = means(results), []
    for data in mean.columns:
        best_other = mean[data][[m for m in mean.index if m in OTHERS]].idxmin()
        best_own = mean[data][[m for m in mean.index if m in OURS]].idxmin()
        ratio = mean[data][best_own] / mean[data][best_other]
        said.append(
            f"- {DATA[data]}: {NAMES[best_own]} has {ratio:.2f} times the\n  error of the best of "
            f"the others, {NAMES[best_other]}."
        )
    worse = [data for data in mean.columns if mean[data]["defaults"] > mean[data]["mean"]]
    said.append(
        "- The defaults are better than the pointwise mean "
        + (f"but on: {', '.join(worse)}." if worse else "everywhere.")
    )
    shares = ", ".join(f"{mean[d]['defaults'] / mean[d]['square']:.2f}" for d in mean.columns)
    said.append(
        "- The defaults have a kernel with a length scale for each point, and not the one of the\n"
        f"  L² distance: their error is {shares} times that of our square loss with the latter."
    )
    return "\n\n" + "\n".join(said)


def picture(results: pd.DataFrame) -> Figure:
    """A panel for each data set, a bar for each method."""
    mean = means(results)
    figure = Figure(figsize=(8.6, 5.6), layout="constrained")
    panels = figure.subplots(2, 2, sharey=True)
    for axes, data in zip(panels.ravel(), mean.columns, strict=False):
        colors = [BLUE if method in OURS else GREY for method in mean.index]
        axes.barh([NAMES[m] for m in mean.index], mean[data], color=colors)
        axes.set(title=DATA[data], xlabel="NMSE")
        axes.title.set_fontsize("medium")
        bare(axes)
    panels[0, 0].invert_yaxis()
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table, the picture and the page."""
    asked = harness.arguments(NAME, __doc__, DRAWS, argv)
    n = QUICK_SIZE if asked.quick else SIZE
    data = [name for name in DATA if not (asked.quick and name == "DTI")]
    tasks = [
        (name, draw, method, n, asked.quick)
        for draw in range(asked.splits)
        for name in data
        for method in NAMES
    ]
    results = asked.run(run_one, tasks)
    widths, alphas, n_kappas = grids(asked.quick)
    text = PAGE.format(
        options=harness.options(asked.splits, DRAWS),
        table=table(results),
        seen=seen(results),
        draws=asked.splits,
        last=asked.splits - 1,
        size=n,
        processes=PROCESSES,
        width=OUTPUT_WIDTH,
        n_widths=len(widths),
        n_alphas=len(alphas),
        n_kappas=n_kappas,
        seconds=results.seconds.sum(),
    )
    asked.write(results, picture(results), text)


if __name__ == "__main__":
    main()
