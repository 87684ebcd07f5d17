"""Predicted and observed curves, with the norms of residuals."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel._validation import shown
from fenchel.functional import Curves, as_curves, is_array
from fenchel.inspection import final_estimator
from fenchel.plotting import _style
from fenchel.plotting._display import Display

_BACKGROUND = 200  # curves drawn behind the chosen ones


@dataclass(eq=False, repr=False)
class CurvesDisplay(Display):
    r"""Observed and predicted curves of some rows, and the residual norms of all rows.

    .. math:: \|y_i - h(x_i)\| = \Bigl(\sum_{j\ \mathrm{observed}}
              \mu_j\, (y_{ij} - h(x_i)(\theta_j))^2\Bigr)^{1/2}

    in the units of the curves, as the weights μ sum to one. Observations are drawn as points and
    predictions as lines, with all observed curves in pale in the background. A second plot shows
    the norms of all rows in increasing order. Outliers appear as a sharp rise at its end.

    Parameters
    ----------
    theta : ndarray of shape (n_points,)
        The grid points.
    observed, predicted : ndarray of shape (n_samples, n_points)
        Curves; NaN at unobserved points.
    norms : ndarray of shape (n_samples,)
        Norms of the residuals.
    rows : ndarray of int
        Indices of the curves to draw.
    theta_name, curve_name : str
        Labels of the axes.

    Attributes
    ----------
    ax_, figure_
        Matplotlib axes of the curves, and their figure.
    norms_ax_
        Axes of the norms; None if a single axes object was given.
    background_ : collection
        All observed curves, or an even selection of 200 rows if there are more.
    observed_, predicted_ : list of line
        Observations and predictions of ``rows``, in the same order.
    norms_ : line or None
        Norms of all rows.
    marks_ : list of line
        Marks of the norms of ``rows``.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from fenchel.plotting import CurvesDisplay
    >>> theta = np.linspace(0.0, 1.0, 20)
    >>> Y = np.sin(6.0 * theta) + np.array([[0.0], [0.1], [0.5]])
    >>> predicted = np.tile(np.sin(6.0 * theta), (3, 1))
    >>> ax = Figure().add_subplot()
    >>> CurvesDisplay.from_predictions(theta, Y, predicted, ax=ax).norms.round(6)
    array([0. , 0.1, 0.5])
    """

    theta: FloatArray
    observed: FloatArray
    predicted: FloatArray
    norms: FloatArray
    rows: IntArray
    _: KW_ONLY
    theta_name: str = "θ"
    curve_name: str = "y(θ)"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        Y: Any,
        theta: Any = None,
        *,
        rows: Any = None,
        quadrature: Any = "trapezoid",
        theta_name: str = "θ",
        curve_name: str = "y(θ)",
        ax: Any = None,
    ) -> Self:
        """Create the plot from the predictions of a fitted model.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with ``predict(X, theta=...)``, or a pipeline with one as last step.
        X : array-like
            Inputs of ``predict``.
        Y, theta
            Observed curves and their grid, in any format of :func:`fenchel.functional.as_curves`.
            Without ``theta``, an array is on the ``grid_`` of the model.
        rows, quadrature, theta_name, curve_name, ax
            As in :meth:`from_predictions`.

        Raises
        ------
        ValueError
            If grids or numbers of rows do not match.
        """
        grid = getattr(final_estimator(estimator), "grid_", None)
        if theta is None and grid is not None and is_array(Y):
            theta = grid
        curves = as_curves(Y, theta, quadrature)
        predicted = estimator.predict(X, theta=curves.grid)
        if hasattr(predicted, "data_matrix"):  # given back in the kind of Y
            predicted = as_curves(predicted).values
        names = {"theta_name": theta_name, "curve_name": curve_name}
        return cls._of(curves, predicted, rows, names, ax)

    @classmethod
    def from_predictions(
        cls,
        theta: Any,
        Y: Any,
        predicted: Any,
        *,
        rows: Any = None,
        quadrature: Any = "trapezoid",
        theta_name: str = "θ",
        curve_name: str = "y(θ)",
        ax: Any = None,
    ) -> Self:
        """Create the plot from observed and predicted curves.

        Parameters
        ----------
        theta : array-like of shape (n_points,) or None
            Grid points, strictly increasing; None as in :func:`fenchel.functional.as_curves`.
        Y : array-like of shape (n_samples, n_points), or what else ``as_curves`` takes
            Observed curves, NaN at unobserved points.
        predicted : array-like of shape (n_samples, n_points)
            Predicted curves on the same grid.
        rows : sequence of int, optional
            Indices of the curves to draw; by default those with the smallest, the median and the
            largest residual.
        quadrature : str or array-like, default="trapezoid"
            Quadrature weights μ, as in ``as_curves``.
        theta_name, curve_name : str
            Labels of the axes, with units.
        ax : matplotlib axes or pair of them, optional
            Axes for the curves and for the norms. A single one is used for the curves only. None
            creates a new pyplot figure with both.

        Raises
        ------
        ValueError
            If shapes do not match, or a row does not exist.
        """
        names = {"theta_name": theta_name, "curve_name": curve_name}
        return cls._of(as_curves(Y, theta, quadrature), predicted, rows, names, ax)

    @classmethod
    def _of(
        cls, curves: Curves, predicted: Any, rows: Any, names: dict[str, str], ax: Any
    ) -> Self:
        values = np.asarray(predicted, dtype=np.float64)
        if values.shape != curves.values.shape:
            raise ValueError(
                f"predicted must have the shape of the observed curves, {curves.values.shape}, "
                f"got {values.shape}"
            )
        residuals = np.where(np.isnan(curves.values), 0.0, curves.values - values)
        norms = np.sqrt(np.sum(curves.measure * residuals**2, axis=1))
        chosen = _chosen(norms, rows)
        return cls(curves.grid, curves.values, values, norms, chosen, **names).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or on a new pyplot figure.

        Parameters
        ----------
        ax : matplotlib axes or pair of them, optional
            Axes to draw on.

        Returns
        -------
        CurvesDisplay
            The display itself.
        """
        _style.require_matplotlib()
        if ax is None:
            ax = _style.figure_axes(2, (9.6, 4.0))
        pair = np.atleast_1d(np.asarray(ax, dtype=object))
        if len(pair) > 2:
            raise ValueError(f"ax must be one or two axes, got {len(pair)}")
        self.ax_, self.norms_ax_ = pair[0], pair[1] if len(pair) > 1 else None
        self.figure_ = self.ax_.figure
        self.norms_: Any = None
        self.marks_: list[Any] = []
        self._curves()
        if self.norms_ax_ is not None:
            self._norms(self.norms_ax_)
        return self

    def _curves(self) -> None:
        from matplotlib.collections import LineCollection  # noqa: PLC0415  (an optional dependency)

        ax, theta = self.ax_, self.theta
        step = -(-len(self.observed) // _BACKGROUND)
        behind = [np.column_stack([theta, curve]) for curve in self.observed[::step]]
        self.background_ = ax.add_collection(
            LineCollection(behind, colors="#D0D0D0", linewidths=0.6, zorder=1)
        )
        self.observed_: list[Any] = []
        self.predicted_: list[Any] = []
        for k, row in enumerate(self.rows):
            style = _style.line_style(k)
            (points,) = ax.plot(
                theta,
                self.observed[row],
                _style.marker(k),
                ms=3,
                color=style["color"],
                alpha=0.7,
                zorder=3,
            )
            (line,) = ax.plot(theta, self.predicted[row], lw=1.8, zorder=4, **style)
            self.observed_.append(points)
            self.predicted_.append(line)
        ax.autoscale_view()
        _style.label_axes(ax, self.theta_name, self.curve_name, "points observed, lines predicted")
        handles = list(zip(self.observed_, self.predicted_, strict=True))
        names = [f"row {row}: residual {self.norms[row]:.3g}" for row in self.rows]
        points = [
            np.column_stack([np.tile(theta, len(self.rows)), values[self.rows].ravel()])
            for values in (self.observed, self.predicted)
        ]
        _style.free_legend(ax, list(zip(handles, names, strict=True)), "", np.concatenate(points))

    def _norms(self, ax: Any) -> None:
        order = np.argsort(self.norms, kind="stable")
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(1, len(order) + 1)
        (self.norms_,) = ax.plot(
            np.arange(1, len(order) + 1), self.norms[order], ".", ms=4, color=_style.GREY, zorder=2
        )
        for k, row in enumerate(self.rows):
            color = _style.line_style(k)["color"]
            self.marks_ += ax.plot(
                rank[row], self.norms[row], _style.marker(k), ms=8, color=color, zorder=3
            )
        ax.set_ylim(bottom=0.0)
        median = float(np.median(self.norms))
        note = f"median {median:.3g}, largest {self.norms.max():.3g}"
        _style.label_axes(ax, "rows, by their residual", "norm of the residual", note)


def _chosen(norms: FloatArray, rows: Any) -> IntArray:
    """Rows to draw, as they were named; or the best, the middle and the worst."""
    n = len(norms)
    if rows is None:
        order = np.argsort(norms, kind="stable")
        return np.array(list(dict.fromkeys(order[[0, (n - 1) // 2, n - 1]].tolist())))
    given = np.atleast_1d(np.asarray(rows))
    integers = given.ndim == 1 and given.size > 0 and np.issubdtype(given.dtype, np.integer)
    if not integers or given.min() < 0 or given.max() >= n:
        raise ValueError(f"rows must be integers in 0..{n - 1}, got {shown(rows)}")
    return given.astype(np.intp)
