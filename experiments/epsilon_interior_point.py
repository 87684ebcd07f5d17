"""The dual problem (P5) handed to CVXOPT in the two ways of the paper, where it is installed.

Minimize ½ Σ_ij <α_i, C k_ij B α_j> - Σ_i <α_i, y_i> + ε Σ_i ||α_i|| with τ - 1 <= α_i <= τ and
Σ_i α_i = 0. The norms are second-order cones (CONEQP), or ½ (||α_i||²/μ_i + μ_i) with alternate
minimization in α and μ (QP). CVXOPT is licensed under the GPL: it is used if it is there, and
nothing depends on it.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fenchel.losses import Pinball
from fenchel.problem import Problem

_SMALLEST = 1e-8  # of μ: rows at zero would stay there for ever


def available() -> bool:
    """Whether CVXOPT is installed."""
    return importlib.util.find_spec("cvxopt") is not None


class Iterate(NamedTuple):
    """Where a solver stands after some seconds."""

    dual: np.ndarray
    offset: np.ndarray
    seconds: float


class Dual:
    """Matrices of the dual in the variables α, row by row."""

    def __init__(self, problem: Problem) -> None:
        import cvxopt

        self.cvxopt = cvxopt
        loss = problem.loss
        assert isinstance(loss, Pinball)
        n, p = len(problem.targets), problem.n_outputs
        self.shape, self.epsilon = (n, p), loss.epsilon
        output = problem.design.coupling @ problem.design.coupling.T
        strength = problem.weight[0]
        self.quadratic = strength * np.kron(
            problem.design.features @ problem.design.features.T, output
        )
        self.linear = -np.broadcast_to(problem.targets, (n, p)).ravel()
        self.bounds = np.concatenate([np.tile(loss.levels, n), np.tile(1.0 - loss.levels, n)])
        self.sums = np.tile(np.eye(p), n)

    def _matrix(self, array: np.ndarray) -> Any:
        return self.cvxopt.matrix(np.ascontiguousarray(array, dtype=float))

    def _sparse(self, array: np.ndarray) -> Any:
        rows, columns = np.nonzero(array)
        values = array[rows, columns]
        return self.cvxopt.spmatrix(values, rows.tolist(), columns.tolist(), array.shape)

    def _solve(
        self, max_iter: int, quadratic: np.ndarray, *arguments: Any, **more: Any
    ) -> Iterate:
        """Point, offset and seconds after at most so many iterations, of whatever quality."""
        options = {"show_progress": False, "maxiters": max_iter}
        started = time.perf_counter()
        result = self.cvxopt.solvers.coneqp(
            self._matrix(quadratic), *arguments, **more, options=options
        )
        seconds = time.perf_counter() - started
        # the multiplier of the constraint on the sums is the offset
        return Iterate(np.array(result["x"]).ravel(), np.array(result["y"]).ravel(), seconds)

    def conic(self, max_iter: int) -> Iterate:
        """Second-order cones, one variable t_i >= ||α_i|| more for each row."""
        n, p = self.shape
        size = n * p
        box = np.hstack([np.vstack([np.eye(size), -np.eye(size)]), np.zeros((2 * size, n))])
        cones = np.zeros((n, p + 1, size + n))
        cones[np.arange(n), 0, size + np.arange(n)] = -1.0
        for j in range(p):
            cones[np.arange(n), 1 + j, p * np.arange(n) + j] = -1.0
        whole = np.zeros((size + n, size + n))
        whole[:size, :size] = self.quadratic
        left = np.vstack([box, cones.reshape(-1, size + n)])
        found = self._solve(
            max_iter,
            whole,
            self._matrix(np.concatenate([self.linear, np.full(n, self.epsilon)])),
            self._sparse(left),
            self._matrix(np.concatenate([self.bounds, np.zeros(n * (p + 1))])),
            {"l": 2 * size, "q": [p + 1] * n, "s": []},
            self._sparse(np.hstack([self.sums, np.zeros((p, n))])),
            self._matrix(np.zeros(p)),
        )
        return found._replace(dual=found.dual[:size].reshape(self.shape))

    def alternating(self) -> Iterator[Iterate]:
        """The state after each quadratic program."""
        n, p = self.shape
        size = n * p
        left = self._sparse(np.vstack([np.eye(size), -np.eye(size)]))
        sums, zero = self._sparse(self.sums), self._matrix(np.zeros(p))
        linear, bounds = self._matrix(self.linear), self._matrix(self.bounds)
        weights, spent = np.ones(n), 0.0
        while True:
            penalty = np.diag(np.repeat(self.epsilon / weights, p))
            found = self._solve(
                100, self.quadratic + penalty, linear, left, bounds, A=sums, b=zero
            )
            spent += found.seconds
            dual = found.dual.reshape(self.shape)
            weights = np.maximum(np.linalg.norm(dual, axis=1), _SMALLEST)
            yield Iterate(dual, found.offset, spent)
