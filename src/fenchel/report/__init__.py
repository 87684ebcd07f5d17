"""Reports: what a fitted model does on some rows, as one page that stands by itself."""

from fenchel.report._report import Report, make_report
from fenchel.report._training import Training

__all__ = ["Report", "Training", "make_report"]

__dir__ = __all__.copy
