"""What a kernel must satisfy."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from fenchel._typing import AnyArray, FloatArray
from fenchel.kernels import as_kernel, resolve
from fenchel.testing._saying import require, require_shape

_TOL = 1e-10


def check_kernel(kernel: Any, X: AnyArray | None = None) -> None:
    """Check that a kernel is symmetric, positive semi-definite, and one kernel throughout.

    Symmetry; smallest eigenvalue of the Gram matrix at least -1e-10 times the largest, on rows
    some of which are equal; ``diag``; ``k(X) = k(X, X)``; columns and blocks as parts of the
    Gram matrix; ``clone``; and that neither evaluation nor measuring length scales changes the
    kernel or the rows.

    Parameters
    ----------
    kernel : None, str, kernel or callable
        As an estimator takes it, see :func:`fenchel.kernels.as_kernel`; not a precomputed one.
    X : array-like of shape (n_samples, n_features), optional
        Rows to check on; by default 40 random rows of 3 features in different units.

    Raises
    ------
    AssertionError
        With a sentence on what is wrong and where.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.testing import check_kernel
    >>> check_kernel("matern52")
    >>> check_kernel(lambda X, Y: -np.abs(X[:, :1] - Y[:, 0]))
    Traceback (most recent call last):
        ...
    AssertionError: Callable(...): the Gram matrix is not positive semi-definite: ...
    """
    rows = _rows() if X is None else np.array(X, dtype=np.float64)
    given = as_kernel(kernel)
    name = f"{given!r}"
    before = repr(clone(given))
    fixed = resolve(given, rows)
    require(
        repr(given) == before,
        f"{name}: measuring its length scales changes the kernel itself, and not a copy",
    )
    try:
        _check(fixed, rows)
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from None


def _rows() -> FloatArray:
    X = np.random.default_rng(0).standard_normal((40, 3)) * [1.0, 10.0, 0.1]
    X[5] = X[4]
    X[7] = 0.0
    return X


def _check(kernel: Any, X: FloatArray) -> None:
    n = len(X)
    before = X.copy()
    gram = kernel(X)
    require_shape(gram, (n, n), "k(X)")
    require(np.all(np.isfinite(gram)), "k(X) is not finite")
    largest = float(np.abs(gram).max())

    def same(found: AnyArray, truth: AnyArray, sentence: str) -> None:
        require(found.shape == truth.shape, f"{sentence}: {found.shape} is not {truth.shape}")
        difference = float(np.abs(found - truth).max())
        require(difference <= _TOL * largest, f"{sentence}: they differ by {difference:.3g}")

    same(gram.T, gram, "k(X) must be symmetric")
    spectrum = np.linalg.eigvalsh(gram)
    lowest, highest = float(spectrum[0]), float(spectrum[-1])
    require(
        lowest >= -_TOL * n * max(highest, 0.0),
        f"the Gram matrix is not positive semi-definite: it has the eigenvalue {lowest:.3g} "
        f"beside {highest:.3g}",
    )
    same(
        kernel(X, X.copy()),
        gram,
        "k(X, X) must be k(X) (noise on the diagonal is no kernel of two rows)",
    )
    same(np.asarray(kernel.diag(X)), np.diag(gram), "diag(X) must be the diagonal of k(X)")
    some = np.arange(0, n, 3)
    same(kernel(X, X[some]), gram[:, some], "k(X, Z) of some rows Z must be columns of k(X)")
    same(kernel(X[some], X), gram[some], "k(Z, X) of some rows Z must be rows of k(X)")
    same(kernel(X, X[:1]), gram[:, :1], "k(X, z) of one row z must be a column of k(X)")
    same(kernel(X[::-1]), gram[::-1, ::-1], "k must not depend on the order of the rows")
    same(clone(kernel)(X), gram, "a clone must be the same kernel")
    same(kernel(X), gram, "k(X) must be the same each time")
    require(np.array_equal(X, before), "the kernel changes the rows that it is given")
