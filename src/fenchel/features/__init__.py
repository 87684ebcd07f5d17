"""Finite-rank feature maps, for exact and approximate kernels alike."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from fenchel._typing import FloatArray
from fenchel._validation import Having, OneOf, shown
from fenchel.features.base import FeatureMap
from fenchel.features.expanded import Monomials, Summands, map_of, of_different_size
from fenchel.features.explicit import Explicit
from fenchel.features.fourier import RandomFourier
from fenchel.features.gram import unproved
from fenchel.features.kernel_rows import KernelRows, compacted
from fenchel.features.nystroem import Nystroem
from fenchel.features.on_disk import FeaturesOnDisk
from fenchel.features.operator import OperatorCholesky
from fenchel.features.pivoted_cholesky import PivotedCholesky
from fenchel.kernels import OperatorKernel, WithRanks, as_kernel

FEATURE_MAPS: dict[str, type[FeatureMap]] = {
    "cholesky": PivotedCholesky,
    "fourier": RandomFourier,
    "kernel_rows": KernelRows,
    "nystroem": Nystroem,
}

FEATURES_CHOICE = OneOf(("auto",), FEATURE_MAPS) | Having(
    "a FeatureMap", ("fit_transform", "design")
)
"""What ``features`` may be."""

KERNEL_ERROR_LEVEL = 1e-3
"""Share of the kernel's trace that a feature map may leave out without a warning."""

_OPERATOR_MAPS = ("auto", "cholesky")
_PROBE, _FEW = 64, 512
_ROUGH = 1e-3
# Of 10 000 rows, working sets took 1 to 14 s where 512 columns left 1e-8 to 1e-5 and factors 18 to
# more than 60 s, often without a certificate; where they left less, factors took 2 to 9 s.
_MANY_COLUMNS, _MANY_ROWS = 512, 2500
_SMOOTH = 1e-8


class KernelRowLimits(NamedTuple):
    """Maximum numbers of rows for which a rough kernel is not factored.

    Examples
    --------
    >>> from fenchel.features import KernelRowLimits
    >>> KernelRowLimits(stored=2000, computed=50_000).rows
    50000
    """

    stored: int
    """Most rows for which the kernel matrix is stored in memory."""
    computed: int
    """Most rows for which kernel values are recomputed whenever needed; 0 for never."""

    @property
    def rows(self) -> int:
        """The larger of the two numbers."""
        return max(self)


NO_KERNEL_ROWS = KernelRowLimits(0, 0)


def check_one_kernel(features: str | FeatureMap, kernel: Any, rank: int | None) -> None:
    """Raise ValueError if a feature map with its own kernel or rank is given another one.

    Examples
    --------
    >>> from fenchel.features import Nystroem, check_one_kernel
    >>> check_one_kernel(Nystroem(rank=50), "gaussian", None)
    """
    if rank is not None and (not isinstance(features, str) or features == "kernel_rows"):
        raise ValueError(
            f"rank must be None with features={features!r}, which does not read it, got {rank}"
        )
    own = getattr(features, "kernel", None)
    if own is not None and kernel is not None:
        raise ValueError(
            f"kernel must be None with features that have a kernel of their own, {own!r}, got "
            f"{kernel!r}"
        )


def as_feature_map(
    features: str | FeatureMap,
    kernel: Kernel,
    rank: int | None,
    random_state: Any,
    n_samples: int,
    n_features: int,
) -> FeatureMap:
    """Return the unfitted feature map for a kernel.

    ``"auto"`` chooses explicit features if the kernel is linear or polynomial and has at most as
    many features as there are rows. Otherwise it chooses pivoted Cholesky. The map returns arrays,
    whatever ``set_config(transform_output=)`` of scikit-learn is.
    """
    FEATURES_CHOICE(features, "features")
    if not isinstance(features, str):
        chosen: FeatureMap = clone(features).to_arrays()
        return chosen.set_params(kernel=kernel) if chosen.kernel is None else chosen
    if features == "auto":
        if rank is None:
            return map_of(kernel, random_state, n_samples, n_features).to_arrays()
        features = "cholesky"
    own_rank = {} if rank is None or features == "kernel_rows" else {"rank": int(rank)}
    named: Any = FEATURE_MAPS[features]
    made: FeatureMap = named(kernel=kernel, random_state=random_state, **own_rank)
    return made.to_arrays()


def default_kernel(features: str | FeatureMap, kernel: str | Kernel = "matern32") -> Kernel:
    """Return the kernel to learn if the user gives none.

    A kernel that is not a name is returned unchanged. A named kernel is also applied to the ranks,
    see :class:`fenchel.kernels.WithRanks`, unless the features need frequencies.

    Examples
    --------
    >>> from fenchel.features import default_kernel
    >>> default_kernel("auto")
    WithRanks(kernel=Matern(length_scale='learned', nu=1.5))
    >>> default_kernel("fourier")
    Matern(length_scale='learned', nu=1.5)
    """
    if not isinstance(kernel, str):
        return kernel
    kind = FEATURE_MAPS.get(features, FeatureMap) if isinstance(features, str) else features
    named = as_kernel(kernel)
    return named if getattr(kind, "needs_frequencies", False) else WithRanks(named)


