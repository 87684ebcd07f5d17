"""Fits to tables in files: rows and features on disk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import check_targets
from fenchel.features import FeatureMap, FeaturesOnDisk
from fenchel.files import Passed, read_columns
from fenchel.regression.elsewhere import Source

_BLOCK_ROWS = 2**16


@dataclass(frozen=True)
class OnDisk(Source):
    """A table in files: rows on disk, targets and weights in memory, and a sample."""

    kind = FeaturesOnDisk

    @classmethod
    def read(
        cls, X: Any, y: Any, sample_weight: Any, random_state: Any, told: Passed | None = None
    ) -> OnDisk:
        """Read a table, with the same checks as for other data."""
        reading = None if told is None else partial(told, "reading")
        found = read_columns(X, y, sample_weight, reading)
        found.rows.passed = None if told is None else partial(told, "making features")
        check_targets(found.targets)
        return cls(*found, random_state=random_state)

    def combination(self, feature_map: FeatureMap, weights: FloatArray) -> FloatArray:
        """Compute block by block."""
        found = np.empty((len(self.rows), weights.shape[1]))
        for start in range(0, len(found), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            found[rows] = feature_map.combination(self.rows[rows], weights)
        return found
