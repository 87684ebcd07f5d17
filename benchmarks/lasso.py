"""The Lasso beside scikit-learn's, at the same accuracy on the same problem."""

from __future__ import annotations

from functools import partial
from statistics import median

import numpy as np
from sklearn.linear_model import Lasso as ScikitLasso

from benchmarks.harness import Row, in_turn
from fenchel import Lasso

TOL = 1e-6
# rows, columns, share of the largest strength
SIZES = ((500, 5000, 0.1), (5000, 500, 0.01), (20_000, 200, 0.01))


def against_scikit_learn(slow: bool) -> list[Row]:
    """Whole calls of ``fit``, ours with its certificate, in turn."""
    rows = []
    for n, d, share in SIZES:
        X, y = _data(n, d)
        alpha = share * np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / n
        # scikit-learn's tolerance is relative to twice our unit
        theirs = ScikitLasso(alpha, tol=0.5 * TOL, max_iter=10_000)
        ours = Lasso(alpha, tol=TOL)
        calls = [partial(m.fit, X, y) for m in (ours, theirs)]
        seconds = [own[1:] for own in in_turn(calls, repeats=16)]  # the first ones load code
        ratio = median(a / b for a, b in zip(*seconds, strict=True))
        note = (
            f"{1e3 * median(seconds[0]):.1f} ms, gap {ours.certificate_.relative_gap:.0e}, "
            f"{len(ours.selected_)} columns, difference "
            f"{np.abs(ours.coef_ - theirs.coef_).max():.0e}"
        )
        case = f"Lasso, {n} rows, {d} columns: fit / scikit-learn's"
        rows.append(Row(case, ratio, "x", "<= 1.2 x", ratio <= 1.2, note))
    return rows


def _data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.standard_normal((n, d)) + 0.5 * random.standard_normal((n, 1))
    w = np.where(np.arange(d) < 20, 1.0, 0.0)
    return X, X @ w + random.standard_normal(n)
