"""Compiled sweeps of coordinate descent, and functions that their solvers share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel._compiling import njit
from fenchel._typing import FloatArray, IntArray
from fenchel.certificate import Certified
from fenchel.losses.compiled import Sides, prox_row
from fenchel.problem import Problem
from fenchel.solvers.base import needs_plain_features
from fenchel.solvers.loop import Iterate

_FLAT = 1e-300
Four = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
Three = tuple[FloatArray, FloatArray, FloatArray]


@dataclass
class State:
    """Dual coefficients a = c β (n, p), their weights w = Φᵀ a S, and multipliers θ."""

    coef: FloatArray
    weights: FloatArray
    theta: FloatArray

    @classmethod
    def of(cls, problem: Problem, dual: FloatArray, offset: FloatArray) -> State:
        """State of a dual point, with all multipliers at the offset."""
        coef = problem.weight[:, None] * dual
        theta = np.broadcast_to(offset, coef.shape).copy()
        return cls(coef, problem.link(dual), theta)


def unsuitable(problem: Problem, block: bool) -> str | None:
    """Return what is missing for compiled coordinate descent, by rows or coordinates, or None."""
    missing = needs_plain_features(problem)
    if missing is not None:
        return missing
    if problem.loss.box(problem.n_outputs) is None:
        return (
            "needs the loss pinball, squared pinball, absolute, squared, Huber with norm 1, or an "
            "epsilon-insensitive version of one of them; solver='newton' takes any loss"
        )
    if not block and not problem.separable:
        return "needs a loss that is a sum over outputs for block=False; use block=True"
    return None


class Sweeps:
    """The compiled sweeps, with the data that do not change between them."""

    def __init__(self, problem: Problem, block: bool = True) -> None:
        box, design = problem.loss.box(problem.n_outputs), problem.design
        assert design.features is not None
        assert design.coupling is not None
        assert box is not None
        self._problem, self._block = problem, block
        self._box: Sides = (*box[:4], box.epsilon)
        self.features, self._coupling = design.features, design.coupling
        curvature = _block_curvature if block else _coordinate_curvature
        self._curvature = curvature(self.features, self._coupling)

    def draw(self, random: np.random.Generator, rows: IntArray | None = None) -> IntArray:
        """Draw as many random rows as a pass has, with replacement, optionally among ``rows``.

        If steps update single coordinates, pairs of a row and an output are drawn.
        """
        n, p = self._problem.n_rows, self._problem.n_outputs
        rows = np.arange(n) if rows is None else rows
        if self._block:
            return rows[random.integers(0, len(rows), len(rows))]
        pairs = random.integers(0, len(rows) * p, len(rows) * p)
        return rows[pairs // p] * p + pairs % p

    def over(
        self,
        state: State,
        order: IntArray,
        targets: FloatArray | None = None,
        penalty: float = 0.0,
    ) -> None:
        """Do one step for each row or coordinate, in this order.

        The offset is free, unless a ``penalty`` is given, with a fixed offset subtracted from
        ``targets``.
        """
        problem, free = self._problem, self._problem.fit_intercept and targets is None
        given = problem.targets if targets is None else targets
        rows = self.features, given, self._coupling, problem.weight
        arrays = state.coef, state.weights, state.theta
        if self._block:
            coupled = self._box[4] > 0.0 and problem.n_outputs > 1
            _sweep(order, rows, self._box, coupled, self._curvature, free, penalty, arrays)
        else:
            _coordinate_sweep(order, rows, self._box, self._curvature, free, penalty, arrays)


def judged(
    problem: Problem, count: int, dual: FloatArray, offset: FloatArray
) -> Iterate[Certified]:
    """Return the certificate of a point, with the best offset if that is exact."""
    return Iterate(count, problem.certify(dual, None if problem.separable else offset))


def _block_curvature(features: FloatArray, coupling: FloatArray) -> FloatArray:
    """Curvature of the quadratic in each row's a_i, (n,)."""
    largest = float(np.linalg.eigvalsh(coupling @ coupling.T)[-1])
    return np.maximum(largest * _squares(features), _FLAT)


def _coordinate_curvature(features: FloatArray, coupling: FloatArray) -> FloatArray:
    """Curvature of the quadratic in each coordinate of a, (n, p)."""
    outputs = np.einsum("jq,jq->j", coupling, coupling)
    return np.maximum(np.outer(_squares(features), outputs), _FLAT)


