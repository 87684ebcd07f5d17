"""Bounds of the papers and of the textbook's exercises, evaluated for fitted estimators."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fenchel._validation import shown
from fenchel.bounds._applied import ball_around, range_of
from fenchel.bounds._losses import excess_of, local, scale_of
from fenchel.bounds._reading import (
    Fit,
    check_sample,
    inner_of,
    is_linear,
    predicted,
    read,
    sample_of,
)
from fenchel.bounds._result import BOOK, Bound, check_delta, check_real
from fenchel.bounds.general import tail
from fenchel.bounds.papers import Interval, insensitive_excess_bound, quantile_deviation_bound
from fenchel.kernels import OperatorKernel
from fenchel.losses import Squared
from fenchel.solvers import ClosedForm


def level_bounds(
    estimator: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    margin: float,
    delta: float = 0.05,
    radius: Any = None,
    norm_bound: float | None = None,
    offset_bound: float | None = None,
) -> list[Interval]:
    r"""Bound P(Y <= h_j(X)) for all levels of a fit simultaneously, for any norm of the fit.

    .. math:: \frac1n \sum_i \Gamma^-(r_{ij}) - \Delta_j \le P(Y \le h_j(X))
              \le \frac1n \sum_i \Gamma^+(r_{ij}) + \Delta_j, \qquad
              \Delta_j = \frac{2 (\Lambda r_j + \beta)}{\varepsilon \sqrt n}
              + \sqrt{\frac{\log(2 p / \delta_{\Lambda, \beta})}{2n}}

    It applies :func:`quantile_deviation_bound` to each of p levels with a share of δ, over all
    balls Λ = 2^k ε/r and β = 2^l ε around 0 as in :func:`bound`, and takes the smallest ball that
    contains the fit. No bound on y is needed. An ε-insensitive loss or refitted offsets are
    allowed, because the theorem holds for all functions of the class.

    Parameters
    ----------
    estimator : fitted QuantileRegressor
        Any fitted kernel regressor with levels. Its ``radius`` is Λ, fixed in advance.
    X, y : array-like
        The training sample, without weights.
    margin : float
        ε > 0 in the units of y, chosen without the sample.
    delta : float, default=0.05
        Probability that any of the bounds fails.
    radius, norm_bound, offset_bound
        As in :func:`bound`; offsets are measured from 0.

    Returns
    -------
    list of Interval
        ``lower`` and ``upper`` for each level, in the order of ``levels``. If y has several
        columns, all columns of the first level come first, then those of the second, and so on.

    References
    ----------
    Sangnier, Fercoq, d'Alché-Buc (2016), theorem 4.2, with K(x, x)_jj in place of the trace, and a
    union bound over levels and balls.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.bounds import level_bounds
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.kernels import Gaussian
    >>> X, y, _ = make_sine_quantiles(4000, random_state=0)
    >>> model = QuantileRegressor([0.1, 0.9], radius=1.0, kernel=Gaussian(0.5)).fit(X, y)
    >>> low, high = level_bounds(model, X, y, margin=1.0)
    >>> low.upper.value < 1.0, high.lower.value > 0.5
    (True, True)
    """
    inner = inner_of(estimator)
    if getattr(inner, "levels_", None) is None:
        raise TypeError(
            f"estimator must have levels, as QuantileRegressor has, got {type(inner).__name__}"
        )
    epsilon, delta = check_real("margin", margin, open_low=True), check_delta(delta)
    fit = read(estimator, *sample_of(estimator, X, y), radius)
    stated = fit.fixed_norm if norm_bound is None else norm_bound
    norm, share = ball_around("norm_bound", stated, fit.norm, epsilon / fit.radius)
    beta, portion = 0.0, 1.0
    if fit.free_offset:
        needed = float(np.abs(fit.offset).max())
        beta, portion = ball_around("offset_bound", offset_bound, needed, epsilon)
    p = fit.residual.shape[1]
    each = delta * share * portion / p
    found = []
    for column, gain in zip(fit.residual.T, fit.gains, strict=True):
        both = quantile_deviation_bound(
            column,
            margin=epsilon,
            norm=norm,
            radius=fit.radius * float(gain),
            offset_bound=beta,
            delta=each,
        )
        found.append(Interval(*(_priced(end, delta, p, fit) for end in both)))
    return found


def _priced(end: Bound, delta: float, p: int, fit: Fit) -> Bound:
    """The same bound, with what union over levels and balls costs as a term of its own."""
    sign = -1.0 if end.lower else 1.0
    alone = sign * tail(delta / 2.0, int(end.constants["n"]))
    terms = {**end.terms, "confidence": alone}
    terms["choice of the class"] = end.terms["confidence"] - alone
    shared = f"delta is shared by {p} levels and by balls of norms and offsets of all sizes 2^k"
    known = {**end.constants, "delta": delta, "share of delta": end.constants["delta"]}
    said = (end.assumptions[0], *end.assumptions[2:], fit.assumption, shared)
    return replace(end, terms=terms, assumptions=said, constants=known, caveats=fit.caveats)


def excess_bound(
    estimator: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    target_bound: Any,
    delta: float = 0.05,
    radius: Any = None,
) -> Bound:
    r"""Bound the excess risk of a fit in a ball over the best function of the ball.

    .. math:: E\,\ell(Y - \hat f(X)) - \min_F E\,\ell(Y - h(X) - b)
              \le 2 \sqrt2 L R_n(F) + 2 L M \sqrt{\frac{\log(2/\delta)}{2n}} + L \varepsilon + g

    It applies :func:`insensitive_excess_bound` to an estimator with a ``radius`` Λ. By its
    certificate, the mean loss of the fit is at most g above the minimum. The optimal offsets of
    any function of the ball are at most β_j = a + Λ r_j + ε from the middle of the range of y, of
    half-length a. So the class F is known in advance, with R_n(F) <= (Λ ‖r‖ + Σ_j β_j)/√n and M =
    ‖(a + β_j + Λ r_j)_j‖; for a Lasso, Λ ‖r‖ has the further factor √(2 log 2d). L is the slope on
    residuals of this class, and squares are without ½, as in :func:`bound`. Offsets moved out of
    this class are rejected. With ``non_crossing="train"`` the minimum is over the functions of F
    whose curves never cross.

    Parameters
    ----------
    estimator : fitted QuantileRegressor or SVR
        Any kernel regressor with ``radius``, or a Lasso with it; ``epsilon`` may be 0.
    X, y : array-like
        The training sample, without weights.
    target_bound : float or (float, float)
        As in :func:`bound`.
    delta : float, default=0.05
        Probability of failure.
    radius : float, or array-like of shape (n_outputs,), optional
        r as in :func:`bound`.

    Returns
    -------
    Bound
        The bound with its terms, assumptions and caveats.

    References
    ----------
    Sangnier, Fercoq, d'Alché-Buc (2017), theorem 2, with offsets and a certified fit instead of
    the minimizer.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import SVR
    >>> from fenchel.bounds import excess_bound
    >>> from fenchel.kernels import Gaussian
    >>> X = np.random.RandomState(0).uniform(-1, 1, (2000, 1))
    >>> y = np.cos(3 * X[:, 0])
    >>> model = SVR(epsilon=0.1, radius=1.0, kernel=Gaussian(1.0)).fit(X, y)
    >>> sorted(excess_bound(model, X, y, target_bound=1.0).terms)
    ['complexity', 'confidence', 'insensitivity', 'optimization']
    """
    rows, targets = sample_of(estimator, X, y)
    fit, inner = read(estimator, rows, targets, radius), inner_of(estimator)
    if fit.fixed_norm is None:
        bounded = getattr(inner, "radius", None) is not None
        got = "a radius that a search chose on the sample" if bounded else "radius=None"
        raise ValueError(
            "estimator must have been fitted with radius, a bound on the norm, got "
            f"{got}: the theorem is for the minimizer over a class that was fixed in advance"
        )
    interval = range_of(target_bound, targets)
    if interval is None:
        raise ValueError("target_bound must be given, got None")
    low, high = interval
    half = 0.5 * (high - low) if fit.free_offset else max(abs(low), abs(high))
    n, p = fit.residual.shape
    epsilon, sizes = float(fit.loss.epsilon), fit.fixed_norm * fit.radius * fit.gains
    offsets = half + sizes + epsilon if fit.free_offset else np.zeros(p)
    if fit.free_offset and np.any(np.abs(fit.offset - 0.5 * (low + high)) > 1.000001 * offsets):
        raise ValueError(
            f"estimator must have offsets within {offsets.max():g} of the middle of target_bound, "
            "as those of a fit are before they are moved to other rows, got "
            f"{shown(np.asarray(fit.offset).tolist())}: fit it with refit_offsets=None"
        )
    lengths = half + offsets + sizes
    at = local(fit.loss, lengths + epsilon)
    average = fit.fixed_norm * fit.expected * float(np.linalg.norm(fit.gains))
    slope = float(np.linalg.norm(at.slopes))
    found = insensitive_excess_bound(
        n,
        rademacher=average + float(offsets.sum()) / math.sqrt(n),
        lipschitz=slope,
        residual_bound=float(np.linalg.norm(lengths)),
        epsilon=epsilon,
        n_outputs=p,
        delta=delta,
    )
    reached = float(fit.loss.value(fit.residual).mean())
    if is_linear(inner):  # of kernels it is read with the rest
        check_sample(float(inner.certificate_.primal), reached)
    short = reached - float(inner.certificate_.dual)
    # the fit is the best of those in order at the rows; a better function may be out of order
    ordered = getattr(getattr(inner, "loss_", None), "cone", None) is not None
    rivals = "the functions of the class whose curves never cross" if ordered else "the class"
    terms, scale = {**found.terms, "optimization": max(short, 0.0)}, scale_of(fit.loss)
    known = {"lipschitz": scale * slope, "norm": fit.fixed_norm, "offset": float(offsets.max())}
    return replace(
        found,
        terms={name: scale * term for name, term in terms.items()},
        assumptions=(*found.assumptions[:2], *found.assumptions[3:], fit.assumption),
        constants={**found.constants, **known},
        risk=excess_of(fit.loss, rivals),
        trivial=scale * found.trivial,
        caveats=fit.caveats,
    )


def truncation_bound(estimator: Any, X: npt.ArrayLike, y: npt.ArrayLike) -> Bound:
    r"""Bound the effect of a kernel approximation on the predictions of ridge regression.

    .. math:: \|\hat y' - \hat y\| = \lambda \|a' - a\| \le \|K' - K\|_2\, \|a\|
              \le \operatorname{tr}(K' - K)\, \|a\|, \qquad a = (y - \hat y) / \lambda

    with K the Gram matrix of the features, K' that of the kernel, λ = alpha n, and ŷ, ŷ' the
    predictions of the two for the training rows, including the intercept. It follows from (a) of
    the exercise, for vectors of sum zero if there is an intercept. K' - K is positive
    semi-definite, so its norm is at most its trace, which is ``kernel_error_`` times that of K'.
    For outputs coupled by B the bound has a further factor ‖B‖₂.

    Parameters
    ----------
    estimator : fitted KernelRidge
        Estimator with approximate features of its kernel, such as pivoted Cholesky or Nyström,
        solved in closed form.
    X, y : array-like
        The training sample, without weights.

    Returns
    -------
    Bound
        Bound on ‖ŷ' - ŷ‖, the root of the sum of squares over rows and outputs. It is
        deterministic: there is no probability of failure.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, exercise 11.4.

    Examples
    --------
    >>> from fenchel import KernelRidge
    >>> from fenchel.bounds import truncation_bound
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.features import Nystroem
    >>> from fenchel.kernels import Gaussian
    >>> X, y, _ = make_sine_quantiles(300, random_state=0)
    >>> model = KernelRidge(1e-2, features=Nystroem(Gaussian(0.5), rank=40)).fit(X, y)
    >>> truncation_bound(model, X, y).vacuous
    False
    """
    estimator = inner_of(estimator)
    kind = type(estimator).__name__
    loss = getattr(estimator, "loss_", None)
    squared = isinstance(loss, Squared) and getattr(estimator, "radius", None) is None
    if not squared or getattr(estimator, "certified_kernel_", None) != "given":
        raise TypeError(
            "estimator must be a fitted KernelRidge with a penalty, whose features are a part of "
            f"its kernel, got {kind}"
        )
    if isinstance(estimator.kernel_, OperatorKernel):
        raise TypeError(
            "estimator must have a scalar kernel, with coupling for the outputs, got "
            f"{shown(estimator.kernel_)}"
        )
    # what another solver leaves of its gap is no effect of the kernel, and is not in the bound
    solver = estimator.solver
    if not isinstance(solver, ClosedForm) and solver not in ("auto", "closed_form"):
        raise ValueError(
            "estimator must be solved exactly, with solver='closed_form' or 'auto', got "
            f"solver={shown(solver)}"
        )
    rows, targets = sample_of(estimator, X, y)
    strength = float(estimator.alpha_) * len(rows)
    found = np.zeros_like(targets)
    found[estimator.support_] = strength * estimator.dual_coef_
    left = targets - predicted(estimator, rows).reshape(targets.shape)
    # features of low rank leave points whose bound is better a fraction as long
    share = float(np.vdot(found, left)) / (float(np.vdot(left, left)) or 1.0)
    if not np.allclose(found, share * left, atol=1e-6 * float(np.abs(targets).max())):
        raise ValueError(
            "X and y must be the sample that the estimator was fitted on, all rows with the same "
            "weight: residuals are not alpha_ n times the dual coefficients"
        )
    trace = float(np.sum(estimator.kernel_.diag(rows))) * float(estimator.kernel_error_)
    trace *= float(np.linalg.norm(estimator.coupling_, 2))
    length = float(np.linalg.norm(left)) / strength
    centred = targets - targets.mean(axis=0) if estimator.fit_intercept else targets
    return Bound(
        {"kernel": trace * length},
        assumptions=("the strength alpha_ and the length scales are the same",),
        constants={"n": len(rows), "trace": trace, "dual length": length, "strength": strength},
        source=f"{BOOK}, exercise 11.4 (a)",
        risk="‖ŷ' - ŷ‖ on the training rows",
        trivial=float(np.linalg.norm(centred)),
    )
