"""Leave-one-out of kernel ridge regression over a path of strengths."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import eigh

from benchmarks.harness import Row, timed
from fenchel import KernelRidge
from fenchel.datasets import make_heavy_tails, make_sine_quantiles
from fenchel.kernels import DistanceQuantile, Gaussian, resolve
from fenchel.model_selection import PathSearchCV

N, N_ALPHAS = 2000, 50


def kernel_ridge(slow: bool) -> list[Row]:
    """A whole search, kernel values and final fit included, over one eigendecomposition."""
    X, y = make_heavy_tails(N, random_state=0)
    kernel = resolve(Gaussian(DistanceQuantile(0.7)), X)
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, N)
    many = y[:, None] + rng.normal(size=(N, 3))
    coupling = np.eye(3) + 0.5
    gram = kernel(X)
    unit, _ = timed(lambda: eigh(gram), repeats=5)
    rows = [Row(f"data H, n={N}: scipy.linalg.eigh", unit, "s", "-", None)]
    cases = (
        ("one output", None, y, None),
        ("weights, three coupled outputs", coupling, many, weight),
    )
    for name, matrix, targets, s in cases:
        ridge = KernelRidge(kernel=kernel, coupling=matrix)
        search = PathSearchCV(ridge, {"alpha": N_ALPHAS}, scoring="loo")
        seconds, fit = timed(partial(search.fit, X, targets, sample_weight=s), repeats=5)
        best = fit.best_estimator_
        error = abs(fit.best_score_ + best.loo_error_) / best.loo_error_
        note = f"{seconds:.2f} s, relative difference to the single fit {error:.0e}"
        case, ratio = f"  LOO of {N_ALPHAS} alphas, {name} / eigh", seconds / unit
        rows.append(Row(case, ratio, "x", "<= 3 x", ratio <= 3.0, note))
    model = KernelRidge(1e-5, kernel=kernel).fit(X, y)
    seconds, _ = timed(model._leave_one_out, repeats=3)
    rows.append(Row("  loo_residuals_ of one fit / eigh", seconds / unit, "x", "-", None))
    X, y, _ = make_sine_quantiles(100_000, random_state=0)
    ridge = KernelRidge(kernel=Gaussian(DistanceQuantile(0.7)))
    search = PathSearchCV(ridge, {"alpha": N_ALPHAS}, scoring="loo")
    seconds, _ = timed(lambda: search.fit(X, y), repeats=3)
    rows.append(Row(f"data S, n=100000: LOO of {N_ALPHAS} alphas", seconds, "s", "-", None))
    return rows
