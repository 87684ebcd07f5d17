"""``python docs/draw_pictures.py [NAME ...]``: the pictures of the README and of the guides.

Each function draws one into docs/_static/guide; they are kept in git, so that pages show them
wherever they are read.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from fenchel import (
    SVR,
    DensityEstimator,
    ExpectileRegressor,
    FunctionalRegressor,
    KernelRidge,
    QuantileRegressor,
    lasso_path,
)
from fenchel.bounds import bound
from fenchel.datasets import (
    load,
    load_engel,
    load_mcycle,
    make_functional,
    make_sine_quantiles,
    process_outliers,
)
from fenchel.kernels import BetweenCurves, Gaussian, Linear, Matern
from fenchel.losses import Huber, Pinball, Squared
from fenchel.model_selection import ConformalQuantileRegressor, ConformalRegressor, PathSearchCV
from fenchel.online import OnlineSVR
from fenchel.plotting import ImportanceDisplay
from fenchel.tables import table_encoder

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

from style import STYLE

DOCS = Path(__file__).parent
OUT = DOCS / "_static" / "guide"
BLUE, RED, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "0.65"


def _grid(X: np.ndarray, to: float | None = None) -> np.ndarray:
    return np.linspace(X.min(), X.max() if to is None else to, 400)[:, None]


def _band(ax: plt.Axes, x: np.ndarray, ends: np.ndarray, label: str, color: str = BLUE) -> None:
    ax.fill_between(x[:, 0], *ends.T, color=color, alpha=0.2, linewidth=0, label=label)


def engel() -> Figure:
    """Food against income on their logarithms, with a linear trend beside the learned kernel."""
    X, y = load_engel(return_X_y=True)
    model = QuantileRegressor([0.1, 0.5, 0.9], kernel=Matern() + Linear())
    model.fit(np.log(X), np.log(y))
    grid = _grid(X, to=7000.0)
    low, middle, high = np.exp(model.predict(np.log(grid))).T
    fig, ax = plt.subplots(figsize=(7.2, 3.6))
    _band(ax, grid, np.stack([low, high], axis=1), "8 of 10 households")
    ax.plot(grid, middle, color=BLUE, linewidth=2, label="the median")
    ax.scatter(X, y, s=9, color="0.35", linewidths=0, label="235 households")
    ax.axvline(X.max(), color=GREY, linestyle=":")
    ax.text(X.max() * 1.02, 250, "beyond the data", color="0.4", fontsize=9)
    ax.set(xlabel="income (francs a year)", ylabel="spent on food (francs a year)")
    ax.set(xlim=(0, 7000), ylim=(0, 3600))
    ax.legend(loc="upper left")
    return fig


def quantiles() -> Figure:
    """A reference chart: a medical measure against age."""
    data = load("GAGurine")
    X, y = data.data, data.target
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    model = QuantileRegressor(levels, kernel=Matern()).fit(np.sqrt(X), np.log(y))
    grid = _grid(X)
    fig, ax = plt.subplots(figsize=(7.2, 3.2))
    ax.scatter(X, y, s=7, color=GREY, linewidths=0)
    for curve, level in zip(np.exp(model.predict(np.sqrt(grid))).T, levels, strict=True):
        ax.plot(grid, curve, color=BLUE, linewidth=2.0 if level == 0.5 else 1.2)
        ax.text(grid[-1, 0] + 0.2, curve[-1], f"{level:.0%}", va="center", fontsize=8)
    ax.set(xlabel="age (years)", ylabel="GAG in urine", yscale="log")
    ax.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"], minor=False)
    ax.minorticks_off()
    return fig


def learning() -> Figure:
    """Importances of ten features, of which five matter."""
    random = np.random.default_rng(0)
    X = random.uniform(size=(400, 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    y += 10 * X[:, 3] + 5 * X[:, 4] + random.normal(size=400)
    model = QuantileRegressor([0.1, 0.5, 0.9]).fit(X, y)
    fig, ax = plt.subplots(figsize=(7.2, 3.0))
    ImportanceDisplay.from_estimator(model, ax=ax)
    return fig


def kernels() -> Figure:
    """The same rows by three kernels, within the data and beyond."""
    X, y = load_engel(return_X_y=True)
    grid = _grid(X, to=7000.0)
    chosen = {"Matern()": Matern(), "Matern() + Linear()": Matern() + Linear()}
    chosen['"linear"'] = Linear()
    fig, axes = plt.subplots(1, 3, figsize=(9.6, 3.0), sharey=True)
    for ax, (name, kernel) in zip(axes, chosen.items(), strict=True):
        model = QuantileRegressor([0.1, 0.5, 0.9], kernel=kernel).fit(np.log(X), np.log(y))
        ax.scatter(X, y, s=6, color=GREY, linewidths=0)
        ax.plot(grid, np.exp(model.predict(np.log(grid))), color=BLUE)
        ax.axvline(X.max(), color=GREY, linestyle=":")
        ax.set(title=name, xlabel="income (francs)", ylim=(0, 3600))
    axes[0].set_ylabel("food (francs)")
    return fig


def losses() -> Figure:
    """What an error costs: four losses."""
    error = np.linspace(-3.0, 3.0, 601)[:, None]
    named = {
        "squared: the mean": Squared(),
        "pinball 0.9: a quantile": Pinball(0.9),
        "Huber: robust": Huber(1.0),
        "ε-insensitive, ε = 1": Pinball(0.5).insensitive(1.0),
    }
    fig, ax = plt.subplots(figsize=(7.2, 3.0))
    for (name, loss), style in zip(named.items(), ("-", "--", "-.", ":"), strict=True):
        ax.plot(error, loss.value(error), style, linewidth=2, label=name)
    ax.set(xlabel="observed less predicted", ylabel="cost", ylim=(0, 3))
    ax.legend(loc="upper center")
    return fig


def regression() -> Figure:
    """Ten rows with gross errors: squares follow them, Huber's loss does not."""
    X, y = load_mcycle(return_X_y=True)
    wrong = y.copy()
    wrong[40:50] += 200.0
    grid = _grid(X)
    kernel = Gaussian(length_scale=5.0)
    models = {
        "KernelRidge": KernelRidge(alpha=1e-2, kernel=kernel),
        'SVR(loss="huber")': SVR("huber", kappa=5.0, alpha=1e-4, kernel=kernel),
    }
    fig, ax = plt.subplots(figsize=(7.2, 3.2))
    ax.scatter(X, y, s=9, color=GREY, linewidths=0)
    ax.scatter(X[40:50], wrong[40:50], s=16, marker="x", color="0.2", label="errors of 200 g")
    for (name, model), color in zip(models.items(), (RED, BLUE), strict=True):
        ax.plot(grid, model.fit(X, wrong).predict(grid), color=color, linewidth=2, label=name)
    ax.set(xlabel="time after impact (ms)", ylabel="acceleration (g)", ylim=(-150, 170))
    ax.legend(loc="lower right")
    return fig


