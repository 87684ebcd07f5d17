"""Axes that need no screen, and names that no one should use."""

from __future__ import annotations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# mathtext that does not parse, markup, dropped by legends, control letters, half a pair, empty
HOSTILE = [
    "$x_{",
    "$\\frac{1}{$",
    "<b>bold</b>",
    "_hidden",
    "a\nb\tc\x00d\u202ee",
    "\ud800",
    "größe in µm² ±",
    "x" * 5000,
    "",
    "%s {0} \\n",
]


@pytest.fixture
def new_axes():
    """Make axes, as many as asked for, on a figure of their own."""

    def make(number: int = 1):
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        return figure.subplots(1, number)

    return make


@pytest.fixture
def ax(new_axes):
    return new_axes()


@pytest.fixture(params=HOSTILE, ids=lambda name: ascii(name[:12]))
def hostile(request):
    return request.param
