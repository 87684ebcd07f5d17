"""Parameters that are left open, learned from held-out rows by gradients through fits."""

from fenchel.learning.learning import (
    DEFAULT_STRENGTH,
    LEARNING,
    Data,
    Learned,
    Learning,
    learn,
    unit_of_strength,
)

__all__ = [
    "DEFAULT_STRENGTH",
    "LEARNING",
    "Data",
    "Learned",
    "Learning",
    "learn",
    "unit_of_strength",
]
