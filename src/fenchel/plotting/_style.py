"""Common style of all plots: accessible colours, dashes visible in grey, and literal names.

Nothing here changes matplotlib's settings; all is set on the artists themselves.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fenchel.inspection import short_name

# Of Okabe and Ito. The first of each pair is darker in grey, and dashes tell them apart too.
BLUE, VERMILION, GREEN, PURPLE, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"
SKY, BLACK, GREY, PALE = "#56B4E9", "#000000", "#4D4D4D", "#B8B8B8"
CYCLE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE)
DASHES: tuple[Any, ...] = ("solid", (0, (6, 1.8)), (0, (1.2, 1.4)), (0, (6, 1.6, 1.2, 1.6)))
MARKERS = ("o", "s", "^", "D", "v")
MANY = 1000  # points from which on they are drawn small, and as an image in vector files

_NOTE_WIDTH, _NOTE_LINES = 72, 2
_NARROWEST = 24
_LETTERS = 14.6  # of a note, to an inch of the axes


def line_style(k: int) -> dict[str, Any]:
    """Colour and dashes of the curve with this number."""
    return {"color": CYCLE[k % len(CYCLE)], "linestyle": DASHES[k % len(DASHES)]}


def marker(k: int) -> str:
    """Marker of the curve with this number."""
    return MARKERS[k % len(MARKERS)]


def require_matplotlib() -> None:
    """Raise a sentence with the remedy where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401, PLC0415  (an optional dependency)
    except ImportError as error:
        raise ImportError(
            "fenchel.plotting needs matplotlib: pip install 'fenchel[plot]'"
        ) from error


def axes(ax: Any = None, figsize: tuple[float, float] = (6.4, 4.2)) -> Any:
    """Return the given axes, or those of a new pyplot figure."""
    require_matplotlib()
    return ax if ax is not None else figure_axes(1, figsize)[0]


def figure_axes(number: int, figsize: tuple[float, float]) -> Any:
    """Return adjacent axes on a new pyplot figure."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  (an optional dependency)

    _, made = plt.subplots(1, number, figsize=figsize, layout="constrained", squeeze=False)
    return made[0]


def set_text(artist: Any, text: str) -> Any:
    """Set a text that is shown letter by letter: a name such as ``$x_{`` is no formula."""
    artist.set_usetex(False)
    artist.set_parse_math(False)
    artist.set_text(text)
    return artist


def _write(title: Any, note: str, width: int, most: int) -> None:
    """Write a note in lines of at most ``width`` letters."""
    title.set_text("\n".join(textwrap.wrap(note, width, max_lines=most, placeholder=" …")))


def label_axes(ax: Any, x: object, y: object, note: str = "") -> None:
    """Label the axes, write the note above, and take the box away."""
    set_text(ax.xaxis.label, short_name(x))
    set_text(ax.yaxis.label, short_name(y))
    if note:
        ax.figure.draw_without_rendering()  # long labels make the axes narrower
        inches = ax.get_position().width * ax.figure.get_figwidth()
        narrow = int(_LETTERS * inches) < _NOTE_WIDTH
        width = max(int(_LETTERS * inches), _NARROWEST) if narrow else _NOTE_WIDTH
        most = _NOTE_LINES + narrow
        title = set_text(ax.set_title("", fontsize="medium", loc="left"), "")
        room = ax.figure.bbox.x1 - ax.get_window_extent().x0
        _write(title, note, width, most)
        while width > _NARROWEST and title.get_window_extent().width > room:  # of wide letters
            width -= 1
            _write(title, note, width, most + 1)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def limit(set_limits: Any, low: float, high: float) -> None:
    """Set limits with a small margin."""
    margin = 0.02 * (high - low)
    set_limits(low - margin, high + margin)


def legend(ax: Any, entries: Iterable[tuple[Any, object]], title: str = "", **options: Any) -> Any:
    """A legend of handles with their names, whatever letters these begin with."""
    handles, names = zip(*entries, strict=True)
    settings: dict[str, Any] = {
        "loc": "best",
        "handlelength": 2.8,
        "framealpha": 0.75,
        "edgecolor": "none",
        "fancybox": False,
    }
    numbers = [str(k) for k in range(len(handles))]  # matplotlib drops names such as "_x"
    made = ax.legend(handles, numbers, **{**settings, **options})
    for text, name in zip(made.get_texts(), names, strict=True):
        set_text(text, short_name(name))
    if title:
        made.set_title(" ")
        set_text(made.get_title(), title)
    made.set_alignment("left")
    return made


def free_legend(ax: Any, entries: Sequence[tuple[Any, object]], title: str, points: Any) -> Any:
    """A legend beside the points (n, 2) where there is room, or else in a row above them."""
    made = legend(ax, entries, title)
    made.set_in_layout(False)  # one that is too wide for the axes would leave these no room
    ax.figure.draw_without_rendering()
    seen = ax.transData.transform(points[np.isfinite(points).all(axis=1)])
    if not made.get_window_extent().padded(4.0).count_contains(seen):
        return made
    columns = len(entries)
    while True:
        made = legend(ax, entries, title, loc="upper left", ncols=columns, borderaxespad=0.2)
        made.set_in_layout(False)
        ax.figure.draw_without_rendering()
        box = made.get_window_extent()
        if columns == 1 or box.width <= ax.bbox.width:
            break
        columns = -(-columns // 2)
    scale = ax.yaxis.get_transform()
    low, high = scale.transform(ax.get_ylim())
    taken = min(box.height / ax.bbox.height + 0.02, 0.5)
    ax.set_ylim(top=scale.inverted().transform(low + (high - low) / (1.0 - taken)))
    return made


def shades(name: str, end: float) -> Any:
    """A colour map of matplotlib, from its beginning to a share of it."""
    from matplotlib import colormaps  # noqa: PLC0415  (an optional dependency)
    from matplotlib.colors import ListedColormap  # noqa: PLC0415  (the same)

    return ListedColormap(colormaps[name](np.linspace(0.0, end, 256)))


def scatter(ax: Any, x: Any, y: Any, **options: Any) -> Any:
    """Rows of data: small and faint where there are many."""
    many = len(x) > MANY
    settings: dict[str, Any] = {
        "s": 5 if many else 13,
        "color": GREY,
        "alpha": 0.25 if many else 0.5,
        "linewidths": 0,
        "zorder": 2,
        "rasterized": many,
    }
    return ax.scatter(x, y, **{**settings, **options})
