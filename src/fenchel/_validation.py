"""Checks of parameters: one sentence for what is not allowed."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator


def check_number(
    estimator: BaseEstimator,
    name: str,
    *,
    low: float,
    open_low: bool = False,
    integer: bool = False,
    infinite: bool = False,
) -> None:
    """Raise a sentence that names the parameter, what was given, and what is allowed."""
    value = getattr(estimator, name)
    kind = "an integer" if integer else "a number" if infinite else "a finite number"
    allowed = f"{kind} {'>' if open_low else '>='} {low:g}"
    expected = Integral if integer else Real
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, expected):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    number = float(value)
    above = number > low if open_low else number >= low
    if not (above and (infinite or np.isfinite(number))):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")


__all__ = ["check_number"]
