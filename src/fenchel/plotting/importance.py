"""Bar plot of feature importances."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.inspection import Importances, importances_of, short_name
from fenchel.inspection.models import final_estimator
from fenchel.plotting import _style
from fenchel.plotting._checks import vector
from fenchel.plotting._display import Display

_NAME = 28  # letters of a name beside its bar
_MOST = 15  # features with a bar of their own
_ROWS = 4  # places for bars at least: few are not thicker


@dataclass(eq=False, repr=False)
class ImportanceDisplay(Display):
    r"""Feature importances: shares of the variance of predictions, in decreasing order.

    .. math:: I_j = \frac{T_j}{\sum_k T_k}, \qquad
              T_j = \frac{\mathrm{E}\, (f(x) - f(x_{-j}, x'_j))^2}{2 \operatorname{Var} f(x)}

    where the value of feature j is taken from another row x'. Features beyond ``max_features``
    share one pale bar. Features with an importance below a thousandth count as unused; they have
    no bar, and their number is noted above the plot.

    Parameters
    ----------
    names : list of str
        Names of the features.
    shares : ndarray of shape (n_features,)
        Importances, which sum to 1, or are all 0 if predictions are constant.
    max_features : int, default=15
        Maximum number of features with their own bar.

    Attributes
    ----------
    bars_ : container
        The bars from top to bottom; the bar of the remaining features, if any, is the last.
    idle : list of str
        Names of the unused features.

    See Also
    --------
    fenchel.metrics.total_effects : Total effects of any function.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from fenchel import SVR
    >>> from fenchel.plotting import ImportanceDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> model = SVR().fit(X, X[:, 0] + 2.0 * X[:, 2])
    >>> display = ImportanceDisplay.from_estimator(model, ax=Figure().add_subplot())
    >>> [text.get_text() for text in display.ax_.get_yticklabels()], display.idle
    (['x2', 'x0'], ['x1'])
    """

    names: list[str]
    shares: FloatArray
    _: KW_ONLY
    max_features: int = _MOST

    def __post_init__(self) -> None:
        if self.max_features < 1:
            raise ValueError(f"max_features must be at least 1, got {shown(self.max_features)}")

    @classmethod
    def from_estimator(cls, estimator: Any, *, max_features: int = _MOST, ax: Any = None) -> Self:
        """Create the plot of a fitted model.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with ``feature_importances_``, or a pipeline or search with one as
            last step. Columns that :class:`fenchel.tables.TableEncoder` created from one table
            column are drawn as one feature.
        max_features : int, default=15
            Maximum number of features with their own bar.
        ax : matplotlib axes, optional
            Axes to draw on; a new pyplot figure by default.

        Raises
        ------
        ValueError
            If the model has no importances.
        """
        found = importances_of(estimator)
        if found is None:
            raise ValueError(
                "estimator must be fitted and have feature_importances_, got "
                f"{type(final_estimator(estimator)).__name__} without"
            )
        return cls.from_importances(found.names, found.shares, max_features=max_features, ax=ax)

    @classmethod
    def from_importances(
        cls, names: Any, shares: Any, *, max_features: int = _MOST, ax: Any = None
    ) -> Self:
        """Create the plot from importances.

        Parameters
        ----------
        names : sequence of str of length n_features
            Names of the features.
        shares : array-like of shape (n_features,)
            Importances, >= 0.
        max_features, ax
            As in :meth:`from_estimator`.

        Raises
        ------
        ValueError
            If lengths differ, an importance is negative, or ``max_features`` is below 1.
        """
        names = [str(name) for name in names]
        values = vector(shares, "shares", len(names))
        if not np.all(values >= 0.0):
            raise ValueError(f"shares must be >= 0, got {values.min():g}")
        return cls(names, values, max_features=max_features).plot(ax=ax)

    @property
    def idle(self) -> list[str]:
        """Names of features with an importance below a thousandth."""
        return Importances(self.names, self.shares).idle

    def _draw(self, ax: Any) -> None:
        read = Importances(self.names, self.shares).largest()
        shown, others = read[: self.max_features], read[self.max_features :]
        colors = [_style.BLUE] * len(shown)
        if others:
            shown = [*shown, (f"{len(others)} others", sum(share for _, share in others))]
            colors.append(_style.PALE)
        heights, widths = np.arange(len(shown)), [share for _, share in shown]
        self.bars_ = ax.barh(heights, widths, height=0.7, color=colors)
        for height, width in zip(heights, widths, strict=True):
            settings = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
            ax.annotate(f"{100.0 * width:.1f} %", (width, height), fontsize="small", **settings)
        labels = [short_name(name, _NAME) for name, _ in shown]
        ax.set_yticks(heights, labels)
        for tick, label in zip(ax.yaxis.get_major_ticks(), labels, strict=True):
            for text in (tick.label1, tick.label2):
                _style.set_text(text, label)
        ax.set(ylim=(max(len(shown), _ROWS) - 0.4, -0.6))
        ax.set(xlim=(0.0, 1.15 * max(widths, default=1.0)))
        ax.tick_params(axis="y", length=0)
        _style.label_axes(ax, "share of the variance of predictions", "feature", self._note())

    def _note(self) -> str:
        number = len(self.idle)
        if not number:
            return ""
        if number == len(self.names):
            return "predictions are constant: no feature is used"
        named = ", ".join(short_name(name, _NAME) for name in self.idle)
        return f"{number} of {len(self.names)} features not used: {named}"
