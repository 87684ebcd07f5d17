"""Bounds for fitted estimators, honest about what was chosen with the sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray
from fenchel.bounds._losses import local, risk_of, scale_of
from fenchel.bounds._reading import Fit, read
from fenchel.bounds._result import IID, Bound, check_delta, check_real
from fenchel.bounds.general import tail
from fenchel.losses import Local

_LOWEST = -20
_ROUNDING = 1e-9


def bound(
    estimator: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    target_bound: Any = None,
    delta: float = 0.05,
    radius: float | None = None,
    residual_bound: float | None = None,
    norm_bound: float | None = None,
    offset_bound: float | None = None,
    clip: bool = False,
    empirical: bool = False,
) -> Bound:
    r"""Bound the risk of a fitted estimator from its training sample alone.

    .. math:: R(h) \le \hat R_S(h)
              + 2 \sum_j \mu_j \frac{\Lambda r \sqrt{B_{jj}} + \beta}{\sqrt n}
              + M \sqrt{\frac{\log(1 / \delta_\Lambda)}{2n}}

    Λ is at least the norm of the fit, β at least the distance of its offsets from the middle
    of the range of y, μ_j the slope and M the largest value of the loss over the residuals
    that functions of this class can have. For a loss that couples outputs, Maurer's vector
    contraction takes the place of the sum.

    *The norm is chosen by the data*, while the theorems are for a class fixed in advance. So
    they are applied to all balls Λ = 2^k a/r, k an integer, with a half the range of y, and
    the probability of failure is shared out: δ_Λ = ⅔ δ / ((\|k\| + 1)(\|k\| + 2)), which sum to
    δ. The same goes for offsets, β = 2^l a, with a further share of the same form. What that
    costs is the term "choice of the class". State ``norm_bound`` and ``offset_bound``, if they
    were fixed in advance, to save it. The strength alpha may have been chosen on the sample:
    it only chooses a ball.

    Parameters
    ----------
    estimator : fitted estimator
        :class:`KernelRidge`, :class:`SVR`, :class:`QuantileRegressor`,
        :class:`ExpectileRegressor` with any scalar kernel, or their cross-validated forms;
        :class:`NonNegativeRegressor`, in the ball of the squared kernel, Poisson loss apart; or
        a linear model of one target, whose squared error is bounded over balls of what it
        penalizes: the l1 norm of a Lasso, the length of the weights of a Ridge, here, online or
        scikit-learn's. With ``Lasso(radius=...)`` that is Λ, fixed in advance.
    X, y : array-like
        The sample that the estimator was fitted on, without weights.
    target_bound : float or (float, float), optional
        a with \|y\| <= a, or the range of y: known beforehand, not read off the sample.
    delta : float, default=0.05
        Probability of failure.
    radius : float, optional
        r with k(x, x) <= r² for every x that can occur; for a Lasso r∞ with \|x_j\| <= r∞, for a
        Ridge r with \|\|x\|\| <= r. Stationary kernels have their own.
    residual_bound : float, optional
        A bound on all residuals of all functions of the class, in place of the one that
        follows from ``target_bound``.
    norm_bound, offset_bound : float, optional
        Λ and β, if they were fixed in advance.
    clip : bool, default=False
        Whether the bound is for predictions clipped to ``target_bound``: residuals are then at
        most as long as that range, whatever the norm.
    empirical : bool, default=False
        Whether to use the trace of the Gram matrix of the sample (of a Lasso, the largest root
        mean square of a column) in place of r, with 3M √(log(2/δ)/2n).

    Returns
    -------
    Bound
        Of the mean squared error where the loss is squared (without ½), of the mean loss
        otherwise. Where curves must not cross, of their pinball loss.

    Raises
    ------
    ValueError, TypeError
        If an assumption cannot hold or is refuted by the sample; the sentence says which.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, theorems 11.3, 11.11, 11.13, 11.14, 11.16 with its constant
    corrected; Sangnier, Fercoq, d'Alché-Buc (2016), theorem 4.1. See ``docs/mathematics.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import SVR
    >>> from fenchel.bounds import bound
    >>> from fenchel.kernels import Gaussian
    >>> X = np.random.RandomState(0).uniform(-1, 1, (2000, 1))
    >>> y = np.cos(3 * X[:, 0])
    >>> model = SVR(epsilon=0.1, alpha=1e-2, kernel=Gaussian(1.0)).fit(X, y)
    >>> result = bound(model, X, y, target_bound=1.0)
    >>> sorted(result.terms)
    ['choice of the class', 'complexity', 'confidence', 'empirical risk', 'offset']
    >>> result.vacuous
    False
    """
    delta = check_delta(delta)
    targets = np.asarray(y, dtype=np.float64)
    targets = targets[:, None] if targets.ndim == 1 else targets
    interval = _interval(target_bound, targets)
    if interval is None and (residual_bound is None or clip):
        raise ValueError(
            "target_bound must be given"
            + ("" if clip else ", or residual_bound")
            + ": the theorems need an a-priori bound on y, which no sample can supply, got None"
        )
    fit = read(estimator, np.asarray(X, dtype=np.float64), targets, radius)
    return _bound(fit, interval, delta, residual_bound, norm_bound, offset_bound, clip, empirical)


def _bound(
    fit: Fit,
    interval: tuple[float, float] | None,
    delta: float,
    residual_bound: float | None,
    norm_bound: float | None,
    offset_bound: float | None,
    clip: bool,
    empirical: bool,
) -> Bound:
    n, p = fit.residual.shape
    stated = None if residual_bound is None else check_real("residual_bound", residual_bound)
    low, high = interval or (-float(stated or 0.0), float(stated or 0.0))
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    if not fit.free_offset:
        centre, half = 0.0, max(abs(low), abs(high))
    share = delta
    norm_bound = fit.fixed_norm if norm_bound is None else norm_bound
    norm, portion = _ball("norm_bound", norm_bound, fit.norm, half / fit.radius)
    share *= portion
    beta = 0.0
    if fit.free_offset:
        needed = float(np.abs(fit.offset - centre).max())
        beta, portion = _ball("offset_bound", offset_bound, needed, half)
        share *= portion
    loss, residual = fit.loss, fit.residual
    reach = norm * fit.radius * fit.gains + beta + half if stated is None else np.full(p, stated)
    if clip:  # towards the targets: no residual gets longer
        reach = np.minimum(reach, high - low)
        prediction = np.clip(fit.prediction, low, high)
        residual = residual + fit.prediction - prediction
    worst = float(np.abs(residual).max())
    if stated is not None and worst > stated:
        raise ValueError(
            f"residual_bound must be at least {worst:g}, the largest residual of the sample, got "
            f"{residual_bound!r}"
        )
    scale = scale_of(loss)
    at = local(loss, reach)
    terms = {"empirical risk": scale * float(loss.value(residual).mean())}
    terms["complexity"] = (
        scale * norm * _contracted(at, fit.gains, fit.observed if empirical else fit.expected)
    )
    if fit.free_offset:
        terms["offset"] = scale * _contracted_offsets(at, p, beta / math.sqrt(n))
    most = scale * at.most
    confidence = most * tail(delta, n, empirical)
    terms["confidence"] = confidence
    terms["choice of the class"] = most * tail(share, n, empirical) - confidence
    clipped = ", of predictions clipped to the range of y" if clip else ""
    return Bound(
        terms,
        assumptions=_assumptions(fit, interval, stated, norm_bound is None),
        constants={
            "n": n,
            "fitted norm": fit.norm,
            "norm": norm,
            "radius": fit.radius,
            **({"offset": beta} if fit.free_offset else {}),
            "residual_bound": float(reach.max()),
            "lipschitz": scale * float(at.slopes.max()),
            "delta": delta,
            "share of delta": share,
        },
        source=fit.source + clipped,
        risk=risk_of(loss) + clipped,
        trivial=most,
        caveats=fit.caveats,
    )


def _contracted(at: Local, gains: FloatArray, average: float) -> float:
    """Twice the complexity of the losses over the ball of norm 1."""
    if at.by_output:
        return 2.0 * float(at.slopes @ gains) * average
    return 2.0 * math.sqrt(2.0) * float(at.slopes[0] * np.linalg.norm(gains)) * average


def _contracted_offsets(at: Local, n_outputs: int, average: float) -> float:
    if at.by_output:
        return 2.0 * float(at.slopes.sum()) * average
    return 2.0 * math.sqrt(2.0) * float(at.slopes[0]) * n_outputs * average


def _ball(name: str, stated: float | None, needed: float, unit: float) -> tuple[float, float]:
    """Size of the smallest admitted ball around the fit, and its share of delta."""
    if stated is not None:
        size = check_real(name, stated)
        if needed > size * (1.0 + _ROUNDING):
            raise ValueError(
                f"{name} must be at least that of the fit, {needed:g}, got {stated!r}"
            )
        return max(size, needed), 1.0
    if unit <= 0.0:
        raise ValueError(
            f"{name} must be given where the stated range of y is a single value, got None"
        )
    step = _LOWEST
    if needed > unit * 2.0**step:
        step = math.ceil(math.log2(needed / unit))
        step += needed > unit * 2.0**step  # where the logarithm was rounded
    return unit * 2.0**step, share_of(step)


def share_of(step: int) -> float:
    """Share of delta of the ball of size 2^step; over all integers they sum to 1."""
    return 2.0 / (3.0 * (abs(step) + 1.0) * (abs(step) + 2.0))


def _assumptions(
    fit: Fit,
    interval: tuple[float, float] | None,
    stated: float | None,
    shared: bool,
) -> tuple[str, ...]:
    listed = [IID, "features, kernel, coupling and loss were fixed without looking at the sample"]
    paid = "the norm may depend on the sample: a union over balls of sizes 2^k is paid"
    listed += [paid if shared else "the norm was fixed in advance", fit.assumption]
    if interval is not None:
        listed.append(f"y is always in [{interval[0]:g}, {interval[1]:g}]")
    if stated is not None:
        listed.append(f"residuals of all functions of the class are always at most {stated:g}")
    return tuple(listed)


def _interval(target_bound: Any, targets: FloatArray) -> tuple[float, float] | None:
    """Range of y as stated, checked against the sample."""
    if target_bound is None:
        return None
    if np.ndim(target_bound) == 0:
        high = check_real("target_bound", target_bound)
        low = -high
    else:
        ends = np.asarray(target_bound, dtype=np.float64)
        if ends.shape != (2,) or not np.all(np.isfinite(ends)) or ends[0] > ends[1]:
            raise ValueError(
                f"target_bound must be a number >= 0 or a pair (low, high), got {target_bound!r}"
            )
        low, high = float(ends[0]), float(ends[1])
    least, largest = float(targets.min()), float(targets.max())
    if least < low or largest > high:
        raise ValueError(
            f"target_bound must contain all of y, which reaches from {least:g} to {largest:g}, "
            f"got {target_bound!r}"
        )
    return low, high
