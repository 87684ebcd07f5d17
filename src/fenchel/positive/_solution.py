"""Points, certificates, results and the base class of solvers of non-negative models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import CheckedWhenMade
from fenchel.certificate import Callback, Certificate, Progress, Status
from fenchel.positive._cone import EXACT, Spectra
from fenchel.positive._faces import Face, face_of
from fenchel.positive._low_rank import low_rank
from fenchel.positive._unit_conditions import of_unit_length
from fenchel.positive.problem import Model, PSDProblem, Push
from fenchel.solvers.loop import Iterate, Loop, credible_gap

_QUARTERS = 25  # down to 1e-15 of a starting point
_ROUNDED = 1e-10  # violation of a condition that a returned model may have
_MISSED = 1e-8  # violation of a condition that is more than rounding
_CONDITIONS = "increase rank or max_iter, or see whether the conditions can be met together"
_NEAR = 10.0  # tolerances within which the best offsets of a step are worth their search
_WITHIN = 1.5  # tolerances that a barrier may leave as a gap where points may be good enough
_GAINED = 0.1  # tolerances that the step before may have gained where they are
_ROUGH = 1e-4  # a tolerance of candidates that are compared
ROUNDING = 1e-14  # share of a value that may be rounding: 698 and 494 with 1e-16, else no change
_SUMMED = 1e-15  # share of a sum of weighted dual points that is rounding
_ROUGHLY = 1e-7  # accuracy of the conditions on the way


@dataclass(frozen=True, eq=False)
class Point:
    """A dual point with the quantities computed from it."""

    dual: FloatArray
    push: Push
    spectra: Spectra
    conjugates: float


@dataclass(frozen=True, eq=False)
class Certified:
    """A dual point, a model of it, and the certificate of both."""

    point: Point
    model: Model
    predictions: FloatArray
    """Predictions of the model at the rows, (n, p)."""
    certificate: Certificate
    settled: bool = False
    """Whether the model is final and is not to be replaced by one of lower rank."""


@dataclass(frozen=True, eq=False)
class PSDSolution:
    """Best certified solution found by a solver."""

    model: Model
    """Matrices, their factors, linear weights and offsets. All constraints hold."""
    dual: FloatArray
    """Feasible dual vectors β, (n, p)."""
    multipliers: FloatArray
    """Multipliers ν of the constraints. They are 0 for constraints that remove features, such as a
    value of zero; the dual value is then the limit in which these multipliers grow."""
    certificate: Certificate
    """Primal and dual objective of this model and this dual point."""
    status: Status
    n_iter: int
    history: list[Progress] = field(default_factory=list)


class Start(NamedTuple):
    """A warm start: the dual solution of a similar problem.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import replace
    >>> from fenchel.losses import Squared
    >>> from fenchel.positive import PSDPart, PSDProblem, Residual, Start, solve
    >>> loss = Residual(Squared(), np.array([[1.0], [4.0]]))
    >>> features = np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> first = solve(PSDProblem(loss, [PSDPart(features, alpha=1e-2)], np.ones(2)))
    >>> start = Start(first.dual, first.multipliers)
    >>> second = PSDProblem(loss, [PSDPart(features, alpha=1e-3)], np.ones(2))
    >>> solve(second, warm_start=start).status.converged
    True
    """

    dual: FloatArray
    """Dual vectors, (n, p)."""
    multipliers: FloatArray
    """Multipliers of the constraints on the matrices."""
    barrier: float = 0.0
    """Barrier for which the point is nearly optimal; 0 for a solution without barrier."""


def on_face(face: Face, start: Start) -> Start:
    """A start for the smaller problem."""
    return start._replace(multipliers=face.multipliers(start.multipliers))


def lifted(face: Face, found: PSDSolution) -> PSDSolution:
    """The solution of the smaller problem as one of the whole, which has the same objectives."""
    model = face.lifted(found.model)
    missed = max(found.certificate.feasibility, face.whole.cone.violation(model.matrices))
    return replace(
        found,
        model=model,
        multipliers=face.all_multipliers(found.multipliers),
        certificate=replace(found.certificate, feasibility=missed),
    )


def point_of(
    problem: PSDProblem,
    dual: FloatArray,
    push: Push | None,
    multipliers: FloatArray,
    barrier: float = 0.0,
    joint: bool = False,
    conjugates: float | None = None,
) -> Point:
    """Evaluate a dual point; ``push`` and ``conjugates`` where they are known already."""
    push = problem.push(dual) if push is None else push
    cone = problem.cone
    if joint:  # the multipliers are unknowns of Newton's method
        spectra = cone.spectra(push.gram, multipliers, barrier)
    else:
        accuracy = _ROUGHLY if barrier > 0.0 else EXACT
        spectra = cone.solve(push.gram, multipliers, barrier, accuracy)
    known = problem.conjugates(dual) if conjugates is None else conjugates
    return Point(dual, push, spectra, known)


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
    if problem.outward.shape[1] and not _balances(problem, dual):
        dual = problem.loss.balanced(dual, problem.weight, problem.outward)
    return dual


def _balances(problem: PSDProblem, dual: FloatArray) -> bool:
    """Whether a point balances the offsets up to the rounding of these sums."""
    left = problem.outward.T @ (problem.weight @ dual)
    size = np.abs(problem.outward).T @ (problem.weight @ np.abs(dual))
    return bool((np.abs(left) <= _SUMMED * size).all())


def best_offset(problem: PSDProblem, predictions: FloatArray, offset: FloatArray) -> FloatArray:
    """Offsets that minimize the losses, one after the other, for the rest of the model."""
    best = offset.copy()
    for j, column in enumerate(problem.outward.T):
        rest = predictions + problem.outward @ (best - offset)
        best[j] += problem.loss.best_move(rest, column, problem.weight)
    return best


class Record:
    """Certifies the points of a fit; its loop keeps the best, and the history."""

    def __init__(
        self, problem: PSDProblem, tol: float, callback: Callback | None, joint: bool = False
    ) -> None:
        self.problem, self.joint = problem, joint
        self.loop = Loop[Certified](tol, callback)
        self._known: tuple[Point, float] | None = None

    def worth(self, barrier: float) -> float:
        """What a step must have been to gain for its point to need no certificate.

        Points on the way need none, unless somebody is told of the progress, or a precise
        solution is sought, or a barrier, and what the last step was to gain, are so small that
        the point may be good enough.
        """
        if self.loop.callback is not None or self.loop.tol < _ROUGH:
            return np.inf
        enough = self.loop.tol * (self.problem.loss.unit or 1.0)
        left = barrier * sum(self.problem.cone.sizes) / _WITHIN
        return -np.inf if left > enough else _GAINED * enough

    def run(self, iterates: Iterator[Iterate[Certified]], remedy: str) -> PSDSolution:
        """Take iterates until one of them ends the loop; return the best in its lowest rank."""
        loop, problem = self.loop, self.problem
        found = self._final(loop.run(iterates))
        dual, status = found.point.dual, loop.status(remedy, gap=credible_gap(found.certificate))
        missed = found.certificate.feasibility
        if missed > _MISSED:  # whatever the gap is, it is that of another problem
            status = Status(
                False,
                f"stopped with a condition missed by {missed:.1e} of its size after {loop.count} "
                f"steps: {loop.reason or _CONDITIONS}",
            )
        return PSDSolution(
            found.model,
            feasible(problem, dual) if problem.outward.shape[1] else dual,
            found.point.spectra.multipliers,
            found.certificate,
            status,
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
        if self.joint and self._near(spectra, certificate):
            verdict = self._exact(point, offset)
            if credible_gap(verdict.certificate) <= self.loop.tol:
                return verdict
        if self.joint and certificate.feasibility > self.loop.tol:  # no model yet
            return replace(found, certificate=replace(certificate, primal=np.inf))
        rough = spectra.barrier > 0.0 and len(problem.constraints) > 0
        if not rough or not credible_gap(certificate) <= self.loop.tol:
            return found
        # a solver goes on from the point
        return replace(self._exact(point, offset), predictions=found.predictions)

    def _near(self, spectra: Spectra, certificate: Certificate) -> bool:
        """Whether the barrier and the conditions may allow a model within the tolerance."""
        if not len(self.problem.constraints):
            return False
        left = spectra.barrier * sum(self.problem.cone.sizes)
        missing = certificate.feasibility
        return left <= self.loop.tol * certificate.unit and missing <= _NEAR * self.loop.tol

    def _exact(self, point: Point, offset: FloatArray) -> Certified:
        """The model of a point whose matrices meet the conditions exactly."""
        problem, spectra = self.problem, point.spectra
        exact = problem.cone.solve(point.push.gram, spectra.multipliers, spectra.barrier)
        model = problem.model(point.push, exact, offset)
        return self._with_model(replace(point, spectra=exact), model)

    def settled(self, point: Point, model: Model) -> Certified:
        """The certificate of a point and a model of another, which is as it shall be."""
        return replace(self._with_model(point, model), settled=True)

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
        if self._known is not None:  # several models are made of one point
            known, value = self._known
            same = np.array_equal(known.spectra.multipliers, point.spectra.multipliers)
            if known.dual is point.dual and same:
                return value
        value = self._lower_of(point)
        self._known = point, value
        return value

    def _lower_of(self, point: Point) -> float:
        problem = self.problem
        if problem.outward.shape[1]:
            dual = feasible(problem, point.dual)
            if dual is not point.dual:
                push = problem.push(dual)
                spectra = problem.cone.spectra(push.gram, point.spectra.multipliers)
                point = Point(dual, push, spectra, problem.conjugates(dual))
        return problem.lower(point.push, point.spectra, point.conjugates)

    def _final(self, seen: Certified) -> Certified:
        """The first of the candidates that is within the tolerance, or else the best."""
        if seen.settled:
            return seen
        best, lowest = seen, np.inf
        for found in self.candidates(seen, self.loop.seconds_left > 0.0):
            certificate = found.certificate
            gap = credible_gap(certificate) if certificate.feasibility <= _ROUNDED else np.inf
            if best is seen or gap < lowest:
                best, lowest = found, gap
            if gap <= self.loop.tol:
                break
        far = lowest > self.loop.tol and best.certificate.primal > best.certificate.unit
        if far and not self.problem.constraints and self.loop.seconds_left > 0.0:
            best = min(self._smaller(best), key=lambda found: found.certificate.primal)
        return best

    def _smaller(self, best: Certified) -> Iterator[Certified]:
        """A model that is worse than the best constants, its multiples, and its offsets alone."""
        yield best
        matrices, factors, weights, offset = best.model
        for share in (*0.25 ** np.arange(1.0, _QUARTERS), 0.0):
            model = Model(
                [share * matrix for matrix in matrices],
                [np.sqrt(share) * factor for factor in factors],
                [share * weight for weight in weights],
                offset,
            )
            yield self._with_model(best.point, model)

    def candidates(self, best: Certified, reduced: bool = True) -> Iterator[Certified]:
        """Models of a dual point: without the barrier, of low rank, and the safe one with it.

        None of low rank unless they shall be ``reduced``.
        """
        problem, point, offset = self.problem, best.point, best.model.offset
        for barrier in sorted({0.0, point.spectra.barrier}):
            exact = problem.cone.solve(point.push.gram, point.spectra.multipliers, barrier)
            final = replace(point, spectra=exact)
            plain = problem.model(final.push, exact, offset)
            if barrier > 0.0 and reduced:
                for factors in low_rank(exact):
                    matrices = [factor @ factor.T for factor in factors]
                    yield self._with_model(
                        final, plain._replace(matrices=matrices, factors=factors)
                    )
            yield self._with_model(final, plain)


class PSDSolver(CheckedWhenMade):
    """Base class of algorithms that maximize the dual of a :class:`PSDProblem`.

    Subclasses yield certified points; a common loop decides when to stop.
    """

    tol: float
    max_iter: int
    remedy: ClassVar[str] = "increase max_iter, alpha, or tol"

    def requires(self, problem: PSDProblem) -> str | None:
        """Return None if the solver applies to this problem, else a sentence with the reason."""
        return None

    def solve(
        self,
        problem: PSDProblem,
        warm_start: Start | None = None,
        callback: Callback | None = None,
    ) -> PSDSolution:
        """Return the best certified solution."""
        missing = self.requires(problem)
        if problem.of_traces_alone:
            missing = "needs alpha > 0; fenchel.positive.solve takes alpha=0 with this solver"
        if missing is not None:
            raise ValueError(f"solver {type(self).__name__} {missing}")
        face = face_of(problem)
        if face is not None:
            near = None if warm_start is None else on_face(face, warm_start)
            return lifted(face, self.solve(face.problem, near, callback))
        unit, lengths = of_unit_length(problem)
        if warm_start is not None and warm_start.multipliers.shape == lengths.shape:
            warm_start = warm_start._replace(multipliers=warm_start.multipliers * lengths)
        record = Record(unit, self.tol, callback, self._joint(unit))
        found = record.run(self._iterates(record, warm_start), self.remedy)
        return replace(found, multipliers=found.multipliers / lengths)

    def _joint(self, problem: PSDProblem) -> bool:
        """Whether the multipliers of the conditions are unknowns as the dual point is."""
        return False

    def _iterates(self, record: Record, warm_start: Start | None) -> Iterator[Iterate[Certified]]:
        raise NotImplementedError
