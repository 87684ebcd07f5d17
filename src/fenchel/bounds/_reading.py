"""Extraction of the quantities that bounds need from a fitted estimator and its sample."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import linear_model

from fenchel._sentences import said_of
from fenchel._threads import without_warnings
from fenchel._typing import FloatArray
from fenchel._validation import check_dense, shown, targets_of
from fenchel.bounds._losses import theorem_of
from fenchel.bounds._result import BOOK, POSITIVE, check_real
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
_MEASURED_SCALE = "length scales or ranks of the kernel {!r} were measured on the sample"


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


def sample_of(estimator: Any, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Rows (n, d) and targets (n, p) as arrays; a frame needs the columns of the fit."""
    check_dense(X)
    known = getattr(inner_of(estimator), "feature_names_in_", None)
    names = getattr(X, "columns", None)
    if known is not None and names is not None and list(names) != list(known):
        raise ValueError(
            f"X must have the columns of the fit, {shown(list(known))}, got {shown(list(names))}"
        )
    with said_of("X"):
        rows = np.asarray(X, dtype=np.float64)
    targets = targets_of("a bound", y, len(rows), several=True)
    return rows, targets[:, None] if targets.ndim == 1 else targets


def predicted(estimator: Any, X: FloatArray) -> FloatArray:
    """Predictions, one column for each output."""
    with without_warnings(UserWarning):  # of columns without names: they were checked
        return np.asarray(estimator.predict(X), dtype=np.float64).reshape(len(X), -1)


def inner_of(estimator: Any) -> Any:
    """Return the estimator that a search has chosen; others as they are."""
    return getattr(estimator, "best_estimator_", estimator)


def read(estimator: Any, X: FloatArray, targets: FloatArray, radius: float | None) -> Fit:
    """Recognize the estimator, and refuse another sample than that of its fit."""
    inner = inner_of(estimator)
    if inner is not estimator:
        fit = read(inner, X, targets, radius)
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
    if is_linear(estimator):
        return _read_linear(estimator, X, targets, radius)
    raise TypeError(
        "estimator must be a fitted kernel regressor of fenchel, or a fitted linear model with "
        f"coef_, got {type(estimator).__name__}"
    )


def _read_kernel(estimator: Any, X: FloatArray, targets: FloatArray, radius: Any) -> Fit:
    loss = estimator.loss_.unconstrained
    prediction = predicted(estimator, X)
    if targets.shape[1] > 1 and hasattr(estimator, "levels_"):
        targets = np.tile(targets, len(estimator.levels_))
    if targets.shape[1] not in (1, prediction.shape[1]):
        raise ValueError(
            f"y must have one column or {prediction.shape[1]}, as the predictions, got shape "
            f"{targets.shape}"
        )
    residual = targets - prediction
    _check_objective(estimator, loss, residual)
    several = isinstance(estimator.kernel_, OperatorKernel)
    of_kernel = _operator_radius if several else _radius
    radius, gains, observed, caveats = of_kernel(estimator, X, radius)
    most = f"k(x, x) is always at most {radius:g}²"
    if several:
        sizes = ", ".join(f"{radius * gain:g}²" for gain in gains)
        most = f"the diagonal of K(x, x) is always at most {sizes}"
    n, p = residual.shape
    return Fit(
        loss=loss,
        residual=residual,
        prediction=prediction,
        norm=float(estimator.norm_),
        offset=np.asarray(estimator.offset_),
        free_offset=bool(estimator.fit_intercept),
        radius=radius,
        expected=radius / math.sqrt(n),
        observed=observed,
        gains=gains,
        source=theorem_of(loss, p, loss.separable or p == 1),
        assumption=most,
        caveats=caveats + _measured(estimator),
        fixed_norm=None if estimator.radius is None else float(estimator.radius),
    )


