"""Table 2 of Sangnier, Fercoq, d'Alché-Buc (2017): loss and support vectors against ε.

Section 7.2 of the paper: joint quantile regression at the levels 0.25, 0.5 and 0.75 with the
ε-insensitive pinball loss, on 20 standardized data sets. For each of 10 random splits, 0.7 for
training and 0.3 for testing: kernel k(x, x') B with B = exp(-0.1 (τ_i - τ_j)²) and k Gaussian
whose σ is the 0.7-quantile of the distances between training rows; 1/(λn) from 10 values
between 1e-3 and 1e3 by 3-fold cross-validation of the pinball loss, anew for each ε. A training
row is a support vector if ||α_i||/p > 1e-3 in the normalization of the paper's problem (P5),
where τ - 1 <= α_i <= τ. It is the value of 1/(λn) that is kept from the folds to the final fit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from experiments import harness
from experiments.epsilon_common import LEVELS, Rows, mapped, quantile_problem
from experiments.epsilon_table2_page import page, picture
from experiments.harness import pinball
from fenchel.solvers import Newton, WarmStart

NAME = "epsilon_table2"
EPSILONS = (0.0, 0.05, 0.1, 0.2, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
STRENGTHS = np.geomspace(1e-3, 1e3, 10)  # 1/(λn)
GAMMA = 0.1
SUPPORT = 1e-3
CV_TOL, TOL = 1e-4, 1e-6
QUICK_SETS, QUICK_EPSILONS = ("topo", "CobarOre"), (0.0, 0.2, 1.0, 3.0)


def path_losses(rows: Rows, epsilon: float) -> np.ndarray:
    """Held-out loss along the grid of strengths, every fit starting from the one before."""
    start: WarmStart | None = None
    losses = []
    for strength in STRENGTHS:
        problem = quantile_problem(rows.features, rows.y, GAMMA, epsilon, strength)
        solution = Newton(CV_TOL).solve(problem, start)
        start = WarmStart(solution.dual, solution.offset, problem.alpha)
        losses.append(pinball(rows.new_y, rows.predict(problem, solution), LEVELS))
    return np.array(losses)


def measure(data_set: str, k: int, epsilons: Sequence[float]) -> list[dict[str, Any]]:
    """One split of one data set: a record for each ε."""
    with threadpool_limits(1):
        X, y = harness.standardized(data_set)
        train, test = harness.split(len(y), k)
        folds = [mapped(X, y, train[a], train[b]) for a, b in KFold(3).split(train)]
        whole = mapped(X, y, train, test)
        records = [_fitted(epsilon, folds, whole) for epsilon in epsilons]
    return [{"data_set": data_set, "split": k, **record} for record in records]


def _fitted(epsilon: float, folds: list[Rows], whole: Rows) -> dict[str, Any]:
    """Cross-validate, fit, and judge on the test rows."""
    started = time.perf_counter()
    losses = np.mean([path_losses(rows, epsilon) for rows in folds], axis=0)
    strength = float(STRENGTHS[np.argmin(losses)])
    problem = quantile_problem(whole.features, whole.y, GAMMA, epsilon, strength)
    solution = Newton(TOL).solve(problem)
    length = np.linalg.norm(solution.dual, axis=1)
    # α = 0 is optimal if and only if one offset is within ε of all targets
    zero_optimal = np.ptp(whole.y) * np.sqrt(len(LEVELS)) <= 2.0 * epsilon
    return {
        "epsilon": epsilon,
        "pinball_x100": 100.0 * pinball(whole.new_y, whole.predict(problem, solution), LEVELS),
        "support_percent": 100.0 * float(np.mean(length / len(LEVELS) > SUPPORT)),
        "nonzero_percent": 100.0 * float(np.mean(length > 0.0)),
        "strength": strength,
        "constant_x100": 100.0 * pinball(whole.new_y, np.quantile(whole.y, LEVELS), LEVELS),
        "zero_optimal": bool(zero_optimal),
        "relative_gap": solution.certificate.relative_gap,
        "seconds": round(time.perf_counter() - started, 3),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Run all splits of all data sets, then write the table, the picture and the page."""
    asked = harness.arguments(NAME, __doc__, 10, argv)
    sets = QUICK_SETS if asked.quick else harness.DATA_SETS
    variants = [name for name, variant in harness.VARIANTS.items() if variant.data_set in sets]
    epsilons = QUICK_EPSILONS if asked.quick else EPSILONS
    tasks = [(name, k, epsilons) for k in range(asked.splits) for name in (*sets, *variants)]
    results = asked.run(measure, tasks)
    published = harness.published("epsilon_insensitive_table2")
    asked.write(results, picture(results, published), page(results, published, asked.quick))


if __name__ == "__main__":
    main()