def linear() -> Figure:
    """Coefficients of the Lasso as the penalty falls."""
    crabs = load("crabs")
    X = (crabs.data - crabs.data.mean(axis=0)) / crabs.data.std(axis=0)
    path = lasso_path(X, crabs.target)
    fig, ax = plt.subplots(figsize=(7.2, 3.0))
    styles = ("-", "--", ":", "-.", (0, (6, 1.6, 1.2, 1.6)), (0, (1, 3)))
    words = ("species", "sex", "frontal lobe", "rear width", "length", "depth")
    for values, name, style in zip(path.coefs.T, words, styles, strict=True):
        ax.semilogx(path.alphas, values, linestyle=style, linewidth=2, label=name)
    ax.invert_xaxis()
    ax.set(xlabel="alpha, the penalty", ylabel="coefficient (mm)")
    fig.legend(loc="outside right center")
    return fig


def functional() -> Figure:
    """Two curves that were held out, where a tenth of the training curves is wrong."""
    X, Y, theta = make_functional(120, n_points=60, noise=0.1, random_state=0)
    seen, _ = process_outliers(Y[:80], share=0.2, intensity=4.0, random_state=0)
    kernels = {"kernel": BetweenCurves(Gaussian("median")), "output_kernel": Gaussian(0.07)}
    models = {
        "squared loss": FunctionalRegressor("squared", alpha=1e-4, **kernels),
        "Huber loss": FunctionalRegressor("huber", kappa=0.05, alpha=1e-4, **kernels),
    }
    fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.0), sharey=True)
    for (name, model), color in zip(models.items(), (RED, BLUE), strict=True):
        model.fit(X[:80], seen, theta)
        for ax, row in zip(axes, (81, 95), strict=True):
            ax.plot(theta, model.predict(X[[row]])[0], color=color, linewidth=2, label=name)
    for ax, row in zip(axes, (81, 95), strict=True):
        ax.plot(theta, Y[row], ".", color="0.3", markersize=4, label="measured")
        ax.set_xlabel("position along the curve")
    axes[0].legend(fontsize=8)
    return fig


