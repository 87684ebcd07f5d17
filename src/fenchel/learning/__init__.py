"""Learning of length scales and alpha: gradient descent on the loss of held-out rows."""

from fenchel.design.content import sample_by_content
from fenchel.learning.early_end import EarlyEnd
from fenchel.learning.learning import DEFAULT_STRENGTH, LEARNING, Data, Learned, Learning
from fenchel.learning.rows import folds_by_content
from fenchel.learning.search import GROWTH, learn
from fenchel.learning.units import unit_of_strength

__all__ = [
    "DEFAULT_STRENGTH",
    "GROWTH",
    "LEARNING",
    "Data",
    "EarlyEnd",
    "Learned",
    "Learning",
    "folds_by_content",
    "learn",
    "sample_by_content",
    "unit_of_strength",
]

__dir__ = __all__.copy
