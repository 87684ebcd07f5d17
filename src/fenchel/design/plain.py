"""Design of feature vectors, with outputs coupled by a matrix."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import blas, eigh, lapack, qr

from fenchel._clock import check_time
from fenchel._typing import FloatArray, IntArray
from fenchel.design.base import DECOMPOSED, Coupled, Functions, Rows, Spectrum, distinct, in_order
from fenchel.design.kernel_values import KernelColumns, Stored, fill_lower
from fenchel.design.narrow import is_narrow, narrow_product, narrow_pull
from fenchel.design.rows import MOST_SUMS, RowBlocks

_MOST_GRAM_ROWS = 6000  # 288 MB
_FULL_RANK = 0.75
_MANY_ROWS = 50_000  # for which it pays to load compiled loops
_TALL = 3  # rows for each column, from which on Cholesky factorizations are faster than QR
_NEARLY = 0.1  # norm of the error of columns, at most, for which a correction makes them exact


class Plain(Coupled):
    r"""Design of features φ(x), with k(x, x') = φ(x)·φ(x'), and a matrix S for the outputs.

    .. math:: h(x_i) = S V^\top \varphi_i, \qquad \|h\|^2 = \|V\|_F^2, \qquad
              K(x, x') = k(x, x')\, S S^\top

    Parameters
    ----------
    features : ndarray of shape (n, r)
        Feature vectors of the rows; may be a memory map.
    coupling : ndarray of shape (p, q)
        S; the identity for independent outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Plain
    >>> design = Plain(np.array([[1.0, 0.0], [1.0, 1.0]]), np.eye(1))
    >>> design.values(np.array([[2.0], [3.0]]))
    array([[2.],
           [5.]])
    """

    features: FloatArray

    def __init__(self, features: FloatArray, coupling: FloatArray) -> None:
        self.features, self.coupling = features, coupling
        self._rows = features
        self.n_rows, self.width = features.shape
        self.n_outputs = len(coupling)
        self._many = self.n_rows >= _MANY_ROWS

    @cached_property
    def gram(self) -> FloatArray | None:
        """Φ Φᵀ, unless it is much larger than the features."""
        small = self.n_rows <= min(2 * self.width, _MOST_GRAM_ROWS)
        return self.features @ self.features.T if small else None

    @property
    def by_rows(self) -> bool:
        """Whether there are nearly as many features as dual variables."""
        full = self.width * self.coupling.shape[1] >= _FULL_RANK * self.n_rows * self.n_outputs
        return full and self.gram is not None

    def zero(self) -> FloatArray:
        return np.zeros((self.width, self.coupling.shape[1]))

    def directions(self, weights: FloatArray) -> FloatArray:
        """Return V Sᵀ, (r, p)."""
        return weights @ self.coupling.T

    def predict(
        self, rows: Rows, directions: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        features = self._rows[rows]
        if self._many and is_narrow(features, directions.shape[1]):
            return narrow_product(features, directions, out)
        return np.dot(features, directions, out=out)

    def pull(self, rows: Rows, push: FloatArray) -> FloatArray:
        """Return Φᵀ push, (r, p)."""
        features = self._rows[rows]
        if self._many and is_narrow(features, push.shape[1]):
            return narrow_pull(features, push)
        return np.dot(features.T, push)

    def weights_of(self, pulled: FloatArray) -> FloatArray:
        return pulled @ self.coupling

    def image(self, push: FloatArray, rows: IntArray | None = None) -> FloatArray:
        gram = self.gram
        if gram is None:
            return super().image(push, rows)
        return (gram @ push if rows is None else gram[rows].T @ push) @ self.output_matrix

    def rows_of_features(self, rows: Rows) -> FloatArray:
        """Return the features of some rows."""
        return self._rows[rows]

    def _gathered(self, rows: IntArray) -> FloatArray:
        """The same for indices, in a sixth of the time of indexing."""
        return self.features.take(rows, axis=0)

    def functions(self, rows: IntArray, vectors: FloatArray) -> Functions:
        if not self.by_rows:
            return _Products(self, rows, vectors)
        gram = self.gram
        assert gram is not None
        return KernelColumns(self, Stored(gram), rows, vectors)

    def subset(self, rows: IntArray) -> Plain:
        return Plain(self._gathered(rows), self.coupling)

    def _with(self, coupling: FloatArray) -> Plain:
        return type(self)(self._rows, coupling)

    def join(self, parts: list[FloatArray]) -> FloatArray:
        sizes = np.linalg.norm(self.coupling, axis=1, keepdims=True)
        return np.hstack(parts) @ (self.coupling / np.where(sizes > 0.0, sizes, 1.0))

    def hessian(self, rows: IntArray, jacobian: FloatArray) -> FloatArray:
        """Return the sum over rows of (φ_i ⊗ S, I)ᵀ J_i (φ_i ⊗ S, I), (r q + p, r q + p)."""
        (r, q), p = self.zero().shape, self.n_outputs
        size = r * q + p
        add = _add_diagonal if jacobian.ndim == 2 else _add_full

        def task(part: slice) -> tuple[FloatArray]:
            mine = np.zeros((size, size))
            add(mine, self._gathered(rows[part]), jacobian[part], self.coupling)
            return (mine,)

        blocks = RowBlocks(len(rows), self.width, MOST_SUMS // size**2)
        blocks.block_rows = self.blocks.block_rows
        hessian = blocks.sum(task)[0] if len(rows) else np.zeros((size, size))
        hessian[: r * q, r * q :] = hessian[r * q :, : r * q].T
        return hessian

    def matrix(self) -> Any:
        whole = np.einsum("nr,pq->nprq", self._rows[:], self.coupling)
        return whole.reshape(self.n_rows * self.n_outputs, -1)

    def _decomposed(self, root: FloatArray) -> Spectrum:
        features = self._rows[:]
        if 2 * self.width >= self.n_rows:
            check_time(DECOMPOSED * float(self.n_rows) ** 3)
            scaled = root * (features @ features.T) * root.T
            return in_order(*eigh(scaled, overwrite_a=True, check_finite=False))
        check_time(2.0 * DECOMPOSED * self.n_rows * self.width**2)
        basis, last, triangle = _orthogonal(root * features)
        values, inner = eigh(triangle @ triangle.T, check_finite=False)
        turned = inner if last is None else blas.dtrsm(1.0, last, inner)
        return in_order(values, basis @ turned)

    def _pull_all(self, push: FloatArray) -> FloatArray:
        return self.blocks.sum(lambda rows: (self.pull(rows, push[rows]),))[0]

    def _scalar_diagonal(self) -> FloatArray:
        def squares(rows: slice) -> FloatArray:
            mine = self._rows[rows]
            return np.einsum("ij,ij->i", mine, mine)

        return np.concatenate(self.blocks.map(squares))


def _orthogonal(rows: FloatArray) -> tuple[FloatArray, FloatArray | None, FloatArray]:
    """Nearly orthonormal columns, the triangle to divide them by, and that of the QR of the rows.

    For many more rows than columns by two Cholesky factorizations, which take half the time: of
    the rows' Gram matrix, and of that of the columns found, which corrects these if they are
    nearly orthonormal (Yamamoto et al., 2015). Otherwise by QR.
    """
    if len(rows) >= _TALL * rows.shape[1]:
        first, failed = lapack.dpotrf(rows.T @ rows)
        if not failed:
            basis = blas.dtrsm(1.0, first, rows.T, trans_a=1).T
            gram = basis.T @ basis
            if np.linalg.norm(gram - np.eye(len(gram))) <= _NEARLY:
                last, _ = lapack.dpotrf(gram)
                return basis, last, np.triu(last @ first)
    basis, triangle = qr(rows, mode="economic", check_finite=False)
    return basis, None, triangle


class _Products:
    """Functions whose inner products are those of features and of mixed vectors."""

    def __init__(self, design: Plain, rows: IntArray, vectors: FloatArray) -> None:
        self._design = design
        self._unique, self._inverse = distinct(rows)
        self._features = design.rows_of_features(self._unique)
        self._mixed = vectors @ design.coupling

    def values(self, weights: FloatArray) -> FloatArray:
        return np.einsum("iq,iq->i", (self._features @ weights)[self._inverse], self._mixed)

    def gram(self) -> FloatArray:
        features = self._features[self._inverse]
        return (features @ features.T) * (self._mixed @ self._mixed.T)

    def fill(self, matrix: FloatArray) -> None:
        gram, place = self._features @ self._features.T, self._inverse
        fill_lower(gram, place, place, self._mixed, matrix, 0)

    def weights(self, sizes: FloatArray) -> FloatArray:
        push = np.zeros((len(self._unique), self._mixed.shape[1]))
        np.add.at(push, self._inverse, sizes[:, None] * self._mixed)
        return self._features.T @ push


def _add_diagonal(
    hessian: FloatArray, features: FloatArray, jacobian: FloatArray, coupling: FloatArray
) -> None:
    r, (p, q) = features.shape[1], coupling.shape
    block, border, corner = _parts(hessian, r, coupling)
    outer = np.einsum("pk,pl->pkl", coupling, coupling).reshape(p, q * q)
    rows = len(features) < p  # the sum is over rows or over outputs, whichever are fewer
    right = jacobian @ outer if rows else outer
    for start in range(0, len(right), q * q):  # the left takes no more memory than the block
        part = slice(start, start + q * q)
        if rows:
            left = np.einsum("mr,ms->mrs", features[part], features[part])
        else:
            left = _grams(features, jacobian[:, part])
        added = np.dot(left.reshape(-1, r * r).T, right[part])
        block += added.reshape(r, r, q, q).transpose(0, 2, 1, 3)
    border += np.einsum("pr,pq->prq", np.dot(jacobian.T, features), coupling)
    np.einsum("ii->i", corner)[...] += jacobian.sum(axis=0)


def _grams(features: FloatArray, jacobian: FloatArray) -> FloatArray:
    """Φᵀ diag(j) Φ for each column j, which may be zero in most rows, (p, r, r)."""
    grams = np.empty((jacobian.shape[1], features.shape[1], features.shape[1]))
    for gram, scale in zip(grams, jacobian.T, strict=True):
        free = np.flatnonzero(scale)
        mine = features[free]
        np.dot((mine * scale[free, None]).T, mine, out=gram)
    return grams


def _add_full(
    hessian: FloatArray, features: FloatArray, jacobian: FloatArray, coupling: FloatArray
) -> None:
    block, border, corner = _parts(hessian, features.shape[1], coupling)
    right = jacobian @ coupling
    inner = np.einsum("jk,mjl->mkl", coupling, right)
    for k in range(coupling.shape[1]):
        for m in range(k + 1):
            free = np.flatnonzero(inner[:, k, m])
            mine = features[free]
            gram = np.dot((mine * inner[free, k, m, None]).T, mine)
            block[:, k, :, m] += gram
            if m < k:
                block[:, m, :, k] += gram.T
    border += np.einsum("mjk,mr->jrk", right, features)
    corner += jacobian.sum(axis=0)


def _parts(
    hessian: FloatArray, r: int, coupling: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Views of the Hessian: weights (r, q, r, q), offset by weights (p, r, q), offset (p, p)."""
    p, q = coupling.shape
    inner = r * q
    return (
        hessian[:inner, :inner].reshape(r, q, r, q),
        hessian[inner:, :inner].reshape(p, r, q),
        hessian[inner:, inner:],
    )
