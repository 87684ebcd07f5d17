"""Whole grids of strengths and thresholds for curves, with every fit from its neighbours.

For small λ the solutions of Huber losses depend on κ/λ alone, and those of ε-insensitive ones are
multiples of λ. So each λ begins where the one before has been: its path, rescaled and
interpolated, is a dual point of every problem of the next, and the certificate says which
of them are good enough as they are. The solver goes on from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, median
from typing import NamedTuple

import numpy as np

from experiments.functional_common import make_loss
from fenchel.design import Gram
from fenchel.losses import CurveHuber, Loss, Squared
from fenchel.problem import Problem
from fenchel.solvers import ClosedForm, Solution, Splitting, WarmStart

SELECTION_TOL = 1e-2
"""Gap over the objective: for small λ this is small beside that of the best constant. With 3e-3,
six searches took 1.3 to 1.8 times as long, and test errors were the same to 0.13 %; with 3e-2
they were to 0.8 %. Where validation errors are flat more may change, see the end of the page."""
SMALL = 1e-2
"""The same in units of the best constant's, where no objective is known."""
HALF = 0.5
"""Of its objective is the least that a bound counts as."""
AHEAD = 0.3
"""Of the tolerance is what the solver goes to for insensitive losses, whose solutions are then
good enough for more of the strengths to come: three searches needed 0.57 to 0.69 times as many
fits by it, and 0.86 to 0.90 times as many turns. For Huber losses these are 0.95 and 1.15."""
TURNS = 2000
HOPELESS = 1.25
"""Times the least error on a path so far: the rest of the path is left out from there on."""
FAR = 2.0
"""Times κ: no good start for a Huber loss are dual points of the square loss of larger curves."""
EXACT = 1e-9


class Coordinates(NamedTuple):
    """How curves become rows of numbers, and what combinations of such rows stand for."""

    basis: np.ndarray
    """(m, p): coordinates are scaled curves times this."""
    eigenvalues: np.ndarray | None
    """Of the output kernel in these coordinates, (p,), or None where ``between`` says it."""
    between: np.ndarray
    """The output kernel between the points, times the roots of their weights, (m, m)."""
    measure: np.ndarray
    """Of the coordinates in the losses."""
    coupling: np.ndarray

    def of(self, Y: np.ndarray) -> np.ndarray:
        """Coordinates of curves (n, m)."""
        scaled = Y / np.sqrt(Y.shape[1])
        return scaled if self.eigenvalues is None else scaled @ self.basis

    def curves(self, weights: np.ndarray) -> np.ndarray:
        """Curves (k, m) of combinations (k, p) of the weights of rows."""
        m = len(self.basis)
        if self.eigenvalues is None:
            return np.sqrt(m) * weights @ self.between
        return np.sqrt(m) * (weights * self.eigenvalues) @ self.basis.T


def coordinates(kernel: np.ndarray, n_components: int | None) -> Coordinates:
    """Values at the points, or coefficients of the leading eigenfunctions.

    Losses do not see what curves have outside of the span of these, as in problem (5) of the
    paper. ``kernel`` (m, m) is that between the points, which have equal weights.
    """
    m = len(kernel)
    between = kernel / m
    values, vectors = np.linalg.eigh(between)
    values = np.maximum(values, 0.0)
    if n_components is None:
        coupling = vectors * np.sqrt(values)
        return Coordinates(np.eye(m), None, between, np.full(m, 1.0 / m), coupling)
    leading = slice(None, -n_components - 1, -1)
    coupling = np.diag(np.sqrt(values[leading]))
    ones = np.ones(len(coupling))
    return Coordinates(vectors[:, leading], values[leading], between, ones, coupling)


class Point(NamedTuple):
    """A solution in the scale of its path, and what is linear in it."""

    dual: np.ndarray
    image: np.ndarray
    """Values at the rows of the function with these coefficients."""
    model: np.ndarray
    """Point whose function the model is, for the solver to start from; not always feasible."""
    fitted: np.ndarray
    """Values of the model at the rows."""
    predicted: np.ndarray
    """Its curves for the rows to judge by."""

    def between(self, other: Point, share: float) -> Point:
        """The point that lies at a share of the way to another; beyond it if that is above one."""
        return Point(*(a + share * (b - a) for a, b in zip(self, other, strict=True)))

    def moved(self, start: Point, end: Point) -> Point:
        """The point that is as far from here as the end is from the start."""
        return Point(*(a + (c - b) for a, b, c in zip(self, start, end, strict=True)))

    @classmethod
    def fourth(cls, first: Point, second: Point, third: Point) -> Point:
        """The next of three equidistant points of a parabola."""
        return cls(*(a + 3.0 * (c - b) for a, b, c in zip(first, second, third, strict=True)))


class Judged(NamedTuple):
    """A point that is known for a problem, and how good it is."""

    point: Point
    primal: float
    """Objective of its model, or of the best constant if that is better."""
    dual: float


