"""Table 2 of Lambert, Bouche, Szabó, d'Alché-Buc (2022): five losses on the DTI study.

Sections 5.2 and B.3 of the paper: the curve along the right corticospinal tract from the one
along the corpus callosum, first scans of the 100 patients, gaps interpolated; 10 random splits
into 70 for training and 30 for testing; Gaussian input kernel exp(-1.25 ||x - x'||²), Laplacian
output kernel exp(-10 |θ - θ'|), λ in {1e-5, 1e-3}, κ or ε from 50 values by cross-validation.
What the paper leaves open is a ``Reading``: all of them are run with the square loss, and those
of ``IN_FULL`` with all losses. H² and ℓ²_ε are those of projections on eigenfunctions, as in the
paper, and those of whole residuals beside them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from experiments import harness
from experiments.functional_synthetic import RANK
from experiments.functional_table2_dti_page import page, picture
from fenchel.datasets import extend_symmetrically, load_dti
from fenchel.functional import FunctionalRegressor
from fenchel.kernels import BetweenCurves, Gaussian, Laplacian
from fenchel.losses import parameters_of
from fenchel.model_selection import PathSearchCV

NAME = "functional_table2_dti"
ALPHAS = (1e-5, 1e-3)
LOSSES: dict[str, tuple[str, float]] = {
    "square": ("squared", 2),
    "H2": ("huber", 2),
    "H1": ("huber", 1),
    "eps2": ("squared_epsilon_insensitive", 2),
    "epsinf": ("squared_epsilon_insensitive", np.inf),
    "H2 whole": ("huber", 2),
    "eps2 whole": ("squared_epsilon_insensitive", 2),
}
RANGES = {
    "H2": (-4, -1),
    "H1": (-4, -1),
    "eps2": (-3, -1),
    "epsinf": (-3, -0.5),
    "H2 whole": (-4, -1),
    "eps2 whole": (-3, -1),
}  # powers of ten
PROJECTED = {"representation": "projected", "n_components": RANK}
N_CANDIDATES, QUICK_CANDIDATES = 50, 4
N_FOLDS = 5
INPUT_SCALE = np.sqrt(0.5 / 1.25)
OUTPUT_SCALE = 0.1
CV_TOL, TOL = 1e-5, 1e-6


class Reading(NamedTuple):
    """What the paper leaves open."""

    norm: str
    """Of input curves: "euclidean", the plain one of the 93 values, or "L2", by quadrature."""
    center: bool
    """Whether the mean training curve is taken off, and added to predictions."""
    extended: bool
    """Whether training curves get their mirror images before and behind them."""


READINGS = tuple(
    itertools.starmap(Reading, itertools.product(("euclidean", "L2"), *[(True, False)] * 2))
)
CHOSEN = Reading("euclidean", True, True)
IN_FULL = (CHOSEN, Reading("euclidean", True, False))


@cache
def curves() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, outputs with gaps interpolated, and where outputs were observed."""
    options = {"case": 1, "visit": 1}
    data = load_dti(**options, interpolate=True)
    return data.cca, data.rcst, ~np.isnan(load_dti(**options).rcst)


def parameters(reading: Reading, loss: str = "square") -> dict[str, Any]:
    """Parameters of the estimator for a reading, and how curves are seen with a loss."""
    kernel: Any = Gaussian(INPUT_SCALE)
    return {
        "kernel": kernel if reading.norm == "euclidean" else BetweenCurves(kernel),
        "output_kernel": Laplacian(OUTPUT_SCALE),
        "center": "mean" if reading.center else None,
        **(PROJECTED if loss in ("H2", "eps2") else {}),
    }


def on_grid(Y: np.ndarray, extended: bool) -> tuple[np.ndarray, np.ndarray]:
    """Curves and points: [0, 1], or [-1, 2] for curves with their mirror images."""
    m = Y.shape[1]
    if not extended:
        return Y, np.arange(m) / (m - 1)
    return extend_symmetrically(Y[:, ::-1], 3 * m), np.arange(-m, 2 * m) / (m - 1)


