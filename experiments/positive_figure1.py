"""Figure 1 of Marteau-Ferey, Bach, Rudi (2020): three problems, four models, and one more.

Densities, heteroscedastic regression and quantiles, with models that are non-negative at the
data only (PNM), by their coefficients (NCM), as exponentials (GLM), and positive semi-definite
(PSD); and the estimators of Nadaraya and Watson. The data are those of the authors' code. Each
model is cross-validated by itself, on the training rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from experiments import harness
from experiments.comparisons.positive import (
    FLOOR,
    LinearDensity,
    LinearPrecision,
    NonNegativeGaps,
    log_likelihood,
    pinball,
)
from experiments.comparisons.positive_other import (
    ExponentialDensity,
    ExponentialGaps,
    ExponentialPrecision,
    KernelMoments,
    KernelQuantiles,
)
from experiments.positive_common import folds, mixture, mixture_density, tuned
from experiments.positive_figure1_page import Curves, page, picture
from fenchel import QuantileRegressor
from fenchel.kernels import Gaussian
from fenchel.model_selection import PathSearchCV
from fenchel.positive import (
    DensityEstimator,
    HeteroscedasticRegressor,
    NonCrossingQuantileRegressor,
)

NAME = "positive_figure1"
PROBLEMS, MODELS = ("density", "variance", "quantiles"), ("PNM", "NCM", "GLM", "NW", "PSD")
SIZES = {"density": 50, "variance": 100, "quantiles": 100}
TEST, SEEDS = 2000, 20
LEVELS = (0.25, 0.5, 0.75)
ALPHAS = {
    "density": [10.0**k for k in range(-6, 4)],
    "variance": [10.0**k for k in range(-5, 0)],
    "quantiles": [10.0**k for k in range(-4, 0)],
}
STRENGTHS = [10.0**k for k in range(-2, 3)]
"""Of the second function, in units of that of the first."""
SCALES, SECOND_SCALES = [0.1, 0.2, 0.4], [0.1, 0.2, 0.4, 0.8]
TRACES = [0.0, 1e-4]
BANDWIDTHS = {
    "density": np.geomspace(0.1, 1.0, 20),
    "variance": np.geomspace(0.02, 0.4, 8),
    "quantiles": np.geomspace(0.02, 0.6, 12),
}
GRIDS = {
    "density": np.linspace(-8.0, 8.0, 3201),
    "variance": np.linspace(0.0, 1.0, 501),
    "quantiles": np.linspace(0.0, 1.0, 1001),
}
BOX = (-4.0, 4.0)
"""Where the exponential is a density: it has no integral over the line."""
SECOND = {"variance": "precision", "quantiles": "gap"}
"""What the parameters of the second function begin with."""


def variance_truth(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation, of Goldberg et al. (1998) in the authors' numbers."""
    mean = 2.0 * (np.exp(-30.0 * (x - 0.25) ** 2) + np.sin(np.pi * x**2))
    return mean, np.exp(np.sin(2.0 * np.pi * x))


def spread(x: np.ndarray) -> np.ndarray:
    """Standard deviation of the problem of quantiles: no noise in the middle third."""
    return 4.0 * np.maximum(x - 2.0 / 3.0, 0.0) + 4.0 * np.maximum(1.0 / 3.0 - x, 0.0)


def quantile_truth(x: np.ndarray) -> np.ndarray:
    """Quantiles of the truth, (n, 3)."""
    return spread(x)[:, None] * norm.ppf(LEVELS)


def draw(problem: str, n: int, seed: int, hole: bool = True) -> tuple[np.ndarray, Any]:
    """Rows and targets of a problem; that of quantiles has a hole, except where it is judged."""
    if problem == "density":
        return mixture(n, seed), None
    random = np.random.default_rng(seed)
    x = random.random(n)
    if problem == "variance":
        mean, std = variance_truth(x)
        return x[:, None], mean + std * random.standard_normal(n)
    if hole:
        c = 2.0 / 3.0 + 2.0 * 0.1
        right, left = np.maximum(2.0 / 3.0, c * x + 1.0 - c), np.minimum(1.0 / 3.0, c * x)
        x = np.where(x > 0.5, right, left)
    return x[:, None], spread(x) * random.standard_normal(n)


def in_turn(model: Any, X: np.ndarray, y: np.ndarray, first: Any, second: Any, score: Any) -> Any:
    """Search over one function's parameters, and over the other's then.

    Five folds each, as for all models; ours by ``PathSearchCV``, which shares features.
    """
    model = clone(model)
    for grid in [first, second] if second else [first]:
        if hasattr(model, "path_grid"):
            search: Any = PathSearchCV(model, grid, cv=folds(), selection="min", scoring=score)
        else:
            search = GridSearchCV(model, grid, cv=folds(), scoring=score, error_score=-np.inf)
        model.set_params(**search.fit(X, y).best_params_)
    return search


