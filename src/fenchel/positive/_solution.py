"""What solvers of non-negative models share: points, their certificates, the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from fenchel._typing import FloatArray
from fenchel.certificate import Callback, Certificate, Progress, Status
from fenchel.positive._cone import EXACT, Spectra
from fenchel.positive._low_rank import low_rank
from fenchel.positive.problem import Model, PSDProblem, Push
from fenchel.solvers.loop import Iterate, Loop, credible_gap

_QUARTERS = 25  # down to 1e-15 of a starting point
_ROUNDED = 1e-10  # violation of a condition that a returned model may have
_NEAR = 10.0  # tolerances within which the best offsets of a step are worth their search
_ROUGHLY = 1e-7  # accuracy of the conditions on the way


@dataclass(frozen=True, eq=False)
class Point:
    """A dual point with all that follows from it."""

    dual: FloatArray
    push: Push
    spectra: Spectra
    conjugates: float


@dataclass(frozen=True, eq=False)
class Certified:
    """A dual point, a model that it stands for, and the certificate of both."""

    point: Point
    model: Model
    predictions: FloatArray
    """Of the model at the rows, (n, p)."""
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class PSDSolution:
    """The best certified fit that a solver found."""

    model: Model
    """Matrices, their factors, linear weights, offsets. All constraints hold."""
    dual: FloatArray
    """Feasible dual vectors β, (n, p)."""
    multipliers: FloatArray
    """ν of the constraints."""
    certificate: Certificate
    """Objectives of this model and this dual point."""
    status: Status
    n_iter: int
    history: list[Progress] = field(default_factory=list)


class Start(NamedTuple):
    """A dual point to start from, the solution of a similar problem."""

    dual: FloatArray
    """(n, p)."""
    multipliers: FloatArray
    """Of the conditions on the matrices."""


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
    problem: PSDProblem, start: Start | None, barrier: float = 0.0, joint: bool = False
) -> Point:
    """The point to start from: given, or that of a multiple of the identity."""
    n, p = len(problem.weight), problem.n_outputs
    none = np.zeros(len(problem.constraints))
    if start is not None:
        known = start.multipliers if start.multipliers.shape == none.shape else none
        return point_of(problem, feasible(problem, start.dual), None, known, barrier)
    step = problem.loss.step
    push = Push(
        [np.zeros((r, r)) for r in problem.cone.sizes],
        [np.zeros(part.features.shape[1]) for part in problem.linear],
    )
    spectra = problem.cone.solve(push.gram, none, barrier)
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
    """Certifies the points of a fit; its loop keeps the best, and the history."""

    def __init__(
        self, problem: PSDProblem, tol: float, callback: Callback | None, joint: bool = False
    ) -> None:
        self.problem, self.joint = problem, joint
        self.loop = Loop[Certified](tol, callback)

    def run(self, iterates: Iterator[Iterate[Certified]], remedy: str) -> PSDSolution:
        """Take iterates until one of them ends the loop; return the best in its lowest rank."""
        loop, problem = self.loop, self.problem
        found = self._final(loop.run(iterates))
        dual = found.point.dual
        return PSDSolution(
            found.model,
            feasible(problem, dual) if problem.outward.shape[1] else dual,
            found.point.spectra.multipliers,
            found.certificate,
            loop.status(remedy, gap=credible_gap(found.certificate)),
            loop.count,
            loop.history,
        )

    def certified(self, point: Point, offset: FloatArray, given: bool = False) -> Certified:
        """Certify a point, with the best offsets near the given ones.

        Where they are those of a joint step, ``given``, better ones are sought near the end only.
        Matrices on the way meet the conditions roughly: the verdict is on those that do exactly.
        """
        problem, spectra = self.problem, point.spectra
        model = problem.model(point.push, spectra, offset)
        found = self._with_model(point, model, polished=not given)
        if given and credible_gap(found.certificate) <= _NEAR * self.loop.tol:
            found = self._with_model(point, model)
        certificate = found.certificate
        if self.joint and certificate.feasibility > self.loop.tol:  # no model yet
            return replace(found, certificate=replace(certificate, primal=np.inf))
        rough = spectra.barrier > 0.0 and len(problem.constraints) > 0
        if not rough or not credible_gap(certificate) <= self.loop.tol:
            return found
        exact = problem.cone.solve(point.push.gram, spectra.multipliers, spectra.barrier)
        model = problem.model(point.push, exact, offset)
        verdict = self._with_model(replace(point, spectra=exact), model)
        return replace(verdict, predictions=found.predictions)  # a solver goes on from the point

    def _with_model(self, point: Point, model: Model, polished: bool = True) -> Certified:
        """The certificate of a point and a model, which is given its best offsets."""
        problem, offset = self.problem, model.offset
        predictions = problem.predictions(model)
        if len(offset) and polished:
            best = best_offset(problem, predictions, offset)
            predictions += problem.outward @ (best - offset)
            model = model._replace(offset=best)
        primal = problem.primal(model, predictions)
        certificate = problem.certificate(primal, self._lower(point), model)
        return Certified(point, model, predictions, certificate)

    def _lower(self, point: Point) -> float:
        """The dual objective; at the multipliers of a barrier problem any will do."""
        problem = self.problem
        if problem.outward.shape[1]:
            dual = feasible(problem, point.dual)
            push = problem.push(dual)
            spectra = problem.cone.spectra(push.gram, point.spectra.multipliers)
            point = Point(dual, push, spectra, problem.conjugates(dual))
        return problem.lower(point.push, point.spectra, point.conjugates)

    def _final(self, seen: Certified) -> Certified:
        """The first of the candidates that is within the tolerance, or else the best."""
        best, lowest = seen, np.inf
        for found in self._candidates(seen):
            certificate = found.certificate
            gap = credible_gap(certificate) if certificate.feasibility <= _ROUNDED else np.inf
            if best is seen or gap < lowest:
                best, lowest = found, gap
            if gap <= self.loop.tol:
                break
        return best

    def _candidates(self, best: Certified) -> Iterator[Certified]:
        """Models of a dual point: without the barrier, of low rank, and the safe one with it."""
        problem, point, offset = self.problem, best.point, best.model.offset
        for barrier in sorted({0.0, point.spectra.barrier}):
            exact = problem.cone.solve(point.push.gram, point.spectra.multipliers, barrier)
            final = replace(point, spectra=exact)
            plain = problem.model(final.push, exact, offset)
            if barrier > 0.0:
                for factors in low_rank(exact):
                    matrices = [factor @ factor.T for factor in factors]
                    yield self._with_model(
                        final, plain._replace(matrices=matrices, factors=factors)
                    )
            yield self._with_model(final, plain)
