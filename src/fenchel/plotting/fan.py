"""Fan chart of conditional quantiles or expectiles, or of predictions with intervals."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import check_levels, shown
from fenchel.inspection import (
    FeatureTable,
    final_estimator,
    levels_of,
    percent,
    prediction_name,
    robust_range,
    statistic_of,
    target_name_of,
)
from fenchel.plotting import _along, _style
from fenchel.plotting._checks import check_output, column, matrix, vector
from fenchel.plotting._display import Display

KINDS = ("average", "typical")


@dataclass(eq=False, repr=False)
class FanDisplay(Display):
    """Fan chart: curves of all levels along one feature, with bands and data.

    Bands lie between symmetric levels. A model without levels has the curve of its prediction, and
    the band of its prediction intervals if it has them. Calibrated intervals are drawn at their
    own coverage and others at 80 %.

    Create it with :meth:`from_estimator` or :meth:`from_predictions`. The constructor takes the
    data of the plot.

    Parameters
    ----------
    grid : ndarray of shape (n_points,)
        Values of the feature.
    curves : ndarray of shape (n_points, n_curves)
        Predictions at the grid values.
    levels : ndarray of shape (n_curves,) or None
        Levels of the curves; None for models without levels.
    interval : ndarray of shape (n_points, 2) or None
        Lower and upper bounds of the intervals of a model without levels. Infinite bounds are not
        drawn.
    coverage : float or None
        Nominal coverage of the intervals.
    data : (ndarray, ndarray) or None
        Feature and target of the scattered rows.
    feature_name, target_name : str
        Labels of the axes.
    label : str
        Title of the legend, or the name of a single curve.
    note : str
        Note on how other features are treated.

    Attributes
    ----------
    lines_ : list
        The curves, in the order of the columns of ``curves``.
    bands_ : list
        Bands between symmetric levels, outermost first, or the band of the intervals.
    ends_ : list
        Lines at the finite bound of intervals with one infinite bound.
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

    grid: FloatArray
    curves: FloatArray
    _: KW_ONLY
    levels: FloatArray | None = None
    interval: FloatArray | None = None
    coverage: float | None = None
    data: tuple[FloatArray, FloatArray] | None = None
    feature_name: str = "x"
    target_name: str = "y"
    label: str = "prediction"
    note: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        feature: int | str | None = None,
        output: int = 0,
        kind: str = "average",
        grid_resolution: int = 300,
        subsample: int = 200,
        random_state: Any = 0,
        target_name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Create the plot of a fitted model along one feature.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator of fenchel, or a pipeline with one as last step.
        X : DataFrame or array-like of shape (n_samples, n_features)
            Samples in the format of ``estimator.predict``.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets to scatter; the name labels the axis.
        feature : int or str, optional
            Feature on the horizontal axis; the first numeric feature by default.
        output : int, default=0
            Index of the target, for a model with several.
        kind : {"average", "typical"}, default="average"
            "average" averages predictions over the rows, each with its own other features (partial
            dependence). Points are shifted vertically by the effect of the other features in their
            row, so that the distance from the middle curve is the residual. "typical" fixes the
            other features at their medians or most frequent values, a combination that may not
            occur in the data, and does not shift points. The title names the kind.
        grid_resolution : int, default=300
            Number of grid points of a curve.
        subsample : int, default=200
            Number of randomly chosen rows for the average, if there are more.
        random_state : int, RandomState or None, default=0
            Seed of this choice.
        target_name : str, optional
            Label of the vertical axis.
        ax : matplotlib axes, optional
            Axes to draw on; a new pyplot figure by default.

        Raises
        ------
        ValueError
            If the feature is unknown or not numeric, or the kind is unknown.
        """
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, got {shown(kind)}")
        alone = len(FeatureTable.of(X).names) == 1
        if kind == "average" and not alone:
            sample = {"subsample": subsample, "random_state": random_state}
            along = _along.average(estimator, X, feature, grid_resolution, **sample)
        else:
            along = _along.typical(estimator, X, feature, grid_resolution)
        grid, note = along.grid, along.note
        model = final_estimator(estimator)
        levels = levels_of(model)
        curves = _of_output(along.predicted, levels, output)
        targets = None if y is None else column(y, output)
        if targets is not None and kind == "average" and not alone:
            own = _of_output(estimator.predict(X), levels, output)
            targets = targets - _middle(own, levels)
            targets = targets + np.interp(along.values, grid, _middle(curves, levels))
            note = f"{note}, points adjusted for them"
        label = type(model).__name__ if along.ends is None else prediction_name(model)
        return cls(
            grid,
            curves,
            levels=levels,
            interval=along.ends,
            coverage=along.coverage,
            data=None if targets is None else (along.values, targets),
            feature_name=along.name,
            target_name=target_name or target_name_of(y, output),
            label=label if levels is None else statistic_of(model),
            note=note,
        ).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        x: Any,
        predictions: Any,
        y: Any = None,
        *,
        levels: Any = None,
        feature_name: str | None = None,
        target_name: str | None = None,
        label: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Create the plot from predictions at values of one feature.

        Parameters
        ----------
        x : array-like of shape (n_samples,)
            Values of the feature, in any order; the name labels the axis.
        predictions : array-like of shape (n_samples,) or (n_samples, n_levels)
            Predictions at these values.
        y : array-like of shape (n_samples,), optional
            Targets to scatter.
        levels : sequence of float, optional
            Level of each column. Without levels there must be a single column.
        feature_name, target_name, label : str, optional
            Names of the axes and the curves.
        ax : matplotlib axes, optional
            Axes to draw on; a new pyplot figure by default.

        Raises
        ------
        ValueError
            If lengths differ, or a level is not in (0, 1).
        """
        curves = matrix(predictions, "predictions")
        values = vector(x, "x", len(curves))
        if levels is not None:
            levels = check_levels(levels, number=curves.shape[1])
        elif curves.shape[1] > 1:
            raise ValueError(
                f"levels must name the {curves.shape[1]} columns of predictions, got None"
            )
        order = np.argsort(values, kind="stable")
        name = getattr(x, "name", None)
        return cls(
            values[order],
            curves[order],
            levels=levels,
            data=None if y is None else (values, vector(y, "y", len(values))),
            feature_name=feature_name or ("x" if name is None else str(name)),
            target_name=target_name or target_name_of(y),
            label=label or ("prediction" if levels is None else "levels"),
        ).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        self.bands_: list[Any] = []
        self.lines_: list[Any] = []
        self.ends_: list[Any] = []
        self.points_: Any = None
        if self.data is not None:
            self.points_ = _style.scatter(ax, *self.data, label="data")
        if self.levels is None:
            self.lines_ = ax.plot(self.grid, self.curves[:, 0], color=_style.BLUE, lw=2, zorder=3)
            self.lines_[0].set_label(self.label)
            self._intervals()
        else:
            self._fan(self.levels)
        self._label()

    def _intervals(self) -> None:
        """The band of the intervals, or their one end that is finite."""
        if self.interval is None:
            return
        name = "interval" if self.coverage is None else f"{percent(self.coverage)} interval"
        low, high = self.interval.T
        finite = np.isfinite(self.interval).any(axis=0)
        if finite.all():
            self.bands_.append(self._band(low, high, label=name))
        for end, which in ((low, "lower"), (high, "upper")):
            if np.isfinite(end).any() and not finite.all():
                style = {"color": _style.BLUE, "linestyle": _style.DASHES[1], "linewidth": 1.5}
                label = f"{which} end of the {name}"
                self.ends_ += self.ax_.plot(self.grid, end, zorder=3, label=label, **style)

    def _band(self, low: FloatArray, high: FloatArray, **options: Any) -> Any:
        return self.ax_.fill_between(
            self.grid, low, high, color=_style.SKY, alpha=0.22, linewidth=0, zorder=1, **options
        )

    def _fan(self, levels: FloatArray) -> None:
        order = np.argsort(levels)
        pairs = _pairs(levels)
        for low, high in pairs:
            self.bands_.append(self._band(self.curves[:, low], self.curves[:, high]))
        distances = sorted({round(abs(float(level) - 0.5), 9) for level in levels} - {0.0})
        lines: dict[int, Any] = {}
        dashes = _style.DASHES
        for j in order:
            level = float(levels[j])
            distance = round(abs(level - 0.5), 9)
            middle = distance == 0.0
            rank = 0 if middle else distances.index(distance)
            (lines[int(j)],) = self.ax_.plot(
                self.grid,
                self.curves[:, j],
                color=_style.BLACK if middle else _style.BLUE if level < 0.5 else _style.VERMILION,
                linestyle=dashes[0] if middle else dashes[1 + rank % (len(dashes) - 1)],
                linewidth=2.0 if middle else 1.5,
                zorder=4 if middle else 3,
                label=percent(level),
            )
        self.lines_ = [lines[j] for j in range(len(levels))]

    def _label(self) -> None:
        ax = self.ax_
        ax.margins(x=0.02)
        notes = [self.note, self._open(), self._look()]
        _style.label_axes(ax, self.feature_name, self.target_name, "; ".join(filter(None, notes)))
        handles = [*self.lines_, *self.ends_]
        if self.levels is not None:  # the highest curve first, as they lie in the picture
            handles = [self.lines_[j] for j in np.argsort(self.levels)[::-1]]
        else:
            handles += self.bands_
        if self.points_ is not None:
            handles.append(self.points_)
        shown = [(handle, handle.get_label()) for handle in handles]
        drawn = [np.column_stack([self.grid, curve]) for curve in self._heights().T]
        if self.data is not None:
            drawn.append(np.column_stack(self.data))
        title = "" if self.levels is None else self.label
        _style.free_legend(ax, shown, title, np.concatenate(drawn))

    def _heights(self) -> FloatArray:
        """All that is drawn as lines, and the ends of bands."""
        if self.interval is None:
            return self.curves
        finite = np.isfinite(self.interval).all(axis=0)
        return np.column_stack([self.curves, self.interval[:, finite]])

    def _open(self) -> str:
        """That there is nothing to draw of intervals."""
        if self.interval is None or np.isfinite(self.interval).any():
            return ""
        return "the intervals are infinitely wide"

    def _look(self) -> str:
        """Choose the axes so that a few values do not squeeze all others; what is not shown."""
        ax = self.ax_
        heights = self._heights()
        x, y = (self.grid, heights.ravel()) if self.data is None else self.data
        along, up = robust_range(x), robust_range(y)
        inside = np.isfinite(x) & np.isfinite(y) if self.data is not None else np.zeros(0, bool)
        shown = inside.copy()
        if along is not None:
            _style.limit(ax.set_xlim, *along)
            if len(inside):
                shown &= (x >= along[0]) & (x <= along[1])
        if up is not None and min(np.nanmin(y), heights.min()) > 0.0 and _is_long(y):
            ax.set_yscale("log")
        elif up is not None:
            within = heights
            if along is not None:
                within = within[(self.grid >= along[0]) & (self.grid <= along[1])]
            ends = min(up[0], float(within.min())), max(up[1], float(within.max()))
            _style.limit(ax.set_ylim, *ends)
            if len(inside):
                shown &= (y >= ends[0]) & (y <= ends[1])
        left_out = int(inside.sum() - shown.sum())
        return f"{left_out} of {int(inside.sum())} points not shown" if left_out else ""


