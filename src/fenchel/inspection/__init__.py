"""Inspection of fitted estimators and tables, for pictures, reports and the command line."""

from fenchel.inspection.importances import Importances, importances_of
from fenchel.inspection.intervals import Intervals, has_other_units, intervals_of
from fenchel.inspection.models import (
    calibrated_estimator,
    certified_model,
    final_estimator,
    fitted_model,
    has_moved_offsets,
    learned_of,
    level_losses,
    levels_of,
    model_title,
    prediction_name,
    rows_for_final,
    statistic_of,
)
from fenchel.inspection.tables import (
    FeatureSlice,
    FeatureTable,
    PartialDependence,
    feature_slice,
    partial_dependence,
    robust_range,
)
from fenchel.inspection.text import percent, short_name, target_name_of

__all__ = [
    "FeatureSlice",
    "FeatureTable",
    "Importances",
    "Intervals",
    "PartialDependence",
    "calibrated_estimator",
    "certified_model",
    "feature_slice",
    "final_estimator",
    "fitted_model",
    "has_moved_offsets",
    "has_other_units",
    "importances_of",
    "intervals_of",
    "learned_of",
    "level_losses",
    "levels_of",
    "model_title",
    "partial_dependence",
    "percent",
    "prediction_name",
    "robust_range",
    "rows_for_final",
    "short_name",
    "statistic_of",
    "target_name_of",
]

__dir__ = __all__.copy
