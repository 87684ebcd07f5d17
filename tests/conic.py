"""An independent referee: the primal problem as a conic program, solved by Clarabel.

Everything here is written from the definitions of the losses, never from the library's own
values or conjugates. Of a loss only its class and the arguments of its constructor are read.

The program: minimize over V (r, q), b (p,), d, e (n, p) and parts of d

    ½ ‖V‖² + Σ_i c_i ℓ(d_i)    such that    S Vᵀ φ_i + b + d_i + e_i = y_i,   ‖e_i‖₂ <= ε,

c_i = s_i / (α Σ_k s_k), which is the problem with the ε-insensitive loss by definition of the
infimal convolution. With a radius Λ there is no ½ ‖V‖², and ‖V‖₂ <= Λ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import clarabel
import numpy as np
from scipy import sparse

from fenchel.losses import (
    Absolute,
    Huber,
    L2Norm,
    Loss,
    NonCrossing,
    Pinball,
    Radial,
    Squared,
    SquaredPinball,
)
from fenchel.problem import Problem


class Optimum(NamedTuple):
    """What the conic solver found; the optimal value lies between ``lower`` and ``value``."""

    value: float
    lower: float
    weights: np.ndarray
    offset: np.ndarray


@dataclass
class _Rows:
    """Constraints ``A x + slack = right``, slack in a cone, one list per kind of cone."""

    matrices: list
    rights: list
    cones: list

    def add(self, matrix, right, cones):
        self.matrices.append(sparse.csc_matrix(matrix))
        self.rights.append(np.asarray(right, dtype=float))
        self.cones.extend(cones)


class _Program:
    """Variables by name, a quadratic objective, and constraints."""

    def __init__(self, sizes):
        ends = np.cumsum([0, *sizes.values()])
        self.slices = {
            name: slice(start, stop)
            for name, start, stop in zip(sizes, ends[:-1], ends[1:], strict=True)
        }
        self.size = int(ends[-1])
        self.square = np.zeros(self.size)
        self.linear = np.zeros(self.size)
        self.rows = _Rows([], [], [])

    def blocks(self, **parts):
        """Matrix with the given blocks in the columns of these variables, zero elsewhere."""
        parts = {name: sparse.csc_matrix(part) for name, part in parts.items()}
        height = next(iter(parts.values())).shape[0]
        row = [
            parts.get(name, sparse.csc_matrix((height, where.stop - where.start)))
            for name, where in self.slices.items()
        ]
        return sparse.hstack(row)

    def equal(self, right, **parts):
        self.rows.add(self.blocks(**parts), right, [clarabel.ZeroConeT(len(right))])

    def at_most(self, right, **parts):
        self.rows.add(self.blocks(**parts), right, [clarabel.NonnegativeConeT(len(right))])

    def longest(self, length, vector, n, p, radius=None):
        """``‖vector_i‖ <= length_i`` for variables (n,) and (n, p), or ``<= radius``."""
        heads = np.arange(n) * (p + 1)
        tails = np.setdiff1d(np.arange(n * (p + 1)), heads)
        down = sparse.csc_matrix(
            (-np.ones(n * p), (tails, np.arange(n * p))), shape=(n * (p + 1), n * p)
        )
        parts, right = {vector: down}, np.zeros(n * (p + 1))
        if radius is None:
            parts[length] = sparse.csc_matrix(
                (-np.ones(n), (heads, np.arange(n))), shape=(n * (p + 1), n)
            )
        else:
            right[heads] = radius
        cones = [clarabel.SecondOrderConeT(p + 1) for _ in range(n)]
        self.rows.add(self.blocks(**parts), right, cones)

    def solve(self, unit):
        """Solve with the objective in this unit; return x, value, lower bound.

        As accurately as rounding errors allow: cones of many outputs do not reach 1e-10.
        """
        for tolerance in (1e-10, 1e-9, 1e-8, 3e-8):
            settings = clarabel.DefaultSettings()
            settings.verbose = False
            settings.max_threads = 1
            settings.max_iter = 500
            settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
            solver = clarabel.DefaultSolver(
                sparse.diags(self.square / unit, format="csc"),
                self.linear / unit,
                sparse.vstack(self.rows.matrices, format="csc"),
                np.concatenate(self.rows.rights),
                self.rows.cones,
                settings,
            )
            result = solver.solve()
            if str(result.status) == "Solved":
                return np.array(result.x), unit * result.obj_val, unit * result.obj_val_dual
        raise AssertionError(f"the referee has no answer: {result.status}")


def conic_optimum(problem: Problem, design: np.ndarray | None = None) -> Optimum:
    """Optimal value of the primal problem, with a model that attains it.

    With a ``design`` (n p, r), functions are ``design @ w`` with norm ‖w‖, whatever the features.
    """
    ordered = isinstance(problem.loss, NonCrossing)
    loss = problem.loss.pinball if ordered else problem.loss
    epsilon = float(getattr(loss, "epsilon", 0.0))
    n, p = problem.n_rows, problem.n_outputs
    m = n * p
    shape: tuple[int, ...] = (-1,)
    # row (i, j): Σ_kl φ_ik S_jl V_kl + b_j + d_ij + e_ij = y_ij
    if design is None:
        features, coupling = problem.design.features, problem.design.coupling
        design = np.einsum("ik,jl->ijkl", features, coupling).reshape(m, -1)
        shape = (-1, coupling.shape[1])
    sizes = {"V": design.shape[1], "b": p, "d": m, **_extra_variables(loss, n, p)}
    if epsilon > 0.0:
        sizes["e"] = m
    program = _Program(sizes)
    weight = problem.sample_weight / (problem.alpha * problem.sample_weight.sum())
    if problem.radius is None:
        program.square[program.slices["V"]] = 1.0
    else:
        program.longest(None, "V", 1, design.shape[1], radius=problem.radius)

    identity = sparse.identity(m)
    parts = {"V": design, "b": np.tile(np.eye(p), (n, 1)), "d": identity}
    if epsilon > 0.0:
        parts["e"] = identity
        program.longest(None, "e", n, p, radius=epsilon)
    program.equal(np.broadcast_to(problem.targets, (n, p)).ravel(), **parts)
    if not problem.fit_intercept:
        program.equal(np.zeros(p), b=np.eye(p))
    _add_loss(program, loss, weight, n, p)
    if ordered:
        # one target for all levels: the lower prediction has the larger residual, row by row
        order = np.argsort(loss.levels)
        lower, higher = np.eye(p)[order[:-1]], np.eye(p)[order[1:]]
        each = sparse.kron(sparse.identity(n), higher - lower)
        program.at_most(np.zeros(n * (p - 1)), d=each)

    x, value, lower = program.solve(unit=float(weight.sum()))
    weights = x[program.slices["V"]].reshape(shape)
    alpha = problem.alpha
    return Optimum(alpha * value, alpha * lower, weights, x[program.slices["b"]])


def _extra_variables(loss: Loss, n: int, p: int) -> dict[str, int]:
    m = n * p
    if isinstance(loss, (Pinball, Absolute)):
        return {"t": m}
    if isinstance(loss, SquaredPinball):
        return {"up": m, "down": m}
    if isinstance(loss, Huber):
        return {"up": m, "down": m, "s": m}
    if isinstance(loss, L2Norm):
        return {"t": n}
    if isinstance(loss, Radial):
        return {"w": m, "s": m, "t": n}
    assert isinstance(loss, Squared), loss
    return {}


def _add_loss(program: _Program, loss: Loss, weight: np.ndarray, n: int, p: int) -> None:
    """Add Σ c_i ℓ(d_i), by what the loss is defined to be."""
    m = n * p
    identity, zeros = sparse.identity(m), np.zeros(m)
    repeated = np.repeat(weight, p)
    square, linear, where = program.square, program.linear, program.slices
    if isinstance(loss, (Pinball, Absolute)):
        # t >= τ d and t >= (τ - 1) d; t >= ± d
        if isinstance(loss, Pinball):
            levels = np.tile(np.repeat(loss.levels, loss.n_targets), n)
            slopes = [levels, levels - 1.0]
        else:
            slopes = [np.ones(m), -np.ones(m)]
        for slope in slopes:
            program.at_most(zeros, d=sparse.diags(slope), t=-identity)
        linear[where["t"]] = repeated
    elif isinstance(loss, SquaredPinball):
        # d = up - down: ½ τ up² + ½ (1 - τ) down²
        levels = np.tile(np.repeat(loss.levels, loss.n_targets), n)
        program.equal(zeros, d=identity, up=-identity, down=identity)
        square[where["up"]] = repeated * levels
        square[where["down"]] = repeated * (1.0 - levels)
    elif isinstance(loss, Huber):
        # d = s + up - down: ½ s² + κ (up + down)
        program.equal(zeros, d=identity, s=-identity, up=-identity, down=identity)
        square[where["s"]] = repeated
        linear[where["up"]] = linear[where["down"]] = repeated * loss.kappa
    elif isinstance(loss, L2Norm):
        program.longest("t", "d", n, p)
        linear[where["t"]] = weight
    elif isinstance(loss, Radial):
        # Squared().huber(κ, 2): d = s + w: ½ ‖s‖² + κ ‖w‖
        program.equal(zeros, d=identity, s=-identity, w=-identity)
        program.longest("t", "w", n, p)
        square[where["s"]] = repeated
        linear[where["t"]] = weight * loss.radius
    else:
        square[where["d"]] = repeated
    for name in ("up", "down"):
        if name in where:
            program.at_most(zeros, **{name: -identity})
