"""Kernel ridge regression and predictions against scikit-learn's, in turn, one core."""

from __future__ import annotations

from functools import partial
from statistics import median

import numpy as np
from sklearn.svm import SVR as ScikitSVR

from benchmarks.harness import Row, in_process, in_turn, timed
from fenchel import SVR
from fenchel.datasets import make_heavy_tails
from fenchel.kernels import DistanceQuantile, Gaussian, resolve

WIDTH = DistanceQuantile(0.7)
ALPHA = 1e-4
FALKON_SECONDS = 17.0  # float64, one core of a machine of the same kind, as the goals state it

_FIT = """
import json, resource, time
from benchmarks.ridge import ALPHA, WIDTH
from fenchel import KernelRidge
from fenchel.datasets import make_heavy_tails
from fenchel.kernels import Gaussian, resolve
from sklearn.kernel_ridge import KernelRidge as ScikitRidge
X, y = make_heavy_tails({n}, random_state=0)
kernel = resolve(Gaussian(WIDTH), X[:2000])
if {ours}:
    model = KernelRidge(ALPHA, kernel=kernel).fit(X[:500], y[:500])  # compiled loops are loaded
else:
    model = ScikitRidge(alpha=ALPHA * {n}, gamma=0.5 / kernel.length_scale**2, kernel="rbf")
started = time.perf_counter()
model.fit(X, y)
fit = time.perf_counter() - started
if {ours}:
    model.loo_residuals_
whole = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps(dict(fit=fit, whole=whole, peak=peak)))
"""

_LANDMARKS = """
import json, time, warnings
from benchmarks.ridge import WIDTH
from fenchel import KernelRidge
from fenchel.datasets import make_heavy_tails
from fenchel.kernels import Gaussian, resolve
warnings.simplefilter("ignore")  # 1000 landmarks leave out most of this kernel, and it says so
X, y = make_heavy_tails(100_000, random_state=0)
kernel = resolve(Gaussian(WIDTH), X[:2000])
model = KernelRidge(1e-6, kernel=kernel, features="{features}", rank=1000)
started = time.perf_counter()
model.fit(X, y)
print(json.dumps(dict(seconds=time.perf_counter() - started)))
"""


def against_scikit_learn(slow: bool) -> list[Row]:
    """Fits and leave-one-out residuals, each in a process of its own; fits on landmarks."""
    rows = []
    for n in (5000, 10_000) if slow else (5000,):
        runs: dict[bool, list[dict[str, float]]] = {True: [], False: []}
        for _ in range(3):
            for ours, found in runs.items():
                found.append(in_process(_FIT.format(n=n, ours=ours)))
        fit, whole, peak = (median(run[k] for run in runs[True]) for k in ("fit", "whole", "peak"))
        theirs, their_peak = (median(run[k] for run in runs[False]) for k in ("fit", "peak"))
        note = f"{fit:.2f} s, {peak:.2f} GiB; scikit-learn {theirs:.2f} s, {their_peak:.2f} GiB"
        case, ratio = f"data H, n={n}, KernelRidge: fit / sklearn", fit / theirs
        rows.append(Row(case, ratio, "x", "<= 1 x", ratio <= 1.0, note))
        case, ratio = "  with loo_residuals_ / its fit", whole / theirs
        rows.append(Row(case, ratio, "x", "<= 2 x", ratio <= 2.0))
    for features in ("nystroem", "cholesky") if slow else ():
        seconds = in_process(_LANDMARKS.format(features=features))["seconds"]
        case, limit = f"data H, n=100000, 1000 landmarks, {features}: fit", FALKON_SECONDS / 2
        rows.append(Row(case, seconds, "s", f"<= {limit:g} s", seconds <= limit))
    return rows


def predictions(slow: bool) -> list[Row]:
    """Many rows from 4000 support vectors, and one."""
    n, m = 4000, 50_000
    X, y = make_heavy_tails(n + m, random_state=0)
    width = resolve(Gaussian(WIDTH), X[:n]).length_scale
    ours = SVR(epsilon=0.0, alpha=1 / n, kernel=Gaussian(width)).fit(X[:n], y[:n])
    peer = ScikitSVR(C=1.0, gamma=0.5 / width**2, epsilon=0.0).fit(X[:n], y[:n])
    calls = [partial(model.predict, X[n:]) for model in (ours, peer)]
    mine, theirs = map(median, in_turn(calls, repeats=3))
    note = f"{len(ours.support_)} support vectors, {mine:.2f} s; scikit-learn {theirs:.2f} s"
    case, ratio = f"data H, {m} predictions: faster than sklearn's SVR", theirs / mine
    rows = [Row(case, ratio, "x", ">= 5 x", ratio >= 5.0, note)]
    single, _ = timed(lambda: ours.predict(X[:1]), repeats=300)
    rows.append(Row("  one row", 1e3 * single, "ms", "<= 0.3 ms", single <= 3e-4))
    values = Gaussian(width)(X[n : n + 2000], X[ours.support_]) @ ours.dual_coef_ + ours.offset_
    found = ours.predict(X[n : n + 2000])
    error = float(np.abs(found - values[:, 0]).max() / np.abs(values).max())
    case = "  difference to the product with all kernel values"
    rows.append(Row(case, error, "of the largest", "<= 1e-12", error <= 1e-12))
    return rows
