"""Initial fits on a few weighted points that represent many rows of one column."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.features import FeatureMap
from fenchel.positive._faces import face_of
from fenchel.positive._solution import Certified, Point, Record, Start, point_of
from fenchel.positive._unit_conditions import of_unit_length
from fenchel.positive.problem import Model, PSDProblem, Squares
from fenchel.positive.solvers import DualNewton
from fenchel.solvers.loop import Iterate, Loop, credible_gap

# With 6 points in each panel between landmarks the objective of 100 000 rows of a mixture is that
# of the points up to 6e-12; up to 2e-8 with 4, and 8e-7 with 3.
_ORDER = 6
_LEAST_ROWS = 5000  # there the fit takes half the time, with 2500 two thirds
_LEAST_SHARE = 8  # rows for each point: with fewer a step on all rows costs too little
_CANDIDATES = 1000  # by rank, and as many by value: neighbours are far nearer than landmarks
_VANISHED = 1e-10  # of a polynomial on a panel: there are no more rows that tell it from others
_WARM = 0.1  # barrier on all rows over the gap that few leave, as that of any start
_INSIDE = 0.9  # share of the tolerance for the points: what they are away is far less


class FewRows(NamedTuple):
    """Weighted points that stand for rows."""

    features: FloatArray
    """(points, r)."""
    rule: GaussRule
    squares: Squares
    """Of the features, for problems of all strengths."""


def few_rows(feature_map: FeatureMap, rows: FloatArray, weight: FloatArray) -> FewRows | None:
    """Points for many rows of one column, with their features; None where they are not few.

    Panels lie between landmarks, which are as dense as the kernel is narrow, and only where there
    are rows.
    """
    landmarks: Any = getattr(feature_map, "landmarks_", None)
    if rows.shape[1] != 1 or len(rows) < _LEAST_ROWS or np.ndim(landmarks) != 2:
        return None
    rule = GaussRule(rows[:, 0], weight, np.unique(landmarks), _ORDER)
    if _LEAST_SHARE * len(rule.points) > len(rows):
        return None
    return FewRows(feature_map.transform(rule.points[:, None]), rule, Squares())


def landmark_candidates(rows: FloatArray) -> IntArray | None:
    """Numbers of some of many rows of one column, in their order there; None of few rows.

    They are equally far apart in rank, and about so in value. Of few different rows they are all:
    repeated rows are what rows with weights are.
    """
    if rows.shape[1] != 1 or len(rows) < _LEAST_ROWS:
        return None
    x, first = np.unique(rows[:, 0], return_index=True)
    if len(x) < _LEAST_ROWS:
        return np.asarray(first)
    by_rank = np.rint(np.linspace(0.0, len(x) - 1.0, _CANDIDATES)).astype(np.intp)
    by_value = np.searchsorted(x, np.linspace(x[0], x[-1], _CANDIDATES))
    both = np.concatenate([by_rank, np.minimum(by_value, len(x) - 1)])
    return np.asarray(first[np.unique(both)])


class GaussRule:
    r"""Points with masses in the place of weighted numbers, by Gauss rules on panels.

    .. math:: \sum_j m_j\, p(t_j) = \sum_i s_i\, p(x_i), \qquad \deg p < 2\, \mathrm{order},

    on each panel between cuts. Points lie between the numbers of their panel; a panel with no
    more than ``order`` different numbers keeps them. Equal numbers are one, and sums are
    over sorted ones, so that the order in which they are given does not matter.

    Parameters
    ----------
    values : ndarray of shape (n,)
    weight : ndarray of shape (n,)
        Positive.
    cuts : ndarray of shape (k,)
        Increasing.
    order : int
        Points for each panel.

    Attributes
    ----------
    points, masses : ndarray
        t and m.

    References
    ----------
    Golub, Welsch (1969), Calculation of Gauss quadrature rules.
    """

    def __init__(
        self, values: FloatArray, weight: FloatArray, cuts: FloatArray, order: int
    ) -> None:
        sorting = np.lexsort((weight, values))
        x, s = values[sorting], weight[sorting]
        new = np.concatenate([[True], np.diff(x) > 0.0])
        x, s = x[new], np.add.reduceat(s, np.flatnonzero(new))
        self._which = np.empty(len(values), dtype=np.intp)
        """The number of each value among the different ones."""
        self._which[sorting] = np.cumsum(new) - 1
        panel = np.searchsorted(cuts, x, side="right")
        first = np.flatnonzero(np.concatenate([[True], np.diff(panel) > 0]))
        counts = np.diff(np.append(first, len(x)))
        self._many = np.repeat(counts > order, counts)
        self._counts = counts[counts > order]
        points, masses = x[~self._many], s[~self._many]
        self._polynomials = np.zeros((order, 0))
        """Orthonormal ones of each panel at its numbers, (order, numbers)."""
        self._projections = np.zeros((0, order, order))
        """From values at the points of each panel to coefficients of these."""
        if len(self._counts):
            found = self._rules(x[self._many], s[self._many], order)
            points, masses = (np.concatenate(p) for p in zip((points, masses), found, strict=True))
        self._kept = masses > 0.0
        self.points, self.masses = points[self._kept], masses[self._kept]

    def _rules(self, x: FloatArray, s: FloatArray, order: int) -> tuple[FloatArray, FloatArray]:
        """Points and masses of panels with many numbers: Stieltjes' procedure for all at once."""
        counts = self._counts
        last = np.cumsum(counts)
        first = last - counts
        low, high = x[first], x[last - 1]
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        u = (x - np.repeat(middle, counts)) / np.repeat(half, counts)
        mass = np.add.reduceat(s, first)
        share = s / np.repeat(mass, counts)
        jacobi = np.zeros((len(counts), order, order))
        self._polynomials = np.zeros((order, len(x)))
        now, before, length = np.ones_like(u), np.zeros_like(u), np.zeros(len(counts))
        for k in range(order):
            self._polynomials[k] = now
            centre = np.add.reduceat(share * u * now * now, first)
            jacobi[:, k, k] = centre
            if k == order - 1:
                break
            rest = (u - np.repeat(centre, counts)) * now - np.repeat(length, counts) * before
            length = np.sqrt(np.add.reduceat(share * rest * rest, first))
            length = np.where(length > _VANISHED, length, 0.0)
            inverse = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0.0)
            jacobi[:, k, k + 1] = jacobi[:, k + 1, k] = length
            now, before = rest * np.repeat(inverse, counts), now
        at, vectors = np.linalg.eigh(jacobi)
        self._projections = vectors * vectors[:, :1]
        points = np.clip(middle[:, None] + half[:, None] * at, low[:, None], high[:, None])
        masses = mass[:, None] * np.square(vectors[:, 0])
        return points.ravel(), masses.ravel()

    def extended(self, at_points: FloatArray) -> FloatArray:
        """Values at all numbers of the polynomials on panels that have these at the points."""
        whole = np.zeros(len(self._kept))
        whole[self._kept] = at_points
        alone = len(self._many) - np.count_nonzero(self._many)
        found = np.empty(len(self._many))
        found[~self._many] = whole[:alone]
        panels = whole[alone:].reshape(len(self._counts), self._projections.shape[2], 1)
        coefficients = (self._projections @ panels)[:, :, 0]
        total = np.zeros(self._polynomials.shape[1])
        for values, own in zip(self._polynomials, coefficients.T, strict=True):
            total += values * np.repeat(own, self._counts)
        found[self._many] = total
        return found[self._which]


