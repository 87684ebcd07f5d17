"""Online learners beside plain loops over the rows, on one core."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Row, timed
from fenchel.datasets import make_heavy_tails
from fenchel.kernels import Gaussian
from fenchel.online import OnlineSVR, WidrowHoff

C, EPSILON, STEP, WIDTH = 1.0, 0.1, 0.5, 3.0


def learners(slow: bool) -> list[Row]:
    """A million steps of Widrow and Hoff, and support vectors against their pseudocode."""
    return [_widrow_hoff(), *(_support_vectors(n) for n in (2000, 5000, 10_000))]


def _widrow_hoff() -> Row:
    random = np.random.default_rng(0)
    X = random.standard_normal((1_000_000, 20))
    y = X @ random.standard_normal(20) + 0.1 * random.standard_normal(len(X))
    seconds, model = timed(lambda: WidrowHoff(1e-3).partial_fit(X, y), repeats=5)
    case = "Widrow-Hoff, 10^6 rows, 20 columns: partial_fit"
    note = f"R² {model.score(X[:1000], y[:1000]):.4f}"
    return Row(case, seconds, "s", "<= 1 s", seconds <= 1.0, note)


def _support_vectors(n: int) -> Row:
    X, y = make_heavy_tails(n, random_state=0)
    theirs, plain = timed(lambda: pseudocode(X, y), repeats=3)
    model = OnlineSVR(C, epsilon=EPSILON, kernel=Gaussian(WIDTH), step=STEP, fit_intercept=False)

    def ours() -> Any:
        vars(model).pop("t_", None)  # forget what was learned
        return model.partial_fit(X, y)

    seconds, model = timed(ours, repeats=7)
    ratio = theirs / seconds
    apart = np.abs(model.dual_coef_ - plain[plain != 0.0]).max()
    note = (
        f"{1e6 * seconds / n:.2f} μs per row, theirs {1e6 * theirs / n:.0f} μs, "
        f"{len(model.support_vectors_)} points, difference {apart:.0e}"
    )
    case = f"online SVR, data H, n={n}: faster than the pseudocode"
    return Row(case, ratio, "x", ">= 20 x", ratio >= 20.0, note)


def pseudocode(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Figure 11.8 row by row, with kernel values by NumPy; returns α' - α."""
    n = len(X)
    up, down = np.zeros(n), np.zeros(n)
    for t in range(n):
        # row t itself has no coefficient yet
        values = np.exp(((X[:t] - X[t]) ** 2).sum(axis=1) / (-2.0 * WIDTH**2))
        guess = (up[:t] - down[:t]) @ values
        up[t] += min(max(STEP * (y[t] - guess - EPSILON), -up[t]), C - up[t])
        down[t] += min(max(STEP * (guess - y[t] - EPSILON), -down[t]), C - down[t])
    return up - down
