"""Solution by a conic interior-point solver, as an independent reference."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from fenchel._typing import FloatArray
from fenchel._validation import CheckedWhenMade
from fenchel.certificate import Callback, Certified
from fenchel.design import Gram
from fenchel.losses.forms import Box
from fenchel.problem import Problem
from fenchel.solvers.base import Solution, WarmStart, settled
from fenchel.solvers.loop import Loop


@dataclass(frozen=True)
class Conic(CheckedWhenMade):
    r"""Quadratic or second-order cone program, solved by Clarabel.

    The loss is an infimal convolution of simple parts, so a residual is a sum of variables with
    simple costs:

    .. math:: \min \tfrac12 \|V\|_F^2 + \sum_{ij} c_i \left( \tfrac{s_{ij}^2}{2 q_j}
              + u_j t_{ij}^+ - l_j t_{ij}^- \right) \quad \text{s.t.}\quad
              S V^\top \varphi_i + b + s_i + t_i^+ - t_i^- + d_i = y_i,\;
              \|d_i\|_2 \le \varepsilon,

    where s is also split by sign if its curvature differs between the two signs. If curves must
    not cross, there is one more inequality for each row and pair of neighbouring levels. The dual
    point is the multiplier of the equality and is certified like any other. The package
    ``clarabel`` is required. Cost and memory grow fast with n, p and the rank. The solver
    certifies only once, at its end. A callback cannot stop it, but a time limit can.

    Parameters
    ----------
    tol : float
        Relative duality gap, as measured by the library's own certificate.
    max_iter : int
        Maximum number of interior-point iterations.

    References
    ----------
    Goulart, Chen (2024), Clarabel: An interior-point solver for conic programs with
    quadratic objectives.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.solvers import Conic
    >>> X, y = load_engel(return_X_y=True)
    >>> model = QuantileRegressor(0.9, learn=False, solver=Conic(tol=1e-6)).fit(X, y)
    >>> model.status_.converged
    True
    """

    takes_gram: ClassVar[bool] = False
    tol: float = 1e-6
    max_iter: int = 200

    def requires(self, problem: Problem) -> str | None:
        """Return None for losses with conic parts, if Clarabel is installed."""
        if problem.design.subset(np.arange(1)).matrix() is None:  # of one row it costs nothing
            return Gram.refusal
        if importlib.util.find_spec("clarabel") is None:
            return "needs the package clarabel: pip install clarabel; solver='newton' needs none"
        if problem.loss.conic_parts(problem.n_outputs) is None:
            return "needs a loss of the library itself; solver='newton' takes any loss"
        return None

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the certified solution; ``warm_start`` is ignored."""
        import clarabel  # noqa: PLC0415  (optional)

        loop: Loop[Certified] = Loop(self.tol, callback)
        program = _Program(problem)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_iter = self.max_iter
        settings.max_threads = 1
        settings.time_limit = loop.seconds_left
        settings.tol_gap_rel = settings.tol_feas = min(1e-8, 1e-2 * self.tol)
        settings.tol_gap_abs = 1e-12 * problem.baseline / problem.alpha
        cones = [getattr(clarabel, name)(size) for name, size in program.cones]
        result = clarabel.DefaultSolver(*program.matrices(), cones, settings).solve()
        shape = (problem.n_rows, problem.n_outputs)
        multiplier = np.array(result.z[: program.n_equalities]).reshape(shape)
        # where outputs interact, the program's own offset is the better one
        offset = None if problem.separable else program.offset(np.array(result.x))
        certified = problem.certify(-multiplier / problem.weight[:, None], offset)
        how = (
            f"Clarabel ended with {result.status}; increase max_iter or max_time, or use "
            "solver='newton'"
        )
        return settled(loop, certified, int(result.iterations), how)


