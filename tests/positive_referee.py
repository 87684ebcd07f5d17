"""An independent referee: non-negative fits as semidefinite programs, solved by Clarabel.

Written from the definitions of the losses and of the penalty; matrices are given to the solver
as the scaled upper triangle s(A) with <s(A), s(B)> = tr(A B). Besides, the rows that problems are
made of.
"""

from __future__ import annotations

from itertools import pairwise

import clarabel
import numpy as np
from scipy import sparse

from fenchel.features import PivotedCholesky
from fenchel.kernels import Gaussian


def setting(n=25, seed=0, width=0.8, rank=6):
    """What draws, rows, their feature map, features, weights and targets (n, 1)."""
    random = np.random.default_rng(seed)
    x = np.sort(random.uniform(-1.0, 2.0, size=(n, 1)), axis=0)
    features = PivotedCholesky(Gaussian(width), rank=rank)
    phi = features.fit_transform(x)
    weight = random.uniform(0.5, 2.0, n)
    y = 1.0 + np.sin(2.0 * x[:, 0]) + 0.4 * random.standard_normal(n)
    return random, x, features, phi, weight, y[:, None]


def triangle(matrix):
    """Scaled upper triangle, column by column."""
    rows, columns = np.triu_indices(len(matrix))
    order = np.lexsort((rows, columns))
    rows, columns = rows[order], columns[order]
    return matrix[rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))


class Program:
    """Variables in one vector: matrices, linear weights, offsets, predictions, extra ones."""

    def __init__(self, problem, n_extra):
        n, p = len(problem.weight), problem.n_outputs
        sizes = [r * (r + 1) // 2 for r in problem.cone.sizes]
        sizes += [part.features.shape[1] for part in problem.linear]
        sizes += [problem.outward.shape[1], n * p, n_extra]
        ends = np.cumsum([0, *sizes])
        self.where = [slice(a, b) for a, b in pairwise(ends)]
        self.size = int(ends[-1])
        self.square, self.linear = np.zeros(self.size), np.zeros(self.size)
        self.matrices, self.rights, self.cones = [], [], []
        self.z, self.extra = self.where[-2], self.where[-1]
        self._model(problem, n, p)

    def _model(self, problem, n, p):
        matrix = np.zeros((n * p, self.size))
        for k, part in enumerate(problem.psd):
            where, r = self.where[k], part.features.shape[1]
            rows = np.array([triangle(np.outer(f, f)) for f in part.features])
            if part.combinations is not None:
                rows = part.combinations @ rows
            matrix[:, where] = np.kron(rows, problem.direction(part)[:, None])
            self.square[where] = part.alpha
            self.linear[where] = part.trace_penalty * triangle(np.eye(r))
            cone = np.zeros((where.stop - where.start, self.size))
            cone[:, where] = -np.eye(where.stop - where.start)
            self.add(cone, np.zeros(len(cone)), clarabel.PSDTriangleConeT(r))
        for part, where in zip(problem.linear, self.where[len(problem.psd) :], strict=False):
            matrix[:, where] = np.kron(part.features, problem.direction(part)[:, None])
            self.square[where] = part.alpha
        matrix[:, self.where[-3]] = np.tile(problem.outward, (n, 1))
        matrix[:, self.z] = -np.eye(n * p)
        self.add(matrix, np.zeros(n * p), clarabel.ZeroConeT(n * p))
        for condition in problem.constraints:
            row = np.zeros((1, self.size))
            for k, moment in enumerate(condition.moments):
                if moment is not None:
                    row[0, self.where[k]] = triangle(moment)
            kind = clarabel.ZeroConeT if condition.equality else clarabel.NonnegativeConeT
            self.add(row, np.array([condition.value]), kind(1))

    def add(self, matrix, right, cone):
        self.matrices.append(sparse.csc_matrix(matrix))
        self.rights.append(np.asarray(right, float))
        self.cones.append(cone)

    def rows(self, n, **parts):
        matrix = np.zeros((n, self.size))
        for name, block in parts.items():
            matrix[:, getattr(self, name)] = block
        return matrix

    def solve(self):
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
        solver = clarabel.DefaultSolver(
            sparse.diags(self.square, format="csc"),
            self.linear,
            sparse.vstack(self.matrices, format="csc"),
            np.concatenate(self.rights),
            self.cones,
            settings,
        )
        result = solver.solve()
        assert str(result.status) in {"Solved", "AlmostSolved"}, result.status
        return result.obj_val


def logarithm(problem):
    """Optimum with the loss -log z."""
    n = len(problem.weight)
    program = Program(problem, n)
    program.linear[program.extra] = -problem.weight
    for i in range(n):  # exp(t_i) <= z_i
        row = np.zeros((3, program.size))
        row[0, program.extra.start + i] = -1.0
        row[2, program.z.start + i] = -1.0
        program.add(row, np.array([0.0, 1.0, 0.0]), clarabel.ExponentialConeT())
    return program.solve()


def squared(problem, y):
    """Optimum with the loss ½ |y - z|²: the constant is added outside."""
    program = Program(problem, 0)
    weight = np.repeat(problem.weight, y.shape[1])
    program.square[program.z] = weight
    program.linear[program.z] = -weight * y.ravel()
    return program.solve() + 0.5 * float(weight @ y.ravel() ** 2)


def pinball(problem, y, levels):
    """Optimum with the sum of pinball losses."""
    m = y.size
    program = Program(problem, m)
    tau = np.tile(levels, len(y))
    identity = np.eye(m)
    program.linear[program.extra] = np.repeat(problem.weight, y.shape[1])
    for slope in (tau, tau - 1.0):  # t >= slope (y - z)
        matrix = program.rows(m, z=-np.diag(slope), extra=-identity)
        program.add(matrix, -slope * y.ravel(), clarabel.NonnegativeConeT(m))
    return program.solve()


def huber(problem, y, kappa):
    """Optimum with ½ s² + kappa t, s + u = y - z, t >= |u|."""
    m = y.size
    program = Program(problem, 2 * m)
    weight, identity, zeros = np.repeat(problem.weight, y.shape[1]), np.eye(m), np.zeros((m, m))
    program.square[program.extra] = np.concatenate([weight, np.zeros(m)])
    program.linear[program.extra] = np.concatenate([np.zeros(m), kappa * weight])
    for sign in (1.0, -1.0):  # t >= sign (y - z - s)
        matrix = program.rows(
            m, z=-sign * identity, extra=np.hstack([-sign * identity, zeros - identity])
        )
        program.add(matrix, -sign * y.ravel(), clarabel.NonnegativeConeT(m))
    return program.solve()


def poisson(problem, y):
    """Optimum with z - y log z - (y - y log y)."""
    n = len(y)
    program = Program(problem, n)
    program.linear[program.z] = problem.weight
    program.linear[program.extra] = -problem.weight * y
    for i in np.flatnonzero(y > 0):
        row = np.zeros((3, program.size))
        row[0, program.extra.start + i] = -1.0
        row[2, program.z.start + i] = -1.0
        program.add(row, np.array([0.0, 1.0, 0.0]), clarabel.ExponentialConeT())
    for i in np.flatnonzero(y == 0):
        row = np.zeros((1, program.size))
        row[0, program.extra.start + i] = 1.0
        program.add(row, np.zeros(1), clarabel.ZeroConeT(1))
    positive = y[y > 0]
    return program.solve() - float(
        problem.weight[y > 0] @ (positive - positive * np.log(positive))
    )
