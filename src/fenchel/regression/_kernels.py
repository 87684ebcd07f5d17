"""Kernels to choose among where none is given, and those that take sparse rows."""

from __future__ import annotations

from typing import Any

from fenchel._validation import shown
from fenchel.features import default_kernel
from fenchel.kernels import SHARED, SHARED_RANGE, Matern, OperatorKernel, as_kernel, takes_sparse
from fenchel.learning import Learning
from fenchel.learning.rows import has_many_columns

# Up to 30 columns, or with more than 5 rows for each, one length scale for each was better than
# one factor for all on the tables at hand.
_FEW_COLUMNS, _ROWS_A_COLUMN = 30, 5
_OF_SPARSE = ("auto", "cholesky", "kernel_rows")


def kernels_to_choose_among(features: Any, options: Learning, X: Any, sparse: bool) -> list[Any]:
    """Those of the options; by default one length scale for each column, or one factor for many.

    Sparse rows have no ranks.
    """
    names: tuple[Any, ...] = options.kernels or ("matern32",)
    kernels = [as_kernel(each) if sparse else default_kernel(features, each) for each in names]
    many = has_many_columns(X, options.most_rows, _ROWS_A_COLUMN)
    if options.kernels is None and many and X.shape[1] > _FEW_COLUMNS:
        kernels += [Matern(SHARED), Matern(SHARED_RANGE)]
    return kernels


def check_sparse(kernel: Any, features: Any) -> None:
    """Raise an error if the kernel or the features do not take sparse rows."""
    kernel = kernel if isinstance(kernel, OperatorKernel) else as_kernel(kernel)
    if not takes_sparse(kernel):
        raise TypeError(
            f"X must be a dense array for the kernel {kernel!r}, got a sparse one: kernels "
            "of products or distances of whole rows, as Linear and Gaussian, take sparse rows"
        )
    if features not in _OF_SPARSE:
        raise ValueError(
            f"features must be one of {list(_OF_SPARSE)} with sparse X, got {shown(features)}"
        )
