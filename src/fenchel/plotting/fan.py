"""The fan of conditional quantiles."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from fenchel._typing import AnyArray, FloatArray
from fenchel.plotting._slices import along, describe_fixed

# Blue and vermilion of Okabe and Ito: told apart by all, and by their dashes in grey.
_BELOW, _ABOVE, _MIDDLE, _BAND, _DATA = "#0072B2", "#D55E00", "#000000", "#56B4E9", "#4D4D4D"
_DASHES: tuple[Any, ...] = (
    "solid",
    (0, (6, 1.8)),
    (0, (1.2, 1.4)),
    (0, (6, 1.6, 1.2, 1.6)),
)
_STATISTICS = {"QuantileRegressor": "quantiles", "ExpectileRegressor": "expectiles"}


class FanDisplay:
    """One curve for each level, and bands between the symmetric ones, over the data.

    Make it by :meth:`from_estimator`; the constructor takes what is to be drawn.

    Parameters
    ----------
    grid : ndarray of shape (n_points,)
        Values of the feature.
    curves : ndarray of shape (n_points, n_curves)
        Predictions there.
    levels : ndarray of shape (n_curves,) or None
        Levels of the curves; None for models without levels.
    data : (ndarray, ndarray) or None
        Feature and target of the rows to scatter.
    feature_name, target_name : str
        Labels of the axes.
    label : str
        What the curves are: the title of the legend, or the name of a single curve.
    note : str
        Where the other features are held.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's axes and figure.
    lines_ : list
        The curves, in the order of the columns of ``curves``.
    bands_ : list
        The bands between symmetric levels, outermost first.
    points_ : collection or None
        The scattered data.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.plotting import FanDisplay
    >>> X, y = load_engel(return_X_y=True, as_frame=True)
    >>> model = QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-5).fit(X, y)
    >>> display = FanDisplay.from_estimator(model, X, y, ax=Figure().add_subplot())
    >>> [line.get_label() for line in display.lines_]
    ['10 %', '50 %', '90 %']
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('income', 'foodexp')
    """

    ax_: Any
    figure_: Any
    lines_: list[Any]
    bands_: list[Any]
    points_: Any

    def __init__(
        self,
        grid: FloatArray,
        curves: FloatArray,
        *,
        levels: FloatArray | None = None,
        data: tuple[FloatArray, FloatArray] | None = None,
        feature_name: str = "x",
        target_name: str = "y",
        label: str = "prediction",
        note: str = "",
    ) -> None:
        self.grid = grid
        self.curves = curves
        self.levels = levels
        self.data = data
        self.feature_name = feature_name
        self.target_name = target_name
        self.label = label
        self.note = note

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        feature: int | str | None = None,
        output: int = 0,
        grid_resolution: int = 300,
        target_name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw a fitted model along one feature.

        Parameters
        ----------
        estimator : estimator
            Fitted, of fenchel, or a pipeline that ends in one.
        X : DataFrame or array-like of shape (n_samples, n_features)
            Rows in the form that ``estimator.predict`` takes.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets to scatter; its name labels the axis.
        feature : int or str, optional
            The feature to draw along, the first that is a number by default. The others are
            held at their medians or most frequent values, and the title says so.
        output : int, default=0
            Which target, of a model with several.
        grid_resolution : int, default=300
            Number of points of a curve.
        target_name : str, optional
            Label of the vertical axis.
        ax : matplotlib axes, optional
            Where to draw; a new figure of pyplot by default.

        Returns
        -------
        FanDisplay
            With what was drawn as attributes.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If the feature is unknown or not a number.
        """
        _matplotlib()
        path = along(X, feature, grid_resolution)
        final = _final(estimator)
        curves = np.asarray(estimator.predict(path.rows), dtype=np.float64)
        curves = curves[:, None] if curves.ndim == 1 else curves
        levels = getattr(final, "levels_", None)
        if levels is None:
            curves = _one_output(curves, output)
        data = None if y is None else (path.values, _column(y, output))
        label = _label(final, levels)
        note = describe_fixed(path.fixed)
        name = target_name or _name_of(y, output)
        names = {"feature_name": path.name, "target_name": name, "label": label, "note": note}
        return cls(path.grid, curves, levels=levels, data=data, **names).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or on those of a new figure of pyplot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.

        Returns
        -------
        FanDisplay
            Itself.
        """
        _matplotlib()
        if ax is None:
            import matplotlib.pyplot as plt  # noqa: PLC0415  (an optional dependency)

            _, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.bands_, self.lines_, self.points_ = [], [], None
        if self.data is not None:
            self._scatter(*self.data)
        if self.levels is None:
            self.lines_ = ax.plot(self.grid, self.curves[:, 0], color=_BELOW, lw=2, zorder=3)
            self.lines_[0].set_label(self.label)
        else:
            self._fan(self.levels)
        self._dress()
        return self

    def _scatter(self, values: FloatArray, targets: FloatArray) -> None:
        many = len(values) > 1000
        self.points_ = self.ax_.scatter(
            values,
            targets,
            s=5 if many else 13,
            color=_DATA,
            alpha=0.25 if many else 0.5,
            linewidths=0,
            zorder=2,
            label="data",
            rasterized=many,
        )

    def _fan(self, levels: FloatArray) -> None:
        order = np.argsort(levels)
        pairs = _pairs(levels)
        for low, high in pairs:
            self.bands_.append(
                self.ax_.fill_between(
                    self.grid,
                    self.curves[:, low],
                    self.curves[:, high],
                    color=_BAND,
                    alpha=0.22,
                    linewidth=0,
                    zorder=1,
                )
            )
        distances = sorted({round(abs(float(level) - 0.5), 9) for level in levels} - {0.0})
        lines: dict[int, Any] = {}
        for j in order:
            level = float(levels[j])
            distance = round(abs(level - 0.5), 9)
            middle = distance == 0.0
            rank = 0 if middle else distances.index(distance)
            (lines[int(j)],) = self.ax_.plot(
                self.grid,
                self.curves[:, j],
                color=_MIDDLE if middle else _BELOW if level < 0.5 else _ABOVE,
                linestyle=_DASHES[0] if middle else _DASHES[1 + rank % (len(_DASHES) - 1)],
                linewidth=2.0 if middle else 1.5,
                zorder=4 if middle else 3,
                label=_percent(level),
            )
        self.lines_ = [lines[j] for j in range(len(levels))]

    def _dress(self) -> None:
        ax = self.ax_
        ax.set_xlabel(self.feature_name)
        ax.set_ylabel(self.target_name)
        if self.note:
            ax.set_title(self.note, fontsize="medium", loc="left")
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        ax.margins(x=0.02)
        handles = [*self.lines_]
        if self.levels is not None:  # the highest curve first, as they lie in the picture
            handles = [self.lines_[j] for j in np.argsort(self.levels)[::-1]]
        if self.points_ is not None:
            handles.append(self.points_)
        title = None if self.levels is None else self.label
        legend = ax.legend(handles=handles, title=title, frameon=False, handlelength=2.8)
        legend.set_alignment("left")


def _matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401, PLC0415  (an optional dependency)
    except ImportError as error:
        raise ImportError(
            "fenchel.plotting needs matplotlib: pip install 'fenchel[plot]'"
        ) from error


def _label(final: Any, levels: FloatArray | None) -> str:
    kind = type(final).__name__
    return kind if levels is None else _STATISTICS.get(kind, "levels")


def _one_output(curves: FloatArray, output: int) -> FloatArray:
    if not 0 <= output < curves.shape[1]:
        raise ValueError(f"output must be in 0..{curves.shape[1] - 1}, got {output!r}")
    return curves[:, [output]]


def _final(estimator: Any) -> Any:
    """The regressor inside pipelines and searches."""
    for name in ("best_estimator_", "regressor_"):
        if hasattr(estimator, name):
            return _final(getattr(estimator, name))
    return _final(estimator[-1]) if hasattr(estimator, "steps") else estimator


def _pairs(levels: FloatArray) -> list[tuple[int, int]]:
    """Positions of symmetric levels, outermost first."""
    pairs = []
    for low in np.argsort(levels):
        if levels[low] < 0.5:
            match = np.flatnonzero(np.isclose(levels, 1.0 - levels[low], rtol=0.0, atol=1e-9))
            pairs += [(int(low), int(high)) for high in match]
    return pairs


def _percent(level: float) -> str:
    return f"{100.0 * level:.6g} %"


def _name_of(y: Any, output: int) -> str:
    if hasattr(y, "columns"):
        return str(y.columns[output])
    name = getattr(y, "name", None)
    return "y" if name is None else str(name)


def _column(y: Any, output: int) -> FloatArray:
    values: AnyArray = np.asarray(y, dtype=np.float64)
    return np.asarray(values if values.ndim == 1 else values[:, output])


__all__ = ["FanDisplay"]
