"""The linear system of a Newton step, solved in the smaller of two spaces.

With the kinks (the rows whose dual vector moves with the residual) written as vectors
u = sqrt(t c_i) w of outputs, where P_i = sum of w wᵀ, the Hessian in (V, b) is

    [ I + UᵀU    UᵀE     ]     U has a row φ_i ⊗ Sᵀu for each kink,
    [ EᵀU        EᵀE + ρI ]    E the row u.

It is formed in its r q + p unknowns, or by Woodbury in one unknown for each kink.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.linalg import lapack

from fenchel._typing import FloatArray, IntArray
from fenchel.operator_problem import OperatorProblem
from fenchel.problem import Problem


class Kinks(NamedTuple):
    """Rows that enter the Hessian, with their weighted Jacobians t c_i P_i."""

    rows: IntArray
    jacobian: FloatArray
    """(m, p) diagonals or (m, p, p)."""

    @property
    def size(self) -> int:
        """Number of unknowns in the space of the kinks."""
        if self.jacobian.ndim == 2:
            return int(np.count_nonzero(self.jacobian))
        return int(np.linalg.matrix_rank(self.jacobian, hermitian=True).sum())


def solve_in_weights(
    problem: Problem,
    kinks: Kinks,
    gradient: FloatArray,
    offset_gradient: FloatArray,
    ridge: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Form and factor the matrix in r q + p unknowns; return (dV, db).

    With an operator-valued kernel, weights and gradient are vectors (r,).
    """
    inner = gradient.size
    if isinstance(problem, OperatorProblem):
        hessian = _operator_hessian(problem, kinks)
    else:
        r, q = gradient.shape
        hessian = _hessian(problem, kinks, r, q, problem.n_outputs)
    size = inner + (problem.n_outputs if problem.fit_intercept else 0)
    diagonal = np.einsum("ii->i", hessian)
    diagonal[:inner] += 1.0
    diagonal[inner:] += ridge
    right = np.concatenate([gradient.ravel(), offset_gradient])

    def fill(matrix: FloatArray) -> None:
        matrix[...] = hessian[:size, :size]

    factor = _cholesky(fill, size)
    step = np.zeros(len(right))
    step[:size] = _solve(factor, -right[:size])
    return step[:inner].reshape(gradient.shape), step[inner:]