def positive() -> Figure:
    """The density of the durations of eruptions."""
    X = load("geyser").data
    X = X[~np.isin(X[:, 0], (2.0, 3.0, 4.0))]  # codes for short, medium and long
    search = PathSearchCV(
        DensityEstimator(), {"alpha": [0.1, 0.01], "length_scale": [0.3, 0.5, 0.8]}
    ).fit(X)
    grid = np.linspace(0.5, 6.5, 400)[:, None]
    fig, ax = plt.subplots(figsize=(7.2, 2.8))
    ax.hist(X[:, 0], bins=24, density=True, color="0.85")
    ax.plot(grid, np.exp(search.score_samples(grid)), color=BLUE, linewidth=2)
    ax.set(xlabel="duration of an eruption (min)", ylabel="density")
    return fig


def online() -> Figure:
    """The error on new rows falls while rows stream in."""
    X, y, _ = make_sine_quantiles(6000, random_state=0)
    new, y_new, _ = make_sine_quantiles(5000, random_state=1)
    model = OnlineSVR(epsilon=0.5, kernel=Gaussian(length_scale=0.2), average=True)
    rows = np.arange(100, 4001, 100)
    errors = []
    for stop in rows:
        model.partial_fit(X[stop - 100 : stop], y[stop - 100 : stop])
        errors.append(np.abs(model.predict(new) - y_new).mean())
    fig, ax = plt.subplots(figsize=(7.2, 2.6))
    ax.plot(rows, errors, color=BLUE, linewidth=2, label="OnlineSVR, each row seen once")
    best = np.abs(SVR(epsilon=0.5).fit(X[:4000], y[:4000]).predict(new) - y_new).mean()
    ax.axhline(best, color=GREY, linestyle="--", label="SVR, all 4000 rows at once")
    ax.set(xlabel="rows seen", ylabel="error on new rows")
    ax.legend()
    return fig


def model_selection() -> Figure:
    """The error on held-out rows against alpha."""
    X, y = load_engel(return_X_y=True)
    search = PathSearchCV(QuantileRegressor([0.1, 0.5, 0.9]), {"alpha": 15}, cv=5).fit(X, y)
    results = search.cv_results_
    alphas = np.asarray(results["param_alpha"], dtype=float)
    mean, spread = results["mean_test_score"], results["std_test_score"] / np.sqrt(5)
    fig, ax = plt.subplots(figsize=(7.2, 2.8))
    ax.errorbar(alphas, mean, yerr=spread, color=BLUE, marker="o", markersize=4, capsize=2)
    ax.axvline(search.alpha_, color=RED, linestyle="--", label="chosen")
    ax.set(xscale="log", xlabel="alpha", ylabel="score on held-out rows")
    ax.legend()
    return fig


def conformal() -> Figure:
    """Two kinds of calibrated intervals on rows whose spread changes."""
    X, y, _ = make_sine_quantiles(1000, random_state=0)
    grid = _grid(X)
    models = {
        "ConformalRegressor": ConformalRegressor(KernelRidge(), coverage=0.9),
        "ConformalQuantileRegressor": ConformalQuantileRegressor(coverage=0.9),
    }
    fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.0), sharey=True)
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        low, high = model.fit(X[:500], y[:500]).predict_interval(X[500:]).T
        share = np.mean((low <= y[500:]) & (y[500:] <= high))
        _band(ax, grid, model.predict_interval(grid), "90 % intervals")
        ax.scatter(X[500:], y[500:], s=6, color="0.4", linewidths=0)
        ax.set(title=f"{name}: {share:.1%} of new rows inside", xlabel="x")
        ax.title.set_fontsize(10)
    return fig


def bounds() -> Figure:
    """A bound beside the risk that it bounds."""
    rows = [250, 500, 1000, 2000, 4000]
    new, y_new, _ = make_sine_quantiles(20_000, random_state=1)
    risks, values = [], []
    for n in rows:
        X, y, _ = make_sine_quantiles(n, random_state=0)
        model = KernelRidge(alpha=0.01, kernel=Gaussian(0.3)).fit(X, y.clip(-3, 3))
        read = bound(model, X, y.clip(-3, 3), target_bound=3.0, clip=True)
        values.append(read.value)
        risks.append(np.mean((model.predict(new).clip(-3, 3) - y_new.clip(-3, 3)) ** 2) / 2)
    fig, ax = plt.subplots(figsize=(7.2, 2.8))
    ax.loglog(rows, values, "o-", color=BLUE, label="the bound")
    ax.loglog(rows, risks, "s--", color=RED, label="the loss on 20 000 new rows")
    ax.set(xlabel="rows", ylabel="half the squared error", xticks=rows, xticklabels=rows)
    ax.minorticks_off()
    ax.legend()
    return fig


