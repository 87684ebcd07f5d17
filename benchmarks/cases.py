"""The numbers that the project promises."""

from __future__ import annotations

import importlib.util
import time
import warnings
from functools import partial

import numpy as np

from benchmarks import (
    cluster,
    conformal,
    first_fits,
    functional,
    lasso,
    leave_one_out,
    online,
    positive,
    ridge,
    rough,
    small_and_long,
)
from benchmarks.harness import Row, in_process, timed
from benchmarks.peers import clarabel_low_rank, cvxopt_dual
from fenchel import QuantileRegressor
from fenchel.datasets import make_heavy_tails, make_sine_quantiles
from fenchel.design import Plain
from fenchel.features import KernelRowLimits, PivotedCholesky, fit_feature_map
from fenchel.kernels import DistanceQuantile, Gaussian, level_coupling, resolve
from fenchel.losses import Pinball
from fenchel.problem import Problem
from fenchel.solvers import Newton, WarmStart

LEVELS = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
WIDTH = DistanceQuantile(0.7)
ALPHA = 5e-6
TOL = 1e-6
STEP = 10 ** (5 / 49)  # a path of 50 alphas over five decades


def quantiles(
    alpha: float = ALPHA, levels: object = LEVELS, gamma: float = 1e-2
) -> QuantileRegressor:
    """The estimator of the benchmark on data S."""
    kernel = Gaussian(WIDTH)
    return QuantileRegressor(levels, alpha=alpha, level_gamma=gamma, kernel=kernel, tol=TOL)


def sine_against_general_solvers(slow: bool) -> list[Row]:
    """Data S, n = 2000: ours with the feature map against peers on the same problem."""
    n = 2000
    X, y, _ = make_sine_quantiles(n, random_state=0)
    ours, model = timed(lambda: quantiles().fit(X, y), repeats=15)
    gap = model.certificate_.relative_gap
    problem = Problem(
        loss=Pinball(LEVELS),
        design=Plain(
            PivotedCholesky(resolve(Gaussian(WIDTH), X)).fit_transform(X),
            level_coupling(LEVELS, 1e-2),
        ),
        targets=y[:, None],
        sample_weight=np.ones(n),
        alpha=ALPHA,
    )
    rows = [Row("data S, n=2000, 5 levels: fit", ours, "s", "-", None, f"gap {gap:.0e}")]
    theirs, (value, status) = timed(lambda: clarabel_low_rank(problem, LEVELS), repeats=3)
    excess = (ALPHA * value - model.certificate_.dual) / problem.baseline
    note = f"Clarabel {theirs:.2f} s, {status}, above our dual by {excess:.0e}"
    ratio = theirs / ours
    rows.append(Row("  faster than Clarabel, low-rank", ratio, "x", ">= 20 x", ratio >= 20, note))
    case = "  faster than CVXOPT's QP on the dual"
    if not slow or importlib.util.find_spec("cvxopt") is None:
        reason = "run with --slow" if not slow else "cvxopt is not installed"
        rows.append(Row(case, np.nan, "x", ">= 1000 x", None, f"not run: {reason}"))
        return rows
    started = time.perf_counter()
    dual = cvxopt_dual(problem, LEVELS)
    theirs = time.perf_counter() - started
    certificate = problem.certify(dual).certificate
    note = f"CVXOPT {theirs:.0f} s (one run), relative gap {certificate.relative_gap:.0e}"
    rows.append(Row(case, theirs / ours, "x", ">= 1000 x", theirs / ours >= 1000, note))
    return rows


_MILLION = """
import json, resource, time
from benchmarks.cases import quantiles
from fenchel.datasets import make_sine_quantiles
X, y, _ = make_sine_quantiles(60_000, random_state=1)
quantiles().fit(X, y)
X, y, _ = make_sine_quantiles({n}, random_state=0)
started = time.perf_counter()
model = quantiles().fit(X, y)
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
gap = model.certificate_.relative_gap
print(json.dumps(dict(seconds=seconds, peak=peak, gap=gap, steps=model.n_iter_)))
"""


def sine_growth(slow: bool) -> list[Row]:
    """Data S up to a million rows: time and memory, each size in a process of its own."""
    rows = []
    seconds = {}
    for n in (10_000, 100_000, 1_000_000):
        runs = [in_process(_MILLION.format(n=n)) for _ in range(3)]
        result = sorted(runs, key=lambda run: run["seconds"])[1]
        seconds[n] = result["seconds"]
        note = f"gap {result['gap']:.0e}, {result['steps']:.0f} Newton steps"
        million = n == 1_000_000
        target = "<= 10 s" if million else "-"
        reached = result["seconds"] <= 10 if million else None
        rows.append(Row(f"data S, n={n}: fit", result["seconds"], "s", target, reached, note))
    growth = seconds[1_000_000] / seconds[100_000]
    rows.append(Row("  time at n=10^6 over n=10^5", growth, "x", "about 10 x", growth <= 12))
    floor = seconds[1_000_000] / 1.0
    rows.append(Row("  over the floor of about 1 s", floor, "x", "report", None))
    peak = max(run["peak"] for run in runs)
    rows.append(Row("  peak memory at n=10^6", peak, "GiB", "<= 3 GiB", peak <= 3))
    return rows


