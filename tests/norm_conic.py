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
    sizes = {"W": size, "b": o, "r": n * o, "u": size, "t": n_groups, "T": 1}
    program = _Program({**sizes, "v": size, "s": n_groups})
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
            _at_least(program, "t", j, "W", np.flatnonzero(groups == j), q, "v")
    if p == 1:
        program.at_most(np.zeros(1), t=np.ones((1, n_groups)), T=-np.eye(1))
    elif p == np.inf:
        program.at_most(np.zeros(n_groups), t=np.eye(n_groups), T=-np.ones((n_groups, 1)))
    else:
        _at_least(program, "T", 0, "t", np.arange(n_groups), p, "s")
    if radius is None:
        linear[where["T"]] = alpha
    else:
        program.at_most(np.array([radius]), T=np.eye(1))
    x, value, lower = program.solve(unit=float(np.mean(y**2)))
    return Optimum(value, lower, x[where["W"]].reshape(d, o), x[where["b"]])


def _at_least(program, head, index, tail, entries, order, parts):
    """``head[index]`` at least the norm of this order of ``tail[entries]``."""
    k = len(entries)
    wide = {name: where.stop - where.start for name, where in program.slices.items()}

    def minus(name, row, columns, height):
        """Minus these entries of a variable, one for each row from ``row`` on."""
        rows = np.arange(row, row + len(columns))
        return sparse.csc_matrix((-np.ones(len(rows)), (rows, columns)), (height, wide[name]))

    if order == 2:
        whole = {head: minus(head, 0, [index], k + 1), tail: minus(tail, 1, entries, k + 1)}
        program.rows.add(
            program.blocks(**whole), np.zeros(k + 1), [clarabel.SecondOrderConeT(k + 1)]
        )
        return
    for i in entries:  # |tail| <= part^(1/order) head^(1 - 1/order), parts with the sum head
        cone = {parts: minus(parts, 0, [i], 3), head: minus(head, 1, [index], 3)}
        cone[tail] = minus(tail, 2, [i], 3)
        program.rows.add(program.blocks(**cone), np.zeros(3), [clarabel.PowerConeT(1.0 / order)])
    total, whole = np.zeros((1, wide[parts])), np.zeros((1, wide[head]))
    total[0, entries], whole[0, index] = 1.0, -1.0
    program.equal(np.zeros(1), **{parts: total, head: whole})
