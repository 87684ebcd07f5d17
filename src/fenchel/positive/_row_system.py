"""Newton steps in the dual points themselves: exact where strengths are small, for few rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from fenchel._typing import FloatArray
from fenchel.positive._cone import Spectra
from fenchel.positive._loops import pair_columns, row_matrix
from fenchel.positive._row_loops import Barrier, Parts, Rule, State, advance
from fenchel.positive._solution import ROUNDING, Point
from fenchel.positive.losses import Interior
from fenchel.positive.problem import PSDProblem, Push
from fenchel.solvers.newton_system import cholesky_of

_FEW = 400  # dual entries that are worth it anyhow: 300 cost as much as 80 columns
_MOST_FEATURES = 64  # all products of two of them are made


def takes_rows(problem: PSDProblem) -> bool:
    """Whether no conditions, few features, and dual entries fewer than columns of Q, or few."""
    if problem.constraints or max(problem.cone.sizes) > _MOST_FEATURES:
        return False
    width = sum(line.features.shape[1] for line in problem.linear)
    for part, square in zip(problem.psd, problem.squares, strict=True):
        r = part.features.shape[1]
        width += r * (r + 1) // 2 if square is None else square.features.shape[1]
    return len(problem.weight) * problem.n_outputs <= max(width, _FEW)


class RowSystem:
    r"""Solves the system of a Newton step without conditions, in dual points and offsets.

    .. math:: \begin{pmatrix} H / c + Q Q^\top & -O \\ O^\top & 0 \end{pmatrix}
              \begin{pmatrix} c\, \delta \\ b \end{pmatrix}
              = \begin{pmatrix} r \\ -O^\top c\, \beta \end{pmatrix}

    H is diagonal, and Q as in :class:`Curvature`. The matrix is scaled to ones besides
    :math:`Q Q^\top`, and factored as it is: what a step gains by it is positive in spite of
    rounding, which differences of solutions in the coordinates of Q are not where alpha is small.
    """

    def __init__(self, problem: PSDProblem, spectra: Spectra, hessian: FloatArray) -> None:
        self.problem = problem
        self.root = np.sqrt(problem.weight[:, None] / hessian).T.copy()
        size = self.root.size
        matrix = np.empty((size, size))
        row_matrix(self._grams(spectra), problem.directions, self.root, matrix)
        # by columns the lower triangle is the upper one, which spares a copy
        self.factor, failed = dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)
        if failed:  # rounding
            row_matrix(self._grams(spectra), problem.directions, self.root, matrix)
            self.factor = cholesky_of(matrix).T
        self.border = (self.root[:, :, None] * problem.outward[:, None]).reshape(size, -1)

    def _grams(self, spectra: Spectra) -> FloatArray:
        """Q Qᵀ of each part, (parts, n, n)."""
        problem = self.problem
        n, psd = self.root.shape[1], problem.psd
        grams = np.empty((len(problem.directions), n, n))
        for k, part in enumerate(psd):
            turned = spectra.vectors[k].T @ part.features.T
            r = len(turned)
            columns = np.empty((r * (r + 1) // 2, turned.shape[1]))
            pair_columns(turned, spectra.sizes[k], spectra.roots[k], columns)
            if part.combinations is not None:
                columns = columns @ part.combinations.T
            np.matmul(columns.T, columns, out=grams[k])
        for k, gram in enumerate(problem.linear_grams, start=len(psd)):
            grams[k] = gram
        return grams

    def solve(self, rest: FloatArray, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """δ (n, p) and b (m,) for the right-hand sides r and β."""
        border, weight = self.border, self.problem.weight
        right = np.column_stack([(self.root * rest.T).ravel(), border])
        solved, _ = dpotrs(self.factor, right, lower=0)
        inner, reduced = solved[:, 0], solved[:, 1:]
        offset: FloatArray = np.zeros(border.shape[1])
        if len(offset):
            missing = self.problem.outward.T @ (weight @ dual) + border.T @ inner
            offset = np.asarray(-np.linalg.solve(border.T @ reduced, missing))
            inner = inner + reduced @ offset
        change = (self.root * inner.reshape(self.root.shape)).T / weight[:, None]
        return change, offset


ARMIJO = 1e-4
"""Share of what a step is predicted to gain that it must gain."""
HALVINGS = 40
"""Of a step at most: 683 and 563 with 10, no change with 80."""


@dataclass(frozen=True, eq=False)
class RowSteps:
    """Compiled Newton steps at one barrier, for few rows and losses with a barrier on a box."""

    problem: PSDProblem
    parts: Parts

    @classmethod
    def of(cls, problem: PSDProblem) -> RowSteps | None:
        """Those of a problem, None where it is another."""
        coupled = any(part.combinations is not None for part in problem.psd)
        many = problem.outward.shape[1] > 1
        if problem.loss.smooth or coupled or many or not takes_rows(problem):
            return None
        cone, n = problem.cone, len(problem.weight)
        lines = [line.features.T / np.sqrt(line.alpha) for line in problem.linear]
        parts = Parts(
            problem.weight,
            np.ascontiguousarray(problem.directions),
            np.ascontiguousarray(problem.outward),
            np.ascontiguousarray(np.concatenate([part.features.T for part in problem.psd])),
            np.cumsum(cone.sizes),
            np.repeat(cone.alphas, cone.sizes),
            np.array(cone.traces),
            np.ascontiguousarray(np.concatenate([np.empty((0, n)), *lines])),
            np.cumsum([len(line) for line in lines], dtype=np.intp),
            np.array(problem.linear_grams).reshape(-1, n, n),
        )
        return cls(problem, parts)

    def advance(
        self, eased: PSDProblem, point: Point, worth: float, most: int
    ) -> tuple[int, Point | None, FloatArray, float]:
        """Up to so many steps, as long as they are to gain more than ``worth``.

        Returns how many, the last point, or None if no step goes down, the offsets of the last
        step, and what the whole of that was to gain.
        """
        loss, spectra, problem = eased.loss, point.spectra, self.problem
        assert isinstance(loss, Interior)
        scales = [np.sqrt(line.alpha) for line in problem.linear]
        pulled = [w / scale for w, scale in zip(point.push.linear, scales, strict=True)]
        state = State(
            np.array(point.dual, order="C"),
            np.concatenate([gram.ravel() for gram in point.push.gram]),
            np.concatenate([np.empty(0), *pulled]),
            np.concatenate(spectra.values),
            np.concatenate([vectors.ravel() for vectors in spectra.vectors]),
            np.concatenate(spectra.sizes),
            np.concatenate(spectra.roots),
        )
        rule = Rule(most, worth, HALVINGS, ARMIJO, ROUNDING, problem.loss.unit)
        offset = np.zeros(problem.outward.shape[1])
        box = Barrier(*loss.parameters)
        states = state, state.room(), state.room()
        done, down, decrease = advance(self.parts, states, box, spectra.barrier, rule, offset)
        if not down and done == 1:
            return done, None, offset, decrease
        return done, self._point(eased, state, spectra), offset, decrease

    def _point(self, eased: PSDProblem, state: State, old: Spectra) -> Point:
        """What the arrays of a state hold."""
        cone, problem = self.problem.cone, self.problem
        grams, vectors, place = [], [], 0
        for r in cone.sizes:
            part = slice(place, place + r * r)
            grams.append(state.gram[part].reshape(r, r))
            vectors.append(state.vectors[part].reshape(r, r))
            place += r * r
        linear, first = [], 0
        for line, last in zip(problem.linear, self.parts.line_ends, strict=True):
            linear.append(state.linear[first:last] * np.sqrt(line.alpha))
            first = last
        values, known = [state.values[part] for part in cone.slices], old.multipliers
        spectra = cone.spectra_of(values, vectors, known, old.barrier)
        return Point(state.dual, Push(grams, linear), spectra, eased.conjugates(state.dual))