def measure(
    reading: Sequence[Any], alpha: float, loss: str, k: int, n_candidates: int
) -> list[dict[str, Any]]:
    """One split: a record for the parameter with the best mean over folds, and the best median."""
    reading, started = Reading(*reading), time.process_time()
    X, Y, observed = curves()
    train, test = harness.split(len(X), k)
    targets, theta = on_grid(Y[train], reading.extended)
    name, norm = LOSSES[loss]
    plain = FunctionalRegressor(name, norm, alpha=alpha, tol=TOL, **parameters(reading, loss))
    records, fits = [], {}
    with threadpool_limits(1):
        chosen: dict[str, Any] = {"mean": {}}
        if loss in RANGES:
            chosen = _chosen(reading, alpha, loss, k, n_candidates, X[train], targets, theta)
        for selection, params in chosen.items():
            value = next(iter(params.values()), 0.0)
            if value not in fits:
                model = clone(plain).set_params(**params).fit(X[train], targets, theta)
                fits[value] = {
                    "parameter": value,
                    **_judged(model, X[test], Y[test], observed[test]),
                }
            split = {"alpha": alpha, "loss": loss, "run": k, "selection": selection}
            seconds, started = time.process_time() - started, time.process_time()
            records.append({**reading._asdict(), **split, **fits[value], "seconds": seconds})
    return records


def _chosen(
    reading: Reading,
    alpha: float,
    loss: str,
    k: int,
    n_candidates: int,
    X: np.ndarray,
    Y: np.ndarray,
    theta: np.ndarray,
) -> dict[str, dict[str, float]]:
    """κ or ε by the mean and by the median over folds."""
    name, norm = LOSSES[loss]
    values = np.logspace(*RANGES[loss], n_candidates)
    (parameter,) = parameters_of(name)
    search = PathSearchCV(
        FunctionalRegressor(name, norm, tol=CV_TOL, **parameters(reading, loss)),
        {"alpha": [alpha], parameter: values},
        cv=KFold(N_FOLDS, shuffle=True, random_state=k),
        refit=False,
    ).fit(X, Y, theta=theta)
    results = search.cv_results_
    folds = np.array([results[f"split{fold}_test_score"] for fold in range(N_FOLDS)])
    best = {"mean": search.best_index_, "median": int(np.argmax(np.median(folds, axis=0)))}
    return {how: results["params"][index] for how, index in best.items()}


def _judged(
    model: FunctionalRegressor, X: np.ndarray, Y: np.ndarray, observed: np.ndarray
) -> dict[str, Any]:
    """Test errors, summed over the points that were observed and over all, and sparsity."""
    m = Y.shape[1]
    start = (len(model.grid_) - m) // 2
    squares = (Y - model.predict(X)[:, start : start + m]) ** 2
    return {
        "mse_x10": 10.0 * float(np.mean(np.sum(squares * observed, axis=1))),
        "mse_all_x10": 10.0 * float(np.mean(np.sum(squares, axis=1))),
        "sparsity_percent": 100.0 * model.sparsity_.coefficients,
        "relative_gap": model.certificate_.relative_gap,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Run all splits, then write the table, the picture and the page."""
    asked = harness.arguments(NAME, __doc__, 10, argv)
    count = QUICK_CANDIDATES if asked.quick else N_CANDIDATES
    full = IN_FULL[:1] if asked.quick else IN_FULL
    pairs = [(reading, loss) for reading in full for loss in RANGES]
    pairs += [(reading, "square") for reading in READINGS]
    tasks = [
        (list(reading), alpha, loss, k, count)
        for reading, loss in pairs
        for alpha in ALPHAS
        for k in range(asked.splits)
    ]
    results = asked.run(measure, tasks)
    published = harness.published(NAME)
    text = page(results, published, CHOSEN, IN_FULL[1], RANK, asked.quick)
    asked.write(results, picture(results, published, CHOSEN, IN_FULL[1]), text)


if __name__ == "__main__":
    main()
