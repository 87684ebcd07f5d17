"""What the experiments on non-negative models share: data, selection of parameters, words."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.model_selection import GridSearchCV, KFold

VARIANCE = 0.3
"""Of both normal distributions of the mixture: 0.3 is read as a variance."""
VERDICT = {True: "confirmed", False: "not confirmed"}


def mixture(n: int, seed: int, dimension: int = 1) -> np.ndarray:
    """Draw from ½ N(-e, 0.3 I) + ½ N(e, 0.3 I), e the first unit vector, (n, dimension)."""
    random = np.random.default_rng(seed)
    side = np.where(random.random(n) < 0.5, -1.0, 1.0)
    X = np.sqrt(VARIANCE) * random.standard_normal((n, dimension))
    X[:, 0] += side
    return X


def mixture_density(X: np.ndarray) -> np.ndarray:
    """Its density at rows."""
    scale = np.sqrt(VARIANCE)
    parts = [norm.logpdf(X[:, 0], side, scale) for side in (-1.0, 1.0)]
    rest = norm.logpdf(X[:, 1:], 0.0, scale).sum(axis=1)
    return np.asarray(0.5 * np.exp(parts).sum(axis=0) * np.exp(rest))


def folds() -> KFold:
    """The five folds by which every model chooses its parameters."""
    return KFold(5, shuffle=True, random_state=0)


def tuned(model: Any, grid: Any, X: np.ndarray, y: np.ndarray | None = None) -> GridSearchCV:
    """Choose parameters by five folds and the model's own score; fit the choice to all rows."""
    return GridSearchCV(model, grid, cv=folds(), error_score=-np.inf).fit(X, y)


def mean_and_error(values: Any) -> tuple[float, float]:
    """Mean, and its standard error."""
    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        return float(values.mean()), float("nan")
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
