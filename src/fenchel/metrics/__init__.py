"""Metrics for quantiles, expectiles and intervals, with scikit-learn's conventions."""

from fenchel.metrics.effects import total_effects
from fenchel.metrics.explained import (
    d2_pinball_score,
    d2_poisson_score,
    d2_score,
    d2_squared_pinball_score,
    explained_share,
)
from fenchel.metrics.intervals import (
    central_interval,
    interval_coverage,
    mean_interval_score,
    mean_interval_width,
)
from fenchel.metrics.levels import (
    calibration_band,
    crossing_amounts,
    crossing_loss,
    position_of_level,
    quantile_coverage,
)
from fenchel.metrics.mean_losses import (
    mean_loss,
    mean_pinball_loss,
    mean_squared_pinball_loss,
    row_losses,
)

__all__ = [
    "calibration_band",
    "central_interval",
    "crossing_amounts",
    "crossing_loss",
    "d2_pinball_score",
    "d2_poisson_score",
    "d2_score",
    "d2_squared_pinball_score",
    "explained_share",
    "interval_coverage",
    "mean_interval_score",
    "mean_interval_width",
    "mean_loss",
    "mean_pinball_loss",
    "mean_squared_pinball_loss",
    "position_of_level",
    "quantile_coverage",
    "row_losses",
    "total_effects",
]

__dir__ = __all__.copy
