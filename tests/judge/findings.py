"""What the judge says."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

UNIT = float(np.finfo(np.float64).eps)
"""Two units of rounding of the arithmetic that is judged."""

Wide = np.longdouble
"""The arithmetic of the judge: 64 bits of mantissa where the machine has them."""


class Finding(NamedTuple):
    """One thing that is false."""

    kind: str
    """In few words, the same for all findings of the kind."""
    text: str
    """With numbers."""


def wide(values: object) -> np.ndarray:
    """The array in the arithmetic of the judge."""
    return np.asarray(values, dtype=Wide)


def not_finite(**arrays: object) -> list[Finding]:
    """A finding for each array that is not finite."""
    return [
        Finding("not finite", f"{name} is not finite")
        for name, array in arrays.items()
        if not np.all(np.isfinite(np.asarray(array, dtype=np.float64)))
    ]
