"""Slope and range of a loss over the residuals that can occur."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fenchel._typing import FloatArray
from fenchel.bounds._result import BOOK, JOINT
from fenchel.losses import Absolute, BoxQuadratic, Loss, NonCrossing, Pinball, Radial, Squared

_STEP = 1e-4


class Local(NamedTuple):
    """What a loss does on residuals whose coordinates are at most given numbers in size."""

    slopes: FloatArray
    """Lipschitz constants: one for each output, or a single one of the whole vector."""
    by_output: bool
    """Whether the loss is a sum over outputs, so that slopes are theirs."""
    most: float
    """Largest value."""


def plain(loss: Loss) -> Loss:
    """Return the loss without the constraint that curves must not cross."""
    return loss.pinball if isinstance(loss, NonCrossing) else loss


def scale_of(loss: Loss) -> float:
    """Return what a loss is multiplied with: squares carry no ½ in the textbook."""
    return 2.0 if isinstance(loss, Squared) else 1.0


def risk_of(loss: Loss) -> str:
    """Return the name of the expected loss."""
    if isinstance(loss, Squared):
        return "E ‖y - h(x)‖²" if not loss.epsilon else "E max(0, ‖y - h(x)‖ - ε)²"
    return f"E ℓ(y - h(x)), ℓ = {loss!r}"


def theorem_of(loss: Loss, n_outputs: int, by_output: bool) -> str:
    """Return the source of a bound for kernel balls."""
    if n_outputs == 1:
        if isinstance(loss, Squared):
            return f"{BOOK}, theorem {'11.14' if loss.epsilon else '11.11'}"
        return f"{BOOK}, theorem {'11.13' if isinstance(loss, Absolute) else '11.3'}"
    if not by_output:
        return f"{JOINT}, proposition A.1"
    if isinstance(loss, Pinball):
        return f"{JOINT}, theorem 4.1, contracted output by output"
    return f"{BOOK}, theorem 11.3, output by output"


def local(loss: Loss, residuals: FloatArray) -> Local:
    """Slope and range of a loss for residuals of at most these sizes, (p,).

    Derivatives of a convex loss are largest at the ends. The ε-insensitive version of a loss
    has the derivative of the loss at a residual that is shorter in every coordinate.
    """
    p = len(residuals)
    if isinstance(loss, BoxQuadratic):
        reach = np.maximum(residuals - loss.epsilon, 0.0) if p == 1 else residuals
        lower, upper, below, above = (np.broadcast_to(a, p) for a in loss.parameters(p))
        down = _end(reach, -lower, below)
        up = _end(reach, upper, above)
        slopes = np.maximum(down[0], up[0])
        most = float(np.maximum(down[1], up[1]).sum())
        if loss.epsilon == 0.0 or p == 1:
            return Local(slopes, True, most)
        return Local(np.array([np.linalg.norm(slopes)]), False, most)
    length = np.array([np.linalg.norm(residuals)])
    if isinstance(loss, Radial):
        reach = np.maximum(length - loss.epsilon, 0.0)
        slope, value = _end(reach, np.array([loss.radius]), np.array([loss.curvature]))
        return Local(slope, p == 1, float(value[0]))
    if p == 1:
        step = _STEP * float(residuals[0])
        ends = np.array([1.0, -1.0])[:, None] * residuals
        values = loss.value(ends)
        # a secant beyond the end is steeper than any slope before it
        beyond = (loss.value(ends * (1.0 + _STEP)) - values) / step if step else np.zeros(2)
        return Local(np.minimum([beyond.max()], loss.lipschitz), True, float(values.max()))
    if not np.isfinite(loss.lipschitz):
        raise ValueError(
            f"estimator must have a loss whose slope is known, got {loss!r} of {p} outputs, which "
            "has no Lipschitz constant"
        )
    return Local(np.array([loss.lipschitz]), False, float(loss.lipschitz * length[0]))


def _end(
    reach: FloatArray, bound: FloatArray, curvature: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Derivative and value at the end of one side: max of βξ - qβ²/2 over β up to a bound."""
    free = np.divide(reach, curvature, out=np.full(len(reach), np.inf), where=curvature > 0.0)
    slope = np.where(reach > 0.0, np.minimum(free, bound), 0.0)
    return slope, slope * reach - 0.5 * curvature * slope**2
