"""Many rows on the line: a start from few weighted points that stand for them."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.features import FeatureMap
from fenchel.positive._solution import Certified, Point, Record, Start, point_of
from fenchel.positive.problem import Model, PSDProblem, Squares
from fenchel.positive.solvers import DualNewton
from fenchel.solvers.loop import Iterate, Loop, credible_gap

# With 6 points in each panel between landmarks the objective of 100 000 rows of a mixture is that
# of the points up to 6e-12; up to 2e-8 with 4, and 8e-7 with 3.
_ORDER = 6
_LEAST_ROWS = 5000  # with 2500 the fit on the rows themselves is as fast
_LEAST_SHARE = 8  # rows for each point: with fewer a step on all rows costs too little
_VANISHED = 1e-10  # of a polynomial on a panel: there are no more rows that tell it from others
_WARM = 0.1  # barrier on all rows over the gap that few leave, as that of any start
_CENTRED = 0.9  # share of the tolerance that the values of the model on few points may leave


class FewRows(NamedTuple):
    """Weighted points that stand for rows."""

    features: FloatArray
    """(points, r)."""
    weight: FloatArray
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
    points, mass = gauss_points(rows[:, 0], weight, np.unique(landmarks), _ORDER)
    if _LEAST_SHARE * len(points) > len(rows):
        return None
    return FewRows(feature_map.transform(points[:, None]), mass, Squares())


def gauss_points(
    values: FloatArray, weight: FloatArray, cuts: FloatArray, order: int
) -> tuple[FloatArray, FloatArray]:
    r"""Points and masses with the integrals of polynomials that weighted numbers have.

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

    Returns
    -------
    points, masses : ndarray

    References
    ----------
    Golub, Welsch (1969), Calculation of Gauss quadrature rules.
    """
    sorting = np.lexsort((weight, values))
    x, s = values[sorting], weight[sorting]
    different = np.flatnonzero(np.concatenate([[True], np.diff(x) > 0.0]))
    x, s = x[different], np.add.reduceat(s, different)
    panel = np.searchsorted(cuts, x, side="right")
    first = np.flatnonzero(np.concatenate([[True], np.diff(panel) > 0]))
    counts = np.diff(np.append(first, len(x)))
    many = np.repeat(counts > order, counts)
    points, masses = [x[~many]], [s[~many]]
    if many.any():
        found = _rules(x[many], s[many], counts[counts > order], order)
        points, masses = [points[0], found[0]], [masses[0], found[1]]
    t, mass = np.concatenate(points), np.concatenate(masses)
    return t[mass > 0.0], mass[mass > 0.0]


def _rules(
    x: FloatArray, s: FloatArray, counts: IntArray, order: int
) -> tuple[FloatArray, FloatArray]:
    """Gauss rules of panels that follow one another: Stieltjes' procedure for all at once."""
    last = np.cumsum(counts)
    first = last - counts
    low, high = x[first], x[last - 1]
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    u = (x - np.repeat(middle, counts)) / np.repeat(half, counts)
    mass = np.add.reduceat(s, first)
    share = s / np.repeat(mass, counts)
    jacobi = np.zeros((len(counts), order, order))
    now, before, length = np.ones_like(u), np.zeros_like(u), np.zeros(len(counts))
    for k in range(order):
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
    points = np.clip(middle[:, None] + half[:, None] * at, low[:, None], high[:, None])
    masses = mass[:, None] * np.square(vectors[:, 0])
    return points.ravel(), masses.ravel()


@dataclass(frozen=True)
class FewRowsFirst(DualNewton):
    """Newton on few weighted rows, and on all of them from there.

    The solution on few rows is a density. The dual point that its values at all rows stand
    for is certified on all rows; where these few were too few, Newton's method goes on.
    """

    few: PSDProblem | None = None

    def _iterates(self, record: Record, warm_start: Start | None) -> Generator[Iterate[Certified]]:
        # a start that is given would save steps on few rows, which cost less than one on all
        problem = record.problem
        model, point, done = self._solved(record.loop)
        start = own_point(problem, point)
        if start is None:
            yield from super()._iterates(record, warm_start)
            return
        found = record.settled(start, model)
        yield Iterate(done, found)
        left = max(self.max_iter - done, 0)
        nu, least = start.spectra.multipliers, start.spectra.barrier
        barrier = max(least, _WARM * found.certificate.gap / sum(problem.cone.sizes))
        rest = DualNewton(self.tol, left)._iterates(record, Start(start.dual, nu, barrier))
        with closing(rest) as last:
            for step, found in last:
                if step > 0:
                    yield Iterate(done + step, found)

    def _solved(self, loop: Loop[Certified]) -> tuple[Model, Point, int]:
        """The model of few rows and the last point, whose own values are a dual point as good."""
        few = self.few
        assert few is not None
        record = Record(few, self.tol, None, self._joint(few))
        ends = time.perf_counter() + loop.seconds_left
        with closing(DualNewton(self.tol, self.max_iter)._iterates(record, None)) as iterates:
            for step, found in iterates:
                done, last = step, found
                near = credible_gap(found.certificate) <= self.tol
                own = own_point(few, found.point) if near else None
                if own is not None and self._enough(record.settled(own, found.model)):
                    break
                if time.perf_counter() >= ends:
                    break
        for each in record.candidates(last):  # of growing rank; the last one is safe
            if own is not None and self._enough(record.settled(own, each.model)):
                break
        return each.model, last.point, done

    def _enough(self, found: Certified) -> bool:
        return credible_gap(found.certificate) <= _CENTRED * self.tol


def own_point(problem: PSDProblem, point: Point) -> Point | None:
    """The dual point that the values of a model stand for, that of a point on any rows.

    None where the loss does not know it, or a value is too close to zero.
    """
    values = problem.values(point.push, point.spectra)
    dual = problem.loss.dual_of(values)
    if dual is None or not np.isfinite(dual).all():
        return None
    nu, barrier = point.spectra.multipliers, point.spectra.barrier
    return point_of(problem, dual, None, nu, barrier, joint=True)
