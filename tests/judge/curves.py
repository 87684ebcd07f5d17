"""The judge of functional regression on complete curves: outputs scaled by roots of weights."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from judge import losses
from judge.certificates import Judged, Named, judge
from judge.findings import wide
from judge.kernels import kernel_values


def curve_loss(model: Any, measure: np.ndarray) -> Any:
    """The loss of a name, of curves times √μ; None for an order of norm without a formula here."""
    root, infinite = np.sqrt(wide(measure)), np.full(len(measure), np.inf)
    name, tau = model.loss, wide(model.level)
    if name == "huber":
        by_order = {
            2.0: losses.Length(1.0, model.kappa_),
            1.0: losses.box(-model.kappa_ * root, model.kappa_ * root, 1, 1),
        }
        return by_order.get(float(model.norm))
    if name == "squared_epsilon_insensitive":
        by_order = {
            2.0: losses.Length(1.0, np.inf, model.epsilon_),
            np.inf: losses.DeadZone(model.epsilon_ * root),
        }
        return by_order.get(float(model.norm))
    return {
        "squared": losses.Length(1.0, np.inf),
        "epsilon_insensitive": losses.Length(0.0, 1.0, model.epsilon_),
        "absolute": losses.box(-root, root, 0, 0),
        "pinball": losses.box((tau - 1) * root, tau * root, 0, 0),
        "squared_pinball": losses.box(-infinite, infinite, 1 / (1 - tau), 1 / tau),
    }[name]


def judge_curves(
    model: Any,
    X: np.ndarray,
    curves: np.ndarray,
    weight: np.ndarray,
    fresh: np.ndarray | None = None,
    *,
    warned: bool = False,
    approximate: bool = False,
) -> Judged:
    """Judge a fitted ``FunctionalRegressor`` against the problem that it was given."""
    measure, grid = model.measure_, model.grid_[:, None]
    root = np.sqrt(measure)
    between = kernel_values(model.output_kernel_, grid, grid).value
    coupling = wide(root)[:, None] * between * wide(root)
    seen = SimpleNamespace(
        predict=lambda rows: root * np.reshape(model.predict(rows), (len(rows), -1)),
        dual_coef_=root * model.dual_coef_[model.support_],
        support_=model.support_,
        offset_=root * model.center_,
        certified_offset_=root * model.center_,
        coupling_=coupling,
        kernel_=model.kernel_,
        feature_map_=model.feature_map_,
        certificate_=model.certificate_,
        status_=model.status_,
        alpha=model.alpha_,
        tol=model.tol,
        fit_intercept=False,
    )
    targets = root * curves
    loss = curve_loss(model, measure)
    return judge(
        Named(seen, X, targets, weight, loss, coupling, approximate), fresh, warned=warned
    )
