"""Conditions that few functions can meet at all: the same problem in the features of these."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fenchel._typing import FloatArray
from fenchel.positive.problem import Constraint, Model, PSDProblem

_ROUNDED = 1e-12  # share of a matrix that is rounding


@dataclass(frozen=True, eq=False)
class Face:
    r"""The matrices that can meet the conditions, where these leave no positive definite ones.

    If :math:`M \succeq 0`, then :math:`\operatorname{tr}(M A) = 0` and
    :math:`\operatorname{tr}(M A) \le 0` mean :math:`M A = 0`, as for the value zero at a point.
    So :math:`A = N B N^\top` with the orthonormal columns of N those that M takes to zero, and B
    is that of the same problem in the features :math:`N^\top \varphi`, with the same penalties.
    The dual of the problem as it was has no solution: its values reach that of this one in the
    limit of a large multiplier.
    """

    whole: PSDProblem
    """The problem as it was."""
    problem: PSDProblem
    """The same in fewer features, without the conditions that all of their functions meet."""
    bases: list[FloatArray]
    """N of each matrix, (r, q)."""
    kept: list[int]
    """Numbers of the conditions that are left."""

    def multipliers(self, given: FloatArray) -> FloatArray:
        """Those of the conditions that are left."""
        return given[self.kept] if given.shape == (len(self.whole.constraints),) else given

    def all_multipliers(self, found: FloatArray) -> FloatArray:
        """Those of all conditions: zero of those that are not left."""
        every = np.zeros(len(self.whole.constraints))
        every[self.kept] = found
        return every

    def lifted(self, model: Model) -> Model:
        """The model in the features as they were."""
        pairs = list(zip(self.bases, model.matrices, strict=True))
        factors = zip(self.bases, model.factors, strict=True)
        return model._replace(
            matrices=[n @ matrix @ n.T for n, matrix in pairs],
            factors=[n @ factor for n, factor in factors],
        )


def face_of(problem: PSDProblem) -> Face | None:
    """The face of a problem, None where its conditions leave all matrices.

    Raises
    ------
    ValueError
        If a condition is on what is zero for all functions that are left, or these are zero at a
        row where the loss of that is infinite.
    """
    if not problem.constraints:
        return None
    bases = [np.eye(part.features.shape[1]) for part in problem.psd]
    left = dict(enumerate(problem.constraints))
    lengths = [_length(each) for each in problem.constraints]
    while True:
        for t, each in list(left.items()):
            if _says_nothing(each, lengths[t]):
                left.pop(t)
        zero = _first_zero(left)
        if zero is None:
            break
        which, condition, length = zero
        bases = _without(bases, condition, _ROUNDED * length)
        left.pop(which)
        left = {u: _projected(problem.constraints[u], bases) for u in left}
    if len(left) == len(problem.constraints):
        return None
    parts = [
        replace(part, features=part.features @ basis)
        for part, basis in zip(problem.psd, bases, strict=True)
    ]
    smaller = replace(problem, psd=parts, constraints=list(left.values()))
    _refuse_zero_rows(problem, smaller)
    return Face(problem, smaller, bases, list(left))


def _refuse_zero_rows(whole: PSDProblem, smaller: PSDProblem) -> None:
    """Raise where all that is left is zero at a row, and the loss of zero infinite."""
    coupled = any(part.combinations is not None for part in smaller.psd)
    if coupled or smaller.linear or smaller.offsets is not None:
        return
    infinite = ~np.isfinite(smaller.loss.value(np.zeros((len(whole.weight), whole.n_outputs))))
    for part, left in zip(whole.psd, smaller.psd, strict=True):
        before, after = (np.square(each.features).sum(axis=1) for each in (part, left))
        infinite &= after <= _ROUNDED * before
    if infinite.any():
        raise ValueError(
            "constraints must leave functions above zero where the loss of zero is infinite, and "
            f"all that meet them are zero at row {int(np.argmax(infinite))} of those with weight"
        )


def _projected(condition: Constraint, bases: list[FloatArray]) -> Constraint:
    """A condition on the matrices B."""
    pairs = zip(condition.moments, bases, strict=True)
    return replace(condition, moments=[None if m is None else n.T @ m @ n for m, n in pairs])


def _length(condition: Constraint) -> float:
    return max((float(np.linalg.norm(m)) for m in condition.moments if m is not None), default=0.0)


def _says_nothing(condition: Constraint, length: float) -> bool:
    """Whether a condition is on zero times all matrices; raise if it cannot be met."""
    if _length(condition) > _ROUNDED * length:
        return False
    if condition.value != 0.0 and (condition.equality or condition.value < 0.0):
        raise ValueError(
            "constraints must not contradict one another, and the left-hand side of one is zero "
            "for all non-negative functions in the features that meet the others, got "
            f"{condition.value:g} for its right-hand side"
        )
    return True


def _first_zero(left: dict[int, Constraint]) -> tuple[int, Constraint, float] | None:
    """A condition that says that something without a sign is zero, what that is, and a length.

    Rounding is relative to the length.

    It may be one alone, or follow from one of an equality e: with tr(M A) = e there is
    tr((M' - M e'/e) A) = 0 in place of tr(M' A) = e', as where all of an integral is on a part.
    """
    for t, each in left.items():
        length = _length(each)
        if each.value == 0.0 and _says_zero(each, _ROUNDED * length):
            return t, each, length
    for t, one in left.items():
        for u, other in left.items():
            if u == t or not one.equality or one.value == 0.0 or other.value == 0.0:
                continue
            difference, length = _difference(other, one), _length(other)
            if _says_zero(difference, _ROUNDED * length):
                return u, difference, length
    return None


def _difference(other: Constraint, one: Constraint) -> Constraint:
    """A condition less the multiple of an equality with which its right-hand side is zero."""
    share = other.value / one.value
    moments: list[FloatArray | None] = []
    for m, n in zip(other.moments, one.moments, strict=True):
        if n is None:
            moments.append(m)
        else:
            moments.append(-share * n if m is None else m - share * n)
    return Constraint(moments, 0.0, other.equality)


def _says_zero(condition: Constraint, rounded: float) -> bool:
    """Whether a condition of right-hand side zero is on something without a sign.

    Up to rounding of its eigenvalues; not where it is on nothing else.
    """
    values = np.concatenate([np.linalg.eigvalsh(m) for m in condition.moments if m is not None])
    low, high = values.min(), values.max()
    above = low >= -rounded and high > rounded
    return bool(above or (condition.equality and high <= rounded and low < -rounded))


def _without(bases: list[FloatArray], condition: Constraint, rounded: float) -> list[FloatArray]:
    """The bases of what a condition takes to zero; a column of zeros where there is nothing."""
    smaller = []
    for basis, moment in zip(bases, condition.moments, strict=True):
        if moment is None:
            smaller.append(basis)
            continue
        values, vectors = np.linalg.eigh(moment)
        free = vectors[:, np.abs(values) <= rounded]
        smaller.append(basis @ free if free.size else np.zeros((len(basis), 1)))
    return smaller
