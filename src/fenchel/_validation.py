"""Checks of parameters: one sentence for what is not allowed."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from fenchel._typing import ArrayLike, FloatArray

_LARGEST = 1e150
_LEAST_SPREAD = 1e-100  # the cube is a number yet: squares, in units of y, over alpha in them
_WEIGHTS = 2.0**64  # between one over this and this, the largest weight is left as it is


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
    check_value(
        getattr(estimator, name),
        name,
        low=low,
        open_low=open_low,
        integer=integer,
        infinite=infinite,
    )


def check_value(
    value: object,
    name: str,
    *,
    low: float,
    open_low: bool = False,
    integer: bool = False,
    infinite: bool = False,
) -> float:
    """Return a number as a float, or raise the same sentence."""
    kind = "an integer" if integer else "a number" if infinite else "a finite number"
    allowed = f"{kind} {'>' if open_low else '>='} {low:g}"
    expected = Integral if integer else Real
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, expected):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    number = float(value)
    above = number > low if open_low else number >= low
    if not (above and (infinite or np.isfinite(number))):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return number


def check_coverage(coverage: object) -> float:
    """Return a share in (0, 1) as a float, or say what is allowed."""
    if not isinstance(coverage, Real) or not 0.0 < float(coverage) < 1.0:
        raise ValueError(f"coverage must be in (0, 1), got {coverage!r}")
    return float(coverage)


def check_weights(
    X: FloatArray, sample_weight: ArrayLike | None, *, all_zero: bool = False
) -> FloatArray:
    """Weights of the rows of X, (n,), ones for None: >= 0, and not all zero unless allowed.

    Only their ratios count: very large or small ones are taken times a power of two, so that
    neither their sums nor their products overflow or vanish. Where they may be all zero, they are
    returned as given.
    """
    weight = _check_sample_weight(
        sample_weight,
        X,
        dtype=np.float64,
        ensure_non_negative=True,
        allow_all_zero_weights=True,
    )
    if all_zero:
        return np.asarray(weight)
    largest = float(weight.max())
    if not largest > 0.0:
        raise ValueError("sample_weight must have a positive entry, got zeros only")
    if not 1.0 / _WEIGHTS <= largest <= _WEIGHTS:
        weight = np.ldexp(weight, -np.frexp(largest)[1])
    return np.asarray(weight)


def check_magnitude(values: FloatArray, name: str, largest: float = _LARGEST) -> None:
    """Raise a sentence where squares of the values would overflow."""
    found = float(np.abs(values).max())
    if found > largest:
        raise ValueError(
            f"{name} must be at most {largest:g} in absolute value, got {found:g}: its square "
            "would overflow"
        )


def check_targets(values: FloatArray) -> None:
    """Raise a sentence for targets whose losses, in the units of problems, leave the floats."""
    check_magnitude(values, "y", 1.0 / _LEAST_SPREAD)
    check_spread(values, "y")


def check_spread(values: FloatArray, name: str) -> None:
    """Raise a sentence where values differ by so little that their products vanish."""
    spread = float(values.max()) - float(values.min())
    if 0.0 < spread < _LEAST_SPREAD:
        raise ValueError(
            f"{name} must be constant or have a range of {_LEAST_SPREAD:g} or more, got "
            f"{spread:g}: its square would vanish"
        )


def random_of(random_state: Any) -> Any:
    """Return scikit-learn's generator for a seed, a RandomState, or None.

    Fits are deterministic: here None is the seed 0, and not the global generator.
    """
    return check_random_state(0 if random_state is None else random_state)


__all__ = [
    "check_coverage",
    "check_magnitude",
    "check_number",
    "check_spread",
    "check_targets",
    "check_value",
    "check_weights",
    "random_of",
]
