"""Least squares, ridge, Lasso and group Lasso, every fit before the judge of certificates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from attacks import Outcome, _cases
from attacks._cases import Data, Fit, chance, one_of
from attacks._trials import tries
from fenchel import GroupLasso, Lasso, LinearRegression, Ridge
from judge.certificates import Judged
from judge.linear import LinearProblem, group_norms, judge_linear, lasso_norms

IN_CI, IN_FULL = 200, 2000


class Case(NamedTuple):
    """An estimator and its data."""

    model: Any
    data: Data


def case(seed: int, index: int) -> Case:
    """One estimator and its data, unfitted."""
    rng = np.random.default_rng([seed, index])
    n, d = _cases.size(rng), int(rng.integers(1, 9))
    kind = one_of(rng, ["ridge", "lasso", "lasso", "group", "group", "plain"])
    X, fresh = _cases.rows(rng, n, d)
    p = 1 if kind == "lasso" or chance(rng, 0.5) else int(rng.integers(2, 5))
    y = _cases.targets(rng, X, p)
    intercept = chance(rng, 0.7)
    tol = float(one_of(rng, [1e-3, 1e-6, 1e-6, 1e-9]))
    common = {"fit_intercept": intercept, "tol": tol}
    centred = X - X.mean(axis=0) if intercept else X
    around = y - y.mean(axis=0) if intercept else y
    steep = float(np.abs(centred.T @ around).max()) / n or 1.0
    square = float((centred**2).sum(axis=1).mean()) or 1.0
    free = np.linalg.lstsq(centred, around, rcond=1e-10)[0]
    strength: dict[str, float] = {"alpha": steep * 10.0 ** rng.uniform(-8.0, 1.0)}
    if chance(rng, 0.4):
        total = float(np.abs(free).sum()) or 1.0
        strength = {"radius": total * 10.0 ** rng.uniform(-4.0, 1.0)}
    model: Any
    if kind == "plain":
        model = LinearRegression(fit_intercept=intercept)
    elif kind == "ridge":
        model = Ridge(square * 10.0 ** rng.uniform(-8.0, 2.0), **common)
    elif kind == "lasso":
        model = Lasso(**strength, **common)
    else:
        groups = rng.integers(0, one_of(rng, [1, 2, d]), d) if chance(rng, 0.7) else None
        q = one_of(rng, [1, 2, np.inf, 1.5, 4])
        outer = one_of(rng, [1, 1, 1, 2, np.inf, 1.2, 3])
        model = GroupLasso(groups, **strength, q=q, p=outer, max_iter=2000, **common)
    y = y[:, 0] if p == 1 else y
    return Case(model, Data(X, y, _cases.weights(rng, n), fresh))


def judged(tried: Case, ended: Fit) -> tuple[Judged, str]:
    """What the judge says of a fitted linear model."""
    model, data = tried.model, tried.data
    weight = np.ones(len(data.y)) if data.weight is None else data.weight
    known: dict[str, Any] = {"form": "none"}
    if isinstance(model, Ridge):
        known = {"form": "squares", "strength": model.alpha}
    elif not isinstance(model, LinearRegression):
        form, strength = (
            ("penalty", model.alpha) if model.radius is None else ("bound", model.radius)
        )
        if isinstance(model, Lasso):
            value, dual = lasso_norms()
        else:
            d = data.X.shape[1]
            labels = np.arange(d) if model.groups is None else np.asarray(model.groups)
            value, dual = group_norms(labels, model.q, model.p)
        known = {"form": form, "strength": strength, "value": value, "dual": dual}
    targets = data.y.reshape(len(data.y), -1)
    named = LinearProblem(model, data.X, targets, weight, **known)
    return judge_linear(named, data.fresh, warned=ended.warned), known["form"]


def attack(count: int, seed: int) -> Outcome:
    """Fit so many estimators, and judge them."""
    return tries("linear_models", case, judged, count, seed)
