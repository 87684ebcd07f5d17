"""The judge of non-negative models: signs, order, integrals, objectives where duals are public."""

from __future__ import annotations

from typing import Any

import numpy as np

from judge.certificates import Judged, compare
from judge.findings import UNIT, not_finite, wide
from judge.kernels import kernel_values

_EIGEN = 1e-11
"""What an eigendecomposition in double precision may leave of the scale of its matrix."""
_INTEGRAL = 2.3e-6
"""A unit of rounding over 1e-10, the last pivots of features: integrals divide by them."""


def judge_non_negative(
    model: Any,
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    loss: Any,
    *,
    warned: bool = False,
    approximate: bool = False,
) -> Judged:
    """Judge a ``NonNegativeRegressor`` with a loss of residuals; ``loss`` is in units of scale_.

    A is the negative part of Σ d_i φ(x_i) φ(x_i)ᵀ + t I over alpha. With K = R Rᵀ the rows of R
    are features like any others: the sum is Rᵀ diag(d) R there.
    """
    judged, numbers = Judged(), model.certificate_
    predicted = np.asarray(model.predict(X))
    judged.findings += not_finite(
        predict=predicted, dual_coef_=model.dual_coef_, certificate_=_numbers(numbers)
    )
    if judged.findings:
        return judged
    if predicted.min() < 0.0:
        judged.add("negative value", f"predict is {predicted.min():.3e} at a training row")
    kept = weight > 0
    share, scale = weight[kept] / weight[kept].sum(), model.scale_
    own_scale = float(np.average(np.abs(y[kept]), weights=share))
    if abs(scale - own_scale) > 1e-12 * own_scale > 0.0:
        judged.add("scale", f"scale_ is {scale!r}, the mean of |y| {own_scale!r}")
    coefficients = model.dual_coef_[kept]
    if approximate:
        features, lost = model.feature_map_.transform(X[kept]), _EIGEN
        gram = features @ features.T
    else:
        kernel = kernel_values(model.kernel_, X[kept], X[kept])
        gram = kernel.value.astype(float)
        lost = _EIGEN + float(kernel.error.sum(axis=1).max() / np.diag(gram).max())
        values, vectors = np.linalg.eigh(gram)
        features = vectors * np.sqrt(np.maximum(values, 0.0))
    pulled = features.T @ (coefficients[:, None] * features)
    pulled = pulled + model.trace_penalty * np.eye(len(pulled))
    eigenvalues, basis = np.linalg.eigh(pulled)
    if model.alpha is not None and model.alpha_ != model.alpha:
        judged.add("alpha", f"alpha_ is {model.alpha_!r}, given was {model.alpha!r}")
    negative = np.maximum(-eigenvalues, 0.0) / model.alpha_
    z = ((features @ basis) ** 2) @ negative
    residual = wide((y[kept] - predicted[kept]) / scale)[:, None]
    beta = -wide(coefficients / share)[:, None]
    inside = loss.nearest(beta)
    size = float(np.abs(coefficients) @ np.diag(gram)) + model.trace_penalty
    blur = lost * size / model.alpha_ * float(np.diag(gram).max(initial=0.0))
    off = np.abs(z - predicted[kept] / scale)
    gap_bound = 2 * np.sqrt(2 * max(numbers.gap, 0.0) / model.alpha_) * np.diag(gram)
    if np.any(off > gap_bound + blur + 1e-9 * z):
        judged.add("predict is not the formula", f"off by {off.max():.2e} of {z.max():.2e}")
    move = wide(blur + 16 * UNIT * (np.abs(y[kept]) / scale + z))[:, None]
    # ⟨M, A⟩ of the model that predicts is Σ d z, whatever its A
    losses = loss.value(residual)
    norm = float(model.trace_penalty * negative.sum() + model.alpha_ / 2 * (negative**2).sum())
    dual = (wide(share) * (inside[:, 0] * wide(y[kept]) / scale - loss.conjugate(inside))).sum()
    dual = dual - wide(model.alpha_) / 2 * (wide(negative) ** 2).sum()
    primal = (wide(share) * losses).sum() + norm
    slack = (
        wide(share) * (loss.steepness(residual, move) + np.abs(beta[:, 0]) * move[:, 0])
    ).sum()
    slack += negative.sum() * lost * size + 1e-13 * float(primal)
    exact = bool(np.all(off <= blur + 1e-13 * z))
    judged.apart = 0.0 if exact else 2.0
    judged.primal, judged.slack = float(primal), float(slack)
    young = losses + loss.conjugate(inside) - (inside * residual).sum(axis=1)
    judged.gap = float((wide(share) * young).sum())
    if numbers.dual > float(dual) + float(slack):
        judged.add("dual", f"certificate_.dual {numbers.dual:.12e}, own {float(dual):.12e}")
    if not exact:
        judged.primal = -np.inf  # the norm of what predicts is not public
    compare(judged, numbers, model.tol, model.status_.converged, warned, np.inf)
    return judged


