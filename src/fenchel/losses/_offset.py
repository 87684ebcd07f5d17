"""The constant that minimizes the mean of a loss, computed from its envelope."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fenchel._typing import FloatArray
from fenchel.losses.forms import Envelope

# Counted in envelopes for one offset, on nine losses of one to three outputs (pinball and squared
# pinball with ε, lengths, log cosh, ...) with 5 to 300 rows of light and heavy tails: 33 on
# average and 223 at most as it stands. Values found were the same to rounding, unless said.
_FIRST = 10.0
"""First step, in units of loss over spread²: 31 to 39 for 1 to 1000."""
_GROWTH = 8.0
"""Of the step from one round to the next: 53 for 2, 41 for 3, 33 for 30, 40 for 100."""
_RIDGE = 1e-3
"""Share of the step on the diagonal, times the gradient over a typical dual entry, because
piecewise linear losses may have no curvature: 33 to 35 for 1e-4 to 0.1, and 678 for none, with
values up to 4e-6 too large."""
_SHORTEST = 1e-9
"""Of a step along Newton's direction: no difference to 1e-6, and 50 for 1e-3."""
_OUTER, _INNER = 40, 30  # more than was ever needed: 8**40 covers all floating-point numbers
_SLOPE = 1e-28  # of the objective, which is a square of what has rounding 1e-14


class _Loss(Protocol):
    """What is asked of a loss."""

    @property
    def separable(self) -> bool: ...

    def value(self, residual: FloatArray) -> FloatArray: ...

    def conjugate(self, dual: FloatArray) -> FloatArray: ...

    def envelope(self, anchor: FloatArray, residual: FloatArray, step: float) -> Envelope: ...


def minimizing_offset(loss: _Loss, residual: FloatArray, sample_weight: FloatArray) -> FloatArray:
    """Return b in R^p that minimizes the weighted mean of loss(residual - b).

    A proximal Newton method in the p unknowns.
    """
    offset = np.average(residual, axis=0, weights=sample_weight)
    centred = residual - offset
    spread = np.sqrt(np.average(np.einsum("ij,ij->i", centred, centred), weights=sample_weight))
    scale = np.average(loss.value(centred), weights=sample_weight)
    if spread == 0.0 or scale == 0.0:
        return np.asarray(offset)
    step = _FIRST * scale / spread**2
    dual = np.zeros_like(residual)
    for _ in range(_OUTER):
        previous = offset
        offset, dual = _newton(loss, dual, residual, sample_weight, offset, step, scale / spread)
        step *= _GROWTH
        if np.abs(offset - previous).max() > 1e-14 * spread:
            continue
        # it may stand still while the dual grows: optimal only where the two agree
        left = loss.value(residual - offset) + loss.conjugate(dual)
        left -= np.einsum("ij,ij->i", dual, residual - offset)
        if np.average(left, weights=sample_weight) <= 1e-13 * scale:
            break
    return np.asarray(offset)


def _newton(
    loss: _Loss,
    anchor: FloatArray,
    residual: FloatArray,
    sample_weight: FloatArray,
    offset: FloatArray,
    step: float,
    unit: float,
) -> tuple[FloatArray, FloatArray]:
    """Minimize the envelope over the offset by Newton; ``unit`` is a typical dual entry."""
    weight = sample_weight / sample_weight.sum()
    envelope = loss.envelope(anchor, residual - offset, step)
    objective = weight @ envelope.value
    for _ in range(_INNER):
        gradient = -(weight @ envelope.dual)
        active = weight[envelope.active]
        if loss.separable:
            hessian = np.diag(step * (active @ envelope.jacobian))
        else:
            hessian = step * np.einsum("i,ijk->jk", active, envelope.jacobian)
        ridge = 1e-12 * step + _RIDGE * step * np.abs(gradient).max() / unit
        move = np.linalg.solve(hessian + ridge * np.eye(len(offset)), -gradient)
        slope = float(gradient @ move)
        if -slope <= _SLOPE * (abs(objective) + 1e-300):
            break
        size = 1.0
        while size > _SHORTEST:
            trial = loss.envelope(anchor, residual - offset - size * move, step)
            new_objective = weight @ trial.value
            if new_objective <= objective + 1e-4 * size * slope + 1e-15 * abs(objective):
                break
            size *= 0.5
        offset = offset + size * move
        envelope, objective = trial, new_objective
    return offset, envelope.dual
