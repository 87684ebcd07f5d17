"""Fits to rows that are not all in memory; parameters are learned from a sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel._validation import random_of
from fenchel.certificate import Callback
from fenchel.design import Design
from fenchel.estimator import KeptRows
from fenchel.features import FeatureMap
from fenchel.files import sample_of
from fenchel.kernels import OperatorKernel
from fenchel.regression._prepared import Prepared, middle

SAMPLE_ROWS = 2**16
"""Number of rows from which kernel, alpha and landmarks are determined."""
_WORST = 2**13  # rows that are looked at for further landmarks, besides


class KeptElsewhere(KeptRows):
    """Rows of positive weight whose features are stored outside of memory.

    Features are made by ``kind(rows, feature_map)``. They have a ``shape``; ``left`` and
    ``kernel_error``, what they leave out of the kernel's diagonal and its share of the trace; a
    ``design`` for outputs coupled by S; and a ``centre`` for given weights. ``features[rows]``
    returns those of some rows.
    """

    features: Any

    @property
    def in_memory(self) -> bool:
        return False

    def with_map(self, feature_map: FeatureMap, kind: type) -> KeptRows:
        """The same rows with the features of a fitted map, computed in one pass."""
        features = kind(self.rows, feature_map)
        feature_map.kernel_error_ = features.kernel_error
        return replace(self, feature_map=feature_map, features=features)

    def as_new(self) -> FloatArray:
        """The features themselves: those of new rows are computed in the same way."""
        return self.features

    def far_weights(self, weights: FloatArray, targets: FloatArray) -> bool:
        """False: the features are those of new rows."""
        return False

    @cached_property
    def residual(self) -> FloatArray:
        """Residual of the diagonal, as computed with the features."""
        return np.asarray(self.features.left)

    def centre(self) -> FloatArray | None:
        """Centre of the features."""
        found: FloatArray | None = self.features.centre(self.weight)
        return found

    def forms(self, push: FloatArray) -> FloatArray:
        """Quadratic forms of few rows, which are read into memory."""
        return self.feature_map.forms(self.rows[:], push)

    def design(self, features: Any, coupling: FloatArray) -> Design:
        """Return the design of these features."""
        found: Design = features.design(coupling)
        return found

    def wider(self, share: float) -> KeptRows | None:
        """The same rows with further landmarks, chosen where the features leave out the most."""
        features = self.features
        size = min(_WORST, len(self.rows))
        worst = np.argpartition(features.left, len(self.rows) - size)[-size:]
        some = np.union1d(worst, sample_rows(len(self.rows), None))
        found = self.feature_map.wider(self.rows[some], features[some], share)
        return None if found is None else self.with_map(found[0], type(features))


@dataclass(frozen=True)
class Source:
    """Rows of positive weight that are not in memory, with targets and weights in memory.

    A subclass sets ``kind``, the class of the features of its rows, and defines
    :meth:`combination`. Estimators accept an instance in place of X.
    """

    kind: ClassVar[type]
    """Class of the features, see :class:`KeptElsewhere`."""
    rows: Any
    """Of ``shape`` (n, d): ``rows[numbers]`` reads some of the rows, ``rows.some(numbers)``
    selects them without reading."""
    targets: FloatArray
    weight: FloatArray
    kept: IntArray
    """Their indices among all rows."""
    n_rows: int
    """Number of all rows."""
    names: list[str] | None
    random_state: Any = None
    flat: bool = True
    """Whether y had shape (n,)."""

    @cached_property
    def sample(self) -> IntArray:
        """Indices of the rows in the sample."""
        return sample_rows(len(self.targets), self.random_state)

    @property
    def y(self) -> FloatArray:
        """Targets as they were given."""
        return self.targets[:, 0] if self.flat else self.targets

    def part(self, numbers: IntArray) -> Self:
        """Select some of all rows by index, in the order of the table."""
        wanted = np.sort(numbers)
        place = np.minimum(np.searchsorted(self.kept, wanted), len(self.kept) - 1)
        there = self.kept[place] == wanted
        some = place[there]
        if len(some) == 0:
            raise ValueError(
                "sample_weight must have a positive entry in each fold, got zeros only in one"
            )
        return replace(
            self,
            rows=self.rows.some(some),
            targets=self.targets[some],
            weight=self.weight[some],
            kept=np.flatnonzero(there),
            n_rows=len(wanted),
        )

    def of_sample(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows, targets and weights of the sample."""
        some = self.sample
        return self.rows[some], self.targets[some], self.weight[some]

    def combination(self, feature_map: FeatureMap, weights: FloatArray) -> FloatArray:
        """Features of all rows times weights, see :meth:`FeatureMap.combination`."""
        raise NotImplementedError


def sample_rows(n_rows: int, random_state: Any) -> IntArray:
    """Draw the indices of the rows in the sample."""
    return sample_of(n_rows, SAMPLE_ROWS, random_of(random_state))


def prepared_from(
    model: Any, source: Source, watch: Callback | None
) -> tuple[Prepared, FloatArray, FloatArray]:
    """Prepare rows that are not in memory for a fit; return also a sample and its weights.

    Kernel, alpha and landmarks are determined from the sample. Landmarks are then added from the
    rows of which the features leave out the most.
    """
    model.keep_columns(source.rows.shape[1], source.names, source.flat)
    rows, targets, weight = source.of_sample()
    feature_map = model.map_of_sample(
        rows, targets, weight, (source.targets, source.weight), watch
    )
    known: Any = source.kept, source.n_rows, source.weight, source.rows, feature_map, None
    inputs = KeptElsewhere(*known).with_map(feature_map, source.kind)
    targets_of_all, shift = source.targets, np.zeros(source.targets.shape[1])
    centre = None
    if model.fit_intercept:
        centre, shift = inputs.centre(), middle(targets_of_all)
    idle = np.empty((0, rows.shape[1])), np.empty((0, targets.shape[1]))
    return Prepared(inputs, targets_of_all - shift, shift, idle, centre=centre), rows, weight


def check_elsewhere(model: Any, place: str) -> None:
    """Raise an error for models that need all rows in memory."""
    if isinstance(model.kernel, OperatorKernel) or model.given_gram:
        raise ValueError(
            "X must be rows in memory for kernel='precomputed' and for operator-valued kernels, "
            f"got {place}"
        )