class _Program:
    """Columns of the program: V, b, and the parts of the residuals; then its cones."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        n, p = problem.n_rows, problem.n_outputs
        self.n_equalities = n * p
        design = problem.design.matrix()
        self.columns: list[Any] = [sparse.csc_matrix(design)]
        self.quadratic = [np.ones(design.shape[1])]
        self.linear = [np.zeros(design.shape[1])]
        self.inequalities: list[tuple[int, Any, FloatArray]] = []
        self.cones: list[tuple[str, int]] = [("ZeroConeT", n * p)]
        self.offset_start = design.shape[1]
        if problem.fit_intercept:
            self._add(sparse.kron(np.ones((n, 1)), sparse.eye(p)), np.zeros(p), np.zeros(p))
        parts = problem.loss.conic_parts(p)
        assert parts is not None
        if parts.length is not None:
            self._radial_parts(*parts.length)
        if parts.box is not None:
            self._box_parts(parts.box)
        if parts.cone is not None:
            self._ordered(parts.cone)
        if parts.epsilon > 0.0:
            self._ball(parts.epsilon)

    def offset(self, x: FloatArray) -> FloatArray:
        """The offset in a solution of the program; zero without intercept."""
        p = self.problem.n_outputs
        if not self.problem.fit_intercept:
            return np.zeros(p)
        return x[self.offset_start : self.offset_start + p]

    def _add(self, columns: Any, quadratic: FloatArray, linear: FloatArray) -> int:
        """Append variables; return where they start."""
        start = sum(block.shape[1] for block in self.columns)
        self.columns.append(columns)
        self.quadratic.append(quadratic)
        self.linear.append(linear)
        return start

    def _box_parts(self, box: Box) -> None:
        n, p = self.problem.n_rows, self.problem.n_outputs
        weight = np.repeat(self.problem.weight, p)
        lower, upper, below, above = (np.tile(a, n) for a in box[:4])
        identity = sparse.eye(n * p, format="csc")
        for sign, curvature, bound in ((1.0, above, upper), (-1.0, below, -lower)):
            for costs_square, chosen in ((True, curvature > 0), (False, np.isfinite(bound))):
                which = np.flatnonzero(chosen)
                if len(which) == 0:
                    continue
                square = weight[which] / curvature[which] if costs_square else 0.0 * weight[which]
                slope = 0.0 * weight[which] if costs_square else weight[which] * bound[which]
                start = self._add(sign * identity[:, which], square, slope)
                positive = -sparse.eye(len(which), format="csc")
                self.inequalities.append((start, positive, np.zeros(len(which))))
                self.cones.append(("NonnegativeConeT", len(which)))

    def _ordered(self, cone: FloatArray) -> None:
        """All of ``cone`` @ residual >= 0, the residuals being the last two parts added."""
        n, p = self.problem.n_rows, self.problem.n_outputs
        start = sum(block.shape[1] for block in self.columns) - 2 * n * p
        each = sparse.kron(sparse.eye(n), cone)
        self.inequalities.append((start, sparse.hstack([-each, each]), np.zeros(each.shape[0])))
        self.cones.append(("NonnegativeConeT", each.shape[0]))

    def _radial_parts(self, curvature: float, radius: float) -> None:
        n, p = self.problem.n_rows, self.problem.n_outputs
        weight = np.repeat(self.problem.weight, p)
        identity = sparse.eye(n * p, format="csc")
        if curvature > 0.0:
            self._add(identity, weight / curvature, np.zeros(n * p))
        if np.isfinite(radius):
            # one variable more for each row, at least the length of its part
            length = sparse.csc_matrix((n * p, n))
            slope = np.concatenate([np.zeros(n * p), radius * self.problem.weight])
            start = self._add(sparse.hstack([identity, length]), np.zeros(n * (p + 1)), slope)
            self._second_order(start, np.zeros(n), with_length=True)

    def _ball(self, epsilon: float) -> None:
        n, p = self.problem.n_rows, self.problem.n_outputs
        start = self._add(sparse.eye(n * p, format="csc"), np.zeros(n * p), np.zeros(n * p))
        self._second_order(start, np.full(n, epsilon), with_length=False)

    def _second_order(self, start: int, length: FloatArray, with_length: bool) -> None:
        """(length_i, part_i) in a second-order cone for each row i."""
        n, p = self.problem.n_rows, self.problem.n_outputs
        heads = np.arange(n) * (p + 1)
        rows = (heads[:, None] + 1 + np.arange(p)).ravel()
        columns = np.arange(n * p)
        if with_length:
            rows = np.concatenate([rows, heads])
            columns = np.concatenate([columns, n * p + np.arange(n)])
        matrix = sparse.csc_matrix((-np.ones(len(rows)), (rows, columns)))
        right = np.zeros(n * (p + 1))
        right[heads] = length
        self.inequalities.append((start, matrix, right))
        self.cones += [("SecondOrderConeT", p + 1)] * n

    def matrices(self) -> tuple[Any, FloatArray, Any, FloatArray]:
        """P, q, A, b of min ½xᵀPx + qᵀx with b - Ax in the cones."""
        problem = self.problem
        equality = sparse.hstack(self.columns, format="csc")
        size = equality.shape[1]
        blocks = [equality]
        shape = (problem.n_rows, problem.n_outputs)
        right = [np.broadcast_to(problem.targets, shape).ravel()]
        for start, matrix, side in self.inequalities:
            left = sparse.csc_matrix((matrix.shape[0], start))
            after = sparse.csc_matrix((matrix.shape[0], size - start - matrix.shape[1]))
            blocks.append(sparse.hstack([left, matrix, after]))
            right.append(side)
        return (
            sparse.diags(np.concatenate(self.quadratic), format="csc"),
            np.concatenate(self.linear),
            sparse.vstack(blocks, format="csc"),
            np.concatenate(right),
        )
