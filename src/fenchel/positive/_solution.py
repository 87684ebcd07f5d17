"""What solvers of non-negative models share: points, records, the certified result."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize_scalar

from fenchel._typing import FloatArray
from fenchel.certificate import Callback, Certificate, Progress, Status
from fenchel.positive._cone import EXACT, Spectra
from fenchel.positive._low_rank import low_rank
from fenchel.positive.problem import Model, PSDProblem, Push

_QUARTERS = 25
_ROUNDED = 1e-10  # violation of a condition that a returned model may have
_ROUGHLY = 1e-7  # accuracy of the conditions on the way


@dataclass(frozen=True, eq=False)
class Point:
    """A dual point with all that follows from it."""

    dual: FloatArray
    push: Push
    spectra: Spectra
    conjugates: float


@dataclass(frozen=True, eq=False)
class PSDSolution:
    """The best certified fit that a solver found.

    Attributes
    ----------
    model : Model
        Matrices, their factors, linear weights, offsets. All constraints hold.
    dual : ndarray of shape (n, p)
        Feasible dual vectors β.
    multipliers : ndarray
        ν of the constraints.
    certificate : Certificate
        Objectives of this model and this dual point.
    status : Status
        Whether it converged, and what to do if not.
    n_iter : int
        Number of steps.
    history : list of Progress
        One entry for each certified step.
    """

    model: Model
    dual: FloatArray
    multipliers: FloatArray
    certificate: Certificate
    status: Status
    n_iter: int
    history: list[Progress] = field(default_factory=list)


def point_of(
    problem: PSDProblem,
    dual: FloatArray,
    push: Push | None,
    multipliers: FloatArray,
    barrier: float = 0.0,
    joint: bool = False,
) -> Point:
    """Evaluate a dual point; ``push`` where it is known already."""
    push = problem.push(dual) if push is None else push
    cone = problem.cone
    if joint:  # the multipliers are unknowns of Newton's method
        spectra = cone.spectra(push.gram, multipliers, barrier)
    else:
        accuracy = _ROUGHLY if barrier > 0.0 else EXACT
        spectra = cone.solve(push.gram, multipliers, barrier, accuracy)
    return Point(dual, push, spectra, problem.conjugates(dual))


def total(problem: PSDProblem, point: Point) -> float:
    """Minus the dual objective of a point."""
    return point.conjugates + problem.unpenalized(point.push, point.spectra)


def start_of(
    problem: PSDProblem, dual: FloatArray | None, barrier: float = 0.0, joint: bool = False
) -> Point:
    """The point to start from: given, or that of a multiple of the identity."""
    n, p = len(problem.weight), problem.n_outputs
    none = np.zeros(len(problem.constraints))
    if dual is not None:
        return point_of(problem, feasible(problem, dual), None, none, barrier)
    step = problem.loss.step
    spectra = problem.cone.solve([np.zeros((r, r)) for r in problem.cone.sizes], none, barrier)
    push = Push(
        spectra_zero(problem), [np.zeros(part.features.shape[1]) for part in problem.linear]
    )
    z = problem.predictions(problem.model(push, spectra))
    dual = feasible(problem, np.reshape(problem.loss.conjugate_prox(step * z, step), (n, p)))
    if not problem.constraints:
        dual = _shrunk(problem, dual)
    return point_of(problem, dual, None, spectra.multipliers, barrier, joint)


def _shrunk(problem: PSDProblem, dual: FloatArray) -> FloatArray:
    """The best of the point and its multiples by powers of a quarter.

    Where alpha is small the matrices of the point itself are huge, and Newton's method takes
    long to come back.
    """
    push = problem.push(dual)
    eigenvalues = [np.linalg.eigvalsh(gram) for gram in push.gram]
    lines = zip(problem.linear, push.linear, strict=True)
    line = sum(float(pulled @ pulled) / (2.0 * part.alpha) for part, pulled in lines)
    best, least = dual, np.inf
    for size in 0.25 ** np.arange(_QUARTERS):
        value = problem.conjugates(size * dual) + size**2 * line
        for part, own in zip(problem.psd, eigenvalues, strict=True):
            negative = np.minimum(size * own + part.trace_penalty, 0.0)
            value += float(negative @ negative) / (2.0 * part.alpha)
        if value < least:
            best, least = size * dual, value
    return best


def spectra_zero(problem: PSDProblem) -> list[FloatArray]:
    """Zero matrices."""
    return [np.zeros((r, r)) for r in problem.cone.sizes]


def feasible(problem: PSDProblem, dual: FloatArray) -> FloatArray:
    """Return a point of the domain near ``dual`` that balances the offsets."""
    outside = ~np.isfinite(problem.loss.conjugate(dual))
    if outside.any():
        inside = problem.loss.conjugate_prox(dual, 1e-12 * problem.loss.step)
        dual = np.where(outside[:, None], inside, dual)
    if problem.outward.shape[1]:
        dual = problem.loss.balanced(dual, problem.weight, problem.outward)
    return dual


def best_offset(problem: PSDProblem, predictions: FloatArray, offset: FloatArray) -> FloatArray:
    """Offsets that minimize the losses, one after the other, for the rest of the model."""
    loss, best = problem.loss, offset.copy()
    reach = 0.01 * np.sqrt(loss.unit / loss.step) if loss.unit > 0.0 else 1.0
    for column, j in zip(problem.outward.T, range(len(best)), strict=True):
        rest = predictions + problem.outward @ (best - offset)

        def objective(move: float, rest: FloatArray = rest, along: FloatArray = column) -> float:
            return float(problem.weight @ loss.value(rest + move * along))

        found = minimize_scalar(objective, bracket=(-reach, reach), method="brent", tol=1e-10)
        if found.fun < objective(0.0):
            best[j] += float(found.x)
    return best


class Record:
    """Certificates along the way; remembers the best model and the best dual point."""

    def __init__(
        self, problem: PSDProblem, tol: float, callback: Callback | None, joint: bool = False
    ) -> None:
        self.problem, self.tol, self.callback, self.joint = problem, tol, callback, joint
        self.started = time.perf_counter()
        self.history: list[Progress] = []
        self.gap = np.inf
        self.predictions: FloatArray = np.zeros((0, 0))
        self.offset: FloatArray = np.zeros(0)
        self.best: tuple[Point, FloatArray, float, float] | None = None
        self.stopped = False

    def certify(self, point: Point, offset: FloatArray, iteration: int) -> bool:
        """Look at a point; True if done.

        Matrices on the way meet the conditions roughly: the verdict is on those that do exactly.
        """
        problem = self.problem
        model, primal = self._look(point, offset)
        predictions = self.predictions
        lower = self._lower(point)
        gap = problem.certificate(primal, lower, model).relative_gap
        if self.joint and problem.cone.violation(model.matrices) > self.tol:
            gap = np.inf  # too early to tell
        elif point.spectra.barrier > 0.0 and len(problem.constraints) and gap <= self.tol:
            exact = problem.cone.solve(
                point.push.gram, point.spectra.multipliers, point.spectra.barrier
            )
            point = Point(point.dual, point.push, exact, point.conjugates)
            model, primal = self._look(point, offset)
            lower = self._lower(point)
            gap = problem.certificate(primal, lower, model).relative_gap
            self.predictions = predictions
        if gap < self.gap or self.best is None:
            self.gap, self.best = gap, (point, offset, primal, lower)
        seconds = time.perf_counter() - self.started
        relative = (primal - lower) / problem.loss.unit if problem.loss.unit > 0.0 else 0.0
        self.history.append(Progress(iteration, seconds, primal, lower, relative))
        self.stopped = self.callback is not None and bool(self.callback(self.history[-1]))
        return gap <= self.tol or self.stopped

    def _look(self, point: Point, offset: FloatArray) -> tuple[Model, float]:
        return self._priced(self.problem.model(point.push, point.spectra, offset))

    def _priced(self, model: Model) -> tuple[Model, float]:
        """The model with its best offsets, and its objective."""
        problem, offset = self.problem, model.offset
        self.predictions = problem.predictions(model)
        if len(offset):
            best = best_offset(problem, self.predictions, offset)
            self.predictions += problem.outward @ (best - offset)
            model = model._replace(offset=best)
        self.offset = model.offset
        return model, problem.primal(model, self.predictions)

    def _lower(self, point: Point) -> float:
        """The dual objective; at the multipliers of a barrier problem any will do."""
        problem = self.problem
        if problem.outward.shape[1]:
            dual = feasible(problem, point.dual)
            push = problem.push(dual)
            spectra = problem.cone.spectra(push.gram, point.spectra.multipliers)
            point = Point(dual, push, spectra, problem.conjugates(dual))
        return problem.lower(point.push, point.spectra, point.conjugates)

    def solution(self, n_iter: int, remedy: str) -> PSDSolution:
        """The best that was seen, in the lowest rank that is as good."""
        problem = self.problem
        point, model, certificate = self._final()
        good = certificate.relative_gap <= self.tol
        message = f"relative gap of {certificate.relative_gap:.1e} after {n_iter} steps"
        if not good:
            message += f" > tol={self.tol:g}: {remedy}"
        dual = feasible(problem, point.dual) if problem.outward.shape[1] else point.dual
        return PSDSolution(
            model,
            dual,
            point.spectra.multipliers,
            certificate,
            Status(good, message),
            n_iter,
            self.history,
        )

    def _final(self) -> tuple[Point, Model, Certificate]:
        """The first of the candidates that is within the tolerance, or else the best."""
        assert self.best is not None
        best, lowest = None, np.inf
        for point, model, primal in self._candidates(*self.best[:2]):
            certificate = self.problem.certificate(primal, self._lower(point), model)
            gap = certificate.relative_gap
            if certificate.feasibility > _ROUNDED:
                gap = np.inf
            if best is None or gap < lowest:
                best, lowest = (point, model, certificate), gap
            if gap <= self.tol:
                break
        assert best is not None
        return best

    def _candidates(
        self, point: Point, offset: FloatArray
    ) -> Iterator[tuple[Point, Model, float]]:
        """Models of a dual point: without the barrier, of low rank, and the safe one with it."""
        problem, barrier = self.problem, point.spectra.barrier
        nu = point.spectra.multipliers
        for mu in sorted({0.0, barrier}):
            exact = problem.cone.solve(point.push.gram, nu, mu)
            final = Point(point.dual, point.push, exact, point.conjugates)
            if mu > 0.0:
                plain = problem.model(final.push, exact, offset)
                for factors in low_rank(exact):
                    matrices = [factor @ factor.T for factor in factors]
                    model = plain._replace(matrices=matrices, factors=factors)
                    yield final, *self._priced(model)
            yield final, *self._look(final, offset)


__all__ = ["PSDSolution", "Point", "Record", "feasible", "point_of", "start_of", "total"]
