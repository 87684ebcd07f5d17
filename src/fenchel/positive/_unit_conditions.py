"""Conditions brought to length one, so that nothing depends on the units they are written in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fenchel._typing import FloatArray
from fenchel.positive.problem import Constraint, PSDProblem


def length_of(moments: Sequence[FloatArray | None]) -> float:
    """‖M‖ of all matrices of a condition together; 1 where it has none."""
    length = float(np.linalg.norm([np.linalg.norm(m) for m in moments if m is not None]))
    return length if length > 0.0 else 1.0


def of_unit_length(problem: PSDProblem) -> tuple[PSDProblem, FloatArray]:
    """The problem with its conditions divided by their lengths, and these lengths.

    An integral over a long interval and a slope per the same unit differ by its square: a step
    in the multipliers of both would lose the shorter one to rounding. Multipliers of the
    conditions as they were are those of the new ones over the lengths.
    """
    lengths = np.array([length_of(each.moments) for each in problem.constraints])
    if not len(lengths):
        return problem, lengths
    unit = [
        Constraint(
            [None if m is None else m / length for m in each.moments],
            each.value / length,
            each.equality,
        )
        for each, length in zip(problem.constraints, lengths, strict=True)
    ]
    return replace(problem, constraints=unit), lengths
