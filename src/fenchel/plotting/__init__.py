"""Plots of fitted models, in the style of scikit-learn's displays.

They need matplotlib; without it each raises an ImportError with instructions. All displays store
the matplotlib axes as ``ax_`` and the figure as ``figure_``.
"""

from fenchel.plotting.calibration import QuantileCalibrationDisplay
from fenchel.plotting.coefficient_path import CoefficientPathDisplay
from fenchel.plotting.coefficients import CoefficientMatrixDisplay
from fenchel.plotting.convergence import ConvergenceDisplay
from fenchel.plotting.curves import CurvesDisplay
from fenchel.plotting.density import DensityDisplay
from fenchel.plotting.fan import FanDisplay
from fenchel.plotting.importance import ImportanceDisplay
from fenchel.plotting.paths import PathDisplay
from fenchel.plotting.support import SupportDisplay

__all__ = [
    "CoefficientMatrixDisplay",
    "CoefficientPathDisplay",
    "ConvergenceDisplay",
    "CurvesDisplay",
    "DensityDisplay",
    "FanDisplay",
    "ImportanceDisplay",
    "PathDisplay",
    "QuantileCalibrationDisplay",
    "SupportDisplay",
]

__dir__ = __all__.copy
