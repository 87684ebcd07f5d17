"""Support of a fitted model: training rows with nonzero dual coefficients."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from fenchel._typing import FloatArray
from fenchel.inspection import FeatureTable, fitted_model, percent, target_name_of
from fenchel.plotting import _style
from fenchel.plotting._checks import check_output, column
from fenchel.plotting._display import Display

_LARGEST, _SMALLEST = 90.0, 6.0  # areas of markers, in points²
_ROOM = 5000.0  # what the largest of all rows may take together: more rows have smaller marks


@dataclass(eq=False, repr=False)
class SupportDisplay(Display):
    r"""Training rows along one feature, marked by the size and sign of their dual coefficients.

    The fitted function is the sum h(x) = Σ_i k(x, x_i) c_i over the rows. A row with c_i > 0
    (triangle up) pulls it up towards its target, and one with c_i < 0 (triangle down) pulls it
    down. The area of a mark is proportional to \|c_i\|, with a visible minimum, and marks are
    smaller if there are many rows. Rows with c_i = 0 are hollow circles; without them the model
    would be the same.

    Parameters
    ----------
    values, targets : ndarray of shape (n_samples,)
        Feature and target of the rows.
    coefficients : ndarray of shape (n_samples,)
        Dual coefficients of the rows, possibly zero.
    signed : bool, default=True
        Whether coefficients have a sign. Otherwise rows with coefficients are filled circles.
    feature_name, target_name : str
        Labels of the axes.

    Attributes
    ----------
    idle_ : collection
        Markers of rows with zero coefficients.
    carrying_ : list of collection
        Markers of rows with positive and with negative coefficients; or of all nonzero ones if
        ``signed`` is False.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from fenchel import SVR
    >>> from fenchel.datasets import load_mcycle
    >>> from fenchel.plotting import SupportDisplay
    >>> X, y = load_mcycle(return_X_y=True, as_frame=True)
    >>> model = SVR(epsilon=30.0, alpha=1e-3).fit(X, y)
    >>> display = SupportDisplay.from_estimator(model, X, y, ax=Figure().add_subplot())
    >>> int((display.coefficients != 0.0).sum()) == len(model.support_)
    True
    """

    values: FloatArray
    targets: FloatArray
    coefficients: FloatArray
    _: KW_ONLY
    signed: bool = True
    feature_name: str = "x"
    target_name: str = "y"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        feature: int | str | None = None,
        output: int | None = None,
        target_name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Create the plot of a fitted model.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with ``support_`` and ``dual_coef_``, or a pipeline with one as last
            step.
        X : DataFrame or array-like of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Training targets.
        feature : int or str, optional
            Feature on the horizontal axis; the first numeric feature by default.
        output : int, optional
            Index of the level or target, for a model with several. By default all are combined to
            the Euclidean norm of the coefficients of a row, which has no sign.
        target_name : str, optional
            Label of the vertical axis.
        ax : matplotlib axes, optional
            Axes to draw on; a new pyplot figure by default.

        Raises
        ------
        ValueError
            If the model has no support, X does not have its rows, or a feature or output is
            unknown.
        """
        model = fitted_model(
            estimator, "support_", "dual_coef_", what="coefficients of training rows"
        )
        table = FeatureTable.of(X)
        place = table.position(feature)
        values = table.numbers(place)
        support = np.asarray(model.support_)
        dual = np.asarray(model.dual_coef_, dtype=np.float64)  # of no row for a constant
        dual = dual[:, None] if dual.ndim == 1 else dual
        dual = dual if len(dual) == len(support) else dual[support]  # of all rows, with zeros
        if len(support) and int(support.max()) >= len(values):
            raise ValueError(
                f"X must hold the training rows, of which row {int(support.max())} is a support "
                f"vector, got {len(values)} rows"
            )
        n_outputs = dual.shape[1]
        chosen = check_output(output or 0, n_outputs)
        signed = output is not None or n_outputs == 1
        whole = np.zeros(len(values))
        whole[support] = dual[:, chosen] if signed else np.linalg.norm(dual, axis=1)
        target = chosen if np.ndim(y) == 2 else 0
        return cls(
            values,
            column(y, target),
            whole,
            signed=signed,
            feature_name=table.names[place],
            target_name=target_name or target_name_of(y, target),
        ).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        coefficients = self.coefficients
        idle = coefficients == 0.0
        many = len(coefficients) > _style.MANY
        self.idle_ = ax.scatter(
            self.values[idle],
            self.targets[idle],
            s=5 if many else 13,
            facecolors="none",
            edgecolors=_style.GREY,
            linewidths=0.6,
            zorder=4,  # small, and else under the marks
            rasterized=many,
        )
        up, down = coefficients > 0.0, coefficients < 0.0
        kinds = [(up, "^", _style.VERMILION, "pulls up"), (down, "v", _style.BLUE, "pulls down")]
        if not self.signed:
            kinds = [(~idle, "o", _style.BLUE, "support vector")]
        self.carrying_ = [self._marks(*kind[:3]) for kind in kinds]
        names = [*(kind[3] for kind in kinds), "not needed"]
        carrying = int(np.count_nonzero(~idle))
        share = percent(carrying / len(idle), 3)
        note = f"{carrying} of {len(idle)} rows ({share}) are support vectors"
        _style.label_axes(ax, self.feature_name, self.target_name, note)
        shown = list(zip([*self.carrying_, self.idle_], names, strict=True))
        made = _style.free_legend(ax, shown, "", np.column_stack([self.values, self.targets]))
        for handle in made.legend_handles:
            handle.set_sizes([30.0])

    def _marks(self, rows: Any, marker: str, color: str) -> Any:
        sizes = np.abs(self.coefficients[rows])
        unit = float(np.abs(self.coefficients).max()) or 1.0
        carrying = max(int(np.count_nonzero(self.coefficients)), 1)
        largest = min(max(_ROOM / carrying, 2.0 * _SMALLEST), _LARGEST)
        return self.ax_.scatter(
            self.values[rows],
            self.targets[rows],
            s=np.maximum(largest * sizes / unit, _SMALLEST),
            marker=marker,
            color=color,
            alpha=0.7,
            linewidths=0.3,
            edgecolors="white",
            zorder=3,
        )
