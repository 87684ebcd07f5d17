"""Objectives of fitted estimators from their predictions, by the formulas of the docstrings."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel import GroupLasso, Lasso
from fenchel.functional import FunctionalRegressor
from fenchel.positive import NonNegativeRegressor
from fenchel.regression._base import KernelRegressor


def objective(model: Any, X: np.ndarray, y: np.ndarray) -> float | None:
    """The objective of a model on the rows it was fitted to; None where none is written here."""
    for kind, formula in FORMULAS.items():
        if isinstance(model, kind):
            return float(formula(model, X, y))
    return None


def _kernel(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    moved = model.offset_ - model.certified_offset_
    prediction = model.predict(X).reshape(len(X), -1) - moved
    residual = y.reshape(len(X), -1) - prediction
    outputs = np.linalg.pinv(model.coupling_)
    penalty = float(np.vdot(model.weights_, model.weights_ @ outputs))
    return 0.5 * model.alpha_ * penalty + float(model.loss_.value(residual).mean())


def _norm(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    coef = np.abs(np.atleast_2d(model.coef_))
    norm = np.linalg.norm(coef, axis=0).sum() if isinstance(model, GroupLasso) else coef.sum()
    residual = (y - model.predict(X)).reshape(len(X), -1)
    return model.alpha * norm + 0.5 * float(np.square(residual).sum(axis=1).mean())


def _curves(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    residual = y - model.predict(X)
    length = np.sqrt((model.measure_ * residual**2).sum(axis=1))
    outside = np.maximum(length - model.kappa, 0.0)
    between = model.output_kernel_(model.grid_[:, None])
    penalty = float(np.vdot(model.weights_, model.weights_ @ between))
    return 0.5 * model.alpha_ * penalty + 0.5 * float((length**2 - outside**2).mean())


def _non_negative(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    scale, factor = model.scale_, model.model_.factor_
    matrix = factor @ factor.T / scale
    loss = 0.5 * float(np.square((y - model.predict(X)) / scale).mean())
    penalty = model.trace_penalty * np.trace(matrix)
    return loss + penalty + 0.5 * model.alpha * float(np.vdot(matrix, matrix))


FORMULAS = {
    KernelRegressor: _kernel,
    Lasso: _norm,
    GroupLasso: _norm,
    FunctionalRegressor: _curves,
    NonNegativeRegressor: _non_negative,
}
"""With the losses and norms of the estimators in the registry."""