def rows() -> Figure:
    """Seconds of a fit against the number of rows."""
    sizes, seconds = [1000, 3000, 10_000, 30_000, 100_000, 300_000], []
    for n in [1000, *sizes]:  # the first is not counted: it compiles
        X, y, _ = make_sine_quantiles(n, random_state=0)
        started = time.perf_counter()
        QuantileRegressor([0.1, 0.5, 0.9], kernel=Gaussian(0.3), alpha=1e-4).fit(X, y)
        seconds.append(time.perf_counter() - started)
    fig, ax = plt.subplots(figsize=(7.2, 2.6))
    ax.loglog(sizes, seconds[1:], "o-", color=BLUE)
    ax.set(xlabel="rows", ylabel="seconds of a fit")
    return fig


def expectiles() -> Figure:
    """Quantiles and expectiles of the same rows, a few of which are far away."""
    X, y, _ = make_sine_quantiles(400, random_state=0)
    y = y + 6.0 * (np.random.default_rng(0).random(400) < 0.03)
    grid = _grid(X)
    fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.0), sharey=True)
    for ax, kind in zip(axes, (QuantileRegressor, ExpectileRegressor), strict=True):
        ax.scatter(X, y, s=6, color=GREY, linewidths=0)
        ax.plot(grid, kind([0.1, 0.5, 0.9]).fit(X, y).predict(grid), color=BLUE)
        ax.set(title=kind.__name__, xlabel="x", ylim=(-3, 9))
    return fig


def flats() -> Figure:
    """Calibrated ranges of the rents of flats that were held back, as in the tutorial."""
    table = pd.read_csv(DOCS / "_static" / "flats.csv")
    X, y = table.drop(columns="rent"), table["rent"]
    X_train, X_new, y_train, y_new = train_test_split(X, y, test_size=800, random_state=0)
    model = make_pipeline(table_encoder(), QuantileRegressor([0.1, 0.5, 0.9]))
    ranges = ConformalQuantileRegressor(model, coverage=0.8).fit(X_train, y_train)
    some = X_new.iloc[:60]
    middle, (low, high) = ranges.predict(some), ranges.predict_interval(some).T
    place = np.argsort(np.argsort(middle))
    actual = y_new.iloc[:60].to_numpy()
    inside = (low <= actual) & (actual <= high)
    fig, ax = plt.subplots(figsize=(7.2, 3.4))
    ax.vlines(place, low, high, color=BLUE, alpha=0.3, linewidth=5, label="8 of 10 flats")
    ax.plot(place, middle, "_", color=BLUE, label="the median")
    ax.plot(place[inside], actual[inside], ".", color="0.2", label="what was paid")
    ax.plot(place[~inside], actual[~inside], "x", color=RED, label="outside of the range")
    ax.set(xlabel="60 new flats, by their predicted rent", ylabel="rent (€)", xticks=[])
    ax.legend(loc="upper left")
    return fig


def distributions() -> Figure:
    """Distributions at three times after an impact, from nineteen quantiles."""
    X, y = load_mcycle(return_X_y=True)
    model = QuantileRegressor(np.arange(0.05, 1.0, 0.05)).fit(X, y)
    times, grid = (16.0, 25.0, 40.0), np.linspace(-120.0, 90.0, 800)
    curves = model.predict_distribution(np.array(times)[:, None]).cdf(grid[None, :])
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.4), layout="constrained")
    left.scatter(X, y, s=9, color="0.35", linewidths=0)
    for time_, curve, color in zip(times, curves, (BLUE, RED, GREEN), strict=True):
        left.axvline(time_, color=color, linewidth=2)
        right.plot(grid, curve, color=color, linewidth=2, label=f"{time_:.0f} ms")
    left.set(xlabel="time after the impact (ms)", ylabel="acceleration (g)")
    right.set(xlabel="acceleration (g)", ylabel="probability of less")
    right.legend()
    return fig


PICTURES: tuple[Callable[[], Figure], ...] = (
    engel,
    quantiles,
    distributions,
    learning,
    kernels,
    losses,
    regression,
    linear,
    functional,
    positive,
    online,
    model_selection,
    conformal,
    bounds,
    rows,
    expectiles,
    flats,
)


def main(names: list[str]) -> None:
    """Draw those that are named, or all."""
    mpl.use("agg")
    OUT.mkdir(exist_ok=True)
    for draw in PICTURES:
        if not names or draw.__name__ in names:
            plt.rcParams.update(STYLE)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                figure = draw()
            figure.savefig(OUT / f"{draw.__name__}.png", dpi=110)
            plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
