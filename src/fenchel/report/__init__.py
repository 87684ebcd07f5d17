"""Reports on a fitted model and some rows, as a self-contained HTML page."""

from fenchel.report._report import Report, make_report
from fenchel.report._training import Training

__all__ = ["Report", "Training", "make_report"]

__dir__ = __all__.copy
