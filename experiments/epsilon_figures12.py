"""Figures 1 and 2 of Sangnier, Fercoq, d'Alché-Buc (2017): ε-insensitive pinball losses.

Figure 1: the pinball loss, its ε-insensitive version, and the one of Park and Kim (2011), for one
level. Figure 2: the ε-insensitive loss of two levels (ε = 0.2, τ = (0.25, 0.6)) as a surface, and
slices of it. The paper has no closed form of the latter; here its values are exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments import harness
from experiments.comparisons.sparse import ParkKim
from experiments.drawing import BLUE, GREEN, GREY, VERMILION, bare
from fenchel.losses import Pinball

NAME = "epsilon_figures12"
LEVEL, LEVELS, EPSILON = 0.25, (0.25, 0.6), 0.2
SLICES = (0.0, 0.1, 0.2, 0.4)
WIDE = 1.5

PAGE = """\
# ε-insensitive pinball losses

Figures 1 and 2 of Sangnier, Fercoq, d'Alché-Buc (2017), *Data sparse nonparametric regression
with ε-insensitive losses*.

    python -m experiments.epsilon_figures12

![Losses](picture.png)

**Left**, Figure 1: the pinball loss of the level {level:g}, its ε-insensitive version for
ε = {epsilon:g}, zero for |ξ| <= ε, and the loss of Park and Kim (2011) with the same ε,
max(0, ρ(ξ) - ε), zero from {low:.3f} to {high:.3f}. Beyond its tube the former has moved sideways
by ε on either side, the latter down by ε: their tubes are not the same, and that of Park and Kim
is as lopsided as the level.

**Middle**, Figure 2: level lines of the ε-insensitive loss of the levels 0.25 and 0.6 together,
ε = {epsilon:g}. It is zero on a disc, drawn in black, not on a square: rows are sparse as a whole.

**Right**: slices of it along ξ₁, for several ξ₂; dashed without ε. Values are exact, from the
dual: max over τ - 1 <= β <= τ of <β, ξ> - ε ||β||. Compared with the infimum over a fine grid of
the disc, its definition, on {points} points, the largest difference is {error:.1e} (the grid
cannot go below the infimum, and comes within its spacing).
"""


def by_definition(residual: np.ndarray, epsilon: float, steps: int) -> np.ndarray:
    """Infimal convolution of the pinball losses with the disc, on a polar grid of it."""
    angles = np.linspace(0.0, 2.0 * np.pi, steps, endpoint=False)
    radii = np.linspace(0.0, epsilon, steps // 8)
    disc = (radii[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], -1)).reshape(-1, 2)
    loss = Pinball(LEVELS)
    return np.array([loss.value(xi - disc).min() for xi in residual])


def surface(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Grid of one axis, and values of the ε-insensitive loss on its square."""
    axis = np.linspace(-1.0, 1.0, n)
    points = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    return axis, Pinball(LEVELS).insensitive(EPSILON).value(points).reshape(n, n)


def curves(n: int) -> pd.DataFrame:
    """Figure 1 and the slices of Figure 2, a row for each value."""
    axis = np.linspace(-WIDE, WIDE, n)
    one = axis[:, None]
    values = {
        "pinball": Pinball(LEVEL).value(one),
        "insensitive": Pinball(LEVEL).insensitive(EPSILON).value(one),
        "park_kim": ParkKim(LEVEL, EPSILON).value(one),
    }
    for second in SLICES:
        two = np.column_stack([axis, np.full(n, second)])
        values[f"slice_{second:g}"] = Pinball(LEVELS).insensitive(EPSILON).value(two)
        values[f"slice_{second:g}_without"] = Pinball(LEVELS).value(two)
    return pd.DataFrame({"residual": axis, **values})


def picture(table: pd.DataFrame, n: int) -> Figure:
    """Losses of one level, level lines of the loss of two, slices."""
    figure = Figure(figsize=(12.5, 3.9), layout="constrained")
    one, lines, slices = figure.subplots(1, 3)
    for column, color, label in (
        ("pinball", GREY, "pinball"),
        ("insensitive", BLUE, "ε-insensitive"),
        ("park_kim", VERMILION, "Park & Kim"),
    ):
        one.plot(table.residual, table[column], color=color, label=label)
    one.set(title=f"One level: τ = {LEVEL:g}, ε = {EPSILON:g}", xlabel="residual ξ", ylabel="loss")
    one.legend(frameon=False)
    axis, values = surface(n)
    filled = lines.contourf(axis, axis, values, levels=16, cmap="Blues")
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    lines.plot(EPSILON * np.cos(angle), EPSILON * np.sin(angle), color="black", linewidth=1)
    lines.set(title="Two levels: τ = (0.25, 0.6)", xlabel="ξ₁", ylabel="ξ₂", aspect="equal")
    figure.colorbar(filled, ax=lines, label="loss")
    for second, color in zip(SLICES, (BLUE, GREEN, VERMILION, GREY), strict=True):
        name = f"slice_{second:g}"
        slices.plot(table.residual, table[name], color=color, label=f"ξ₂ = {second:g}")
        slices.plot(table.residual, table[f"{name}_without"], "--", color=color, linewidth=0.8)
    slices.set(title="Slices; dashed: ε = 0", xlabel="ξ₁", ylabel="loss")
    slices.set(xlim=(-0.8, 0.8), ylim=(-0.02, 0.85))
    slices.legend(frameon=False)
    for axes in (one, slices):
        bare(axes)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table, the picture and the page."""
    asked = harness.arguments(NAME, __doc__, 1, argv)
    n, steps = (61, 160) if asked.quick else (301, 800)
    table = curves(n)
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (100, 2))
    exact = Pinball(LEVELS).insensitive(EPSILON).value(points)
    error = np.abs(by_definition(points, EPSILON, steps) - exact).max()
    text = PAGE.format(
        level=LEVEL,
        epsilon=EPSILON,
        low=-EPSILON / (1.0 - LEVEL),
        high=EPSILON / LEVEL,
        points=len(points),
        error=error,
    )
    asked.write(table, picture(table, n), text)


if __name__ == "__main__":
    main()
