"""Coefficients of the Lasso along the regularization path."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.plotting import _style
from fenchel.plotting._display import Display

AGAINST = ("radius", "alpha")
_BETWEEN = 16  # points between two knots where segments are not straight


@dataclass(eq=False, repr=False)
class CoefficientPathDisplay(Display):
    """Lasso coefficients along the regularization path, from the zero model to least squares.

    Against ‖w‖₁ the curves are piecewise linear and drawn exactly. Against alpha, on a logarithmic
    axis, they are evaluated between knots.

    Parameters
    ----------
    path : LassoPath
        Result of :func:`fenchel.lasso_path`.
    feature_names : sequence of str, optional
        Names of the coefficients; x0, x1, … by default.
    against : {"radius", "alpha"}, default="radius"
        Quantity on the horizontal axis.
    n_named : int, default=8
        Number of coefficients with a name and a colour, the largest at the end of the path.

    Attributes
    ----------
    lines_ : list of line
        One line for each coefficient.
    named_ : ndarray of int
        Indices of the coefficients in the legend, by decreasing value at the end of the path.

    References
    ----------
    Efron, Hastie, Johnstone, Tibshirani (2004), Least angle regression, section 3.1.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from fenchel import lasso_path
    >>> from fenchel.plotting import CoefficientPathDisplay
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [4.0, 3.0]], [0.0, 1.0, 2.5, 4.0]
    >>> display = CoefficientPathDisplay.from_path(lasso_path(X, y), ax=Figure().add_subplot())
    >>> len(display.lines_)
    2
    """

    path: Any
    feature_names: Any = None
    _: KW_ONLY
    against: str = "radius"
    n_named: int = 8

    @classmethod
    def from_path(
        cls,
        path: Any,
        feature_names: Any = None,
        *,
        against: str = "radius",
        n_named: int = 8,
        ax: Any = None,
    ) -> Self:
        """Create the plot of a path.

        Parameters
        ----------
        path, feature_names, against, n_named
            As in the class.
        ax : matplotlib axes, optional
            Axes to draw on; a new pyplot figure by default.

        Raises
        ------
        ValueError
            If ``against`` is unknown, or the number of names is not the number of coefficients.
        """
        if against not in AGAINST:
            raise ValueError(f"against must be one of {AGAINST}, got {shown(against)}")
        n_features = path.coefs.shape[1]
        if feature_names is not None and len(feature_names) != n_features:
            raise ValueError(
                f"feature_names must have {n_features} names, got {len(feature_names)}"
            )
        made = cls(path, feature_names, against=against, n_named=n_named)
        return made.plot(ax=ax)

    def curves(self) -> tuple[FloatArray, FloatArray]:
        """Return positions on the axis (k,) and coefficients (k, n_features) as drawn."""
        alphas, coefs, path = self.path.alphas, self.path.coefs, self.path
        if self.against == "radius":
            return path.radii, coefs
        positive = alphas > 0.0
        if np.count_nonzero(positive) < 2:
            return alphas[positive], coefs[positive]
        knots = np.log(alphas[positive])
        parts = [np.linspace(a, b, _BETWEEN, endpoint=False) for a, b in pairwise(knots)]
        strengths = np.exp(np.concatenate([*parts, knots[-1:]]))
        return strengths, np.array([path.at(alpha=float(alpha))[0] for alpha in strengths])

    def _draw(self, ax: Any) -> None:
        x, coefs = self.curves()
        n_features = coefs.shape[1]
        names = self.feature_names
        names = [f"x{j}" for j in range(n_features)] if names is None else list(names)
        last = self.path.coefs[-1]
        named = np.argsort(-np.abs(last), kind="stable")[: self.n_named]
        self.named_ = named[np.argsort(-last[named], kind="stable")]
        self.lines_ = [
            ax.plot(x, coefs[:, j], color=_style.PALE, lw=1, zorder=2)[0]
            for j in range(n_features)
        ]
        for k, j in enumerate(self.named_):
            self.lines_[j].set(**_style.line_style(k), lw=1.6, zorder=3)
        ax.axhline(0.0, color=_style.GREY, lw=0.8, zorder=1)
        label = "‖w‖₁, sum of absolute coefficients"
        if self.against == "alpha":
            ax.set_xscale("log")
            ax.xaxis.set_inverted(True)
            label = "alpha"
        _style.label_axes(ax, label, "coefficient")
        shown = [(self.lines_[j], names[j]) for j in self.named_]
        if len(self.named_) < n_features:
            rest = int(np.argmin(np.isin(np.arange(n_features), self.named_)))
            shown.append((self.lines_[rest], f"{n_features - len(self.named_)} others"))
        # beside the curves, which leave no corner free
        _style.legend(ax, shown, loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)
