"""Figure 1 of Sangnier, Fercoq, d'Alché-Buc (2016): from parallel to independent quantiles.

The paper's synthetic data and parameters of section 6.2: a modulated sine with fading noise,
levels 0.1, 0.3, 0.5, 0.7 and 0.9, C = 100, and a Gaussian kernel whose σ is the 0.7-quantile of
the distances between rows. γ goes from 0 (homoscedastic: parallel curves) to ∞ (heteroscedastic:
independent curves). The paper does not say which γ and how many rows it shows; we take 250 rows.
Beside the picture, of the first random data set, the estimates are compared with the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from threadpoolctl import threadpool_limits

from experiments import harness
from fenchel import QuantileRegressor
from fenchel.datasets import make_sine_quantiles
from fenchel.kernels import DistanceQuantile, Gaussian
from fenchel.losses import Pinball

NAME = "joint_quantiles_figure1"
LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
GAMMAS = (0.0, 1e-3, 1e-2, 1.0, np.inf)
ROWS, NEW_ROWS = 250, 2000
STRENGTH = 100.0
_COLOURS = ("#0072B2", "#56B4E9", "#000000", "#E69F00", "#D55E00")  # Okabe and Ito
_TITLES = ("γ = 0 (homoscedastic)", "γ = 10⁻³", "γ = 10⁻²", "γ = 1", "γ = ∞ (heteroscedastic)")

PAGE = """\
# From parallel to independent quantiles

Figure 1 of Sangnier, Fercoq, d'Alché-Buc (2016), *Joint quantile regression in vector-valued
RKHSs*: estimated (plain lines) and true (dashed lines) conditional quantiles on synthetic data,
from homoscedastic (γ = 0) to heteroscedastic regressors (γ = ∞).

    python -m experiments.joint_quantiles_figure1
{quick}
Levels 0.1, 0.3, 0.5, 0.7, 0.9; {rows} rows; C = 100; Gaussian kernel, σ the 0.7-quantile of the
distances. The paper prints no numbers with its figure, nor γ, C or the number of rows.

![](picture.png)

Mean ± standard deviation over {splits} random data sets, on {new_rows} new rows. The distance
is the mean absolute one between estimated and true quantiles, least at γ = {best}. The spread is
how much the distance of the two outermost curves varies with x: its standard deviation, which is
{true_spread:.3f} for the true ones.

{table}
"""
QUICK = """
**Quick version**: fewer data sets.
"""


def fitted(gamma: float, k: int) -> QuantileRegressor:
    """Joint quantiles of the k-th data set."""
    X, y, _ = make_sine_quantiles(ROWS, levels=LEVELS, random_state=k)
    kernel, alpha = Gaussian(DistanceQuantile(0.7)), 1.0 / (STRENGTH * ROWS)
    return QuantileRegressor(LEVELS, kernel=kernel, alpha=alpha, level_gamma=gamma).fit(X, y)


def one_data_set(k: int) -> list[dict[str, Any]]:
    """How far the estimates are from the truth, for every γ."""
    X, y, truth = make_sine_quantiles(NEW_ROWS, levels=LEVELS, random_state=10_000 + k)
    records = []
    with threadpool_limits(1):
        for gamma in GAMMAS:
            model = fitted(gamma, k)
            prediction = model.predict(X)
            records.append(
                {
                    "split": k,
                    "gamma": gamma,
                    "distance": float(np.abs(prediction - truth).mean()),
                    "pinball_x100": 100.0
                    * float(Pinball(LEVELS).value(y[:, None] - prediction).mean()),
                    "crossing_x100": 100.0 * model.crossing_loss(X),
                    "spread": float((prediction[:, -1] - prediction[:, 0]).std()),
                    "relative_gap": model.certificate_.relative_gap,
                }
            )
    return records


def picture() -> Figure:
    """A panel for each γ, of the first data set."""
    X, y, _ = make_sine_quantiles(ROWS, levels=LEVELS, random_state=0)
    grid, _, truth = make_sine_quantiles(NEW_ROWS, levels=LEVELS, random_state=10_000)
    order = np.argsort(grid[:, 0])
    grid, truth = grid[order], truth[order]
    figure = Figure(figsize=(15.0, 4.0), layout="constrained")
    axes = figure.subplots(1, len(GAMMAS), sharex=True, sharey=True)
    for axis, gamma, title in zip(axes, GAMMAS, _TITLES, strict=True):
        curves = fitted(gamma, 0).predict(grid)
        axis.scatter(X[:, 0], y, s=5, color="0.75", zorder=0, linewidths=0)
        for j, (level, colour) in enumerate(zip(LEVELS, _COLOURS, strict=True)):
            axis.plot(grid[:, 0], truth[:, j], color=colour, linewidth=1.2, linestyle=(0, (4, 2)))
            axis.plot(grid[:, 0], curves[:, j], color=colour, linewidth=1.8, label=f"{level:g}")
        axis.set_title(title)
        axis.set_xlabel("x")
    axes[0].set_ylabel("y")
    handles, labels = axes[0].get_legend_handles_labels()
    handles = [*handles[::-1], Line2D([], [], color="black"), axes[0].lines[4]]
    figure.legend(
        handles,
        [*labels[::-1], "estimated", "true"],
        title="level",
        loc="outside right center",
        frameon=False,
    )
    return figure


def page(results: pd.DataFrame, quick: bool) -> str:
    """The page as markdown."""
    columns = {
        "distance": ("distance from the truth", 3),
        "pinball_x100": ("pinball loss ×100", 1),
        "crossing_x100": ("crossing loss ×100", 2),
        "spread": ("spread", 3),
    }
    rows = []
    for gamma, group in results.groupby("gamma"):
        row = {"γ": _sign(gamma)}
        for column, (title, digits) in columns.items():
            mean, deviation = group[column].mean(), group[column].std()
            spread = f" ± {deviation:.{digits}f}" if len(group) > 1 else ""
            row[title] = f"{mean:.{digits}f}{spread}"
        rows.append(row)
    _, _, truth = make_sine_quantiles(NEW_ROWS, levels=LEVELS, random_state=10_000)
    return PAGE.format(
        quick=QUICK if quick else "",
        rows=ROWS,
        new_rows=NEW_ROWS,
        splits=results["split"].nunique(),
        best=_sign(float(results.groupby("gamma")["distance"].mean().idxmin())),
        true_spread=(truth[:, -1] - truth[:, 0]).std(),
        table=harness.markdown_table(pd.DataFrame(rows)),
    )


def _sign(gamma: float) -> str:
    return "∞" if gamma == np.inf else f"{gamma:g}"


def main(argv: Sequence[str] | None = None) -> None:
    """Fit all data sets and write table, picture and page."""
    asked = harness.arguments(NAME, __doc__, 20, argv)
    tasks = [(k,) for k in range(asked.splits)]
    results = asked.run(one_data_set, tasks)
    asked.write(results, picture(), page(results, asked.quick))


if __name__ == "__main__":
    main()