def _squares(features: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", features, features)


@njit(cache=True, nogil=True)
def _sweep(
    order: IntArray,
    rows: Four,
    box: Sides,
    coupled: bool,
    curvature: FloatArray,
    free_offset: bool,
    penalty: float,
    state: Three,
) -> None:
    """Primal-dual coordinate descent over the rows ``order``, block by block.

    With L_i the curvature of the quadratic in a_i, ν_i = 10 L_i and μ_i = 0.95/(L_i + ν_i).
    The mean of θ + νa in the metric 1/ν is kept as two running sums. Without offset it is
    plain proximal coordinate descent with step 1/(L_i + penalty), the objective having the
    term penalty/2 ||Σ a_i||²; θ must be zero then. ``rows`` are features, targets, coupling and
    weights, ``state`` is a, the weights of the function and θ.
    """
    features, targets, coupling, weight = rows
    coef, weights, theta = state
    n, p = coef.shape
    r, q = weights.shape
    mass = 0.0
    held = np.zeros(p)  # Σ θ_i/ν_i + Σ a_i
    for i in range(n):
        mass += 0.1 / curvature[i]
        for j in range(p):
            held[j] += 0.1 * theta[i, j] / curvature[i] + coef[i, j]
    image = np.empty(q)
    point = np.empty(p)
    slope = np.empty(p)
    bound = np.empty(p)
    common = targets.shape[1] == 1
    for i in order:
        image[:] = 0.0
        for k in range(r):
            for m in range(q):
                image[m] += features[i, k] * weights[k, m]
        step = 0.95 / (11.0 * curvature[i]) if free_offset else 1.0 / (curvature[i] + penalty)
        for j in range(p):
            gradient = -targets[i, 0 if common else j]
            for m in range(q):
                gradient += coupling[j, m] * image[m]
            if free_offset:
                gradient += 2.0 * held[j] / mass - theta[i, j]
            else:
                gradient += penalty * held[j]
            point[j] = (coef[i, j] - step * gradient) / weight[i]
        prox_row(point, step / weight[i], box, coupled, slope, bound)
        image[:] = 0.0
        for j in range(p):
            if free_offset:
                mean = held[j] / mass
                held[j] += 0.1 * (mean - theta[i, j]) / curvature[i]
                theta[i, j] = mean
            change = weight[i] * point[j] - coef[i, j]
            held[j] += change
            coef[i, j] += change
            for m in range(q):
                image[m] += change * coupling[j, m]
        for k in range(r):
            for m in range(q):
                weights[k, m] += features[i, k] * image[m]


@njit(cache=True, nogil=True)
def _coordinate_sweep(
    order: IntArray,
    rows: Four,
    box: Sides,
    curvature: FloatArray,
    free_offset: bool,
    penalty: float,
    state: Three,
) -> None:
    """As :func:`_sweep`, one coordinate i * p + j of ``order`` at a time."""
    features, targets, coupling, weight = rows
    coef, weights, theta = state
    lower, upper, below, above, epsilon = box
    n, p = coef.shape
    r, q = weights.shape
    mass = np.zeros(p)
    held = np.zeros(p)
    for i in range(n):
        for j in range(p):
            mass[j] += 0.1 / curvature[i, j]
            held[j] += 0.1 * theta[i, j] / curvature[i, j] + coef[i, j]
    point = np.empty(1)
    slope = np.empty(1)
    bound = np.empty(1)
    common = targets.shape[1] == 1
    for index in order:
        i, j = index // p, index % p
        gradient = -targets[i, 0 if common else j]
        for k in range(r):
            for m in range(q):
                gradient += features[i, k] * weights[k, m] * coupling[j, m]
        step = 1.0 / (curvature[i, j] + penalty)
        if not free_offset:
            gradient += penalty * held[j]
        else:
            step = 0.95 / (11.0 * curvature[i, j])
            mean = held[j] / mass[j]
            gradient += 2.0 * mean - theta[i, j]
            held[j] += 0.1 * (mean - theta[i, j]) / curvature[i, j]
            theta[i, j] = mean
        point[0] = (coef[i, j] - step * gradient) / weight[i]
        mine = slice(j, j + 1)
        own = lower[mine], upper[mine], below[mine], above[mine], epsilon
        prox_row(point, step / weight[i], own, False, slope, bound)
        change = weight[i] * point[0] - coef[i, j]
        held[j] += change
        coef[i, j] += change
        for k in range(r):
            for m in range(q):
                weights[k, m] += change * features[i, k] * coupling[j, m]
