"""An independent referee for least squares with a group norm, solved by Clarabel.

Written from the definition of the norm; the library's norms are not used.
"""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse

from conic import Optimum, _Program


def norm_optimum(
    X, y, labels, q, p, *, alpha=None, radius=None, weight=None, fit_intercept=True
) -> Optimum:
    """Optimum of α‖W‖_{q,p} + (1/2N) Σ s_i ‖y_i - Wᵀx_i - b‖², or with ‖W‖_{q,p} <= radius."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float).reshape(len(X), -1)
    (n, d), o = X.shape, y.shape[1]
    weight = np.ones(n) if weight is None else weight
    n_groups = len(set(labels))
    groups = np.repeat(labels, o)  # of the entries of W, row by row
    size = d * o
    program = _Program({"W": size, "b": o, "r": n * o, "u": size, "t": n_groups, "T": 1})
    square, linear, where = program.square, program.linear, program.slices
    square[where["r"]] = np.repeat(weight / weight.sum(), o)
    design = np.kron(X, np.eye(o))
    program.equal(y.ravel(), W=design, b=np.tile(np.eye(o), (n, 1)), r=sparse.identity(n * o))
    if not fit_intercept:
        program.equal(np.zeros(o), b=np.eye(o))
    member = sparse.csc_matrix((np.ones(size), (groups, np.arange(size))), (n_groups, size))
    identity = sparse.identity(size)
    for sign in (1.0, -1.0):
        program.at_most(np.zeros(size), W=sign * identity, u=-identity)
    if q == 1:
        program.at_most(np.zeros(n_groups), u=member, t=-sparse.identity(n_groups))
    elif q == np.inf:
        program.at_most(np.zeros(size), u=identity, t=-member.T)
    else:
        for j in range(n_groups):
            entries = np.flatnonzero(groups == j)
            _second_order(program, "t", j, "W", entries)
    if p == 1:
        program.at_most(np.zeros(1), t=np.ones((1, n_groups)), T=-np.eye(1))
    elif p == np.inf:
        program.at_most(np.zeros(n_groups), t=np.eye(n_groups), T=-np.ones((n_groups, 1)))
    else:
        _second_order(program, "T", 0, "t", np.arange(n_groups))
    if radius is None:
        linear[where["T"]] = alpha
    else:
        program.at_most(np.array([radius]), T=np.eye(1))
    x, value, lower = program.solve(unit=float(np.mean(y**2)))
    return Optimum(value, lower, x[where["W"]].reshape(d, o), x[where["b"]])


def _second_order(program, head, index, tail, entries):
    """``‖tail[entries]‖ <= head[index]``."""
    k = len(entries) + 1
    sizes = {name: part.stop - part.start for name, part in program.slices.items()}
    first = sparse.csc_matrix(([-1.0], ([0], [index])), (k, sizes[head]))
    rest = (-np.ones(k - 1), (np.arange(1, k), entries))
    blocks = program.blocks(**{head: first, tail: sparse.csc_matrix(rest, (k, sizes[tail]))})
    program.rows.add(blocks, np.zeros(k), [clarabel.SecondOrderConeT(k)])
