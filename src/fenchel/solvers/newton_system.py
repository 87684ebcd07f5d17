"""The linear system of a Newton step, solved in the smaller of two spaces.

With the kinks (the rows whose dual vector moves with the residual) written as vectors
u = sqrt(t c_i) w of outputs, where P_i = sum of w wᵀ, the Hessian in (V, b) is

    [ I + UᵀU    UᵀE     ]     U has a row K(·, x_i) u for each kink,
    [ EᵀU        EᵀE + ρI ]    E the row u.

It is formed in the unknowns of weights and offset, or by Woodbury in one unknown for each kink.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from fenchel._typing import FloatArray, IntArray
from fenchel.design.base import distinct, square_roots
from fenchel.design.tiled import factor_lower
from fenchel.problem import Problem
from fenchel.solvers.kept_factor import LEAST_KINKS, KeptFactor, Solve, Unknowns
from fenchel.solvers.output_inverses import ByOutputs

_BY_KEPT = 1e-6  # residual of a system by a kept factor: a next Newton step starts from its error


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
) -> tuple[FloatArray, FloatArray] | None:
    """Form and factor the matrix in the weights and the offset; return (dV, db).

    Returns None if the design does not provide this matrix.
    """
    inner = gradient.size
    hessian = problem.design.hessian(kinks.rows, kinks.jacobian)
    if hessian is None:
        return None
    size = inner + (problem.n_outputs if problem.fit_intercept else 0)
    diagonal = np.einsum("ii->i", hessian)
    diagonal[:inner] += 1.0
    diagonal[inner:] += ridge
    right = np.concatenate([gradient.ravel(), offset_gradient])
    factor = cholesky_of(hessian[:size, :size])
    step = np.zeros(len(right))
    step[:size] = solve_cholesky(factor, -right[:size])
    return step[:inner].reshape(gradient.shape), step[inner:]


def solve_in_kinks(
    problem: Problem,
    kinks: Kinks,
    gradient: FloatArray,
    offset_gradient: FloatArray,
    ridge: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Solve by Woodbury's formula with the functions K(·, x_i) u of the kinks: (dV, db)."""
    rows, outputs = square_roots(*kinks)
    functions = problem.design.functions(rows, outputs)
    pulled = functions.values(gradient)
    solve = _by_factor(functions.fill, len(rows))
    z, offset = _solve_bordered(problem, solve, outputs, pulled, offset_gradient, ridge)
    return -gradient - functions.weights(z), offset


def solve_in_kernel(
    problem: Problem,
    kinks: Kinks,
    image: FloatArray,
    offset_gradient: FloatArray,
    ridge: FloatArray,
    kept: KeptFactor | None = None,
    by_outputs: ByOutputs | None = None,
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Solve by Woodbury's formula, from the image (n, p) of the gradient.

    The coefficients of the direction are -gradient, minus the returned ``push`` on the returned
    rows. The last array is db.
    """
    rows, outputs = square_roots(*kinks)
    pulled = np.einsum("ip,ip->i", image[rows], outputs)
    solve = solver_in_kinks(problem, kinks, rows, outputs, kept, by_outputs)
    z, offset = _solve_bordered(problem, solve, outputs, pulled, offset_gradient, ridge)
    unique, inverse = distinct(rows)
    push = np.zeros((len(unique), outputs.shape[1]))
    np.add.at(push, inverse, z[:, None] * outputs)
    return unique, push, offset


def _solve_bordered(
    problem: Problem,
    solve: Solve,
    outputs: FloatArray,
    pulled: FloatArray,
    offset_gradient: FloatArray,
    ridge: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """One unknown z = U dV + E db for each kink, bordered by the offset; return (z, db).

    ``solve`` does so with I + UUᵀ.
    """
    p = len(ridge)
    if len(outputs) == 0:
        return pulled, -offset_gradient / ridge if problem.fit_intercept else np.zeros(p)
    if not problem.fit_intercept:
        return -solve(pulled[:, None])[:, 0], np.zeros(p)
    solved = solve(np.column_stack([outputs, pulled]))
    square = outputs.T @ solved[:, :p] + np.diag(ridge)
    offset = _solved(square, outputs.T @ solved[:, p] - offset_gradient)
    return solved[:, :p] @ offset - solved[:, p], offset


def _solved(square: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a small system, by a wrapper that costs less than that of numpy."""
    _, _, found, info = lapack.dgesv(square, right)
    if info != 0:
        raise np.linalg.LinAlgError("a Newton system is singular: rounding errors")
    return np.asarray(found, float)


def _by_factor(fill: Callable[[FloatArray], None], size: int) -> Solve:
    """What solves with a positive definite matrix, from its factor."""
    factor = cholesky(fill, size)
    return lambda right: solve_cholesky(factor, right)


def solver_in_kinks(
    problem: Problem,
    kinks: Kinks,
    rows: IntArray,
    vectors: FloatArray,
    kept: KeptFactor | None = None,
    by_outputs: ByOutputs | None = None,
) -> Solve:
    """Return a function that solves with I + UUᵀ for the kinks, by the cheapest method."""
    fill = problem.design.functions(rows, vectors).fill
    if kinks.jacobian.ndim > 2:
        return _by_factor(fill, len(rows))
    outputs = ByOutputs(problem, uses=1) if by_outputs is None else by_outputs
    found: Solve | None = None
    with suppress(np.linalg.LinAlgError):
        found = outputs.solver(rows, vectors)
    if found is None and (kept is None or len(rows) < LEAST_KINKS):
        return _by_factor(fill, len(rows))

    def solve(right: FloatArray) -> FloatArray:
        solved = None
        if found is not None:
            with suppress(np.linalg.LinAlgError):
                return found(right)
        elif kept is not None:
            solved = kept.solve(Unknowns.of(problem, rows, vectors), right, _BY_KEPT)
        return _by_factor(fill, len(rows))(right) if solved is None else solved

    return solve


def cholesky(fill: Callable[[FloatArray], None], size: int) -> FloatArray:
    """Lower Cholesky factor, Fortran order, of the positive definite matrix that ``fill`` writes.

    If rounding has made it indefinite, a multiple of the identity at the level of rounding errors
    is added. The direction is then less exact, but still a descent direction.
    """
    matrix = np.empty((size, size), order="F")
    for level in (0.0, 1e-14, 1e-12, 1e-10):
        fill(matrix)
        diagonal = np.einsum("ii->i", matrix)
        diagonal += level * diagonal.max(initial=0.0)
        if factor_lower(matrix):
            return matrix
    raise np.linalg.LinAlgError("a Newton system is not positive definite: rounding errors")


def cholesky_of(known: FloatArray) -> FloatArray:
    """Lower Cholesky factor of a given matrix, which is not overwritten."""

    def fill(matrix: FloatArray) -> None:
        matrix[...] = known

    return cholesky(fill, len(known))


def solve_cholesky(factor: FloatArray, right: FloatArray) -> FloatArray:
    """Solve with the matrix of a factor of :func:`cholesky`."""
    return lapack.dpotrs(factor, right, lower=1)[0]
