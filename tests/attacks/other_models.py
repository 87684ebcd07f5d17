"""Functional regression and non-negative models, every fit before the judge of certificates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attacks import Outcome, _cases
from attacks._cases import Data, Fit, chance, one_of
from attacks._trials import FEATURES, tries
from attacks.certificates import a_kernel
from fenchel import (
    DensityEstimator,
    FunctionalRegressor,
    HeteroscedasticRegressor,
    NonCrossingQuantileRegressor,
    NonNegativeRegressor,
)
from fenchel import kernels as k
from judge import losses as own
from judge.certificates import ANOTHER, Judged
from judge.curves import judge_curves
from judge.findings import Finding
from judge.positive import judge_density, judge_non_negative, judge_values

IN_CI, IN_FULL = 160, 1600
SHARES = 32


@dataclass
class Case:
    """An estimator, its data, and what else the judge has to know."""

    kind: str
    model: Any
    data: Data
    more: dict[str, Any] = field(default_factory=dict)


def _functional(rng: np.random.Generator) -> Case:
    n, d, m = min(_cases.size(rng), 150), int(rng.integers(1, 5)), int(rng.integers(1, 25))
    X, fresh = _cases.rows(rng, n, d)
    y = _cases.targets(rng, X, m)
    size = float(np.abs(y).mean()) or 1.0
    theta = np.sort(rng.uniform(size=m)) if chance(rng, 0.3) else np.linspace(0.0, 1.0, m)
    rule = one_of(rng, ["monte-carlo", "trapezoid"]) if m > 1 else "monte-carlo"
    name, norm = one_of(
        rng,
        [
            ("squared", 2),
            ("huber", 2),
            ("huber", 1),
            ("squared_epsilon_insensitive", 2),
            ("squared_epsilon_insensitive", np.inf),
            ("epsilon_insensitive", 2),
            ("absolute", 2),
            ("pinball", 2),
            ("squared_pinball", 2),
        ],
    )
    model = FunctionalRegressor(
        name,
        norm,
        kappa=size * 10.0 ** rng.uniform(-1.0, 1.0),
        epsilon=size * 10.0 ** rng.uniform(-2.0, 0.0),
        alpha=10.0 ** rng.uniform(-7.0, 2.0),
        level=float(one_of(rng, [0.1, 0.5, 0.8])),
        kernel=a_kernel(rng, X),
        output_kernel=one_of(rng, [None, k.Gaussian(0.3), k.Laplacian(0.2), k.Matern(0.5)]),
        center=one_of(rng, [None, None, "mean", "median"]),
        quadrature=rng.uniform(0.1, 2.0, m) if chance(rng, 0.2) else rule,
        tol=float(one_of(rng, [1e-3, 1e-6, 1e-6])),
        solver=one_of(rng, ["auto"] * 6 + ["fista", "newton", "splitting", "conic"]),
        max_iter=100,
    )
    if m > 12 and model.solver in ("newton", "conic"):
        model.set_params(solver="auto")
    return Case("curves", model, Data(X, y, _cases.weights(rng, n), fresh, {"theta": theta}))


def _positive(rng: np.random.Generator, kind: str) -> Case:
    n, d = min(_cases.size(rng), 60), int(rng.integers(1, 4))
    n = max(n, 2) if kind == "density" else n  # fewer are refused
    d = 1 if kind == "density" and chance(rng, 0.7) else d
    X, fresh = _cases.rows(rng, n, d)
    spread = np.ptp(X, axis=0).max() or 1.0
    far = X[:1] + spread * rng.normal(size=(20, d)) * 3.0
    fresh = np.concatenate([fresh, far])
    y = _cases.targets(rng, X)[:, 0]
    size = float(np.abs(y - np.median(y)).mean()) or 1.0
    width = spread * 10.0 ** rng.uniform(-1.0, 0.5)
    common = {
        "kernel": one_of(rng, [None, k.Gaussian(width), k.Matern(width, nu=1.5)]),
        "alpha": 10.0 ** rng.uniform(-6.0, 1.0),
        "trace_penalty": float(one_of(rng, [0.0, 1e-6, 1e-4, 1e-2])),
        "tol": float(one_of(rng, [1e-3, 1e-6])),
        "max_iter": 60,
    }
    more: dict[str, Any] = {}
    model: Any
    if kind == "non-negative":
        name = one_of(rng, ["squared", "huber", "pinball", "absolute", "epsilon_insensitive"])
        parts = {"level": 0.3, "kappa": size, "epsilon": 0.1 * size}
        model = NonNegativeRegressor(name, **parts, **common)
        more = {"loss": name, **parts}
    elif kind == "quantiles":
        levels = one_of(rng, [[0.25, 0.5, 0.75], [0.9, 0.1], [0.4]])
        model = NonCrossingQuantileRegressor(levels, **common)
    elif kind == "heteroscedastic":
        model = HeteroscedasticRegressor(**common)
    else:
        model = DensityEstimator(**{**common, "alpha": 10.0 ** rng.uniform(-4.0, 1.0)})
        y = None
    return Case(kind, model, Data(X, y, _cases.weights(rng, n), fresh), more)


def case(seed: int, index: int) -> Case:
    """One estimator and its data, unfitted."""
    rng = np.random.default_rng([seed, index])
    kind = one_of(
        rng, ["curves"] * 6 + ["non-negative"] * 3 + ["quantiles", "heteroscedastic", "density"]
    )
    return _functional(rng) if kind == "curves" else _positive(rng, kind)


def judged(tried: Case, ended: Fit) -> tuple[Judged, str]:
    """What the judge says of a fitted estimator."""
    model, data = tried.model, tried.data
    weight = np.ones(len(data.X)) if data.weight is None else data.weight
    if tried.kind == "curves":
        return _of_curves(tried, weight, ended), tried.kind
    verdict = judge_values(model, tried.kind, data.fresh, ended.warned)
    if tried.kind == "non-negative" and not verdict.findings and model.scale_ > 0.0:
        parts, scale = dict(tried.more), model.scale_
        name = parts.pop("loss")
        parts["kappa"], parts["epsilon"] = parts["kappa"] / scale, parts["epsilon"] / scale
        loss = own.named(name, **parts)
        given = model, data.X, data.y, weight, loss
        verdict = judge_non_negative(*given, warned=ended.warned)
        of_features = verdict
        if verdict.findings and model.kernel_error_ > 0.0:
            of_features = judge_non_negative(*given, warned=ended.warned, approximate=True)
        if not of_features.findings and model.certified_kernel_ == "features":
            verdict = Judged([Finding(FEATURES, text) for _, text in verdict.findings])
    if tried.kind == "density" and data.X.shape[1] == 1 and not verdict.findings:
        scale = float(np.ravel(model.kernel_.length_scale)[0])
        exact = type(model.kernel_).__name__ == "Gaussian"
        limits = float(data.X.min()) - 25 * scale, float(data.X.max()) + 25 * scale
        if (limits[1] - limits[0]) / scale < 2000:  # what the quadrature resolves
            verdict = judge_density(model, data.X, weight, limits, exact)
        if verdict.kinds == {"volume"} and model.kernel_error_ > 0.0:
            verdict = Judged([Finding(FEATURES, text) for _, text in verdict.findings])
    return verdict, tried.kind


def _of_curves(tried: Case, weight: np.ndarray, ended: Fit) -> Judged:
    model, data = tried.model, tried.data
    parts = model, data.X, data.y, weight, data.fresh
    verdict = judge_curves(*parts, warned=ended.warned)
    # the coefficients and the function are documented to be two points within the gap
    verdict.findings = [found for found in verdict.findings if found.kind != ANOTHER]
    return verdict


def attack(count: int, seed: int) -> Outcome:
    """Fit so many estimators, and judge them."""
    return tries("other_models", case, judged, count, seed)
