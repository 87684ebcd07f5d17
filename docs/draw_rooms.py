"""``python docs/draw_rooms.py``: the rooms of the package on their floors, from its imports."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from test_architecture import FLOORS, SHARED, imports_of

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "_static" / "rooms.svg"
SOURCE = ROOT / "src" / "fenchel"
LEFT_OUT = SHARED | {"__main__", "_validation"}
# What the floors are about, from the ground up; as many as are drawn.
TITLES = (
    "rows on disk",
    "tables in files",
    "what a fit promises, and how rows are seen",
    "kernels, losses",
    "features, problems",
    "algorithms, what is predicted",
    "parameters from held-out rows",
    "the shell of estimators",
    "and of those that learn",
    "the kernel as given",
    "bounds on norms",
    "estimators",
    "searches, intervals, clusters",
    "read off a fit",
    "pictures",
    "pages, contract checks",
    "terminal",
)
BLUE, GREY = "#0072B2", "#666666"


def draw(axes: Axes) -> None:
    """Draw floors as rows of boxes, and a line for each import between rooms."""
    floors = [sorted(rooms - LEFT_OUT) for rooms in FLOORS]
    floors = [rooms for rooms in floors if rooms]
    places = {}
    for level, rooms in enumerate(floors):
        for k, room in enumerate(rooms):
            places[room] = ((k + 1.0) / (len(rooms) + 1.0), float(level))
    for room, (x, y) in places.items():
        for other in imports_of(room, SOURCE) & places.keys() - {room}:
            there = places[other]
            axes.plot([x, there[0]], [y, there[1]], color=BLUE, alpha=0.18, lw=0.9, zorder=1)
        axes.text(
            x,
            y,
            room,
            ha="center",
            va="center",
            fontsize=8.5,
            zorder=2,
            bbox={"boxstyle": "round,pad=0.35", "fc": "white", "ec": BLUE, "lw": 1.1},
        )
    for level in range(len(floors)):
        axes.text(-0.02, level, TITLES[level], ha="right", va="center", fontsize=8.5, color=GREY)
    axes.set(xlim=(-0.02, 1.0), ylim=(-0.6, len(floors) - 0.4))
    axes.axis("off")


def main() -> None:
    """Draw into the folder of static files."""
    with mpl.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "fenchel", "font.family": "sans-serif"}
    ):
        figure, axes = plt.subplots(figsize=(8.6, 6.6), layout="constrained")
        draw(axes)
        figure.savefig(OUT, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
