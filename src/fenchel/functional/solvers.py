"""Solvers of functional regression: closed form, splitting, accelerated gradients."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from fenchel._typing import FloatArray
from fenchel.functional._anderson import Anderson
from fenchel.functional.problem import CurveProblem
from fenchel.losses import CurveHuber, CurveInsensitive, Squared
from fenchel.problem import Certified
from fenchel.solvers.base import Callback, Progress, Solution, Status, settled

_CHECK_EVERY = 5
_LONGEST_WAIT = 10
_BALANCE_AT = (3, 10, 25, 60, 120, 240)
_RELAXATION = 1.6
_SHIFTS = (0.3, 1e6)


@dataclass(frozen=True)
class CurveSolution(Solution):
    """What a solver of curves returns.

    Attributes
    ----------
    nearby : ndarray of shape (n, m)
        A point to start similar problems from: close to ``dual``, and maybe not feasible, but
        its function is known more exactly.
    """

    nearby: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))


class CurveSolver(Protocol):
    """An algorithm that maximizes the dual of a functional problem."""

    def requires(self, problem: CurveProblem) -> str | None:
        """Return None if it can solve this problem, else a sentence on what is missing."""
        ...

    def solve(
        self,
        problem: CurveProblem,
        start: FloatArray | None = None,
        callback: Callback | None = None,
    ) -> CurveSolution:
        """Return the best certified point; ``start`` is a point (n, m) near by."""
        ...


class Eigenbases:
    """The matrix of the problem, √c K √c times √μ k √μ, in its two eigenbases."""

    def __init__(self, problem: CurveProblem) -> None:
        rows, left = problem.rows.spectrum
        points, right = problem.points.spectrum
        values = np.multiply.outer(rows / problem.alpha, points)
        # what no shift in use would notice is left out
        felt = values > np.finfo(float).eps * _SHIFTS[0] * 0.1
        some, few = felt.any(axis=1), felt.any(axis=0)
        self.values = values[np.ix_(some, few)]
        self._left = np.ascontiguousarray(left[:, some])
        self._right = np.ascontiguousarray(right[:, few])
        self.root = np.sqrt(problem.weight)[:, None]

    def solve(self, values: FloatArray, shift: float) -> FloatArray:
        """(shift + matrix)⁻¹ values, (n, m)."""
        inside = self._left.T @ values @ self._right
        inside *= -self.values / (self.values + shift)
        return (values + self._left @ inside @ self._right.T) / shift


@dataclass(frozen=True)
class ClosedForm:
    r"""Squared loss: one linear system, solved in the eigenbases of the two kernels.

    .. math:: \beta + \sqrt\mu\, K_c\, (\beta \circ \sqrt\mu)\, k_\Theta\, = \sqrt\mu\, y

    This is a Sylvester equation, diagonal in the products of eigenvectors.

    References
    ----------
    Lambert et al. (2022), appendix B.1.
    """

    tol: float = 1e-6

    def requires(self, problem: CurveProblem) -> str | None:
        """Squared loss, curves observed on one grid."""
        if type(problem.loss) is not Squared or problem.loss.epsilon != 0.0:
            return "needs loss='square'"
        if problem.points.observed is not None:
            return "needs curves observed at all points of one grid"
        return None

    def solve(
        self,
        problem: CurveProblem,
        start: FloatArray | None = None,
        callback: Callback | None = None,
    ) -> CurveSolution:
        """Solve the system; nothing is gained from ``start``."""
        started = time.perf_counter()
        certified = problem.certify(_ridge(problem, Eigenbases(problem)))
        how = "solved in closed form; kernels this close to singular need a larger alpha"
        solution = settled(certified, started, 1, how, self.tol, callback)
        return CurveSolution(**vars(solution), nearby=certified.dual)


@dataclass(frozen=True)
class Splitting:
    r"""Splitting of Douglas and Rachford in the two eigenbases, extrapolated.

    The quadratic part of the dual is minimized exactly, in the eigenbases of the two kernels,
    and the loss exactly, by its prox; a few dozen turns of both suffice where gradient methods
    need a thousand, because the conditioning of the kernels is not felt. The weight ρ between
    the parts balances their gradients, the fixed point is extrapolated from the last ten
    turns, and the primal model may come from the quadratic part's point, whose function is
    less sensitive than the one of the loss's point, which has the exact zeros.

    References
    ----------
    Eckstein, Bertsekas (1992); Walker, Ni (2011) for the extrapolation.
    """

    tol: float = 1e-6
    max_iter: int = 1000

    def requires(self, problem: CurveProblem) -> str | None:
        """Weights of the points that are common to all curves."""
        if problem.points.observed is not None and not problem.points.masked:
            return "needs points whose weights are common to all curves; solver='apgd' does not"
        return None

    def solve(
        self,
        problem: CurveProblem,
        start: FloatArray | None = None,
        callback: Callback | None = None,
    ) -> CurveSolution:
        """Turn until the gap is small."""
        started = time.perf_counter()
        bases, best = Eigenbases(problem), _Best(problem, self.tol, started, callback)
        if best.is_zero():
            return best.solution("turns")
        targets, root = bases.root * problem.targets, bases.root
        inverse, mask = 1.0 / root, problem.points.observed
        rho = 1.0
        if start is None:
            state = root * _ridge(problem, bases)
            goal, waited = 0.0, _LONGEST_WAIT - _CHECK_EVERY
        else:
            slope = problem.image(start) - problem.targets
            near = problem.loss.conjugate_prox(start, np.finfo(float).tiny)
            rho = _shift(problem, root * slope, root * near)
            state = root * (start + slope / rho)
            goal, waited = np.inf, 0
        turn = Anderson(state.size)
        for iteration in range(1, self.max_iter + 1):
            smooth = bases.solve(targets + rho * state, rho)
            reflected = inverse * (2.0 * smooth - state)
            if mask is not None:
                reflected *= mask
            dual = problem.loss.conjugate_prox(reflected, 1.0 / rho)
            step = root * dual - smooth
            length = float(np.linalg.norm(step))
            waited += 1
            if length <= goal or waited >= _LONGEST_WAIT or iteration == self.max_iter:
                if best.take(iteration, dual, inverse * smooth):
                    break
                # certificates cost as much as turns; gaps fall like the square of steps
                goal, waited = 2.0 * length * np.sqrt(self.tol / best.last_gap), 0
            if iteration in _BALANCE_AT:
                new = _shift(problem, rho * (state - smooth), root * dual)
                if max(new / rho, rho / new) > 1.5:
                    state = smooth + (rho / new) * (state - smooth)
                    rho = new
                    turn.forget()
                    continue
            step *= _RELAXATION
            moved = turn(state.ravel(), step.ravel(), length)
            state = moved.reshape(step.shape)
        return best.solution("turns", inverse * smooth)


@dataclass(frozen=True)
class APGD:
    r"""Accelerated proximal gradients on the dual, with backtracking and adaptive restart.

    The paper's algorithm, started at the ridge solution where that has a closed form. It asks
    for nothing but products with the kernels, so weights may differ from curve to curve.

    References
    ----------
    Lambert et al. (2022), algorithms 1 and 2, with the momentum t/(t + 3) in place of
    (t - 2)/(t + 1); O'Donoghue, Candès (2015) for the restart.
    """

    tol: float = 1e-6
    max_iter: int = 20_000

    def requires(self, problem: CurveProblem) -> str | None:
        """Nothing."""
        return None

    def solve(
        self,
        problem: CurveProblem,
        start: FloatArray | None = None,
        callback: Callback | None = None,
    ) -> CurveSolution:
        """Step until the gap is small."""
        started = time.perf_counter()
        best = _Best(problem, self.tol, started, callback)
        if best.is_zero():
            return best.solution("steps")
        weight, targets = problem.weight, problem.targets
        tiny = np.finfo(float).tiny
        point = _first(problem) if start is None else problem.loss.conjugate_prox(start, tiny)
        image = problem.image(point)
        ahead, ahead_image, momentum, step = point, image, 0, 1.0
        for iteration in range(1, self.max_iter + 1):
            pull = targets - ahead_image
            while True:
                # the gradient leaves out ½‖β‖², which the prox of the conjugate contains
                new = problem.loss.conjugate_prox(ahead + step * pull, step)
                new_image = problem.image(new)
                move = new - ahead
                bend = np.einsum("i,ij,ij->", weight, move, new_image - ahead_image)
                size = np.einsum("i,ij,ij->", weight, move, move)
                if not step * bend > size * (1.0 + 1e-9):  # nor if it is not a number
                    break
                step *= 0.5
            last, last_image = point, image
            point, image = new, new_image
            uphill = np.einsum("i,ij,ij->", weight, ahead - point, point - last)
            momentum = 0 if uphill > 0.0 else momentum + 1
            ratio = momentum / (momentum + 3.0)
            ahead = point + ratio * (point - last)
            ahead_image = image + ratio * (image - last_image)
            if iteration % (2 * _CHECK_EVERY) == 0 and best.take(iteration, point, None):
                break
        return best.solution("steps")


class _Best:
    """The best certified point so far, and when to stop."""

    def __init__(
        self, problem: CurveProblem, tol: float, started: float, callback: Callback | None
    ) -> None:
        self._problem, self._tol, self._started = problem, tol, started
        self._callback = callback
        self._zero = np.zeros_like(problem.targets)
        self._found: Certified | None = None
        self._history: list[Progress] = []
        self._stopped = False

    def is_zero(self) -> bool:
        """Whether the function zero has no loss, so that there is nothing to do."""
        return self._problem.baseline == 0.0 and self.take(0, self._zero, None)

    def take(self, iteration: int, dual: FloatArray, model: FloatArray | None) -> bool:
        """Certify a dual point, with another point for the model if that is better."""
        problem = self._problem
        certified = problem.certify(dual)
        if certified.certificate.relative_gap > self._tol and model is not None:
            other = problem.certify(dual, model)
            if other.certificate.primal < certified.certificate.primal:
                certified = other
        now = certified.certificate
        self._history.append(
            Progress(
                iteration,
                time.perf_counter() - self._started,
                now.primal,
                now.dual,
                now.relative_gap,
            )
        )
        self._least(certified)
        if self._callback is not None and self._callback(self._history[-1]):
            self._stopped = True
        return self._stopped or now.relative_gap <= self._tol

    @property
    def last_gap(self) -> float:
        """Relative gap of the last certificate."""
        return self._history[-1].relative_gap

    def _least(self, certified: Certified) -> None:
        gap = certified.certificate.relative_gap
        if self._found is None or gap < self._found.certificate.relative_gap:
            self._found = certified

    def solution(self, unit: str, nearby: FloatArray | None = None) -> CurveSolution:
        """What the solver returns."""
        if self._found is None:  # fewer iterations than between two certificates
            self.take(0, _first(self._problem), None)
        if self.last_gap > self._tol:  # worse than no model at all?
            self._least(self._problem.certify(self._zero))
        found = self._found
        assert found is not None
        gap, count = found.certificate.relative_gap, self._history[-1].iteration
        good = gap <= self._tol
        message = f"{count} {unit} to a relative gap of {gap:.1e}"
        if self._stopped and not good:
            message += f" > tol={self._tol:g}: stopped by the callback"
        elif not good:
            message += f" > tol={self._tol:g}: raise max_iter, alpha or tol"
        status = Status(good, message)
        return CurveSolution(
            found.dual,
            found.weights,
            found.offset,
            found.certificate,
            status,
            count,
            self._history,
            found.dual if nearby is None else nearby,
        )


def _ridge(problem: CurveProblem, bases: Eigenbases) -> FloatArray:
    """Dual point of the squared loss on complete curves."""
    return bases.solve(bases.root * problem.targets, 1.0) / bases.root


def _shift(problem: CurveProblem, slope: FloatArray, dual: FloatArray) -> float:
    """The weight ρ of the splitting, from the gradient of the quadratic part and the point.

    Their ratio, times what has proved best; the ratio exaggerates where the loss bounds every
    coordinate.
    """
    ratio = float(np.linalg.norm(slope)) / max(float(np.linalg.norm(dual)), 1e-300)
    if isinstance(problem.loss, CurveInsensitive):
        ratio *= 2.0
    elif isinstance(problem.loss, CurveHuber) and problem.loss.norm == 1.0:
        ratio **= 0.6
    else:
        ratio *= 0.5
    return float(np.clip(ratio, *_SHIFTS))


def _first(problem: CurveProblem) -> FloatArray:
    """A feasible point to start from: that of the squared loss, projected."""
    tiny = np.finfo(float).tiny
    if Splitting().requires(problem) is not None:
        return problem.loss.conjugate_prox(np.zeros_like(problem.targets), tiny)
    first = _ridge(problem, Eigenbases(problem))
    if problem.points.observed is not None:
        first = first * problem.points.observed
    return problem.loss.conjugate_prox(first, tiny)


def make_curve_solver(
    solver: str | CurveSolver, problem: CurveProblem, tol: float, max_iter: int
) -> CurveSolver:
    """Return the solver of that name, or the given one, if it can solve the problem.

    ``"auto"`` takes the closed form for the squared loss of complete curves, the splitting
    where weights are common to all curves, and accelerated gradients elsewhere.
    """
    ordered: dict[str, CurveSolver] = {
        "closed_form": ClosedForm(tol),
        "splitting": Splitting(tol, max_iter),
        "apgd": APGD(tol, 20 * max_iter),
    }
    if isinstance(solver, str) and solver == "auto":
        return next(s for s in ordered.values() if s.requires(problem) is None)
    if isinstance(solver, str) and solver in ordered:
        chosen = ordered[solver]
    elif isinstance(solver, str) or not hasattr(solver, "solve"):
        raise ValueError(
            f"solver must be one of {('auto', *ordered)} or a CurveSolver, got {solver!r}"
        )
    else:
        chosen = solver
    missing = chosen.requires(problem)
    if missing is not None:
        raise ValueError(f"solver={solver!r} cannot solve this problem: it {missing}")
    return chosen


__all__ = ["APGD", "ClosedForm", "CurveSolver", "Splitting", "make_curve_solver"]
