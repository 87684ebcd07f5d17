"""What the pictures of experiments share: colours, axes without a box, losses over others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

BLUE, SKY, GREEN = "#0072B2", "#56B4E9", "#009E73"  # Okabe and Ito
VERMILION, ORANGE, PURPLE, GREY = "#D55E00", "#E69F00", "#CC79A7", "#777777"
TICKS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0)
FEW_TICKS = (0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.0, 5.0)  # where the others would overlap
_WIDE = 4.0  # ratio of the ends from which on they would


def without_box(axes: Any) -> None:
    """Take the upper and the right edge away."""
    axes.spines[["top", "right"]].set_visible(False)


def bare(axes: Any) -> None:
    """Take the box away and draw a faint grid."""
    without_box(axes)
    axes.grid(color="0.92", linewidth=0.6)


def draw_ratios(
    axes: Any,
    ratios: pd.DataFrame,
    styles: Mapping[str, tuple[str, str]],
    ours: str,
    reference: str,
) -> None:
    """Losses over those of a reference, a line for each table and a mark for each method."""
    height = np.arange(len(ratios))
    for method in ratios:
        color, mark = styles[method]
        own = method == ours
        order, size = (3, 8) if own else (2, 6)
        axes.plot(
            ratios[method], height, mark, color=color, label=method, zorder=order, markersize=size
        )
    low, high = float(np.nanmin(ratios)) / 1.03, float(np.nanmax(ratios)) * 1.03
    axes.axvline(1.0, color="0.7", linewidth=1.0, zorder=0)
    axes.set_yticks(height, ratios.index)
    axes.set_xscale("log")
    ticks = TICKS if high < _WIDE * low else FEW_TICKS
    axes.set_xticks([tick for tick in ticks if low <= tick <= high])
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set(xlim=(low, high), xlabel=f"loss over that of {reference}")
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
