"""Step sizes of first-order methods: the largest curvature of a quadratic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from fenchel._typing import FloatArray


def largest_eigenvalue(product: Callable[[FloatArray], FloatArray], size: int) -> float:
    """Largest eigenvalue of a positive semi-definite operator, from above, by Lanczos iterations.

    They find it to one part in a thousand from below, so it is taken one percent larger.
    """
    if size <= 3:  # too small for ARPACK
        matrix = np.column_stack([product(row) for row in np.eye(size)])
        return float(np.linalg.eigvalsh(matrix)[-1])
    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    return 1.01 * float(eigsh(operator, 1, v0=start, tol=1e-3, return_eigenvectors=False)[0])


__all__ = ["largest_eigenvalue"]
