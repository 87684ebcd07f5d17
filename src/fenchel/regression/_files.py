"""Fits of tables in files: rows and features on disk, what is learned from some of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel._validation import check_magnitude, check_targets, random_of
from fenchel.certificate import Callback
from fenchel.design import Design, RowBlocks, Streamed
from fenchel.estimator import KeptRows
from fenchel.features import FeatureMap, FeaturesOnDisk
from fenchel.files import read_columns, sample_of
from fenchel.kernels import OperatorKernel
from fenchel.regression._prepared import Prepared, middle
from fenchel.spool import RowsOnDisk

SAMPLE_ROWS = 2**16
"""Rows that kernel, alpha, and landmarks are read off."""
_WORST = 2**13  # rows that are looked at for further landmarks, besides


class KeptOnDisk(KeptRows):
    """Rows of positive weight whose features are read pass by pass."""

    __slots__ = ()

    def as_new(self) -> FloatArray:
        """The features themselves, which are made as those of new rows are."""
        return self.features

    def far_weights(self, weights: FloatArray, targets: FloatArray) -> bool:
        """They are the features of new rows."""
        return False

    @property
    def residual(self) -> FloatArray:
        """As it was found when the features were made."""
        on_disk: Any = self.features
        return np.asarray(on_disk.left)

    def forms(self, push: FloatArray) -> FloatArray:
        """Of few rows, and of these in memory."""
        return self.feature_map.forms(self.rows[:], push)

    def design(self, features: Any, coupling: FloatArray) -> Design:
        """The design that reads these features."""
        return Streamed(features, coupling)

    def wider(self, share: float) -> KeptRows | None:
        """The same rows with further landmarks, of those of which the most is left out."""
        on_disk: Any = self.features
        some = np.union1d(on_disk.worst(_WORST), sample_rows(len(self.rows), None))
        found = self.feature_map.wider(self.rows[some], on_disk[some], share)
        return None if found is None else with_features(self, found[0])


@dataclass(frozen=True)
class OnDisk:
    """A table that was read: rows on disk, targets and weights in memory, and a sample."""

    rows: RowsOnDisk
    targets: FloatArray
    weight: FloatArray
    kept: IntArray
    n_rows: int
    names: list[str] | None
    sample: IntArray

    @classmethod
    def read(cls, X: Any, y: Any, sample_weight: Any, random_state: Any) -> OnDisk:
        """Read it, and check what is in it as other data are checked."""
        found = read_columns(X, y, sample_weight)
        check_targets(found.targets)
        blocks = RowBlocks(len(found.rows), found.rows.shape[1])
        blocks.map(lambda rows: check_magnitude(found.rows[rows], "X"))
        return cls(*found, sample=sample_rows(len(found.rows), random_state))

    def of_sample(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows, targets and weights of the sample."""
        some = self.sample
        return self.rows[some], self.targets[some], self.weight[some]

    def with_map(self, feature_map: FeatureMap) -> KeptRows:
        """The rows with the features of a fitted map."""
        rows: Any = self.rows
        features: Any = None
        kept = KeptOnDisk(self.kept, self.n_rows, self.weight, rows, feature_map, features)
        return with_features(kept, feature_map)


def sample_rows(n_rows: int, random_state: Any) -> IntArray:
    """Numbers of the rows that stand for all."""
    return sample_of(n_rows, SAMPLE_ROWS, random_of(random_state))


def with_features(kept: KeptRows, feature_map: FeatureMap) -> KeptRows:
    """The same rows with the features of another map, in one pass."""
    rows: Any = kept.rows
    features: Any = FeaturesOnDisk(rows, feature_map)
    feature_map.kernel_error_ = features.kernel_error
    return kept._replace(feature_map=feature_map, features=features)


def from_table(
    model: Any, X: Any, y: Any, sample_weight: Any, watch: Callback | None
) -> tuple[Prepared, FloatArray, FloatArray]:
    """The rows of a table, ready for a fit of a model, and a sample of them with its targets.

    What is learned or read off data is read off the sample: kernel, alpha and landmarks. To
    these, rows are added of which the features leave out the most.
    """
    if not model.reads_files or isinstance(model.kernel, OperatorKernel) or model.given_gram:
        raise ValueError(
            "X must be rows in memory for KernelRidge, for kernel='precomputed' and for "
            f"operator-valued kernels, got the table {X!r}"
        )
    table = OnDisk.read(X, y, sample_weight, model.random_state)
    model.keep_columns(table.rows.shape[1], table.names)
    rows, targets, weight = table.of_sample()
    feature_map = model.map_of_sample(rows, targets, weight, (table.targets, table.weight), watch)
    inputs = table.with_map(feature_map)
    targets_of_all, shift, centre = table.targets, np.zeros(1), None
    if model.fit_intercept:
        centre = inputs.feature_map.centre(inputs.features, inputs.weight)
        shift = middle(targets_of_all)
    idle = np.empty((0, rows.shape[1])), np.empty((0, 1))
    return Prepared(inputs, targets_of_all - shift, shift, idle, centre=centre), rows, targets
