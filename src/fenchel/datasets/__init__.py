"""Real data sets, artificial data with known truth, functional outliers, and file streaming.

Small real data sets are bundled. The others are read from ``$FENCHEL_DATA`` or a cache, or
downloaded and verified by a checksum. pandas is needed only with ``as_frame=True``.
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
