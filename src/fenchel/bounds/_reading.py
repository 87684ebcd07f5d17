"""What bounds read off a fitted estimator and its sample."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn import linear_model

from fenchel._typing import FloatArray
from fenchel.bounds._losses import theorem_of
from fenchel.bounds._result import BOOK, check_real
from fenchel.bounds.positive import POSITIVE
from fenchel.features import Explicit
from fenchel.kernels import OperatorKernel, Precomputed, as_kernel, is_open, settled
from fenchel.losses import Loss, Squared
from fenchel.losses.registry import LOSSES
from fenchel.online import OnlineLasso, OnlineRidge
from fenchel.positive import NonNegativeRegressor
from fenchel.regression import Lasso, Ridge

_EUCLIDEAN = (Ridge, OnlineRidge, linear_model.Ridge, linear_model.RidgeCV)
_ABSOLUTE = (
    *(Lasso, OnlineLasso, linear_model.Lasso, linear_model.LassoCV),
    *(linear_model.LassoLars, linear_model.LassoLarsCV, linear_model.LassoLarsIC),
)
"""Linear models by what they penalize, ‖w‖² or ‖w‖₁: their functions are in balls of that norm."""

_MISMATCH = 1e-6  # rounding of objectives, relative
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Fit:
    """What a bound reads off an estimator and its sample."""

    loss: Loss
    residual: FloatArray
    """(n, p)."""
    prediction: FloatArray
    norm: float
    offset: FloatArray
    free_offset: bool
    radius: float
    """sup of |h_j(x)| is at most norm * radius * gains_j."""
    expected: float
    """Bound on R_n of the ball of norm 1 and gain 1."""
    observed: float
    """The same for R̂_S."""
    gains: FloatArray
    """√ of the diagonal of the output matrix, (p,)."""
    source: str
    assumption: str
    caveats: tuple[str, ...] = ()
    fixed_norm: float | None = None
    """Λ, where the estimator was told it and had no choice."""


def read(estimator: Any, X: FloatArray, targets: FloatArray, radius: float | None) -> Fit:
    """Recognize the estimator, and refuse another sample than that of its fit."""
    if hasattr(estimator, "best_estimator_"):
        fit = read(estimator.best_estimator_, X, targets, radius)
        if "radius" in estimator.best_params_:
            fit = replace(fit, fixed_norm=None)
        chosen = sorted(set(estimator.best_params_) - {"alpha", "radius"})
        if not chosen:
            return fit
        caveat = f"{', '.join(chosen)} was chosen on the sample, by cross-validation"
        return replace(fit, caveats=(caveat, *fit.caveats))
    if isinstance(estimator, NonNegativeRegressor):
        return _read_positive(estimator, X, targets, radius)
    if hasattr(estimator, "dual_coef_") and hasattr(estimator, "coupling_"):
        return _read_kernel(estimator, X, targets, radius)
    if hasattr(estimator, "coef_") and not hasattr(estimator, "dual_coef_"):
        return _read_linear(estimator, X, targets, radius)
    raise TypeError(
        "estimator must be a fitted kernel regressor of fenchel, or a fitted linear model with "
        f"coef_, got {type(estimator).__name__}"
    )


def _read_kernel(estimator: Any, X: FloatArray, targets: FloatArray, radius: float | None) -> Fit:
    kernel = estimator.kernel_
    if isinstance(kernel, OperatorKernel):
        raise ValueError(
            "estimator must have a scalar kernel, got an operator-valued one: state the diagonal "
            "of K(x, x) to joint_quantile_bound instead"
        )
    loss = estimator.loss_.unconstrained
    prediction = np.asarray(estimator.predict(X)).reshape(len(X), -1)
    if len(targets) != len(X) or targets.shape[1] not in (1, prediction.shape[1]):
        raise ValueError(
            f"y must have a row for each of the {len(X)} rows of X, got shape {targets.shape}"
        )
    residual = targets - prediction
    squared_norm = _squared_norm(estimator, loss, prediction, residual)
    radius, diagonal, caveats = _kernel_radius(estimator, X, radius)
    n, p = residual.shape
    return Fit(
        loss=loss,
        residual=residual,
        prediction=prediction,
        norm=math.sqrt(squared_norm),
        offset=np.asarray(estimator.offset_),
        free_offset=bool(estimator.fit_intercept),
        radius=radius,
        expected=radius / math.sqrt(n),
        observed=math.sqrt(float(diagonal.sum())) / n,
        gains=np.sqrt(np.diag(estimator.coupling_)),
        source=theorem_of(loss, p, loss.separable or p == 1),
        assumption=f"k(x, x) is always at most {radius:g}²",
        caveats=caveats + _measured(estimator),
    )


def _read_positive(
    estimator: NonNegativeRegressor, X: FloatArray, targets: FloatArray, radius: float | None
) -> Fit:
    """f_A is in the ball of radius ‖A‖ of the kernel k²."""
    loss = estimator.loss_
    if loss is None:
        raise ValueError(f"estimator must have a loss of residuals, got loss={estimator.loss!r}")
    prediction = estimator.predict(X)[:, None]
    residual = targets - prediction
    gram = estimator.model_.factor_.T @ estimator.model_.factor_
    unit = estimator.scale_
    objective = float(loss.value(residual).mean()) / unit**loss.degree
    objective += estimator.trace_penalty * float(np.trace(gram)) / unit
    objective += 0.5 * estimator.alpha_ * float(np.vdot(gram, gram)) / unit**2
    _same_sample(float(estimator.certificate_.primal), objective, _MISMATCH * objective)
    radius, diagonal, caveats = _kernel_radius(estimator, X, radius)
    n = len(X)
    return Fit(
        loss=loss,
        residual=residual,
        prediction=prediction,
        norm=float(np.linalg.norm(gram)),
        offset=np.zeros(1),
        free_offset=False,
        radius=radius**2,
        expected=radius**2 / math.sqrt(n),
        observed=float(np.linalg.norm(diagonal)) / n,
        gains=np.ones(1),
        source=f"{POSITIVE}, theorem 5 with half the constant; {BOOK}, theorem 11.3",
        assumption=f"k(x, x) is always at most {radius:g}²",
        caveats=caveats,
    )


def _measured(estimator: Any) -> tuple[str, ...]:
    """Caveats for numbers of the loss that were read off y."""
    name = getattr(estimator, "loss", None)
    reads = LOSSES[name].reads if isinstance(name, str) and name in LOSSES else ()
    names = [each for each in reads if getattr(estimator, each) is None]
    return tuple(f"{each} of the loss was measured on the sample" for each in names)


def _kernel_radius(
    estimator: Any, X: FloatArray, radius: float | None
) -> tuple[float, FloatArray, tuple[str, ...]]:
    """r with k(x, x) <= r², k(x, x) of the rows, and what was measured on them."""
    kernel, diagonal = estimator.kernel_, _diagonal(estimator, X)
    explicit = isinstance(estimator.feature_map_, Explicit)
    if radius is None:
        if explicit or isinstance(kernel, Precomputed) or not kernel.is_stationary():
            raise ValueError(
                f"radius must be given, with k(x, x) <= radius² for every x that can occur: the "
                f"kernel {kernel!r} is not known to be bounded"
            )
        radius = math.sqrt(float(diagonal.max()))
    radius = check_real("radius", radius, open_low=True)
    check_covers("radius", radius, math.sqrt(float(diagonal.max())))
    caveats: tuple[str, ...] = ()
    given = as_kernel(estimator.kernel)
    learned = getattr(estimator, "learned_", None) is not None and is_open(given)
    if not explicit and settled(given) != settled(kernel):
        which = "parameters of the kernel {!r} were learned on the sample"
        one = "the length scale of the kernel {!r} was measured on the sample"
        caveats += ((which if learned else one).format(kernel),)
    if explicit and estimator.feature_map_.transformer is not None:
        caveats += ("the transformer of the features was fitted on the sample",)
    return radius, diagonal, caveats


def _same_sample(fitted: float, given: float, allowed: float) -> None:
    if abs(fitted - given) > allowed:
        raise ValueError(
            "X and y must be the sample that the estimator was fitted on, all rows with the same "
            f"weight: the objective of the fit is {fitted:g}, that on the given sample {given:g}"
        )


def _squared_norm(
    estimator: Any, loss: Loss, prediction: FloatArray, residual: FloatArray
) -> float:
    """‖h‖², and a refusal where it shows that this is not the sample of the fit.

    Once as Σ <dual coefficient, h(x)> and once as what the certified objective leaves beside
    the losses. For the rows, targets and weights of the fit they differ by <h' - h, h> with h'
    the function of the dual point, and alpha ½‖h' - h‖² is at most the duality gap.
    """
    alpha, mean_loss = float(estimator.alpha_), float(loss.value(residual).mean())
    primal = float(estimator.certificate_.primal)
    support = np.asarray(estimator.support_)
    left = 2.0 * (primal - mean_loss) / alpha
    known = not len(support) or int(support.max()) < len(prediction)
    function = prediction - estimator.offset_
    squared = float(np.vdot(estimator.dual_coef_, function[support])) if known else np.inf
    gap = max(float(estimator.certificate_.gap), 0.0) / alpha
    apart = alpha * math.sqrt(2.0 * gap * max(left, 0.0))
    _same_sample(
        primal,
        0.5 * alpha * squared + mean_loss,
        0.5 * (apart + _MISMATCH * (primal + mean_loss)),
    )
    return max(squared, left, 0.0)


def _diagonal(estimator: Any, X: FloatArray) -> FloatArray:
    if isinstance(estimator.kernel_, Precomputed):
        return np.diag(X)
    if isinstance(estimator.feature_map_, Explicit):
        features = estimator.feature_map_.transform(X)
        return np.einsum("ij,ij->i", features, features)
    return np.asarray(estimator.kernel_.diag(X))


def _read_linear(estimator: Any, X: FloatArray, targets: FloatArray, radius: float | None) -> Fit:
    """A linear function in a ball of the norm that the estimator penalizes or bounds."""
    euclidean = isinstance(estimator, _EUCLIDEAN)
    if not (euclidean or isinstance(estimator, _ABSOLUTE)):
        raise TypeError(
            "estimator must penalize the l1 norm or the squared length of its weights if it is "
            f"linear, as Lasso and Ridge do, got {type(estimator).__name__}: there is no theorem "
            "here for its class, but lasso_bound and pseudo_dimension_bound are for any weights"
        )
    weights = np.asarray(estimator.coef_, dtype=np.float64)
    if weights.size != X.shape[1] or targets.shape != (len(X), 1):
        raise ValueError(
            "estimator must be a linear model of one target on the columns of X, got coef_ of "
            f"shape {weights.shape} for X of shape {X.shape} and y of shape {targets.shape}"
        )
    size = "‖x‖" if euclidean else "|x_j|"
    each = "" if euclidean else " for all features"
    if radius is None:
        raise ValueError(
            f"radius must be given, with {size} <= radius{each} of every x that can occur: linear "
            "functions are not bounded"
        )
    radius = check_real("radius", radius, open_low=True)
    n, d = X.shape
    lengths = np.linalg.norm(X, axis=1) if euclidean else np.abs(X)
    check_covers("radius", radius, float(lengths.max()))
    if euclidean:
        unit, norm = 1.0 / math.sqrt(n), float(np.linalg.norm(weights))
        observed = math.sqrt(float((lengths**2).mean()))
        source = f"{BOOK}, theorem 11.11"
    else:
        unit, norm = math.sqrt(2.0 * math.log(2.0 * d) / n), float(np.abs(weights).sum())
        observed = math.sqrt(float((lengths**2).mean(axis=0).max()))
        source = f"{BOOK}, theorem 11.16 with 4 r∞ Λ₁ M in place of 2 r∞ Λ₁ M"
    prediction = np.asarray(estimator.predict(X), dtype=np.float64).reshape(n, 1)
    bounded = getattr(estimator, "radius", None)
    return Fit(
        loss=Squared(),
        residual=targets - prediction,
        prediction=prediction,
        norm=norm,
        offset=np.atleast_1d(np.asarray(estimator.intercept_, dtype=np.float64)),
        free_offset=bool(estimator.fit_intercept),
        radius=radius,
        expected=radius * unit,
        observed=observed * unit,
        gains=np.ones(1),
        source=source,
        assumption=f"{size} is always at most {radius:g}{each and ',' + each}",
        fixed_norm=None if bounded is None else float(bounded),
    )


def check_covers(name: str, stated: float, needed: float) -> None:
    """Refuse a bound that the sample refutes."""
    if needed > stated * (1.0 + _ROUNDING):
        raise ValueError(
            f"{name} must be at least {needed:g}, which the sample reaches, got {stated!r}"
        )
