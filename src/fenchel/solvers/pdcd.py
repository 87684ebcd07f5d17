"""Primal-dual coordinate descent, the algorithm of Sangnier et al. (2016, 2017)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel._validation import BOOLEAN, SEED, declared
from fenchel.certificate import Certified
from fenchel.problem import Problem
from fenchel.solvers.base import LoopSolver, WarmStart, start_of
from fenchel.solvers.coordinates import State, Sweeps, judged, unsuitable
from fenchel.solvers.loop import Iterate

_SWEEPS_BETWEEN = 10  # sweeps over the active rows before all are looked at again


@dataclass(frozen=True)
class PDCD(LoopSolver):
    r"""Randomized primal-dual coordinate descent with the intercept's constraint dualized.

    For a random row i, with L_i the curvature of the dual objective in its block,
    ν_i = 10 L_i and μ_i = 0.95/(L_i + ν_i):

    .. math:: \bar\theta &= \operatorname{mean}_{1/\nu}(\theta + \nu a), \\
              d_i &= \nabla_i s(a) + 2 \bar\theta - \theta_i, \\
              a_i &\leftarrow \operatorname{prox}_{\mu_i (c_i \ell)^*}(a_i - \mu_i d_i),
              \qquad \theta_i \leftarrow \bar\theta

    A step costs r q operations, because w = Φᵀ a S is stored. Many passes are needed if the kernel
    is ill-conditioned. ``Newton`` is nearly always faster.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Maximum number of passes over the rows.
    block : bool
        Whether a step updates a whole row (2017). If False, it updates one coordinate, drawn
        independently (2016), which requires a loss that does not couple the outputs.
    active_set : bool
        Whether rows that strictly satisfy their optimality condition, at zero or with all
        coordinates at a bound, are skipped for some passes (2017, section 6.3).
    random_state : int
        Seed of the random order.

    References
    ----------
    Sangnier, Fercoq, d'Alché-Buc (2016), Algorithm 1; (2017), Algorithm 1 and section 6.3,
    with the step sizes and condition 2 corrected.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.solvers import PDCD
    >>> X, y = load_engel(return_X_y=True)
    >>> model = QuantileRegressor(0.9, learn=False, solver=PDCD(tol=1e-2)).fit(X, y)
    >>> model.status_.converged
    True
    """

    constraints = declared(random_state=SEED, block=BOOLEAN, active_set=BOOLEAN)

    takes_gram: ClassVar[bool] = False
    unit: ClassVar[str] = "passes"
    tol: float = 1e-6
    max_iter: int = 10_000
    block: bool = True
    active_set: bool = True
    random_state: int = 0

    def requires(self, problem: Problem) -> str | None:
        """Return None for box losses, else a sentence that says what is missing."""
        return unsuitable(problem, self.block)

    def _iterates(
        self, problem: Problem, warm_start: WarmStart | None
    ) -> Iterator[Iterate[Certified]]:
        n = problem.n_rows
        state = State.of(problem, *start_of(problem, warm_start)[:2])
        random = np.random.default_rng(self.random_state)
        sweeps = Sweeps(problem, self.block)

        passes = 0.0
        active = np.arange(n)
        while True:
            dual = state.coef / problem.weight[:, None]
            yield judged(problem, int(np.ceil(passes)), dual, state.theta.mean(axis=0))
            if passes >= self.max_iter:
                return
            sweeps.over(state, sweeps.draw(random))
            passes += 1.0
            if self.active_set:
                active = _active(problem, state)
            for _ in range(_SWEEPS_BETWEEN - 1):
                if len(active):
                    sweeps.over(state, sweeps.draw(random, active))
                passes += len(active) / n


def _active(problem: Problem, state: State) -> IntArray:
    """Rows that do not satisfy their optimality condition strictly."""
    box = problem.loss.box(problem.n_outputs)
    assert box is not None
    dual: FloatArray = state.coef / problem.weight[:, None]
    residual = problem.targets - problem.design.values(state.weights) - state.theta
    length = np.linalg.norm(dual, axis=1)
    at_zero = (length == 0.0) & (np.linalg.norm(residual, axis=1) < box.epsilon)
    # what is left of the residual must push every coordinate against its bound
    pull = box.epsilon * dual / np.where(length > 0.0, length, 1.0)[:, None]
    pushed = np.where(dual >= box.upper, residual - pull > 0.0, False)
    pushed |= np.where(dual <= box.lower, residual - pull < 0.0, False)
    return np.flatnonzero(~(at_zero | pushed.all(axis=1)))