def fit_feature_map(
    features: str | FeatureMap,
    kernel: Kernel | OperatorKernel,
    rank: int | None,
    random_state: Any,
    X: FloatArray,
    kernel_rows: KernelRowLimits,
    seconds: float | None = None,
) -> tuple[FeatureMap, FloatArray]:
    """Return the fitted feature map for a kernel and the features of the rows.

    For at most ``kernel_rows`` rows, ``"auto"`` may also choose :class:`KernelRows`: if 64 columns
    of a pivoted Cholesky factorization leave more than 0.1 % of the trace of the kernel; and, for
    2500 or more rows whose kernel values are not stored, if 512 columns leave more than 1e-8.
    User functions and precomputed Gram matrices are always factored, which proves that they are
    positive semi-definite. So are operator-valued kernels.

    With ``seconds``, the number of columns is limited so that they take a part of this time.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import NO_KERNEL_ROWS, fit_feature_map
    >>> from fenchel.kernels import Gaussian
    >>> X = np.linspace(0, 1, 10)[:, None]
    >>> feature_map, features = fit_feature_map("auto", Gaussian(1.0), 3, None, X, NO_KERNEL_ROWS)
    >>> feature_map
    PivotedCholesky(kernel=Gaussian(length_scale=1.0), rank=3)
    >>> features.shape
    (10, 3)
    """
    if isinstance(kernel, OperatorKernel):
        if not isinstance(features, str) or features not in _OPERATOR_MAPS:
            raise ValueError(
                f"features must be one of {list(_OPERATOR_MAPS)} with an operator-valued kernel, "
                f"got {shown(features)}"
            )
        operator_map = OperatorCholesky(kernel, rank=rank, random_state=random_state)
        return operator_map, operator_map.fit_transform(X)
    chosen = as_feature_map(features, kernel, rank, random_state, *X.shape)
    if features == "auto" and rank is None and of_different_size(kernel, X):
        chosen = Summands(kernel, random_state)
    may_be_rough = isinstance(features, str) and features == "auto" and rank is None
    if not (may_be_rough and isinstance(chosen, PivotedCholesky)):
        return chosen, np.asarray(chosen.fit_transform(X))
    begun = None
    if _PROBE < len(X) <= kernel_rows.rows and not unproved(kernel):
        stored = len(X) <= kernel_rows.stored
        begun = _begun(kernel, random_state, X, stored)
        if begun is None:
            rough = KernelRows(kernel=kernel, stored=stored, random_state=random_state).to_arrays()
            return rough, rough.fit_transform(X)
        chosen, mapped = begun
        enough = chosen.rank_ < int(chosen.rank or 0)  # though some estimators need more columns
        chosen.set_params(rank=None)
        if enough:
            return chosen, mapped
    if seconds is not None:
        chosen = chosen.limited(seconds, len(X))
    return chosen, chosen.fit_transform(X) if begun is None else chosen.beyond(X, mapped)


def _begun(
    kernel: Kernel, random_state: Any, X: FloatArray, stored: bool
) -> tuple[PivotedCholesky, FloatArray] | None:
    """A factorization with the features of its first columns, or None for a rough kernel."""

    def is_rough(probe: PivotedCholesky, share: float) -> bool:
        return probe.rank_ == probe.rank and float(probe.kernel_error_) > share

    begun = PivotedCholesky(kernel, rank=_PROBE, random_state=random_state).to_arrays()
    # landmarks chosen for a few rows suit these better than all rows: enough if rough there
    if len(X) >= _FEW and is_rough(clone(begun).fit(X[:: len(X) // _FEW + 1]), _ROUGH):
        return None
    features = begun.fit_transform(X)
    if is_rough(begun, _ROUGH):
        return None
    if begun.rank_ == _PROBE and not stored and len(X) >= _MANY_ROWS:
        features = begun.set_params(rank=_MANY_COLUMNS).beyond(X, features)
        if is_rough(begun, _SMOOTH):
            return None
    return begun, features


def warn_of_truncation(feature_map: FeatureMap, stacklevel: int) -> None:
    """Warn if the error of a fitted feature map is not negligible.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import PivotedCholesky, warn_of_truncation
    >>> from fenchel.kernels import Gaussian
    >>> feature_map = PivotedCholesky(Gaussian(1.0), rank=8).fit(np.linspace(0, 1, 10)[:, None])
    >>> warn_of_truncation(feature_map, stacklevel=2)  # nothing to warn of
    """
    error = float(feature_map.kernel_error_)
    if error > KERNEL_ERROR_LEVEL:
        warnings.warn(
            f"the feature map of rank {feature_map.rank_} leaves out {error:.1%} of the kernel "
            "(kernel_error_), and the certificate is for this approximation: increase rank to "
            "come closer to the kernel itself",
            UserWarning,
            stacklevel=stacklevel,
        )


__all__ = [
    "FEATURE_MAPS",
    "KERNEL_ERROR_LEVEL",
    "NO_KERNEL_ROWS",
    "Explicit",
    "FeatureMap",
    "FeaturesOnDisk",
    "KernelRowLimits",
    "KernelRows",
    "Monomials",
    "Nystroem",
    "OperatorCholesky",
    "PivotedCholesky",
    "RandomFourier",
    "Summands",
    "check_one_kernel",
    "compacted",
    "default_kernel",
    "fit_feature_map",
    "warn_of_truncation",
]

__dir__ = __all__.copy