@dataclass(frozen=True)
class FewRowsFirst(DualNewton):
    """Newton for the likelihood of few weighted points, and of all rows from there.

    The dual of the points, whose logarithm is a smooth function, is extended to all rows, and
    certified there together with the model of the points. Where these were too few, Newton's
    method goes on.
    """

    few: PSDProblem | None = None
    rule: GaussRule | None = None

    def _iterates(self, record: Record, warm_start: Start | None) -> Generator[Iterate[Certified]]:
        # a start that is given would save steps on points, which cost less than one on all rows
        problem, rule = record.problem, self.rule
        assert rule is not None
        model, point, done = self._solved(record.loop)
        with np.errstate(over="ignore"):
            dual = -np.exp(rule.extended(np.log(-point.dual[:, 0])))[:, None]
        if not (np.isfinite(dual) & (dual < 0.0)).all():  # panels far too wide for polynomials
            yield from super()._iterates(record, warm_start)
            return
        nu, least = point.spectra.multipliers, point.spectra.barrier
        found = record.settled(point_of(problem, dual, None, nu, least, joint=True), model)
        yield Iterate(done, found)
        left = self.max_iter - done
        if left <= 0:
            return
        barrier = max(least, _WARM * found.certificate.gap / sum(problem.cone.sizes))
        rest = DualNewton(self.tol, left)._iterates(record, Start(dual, nu, barrier))
        with closing(rest) as last:
            for step, found in last:
                if step > 0:
                    yield Iterate(done + step, found)

    def _solved(self, loop: Loop[Certified]) -> tuple[Model, Point, int]:
        """The model of the points, of low rank, with the last dual point and its step."""
        assert self.few is not None
        face, enough = face_of(self.few), _INSIDE * self.tol  # conditions are those of all rows
        few, _ = of_unit_length(self.few if face is None else face.problem)
        record = Record(few, enough, None, self._joint(few))
        ends = time.perf_counter() + loop.seconds_left
        with closing(DualNewton(enough, self.max_iter)._iterates(record, None)) as iterates:
            for iterate in iterates:
                done, found = iterate
                late = time.perf_counter() >= ends
                if late or credible_gap(found.certificate) <= enough:
                    break
        for each in record.candidates(found):  # of growing rank; the last one is safe
            if credible_gap(each.certificate) <= enough:
                break
        return each.model, found.point, done
