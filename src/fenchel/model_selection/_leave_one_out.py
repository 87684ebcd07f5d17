"""Leave-one-out errors of kernel ridge regression over a path, without refitting."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._threads import threads_that_pay
from fenchel._typing import AnyArray, FloatArray
from fenchel.kernels import OperatorKernel
from fenchel.regression._base import KernelRegressor
from fenchel.solvers.leave_one_out import LeaveOneOutPath

_CHUNK_VALUES = 2**22  # residuals at a time: 32 MiB


def loo_scores(
    base: KernelRegressor,
    alphas: FloatArray,
    X: AnyArray,
    y: AnyArray,
    sample_weight: AnyArray | None,
) -> FloatArray:
    """Minus the leave-one-out error and its standard error at each alpha, (2, m).

    One feature map of all rows and one eigendecomposition; NaN where a residual is undefined.
    """
    base.check_parameters()
    if isinstance(base.kernel, OperatorKernel):
        raise ValueError(
            "scoring='loo' needs a scalar kernel, with coupling for the outputs, got "
            f"kernel={type(base.kernel).__name__}"
        )
    prepared = base.prepare(X, y, sample_weight)
    n, n_outputs = prepared.targets.shape
    if n == 1:
        raise ValueError("scoring='loo' needs two rows of positive weight, got n_samples = 1")
    root, inputs = base.make_coupling(n_outputs), prepared.inputs
    with threads_that_pay(min(inputs.features.shape)):
        path = LeaveOneOutPath(
            inputs.features,
            prepared.targets,
            inputs.weight,
            root @ root.T,
            gram=prepared.design(root).features is None,
            fit_intercept=bool(base.fit_intercept),
        )
        size = max(1, _CHUNK_VALUES // (n * n_outputs))
        parts = np.array_split(alphas, range(size, len(alphas), size))
        moments = [_moments(path.residuals(part), inputs.weight) for part in parts]
    return np.concatenate(moments, axis=1)


def _moments(residuals: FloatArray, weight: FloatArray) -> FloatArray:
    """Minus the weighted mean of the squares of (m, n, p), and its standard error, (2, m)."""
    squares = np.mean(residuals**2, axis=2)
    share = weight / weight.sum()
    mean = squares @ share
    n = len(weight)
    error = np.sqrt((squares - mean[:, None]) ** 2 @ share**2 * (n / (n - 1)))
    return np.stack([-mean, error])


def as_scores(parts: list[Any]) -> tuple[FloatArray, FloatArray]:
    """Scores (features, 1, alphas, 1) and their standard errors of :func:`loo_scores`."""
    both = np.asarray(parts)[:, :, None, :, None]
    return both[:, 0], both[:, 1]


__all__ = ["as_scores", "loo_scores"]