def _is_long(values: FloatArray) -> bool:
    """Whether positive values have a long tail that a logarithm brings near, and no lone ones."""
    ratios = np.log(np.quantile(values[np.isfinite(values)], (0.0, 0.02, 0.98, 1.0)))
    return bool(ratios[3] - ratios[0] <= 2.5 * (ratios[2] - ratios[1]))


def _of_output(predictions: Any, levels: FloatArray | None, output: int) -> FloatArray:
    """Curves of one target, (n, n_curves), of predictions that have one axis for all or two."""
    values = np.asarray(predictions, dtype=np.float64)
    each = values.reshape(len(values), 1 if levels is None else len(levels), -1)
    return np.asarray(each[:, :, check_output(output, each.shape[2])])


def _middle(curves: FloatArray, levels: FloatArray | None) -> FloatArray:
    """The curve in the middle, or the mean of two that are as near to it, (n,)."""
    if levels is None:
        return curves[:, 0]
    away = np.abs(np.asarray(levels) - 0.5).round(9)
    return np.asarray(curves[:, away == away.min()].mean(axis=1))


def _pairs(levels: FloatArray) -> list[tuple[int, int]]:
    """Positions of symmetric levels, outermost first."""
    pairs = []
    for low in np.argsort(levels):
        if levels[low] < 0.5:
            match = np.flatnonzero(np.isclose(levels, 1.0 - levels[low], rtol=0.0, atol=1e-9))
            pairs += [(int(low), int(high)) for high in match]
    return pairs
