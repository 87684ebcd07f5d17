"""The look of all pictures of the documentation, which needs no Sphinx."""

from __future__ import annotations

STYLE = {
    "figure.figsize": (7.2, 4.2),
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": "cycler('color', ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#000000'])",
    "legend.frameon": False,
}
