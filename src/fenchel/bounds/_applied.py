"""Application of a theorem over all balls of a class to a fitted estimator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import NUMBERS, shown
from fenchel.bounds._losses import local, risk_of, scale_of
from fenchel.bounds._reading import Fit
from fenchel.bounds._result import IID, Bound, check_real
from fenchel.bounds.general import tail
from fenchel.losses import Local

_LOWEST = -20
_ROUNDING = 1e-9


def of_fit(
    fit: Fit,
    interval: tuple[float, float] | None,
    delta: float,
    residual_bound: float | None,
    norm_bound: float | None,
    offset_bound: float | None,
    clip: bool,
    empirical: bool,
) -> Bound:
    """The bound over balls of the class that the fit is in."""
    n, p = fit.residual.shape
    stated = None if residual_bound is None else check_real("residual_bound", residual_bound)
    low, high = interval or (-float(stated or 0.0), float(stated or 0.0))
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    if not fit.free_offset:
        centre, half = 0.0, max(abs(low), abs(high))
    share = delta
    norm_bound = fit.fixed_norm if norm_bound is None else norm_bound
    norm, portion = ball_around("norm_bound", norm_bound, fit.norm, half / fit.radius)
    share *= portion
    beta = 0.0
    if fit.free_offset:
        needed = float(np.abs(fit.offset - centre).max())
        beta, portion = ball_around("offset_bound", offset_bound, needed, half)
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


def ball_around(
    name: str, stated: float | None, needed: float, unit: float
) -> tuple[float, float]:
    """Size of the smallest admitted ball around the fit, and its share of delta."""
    if stated is not None:
        size = check_real(name, stated)
        if needed > size * (1.0 + _ROUNDING):
            raise ValueError(
                f"{name} must be at least that of the fit, {needed:g}, got {shown(stated)}"
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
    fit: Fit, interval: tuple[float, float] | None, stated: float | None, shared: bool
) -> tuple[str, ...]:
    listed = [IID, "features, kernel, coupling and loss were fixed without looking at the sample"]
    paid = "the norm may depend on the sample: the bound is a union bound over balls of sizes 2^k"
    listed += [paid if shared else "the norm was fixed in advance", fit.assumption]
    if interval is not None:
        listed.append(f"y is always in [{interval[0]:g}, {interval[1]:g}]")
    if stated is not None:
        listed.append(f"residuals of all functions of the class are always at most {stated:g}")
    return tuple(listed)


def range_of(target_bound: Any, targets: FloatArray) -> tuple[float, float] | None:
    """Range of y as stated, checked against the sample."""
    if target_bound is None:
        return None
    if np.ndim(target_bound) == 0:
        high = check_real("target_bound", target_bound)
        low = -high
    else:
        known = NUMBERS.error(target_bound) is None
        ends = np.asarray(target_bound, dtype=np.float64) if known else np.zeros(0)
        if ends.shape != (2,) or ends[0] > ends[1]:
            raise ValueError(
                "target_bound must be a number >= 0 or a pair (low, high), "
                f"got {shown(target_bound)}"
            )
        low, high = float(ends[0]), float(ends[1])
    least, largest = float(targets.min()), float(targets.max())
    if least < low or largest > high:
        raise ValueError(
            f"target_bound must contain all of y, which reaches from {least:g} to {largest:g}, "
            f"got {shown(target_bound)}"
        )
    return low, high
