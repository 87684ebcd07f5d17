"""Densities that are non-negative models: time, certificates and integrals."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness import Row, in_process, timed
from fenchel.positive import DensityEstimator

TOL = 1e-6

_FIT = """
import json, resource, time
import numpy as np
from benchmarks.positive import mixture, off_one
from fenchel.positive import DensityEstimator
DensityEstimator().fit(mixture(200, 1))
X = mixture({n}, 0)
started = time.perf_counter()
density = DensityEstimator(tol=1e-6, learn={learn}).fit(X)
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
gap, steps = density.certificate_.relative_gap, density.n_iter_
exact, rule = off_one(density)
print(json.dumps(dict(seconds=seconds, peak=peak, gap=gap, steps=steps, exact=exact, rule=rule,
                      rank=density.rank_, features=density.feature_map_.rank_)))
"""


def mixture(n: int, seed: int) -> np.ndarray:
    """Two normal distributions of variance 0.3 around -1 and 1, the paper's example."""
    random = np.random.default_rng(seed)
    side = np.where(random.random(n) < 0.5, -1.0, 1.0)
    return (side + np.sqrt(0.3) * random.standard_normal(n))[:, None]


def off_one(density: DensityEstimator) -> tuple[float, float]:
    """How far the integral is from one, in closed form and by quadrature on pieces."""
    cuts = np.linspace(-15.0, 15.0, 61)
    pieces = [
        quad(lambda x: density.model_([[x]])[0], a, b, epsabs=1e-11)[0] for a, b in pairwise(cuts)
    ]
    return abs(density.integral() - 1.0), abs(sum(pieces) - 1.0)


def densities(slow: bool) -> list[Row]:
    """The one-dimensional example of the paper, each size in a process of its own."""
    rows = []
    sizes = {500: 0.5, 10_000: 1.0} | ({100_000: 2.5, 1_000_000: 30.0} if slow else {})
    for n, limit in sizes.items():
        runs = [in_process(_FIT.format(n=n, learn=False)) for _ in range(3)]
        result = sorted(runs, key=lambda run: run["seconds"])[1]
        seconds, gap = result["seconds"], max(run["gap"] for run in runs)
        note = (
            f"gap {gap:.0e}, {result['steps']:.0f} Newton steps, "
            f"rank {result['rank']:.0f} of {result['features']:.0f}"
        )
        reached = seconds <= limit and gap <= TOL
        case = f"density, mixture in 1 dimension, n={n}: fit"
        rows.append(Row(case, seconds, "s", f"<= {limit:g} s", reached, note))
        learned = in_process(_FIT.format(n=n, learn=True))["seconds"]
        rows.append(Row("  with its width learned, the default", learned, "s", "-", None))
        exact, rule = result["exact"], result["rule"]
        rows.append(Row("  |integral - 1| in closed form", exact, "", "<= 1e-8", exact <= 1e-8))
        rows.append(Row("  |integral - 1| by quadrature", rule, "", "<= 1e-6", rule <= 1e-6))
        if n >= 100_000:
            peak = max(run["peak"] for run in runs)
            rows.append(Row("  peak memory", peak, "GiB", "<= 2 GiB", peak <= 2.0))
    if not slow:
        reason = "not run: run with --slow"
        for n, limit in ((100_000, 2.5), (1_000_000, 30.0)):
            rows.append(Row(f"density, n={n}: fit", np.nan, "s", f"<= {limit:g} s", None, reason))
    return rows + against_the_papers_method()


def against_the_papers_method() -> list[Row]:
    """FISTA on the dual, which the paper uses, on the same problem until the same gap."""
    X = mixture(500, 0)
    rows = []
    warnings.simplefilter("ignore", ConvergenceWarning)  # the note says how far it got
    for alpha in (1e-2, 1e-4):
        given = {"alpha": alpha, "trace_penalty": alpha, "learn": False}
        ours, _ = timed(lambda g=given: DensityEstimator(**g).fit(X), repeats=5)
        slow = DensityEstimator(**given, solver="fista", tol=1e-3, max_iter=1000)
        theirs, fit = timed(lambda s=slow: s.fit(X), repeats=1, warm_up=0)
        gap = fit.certificate_.relative_gap
        note = f"FISTA {theirs:.2f} s, {fit.n_iter_} steps to a gap of {gap:.0e}"
        note += f"; Newton {ours:.3f} s to 1e-6"
        case = f"  FISTA / Newton at n=500, alpha={alpha:g}"
        rows.append(Row(case, theirs / ours, "x", "-", None, note))
    return rows