def _read_positive(
    estimator: NonNegativeRegressor, X: FloatArray, targets: FloatArray, radius: float | None
) -> Fit:
    """f_A is in the ball of radius ‖A‖ of the kernel k²."""
    loss = estimator.loss_
    if loss is None:
        raise ValueError(f"estimator must have a loss of residuals, got loss={estimator.loss!r}")
    prediction = predicted(estimator, X)
    residual = targets - prediction
    gram = estimator.model_.factor_.T @ estimator.model_.factor_
    unit = estimator.scale_
    objective = float(loss.value(residual).mean()) / unit**loss.degree
    objective += estimator.trace_penalty * float(np.trace(gram)) / unit
    objective += 0.5 * estimator.alpha_ * float(np.vdot(gram, gram)) / unit**2
    check_sample(float(estimator.certificate_.primal), objective)
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
        caveats=caveats + _measured(estimator),
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
        caveats += ((which if learned else _MEASURED_SCALE).format(kernel),)
    if explicit and estimator.feature_map_.transformer is not None:
        caveats += ("the transformer of the features was fitted on the sample",)
    return radius, diagonal, caveats


def check_sample(fitted: float, given: float) -> None:
    """Refuse a sample on which the fit has another objective."""
    if abs(fitted - given) > _MISMATCH * (fitted + given):
        raise ValueError(
            "X and y must be the sample that the estimator was fitted on, all rows with the same "
            f"weight: the objective of the fit is {fitted:g}, that on the given sample {given:g}"
        )


def _check_objective(estimator: Any, loss: Loss, residual: FloatArray) -> None:
    """Refuse rows, targets or weights on which the fit has another objective."""
    certified = residual + (estimator.offset_ - estimator.certified_offset_)
    objective = float(loss.value(certified).mean())
    if estimator.radius is None:
        objective += 0.5 * float(estimator.alpha_) * float(estimator.norm_) ** 2
    check_sample(float(estimator.certificate_.primal), objective)


def _radius(
    estimator: Any, X: FloatArray, radius: float | None
) -> tuple[float, FloatArray, float, tuple[str, ...]]:
    """r with k(x, x) <= r², roots of B_jj, bound on R̂_S, and what was measured on the rows."""
    radius, diagonal, caveats = _kernel_radius(estimator, X, radius)
    gains = np.sqrt(np.diag(estimator.coupling_))
    return radius, gains, math.sqrt(float(diagonal.sum())) / len(X), caveats


