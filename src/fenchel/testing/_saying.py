"""Assertions with messages, and measurements that several checks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.stats import qmc

from fenchel._typing import AnyArray, FloatArray

SAMPLINGS = 8


def require(condition: Any, sentence: str) -> None:
    """Raise an AssertionError with this message unless the condition holds."""
    if not condition:
        raise AssertionError(sentence)


@contextmanager
def about(name: str) -> Iterator[None]:
    """Prefix the messages of a block with a name."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from None


def bad_rows(good: Any) -> list[int]:
    """Return the rows that are not good; the first one is reported."""
    return np.flatnonzero(~np.asarray(good, dtype=bool)).tolist()


def require_shape(array: Any, shape: tuple[int, ...], what: str) -> None:
    """Raise an AssertionError unless this is a float array of that shape."""
    if not (isinstance(array, np.ndarray) and array.dtype.kind == "f"):
        raise AssertionError(f"{what} must be an array of floating-point numbers, got {array!r}")
    require(array.shape == shape, f"{what} must have shape {shape}, got {array.shape}")


def require_near(found: Any, truth: AnyArray, sentence: str, allowed: float) -> None:
    """Raise an AssertionError unless two arrays agree; the message says what they must be."""
    found = np.asarray(found)
    require(found.shape == truth.shape, f"{sentence}: {found.shape} is not {truth.shape}")
    difference = float(np.abs(found - truth).max())
    require(difference <= allowed, f"{sentence}: they differ by {difference:.3g}")


def show(array: Any) -> str:
    """Return a short text for a point."""
    values = ", ".join(f"{float(value):.6g}" for value in np.ravel(array))
    return f"[{values}]"


def sobol_mean(
    function: Callable[[FloatArray], Any], n_features: int, n_points: int
) -> tuple[Any, float]:
    """Mean over the unit cube by scrambled Sobol rules, and its standard error."""
    copies = [
        function(qmc.Sobol(n_features, rng=np.random.default_rng(seed)).random(n_points))
        for seed in range(SAMPLINGS)
    ]
    error = float(np.std(copies, axis=0, ddof=1).max()) / np.sqrt(SAMPLINGS)
    return np.mean(copies, axis=0), error


def central_differences(
    function: Callable[[FloatArray], FloatArray], points: FloatArray, steps: FloatArray
) -> FloatArray:
    """Derivatives of values (n,) along each coordinate of points (n, d), (n, d)."""
    columns = [
        (function(points + move) - function(points - move)) / (2.0 * move.sum())
        for move in np.diag(steps)
    ]
    return np.column_stack(columns)
