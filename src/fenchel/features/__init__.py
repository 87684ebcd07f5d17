"""Finite-rank feature maps: exact and approximate kernels are one thing."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from fenchel.features.base import FeatureMap
from fenchel.features.explicit import Explicit
from fenchel.features.fourier import RandomFourier
from fenchel.features.nystroem import Nystroem
from fenchel.features.pivoted_cholesky import PivotedCholesky
from fenchel.kernels import Linear

FEATURE_MAPS: dict[str, type[FeatureMap]] = {
    "cholesky": PivotedCholesky,
    "fourier": RandomFourier,
    "nystroem": Nystroem,
}


def as_feature_map(
    features: str | FeatureMap,
    kernel: Kernel,
    rank: int | None,
    random_state: Any,
    n_samples: int,
    n_features: int,
) -> FeatureMap:
    """Return the unfitted feature map for a kernel.

    ``"auto"`` is the linear features themselves where the kernel is linear and there are no
    more features than rows, and pivoted Cholesky elsewhere.
    """
    if isinstance(features, FeatureMap):
        chosen = clone(features)
        return chosen.set_params(kernel=kernel) if chosen.kernel is None else chosen
    if features == "auto":
        if isinstance(kernel, Linear) and n_features <= n_samples and rank is None:
            return Explicit()
        features = "cholesky"
    if not isinstance(features, str) or features not in FEATURE_MAPS:
        allowed = ["auto", *FEATURE_MAPS]
        raise ValueError(f"features must be one of {allowed} or a FeatureMap, got {features!r}")
    own_rank = {} if rank is None else {"rank": int(rank)}
    return FEATURE_MAPS[features](kernel=kernel, random_state=random_state, **own_rank)


__all__ = [
    "FEATURE_MAPS",
    "Explicit",
    "FeatureMap",
    "Nystroem",
    "PivotedCholesky",
    "RandomFourier",
    "as_feature_map",
]
