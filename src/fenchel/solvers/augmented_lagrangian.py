"""Augmented Lagrangian for the constraint of the intercept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import BOOLEAN, COUNT, NONE, POSITIVE, SEED, declared
from fenchel.certificate import Certified
from fenchel.problem import Problem
from fenchel.solvers.base import LoopSolver, WarmStart, start_of
from fenchel.solvers.coordinates import State, Sweeps, judged, unsuitable
from fenchel.solvers.loop import Iterate

_SHARE = 10.0  # of the mean diagonal over n: the penalty by default
_OF_THE_GAP = 0.1  # to which the inner problem is solved
_PASSES_BETWEEN = 10  # of the inner solver, before its gap is looked at


@dataclass(frozen=True)
class AugmentedLagrangian(LoopSolver):
    r"""Augmented Lagrangian method: coordinate descent in a box, gradient steps on the offset.

    .. math:: \max_b \min_a\; \tfrac12 \|\Phi^\top a S\|_F^2
              - \sum_i \langle a_i, y_i - b\rangle + \sum_i (c_i \ell)^*(a_i)
              + \tfrac{\mu}{2} \Big\| \sum_i a_i \Big\|^2,
              \qquad b \leftarrow b + \mu \sum_i a_i

    This is the formula of the supplement, with the same α and C = 1 / (alpha n). The algorithm as
    printed is ``AugmentedLagrangian(mu=10.0, inner=None, block=False)``, except that it starts at
    zero and this class at the best constant. The defaults are a variant that needs fewer passes.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Maximum number of passes over the rows.
    mu : float, optional
        Penalty, and step size for the offset, > 0. None is ten times the mean diagonal of the
        kernel divided by n. With 10, as printed, steps of the inner solver are eleven times
        shorter for kernels with diagonal 1: see the page of Table 2 in ``experiments/results``.
    inner : int, optional
        Passes of the inner solver for each step on the offset. None solves the inner problem
        to a tenth of the gap of the whole problem.
    block : bool
        Whether a step of the inner solver updates a whole row. If False, as printed, it updates
        one coordinate, which requires a loss that does not couple the outputs.
    random_state : int
        Seed of the random order.

    References
    ----------
    Sangnier, Fercoq, d'Alché-Buc (2016), appendix C; the inner solver is that of Shalev-Shwartz,
    Zhang (2013), Stochastic dual coordinate ascent.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.solvers import AugmentedLagrangian
    >>> X, y = load_engel(return_X_y=True)
    >>> model = QuantileRegressor(0.9, learn=False, solver=AugmentedLagrangian(tol=1e-3))
    >>> model.fit(X, y).status_.converged
    True
    """

    constraints = declared(
        mu=NONE | POSITIVE, inner=NONE | COUNT, random_state=SEED, block=BOOLEAN
    )

    takes_gram: ClassVar[bool] = False
    unit: ClassVar[str] = "passes"
    tol: float = 1e-6
    max_iter: int = 10_000
    mu: float | None = None
    inner: int | None = 20
    random_state: int = 0
    block: bool = True

    def requires(self, problem: Problem) -> str | None:
        """Return None for box losses with an intercept, else a sentence on what is missing."""
        missing = unsuitable(problem, self.block)
        if missing is None and not problem.fit_intercept:
            return "needs fit_intercept=True; solver='pdcd' takes both"
        return missing

    def _iterates(
        self, problem: Problem, warm_start: WarmStart | None
    ) -> Iterator[Iterate[Certified]]:
        sweeps = Sweeps(problem, self.block)
        random = np.random.default_rng(self.random_state)
        mu = self.mu
        if mu is None:
            squares = float(np.einsum("ij,ij->", sweeps.features, sweeps.features))
            mu = _SHARE * squares / problem.n_rows**2
        dual, offset, _ = start_of(problem, warm_start)
        state = State.of(problem, dual, np.zeros(problem.n_outputs))
        passes = 0
        while True:
            found = judged(problem, passes, state.coef / problem.weight[:, None], offset)
            yield found
            if passes >= self.max_iter:
                return
            enough = _OF_THE_GAP * max(self.tol, found.point.certificate.relative_gap)
            targets, done = np.ascontiguousarray(problem.targets - offset), 0
            while done != self.inner and passes < self.max_iter:
                sweeps.over(state, sweeps.draw(random), targets, mu)
                passes, done = passes + 1, done + 1
                look = self.inner is None and done % _PASSES_BETWEEN == 0
                if look and inner_gap(problem, state, targets, mu) <= enough * problem.baseline:
                    break
            offset = offset + mu * state.coef.sum(axis=0)


def inner_gap(problem: Problem, state: State, targets: FloatArray, mu: float) -> float:
    """Duality gap of the inner problem at a state, in the units of the whole problem.

    The inner problem is the dual of the same problem with an offset μ Σ a, penalized by half its
    square over μ, and with the fixed offset subtracted from ``targets``.
    """
    total = state.coef.sum(axis=0)
    dual = state.coef / problem.weight[:, None]
    residual = targets - problem.design.values(state.weights) - mu * total
    square = problem.design.squared_norm(state.weights) + mu * float(total @ total)
    earned = np.einsum("ij,ij->i", dual, np.broadcast_to(targets, dual.shape))
    earned -= problem.loss.conjugate(dual)
    losses = problem.loss.value(residual) - earned
    return problem.alpha * float(square + problem.weight @ losses)