def score_variance(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Log-likelihood of any of the models of mean and variance."""
    return log_likelihood(y, *mean_and_std(model, X))


def score_quantiles(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Minus the mean pinball loss."""
    return -pinball(y, model.predict(X), LEVELS)


def mean_and_std(model: Any, X: np.ndarray) -> Any:
    """What any of the models of mean and variance predicts."""
    if isinstance(model, HeteroscedasticRegressor):
        return model.predict(X, return_std=True)
    return model.predict(X)


def fit_density(model: str, X: np.ndarray, alphas: list[float]) -> Any:
    """A search, fitted."""
    if model == "PSD":
        grid = {"alpha": alphas, "trace_penalty": TRACES}
        density = DensityEstimator(kernel=Gaussian(1.0))
        return PathSearchCV(density, grid, cv=folds(), selection="min").fit(X)
    if model == "NW":
        return tuned(KernelDensity(), {"bandwidth": BANDWIDTHS["density"]}, X)
    made = {
        "PNM": LinearDensity(True),
        "NCM": LinearDensity(False),
        "GLM": ExponentialDensity(box=BOX),
    }
    return tuned(made[model], {"alpha": alphas}, X)


def grids(problem: str, ours: bool, quick: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Candidates of the first function, and of the second one."""
    alphas = ALPHAS[problem][2::3] if quick else ALPHAS[problem]
    scales, seconds = (SCALES[1:2], SECOND_SCALES[2:3]) if quick else (SCALES, SECOND_SCALES)
    strengths, prefix = STRENGTHS[1:4:2] if quick else STRENGTHS, SECOND[problem]
    first: dict[str, Any] = {"alpha": alphas}
    second: dict[str, Any] = {f"{prefix}_strength": strengths}
    if ours:
        first["kernel"] = [Gaussian(scale) for scale in scales]
        second[f"{prefix}_kernel"] = [Gaussian(scale) for scale in seconds]
    else:
        first["length_scale"], second[f"{prefix}_length_scale"] = scales, seconds
    return first, second


def fit_variance(model: str, X: np.ndarray, y: np.ndarray, quick: bool) -> Any:
    """A search, fitted."""
    if model == "NW":
        widths = BANDWIDTHS["variance"]
        return tuned(KernelMoments(), {"bandwidth": widths, "variance_bandwidth": widths}, X, y)
    made = {
        "PNM": LinearPrecision(True),
        "NCM": LinearPrecision(False),
        "GLM": ExponentialPrecision(),
        "PSD": HeteroscedasticRegressor(1e-4, precision_strength=1.0, learn=False),
    }
    first, second = grids("variance", model == "PSD", quick)
    if model == "PSD":
        second["trace_penalty"] = TRACES
    return in_turn(made[model], X, y, first, second, score_variance)


def fit_quantiles(model: str, X: np.ndarray, y: np.ndarray, quick: bool) -> Any:
    """A search, fitted."""
    if model == "NW":
        return tuned(KernelQuantiles(LEVELS), {"bandwidth": BANDWIDTHS["quantiles"]}, X, y)
    own: dict[str, Any] = {"refit_offsets": None}  # those of the fit, as the others have them
    made = {
        "PNM": QuantileRegressor(
            LEVELS, level_gamma=np.inf, non_crossing="train", tol=1e-4, **own
        ),
        "NCM": NonNegativeGaps(LEVELS),
        "GLM": ExponentialGaps(LEVELS),
        "PSD": NonCrossingQuantileRegressor(LEVELS, **own),
    }
    first, second = grids("quantiles", model in ("PNM", "PSD"), quick)
    if model == "PNM":  # three functions of one kernel and strength
        second = {}
    return in_turn(made[model], X, y, first, second, score_quantiles)


def density_of(fitted: Any, X: np.ndarray) -> np.ndarray:
    """Values of any of the fitted densities."""
    best = fitted.best_estimator_
    return best.density(X) if hasattr(best, "density") else np.exp(best.score_samples(X))


def judge_density(fitted: Any, seed: int) -> tuple[dict[str, float], Curves]:
    """Likelihood of new rows, integral, negative mass, distance from the truth."""
    grid = GRIDS["density"]
    values, truth = density_of(fitted, grid[:, None]), mixture_density(grid[:, None])
    # what has negative values is judged by its positive part, made a density
    mass = np.trapezoid(np.maximum(values, 0.0), grid) if values.min() < 0.0 else 1.0
    new = density_of(fitted, mixture(TEST, 10_000 + seed)) / mass
    record = {
        "test": float(np.log(np.maximum(new, FLOOR)).mean()),
        "integral": float(np.trapezoid(values, grid)),
        "negative": float(np.trapezoid(np.minimum(values, 0.0), grid)),
        "distance": float(np.trapezoid(np.abs(values - truth), grid)),
    }
    shown = np.abs(grid) <= BOX[1]
    return record, {
        "x": list(grid[shown][::4]),
        "estimate": list(values[shown][::4]),
        "truth": list(truth[shown][::4]),
    }


def borrowed(X: np.ndarray, alphas: list[float]) -> float:
    """Negative mass of the PNM that the likelihood of held-out rows would choose."""
    search = GridSearchCV(LinearDensity(True), {"alpha": alphas}, cv=folds(), scoring=_likelihood)
    grid = GRIDS["density"]
    values = search.fit(X).best_estimator_.density(grid[:, None])
    return float(np.trapezoid(np.minimum(values, 0.0), grid))


def _likelihood(model: LinearDensity, X: np.ndarray, y: object = None) -> float:
    return float(np.log(np.maximum(model.density(X), FLOOR)).mean())


def judge_variance(fitted: Any, seed: int) -> tuple[dict[str, float], Curves]:
    """Likelihood of new rows, share without a variance, errors."""
    grid, best = GRIDS["variance"], fitted.best_estimator_
    mean, std = mean_and_std(best, grid[:, None])
    truth, true_std = variance_truth(grid)
    X, y = draw("variance", TEST, 10_000 + seed)
    record = {
        "test": log_likelihood(y, *mean_and_std(best, X)),
        "undefined": float(np.isnan(std).mean()),
        "mean_error": float(np.sqrt(np.nanmean((mean - truth) ** 2))),
        "std_error": float(np.sqrt(np.nanmean(np.log(std / true_std) ** 2))),
    }
    return record, {
        "x": list(grid),
        "mean": list(mean),
        "std": list(np.nan_to_num(std, nan=-1.0)),
        "truth": list(truth),
        "true_std": list(true_std),
    }


def judge_quantiles(fitted: Any, seed: int) -> tuple[dict[str, float], Curves]:
    """Pinball loss of new rows, over all of [0, 1] and as drawn, crossings, error."""
    grid, best = GRIDS["quantiles"], fitted.best_estimator_
    curves, truth = best.predict(grid[:, None]), quantile_truth(grid)
    steps = np.diff(curves, axis=1)
    everywhere = draw("quantiles", TEST, 10_000 + seed, hole=False)
    drawn = draw("quantiles", TEST, 10_000 + seed)
    middle = (grid > 1.0 / 3.0) & (grid < 2.0 / 3.0)
    record = {
        "test": pinball(everywhere[1], best.predict(everywhere[0]), LEVELS),
        "drawn": pinball(drawn[1], best.predict(drawn[0]), LEVELS),
        "crossings": float(np.any(steps < 0.0, axis=1).mean()),
        "deepest": float(max(0.0, -steps.min())),
        "error": float(np.sqrt(np.mean((curves - truth) ** 2))),
        "middle": float(np.sqrt(np.mean((curves - truth)[middle] ** 2))),
    }
    thin = slice(None, None, 5)
    named = {f"q{j}": list(curves[thin, j]) for j in range(3)}
    named.update({f"truth{j}": list(truth[thin, j]) for j in range(3)})
    return record, {"x": list(grid[thin]), **named}


def run_one(problem: str, model: str, seed: int, quick: bool) -> list[dict[str, Any]]:
    """Tune, fit and judge one model."""
    started = time.process_time()
    X, y = draw(problem, SIZES[problem], seed)
    if problem == "density":
        alphas = ALPHAS[problem][2::3] if quick else ALPHAS[problem]
        fitted = fit_density(model, X, alphas)
        record, curves = judge_density(fitted, seed)
        if model == "PNM":
            record["borrowed"] = borrowed(X, alphas)
    elif problem == "variance":
        fitted = fit_variance(model, X, y, quick)
        record, curves = judge_variance(fitted, seed)
    else:
        fitted = fit_quantiles(model, X, y, quick)
        record, curves = judge_quantiles(fitted, seed)
    curves |= {"rows": list(X[:, 0]), "targets": [] if y is None else list(y)}
    best = fitted.best_estimator_
    ends = getattr(best, "values_", None)
    return [
        {
            "problem": problem,
            "model": model,
            "seed": seed,
            **record,
            "spread_of_starts": None if ends is None else float(ends[-1] - ends[0]),
            "chosen": ", ".join(chosen(best)),
            "seconds": time.process_time() - started,
            "curves": curves if seed == 0 else None,
        }
    ]


def chosen(model: Any) -> list[str]:
    """The parameters that were searched over, in words."""
    names = (
        "alpha",
        "length_scale",
        "kernel",
        "trace_penalty",
        "bandwidth",
        "variance_bandwidth",
        *(f"{p}_{n}" for p in SECOND.values() for n in ("strength", "length_scale", "kernel")),
    )
    values = {n: v for n, v in model.get_params(deep=False).items() if n in names}
    scales = {n: getattr(v, "length_scale", v) for n, v in values.items()}
    return [f"{n}={v:.4g}" for n, v in scales.items() if isinstance(v, float)]


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table, the curves, the picture and the page."""
    asked = harness.arguments(NAME, __doc__, SEEDS, argv)
    seeds = 1 if asked.quick else asked.splits
    tasks = [
        (problem, model, seed, asked.quick)
        for seed in range(seeds)
        for problem in PROBLEMS
        for model in MODELS
    ]
    found = asked.run(run_one, tasks)
    results = found.drop(columns="curves")
    options = " --quick" if asked.quick else harness.options(seeds, SEEDS)
    asked.write(results, picture(found), page(results, options))


if __name__ == "__main__":
    main()
