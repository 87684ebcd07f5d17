"""What all displays share."""

from __future__ import annotations

from typing import Any, Self

from fenchel.plotting import _style


class Display:
    """Base class: subclasses draw on ``ax_``."""

    ax_: Any
    figure_: Any
    _figsize = (6.4, 4.2)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or on those of a new figure of pyplot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.

        Returns
        -------
        Self
            With what was drawn as attributes.

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