def judge_values(model: Any, kind: str, fresh: np.ndarray, warned: bool) -> Judged:
    """Judge signs, order and numbers at rows anywhere."""
    judged, numbers = Judged(), model.certificate_
    if kind == "density":
        values = np.asarray(model.score_samples(fresh))
        values = np.exp(values)  # minus infinity is a density of zero
    elif kind == "heteroscedastic":
        mean, std = model.predict(fresh, return_std=True)
        judged.findings += not_finite(mean=mean, std=std)
        values = np.asarray(std)
        if np.any(values <= 0.0):
            judged.add("negative value", f"a standard deviation is {values.min():.3e}")
    else:
        values = np.asarray(model.predict(fresh))
    judged.findings += not_finite(values=values, certificate_=_numbers(numbers))
    if judged.findings:
        return judged
    if kind in ("density", "non-negative") and values.min() < 0.0:
        judged.add("negative value", f"{values.min():.3e} at a new row")
    if kind == "quantiles":
        ordered = values.reshape(len(fresh), -1)[:, np.argsort(model.levels_)]
        if np.any(np.diff(ordered, axis=1) < 0.0):
            judged.add("crossing", f"by {-np.diff(ordered, axis=1).min():.3e}")
    scale = abs(numbers.primal) + abs(numbers.dual)
    if numbers.gap < -_EIGEN * scale:
        judged.add("negative gap", f"certificate_.gap is {numbers.gap:.3e} of {scale:.1e}")
    if (
        model.status_.converged
        and not warned
        and numbers.gap > model.tol * numbers.unit * 1.000001
    ):
        judged.add("silent gap", f"claimed {numbers.gap:.3e}, unit {numbers.unit:.3e}")
    return judged


def judge_density(
    model: Any, X: np.ndarray, weight: np.ndarray, limits: tuple[float, float], exact: bool
) -> Judged:
    """Judge a density on the line: its integral by quadrature, its objective, its dual point."""
    judged, numbers = Judged(), model.certificate_
    kept = weight > 0
    share = weight[kept] / weight[kept].sum()
    grid = np.linspace(*limits, 20001)
    f = np.exp(model.score_samples(grid[:, None]))
    judged.findings += not_finite(density=f, certificate_=_numbers(numbers))
    if judged.findings:
        return judged
    steps = (grid[1] - grid[0]) / 3 * np.r_[1.0, np.tile([4.0, 2.0], 9999), 4.0, 1.0]
    integral = float(steps @ f)
    width = float(np.ravel(model.kernel_.length_scale)[0])
    # a unit of rounding of X moves kernels by this, and features of the last pivots 1e5 times it
    blur = 1e6 * UNIT * float(np.abs(X).max()) / width
    if abs(integral - 1.0) > (_INTEGRAL if exact else 1e-4) + blur:
        judged.add("integral", f"the density integrates to {integral:.12f}")
    values = np.exp(model.score_samples(X[kept]))
    kernel = kernel_values(model.kernel_, grid[:, None], X[kept]).value.astype(float)
    diagonal = [float(kernel_values(model.kernel_, x[None], x[None]).value[0, 0]) for x in X[kept]]
    volume = float(share @ (steps @ kernel**2 / np.array(diagonal)))
    if abs(volume - model.volume_) > ((_INTEGRAL if exact else 1e-3) + blur) * volume:
        judged.add("volume", f"volume_ is {model.volume_:.9e}, by quadrature {volume:.9e}")
    matrix = model.model_.matrix_
    volume = model.volume_
    trace = model.trace_penalty * volume * np.trace(matrix)
    square = model.alpha_ / 2 * volume**2 * (matrix**2).sum()
    primal = float(-(share @ np.log(values)) + trace + square)
    size = abs(trace) + square + float(share @ np.abs(np.log(values)))
    if abs(primal - numbers.primal) > (1e-9 + blur) * size:
        judged.add("primal", f"certificate_.primal {numbers.primal:.12e}, own {primal:.12e}")
    return judged


def _numbers(numbers: Any) -> list[float]:
    return [numbers.primal, numbers.dual, numbers.unit, numbers.feasibility]
