"""Messages on intervals that are infinitely wide."""

from __future__ import annotations

import numpy as np

from fenchel._typing import FloatArray
from fenchel.model_selection._conformal_ranks import ROUNDING


def least_rows(coverage: float) -> int:
    """Number of calibration rows of equal weight that finite intervals need."""
    return int(np.ceil(_odds(coverage) * (1.0 - ROUNDING)))


def reason(
    coverage: float, scores: FloatArray, weights: FloatArray | None, new_weight: float
) -> str:
    """Say what the coverage needs and what there is; weights (k,) are of all folds, or of one.

    ``weights`` is None if rows have no weights.
    """
    n_undefined = int(np.isinf(scores).sum())
    undefined = f", {n_undefined} of them with an infinite score" if n_undefined else ""
    least = f"at least {least_rows(coverage)}"
    start = f"a coverage of {coverage:g} needs"
    if weights is None:
        return f"{start} {least} calibration rows, got n_calibration_ = {len(scores)}{undefined}"
    each, where = "", ""
    if len(weights) > 1:
        each, where = " in each fold", f" in the smallest of {len(weights)} folds"
    return (
        f"{start} calibration rows{each} of {_odds(coverage):.4g} times the weight of the new "
        f"row, {least} of equal weight, got {weights.min() / new_weight:.3g} times{where}"
        f"{undefined}"
    )


def largest_coverage(
    scores: FloatArray, share: FloatArray | None = None, total: FloatArray | float = 0.0
) -> float:
    """Largest coverage of three digits with which an interval is finite, 0 if there is none."""
    if share is None:
        share, total = np.ones(len(scores)), len(scores) + 1.0
    reached = share[..., np.isfinite(scores)].sum(axis=-1) / total
    return float(np.floor(1000.0 * np.min(reached) * (1.0 + ROUNDING)) / 1000.0)


def _odds(coverage: float) -> float:
    return coverage / (1.0 - coverage)
