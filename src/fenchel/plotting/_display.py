"""Base class of all displays."""

from __future__ import annotations

from typing import Any, Self

from fenchel.plotting import _style


class Display:
    """Base class of displays; subclasses draw on ``ax_``."""

    ax_: Any
    figure_: Any
    _figsize = (6.4, 4.2)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or on a new pyplot figure.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on.

        Returns
        -------
        Self
            The display, with the matplotlib artists as attributes.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self.ax_ = _style.axes(ax, self._figsize)
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError
