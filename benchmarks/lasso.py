"""The Lasso and the multi-task Lasso beside scikit-learn's, as accurate on the same problem."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

import numpy as np
from sklearn.linear_model import Lasso as ScikitLasso
from sklearn.linear_model import MultiTaskLasso

from benchmarks.harness import Row, in_turn
from fenchel import GroupLasso, Lasso

TOL = 1e-6
# rows, columns, share of the largest strength
SIZES = ((500, 5000, 0.1), (5000, 500, 0.01), (20_000, 200, 0.01))
TASKS = ((200, 1000, 0.1), (200, 1000, 1e-3), (2000, 200, 1e-3))
OUTPUTS = 5


def against_scikit_learn(slow: bool) -> list[Row]:
    """Whole calls of ``fit``, ours with its certificate, in turn."""
    rows = []
    for n, d, share in SIZES:
        X, y = _data(n, d, 1)
        y = y[:, 0]
        alpha = share * np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / n
        ours, theirs = Lasso(alpha, tol=TOL), ScikitLasso(alpha, tol=0.5 * TOL, max_iter=10_000)
        rows.append(_row(f"Lasso, {n} rows, {d} columns", ours, theirs, X, y, 16))
    for n, d, share in TASKS:
        X, Y = _data(n, d, OUTPUTS)
        pull = (X - X.mean(axis=0)).T @ (Y - Y.mean(axis=0))
        alpha = share * np.linalg.norm(pull, axis=1).max() / n
        theirs = MultiTaskLasso(alpha, tol=0.5 * TOL, max_iter=10_000)
        case = f"multi-task Lasso, {n} rows, {d} columns, alpha {share:g} of the largest"
        rows.append(_row(case, GroupLasso(alpha=alpha, tol=TOL), theirs, X, Y, 6))
    return rows


def _row(case: str, ours: Any, theirs: Any, X: np.ndarray, y: np.ndarray, repeats: int) -> Row:
    """Medians of fits in turn; scikit-learn's tolerance is relative to twice our unit."""
    calls = [partial(m.fit, X, y) for m in (ours, theirs)]
    seconds = [own[1:] for own in in_turn(calls, repeats=repeats)]  # the first ones load code
    ratio = median(a / b for a, b in zip(*seconds, strict=True))
    note = (
        f"{1e3 * median(seconds[0]):.1f} ms, gap {ours.certificate_.relative_gap:.0e}, "
        f"{len(ours.selected_)} columns, difference {np.abs(ours.coef_ - theirs.coef_).max():.0e}"
    )
    return Row(f"{case}: fit / scikit-learn's", ratio, "x", "<= 1.2 x", ratio <= 1.2, note)


def _data(n: int, d: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.standard_normal((n, d)) + 0.5 * random.standard_normal((n, 1))
    w = np.where(np.arange(d) < 20, 1.0, 0.0)[:, None]
    return X, X @ w + random.standard_normal((n, outputs))
