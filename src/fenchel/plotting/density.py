"""Plots of densities of one or two variables."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import reduce
from typing import Any, Self

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.inspection import FeatureTable, percent, short_name
from fenchel.plotting import _style
from fenchel.plotting._display import Display

MASSES = (0.95, 0.75, 0.5, 0.25)
_WIDER = 8  # times that the picture grows at most, so that no contour is cut
_MARGIN = 0.08  # beyond the data, of their range
_FEWEST_BINS, _MOST_BINS = 10, 80
_REPEATED, _ROUNDING = 0.5, 1e-6  # different values of rounded numbers to a row; of their steps
_DARKEST = 0.7  # of the scale of blues: points are seen on all of it
_ALL_RUGS = 2000  # rows up to which all have a stroke


@dataclass(eq=False, repr=False)
class DensityDisplay(Display):
    r"""Density of one variable over a histogram, or contours of two variables over the data.

    In two dimensions a contour encloses the smallest region with a given share of the mass. With f
    on the drawn grid, the level t of the share m solves

    .. math:: \int_{f > t} f \Big/ \int f = m,

    with both integrals over the plotted area. If part of the mass is outside, increase ``extent``.

    Parameters
    ----------
    grids : tuple of ndarray
        One or two increasing grids.
    density : ndarray of shape (n_points,) or (n_points_of_second, n_points_of_first)
        Values of the density on the grid, >= 0.
    data : ndarray of shape (n_samples, n_features) or None
        Data to draw with the density.
    feature_names : tuple of str
        Labels of the axes.
    masses : sequence of float, default=(0.95, 0.75, 0.5, 0.25)
        Shares of the mass enclosed by contours.

    Attributes
    ----------
    line_ : line or None
        The density of one variable.
    histogram_ : container or None
        Histogram of one variable, normalized to area one.
    rug_ : collection or None
        A tick for each row, or for a sample of 2000 rows if there are more.
    mesh_, contours_, colorbar_
        Artists of the density of two variables; None for one.
    points_ : collection or None
        Data points of two variables.
    levels_ : ndarray or None
        Levels of the contours, in increasing order.
    mass_ : float
        Integral of the density over the plotted area. It is close to 1 if no mass is outside.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.neighbors import KernelDensity
    >>> from fenchel.datasets import load
    >>> from fenchel.plotting import DensityDisplay
    >>> X, _ = load("geyser", return_X_y=True, as_frame=True)
    >>> model = KernelDensity(bandwidth=5.0).fit(X)
    >>> display = DensityDisplay.from_estimator(model, X, ax=Figure().add_subplot())
    >>> display.ax_.get_xlabel()
    'duration'
    """

    grids: tuple[FloatArray, ...]
    density: FloatArray
    _: KW_ONLY
    data: FloatArray | None = None
    feature_names: tuple[str, ...] = ("x",)
    masses: tuple[float, ...] = MASSES

    def __post_init__(self) -> None:
        mass: Any = self.density
        for grid in self.grids:  # the last axis is the first variable
            mass = np.trapezoid(mass, grid, axis=-1)
        self.mass_ = float(mass)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        extent: Any = None,
        grid_resolution: int | None = None,
        masses: tuple[float, ...] = MASSES,
        ax: Any = None,
    ) -> Self:
        """Create the plot of a fitted density.

        Parameters
        ----------
        estimator : object
            Fitted model with ``score_samples(X)``, which returns log-densities, or a pipeline with
            one as last step that does not change the units of X.
        X : DataFrame or array-like of shape (n_samples, 1) or (n_samples, 2)
            Data to draw with the density, in the format of ``score_samples``.
        extent : sequence of pairs, optional
            Lower and upper limit of each variable. The default is 8 % beyond the data, or more if
            a contour would be cut off, or the curve where it is half as high as at the ends of
            the densest 95 %.
        grid_resolution : int, optional
            Number of grid points in each direction; by default 500 in one dimension and 150 in
            two.
        masses : sequence of float, default=(0.95, 0.75, 0.5, 0.25)
            Shares of the mass enclosed by contours, in (0, 1).
        ax : matplotlib axes, optional
            Axes to draw on; a new pyplot figure by default.

        Raises
        ------
        ValueError
            If there are more than two variables, or a variable is not numeric.
        TypeError
            If the estimator has no ``score_samples``.
        """
        if not hasattr(estimator, "score_samples"):
            raise TypeError(
                f"estimator must have score_samples, got {type(estimator).__name__} without it"
            )
        table = FeatureTable.of(X)
        if len(table.names) not in (1, 2):
            raise ValueError(f"X must have one or two columns, got {len(table.names)}")
        if any(not 0.0 < mass < 1.0 for mass in masses):
            raise ValueError(f"masses must be in (0, 1), got {shown(masses)}")
        places = [table.position(j) for j in range(len(table.names))]
        data = np.column_stack([table.numbers(j) for j in places])
        number = grid_resolution or (500 if len(places) == 1 else 150)
        if number < 2:
            raise ValueError(f"grid_resolution must be at least 2, got {shown(number)}")
        ends = _extent(data, extent, table.names)
        for _ in range(_WIDER if extent is None else 1):
            grids = tuple(np.linspace(low, high, number) for low, high in ends)
            made = cls(
                grids,
                _density(estimator, table, grids),
                data=data,
                feature_names=tuple(table.names),
                masses=tuple(masses),
            )
            cut = made._cut_sides()
            if not any(cut):
                break
            ends = [
                (low - _MARGIN * (high - low) * first, high + _MARGIN * (high - low) * last)
                for (low, high), first, last in zip(ends, cut[::2], cut[1::2], strict=True)
            ]
        return made.plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        self.line_ = self.histogram_ = self.rug_ = None
        self.mesh_ = self.contours_ = self.points_ = None
        self.colorbar_: Any = None
        self.levels_: FloatArray | None = None
        if len(self.grids) == 1:
            self._curve()
        else:
            self._contours()

    def _curve(self) -> None:
        ax, (grid,) = self.ax_, self.grids
        (self.line_,) = ax.plot(grid, self.density, color=_style.BLUE, lw=2, zorder=3)
        shown = [(self.line_, "density")]
        if self.data is not None:
            values = self.data[np.isfinite(self.data[:, 0]), 0]
            _, _, self.histogram_ = ax.hist(
                values,
                bins=_edges(values),
                density=True,
                color="#DADADA",
                edgecolor="white",
                lw=0.5,
                zorder=1,
            )
            step = -(-len(values) // _ALL_RUGS)
            self.rug_ = ax.vlines(
                values[::step],
                0.0,
                0.035,
                transform=ax.get_xaxis_transform(),
                color=_style.GREY,
                lw=0.6,
                alpha=0.6,
                zorder=2,
            )
            part = f" (one in {step})" if step > 1 else ""
            shown.append((self.histogram_, f"histogram of {len(values)} rows"))
            shown.append((self.rug_, f"rows{part}"))
        ax.set_xlim(grid[0], grid[-1])
        ax.set_ylim(bottom=0.0)
        name = short_name(self.feature_names[0], 24)
        _style.label_axes(ax, self.feature_names[0], f"density, per unit of {name}")
        ax.figure.draw_without_rendering()
        power = bool(ax.yaxis.get_offset_text().get_text())  # of ten, above the corner
        above = (0.0, 1.06 if power else 1.0)
        _style.legend(
            ax, shown, loc="lower left", bbox_to_anchor=above, ncols=3, columnspacing=1.4
        )

    def _contours(self) -> None:
        ax, (first, second) = self.ax_, self.grids
        blues = _style.shades("Blues", _DARKEST)
        self.mesh_ = ax.pcolormesh(
            first, second, self.density, cmap=blues, vmin=0.0, shading="gouraud", zorder=0
        )
        self.colorbar_ = self.figure_.colorbar(self.mesh_, ax=ax, pad=0.02)
        _style.set_text(self.colorbar_.ax.yaxis.label, "density, per unit of both axes")
        self.colorbar_.outline.set_visible(False)
        if self.data is not None:
            self.points_ = _style.scatter(ax, *self.data.T)
        levels = self._levels()
        self.levels_ = np.unique(levels)
        if len(self.levels_):
            self.contours_ = ax.contour(
                first, second, self.density, levels=self.levels_, colors=_style.BLACK, linewidths=1
            )
            names = {level: percent(mass) for level, mass in zip(levels, self.masses, strict=True)}
            for label in ax.clabel(self.contours_, fmt=names, fontsize=8):
                _style.set_text(label, label.get_text())
        ax.set(xlim=(first[0], first[-1]), ylim=(second[0], second[-1]))
        x, y = self.feature_names
        _style.label_axes(ax, x, y, "contours enclose these shares of the mass")

    def _cut_sides(self) -> list[bool]:
        """Whether the outermost level comes near the low and high ends of each variable."""
        levels = self._levels()
        if not len(levels):
            return [False] * 2 * len(self.grids)
        sides = [self.density[0], self.density[-1]]
        if len(self.grids) > 1:
            sides = [self.density[:, 0], self.density[:, -1], *sides]
        return [bool(side.max() >= 0.5 * levels.min()) for side in sides]

    def _levels(self) -> FloatArray:
        """The level of each share of the mass: cells from the densest on, until they have it."""
        cells = reduce(np.multiply.outer, [np.gradient(grid) for grid in self.grids[::-1]])
        order = np.argsort(-self.density, axis=None)
        mass = np.cumsum((self.density * cells).ravel()[order])
        if not mass[-1] > 0.0:
            return np.zeros(0)
        places = np.searchsorted(mass, np.asarray(self.masses) * mass[-1])
        return self.density.ravel()[order][np.minimum(places, len(order) - 1)]


def _edges(values: FloatArray) -> Any:
    """Bins of a histogram, with equally many of the possible values in each if these repeat.

    Other bins would be empty beside others that are too high, as those of width 0.5 of integers.
    """
    number = int(np.clip(np.sqrt(len(values)), _FEWEST_BINS, _MOST_BINS))
    step = _step(values)
    if not step:
        return number
    low, high = values.min() - 0.5 * step, values.max() + 0.5 * step
    width = step * max(1.0, np.rint((high - low) / number / step))
    return low + width * np.arange(1 + np.ceil((high - low) / width - _ROUNDING))


def _step(values: FloatArray) -> float:
    """The step of which values are multiples, but for a constant; 0 unless most repeat."""
    different = np.unique(values)
    if not 1 < len(different) <= _REPEATED * len(values):
        return 0.0
    step = float(np.diff(different).min())
    multiples = (different - different[0]) / step
    return step if np.abs(multiples - np.rint(multiples)).max() < _ROUNDING else 0.0


def _density(estimator: Any, table: FeatureTable, grids: tuple[FloatArray, ...]) -> FloatArray:
    """Densities on a mesh."""
    mesh = np.meshgrid(*grids)
    index = np.zeros(mesh[0].size, dtype=np.intp)
    rows = table.rows(index, {j: part.ravel() for j, part in enumerate(mesh)})
    logarithm = np.asarray(estimator.score_samples(rows), dtype=np.float64)
    return np.exp(logarithm).reshape(mesh[0].shape)


def _extent(data: FloatArray, extent: Any, names: list[str]) -> list[tuple[float, float]]:
    if extent is None:
        ends = []
        for column in data.T:
            finite = column[np.isfinite(column)]
            low, high = float(finite.min()), float(finite.max())
            margin = max(_MARGIN * (high - low), 0.5 * _step(finite)) or 0.5
            ends.append((low - margin, high + margin))
        return ends
    array = np.asarray(extent, dtype=np.float64)
    if array.shape == (2,) and len(names) == 1:
        array = array[None, :]
    if array.shape != (len(names), 2) or not np.all(array[:, 0] < array[:, 1]):
        raise ValueError(
            f"extent must be a pair (low, high), low < high, for each of {len(names)} variables, "
            f"got {shown(extent)}"
        )
    return [(float(low), float(high)) for low, high in array]
