"""Computations of workers on one part of the rows: functions without side effects."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fenchel._sentences import IN_PARTITIONS, check_no_dates
from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import first_not_finite
from fenchel.design import RowBlocks, Streamed
from fenchel.features import FeatureMap
from fenchel.features.base import moments


class Part(NamedTuple):
    """Rows of positive weight in one part of a collection."""

    rows: FloatArray
    targets: FloatArray
    """(m, t)."""
    weight: FloatArray | None
    kept: IntArray
    """Their indices among all rows of the part."""
    n_rows: int
    """Number of all rows of the part."""


def read(number: int, X: Any, y: Any, sample_weight: Any) -> Part:
    """A part of the collections as arrays of finite numbers."""
    rows = _numbers(X, "X", number)
    targets = _numbers(y, "y", number)
    targets = targets[:, None] if targets.ndim == 1 else targets
    weight = None if sample_weight is None else _numbers(sample_weight, "sample_weight", number)
    for name, given in (("y", targets), ("sample_weight", weight)):
        if given is not None and len(given) != len(rows):
            raise other_lengths(name, len(given), number, len(rows))
    n_rows = len(rows)
    kept = np.arange(n_rows)
    if weight is not None:
        weight = weight.reshape(len(rows))
        if weight.min(initial=0.0) < 0.0:
            raise ValueError(
                f"sample_weight must not be negative, got {weight.min():g} in row "
                f"{weight.argmin()} of partition {number}"
            )
        kept = np.flatnonzero(weight)
        if len(kept) < len(rows):
            rows, targets, weight = rows[kept], targets[kept], weight[kept]
    return Part(rows, targets, weight, kept, n_rows)


def other_lengths(name: str, given: float, number: int, rows: float) -> ValueError:
    """Error for a partition whose number of rows differs from that of X."""
    return ValueError(
        f"{name} must be in partitions of as many rows as those of X, and has {given} in "
        f"partition {number}, where X has {rows}"
    )


def _numbers(values: Any, name: str, number: int) -> FloatArray:
    try:
        check_no_dates(values, name, IN_PARTITIONS)
        if hasattr(values, "to_numpy"):  # in a type of pandas with NA if it has one
            given = values.to_numpy(na_value=np.nan)
        else:
            given = np.asarray(values)
        if given.dtype.kind == "c":
            raise ValueError("got complex ones")
        found = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        remedy = f"; {IN_PARTITIONS}" if "convert string" in str(error) and name == "X" else ""
        raise ValueError(
            f"{name} must hold numbers, and does not in partition {number}: {error}{remedy}"
        ) from error
    if not np.isfinite(found).all():
        place = first_not_finite(name, found, getattr(values, "columns", None))
        remedy = f"; {IN_PARTITIONS}" if np.isnan(found).any() and name == "X" else ""
        raise ValueError(
            f"{name} must hold finite numbers, and does not in partition {number}{place} of it"
            f"{remedy}"
        )
    return found


def rows_of(part: Part) -> FloatArray:
    """The rows of a part."""
    return part.rows


def all_but_rows(part: Part) -> tuple[Part, float]:
    """Targets, weights and indices, kept by the client, and the largest absolute entry of X."""
    largest = float(np.abs(part.rows).max(initial=0.0))
    return part._replace(rows=np.empty((0, part.rows.shape[1]))), largest


def some_rows(rows: FloatArray, numbers: IntArray) -> FloatArray:
    """Select rows by index."""
    return rows[numbers]


def mapped(rows: FloatArray, feature_map: FeatureMap) -> FloatArray:
    """Features of rows."""
    return np.asarray(feature_map.transform(rows))


def combination(rows: FloatArray, known: tuple[FeatureMap, FloatArray]) -> FloatArray:
    """Features of rows times weights."""
    feature_map, weights = known
    return np.asarray(feature_map.combination(rows, weights))


def left_out(
    features: FloatArray, rows: FloatArray, feature_map: FeatureMap
) -> tuple[FloatArray, float]:
    """What features leave out of the kernel's diagonal, (m,), and the sum of squared features."""
    left = np.zeros(len(rows))

    def task(block: slice) -> tuple[float]:
        mine = features[block]
        if feature_map.in_space:
            left[block] = feature_map.residual(rows[block], mine)
        return (float(np.einsum("ij,ij->", mine, mine)),)

    squares = RowBlocks(len(rows), features.shape[1] + rows.shape[1]).sum(task)[0]
    return left, float(squares)


class _Less:
    """Features minus a shift, for a few rows at a time."""

    def __init__(self, features: FloatArray, shift: FloatArray) -> None:
        self.features, self.shift, self.shape = features, shift, features.shape

    def __getitem__(self, rows: slice | AnyArray) -> FloatArray:
        return np.asarray(self.features[rows] - self.shift)


def some_features(features: FloatArray, shift: FloatArray, numbers: IntArray) -> FloatArray:
    """Features of rows selected by index."""
    return np.asarray(features[numbers] - shift)


def asked(
    features: FloatArray, shift: FloatArray, coupling: FloatArray, method: str, *given: FloatArray
) -> FloatArray:
    """Call a method of the design of these features."""
    design = Streamed(_Less(features, shift) if shift.any() else features, coupling)
    return np.asarray(getattr(design, method)(*given))


def moments_of(features: FloatArray, share: FloatArray) -> FloatArray:
    """Sums of features and of their squares by shares (m,) of the rows, (2, r)."""
    return np.stack(moments(features, share))