def _operator_radius(
    estimator: Any, X: FloatArray, radius: Any
) -> tuple[float, FloatArray, float, tuple[str, ...]]:
    """The same of an operator-valued kernel, with r_j² >= K(x, x)_jj = r² (r_j / r)²."""
    sizes = np.sqrt(estimator.kernel_.diag(X))
    needed, p = sizes.max(axis=0), sizes.shape[1]
    if radius is None:
        raise ValueError(
            "radius must be given for an operator-valued kernel, a number or one for each "
            "output, with K(x, x)_jj <= radius_j² for every x that can occur, got None"
        )
    stated = np.atleast_1d(np.asarray(radius, dtype=np.float64))
    if stated.shape not in ((1,), (p,)) or not np.all(np.isfinite(stated)):
        raise ValueError(
            f"radius must be a number or have one entry for each of {p} outputs, "
            f"got {shown(radius)}"
        )
    stated = np.broadcast_to(stated, (p,))
    for each, least in zip(stated, needed, strict=True):
        check_covers("radius", check_real("radius", each, open_low=True), float(least))
    largest = float(stated.max())
    gains = stated / largest
    observed = float((np.sqrt((sizes**2).sum(axis=0)) / gains).max()) / len(X)
    caveats: tuple[str, ...] = ()
    some = X[: (len(X) + 1) // 2]  # on which rules would find other numbers
    if repr(estimator.kernel.resolved(some)) != repr(estimator.kernel_):
        caveats = (_MEASURED_SCALE.format(estimator.kernel_),)
    return largest, gains, observed, caveats


def _diagonal(estimator: Any, X: FloatArray) -> FloatArray:
    if isinstance(estimator.kernel_, Precomputed):
        return np.diag(X)
    if isinstance(estimator.feature_map_, Explicit):
        features = estimator.feature_map_.transform(X)
        return np.einsum("ij,ij->i", features, features)
    return np.asarray(estimator.kernel_.diag(X))


def _read_linear(
    estimator: Any,
    X: FloatArray,
    targets: FloatArray,
    radius: float | None,
    euclidean: bool | None = None,
) -> Fit:
    """A linear function in a ball of the norm that the estimator penalizes or bounds.

    Or, with ``euclidean``, in that of the length of the weights for the radius r∞ √d.
    """
    own = isinstance(estimator, _EUCLIDEAN)
    if not (own or isinstance(estimator, _ABSOLUTE)):
        raise TypeError(
            "estimator must penalize its weights if it is linear, as Lasso and Ridge do, got "
            f"{type(estimator).__name__}: bound(..., smallest=True, clip=True) takes any linear "
            "model, and lasso_bound and pseudo_dimension_bound take any weights"
        )
    weights, prediction = affine_part(estimator, X, targets)
    size, each = ("‖x‖", "") if own else ("|x_j|", " for all features")
    if radius is None:
        raise ValueError(
            f"radius must be given, with {size} <= radius{each} of every x that can occur: linear "
            "functions are not bounded"
        )
    radius = check_real("radius", radius, open_low=True)
    n, d = X.shape
    lengths = np.linalg.norm(X, axis=1) if own else np.abs(X)
    check_covers("radius", radius, float(lengths.max()))
    assumption = f"{size} is always at most {radius:g}{each and ',' + each}"
    if own or euclidean:
        radius = radius if own else radius * math.sqrt(d)
        unit, norm = 1.0 / math.sqrt(n), float(np.linalg.norm(weights))
        observed = math.sqrt(float((X**2).sum(axis=1).mean()))
        source = f"{BOOK}, theorem 11.11"
    else:
        unit, norm = math.sqrt(2.0 * math.log(2.0 * d) / n), float(np.abs(weights).sum())
        observed = math.sqrt(float((lengths**2).mean(axis=0).max()))
        source = f"{BOOK}, theorem 11.16 with 4 r∞ Λ₁ M in place of 2 r∞ Λ₁ M"
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
        assumption=assumption,
        fixed_norm=None if bounded is None else float(bounded),
    )


def affine_part(
    estimator: Any, X: FloatArray, targets: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weights (d,) and predictions (n, 1) of a linear model of one target."""
    weights = np.asarray(estimator.coef_, dtype=np.float64)
    if weights.size != X.shape[1] or targets.shape != (len(X), 1):
        raise ValueError(
            "estimator must be a linear model of one target on the columns of X, got coef_ of "
            f"shape {weights.shape} for X of shape {X.shape} and y of shape {targets.shape}"
        )
    return weights.ravel(), predicted(estimator, X)


def is_linear(estimator: Any) -> bool:
    """Whether a fitted estimator has weights for the columns of X."""
    return hasattr(estimator, "coef_") and not hasattr(estimator, "dual_coef_")


def read_also(
    estimator: Any, X: FloatArray, targets: FloatArray, radius: Any
) -> tuple[str | None, list[Fit]]:
    """All classes with a ball that a fit is in, its own first; what refuses that, if anything."""
    inner = inner_of(estimator)
    try:
        fits = [read(estimator, X, targets, radius)]
    except TypeError as refusal:
        if not is_linear(inner):
            raise
        return str(refusal), []
    if isinstance(inner, _ABSOLUTE):
        also = _read_linear(inner, X, targets, radius, euclidean=True)
        fits.append(replace(also, caveats=fits[0].caveats, fixed_norm=fits[0].fixed_norm))
    return None, fits


def check_covers(name: str, stated: float, needed: float) -> None:
    """Refuse a bound that the sample refutes."""
    if needed > stated * (1.0 + _ROUNDING):
        raise ValueError(
            f"{name} must be at least {needed:g}, which the sample reaches, got {shown(stated)}"
        )
