"""Figures 5 to 8 of Lambert et al. (2022): losses of curves in themselves, no fits.

5: the robustness ratio of Huber losses for p from 1 to 2 along the share of outliers. 6: losses
in R. 7 and 8: ε-insensitive and Huber losses in R² for several p.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import harness
from experiments.drawing import BLUE, GREY, VERMILION, bare
from experiments.functional_common import contaminate
from fenchel.datasets import make_functional
from fenchel.functional import robustness_ratio
from fenchel.losses import CurveHuber, CurveInsensitive, Squared

NAME = "functional_figures5to8"
ORDERS = (1.0, 1.125, 1.25, 1.5, 1.75, 2.0)
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
OUTLIERS = ((2, 2.0), (3, 0.1), (3, 0.3))
"""Type, and intensity ζ or share ξ of the points."""
DRAWS, SIZE = 10, 100
QUICK_ORDERS, QUICK_SHARES = (1.0, 1.5, 2.0), (0.5,)
EPSILON, KAPPA = 1.0, 0.8
INSENSITIVE_ORDERS = (1.01, 1.5, 2.0, 3.0, 5.0, np.inf)
HUBER_ORDERS = (2.0, 1.5, 1.25, 1.0)
WIDE = 2.5

PAGE = """\
# Losses of curves

Figures 5 to 8 of Lambert, Bouche, Szabó, d'Alché-Buc (2022), *Functional output regression with
infimal convolution*.

    python -m experiments.functional_figures5to8{options}

![Robustness ratio](picture.png)

**Figure 5.** Mean ratio of the Huber losses of curves with and without outliers, for the best of
seven thresholds κ (quantiles of the q-norms of the clean curves), divided here by that of p = 2 to
set the lines apart; the table has the ratios. The paper finds p = 2 best against global outliers,
and p = 1 or a little more against local ones.

{table}

{claims}

The paper does not state ξ, on which the answer depends.

![Losses in R and R²](losses.png)

**Figure 6**, upper left: square, ε-insensitive (ε = {epsilon:g}) and Huber loss (κ = {kappa:g}) of
numbers. **Figure 7**, the six maps with ε: zero within the ball of L^p, outlined, and half the
squared distance to it outside. **Figure 8**, the four maps with κ: square within the ball of L^q,
outlined, and linear outside. The value is written on the level lines.
The losses are those that fits use, with weight 1 for either coordinate. Compared with the infimum
over {angles} directions, exact along each, the values at {checked} points are off by {error:.1e}
at most, relative to the larger of the value and 1.