@dataclass
class Fold:
    """Rows to fit, rows to judge by, and the last two paths of dual points."""

    gram: np.ndarray
    cross: np.ndarray
    """Kernel between the rows to judge by and those to fit."""
    outputs: Coordinates
    Y: np.ndarray
    held_out: np.ndarray
    counted: np.ndarray
    """Which points of the curves that are held out count."""
    tol: float = SELECTION_TOL
    before: list[tuple[float, Point]] = field(default_factory=list)
    now: list[tuple[float, Point]] = field(default_factory=list)
    shadow: Point | None = None
    """Point of the last path at the place that was asked for last."""
    solved: int = 0
    """Fits that the solver had to go on with."""

    @cached_property
    def design(self) -> Gram:
        """All rows; its spectrum is kept."""
        return Gram(self.gram, self.outputs.coupling)

    @cached_property
    def targets(self) -> np.ndarray:
        """Coordinates of the curves to fit."""
        return self.outputs.of(self.Y)

    def problem(self, loss: Loss, alpha: float) -> Problem:
        """The problem of a loss and a strength."""
        ones = np.ones(len(self.Y))
        return Problem(loss, self.design, self.targets, ones, alpha, fit_intercept=False)

    def squared(self, alpha: float) -> Solution:
        """Solution for the square loss."""
        return ClosedForm(EXACT).solve(self.problem(Squared(), alpha))

    def predict(self, weights: np.ndarray) -> np.ndarray:
        """Curves of the rows to judge by."""
        found = self.cross @ weights
        if self.outputs.eigenvalues is None:  # the design knows what is fast for its outputs
            return np.sqrt(self.held_out.shape[1]) * self.design.feature_weights(found)
        return self.outputs.curves(found)

    def error(self, predicted: np.ndarray) -> float:
        """Mean over words of the sum of squares over their frames."""
        squares = (predicted - self.held_out) ** 2
        return float(np.mean(np.sum(squares, axis=1, where=self.counted)))

    def turn_over(self) -> None:
        """Begin the path of another strength; forget one that these rows were left out of."""
        self.before, self.now, self.shadow = self.now or self.before, [], None

    def candidates(self, place: float, curved: bool, far: bool) -> Iterator[Point]:
        """Points for a place of the path, made of those that are known.

        That of the last path with the difference that this path had from it at the place before,
        and that of the last path as it is. Where there is none, this path goes on as it did, as a
        parabola if it is ``curved``; and where it begins ``far`` from the square loss, the
        nearest point of the last path comes first.
        """
        shadow = self._on_last_path(place)
        before, self.shadow = self.shadow, shadow
        if shadow is not None:
            if before is not None and self.now:
                yield self.now[-1][1].moved(before, shadow)
            yield shadow
        elif curved and len(self.now) > 2:
            yield Point.fourth(*(point for _, point in self.now[-3:]))
        elif len(self.now) > 1:
            yield self.now[-2][1].between(self.now[-1][1], 2.0)
        elif self.now:
            yield self.now[-1][1]
        elif self.before and far:
            yield min(self.before, key=lambda known: abs(known[0] - place))[1]

    def _on_last_path(self, place: float) -> Point | None:
        places = [at for at, _ in self.before]
        if len(places) < 2 or not min(places) <= place <= max(places):
            return None
        order = np.argsort(places)
        j = int(np.clip(np.searchsorted(np.sort(places), place), 1, len(places) - 1))
        (low, first), (high, last) = self.before[order[j - 1]], self.before[order[j]]
        return first.between(last, (place - low) / (high - low))

    def fit(
        self, loss: Loss, alpha: float, place: float, scale: float, square: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and dual point within the tolerance; ``square`` is the dual point of the
        square loss.
        """
        problem = self.problem(loss, alpha)
        unit = scale / (len(self.Y) * alpha)  # of coefficients
        best: Judged | None = None
        huber = np.isfinite(loss.lipschitz)
        far = not np.all(np.isfinite(loss.conjugate(square / FAR)))
        for point in self.candidates(place, huber, far):
            best = self._judged(problem, point, scale, unit, best)
            if self._good(best):
                break
        if best is None or not self._good(best):
            self.solved += 1
            size = SMALL * problem.baseline
            if best is not None:  # no more than the objective that the solver ends at
                size = max(best.dual, HALF * best.primal)
            none = np.zeros(square.shape[1])
            warm = WarmStart(square, none, alpha)
            if best is not None:
                fitted = unit * best.point.fitted
                warm = WarmStart(scale * best.point.model, none, alpha, fitted)
            tol = self.tol if huber else AHEAD * self.tol
            solver = Splitting(tol * size / problem.baseline, TURNS)
            near = self._scaled(solver.solve(problem, warm), scale, unit)
        else:
            near = best.point
        self.now.append((place, near))
        return unit * near.predicted, scale * near.model

    def _scaled(self, solution: Solution, scale: float, unit: float) -> Point:
        dual = solution.dual / scale
        fitted = self.design.directions(solution.weights) / unit  # known from its certificate
        predicted = self.predict(solution.weights) / unit
        if solution.source is solution.dual:
            return Point(dual, fitted, dual, fitted, predicted)
        model, image = solution.weights / unit, self.design.image(dual)
        return Point(dual, image, model, fitted, predicted)

    def _good(self, judged: Judged) -> bool:
        return judged.primal - judged.dual <= self.tol * judged.primal

    def _judged(
        self, problem: Problem, near: Point, scale: float, unit: float, other: Judged | None
    ) -> Judged:
        """The model of a point or of another one, and the bound of either, whichever is better.

        A product with the kernel is needed only where the dual point is outside of the domain.
        """
        weights, image = unit * near.model, unit * near.fitted
        self.design.remember(weights, image)
        primal = min(problem.objective(weights, image), problem.baseline)
        lower = self._bound(problem, near, scale, unit)
        if not np.isfinite(lower):
            dual = problem.loss.conjugate_prox(near.dual * scale, np.finfo(float).tiny) / scale
            near = near._replace(dual=dual, image=self.design.image(dual))
            lower = self._bound(problem, near, scale, unit)
        if other is None:
            return Judged(near, primal, lower)
        bound = near if lower > other.dual else other.point
        model = near if primal < other.primal else other.point
        point = model._replace(dual=bound.dual, image=bound.image)
        return Judged(point, min(primal, other.primal), max(lower, other.dual))

    def _bound(self, problem: Problem, near: Point, scale: float, unit: float) -> float:
        """The dual objective."""
        dual, weights, image = scale * near.dual, unit * near.dual, unit * near.image
        earned = np.einsum("ij,ij->i", dual, self.targets) - problem.loss.conjugate(dual)
        if not np.all(np.isfinite(earned)):
            return -np.inf
        self.design.remember(weights, image)
        return float(np.mean(earned)) - problem.penalty(weights)


class Chosen(NamedTuple):
    """The best point of a grid."""

    alpha: float
    value: float
    error: float
    duals: list[np.ndarray]
    """Of the folds."""


@dataclass
class Surface:
    """Errors of a loss on a grid, (alphas, values)."""

    errors: np.ndarray
    """NaN where a path was left before, or a part of the folds rules out that it is the least."""
    chosen: Chosen
    fits: int
    """Of single folds."""


def search(
    folds: Sequence[Fold],
    name: str,
    alphas: Sequence[float],
    values: Sequence[float],
    robust: bool,
    hopeless: float = HOPELESS,
) -> Surface:
    """Errors of a Huber or insensitive loss; mean over the folds, or the median if ``robust``.

    Paths begin at the square loss. Where κ is no less than the largest norm of its dual curves,
    its solution is that of the Huber loss. Folds of large errors come first: where these alone
    show that mean or median are no less than the least one so far, the others are left out.
    """
    middle = median if robust else fmean
    huber, measure = name.startswith("H"), folds[0].outputs.measure
    errors = np.full((len(alphas), len(values)), np.nan)
    chosen: Chosen | None = None
    last, fitted = np.zeros(len(folds)), 0
    for i in np.argsort(alphas)[::-1]:
        alpha, places = alphas[i], np.argsort(values)
        squares = [fold.squared(alpha) for fold in folds]
        plain = [fold.predict(one.weights) for fold, one in zip(folds, squares, strict=True)]
        widest = _widest(name, squares, measure)
        for fold in folds:
            fold.turn_over()
        path: list[np.ndarray] = []
        for j in places[::-1] if huber else places:
            value = float(values[j])
            scale, place = (value, value / alpha) if huber else (alpha, value)
            loss, at = make_loss(name, value, measure), float(np.log(place))
            own, duals = np.full(len(folds), np.nan), [square.dual for square in squares]
            for k in np.argsort(-last, kind="stable"):
                found = plain[k]
                if not huber or value < widest:
                    found, duals[k] = folds[k].fit(loss, alpha, at, scale, squares[k].dual)
                own[k] = last[k] = folds[k].error(found)
                if chosen is not None and middle(np.nan_to_num(own).tolist()) >= chosen.error:
                    break
            fitted += int(np.isfinite(own).sum())
            if np.all(np.isfinite(own)):
                errors[i, j] = error = middle(own.tolist())
                if chosen is None or error < chosen.error:
                    chosen = Chosen(alpha, value, error, duals)
            path.append(own)
            if any(_worse(own, before, middle, hopeless) for before in path):
                break
    assert chosen is not None
    return Surface(errors, chosen, fitted)


def _worse(
    own: np.ndarray, before: np.ndarray, middle: Callable[[list[float]], float], times: float
) -> bool:
    """Whether errors are several times those before, over the folds that are known of both."""
    common = np.isfinite(own) & np.isfinite(before)
    enough = 2 * np.count_nonzero(common) > len(common)
    return enough and middle(own[common].tolist()) > times * middle(before[common].tolist())


def _widest(name: str, squares: Sequence[Solution], measure: np.ndarray) -> float:
    """The κ from which on the Huber loss is the square loss at the solution of all folds."""
    if not name.startswith("H"):
        return np.inf
    loss = CurveHuber(1.0, float(name[1]), measure)
    return max(float(loss.dual_norm(square.dual).max()) for square in squares)
