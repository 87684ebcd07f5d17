"""Curves as outputs: the splitting beside accelerated gradients, in one run to one gap."""

from __future__ import annotations

import time
import warnings
from functools import partial
from statistics import median

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness import Row, in_process, timed
from fenchel.datasets import local_outliers, make_functional
from fenchel.functional import FunctionalRegressor
from fenchel.kernels import BetweenCurves, Gaussian, Laplacian

TOL = 1e-6
ALPHAS = (1e-5, 1e-4, 1e-3)
LOSSES = {
    "square": ("squared", 2),
    "Huber, p=1": ("huber", 1),
    "Huber, p=2": ("huber", 2),
    "insensitive, p=2": ("squared_epsilon_insensitive", 2),
    "insensitive, p=inf": ("squared_epsilon_insensitive", np.inf),
}
# rows, points, seconds asked for, repeats
SIZES = ((100, 100, 0.1, 9), (500, 200, 3.0, 3))
FIRST_FITS = 5
KAPPAS = np.geomspace(10.0, 0.01, 25)


def data(n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Curves of Gaussian processes with noise, a tenth of them with outlying points."""
    X, Y, theta = make_functional(n, n_points=m, noise=0.5, random_state=0)
    return X, local_outliers(Y, share=0.1, random_state=0)[0], theta


def regressor(loss: str = "squared", norm: float = 2, **parameters: object) -> FunctionalRegressor:
    """The estimator of the benchmark; half of the curves' noise is beyond κ and ε."""
    return FunctionalRegressor(
        loss,
        norm,
        kappa=0.5,
        epsilon=0.5,
        center=None,
        kernel=BetweenCurves(Gaussian(1.0)),
        output_kernel=Laplacian(0.1),
        tol=TOL,
        **parameters,
    )


def curves(slow: bool) -> list[Row]:
    """All five losses in two sizes, a large one in few eigenfunctions, and a path of κ."""
    sizes = [(data(n, m), limit, repeats) for n, m, limit, repeats in SIZES]
    rows = [_fit(name, *size, slow) for size in sizes for name in LOSSES]
    return rows + _few_components() + _paths()


def _fit(
    name: str,
    sample: tuple[np.ndarray, np.ndarray, np.ndarray],
    limit: float,
    repeats: int,
    slow: bool,
) -> Row:
    """Slowest of the strengths; accelerated gradients at one of them, or all if ``slow``."""
    n, m = sample[1].shape
    ours, theirs = [], []
    for alpha in ALPHAS:
        model = regressor(*LOSSES[name], alpha=alpha)
        seconds, _ = timed(partial(model.fit, *sample), repeats)
        ours.append((seconds, model.n_iter_, model.certificate_.relative_gap))
        if alpha == ALPHAS[1] or slow:
            model = regressor(*LOSSES[name], alpha=alpha, solver="fista")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                took, _ = timed(partial(model.fit, *sample), repeats=1, warm_up=0)
            gap = model.certificate_.relative_gap
            theirs.append(
                f"FISTA {took:.2g} s, {took / seconds:.0f} x as long, "
                f"{model.n_iter_} steps, gap {gap:.0e}, for alpha={alpha:.0e}"
            )
    seconds, turns, gap = map(max, zip(*ours, strict=True))
    note = "; ".join([f"slowest of {len(ALPHAS)} alphas", f"{turns} turns", f"gap {gap:.0e}"])
    case = f"curves, n={n}, m={m}, {name}: fit"
    reached = seconds <= limit and gap <= TOL
    return Row(case, seconds, "s", f"<= {limit:g} s", reached, "; ".join([note, *theirs]))


_LARGE = """
import json, resource, time
from benchmarks.functional import LOSSES, data, regressor
regressor(*LOSSES[{name!r}], n_components=5).fit(*data(50, 20))
sample = data(2000, 200)
model = regressor(*LOSSES[{name!r}], alpha={alpha}, n_components=30)
started = time.perf_counter()
model.fit(*sample)
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
gap = model.certificate_.relative_gap
print(json.dumps(dict(seconds=seconds, peak=peak, gap=gap, turns=model.n_iter_)))
"""


def _few_components() -> list[Row]:
    """The losses that an eigenbasis can project, each fit in a process of its own."""
    rows, peaks = [], []
    for name, (_, norm) in LOSSES.items():
        if norm != 2:
            continue
        runs = [
            [in_process(_LARGE.format(name=name, alpha=alpha)) for _ in range(FIRST_FITS)]
            for alpha in ALPHAS
        ]
        seconds = max(median(run["seconds"] for run in same) for same in runs)
        turns, gap, peak = (
            max(run[key] for same in runs for run in same) for key in ("turns", "gap", "peak")
        )
        peaks.append(peak)
        note = f"slowest of {len(ALPHAS)} alphas, medians of {FIRST_FITS}"
        note = f"{note}; {turns} turns; gap {gap:.0e}"
        case = f"curves, n=2000, m=200, 30 components, {name}: fit"
        rows.append(Row(case, seconds, "s", "<= 0.5 s", seconds <= 0.5 and gap <= TOL, note))
    peak = max(peaks)
    rows.append(Row("  peak memory", peak, "GiB", "<= 2 GiB", peak <= 2))
    return rows


def _paths() -> list[Row]:
    """25 values of κ, largest first, on one spectrum, each from those before, as in a search.

    Medians of five rounds, of the path and of each fit from scratch, of which the slowest counts.
    """
    rows = []
    for n, m, *_ in SIZES:
        sample = data(n, m)
        for name in ("Huber, p=1", "Huber, p=2"):
            model = regressor(*LOSSES[name], alpha=1e-4)
            _path(model, sample)  # loads what is compiled
            paths, colds = [], []
            for _ in range(5):
                paths.append(_path(model, sample))
                colds.append([_cold(model, sample, kappa) for kappa in KAPPAS])
            path, turns = median(seconds for seconds, _ in paths), paths[0][1]
            seconds, cold_turns = np.moveaxis(np.array(colds), 2, 0)
            cold = np.median(seconds, axis=0)
            ratio = path / cold.max()
            note = (
                f"path {path:.2f} s, {turns} turns; from scratch {cold.sum():.2f} s, "
                f"{cold_turns[0].sum():.0f} turns, slowest {cold.max():.2f} s, medians of 5"
            )
            case = f"curves, n={n}, m={m}, {name}, 25 kappas: path / slowest fit"
            rows.append(Row(case, ratio, "x", "<= 5 x", ratio <= 5, note))
    return rows


def _path(model: FunctionalRegressor, sample: tuple[np.ndarray, ...]) -> tuple[float, int]:
    """Seconds and turns of all fits, with one preparation."""
    started = time.perf_counter()
    prepared, known, turns = model.prepare(*sample), [], 0
    for kappa in KAPPAS:
        model.set_params(kappa=kappa)
        start = _ahead(kappa, known)
        known = [*known[-1:], (kappa, model.fit_prepared(prepared, start))]
        turns += model.n_iter_
    return time.perf_counter() - started, turns


def _cold(
    model: FunctionalRegressor, sample: tuple[np.ndarray, ...], kappa: float
) -> tuple[float, int]:
    """Seconds and turns of one fit from scratch."""
    started = time.perf_counter()
    turns = model.set_params(kappa=kappa).fit(*sample).n_iter_
    return time.perf_counter() - started, turns


def _ahead(kappa: float, known: list[tuple[float, np.ndarray]]) -> np.ndarray | None:
    """Where to start, on the line through the last two solutions."""
    if len(known) < 2:
        return known[0][1] if known else None
    (first, before), (second, last) = known
    share = min((kappa - second) / (second - first), 2.0)
    point = last - before
    point *= share
    point += last
    return point
