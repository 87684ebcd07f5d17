"""Fits of rows that are not in memory as a whole: what is learned from some of them."""

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
"""Rows that kernel, alpha, and landmarks are read off."""
_WORST = 2**13  # rows that are looked at for further landmarks, besides


class KeptElsewhere(KeptRows):
    """Rows of positive weight whose features are somewhere else.

    Features are made by ``kind(rows, feature_map)``. They have ``shape``, ``left`` and
    ``kernel_error``, what they leave out of the diagonal and its share of the trace, a ``design``
    for outputs coupled by S and a ``centre`` for weights, and give those of some rows by
    ``features[rows]``.
    """

    features: Any

    __slots__ = ()

    @property
    def in_memory(self) -> bool:
        return False

    def with_map(self, feature_map: FeatureMap, kind: type) -> KeptRows:
        """The same rows with the features of a fitted map, in one pass."""
        features = kind(self.rows, feature_map)
        feature_map.kernel_error_ = features.kernel_error
        return self._replace(feature_map=feature_map, features=features)

    def as_new(self) -> FloatArray:
        """The features themselves, which are made as those of new rows are."""
        return self.features

    def far_weights(self, weights: FloatArray, targets: FloatArray) -> bool:
        """They are the features of new rows."""
        return False

    @property
    def residual(self) -> FloatArray:
        """As it was found when the features were made."""
        return np.asarray(self.features.left)

    def centre(self) -> FloatArray | None:
        """As the features know it."""
        found: FloatArray | None = self.features.centre(self.weight)
        return found

    def forms(self, push: FloatArray) -> FloatArray:
        """Of few rows, and of these in memory."""
        return self.feature_map.forms(self.rows[:], push)

    def design(self, features: Any, coupling: FloatArray) -> Design:
        """The design of these features."""
        found: Design = features.design(coupling)
        return found

    def wider(self, share: float) -> KeptRows | None:
        """The same rows with further landmarks, of those of which the most is left out."""
        features = self.features
        size = min(_WORST, len(self.rows))
        worst = np.argpartition(features.left, len(self.rows) - size)[-size:]
        some = np.union1d(worst, sample_rows(len(self.rows), None))
        found = self.feature_map.wider(self.rows[some], features[some], share)
        return None if found is None else self.with_map(found[0], type(features))


@dataclass(frozen=True)
class Source:
    """Rows of positive weight that are somewhere else, their targets and weights in memory.

    A subclass says of which kind features of its rows are, and defines :meth:`combination`.
    Estimators take one in the place of X.
    """

    kind: ClassVar[type]
    """Of features, see :class:`KeptElsewhere`."""
    rows: Any
    """Of ``shape`` (n, d): ``rows[numbers]`` gives some of them, ``rows.some(numbers)`` leaves
    these where they are."""
    targets: FloatArray
    weight: FloatArray
    kept: IntArray
    """Their numbers among all rows."""
    n_rows: int
    """Number of all rows."""
    names: list[str] | None
    random_state: Any = None
    flat: bool = True
    """Whether y was of shape (n,)."""

    @cached_property
    def sample(self) -> IntArray:
        """Numbers of the rows that stand for all."""
        return sample_rows(len(self.targets), self.random_state)

    @property
    def y(self) -> FloatArray:
        """Targets as they were given."""
        return self.targets[:, 0] if self.flat else self.targets

    def part(self, numbers: IntArray) -> Self:
        """Some of all rows, by their numbers among them, in the order of the table."""
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
    """Numbers of the rows that stand for all."""
    return sample_of(n_rows, SAMPLE_ROWS, random_of(random_state))


def prepared_from(
    model: Any, source: Source, watch: Callback | None
) -> tuple[Prepared, FloatArray, FloatArray]:
    """Rows that are somewhere else, ready for a fit of a model, and a sample with its targets.

    What is learned or read off data is read off the sample: kernel, alpha and landmarks. To
    these, rows are added of which the features leave out the most.
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
    return Prepared(inputs, targets_of_all - shift, shift, idle, centre=centre), rows, targets


def check_elsewhere(model: Any, place: str) -> None:
    """Refuse models that need all rows in memory."""
    if isinstance(model.kernel, OperatorKernel) or model.given_gram:
        raise ValueError(
            "X must be rows in memory for kernel='precomputed' and for operator-valued kernels, "
            f"got {place}"
        )
