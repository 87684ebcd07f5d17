"""The referee for curves: their primal problem as a conic program, solved by Clarabel.

Written from the definitions alone: K and G are the Gram matrices of the rows and of the points,
μ the weights of the points, NaN in y where nothing is observed, c_i = s_i / (α Σ_k s_k).
Minimize over V, with H = K^{1/2} V G^{1/2}, and over parts of the residuals y - H, α times

    ½ ‖V‖² + Σ_i c_i (½ Σ_j μ_ij d_ij² + κ (Σ_j μ_ij |w_ij|^p)^{1/p}),
    y - H = d + w + e,   (Σ_j μ_ij |e_ij|^p)^{1/p} <= ε

with w (Huber) or e (insensitive) left out where the loss has none.
"""

from __future__ import annotations

from typing import NamedTuple

import clarabel
import numpy as np
from scipy import sparse

from conic import _Program


class CurveOptimum(NamedTuple):
    """Optimal value, a lower bound of it, and the predictions at rows and points, (n, m)."""

    value: float
    lower: float
    fitted: np.ndarray


def curve_optimum(
    K, G, y, measure, alpha, *, kappa=None, epsilon=None, norm=2.0, weight=None
) -> CurveOptimum:
    """Solve with the Huber loss if ``kappa`` is given, the insensitive one if ``epsilon`` is."""
    n, m = y.shape
    seen = ~np.isnan(y)
    mu = np.where(seen, np.broadcast_to(measure, (n, m)), 0.0)
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    c = weight / (alpha * weight.sum())
    design = np.kron(root(K), root(G))
    sizes = {"V": n * m, "d": n * m}
    if kappa is not None:
        sizes |= {"w": n * m, "t": n}
    if epsilon is not None:
        sizes["e"] = n * m
    if norm not in (1.0, 2.0, np.inf):
        sizes["z"] = n * m
        if epsilon is not None:
            sizes["t"] = n
    elif norm == 1.0:
        sizes["z"] = n * m
    program = _Program(sizes)
    program.square[program.slices["V"]] = 1.0
    program.square[program.slices["d"]] = (c[:, None] * mu).ravel()
    rest = {name: sparse.identity(n * m).tocsr()[seen.ravel()] for name in "dwe" if name in sizes}
    program.equal(y[seen], V=design[seen.ravel()], **rest)
    if kappa is not None:
        program.linear[program.slices["t"]] = c * kappa
        _norm_at_most(program, "w", mu, norm, None)
    if epsilon is not None:
        _norm_at_most(program, "e", mu, norm, epsilon)
    x, value, lower = program.solve(unit=float(np.abs(c).sum()))
    fitted = (design @ x[program.slices["V"]]).reshape(n, m)
    return CurveOptimum(alpha * value, alpha * lower, fitted)


def _norm_at_most(program, name, mu, norm, radius):
    """Row by row, the norm in L^p(μ) is at most ``radius``, or the variables t if None."""
    n, m = mu.shape
    identity = sparse.identity(n * m)
    each = sparse.kron(sparse.identity(n), np.ones((m, 1)))  # t_i for all points of row i
    sums = sparse.kron(sparse.identity(n), np.ones((1, m)))
    limit = np.zeros(n) if radius is None else np.full(n, radius)
    bound = {} if radius is not None else {"t": -sparse.identity(n)}
    if norm == np.inf:
        wide = {} if radius is not None else {"t": -each}
        for sign in (1.0, -1.0):
            program.at_most(np.repeat(limit, m), **{name: sign * identity}, **wide)
    elif norm == 1.0:
        for sign in (1.0, -1.0):
            program.at_most(np.zeros(n * m), **{name: sign * identity}, z=-identity)
        program.at_most(limit, z=sums @ sparse.diags(mu.ravel()), **bound)
    elif norm == 2.0:
        scaled = sparse.diags(np.sqrt(mu).ravel())
        heads = np.arange(n) * (m + 1)
        tails = np.setdiff1d(np.arange(n * (m + 1)), heads)
        place = sparse.csc_matrix(
            (np.ones(n * m), (tails, np.arange(n * m))), shape=(n * (m + 1), n * m)
        )
        top = sparse.csc_matrix((np.ones(n), (heads, np.arange(n))), shape=(n * (m + 1), n))
        parts, right = {name: -(place @ scaled)}, np.asarray(top @ limit)
        if radius is None:
            parts["t"] = -top
        cones = [clarabel.SecondOrderConeT(m + 1) for _ in range(n)]
        program.rows.add(program.blocks(**parts), right, cones)
    else:
        # |x_j| <= z_j^{1/p} t^{1 - 1/p} for all j and Σ_j z_j <= t, with x = μ^{1/p} v
        scaled = sparse.diags((mu ** (1.0 / norm)).ravel())
        if radius is not None:
            program.equal(np.full(n, radius), t=sparse.identity(n))
        program.at_most(np.zeros(n), z=sums, t=-sparse.identity(n))
        pick = [
            sparse.csc_matrix(
                (-np.ones(n * m), (3 * np.arange(n * m) + k, np.arange(n * m))),
                shape=(3 * n * m, n * m),
            )
            for k in range(3)
        ]
        cones = [clarabel.PowerConeT(1.0 / norm) for _ in range(n * m)]
        matrix = program.blocks(z=pick[0], t=pick[1] @ each, **{name: pick[2] @ scaled})
        program.rows.add(matrix, np.zeros(3 * n * m), cones)


def root(gram):
    """Symmetric square root of a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh(gram)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


__all__ = ["CurveOptimum", "curve_optimum", "root"]
