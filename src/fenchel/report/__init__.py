"""Reports: what a fitted model does on some rows, as one page that stands by itself."""

from fenchel.report._report import Report, make_report
from fenchel.report._training import Training

__all__ = ["Report", "Training", "make_report"]


def __dir__() -> list[str]:
    return sorted(__all__)
