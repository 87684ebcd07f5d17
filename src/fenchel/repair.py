"""Moving a model into the cone outside of which its loss is infinite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear, nnls

from fenchel._typing import FloatArray
from fenchel.design import Design

_ROUNDS = 10  # a moved function may leave the cone at further rows
_MOST_CONSTRAINTS = 1000  # violated at once, beyond which a model is not worth moving


@dataclass(frozen=True, eq=False)
class Repair:
    """The conditions that residuals of all rows are to meet: <g, residual> >= 0 for g in a cone.

    ``cone`` is (m, p), ``rounding`` how far a residual may be outside before it counts.
    """

    cone: FloatArray
    design: Design
    targets: FloatArray
    rounding: float

    def of_offset(self, weights: FloatArray, offset: FloatArray) -> FloatArray:
        """The nearest offset with which a model meets the conditions."""
        outside = self.outside(weights, offset)
        if outside.max(initial=0.0) <= 0.0:
            return offset
        wanted = outside.max(axis=0) + 0.5 * self.rounding
        return offset - _least_distance(self.cone @ self.cone.T, wanted) @ self.cone

    def of_function(self, weights: FloatArray, offset: FloatArray) -> FloatArray | None:
        """What to add to a function: the push (n, p) of the least change, None for nothing.

        A model too far out is left as it is.
        """
        first = outside = self.outside(weights, offset)
        chosen, push = outside > 0.0, None
        for _ in range(_ROUNDS):
            rows, which = np.nonzero(chosen)
            if outside.max(initial=0.0) <= self.rounding:
                return push
            if len(rows) > _MOST_CONSTRAINTS:
                return None
            gram = self.design.functions(rows, self.cone[which]).gram()
            multipliers = np.zeros_like(outside)
            multipliers[rows, which] = _least_distance(gram, first[rows, which])
            push = -(multipliers @ self.cone)
            outside = self.outside(weights + self.design.link(push), offset)
            chosen |= outside > 0.0
        return push if outside.max() <= self.rounding else None

    def outside(self, weights: FloatArray, offset: FloatArray) -> FloatArray:
        """By how much residuals violate each condition, (n, m)."""
        prediction = self.design.values(weights) + offset
        return (prediction - self.targets) @ self.cone.T


def _least_distance(gram: FloatArray, wanted: FloatArray) -> FloatArray:
    """Multipliers u >= 0 of the shortest x = Gᵀu with G x >= wanted, given G Gᵀ."""
    unit, size = float(np.einsum("ii->i", gram).max()), float(np.abs(wanted).max())
    if unit == 0.0:
        return np.zeros_like(wanted)
    values, vectors = np.linalg.eigh(gram / unit)
    factor = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    system = np.vstack([factor, wanted / size])
    goal = np.append(np.zeros(len(wanted)), 1.0)
    try:
        u = nnls(system, goal)[0]
    except RuntimeError:  # its active sets may go in circles where rows are nearly equal
        u = lsq_linear(system, goal, bounds=(0.0, np.inf), tol=np.finfo(float).eps).x
    left = 1.0 - float(u @ wanted) / size
    return u * (size / unit / left) if left > 0.0 else np.zeros_like(wanted)


__all__ = ["Repair"]

__dir__ = __all__.copy
