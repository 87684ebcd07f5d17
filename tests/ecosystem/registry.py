"""Every public estimator with a little data of its own kind."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import PredefinedSplit

from fenchel import (
    SVR,
    ExpectileRegressor,
    GroupLasso,
    KernelRidge,
    Lasso,
    LinearRegression,
    QuantileRegressor,
    Ridge,
)
from fenchel.functional import FunctionalRegressor
from fenchel.model_selection import (
    ConformalQuantileRegressor,
    ConformalRegressor,
    GroupLassoCV,
    KernelRidgeCV,
    LassoCV,
    PathSearchCV,
    RidgeCV,
)
from fenchel.online import OnlineLasso, OnlineQuadraticSVR, OnlineRidge, OnlineSVR, WidrowHoff
from fenchel.positive import (
    ConeRegressor,
    DensityEstimator,
    HeteroscedasticRegressor,
    NonCrossingQuantileRegressor,
    NonNegativeRegressor,
)
from regression_cases import BRIEFLY

ROOMS = ("regression", "online", "functional", "positive", "model_selection")
COLUMNS = ["width", "height"]
N = 36
FOLD = np.arange(N) % 3
"""Folds of the rows, the same wherever there are any."""

_RNG = np.random.default_rng(0)
X = _RNG.uniform(-1.0, 1.0, (N, 2))
CLEAN = 2.0 + np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]
Y = CLEAN + 0.2 * _RNG.standard_normal(N)
TWO = np.column_stack([Y, 1.0 + np.cos(X[:, 1]) + 0.1 * _RNG.standard_normal(N)])
THETA = np.linspace(0.0, 1.0, 7) ** 1.5
CURVES = np.sin(3.0 * THETA + X[:, :1]) + 0.1 * _RNG.standard_normal((N, len(THETA)))
NEW = _RNG.uniform(-1.0, 1.0, (11, 2))


@dataclass(frozen=True)
class Case:
    """An estimator, unfitted, and what is fitted beside X."""

    estimator: Any
    y: Any = field(default_factory=lambda: Y)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        name = type(self.estimator).__name__
        searched = isinstance(self.estimator, PathSearchCV) and name == "PathSearchCV"
        return f"{name}, {type(self.estimator.estimator).__name__}" if searched else name

    @property
    def takes_weights(self) -> bool:
        return "sample_weight" in inspect.signature(self.estimator.fit).parameters

    def fresh(self, rows: Any = slice(None)) -> Any:
        """An unfitted copy, whose folds are those of the given rows."""
        model = clone(self.estimator)
        return model.set_params(cv=PredefinedSplit(FOLD[rows])) if hasattr(model, "cv") else model

    def fitted(self, rows: Any = slice(None), table: Any = X, **options: Any) -> Any:
        targets = None if self.y is None else self.y[rows]
        return self.fresh(rows).fit(table[rows], targets, **self.extra, **options)


GRID = {"alpha": [1e-1, 1e-3]}
PENALTIES = {**GRID, "trace_penalty": [0.0, 1e-4]}
LEVELS = [0.25, 0.75]
# Learning takes most of the time where it is on: one estimator learns its kernel here.
CASES = [
    Case(LinearRegression(), TWO),
    Case(Ridge(), TWO),
    Case(Lasso(alpha=1e-2)),
    Case(GroupLasso(alpha=1e-2), TWO),
    Case(KernelRidge(1e-2, learn=False), TWO),
    Case(SVR(epsilon=0.1, alpha=1e-2, learn=False)),
    Case(QuantileRegressor(LEVELS, alpha=1e-2, learn=BRIEFLY)),
    Case(ExpectileRegressor(LEVELS, alpha=1e-2, learn=False)),
    Case(WidrowHoff()),
    Case(OnlineRidge()),
    Case(OnlineLasso()),
    Case(OnlineSVR()),
    Case(OnlineQuadraticSVR()),
    Case(FunctionalRegressor("huber", kappa=0.1, learn=False), CURVES, {"theta": THETA}),
    Case(NonNegativeRegressor(alpha=1e-2, rank=8)),
    Case(HeteroscedasticRegressor(1e-2, rank=8)),
    Case(NonCrossingQuantileRegressor(LEVELS, alpha=1e-2, learn=False, rank=8)),
    Case(ConeRegressor(alpha=1e-2, rank=8, learn=False), TWO),
    Case(DensityEstimator(1e-2, rank=8), None),
    Case(KernelRidgeCV(alphas=GRID["alpha"]), TWO),
    Case(RidgeCV(alphas=GRID["alpha"]), TWO),
    Case(LassoCV(alphas=GRID["alpha"])),
    Case(GroupLassoCV(alphas=GRID["alpha"]), TWO),
    Case(PathSearchCV(KernelRidge(), GRID), TWO),
    Case(PathSearchCV(SVR(), GRID)),
    Case(PathSearchCV(QuantileRegressor(LEVELS), GRID)),
    Case(PathSearchCV(ExpectileRegressor(LEVELS), GRID)),
    Case(PathSearchCV(FunctionalRegressor(), GRID), CURVES, {"theta": THETA}),
    Case(PathSearchCV(NonNegativeRegressor(rank=8), PENALTIES)),
    Case(PathSearchCV(HeteroscedasticRegressor(rank=8), PENALTIES)),
    Case(
        PathSearchCV(
            NonCrossingQuantileRegressor(LEVELS, rank=4, tol=1e-3),
            {"alpha": [1.0, 0.1], "gap_strength": [1.0, 0.01]},
        )
    ),
    Case(PathSearchCV(ConeRegressor(rank=8, learn=False), GRID), TWO),
    Case(PathSearchCV(DensityEstimator(rank=4), PENALTIES), None),
    Case(ConformalRegressor(KernelRidge(1e-2, learn=False), method="cv+", coverage=0.8)),
    Case(
        ConformalQuantileRegressor(
            QuantileRegressor(LEVELS, alpha=1e-2, learn=False), coverage=0.8
        )
    ),
]


def public_estimators() -> set[type]:
    """All classes of estimators that the rooms show."""
    rooms = [importlib.import_module(f"fenchel.{room}") for room in ROOMS]
    shown = [getattr(room, name) for room in rooms for name in room.__all__]
    return {kind for kind in shown if isinstance(kind, type) and issubclass(kind, BaseEstimator)}


def answers(model: Any, table: Any = NEW) -> list[np.ndarray]:
    """Everything that a fitted model says of new rows."""
    names = [name for name in ("predict", "score_samples") if hasattr(model, name)]
    if hasattr(model, "conformity_scores_"):
        names.append("predict_interval")
    assert names
    return [np.asarray(getattr(model, name)(table)) for name in names]
