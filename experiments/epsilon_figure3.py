"""Figure 3 of Sangnier, Fercoq, d'Alché-Buc (2017): duality gap against time.

Section 7.1 of the paper: the modulated sine with fading noise, levels 0.25, 0.5 and 0.75, kernel
exp(-||x - x'||²/2) times exp(-(τ_i - τ_j)²), 1/(λn) = 100, ε in {0.1, 1, 5}, n in {50, 500}.
Primal-dual coordinate descent with and without active set and interior-point methods, as there,
and the semismooth Newton method. Gaps are exact, where the paper's are relative to the lowest
primal value that was found. ``--splits`` is the number of repetitions, of which the fastest
counts; with more than one process the times are disturbed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from experiments import epsilon_interior_point as interior_point
from experiments import harness
from experiments.epsilon_common import LEVELS, quantile_problem
from experiments.epsilon_figure3_page import METHODS, page, picture
from fenchel.datasets import make_sine_quantiles
from fenchel.features import PivotedCholesky
from fenchel.kernels import Gaussian
from fenchel.problem import Problem
from fenchel.solvers import PDCD, Conic, Newton, Progress

NAME = "epsilon_figure3"
SIZES, EPSILONS = (50, 500), (0.1, 1.0, 5.0)
GAMMA, STRENGTH = 1.0, 100.0
SMALLEST_GAP = 1e-8  # of the regularized mean loss
BUDGET, QUICK_BUDGET = 8.0, 0.2  # seconds
ITERATIONS = (3, 5, 7, 9, 11, 13, 20)  # of interior-point methods
QUICK_ITERATIONS = (4, 8, 16)


def sine_problem(n: int, epsilon: float, low_rank: bool = True) -> Problem:
    """The problem on the first draw of the data for which α = 0 is not optimal at any ε.

    Features are those of a Cholesky factor of low rank, or the n columns of the root of the
    kernel matrix, with which a step of PDCD costs as much as in the paper, a row of length n.
    """
    for seed in itertools.count():
        X, y, _ = make_sine_quantiles(n, levels=LEVELS, random_state=seed)
        if np.ptp(y) * np.sqrt(len(LEVELS)) > 2.0 * max(EPSILONS):
            break
    kernel = Gaussian(length_scale=1.0)
    if low_rank:
        features = PivotedCholesky(kernel=kernel).fit_transform(X)
    else:
        values, vectors = np.linalg.eigh(kernel(X))
        features = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    return quantile_problem(features, y, GAMMA, epsilon, STRENGTH)


def _descent(problem: Problem, active_set: bool, budget: float) -> list[Progress]:
    def enough(progress: Progress) -> bool:
        gap = progress.primal - progress.dual
        return progress.seconds > budget or gap < SMALLEST_GAP

    PDCD(1e-15, 1, active_set=active_set).solve(problem)  # compiles
    return PDCD(1e-15, 10**9, active_set=active_set).solve(problem, None, enough).history


def _history(
    problem: Problem, method: str, budget: float, iterations: Sequence[int]
) -> Iterable[tuple[int, float, float]]:
    """(iteration, seconds, gap) of a method, gaps in units of the regularized mean loss."""
    solved: list[Progress] = []
    if method.startswith("pdcd"):
        solved = _descent(problem, "active" in method, budget)
    elif method == "newton":
        Newton(0.5).solve(problem)
        solved = Newton(1e-12).solve(problem).history
    elif method == "conic":
        Conic(0.5, 1).solve(problem)
        solved = [Conic(1e-9, limit).solve(problem).history[-1] for limit in iterations]
    for progress in solved:
        gap = progress.primal - progress.dual
        yield progress.iteration, progress.seconds, gap
    if method.startswith("cvxopt"):
        dual = interior_point.Dual(problem)
        iterates = map(dual.conic, iterations) if method == "cvxopt_coneqp" else dual.alternating()
        for k, found in enumerate(iterates, start=1):
            gap = problem.certify(found.dual, found.offset).certificate.gap
            yield k, found.seconds, gap
            if method == "cvxopt_qp" and (found.seconds > budget or gap < SMALLEST_GAP):
                break


def measure(
    n: int,
    epsilon: float,
    method: str,
    repetition: int,
    budget: float,
    iterations: Sequence[int],
) -> list[dict[str, Any]]:
    """One run: a record wherever the best gap so far has fallen by a twentieth."""
    records: list[dict[str, Any]] = []
    with threadpool_limits(1):
        problem = sine_problem(n, epsilon, not method.endswith("rows"))
        support = float(np.mean(np.any(Newton(1e-9).solve(problem).dual != 0.0, axis=1)))
        for iteration, seconds, gap in _history(problem, method, budget, iterations):
            if records and gap > 0.95 * records[-1]["gap"]:
                continue
            records.append(
                {
                    "n": n,
                    "epsilon": epsilon,
                    "method": method,
                    "repetition": repetition,
                    "iteration": iteration,
                    "seconds": seconds,
                    "gap": max(gap, 0.0),
                    "support_percent": 100.0 * support,
                }
            )
    return records


def fastest(results: pd.DataFrame) -> pd.DataFrame:
    """The repetitions' least time for each point of each curve."""
    keys = ["n", "epsilon", "method", "iteration"]
    return results.groupby(keys, as_index=False)[["seconds", "gap", "support_percent"]].min()


def main(argv: Sequence[str] | None = None) -> None:
    """Run all methods, then write the table, the picture and the page."""
    asked = harness.arguments(NAME, __doc__, 2, argv)
    methods = [
        name for name in METHODS if not name.startswith("cvxopt") or interior_point.available()
    ]
    sizes = SIZES[:1] if asked.quick else SIZES
    budget = QUICK_BUDGET if asked.quick else BUDGET
    iterations = QUICK_ITERATIONS if asked.quick else ITERATIONS
    tasks = [
        (n, epsilon, method, repetition, budget, iterations)
        for n, epsilon, method, repetition in itertools.product(
            sizes, EPSILONS, methods, range(asked.splits)
        )
        if repetition == 0 or not method.startswith("cvxopt")  # slow, and nobody's contest
    ]
    results = fastest(asked.run(measure, tasks))
    asked.write(results, picture(results), page(results, asked.quick))


if __name__ == "__main__":
    main()
