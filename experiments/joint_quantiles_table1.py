"""Table 1 and the first supplementary table of Sangnier, Fercoq, d'Alché-Buc (2016).

Section 6.1 of the paper: the quantiles of levels 0.1, 0.3, 0.5, 0.7 and 0.9 on 20 standardized
data sets, by joint quantile regression (JQR), independent quantile regressions (IND), the same
with non-crossing constraints on the training rows (IND_NC), and multi-task feature learning
(MTFL). For each of 20 random splits, 0.7 for training and 0.3 for testing: a Gaussian kernel
whose σ is the 0.7-quantile of the distances between training rows; C, for JQR together with γ,
by 5-fold cross-validation of the pinball loss. C multiplies a sum over rows, so that
alpha = 1/(C n) with n the rows of a fit: fewer in the folds than in the final fit.

With ``--methods``, what other methods have left in results.csv stays there.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from experiments import harness, joint_quantiles_page
from experiments.comparisons import mtfl
from experiments.harness import pinball
from experiments.selection import least
from fenchel import QuantileRegressor
from fenchel.kernels import DistanceQuantile, Gaussian

NAME = "joint_quantiles_table1"
METHODS = ("IND", "IND_NC", "MTFL", "JQR")
LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
STRENGTHS = tuple(float(10.0**k) for k in range(-5, 6))
GAMMAS = (0.0, *STRENGTHS, np.inf)
FOLDS = 5
CV_TOL, TOL = 1e-4, 1e-6
QUICK_SETS, QUICK_FOLDS = ("topo", "mcycle"), 3
QUICK_STRENGTHS, QUICK_GAMMAS = (1e-2, 1.0, 1e2), (0.0, 1.0, np.inf)

Predict = Callable[[np.ndarray], np.ndarray]
Pair = tuple[float, float]
"""C and γ."""
Fit = tuple[Predict, float]
"""What predicts, and the relative gap of its certificate."""
Path = Callable[[np.ndarray, np.ndarray, Sequence[float], float], Iterator[Fit]]


def crossing(prediction: np.ndarray) -> float:
    """Mean amount by which curves of neighbouring levels cross, summed over the curves."""
    return float(np.maximum(prediction[:, :-1] - prediction[:, 1:], 0.0).mean(axis=0).sum())


def quantile_loss(y: np.ndarray, prediction: np.ndarray) -> float:
    """Shares of targets at or below the curves less the levels, summed over the curves."""
    return float(((y[:, None] <= prediction).mean(axis=0) - LEVELS).sum())


def quantiles(n: int, strength: float, gamma: float, tol: float, **more: Any) -> QuantileRegressor:
    """The library's estimator for a training set of n rows and the paper's parameters."""
    return QuantileRegressor(
        LEVELS,
        kernel=Gaussian(DistanceQuantile(0.7)),
        alpha=1.0 / (strength * n),
        level_gamma=gamma,
        tol=tol,
        **more,
    )


def non_crossing_path(
    X: np.ndarray, y: np.ndarray, strengths: Sequence[float], tol: float
) -> Iterator[Fit]:
    """IND_NC for several strengths; each fit starts from that without the constraint."""
    model = quantiles(len(X), 1.0, np.inf, tol, non_crossing="train")
    for strength in strengths:
        model.set_params(alpha=1.0 / (strength * len(X))).fit(X, y)
        yield model.predict, model.certificate_.relative_gap


def mtfl_path(
    X: np.ndarray, y: np.ndarray, strengths: Sequence[float], tol: float
) -> Iterator[Fit]:
    """MTFL for several strengths."""
    features_of = mtfl.row_features(X)
    features = features_of(X)
    for strength in strengths:
        learned = mtfl.learn(features, y, LEVELS, strength, tol=tol)
        yield (lambda Z, learned=learned: learned.predict(features_of(Z))), learned.relative_gap


PATHS: dict[str, Path] = {"IND_NC": non_crossing_path, "MTFL": mtfl_path}
TOLERANCES = {"IND_NC": (CV_TOL, TOL), "MTFL": (1e-4, 1e-4)}
"""Of the folds and of the last fit."""


def best_strength(method: str, X: np.ndarray, y: np.ndarray, quick: bool) -> float:
    """C of the least cross-validated pinball loss."""
    path, (tol, _) = PATHS[method], TOLERANCES[method]
    folds = list(KFold(QUICK_FOLDS if quick else FOLDS).split(X))

    def losses(k: int, strengths: list[float]) -> list[float]:
        train, test = folds[k]
        fits = path(X[train], y[train], strengths, tol)
        return [pinball(y[test], predict(X[test]), LEVELS) for predict, _ in fits]

    (best,) = least([QUICK_STRENGTHS if quick else STRENGTHS], len(folds), losses)
    return best


def best_pairs(
    X: np.ndarray, y: np.ndarray, methods: Sequence[str], quick: bool
) -> dict[str, Pair]:
    """C and γ of the least cross-validated pinball loss; IND is the part of JQR with γ = inf."""
    folds = list(KFold(QUICK_FOLDS if quick else FOLDS).split(X))
    gammas = [gamma for gamma in (QUICK_GAMMAS if quick else GAMMAS) if not too_large(gamma)]

    def losses(k: int, pairs: list[Pair]) -> list[float]:
        found = fold_losses(X, y, folds[k], pairs)
        return [found[pair] for pair in pairs]

    alone = list(itertools.product(QUICK_STRENGTHS if quick else STRENGTHS, [np.inf]))
    joint = list(itertools.product(QUICK_STRENGTHS if quick else STRENGTHS, gammas))
    groups = [joint if method == "JQR" else alone for method in methods]
    return dict(zip(methods, least(groups, len(folds), losses), strict=True))


def fold_losses(
    X: np.ndarray, y: np.ndarray, fold: tuple[np.ndarray, np.ndarray], pairs: Sequence[Pair]
) -> dict[Pair, float]:
    """Pinball losses of one fold.

    Strengths C rise, and γ rises at each of them. A fit starts from the one before of the same C,
    which is nearer than that of the same γ: both are powers of ten, and most of γ change little.
    """
    train, test = fold
    model = quantiles(len(train), 1.0, 0.0, CV_TOL, learn=False)
    model.check_parameters()
    prepared = model.prepare(X[train], y[train])
    found, start, lowest = {}, None, None
    for strength, path in itertools.groupby(sorted(pairs), key=lambda pair: pair[0]):
        start = lowest
        for j, (_, gamma) in enumerate(path):
            alpha = 1.0 / (strength * len(train))
            model.set_params(alpha=alpha, level_gamma=gamma).check_parameters()
            start = model.fit_prepared(prepared, start)
            lowest = start if j == 0 else lowest
            found[strength, gamma] = pinball(y[test], model.predict(X[test]), LEVELS)
    return found


def too_large(gamma: float) -> bool:
    """Whether γ is as good as infinite: the coupling of levels is lost in rounding."""
    return gamma < np.inf and bool(
        np.exp(-gamma * np.diff(LEVELS).min() ** 2) < np.finfo(float).eps
    )


def one_split(name: str, k: int, methods: Sequence[str], quick: bool) -> list[dict[str, Any]]:
    """Losses on the test rows of one split, for methods that are cross-validated together."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is in the records
        X, y = harness.standardized(name)
        train, test = harness.split(len(X), k)
        started = time.perf_counter()
        if methods[0] in PATHS:
            (method,) = methods
            chosen = {method: (best_strength(method, X[train], y[train], quick), np.inf)}
        else:
            chosen = best_pairs(X[train], y[train], methods, quick)
        seconds = time.perf_counter() - started
        records = []
        for method, (strength, gamma) in chosen.items():
            if method in PATHS:
                tol = TOLERANCES[method][1]
                predict, gap = next(PATHS[method](X[train], y[train], [strength], tol))
            else:
                model = quantiles(len(train), strength, gamma, TOL).fit(X[train], y[train])
                predict, gap = model.predict, model.certificate_.relative_gap
            prediction = predict(X[test])
            records.append(
                {
                    "data_set": name,
                    "split": k,
                    "method": method,
                    "pinball": pinball(y[test], prediction, LEVELS),
                    "crossing": crossing(prediction),
                    "quantile_loss": quantile_loss(y[test], prediction),
                    "C": strength,
                    "gamma": gamma,
                    "relative_gap": gap,
                    "search_seconds": seconds,
                }
            )
    return records


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is asked for and write table, picture and page."""
    asked = harness.arguments(NAME, __doc__, 20, argv, METHODS)
    together = tuple(method for method in ("IND", "JQR") if method in asked.methods)
    groups = [together] if together else []
    groups += [(method,) for method in PATHS if method in asked.methods]
    sets = QUICK_SETS if asked.quick else harness.DATA_SETS
    names = [*sets, *(name for name in harness.VARIANTS if harness.own_name(name) in sets)]
    tasks = [
        (name, k, group, asked.quick)
        for group in groups
        for k in range(asked.splits)
        for name in names
    ]
    results = asked.run(one_split, tasks)
    text = joint_quantiles_page.page(results, asked.quick)
    asked.write(results, joint_quantiles_page.picture(results), text)


if __name__ == "__main__":
    main()
