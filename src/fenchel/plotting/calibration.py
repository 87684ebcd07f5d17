"""Calibration plot of quantiles: empirical against nominal levels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import check_levels
from fenchel.inspection import fitted_model, percent, statistic_of
from fenchel.metrics import calibration_band, quantile_coverage
from fenchel.plotting import _style
from fenchel.plotting._checks import matrix, vector
from fenchel.plotting._display import Display

_GRID = 1001


@dataclass(eq=False, repr=False)
class QuantileCalibrationDisplay(Display):
    r"""Calibration plot of quantiles: nominal level against the share of rows at or below.

    .. math:: \hat\tau_j = \frac1n \#\{i : y_i \le h_j(x_i)\}, \qquad
              n \hat\tau_j \sim \mathrm{Binomial}(n, \tau_j)

    where the second formula holds for a true quantile of a continuous target, on rows independent
    of the fit. The band is the central interval of that distribution. It holds for each level
    separately, not for all levels simultaneously.

    Parameters
    ----------
    levels : ndarray of shape (n_levels,)
        Nominal levels τ.
    observed : ndarray of shape (n_levels,)
        Shares of rows at or below each quantile.
    below : ndarray of shape (n_levels,)
        Shares of rows strictly below each quantile.
    n_samples : int
        Number of rows.
    confidence : float, default=0.95
        Probability of the band at each level.

    Attributes
    ----------
    points_ : line
        Markers of observed against nominal levels.
    ties_ : collection
        Vertical strokes from ``below`` to ``observed``, visible if targets lie on a quantile.
    diagonal_ : line
        The line where observed and nominal levels agree.
    band_ : collection
        The binomial band.

    References
    ----------
    Sangnier, Fercoq, d'Alché-Buc (2016), Joint quantile regression in vector-valued RKHSs,
    section 5: the quantile loss is the sum of the deviations from the diagonal.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.plotting import QuantileCalibrationDisplay
    >>> X, y = load_engel(return_X_y=True, as_frame=True)
    >>> model = QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-5).fit(X[::2], y[::2])
    >>> display = QuantileCalibrationDisplay.from_estimator(
    ...     model, X[1::2], y[1::2], ax=Figure().add_subplot()
    ... )
    >>> display.n_samples, display.observed.shape
    (117, (3,))
    """

    _figsize = (4.8, 4.6)

    levels: FloatArray
    observed: FloatArray
    below: FloatArray
    _: KW_ONLY
    n_samples: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        self.band(self.levels)  # refuses a confidence before there is a figure

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, confidence: float = 0.95, ax: Any = None
    ) -> Self:
        """Create the calibration plot of a fitted quantile model.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with ``levels_``, or a pipeline or search with one as last step.
        X : array-like of shape (n_samples, n_features)
            Samples, preferably not used in the fit. On its own training rows a fit with an
            intercept and without a tube is calibrated by construction.
        y : array-like of shape (n_samples,)
            Targets.
        confidence : float, default=0.95
            Probability of the band at each level, in (0, 1).
        ax : matplotlib axes, optional
            Axes to draw on; a new pyplot figure by default.

        Raises
        ------
        ValueError
            If the model has no levels, or if these are levels of expectiles.
        """
        model = fitted_model(estimator, "levels_", what="the levels of its quantiles")
        if statistic_of(model) == "expectiles":
            raise ValueError(
                "estimator must be a model of quantiles, got "
                f"{type(model).__name__}: the levels of expectiles are not shares of rows"
            )
        return cls.from_predictions(
            y, estimator.predict(X), levels=model.levels_, confidence=confidence, ax=ax
        )

    @classmethod
    def from_predictions(
        cls, y: Any, predictions: Any, *, levels: Any, confidence: float = 0.95, ax: Any = None
    ) -> Self:
        """Create the calibration plot of predicted quantiles.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Targets.
        predictions : array-like of shape (n_samples,) or (n_samples, n_levels)
            Predicted quantiles.
        levels : float or sequence of float
            Level of each column, in (0, 1).
        confidence, ax
            As in :meth:`from_estimator`.

        Raises
        ------
        ValueError
            If lengths differ, or a level or the confidence is not in (0, 1).
        """
        curves = matrix(predictions, "predictions")
        targets = vector(y, "y", len(curves))
        display = cls(
            check_levels(levels, number=curves.shape[1]),
            quantile_coverage(targets, curves),
            quantile_coverage(targets, curves, strict=True),
            n_samples=len(curves),
            confidence=confidence,
        )
        return display.plot(ax=ax)

    def band(self, levels: Any) -> FloatArray:
        """Return the lower and upper bounds of the band at these levels, (2, n_levels)."""
        return calibration_band(levels, self.n_samples, self.confidence)

    def _draw(self, ax: Any) -> None:
        grid = np.linspace(0.0, 1.0, _GRID)
        self.band_ = ax.fill_between(
            grid, *self.band(grid), step="mid", color=_style.SKY, alpha=0.3, linewidth=0, zorder=1
        )
        (self.diagonal_,) = ax.plot([0, 1], [0, 1], color=_style.GREY, lw=1, ls="--", zorder=2)
        self.ties_ = ax.vlines(self.levels, self.below, self.observed, color=_style.BLUE, lw=2)
        order = np.argsort(self.levels)
        (self.points_,) = ax.plot(
            self.levels[order],
            self.observed[order],
            marker="o",
            ms=6,
            lw=1.2,
            color=_style.BLUE,
            zorder=3,
            clip_on=False,
        )
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        _style.label_axes(ax, "nominal level", "observed level: share of rows at or below")
        shown = [
            (self.points_, f"model, {self.n_samples} rows"),
            (self.diagonal_, "calibrated"),
            (self.band_, f"{percent(self.confidence)} of samples of a calibrated model"),
        ]
        _style.legend(ax, shown, loc="upper left", fontsize=8.5)