{draws} draws (seeds 0 to {last}) of {size} clean curves of appendix B.2, outliers from seed
1000 + draw; {seconds:.0f} s of processor time. The paper prints no numbers with these figures.
"""


def ratios(draw: int, orders: list[float], shares: list[float]) -> list[dict[str, Any]]:
    """Robustness ratios on one draw."""
    started = time.process_time()
    clean = make_functional(SIZE, random_state=draw)[1]
    measure = np.full(clean.shape[1], 1.0 / clean.shape[1])
    root = np.sqrt(measure)
    records = []
    for p in orders:
        kappas = np.quantile(CurveHuber(1.0, p, measure).dual_norm(clean * root), LEVELS)

        def loss(residuals: np.ndarray, kappa: float, p: float = p) -> np.ndarray:
            return CurveHuber(kappa, p, measure).value(residuals * root)

        for share in shares:
            for kind, strength in OUTLIERS:
                other = contaminate(clean, (kind, share, strength), 1000 + draw)
                ratio = robustness_ratio(loss, clean, other, kappas)
                records.append(
                    {
                        "draw": draw,
                        "kind": kind,
                        "strength": strength,
                        "p": p,
                        "share": share,
                        "ratio": ratio,
                    }
                )
    seconds = (time.process_time() - started) / len(records)
    return [{**record, "seconds": seconds} for record in records]


def by_directions(
    residual: np.ndarray, p: float, angles: int, epsilon: float | None = None
) -> np.ndarray:
    """Losses by their definition, over directions on the unit ball of L^p, exact along each.

    The insensitive one with ``epsilon``, else Huber's.
    """
    angle = np.linspace(0.0, 2.0 * np.pi, angles, endpoint=False)
    unit = np.column_stack([np.cos(angle), np.sin(angle)])
    unit /= np.linalg.norm(unit, ord=p, axis=1)[:, None]
    along, square = residual @ unit.T, np.einsum("ij,ij->i", unit, unit)
    half = 0.5 * np.einsum("ij,ij->i", residual, residual)[:, None]
    slope = 0.0 if epsilon is not None else KAPPA
    length = np.clip((along - slope) / square, 0.0, np.inf if epsilon is None else epsilon)
    values = half - length * (along - slope) + 0.5 * length**2 * square
    return np.asarray(values.min(axis=1))


def largest_error(angles: int) -> tuple[float, int]:
    """Of the values of all losses of Figures 7 and 8, and how many were looked at."""
    points = np.random.default_rng(0).uniform(-WIDE, WIDE, (150, 2))
    pairs = [
        (CurveInsensitive(EPSILON, p, np.ones(2)), by_directions(points, p, angles, EPSILON))
        for p in INSENSITIVE_ORDERS
    ]
    pairs += [
        (CurveHuber(KAPPA, p, np.ones(2)), by_directions(points, p, angles)) for p in HUBER_ORDERS
    ]
    errors = [np.abs(loss.value(points) - found) / np.maximum(found, 1.0) for loss, found in pairs]
    return float(np.max(errors)), len(pairs) * len(points)


def picture(results: pd.DataFrame) -> Figure:
    """Figure 5: the ratio for each p over that of p = 2, along the share of outliers."""
    figure = Figure(figsize=(9.6, 3.7), layout="constrained")
    panels = figure.subplots(1, len(OUTLIERS))
    means = results.groupby(["kind", "strength", "p", "share"]).ratio.mean()
    orders = np.unique(results.p)
    colors = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.88, len(orders)))
    for axes, (kind, strength) in zip(panels, OUTLIERS, strict=True):
        for p, color, marker in zip(orders, colors, "osD^vP<>"[: len(orders)], strict=True):
            line = means[kind, strength, p] / means[kind, strength, 2.0]
            axes.plot(line.index, line, color=color, marker=marker, markersize=4.5, label=f"{p:g}")
        name = "global: type 2, ζ" if kind == 2 else "local: type 3, ξ"
        axes.set_title(f"{name} = {strength:g}", fontsize="medium")
        axes.set_xlabel("share τ of curves")
        bare(axes)
    panels[0].set_ylabel("robustness ratio over that of p = 2")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, title="p", loc="outside right center", frameon=False)
    return figure


def map_of(axes: Axes, loss: CurveHuber | CurveInsensitive, ball: tuple[float, float]) -> None:
    """Level lines of a loss in R² and the ball (order, radius) where it changes."""
    axis = np.linspace(-WIDE, WIDE, 121)
    points = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    values = loss.value(points).reshape(len(axis), -1)
    levels = np.concatenate([[0.0, 0.01, 0.1], np.arange(0.25, 6.5, 0.25)])
    axes.contourf(axis, axis, values, levels=levels, cmap="Blues", extend="max")
    lines = axes.contour(
        axis, axis, values, levels=[0.1, 0.5, 1.0, 2.0], colors=GREY, linewidths=0.8
    )
    axes.clabel(lines, levels=[0.5, 1.0, 2.0], fontsize=8)
    order, radius = ball
    angle = np.linspace(0.0, 2.0 * np.pi, 721)
    edge = np.column_stack([np.cos(angle), np.sin(angle)])
    edge *= radius / np.linalg.norm(edge, ord=order, axis=1)[:, None]
    axes.plot(edge[:, 0], edge[:, 1], color=VERMILION, linewidth=1.5)
    axes.set(aspect="equal", xticks=(-2, 0, 2), yticks=(-2, 0, 2))


def losses_picture() -> Figure:
    """Figures 6, 7 and 8."""
    figure = Figure(figsize=(9.2, 7.4), layout="constrained")
    panels = figure.subplots(3, 4)
    residual = np.linspace(-WIDE, WIDE, 401)[:, None]
    one, square = np.ones(1), Squared().value(residual)
    for axes, loss, name, color in (
        (panels[0, 0], CurveInsensitive(EPSILON, 2.0, one), f"ε = {EPSILON:g}", BLUE),
        (panels[0, 1], CurveHuber(KAPPA, 1.0, one), f"κ = {KAPPA:g}", VERMILION),
    ):
        axes.plot(residual, square, color=GREY, linestyle="--", label="square")
        axes.plot(residual, loss.value(residual), color=color, label=name)
        axes.set(title="ε-insensitive, R" if color == BLUE else "Huber, R", ylim=(-0.1, 3.2))
        axes.legend(frameon=False, loc="upper center", fontsize=9)
        bare(axes)
    for axes, p in zip([*panels[0, 2:], *panels[1]], INSENSITIVE_ORDERS, strict=True):
        map_of(axes, CurveInsensitive(EPSILON, p, np.ones(2)), (p, EPSILON))
        name = "∞" if p == np.inf else f"{p:g}"
        axes.set_title(f"ε = {EPSILON:g}, p = {name}")
    for axes, p in zip(panels[2], HUBER_ORDERS, strict=True):
        loss = CurveHuber(KAPPA, p, np.ones(2))
        map_of(axes, loss, (loss.dual_order, KAPPA))
        axes.set_title(f"κ = {KAPPA:g}, p = {p:g}")
    return figure


def claims(means: pd.DataFrame) -> str:
    """What the ratios say, for each kind of outliers; a column for each p, a row for each τ."""
    said = []
    for kind, strength in OUTLIERS:
        own = means.loc[kind, strength]
        best, count = own.idxmin(axis=1), len(own)
        won = " or ".join(f"{p:g}" for p in sorted(set(best)))
        if kind == 2:
            verdict = "confirmed" if (best == 2.0).all() else "not confirmed"
            said.append(
                f"- Global, ζ = {strength:g}: least ratio for p = {won} at all shares.\n"
                f"  That p = 2 is best is **{verdict}**."
            )
            continue
        better = int((own[1.0] < own[2.0]).sum())
        one = "confirmed" if better == count else "not confirmed"
        above = int((own.drop(columns=1.0).min(axis=1) < own[1.0]).sum())
        said.append(
            f"- Local, ξ = {strength:g}: least ratio for p = {won}. The ratio of p = 1 is\n"
            f"  below that of p = 2 at {better} of {count} shares: that p = 1 is better is\n"
            f"  **{one}**. A larger p is better still than p = 1 at {above} of {count}."
        )
    return "\n".join(said)


def page(results: pd.DataFrame, angles: int) -> str:
    """What is seen, in numbers."""
    means = results.groupby(["kind", "strength", "share", "p"]).ratio.mean().unstack("p")
    cells = means.map(lambda ratio: f"{ratio:.3f}").reset_index()
    cells["kind"] = [f"type {kind}" for kind in cells.kind]
    cells.columns = ["outliers", "ζ or ξ", "τ", *[f"p = {p:g}" for p in means.columns]]
    error, checked = largest_error(angles)
    draws = results.draw.nunique()
    return PAGE.format(
        options=harness.options(draws, DRAWS),
        table=harness.markdown_table(cells),
        claims=claims(means),
        epsilon=EPSILON,
        kappa=KAPPA,
        angles=angles,
        checked=checked,
        error=error,
        draws=draws,
        last=draws - 1,
        size=SIZE,
        seconds=results.seconds.sum(),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table, the pictures and the page."""
    asked = harness.arguments(NAME, __doc__, DRAWS, argv)
    orders, shares = (QUICK_ORDERS, QUICK_SHARES) if asked.quick else (ORDERS, SHARES)
    tasks = [(draw, list(orders), list(shares)) for draw in range(asked.splits)]
    results = asked.run(ratios, tasks)
    harness.save_picture(asked.out / "losses.png", losses_picture())
    text = page(results, 2000 if asked.quick else 20_000)
    asked.write(results, picture(results), text)


if __name__ == "__main__":
    main()
