"""Matrix of dual coefficients of curves, with its zeros."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from fenchel._typing import FloatArray
from fenchel.functional import as_curves, as_grid, is_array
from fenchel.inspection import fitted_model, percent
from fenchel.plotting import _style
from fenchel.plotting._display import Display

_ZERO = "#FFFFFF"
_BEYOND = 0.02  # share of the coefficients whose size is past the shades
_LIGHTEST = 0.88  # of the scale of shades: what is lighter is hard to tell from zero


@dataclass(eq=False, repr=False)
class CoefficientMatrixDisplay(Display):
    """Heat map of the dual coefficients of curves, one row for each, with exact zeros in white.

    Lightness represents the signed value, from negative (dark) to positive (light). The scale ends
    where 2 % of the nonzero coefficients are larger. The title gives the share of zeros. A curve
    whose row is zero is not needed by the model.

    Parameters
    ----------
    matrix : ndarray of shape (n_samples, n_points)
        Dual coefficients; NaN at unobserved points, which are not counted in the shares.
    theta : ndarray of shape (n_points,), optional
        Grid points; by default columns are numbered.
    theta_name : str
        Label of the horizontal axis.

    Attributes
    ----------
    image_ : mesh
        The matrix with zeros masked.
    missing_ : mesh or None
        Unobserved points.
    colorbar_ : colorbar
        Colour scale.
    zero_share_, zero_row_share_ : float
        Shares of exactly zero coefficients and of exactly zero rows.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from fenchel.plotting import CoefficientMatrixDisplay
    >>> matrix = np.array([[0.0, 0.0], [0.0, 2.0], [-1.0, 1.0]])
    >>> display = CoefficientMatrixDisplay.from_matrix(matrix, ax=Figure().add_subplot())
    >>> display.zero_share_, display.zero_row_share_
    (0.5, 0.3333333333333333)
    """

    matrix: FloatArray
    theta: FloatArray | None = None
    _: KW_ONLY
    theta_name: str = "θ"

    def __post_init__(self) -> None:
        matrix, observed = self.matrix, ~np.isnan(self.matrix)
        self.zero_share_ = float(np.mean(matrix[observed] == 0.0)) if observed.any() else 0.0
        self.zero_row_share_ = float(np.mean(~np.any(observed & (matrix != 0.0), axis=1)))

    @classmethod
    def from_estimator(
        cls, estimator: Any, Y: Any = None, *, theta_name: str = "θ", ax: Any = None
    ) -> Self:
        """Create the plot of a fitted model.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with ``dual_coef_`` of shape (n_samples, n_points) and ``grid_``, or a
            pipeline or search with one as last step.
        Y : array-like of shape (n_samples, n_points), or what else ``as_curves`` takes, optional
            Training curves, if some values are unobserved. Zeros there are not counted.
        theta_name : str
            Label of the horizontal axis.
        ax : matplotlib axes, optional
            Axes to draw on; a new pyplot figure by default.

        Raises
        ------
        ValueError
            If the estimator has no such matrix, or Y has a different shape.
        """
        model = fitted_model(
            estimator, "dual_coef_", "grid_", what="its coefficients and their grid"
        )
        given, grid = np.array(model.dual_coef_, dtype=np.float64), model.grid_
        if Y is not None:
            curves = as_curves(Y, grid if is_array(Y) else None)
            if curves.values.shape != given.shape:
                raise ValueError(
                    f"Y must hold the curves of the fit, of shape {given.shape}, got "
                    f"{curves.values.shape}"
                )
            given[np.isnan(curves.values)] = np.nan
        if given.ndim == 2 and len(grid) != given.shape[1]:  # in a basis, not on the grid
            return cls.from_matrix(given, theta_name="component", ax=ax)
        return cls.from_matrix(given, grid, theta_name=theta_name, ax=ax)

    @classmethod
    def from_matrix(
        cls, matrix: Any, theta: Any = None, *, theta_name: str | None = None, ax: Any = None
    ) -> Self:
        """Create the plot of a matrix of coefficients.

        Parameters
        ----------
        matrix : array-like of shape (n_samples, n_points)
            Dual coefficients, NaN at unobserved points.
        theta : array-like of shape (n_points,), optional
            Grid points, strictly increasing; by default columns are numbered.
        theta_name, ax
            As in :meth:`from_estimator`.

        Raises
        ------
        ValueError
            If the matrix is not two-dimensional, or the grid has a different length.
        """
        values = np.asarray(matrix, dtype=np.float64)
        if values.ndim != 2 or values.size == 0:
            raise ValueError(f"matrix must have two dimensions, got shape {values.shape}")
        grid = None if theta is None else as_grid(theta)
        if grid is not None and len(grid) != values.shape[1]:
            raise ValueError(f"theta must have {values.shape[1]} points, got {len(grid)}")
        name = theta_name or ("column" if theta is None else "θ")
        return cls(values, grid, theta_name=name).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        largest, extend = self._scale()
        self.missing_: Any = None
        if np.isnan(self.matrix).any():
            seen = np.where(np.isnan(self.matrix), 1.0, np.nan)
            self.missing_ = self._mesh(seen, "Greys", vmin=0.0, vmax=4.0)
        values = np.where(self.matrix == 0.0, np.nan, self.matrix)
        self.image_ = self._mesh(
            values, _style.shades("cividis", _LIGHTEST), vmin=-largest, vmax=largest
        )
        ax.set_facecolor(_ZERO)
        self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax, pad=0.02, extend=extend)
        self.colorbar_.outline.set_visible(False)
        _style.set_text(self.colorbar_.ax.yaxis.label, "dual coefficient")
        ax.invert_yaxis()  # the first row on top, as in a table
        ax.yaxis.get_major_locator().set_params(integer=True)
        n_rows = len(self.matrix)
        rows = round(self.zero_row_share_ * n_rows)
        note = f"exactly zero: {percent(self.zero_share_, 3)} of the coefficients, "
        note += f"{rows} of {n_rows} rows ({percent(self.zero_row_share_, 3)})"
        _style.label_axes(ax, self.theta_name, "row", note)
        self._legend()

    def _scale(self) -> tuple[float, str]:
        """The largest coefficient with a shade of its own, and whether there are larger ones."""
        sizes = np.abs(self.matrix[np.isfinite(self.matrix) & (self.matrix != 0.0)])
        if not len(sizes):
            return 1.0, "neither"
        largest = float(np.quantile(sizes, 1.0 - _BEYOND))
        return largest, "both" if sizes.max() > largest * (1.0 + 1e-9) else "neither"

    def _mesh(self, values: FloatArray, cmap: Any, **limits: float) -> Any:
        n_rows, n_points = values.shape
        across = np.arange(n_points + 1) - 0.5 if self.theta is None else _edges(self.theta)
        masked = np.ma.masked_invalid(values)
        down = np.arange(n_rows + 1) - 0.5
        return self.ax_.pcolormesh(across, down, masked, cmap=cmap, rasterized=True, **limits)

    def _legend(self) -> None:
        from matplotlib.patches import Patch  # noqa: PLC0415  (an optional dependency)

        shown = [(_ZERO, "exactly zero")]
        if self.missing_ is not None:
            shown.append((self.missing_.cmap(0.25), "not observed"))
        edge: dict[str, Any] = {"edgecolor": _style.GREY, "linewidth": 0.6}
        _style.legend(
            self.ax_,
            [(Patch(facecolor=color, **edge), name) for color, name in shown],
            loc="upper right",
            bbox_to_anchor=(1.0, -0.08),
            handlelength=1.2,
            ncols=2,
        )


def _edges(grid: FloatArray) -> FloatArray:
    """Boundaries of cells around the points of a grid."""
    if len(grid) == 1:
        return grid[0] + np.array([-0.5, 0.5])
    middle = 0.5 * (grid[1:] + grid[:-1])
    first, last = 2.0 * grid[0] - middle[0], 2.0 * grid[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])
