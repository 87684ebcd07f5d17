"""Tables 3 and 4 of Lambert et al. (2022): vocal tract functions from the sound of a word.

Sections 5.3 and B.4 of the paper on its own data, 413 synthesized words: eight functions, each a
problem of its own; five losses on clean curves (Table 3) and three on curves with outliers
(Table 4); 10 splits into 250 words for training and 163 for tests. The grids are those of the
paper: 15 values of ρ for the square loss, whose choice the others take over, 10 of λ, and 100 of
κ or 80 of ε. Without the data (``$FENCHEL_DATA/speech``) it says so and ends.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from experiments import functional_speech_data as data
from experiments import harness
from experiments.functional_common import make_loss
from experiments.functional_speech_page import page, picture
from experiments.functional_speech_paths import Coordinates, Fold, coordinates, search
from fenchel.kernels import Laplacian
from fenchel.solvers import Splitting, WarmStart

NAME = "functional_speech"
SPLITS, FOLDS = 10, 5
OUTLIERS = {
    "none": ("square", "H2", "H1", "eps2", "epsinf"),
    "type1_kept": ("square", "H2", "H1"),
    "type1": ("square", "H2", "H1"),
    "type3_all": ("square", "H2", "H1"),
    "type3": ("square", "H2", "H1"),
}
"""Losses for each kind of outliers; for "type1_kept" and "type3_all" see the page."""
FUNCTIONS_BY_NAME = {name: k for k, name in enumerate(data.FUNCTIONS)}
OUTPUT_RHO = 10.0
COMPONENTS = 60
"""Eigenfunctions for p = 2, which the paper represents so as well; it does not say how many."""
ALPHAS = np.geomspace(1e-10, 1e-6, 10)
KAPPAS, EPSILONS = np.geomspace(1e-7, 1.0, 100), np.geomspace(1e-5, 1e-1, 80)
FULL, QUICK = (15, 10, 100, 80), (2, 2, 4, 4)
"""Values of ρ, λ, κ and ε."""
QUICK_WORDS = 40
TOL, TURNS = 1e-4, 3000
TRUNCATED = (15, 25, 40, COMPONENTS)


def output_kernel(m: int) -> np.ndarray:
    """exp(-10 |θ - θ'|) between the points, which are equidistant in [0, 1]."""
    return np.asarray(Laplacian(1.0 / OUTPUT_RHO)(np.linspace(0.0, 1.0, m)[:, None]))


def folds_of(
    words: int, rho: float, outputs: Coordinates, split: int, function: int, outliers: str
) -> list[Fold]:
    """Five folds of the training curves."""
    speech, gram = data.load(words), data.gram(words, rho)
    train, _ = data.split(words, split)
    clean = speech.curves[train, function]
    Y = data.contaminate(clean, outliers, split)
    judges, counted = data.judges(clean, speech.counted[train], outliers, split)
    splitter = KFold(FOLDS, shuffle=True, random_state=0)
    return [
        Fold(
            gram[np.ix_(train[inside], train[inside])],
            gram[np.ix_(train[outside], train[inside])],
            outputs,
            Y[inside],
            judges[outside],
            counted[outside],
        )
        for inside, outside in splitter.split(Y)
    ]


def whole(
    words: int, rho: float, outputs: Coordinates, split: int, function: int, outliers: str
) -> Fold:
    """All training words, and the clean test words to judge by."""
    speech, gram = data.load(words), data.gram(words, rho)
    train, test = data.split(words, split)
    Y = data.contaminate(speech.curves[train, function], outliers, split)
    return Fold(
        gram[np.ix_(train, train)],
        gram[np.ix_(test, train)],
        outputs,
        Y,
        speech.curves[test, function],
        speech.counted[test],
    )


def squares(split: int, outliers: str, words: int, counts: list[int]) -> list[dict[str, Any]]:
    """The square loss for all functions: ρ and λ by five folds, from eigendecompositions.

    With the errors of the chosen ones where the output kernel is truncated.
    """
    with threadpool_limits(1):
        started = time.process_time()
        rhos, alphas = data.thin(data.RHOS, counts[0]), data.thin(ALPHAS, counts[1])
        speech = data.load(words)
        train, _ = data.split(words, split)
        kernel = output_kernel(speech.curves.shape[2])
        curves = [
            (
                data.contaminate(speech.curves[train, k], outliers, split),
                data.judges(speech.curves[train, k], speech.counted[train], outliers, split)[0],
            )
            for k in range(len(data.FUNCTIONS))
        ]
        outputs = coordinates(kernel, kernel.shape[0])
        errors = np.array(
            [
                [
                    _errors(fold, curves, inside, outside, alphas)
                    for fold, (inside, outside) in zip(
                        folds_of(words, float(rho), outputs, split, 0, outliers),
                        KFold(FOLDS, shuffle=True, random_state=0).split(train),
                        strict=True,
                    )
                ]
                for rho in rhos
            ]
        )  # (rhos, folds, functions, alphas)
        middle = (np.mean if outliers == "none" else np.median)(errors, axis=1)
        records = []
        for k, function in enumerate(data.FUNCTIONS):
            i, j = np.unravel_index(int(middle[:, k].argmin()), middle[:, k].shape)
            rho, alpha = float(rhos[i]), float(alphas[j])
            fold = whole(words, rho, coordinates(kernel, None), split, k, outliers)
            solution = fold.squared(alpha)
            error = fold.error(fold.predict(solution.weights))
            record = {
                "split": split,
                "outliers": outliers,
                "function": function,
                "loss": "square",
                "rho": rho,
                "alpha": alpha,
                "value": None,
                "validation": float(middle[i, k, j]),
                "mse": error,
                "constant": fold.error(np.zeros_like(fold.held_out)),
                "relative_gap": solution.certificate.relative_gap,
                "fits": errors[:, :, 0].size,
            }
            for count in TRUNCATED if outliers == "none" else ():
                cut = whole(words, rho, coordinates(kernel, count), split, k, outliers)
                record[f"mse_{count}"] = cut.error(cut.predict(cut.squared(alpha).weights))
            records.append(record)
        spent = (time.process_time() - started) / len(records)
        return [{**record, "seconds": spent} for record in records]


def _errors(
    fold: Fold,
    curves: list[tuple[np.ndarray, np.ndarray]],
    inside: np.ndarray,
    outside: np.ndarray,
    alphas: np.ndarray,
) -> list[list[float]]:
    """Validation errors of the square loss, (functions, alphas), in both eigenbases."""
    values, vectors = np.linalg.eigh(fold.gram)
    outputs, basis = fold.outputs.eigenvalues, fold.outputs.basis
    across = fold.cross @ vectors
    rows = []
    for Y, judges in curves:
        rotated = vectors.T @ Y[inside] @ basis
        rows.append([])
        for alpha in alphas:
            shrunk = rotated * outputs / (values[:, None] * outputs + alpha * len(inside))
            missed = across @ shrunk @ basis.T - judges[outside]
            rows[-1].append(float(np.mean(np.sum(missed**2, axis=1, where=fold.counted))))
    return rows


def robust_or_sparse(
    split: int, outliers: str, function: str, loss: str, rho: float, words: int, counts: list[int]
) -> list[dict[str, Any]]:
    """A Huber or insensitive loss: λ and κ or ε by five folds, then a fit of all rows."""
    with threadpool_limits(1):
        started = time.process_time()
        alphas = data.thin(ALPHAS, counts[1])
        values = data.thin(*((KAPPAS, counts[2]) if loss[0] == "H" else (EPSILONS, counts[3])))
        k = FUNCTIONS_BY_NAME[function]
        kernel = output_kernel(data.load(words).curves.shape[2])
        outputs = coordinates(kernel, COMPONENTS if loss in ("H2", "eps2") else None)
        final = whole(words, rho, outputs, split, k, outliers)
        folds = folds_of(words, rho, outputs, split, k, outliers)
        surface = search(folds, loss, alphas, values, robust=outliers != "none")
        alpha, value, error, duals = surface.chosen
        problem = final.problem(make_loss(loss, value, outputs.measure), alpha)
        start = _mean_dual(duals, len(final.Y))
        warm = WarmStart(start, np.zeros(start.shape[1]), alpha)
        solution = Splitting(TOL, TURNS).solve(problem, warm)
        return [
            {
                "split": split,
                "outliers": outliers,
                "function": function,
                "loss": loss,
                "rho": rho,
                "alpha": alpha,
                "value": value,
                "validation": error,
                "mse": final.error(final.predict(solution.weights)),
                "constant": final.error(np.zeros_like(final.held_out)),
                "relative_gap": solution.certificate.relative_gap,
                "fits": surface.fits,
                "solved": sum(fold.solved for fold in folds),
                "seconds": time.process_time() - started,
            }
        ]


def _mean_dual(duals: list[np.ndarray], n: int) -> np.ndarray:
    """Dual curves of all rows: the mean over the folds that a row was fitted in."""
    total = np.zeros((n, duals[0].shape[1]))
    splitter = KFold(FOLDS, shuffle=True, random_state=0)
    for (inside, _), dual in zip(splitter.split(total), duals, strict=True):
        total[inside] += dual
    return total / (FOLDS - 1)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the square loss, then the others with its ρ, and write table, picture and page."""
    asked = harness.arguments(NAME, __doc__, SPLITS, argv)
    absent = data.missing()
    if absent:
        raise SystemExit(absent)
    counts, words = (list(QUICK), QUICK_WORDS) if asked.quick else (list(FULL), data.WORDS)
    parts = [(k, kind, words, counts) for k in range(asked.splits) for kind in OUTLIERS]
    first = asked.run(squares, parts)
    chosen = first.set_index(["split", "outliers", "function"]).rho
    others = [
        (k, kind, function, loss, float(chosen[k, kind, function]), words, counts)
        for k, kind in itertools.product(range(asked.splits), OUTLIERS)
        for function, loss in itertools.product(data.FUNCTIONS, OUTLIERS[kind][1:])
    ]
    second = asked.run(robust_or_sparse, others)
    results = pd.concat([first, second], ignore_index=True)
    write(results, asked, words)


def write(results: pd.DataFrame, asked: harness.Arguments, words: int) -> None:
    """Table, picture and page."""
    tables = [harness.published(f"functional_table{k}_speech") for k in (3, 4)]
    lengths = data.load(words).lengths
    text = page(results, tables, (lengths.min(), lengths.max()), COMPONENTS, asked.quick)
    asked.write(results, picture(results, tables), text)


if __name__ == "__main__":
    main()