_TWO = """
import json, time
from statistics import median
from threadpoolctl import threadpool_limits
from benchmarks.cases import quantiles
from fenchel.datasets import make_sine_quantiles
X, y, _ = make_sine_quantiles(1_000_000, random_state=0)
seconds = {1: [], 2: []}
for turn in range(12):
    for number in (1, 2):
        with threadpool_limits(number, user_api="blas"):
            started = time.perf_counter()
            quantiles().fit(X, y)
            seconds[number].append(time.perf_counter() - started)
pairs = list(zip(seconds[1], seconds[2]))[1:]
ratio = median(one / two for one, two in pairs)
print(json.dumps(dict(two=median(two for _, two in pairs), ratio=ratio)))
"""


def two_cores(slow: bool) -> list[Row]:
    """Data S, a million rows: one and two threads in turn, medians without the first pair."""
    found = in_process(_TWO)
    two, ratio = found["two"], found["ratio"]
    case = "data S, n=1000000, two threads: fit"
    return [
        Row(case, two, "s", "<= 1.3 s", two <= 1.3),
        Row("  faster than one", ratio, "x", ">= 1.7 x", ratio >= 1.7),
    ]


def heavy_tails(slow: bool) -> list[Row]:
    """Data H, one level, rank n."""
    n = 2000
    X, y = make_heavy_tails(n, random_state=0)
    rows = []
    for C, limit in ((1, 1.0), (100, 3.0)):
        model = quantiles(alpha=1 / (C * n), levels=0.5)
        seconds, fit = timed(partial(model.fit, X, y), repeats=5)
        note = f"gap {fit.certificate_.relative_gap:.0e}, rank {fit.feature_map_.rank_}"
        case = f"data H, n={n}, one level, C={C}: fit"
        rows.append(Row(case, seconds, "s", f"<= {limit:g} s", seconds <= limit, note))
    return rows


def small_fits(slow: bool) -> list[Row]:
    """What cross-validation is made of: cold fits, and warm starts along alpha."""
    rows = []
    for name, make in (("S", make_sine_quantiles), ("H", make_heavy_tails)):
        for n in (100, 500):
            X, y = make(n, random_state=0)[:2]
            for C in (1.0, 100.0):
                cold, _ = timed(partial(quantiles(1 / (C * n)).fit, X, y), repeats=9)
                warm, steps = _warm(X, y, C)
                case = f"data {name}, n={n}, 5 levels, C={C:g}"
                rows.append(
                    Row(f"{case}: cold fit", 1e3 * cold, "ms", "about 50 ms", cold <= 0.05)
                )
                note = f"solve from the solution for C={C / STEP:.3g}, {steps} steps"
                reached = warm <= 0.01
                rows.append(Row("  warm start", 1e3 * warm, "ms", "about 10 ms", reached, note))
    return rows


def _warm(X: np.ndarray, y: np.ndarray, C: float) -> tuple[float, int]:
    n = len(X)
    kernel = resolve(Gaussian(WIDTH), X)
    limits = KernelRowLimits(10_000, 0)
    feature_map, features = fit_feature_map("auto", kernel, None, None, X, limits)

    def problem(strength: float) -> Problem:
        design = feature_map.design(features, level_coupling(LEVELS, 1e-2))
        return Problem(Pinball(LEVELS), design, y[:, None], np.ones(n), 1 / (strength * n))

    start = Newton(tol=TOL).solve(problem(C / STEP))
    warm_start = WarmStart(start.dual, start.offset, STEP / (C * n))
    seconds, solution = timed(lambda: Newton(tol=TOL).solve(problem(C), warm_start), repeats=9)
    return seconds, solution.n_iter


_IMPORT = """
import json, time
started = time.perf_counter()
{statement}
print(json.dumps(dict(seconds=time.perf_counter() - started)))
"""


def import_time(slow: bool) -> list[Row]:
    """Import of an estimator against that of scikit-learn's, in turn, in fresh processes."""
    pair = ("from fenchel import SVR", "from sklearn.svm import SVR")
    ratios = []
    for _ in range(7):
        ours, theirs = (in_process(_IMPORT.format(statement=each))["seconds"] for each in pair)
        ratios.append(ours / theirs)
    ratio = float(np.median(ratios))
    case = "import fenchel's SVR / sklearn's"
    return [Row(case, ratio, "x", "<= 1.5 x", ratio <= 1.5, "median of 7 pairs")]


CASES = {
    "sine": sine_against_general_solvers,
    "growth": sine_growth,
    "threads": two_cores,
    "cluster": cluster.against_threads,
    "heavy": heavy_tails,
    "rough": rough.quantiles_and_expectiles,
    "svr": rough.support_vectors,
    "defaults": first_fits.defaults,
    "first": first_fits.support_vectors,
    "levels": first_fits.three_levels,
    "path": rough.path,
    "ridge": ridge.against_scikit_learn,
    "predictions": ridge.predictions,
    "lasso": lasso.against_scikit_learn,
    "loo": leave_one_out.kernel_ridge,
    "conformal": conformal.cross_validated,
    "online": online.learners,
    "density": positive.densities,
    "functional": functional.curves,
    "small": small_fits,
    "long": small_and_long.fits,
    "import": import_time,
}


def run(names: list[str], slow: bool) -> list[Row]:
    """Run the named cases."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in names:
            rows += CASES[name](slow)
    return rows
