"""Data sets with their sources, generators whose truth is known, outliers, and streams.

Small real data sets are bundled; the others are read from ``$FENCHEL_DATA`` or a cache, or
downloaded with a checksum. Nothing here needs pandas unless ``as_frame=True``.
"""

from fenchel.datasets._dti import load_dti
from fenchel.datasets._functional import (
    extend_symmetrically,
    fill_gaps,
    local_outliers,
    make_functional,
    process_outliers,
    swap_outliers,
)
from fenchel.datasets._generators import make_heavy_tails, make_sine_quantiles
from fenchel.datasets._loaders import DatasetInfo, list_datasets, load, load_engel, load_mcycle
from fenchel.datasets._stream import stream

__all__ = [
    "DatasetInfo",
    "extend_symmetrically",
    "fill_gaps",
    "list_datasets",
    "load",
    "load_dti",
    "load_engel",
    "load_mcycle",
    "local_outliers",
    "make_functional",
    "make_heavy_tails",
    "make_sine_quantiles",
    "process_outliers",
    "stream",
    "swap_outliers",
]

__dir__ = __all__.copy
