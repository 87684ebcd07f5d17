"""Convergence of solvers: relative duality gap against time or iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.inspection import fitted_model
from fenchel.plotting import _style
from fenchel.plotting._display import Display

AXES = {"time": "time in seconds", "iteration": "iteration"}
_MARKED = 20  # markers on a curve
_FLOOR = float(np.finfo(np.float64).eps)


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """Relative duality gap of a solver against time or iterations, on a logarithmic axis.

    The gap bounds the distance of the objective from its optimum, relative to the objective of the
    best constant model. Gaps below rounding error, including negative ones, are drawn at 2.2e-16.

    Parameters
    ----------
    histories : dict of str to sequence of Progress
        Name of each curve and its ``history_``, whose entries have ``iteration``, ``seconds`` and
        ``relative_gap``.
    against : {"time", "iteration"}, default="time"
        Quantity on the horizontal axis.
    tol : float, optional
        The requested relative gap, drawn as a line.

    Attributes
    ----------
    lines_ : list
        One curve for each history, in the same order.
    tol_line_ : line or None
        The line at ``tol``.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.plotting import ConvergenceDisplay
    >>> X, y = load_engel(return_X_y=True, as_frame=True)
    >>> model = QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-5).fit(X, y)
    >>> display = ConvergenceDisplay.from_estimator(
    ...     model, against="iteration", ax=Figure().add_subplot()
    ... )
    >>> bool(display.lines_[0].get_ydata()[-1] <= model.tol)
    True
    """

    histories: Mapping[str, Sequence[Any]]
    _: KW_ONLY
    against: str = "time"
    tol: float | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, against: str = "time", name: str | None = None, ax: Any = None
    ) -> Self:
        """Create the plot of a fitted model.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with ``history_``, or a pipeline or search with one as last step.
        against : {"time", "iteration"}, default="time"
            Quantity on the horizontal axis.
        name : str, optional
            Name of the curve; the class name by default.
        ax : matplotlib axes, optional
            Axes to draw on; a new pyplot figure by default.

        Raises
        ------
        ValueError
            If the estimator has no history, or ``against`` is unknown.
        """
        model = fitted_model(estimator, "history_", what="the record of its solver")
        return cls.from_histories(
            {name or type(model).__name__: model.history_},
            against=against,
            tol=getattr(model, "tol", None),
            ax=ax,
        )

    @classmethod
    def from_histories(
        cls,
        histories: Mapping[str, Sequence[Any]],
        *,
        against: str = "time",
        tol: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Create a plot of several histories, to compare solvers.

        Parameters
        ----------
        histories, against, tol
            As in the class.
        ax : matplotlib axes, optional
            Axes to draw on; a new pyplot figure by default.

        Raises
        ------
        ValueError
            If there is no history, or ``against`` is unknown.
        """
        if against not in AXES:
            raise ValueError(f"against must be one of {tuple(AXES)}, got {shown(against)}")
        empty = [name for name, history in histories.items() if len(history) == 0]
        if not histories or empty:
            what = f"none for {empty[0]!r}" if empty else "no history"
            raise ValueError(f"histories must have at least one entry each, got {what}")
        return cls(histories, against=against, tol=tol).plot(ax=ax)

    def curve(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Return times or iterations of a history, and relative gaps as drawn."""
        history = self.histories[name]
        place = "seconds" if self.against == "time" else "iteration"
        x = np.array([getattr(entry, place) for entry in history], dtype=np.float64)
        gap = np.array([entry.relative_gap for entry in history], dtype=np.float64)
        return x, np.where(np.isfinite(gap), np.maximum(gap, _FLOOR), np.nan)

    def _draw(self, ax: Any) -> None:
        self.lines_: list[Any] = []
        self.tol_line_: Any = None
        for k, name in enumerate(self.histories):
            x, gap = self.curve(name)
            (line,) = ax.plot(
                x,
                gap,
                markevery=-(-len(x) // _MARKED),
                **_style.line_style(k),
                marker=_style.marker(k),
                markersize=4,
                linewidth=1.5,
                zorder=3,
            )
            self.lines_.append(line)
        shown = list(zip(self.lines_, self.histories, strict=True))
        if self.tol is not None:
            self.tol_line_ = ax.axhline(self.tol, color=_style.GREY, lw=1, ls="--", zorder=2)
            shown.append((self.tol_line_, f"tol: {self.tol:g}"))
        ax.set_yscale("log")
        _style.label_axes(ax, AXES[self.against], "relative duality gap")
        _style.legend(ax, shown)
