"""Primal-dual coordinate descent, the algorithm of the papers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.losses import BoxQuadratic
from fenchel.problem import Problem
from fenchel.solvers.base import Callback, Solution, WarmStart, needs_plain_features
from fenchel.solvers.coordinates import (
    Record,
    State,
    block_curvature,
    coordinate_curvature,
    pdcd_coordinate_sweep,
    pdcd_sweep,
    unsuitable,
)

_SWEEPS_BETWEEN = 10  # sweeps over the active rows before all are looked at again


@dataclass(frozen=True)
class PDCD:
    r"""Randomized primal-dual coordinate descent with the intercept's constraint dualized.

    For a random row i, with L_i the curvature of the dual objective in its block,
    ν_i = 10 L_i and μ_i = 0.95/(L_i + ν_i):

    .. math:: \bar\theta &= \operatorname{mean}_{1/\nu}(\theta + \nu \alpha), \\
              d_i &= \nabla_i s(\alpha) + 2 \bar\theta - \theta_i, \\
              \alpha_i &\leftarrow \operatorname{prox}_{\mu_i (c_i \ell)^*}(\alpha_i - \mu_i d_i),
              \qquad \theta_i \leftarrow \bar\theta

    A step costs r q operations, as w = Φᵀ α S is held. It needs many passes where the kernel
    is ill-conditioned; ``Newton`` is the faster choice nearly always.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Limit on the number of passes over the rows.
    block : bool
        Whether a step moves a whole row (2017) or one coordinate of it (2016); the latter
        needs a loss without coupling of the outputs.
    active_set : bool
        Whether rows that satisfy their optimality condition strictly, at zero or with all
        coordinates at a bound, are set aside for some passes (2017, section 6.3).
    random_state : int
        Seed of the order.

    References
    ----------
    Sangnier, Fercoq, d'Alché-Buc (2016), Algorithm 1; (2017), Algorithm 1 and section 6.3,
    with the step sizes and condition 2 corrected.
    """

    takes_gram: ClassVar[bool] = False
    tol: float = 1e-6
    max_iter: int = 10_000
    block: bool = True
    active_set: bool = True
    random_state: int = 0

    def requires(self, problem: Problem) -> str | None:
        """Return None for box losses, else a sentence on what is missing."""
        missing = needs_plain_features(problem)
        if missing is not None:
            return missing
        if not self.block and unsuitable(problem) is None and not problem.separable:
            return "needs a loss without coupling of the outputs for block=False; use block=True"
        return unsuitable(problem)

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the best certified point."""
        n, p = problem.rows.n_rows, problem.n_outputs
        record = Record(problem, self.tol, callback)
        if warm_start is None:
            state = State.of(problem, np.zeros((n, p)), problem.best_constant)
        else:
            state = State.of(problem, problem.feasible(warm_start.dual), warm_start.offset)
        random = np.random.default_rng(self.random_state)
        curvature = (block_curvature if self.block else coordinate_curvature)(problem)
        passes, done = 0.0, 0
        active = np.arange(n)
        while not record.judge(
            done, state.alpha / problem.weight[:, None], state.theta.mean(axis=0)
        ):
            if passes >= self.max_iter:
                break
            self._sweep(problem, state, curvature, np.asarray(random.integers(0, n, n)), random)
            passes += 1.0
            if self.active_set:
                active = self._active(problem, state)
            for _ in range(_SWEEPS_BETWEEN - 1):
                if len(active):
                    self._sweep(
                        problem, state, curvature, random.choice(active, len(active)), random
                    )
                passes += len(active) / n
            done = int(np.ceil(passes))
        return record.solution(done, "increase max_iter, or use solver='newton'")

    def _sweep(
        self,
        problem: Problem,
        state: State,
        curvature: FloatArray,
        rows: IntArray,
        random: np.random.Generator,
    ) -> None:
        loss = problem.loss
        assert isinstance(loss, BoxQuadratic)
        p = problem.n_outputs
        data = problem.features, problem.targets, problem.coupling, problem.weight
        box = loss.parameters(p)
        free = problem.fit_intercept
        arrays = state.alpha, state.weights, state.theta
        if self.block:
            coupled = loss.epsilon > 0.0 and p > 1
            pdcd_sweep(rows, *data, box, loss.epsilon, coupled, curvature, free, 0.0, *arrays)
        else:
            order = random.permutation((rows[:, None] * p + np.arange(p)).ravel())
            pdcd_coordinate_sweep(order, *data, box, loss.epsilon, curvature, free, *arrays)

    def _active(self, problem: Problem, state: State) -> IntArray:
        """Rows that do not satisfy their optimality condition strictly."""
        loss = problem.loss
        assert isinstance(loss, BoxQuadratic)
        dual = state.alpha / problem.weight[:, None]
        prediction = problem.features @ (state.weights @ problem.coupling.T)
        residual = problem.targets - prediction - state.theta
        lower, upper, _, _ = loss.parameters(problem.n_outputs)
        length = np.linalg.norm(dual, axis=1)
        at_zero = (length == 0.0) & (np.linalg.norm(residual, axis=1) < loss.epsilon)
        # what is left of the residual must push every coordinate against its bound
        pull = loss.epsilon * dual / np.where(length > 0.0, length, 1.0)[:, None]
        pushed = np.where(dual >= upper, residual - pull > 0.0, False)
        pushed |= np.where(dual <= lower, residual - pull < 0.0, False)
        return np.flatnonzero(~(at_zero | pushed.all(axis=1)))