def solve_in_kinks(
    problem: Problem,
    kinks: Kinks,
    gradient: FloatArray,
    offset_gradient: FloatArray,
    ridge: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Woodbury, from the features of the kinks; return (dV, db)."""
    rows, outputs = _square_roots(kinks)
    unique, inverse = np.unique(rows, return_inverse=True)
    features = problem.features[unique]
    mixed = outputs @ problem.coupling
    pulled = np.einsum("iq,iq->i", (features @ gradient)[inverse], mixed)
    gram = features @ features.T
    z, offset = _solve_bordered(
        problem,
        lambda matrix: _fill(gram, inverse, mixed, matrix),
        outputs,
        pulled,
        offset_gradient,
        ridge,
    )
    push = np.zeros((len(unique), mixed.shape[1]))
    np.add.at(push, inverse, z[:, None] * mixed)
    return -gradient - features.T @ push, offset


def solve_in_operator_kinks(
    problem: OperatorProblem,
    kinks: Kinks,
    gradient: FloatArray,
    offset_gradient: FloatArray,
    ridge: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Woodbury, with a row Φ_iᵀu of U for each kink; return (dw, db)."""
    functions, outputs = _kink_features(problem, kinks)

    def fill(matrix: FloatArray) -> None:
        np.matmul(functions, functions.T, out=matrix)
        np.einsum("ii->i", matrix)[:] += 1.0

    z, offset = _solve_bordered(
        problem, fill, outputs, functions @ gradient, offset_gradient, ridge
    )
    return -gradient - functions.T @ z, offset


def solve_in_kernel(
    problem: Problem,
    gram: FloatArray,
    kinks: Kinks,
    image: FloatArray,
    offset_gradient: FloatArray,
    ridge: FloatArray,
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Woodbury, from the Gram matrix and the image (n, p) of the gradient.

    The direction has coefficients -gradient, less the returned ``push`` on the returned
    rows; the last array is db.
    """
    rows, outputs = _square_roots(kinks)
    pulled = np.einsum("ip,ip->i", image[rows], outputs)
    mixed = outputs @ problem.coupling
    z, offset = _solve_bordered(
        problem,
        lambda matrix: _fill(gram, rows, mixed, matrix),
        outputs,
        pulled,
        offset_gradient,
        ridge,
    )
    unique, inverse = np.unique(rows, return_inverse=True)
    push = np.zeros((len(unique), outputs.shape[1]))
    np.add.at(push, inverse, z[:, None] * outputs)
    return unique, push, offset


def _solve_bordered(
    problem: Problem,
    fill: Callable[[FloatArray], None],
    outputs: FloatArray,
    pulled: FloatArray,
    offset_gradient: FloatArray,
    ridge: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """One unknown z = U dV + E db for each kink, bordered by the offset; return (z, db).

    ``fill`` writes the lower triangle of I + UUᵀ.
    """
    p = len(ridge)
    if len(outputs) == 0:
        return pulled, -offset_gradient / ridge if problem.fit_intercept else np.zeros(p)
    factor = _cholesky(fill, len(outputs))
    if not problem.fit_intercept:
        return -_solve(factor, pulled), np.zeros(p)
    solved = _solve(factor, np.column_stack([outputs, pulled]))
    square = outputs.T @ solved[:, :p] + np.diag(ridge)
    offset = np.asarray(np.linalg.solve(square, outputs.T @ solved[:, p] - offset_gradient), float)
    return solved[:, :p] @ offset - solved[:, p], offset


def _hessian(problem: Problem, kinks: Kinks, r: int, q: int, p: int) -> FloatArray:
    """Sum over kinks of (φ_i ⊗ S, I)ᵀ t c_i P_i (φ_i ⊗ S, I), without identity and ridge."""
    coupling = problem.coupling
    hessian = np.zeros((r * q + p, r * q + p))
    block = hessian[: r * q, : r * q].reshape(r, q, r, q)
    border = hessian[r * q :, : r * q].reshape(p, r, q)
    corner = hessian[r * q :, r * q :]
    chunk = problem.rows.block_rows
    for start in range(0, len(kinks.rows), chunk):
        rows = kinks.rows[start : start + chunk]
        jacobian = kinks.jacobian[start : start + chunk]
        features = problem.features[rows]
        if jacobian.ndim == 2:
            for j in range(p):
                free = np.flatnonzero(jacobian[:, j])
                scale = jacobian[free, j]
                mine = features[free]
                weighted = mine * scale[:, None]
                gram = weighted.T @ mine
                outer = np.outer(coupling[j], coupling[j])
                block += gram[:, None, :, None] * outer[None, :, None, :]
                border[j] += weighted.sum(axis=0)[:, None] * coupling[j]
                corner[j, j] += scale.sum()
        else:
            right = jacobian @ coupling
            inner = np.einsum("jk,mjl->mkl", coupling, right)
            for k in range(q):
                for m in range(k + 1):
                    free = np.flatnonzero(inner[:, k, m])
                    mine = features[free]
                    gram = (mine * inner[free, k, m, None]).T @ mine
                    block[:, k, :, m] += gram
                    if m < k:
                        block[:, m, :, k] += gram.T
            border += np.einsum("mjk,mr->jrk", right, features)
            corner += jacobian.sum(axis=0)
    hessian[: r * q, r * q :] = hessian[r * q :, : r * q].T
    return hessian


def _operator_hessian(problem: OperatorProblem, kinks: Kinks) -> FloatArray:
    """Sum over kinks of (Φ_i, I)ᵀ t c_i P_i (Φ_i, I), without identity and ridge."""
    p, r = problem.features.shape[1:]
    hessian = np.zeros((r + p, r + p))
    chunk = problem.rows.block_rows
    for start in range(0, len(kinks.rows), chunk):
        part = Kinks(kinks.rows[start : start + chunk], kinks.jacobian[start : start + chunk])
        both = np.hstack(_kink_features(problem, part))
        hessian += both.T @ both
    return hessian


def _kink_features(problem: OperatorProblem, kinks: Kinks) -> tuple[FloatArray, FloatArray]:
    """Φ_iᵀ u for each kink, (k, r), and the vectors u (k, p)."""
    rows, outputs = _square_roots(kinks)
    if kinks.jacobian.ndim == 2:  # u has one entry: no need to gather all of Φ_i
        entry = outputs.argmax(axis=1)
        size = outputs[np.arange(len(rows)), entry]
        return size[:, None] * problem.features[rows, entry], outputs
    return np.matmul(outputs[:, None, :], problem.features[rows])[:, 0], outputs


def _cholesky(fill: Callable[[FloatArray], None], size: int) -> FloatArray:
    """Lower factor of a positive definite matrix, Fortran order, that ``fill`` writes.

    Where rounding has made it indefinite, a multiple of the identity at the level of rounding
    is added: the direction is less exact then, but still one of descent.
    """
    matrix = np.empty((size, size), order="F")
    for level in (0.0, 1e-14, 1e-12, 1e-10):
        fill(matrix)
        diagonal = np.einsum("ii->i", matrix)
        diagonal += level * diagonal.max(initial=0.0)
        factor, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1, clean=0)
        if not failed:
            return factor
    raise np.linalg.LinAlgError("a Newton system is not positive definite: rounding errors")


def _solve(factor: FloatArray, right: FloatArray) -> FloatArray:
    return lapack.dpotrs(factor, right, lower=1)[0]


@njit(cache=True, nogil=True)
def _fill(gram: FloatArray, rows: IntArray, mixed: FloatArray, matrix: FloatArray) -> None:
    """Lower triangle of I + UUᵀ, column by column."""
    k, q = mixed.shape
    for b in range(k):
        source = gram[rows[b]]
        for a in range(b, k):
            product = 0.0
            for m in range(q):
                product += mixed[a, m] * mixed[b, m]
            matrix[a, b] = product * source[rows[a]]
        matrix[b, b] += 1.0


def _square_roots(kinks: Kinks) -> tuple[IntArray, FloatArray]:
    """Write each Jacobian as a sum of u uᵀ: rows (k,) and vectors u (k, p)."""
    jacobian = kinks.jacobian
    if jacobian.ndim == 2:
        which, output = np.nonzero(jacobian)
        vectors = np.zeros((len(which), jacobian.shape[1]))
        vectors[np.arange(len(which)), output] = np.sqrt(jacobian[which, output])
        return kinks.rows[which], vectors
    values, bases = np.linalg.eigh(jacobian)
    keep = values > 1e-14 * values.max(initial=0.0)
    which, column = np.nonzero(keep)
    vectors = bases[which, :, column] * np.sqrt(values[which, column])[:, None]
    return kinks.rows[which], vectors
