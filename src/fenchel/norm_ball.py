r"""Fits with a bound on the norm of the function, in the place of its penalty.

The constrained problem, ‖h‖ <= Λ, has the solution of the penalized one at the strength alpha
where that has the norm Λ. It is found along fits that start from one another, since norms fall
as alpha grows. Functions and dual points of two strengths around it are combined: for losses
that are linear in pieces, the solutions between two that are on the same pieces are

.. math:: \beta = (1 - s) \beta_1 + s\, \beta_2, \quad
          h = (1 - t) h_1 + t\, h_2, \quad \|h\| = \Lambda,

exactly. Any convex combination is feasible, and the certificate is that of the constrained
problem, computed from these two points: nothing depends on how alpha was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from fenchel._typing import FloatArray
from fenchel.certificate import Callback, Certificate, Certified
from fenchel.named_kernel import Preparation, solve_named
from fenchel.problem import Problem
from fenchel.solvers import Iterate, Loop, Solution, WarmStart, solution_of

TOLERANCE = 0.25
"""Of the fits with a penalty, in units of that of the constrained one."""
P = TypeVar("P", bound=Preparation)
_MOST_FITS = 60
_LEAST = 1e-3  # norm in units of that of the ball, below which it is no guide
_FURTHEST = 1e3  # factor of alpha from one fit to the next, while the ball is on one side


@dataclass(frozen=True)
class _Fit(Generic[P]):
    """A fit with a penalty."""

    prepared: P
    problem: Problem
    solution: Solution
    norm: float
    left: float
    """Norm of what features leave out of the function of the dual point, times alpha."""

    @property
    def alpha(self) -> float:
        return self.problem.alpha


@dataclass(frozen=True)
class _Point(Generic[P]):
    """A feasible pair of a function in the ball and a dual point, with its certificate."""

    prepared: P
    problem: Problem
    certified: Certified

    @property
    def certificate(self) -> Certificate:
        return self.certified.certificate


def solve_in_ball(
    prepared: P,
    make: Callable[[P], Problem],
    solve: Callable[[Problem, WarmStart | None], Solution],
    start: WarmStart | None,
    tol: float,
    radius: float,
    callback: Callback | None = None,
) -> tuple[P, Problem, Solution]:
    """Minimize the mean loss over all functions with a norm of at most ``radius``.

    ``make`` gives the problem with a penalty, whose alpha is the first to be tried, and ``solve``
    solves it to ``TOLERANCE`` times ``tol``. Returns what :func:`solve_named` does; the alpha of
    the problem is the multiplier of the bound.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import KernelRidge
    >>> from fenchel.norm_ball import solve_in_ball
    >>> from fenchel.solvers import Newton
    >>> X = np.linspace(0.0, 1.0, 20)[:, None]
    >>> model = KernelRidge(alpha=1e-3, learn=False)
    >>> prepared = model.prepare(X, np.sin(6.0 * X[:, 0]))
    >>> found = solve_in_ball(prepared, model.make_problem, Newton(1e-7).solve, None, 1e-6, 1.0)
    >>> prepared, problem, solution = found
    >>> round(problem.design.squared_norm(solution.weights), 3)
    1.0
    """
    search = _Search(prepared, make, solve, start, tol * TOLERANCE, radius, callback)
    loop: Loop[Any] = Loop(tol, callback)
    point: _Point[P] = loop.run(search.iterates())
    loop.reason = loop.reason or search.reason
    status = loop.status("the bound on the norm was not met closely enough; decrease tol", "steps")
    return point.prepared, point.problem, solution_of(loop, status, point.certified)


@dataclass
class _Search(Generic[P]):
    """Fits with a penalty, until one on each side of the ball are close enough."""

    prepared: P
    make: Callable[[P], Problem]
    solve: Callable[[Problem, WarmStart | None], Solution]
    start: WarmStart | None
    tol: float
    radius: float
    watch: Callback | None = None
    reason: str | None = None
    inside: _Fit[P] | None = None
    """With the smallest alpha of those whose function is in the ball."""
    outside: _Fit[P] | None = None
    """With the largest alpha of the others."""
    sides: list[bool] = field(default_factory=list)

    def iterates(self) -> Iterator[Iterate[_Point[P]]]:
        """A point for each fit."""
        alpha, count = self.make(self.prepared).alpha, 0
        if self.start is not None and self.start.alpha is not None:
            alpha = self.start.alpha
        for _ in range(_MOST_FITS):
            fit = self._fit(alpha)
            count += fit.solution.n_iter
            self._place(fit)
            yield Iterate(count, self._best_of(fit))
            if not fit.solution.status.converged:
                self.reason = fit.solution.status.message
                return
            alpha = self._next()

    def _fit(self, alpha: float) -> _Fit[P]:
        def at(rows: P) -> Problem:
            return replace(self.make(rows), alpha=alpha)

        self.prepared, problem, solution = solve_named(
            self.prepared, at, self.solve, self.start, self.tol, self.watch
        )
        near = solution.dual if solution.nearby is None else solution.nearby
        self.start = WarmStart(near, solution.offset, alpha)
        left = max(problem.dual(solution.dual) - solution.certificate.dual, 0.0)
        norm, left = problem.norm(solution.weights), math.sqrt(2.0 * alpha * left)
        return _Fit(self.prepared, problem, solution, norm, left)

    def _place(self, fit: _Fit[P]) -> None:
        within = fit.norm <= self.radius
        self.sides.append(within)
        if within:
            self.inside = fit
        else:
            self.outside = fit

    def _best_of(self, fit: _Fit[P]) -> _Point[P]:
        """The best of the fit, brought to the edge of the ball, and of the two around it."""
        found = [self._certified(fit, fit.solution.dual, fit.solution.weights, fit.left)]
        one, two = self.outside, self.inside
        if fit.norm < self.radius and fit.norm > 0.0:  # as it is, should the ball be large
            edge = fit.solution.weights * (self.radius / fit.norm)
            found.append(self._certified(fit, fit.solution.dual, edge, fit.left))
        if one is not None and two is not None and one.prepared is two.prepared:
            found.append(self._between(one, two))
        return min(found, key=lambda point: point.certificate.gap)

    def _between(self, one: _Fit[P], two: _Fit[P]) -> _Point[P]:
        """The function of norm Λ between two fits, and the dual point of the same strength.

        With h = (A + alpha B) / alpha the share of the second function at alpha is
        t = alpha_2 (alpha - alpha_1) / (alpha (alpha_2 - alpha_1)), that of its dual point s =
        (alpha - alpha_1) / (alpha_2 - alpha_1).
        """
        first, second = one.solution, two.solution
        cross = 0.5 * (
            one.problem.design.squared_norm(first.weights + second.weights)
            - one.norm**2
            - two.norm**2
        )
        a = one.norm**2 + two.norm**2 - 2.0 * cross
        b, c = cross - one.norm**2, one.norm**2 - self.radius**2  # a t² + 2 b t + c = 0
        root = math.sqrt(max(b * b - a * c, 0.0))
        t = min(max(c / (root - b), 0.0), 1.0) if root > b else 1.0
        alpha = one.alpha * two.alpha / (two.alpha - t * (two.alpha - one.alpha))
        s = (alpha - one.alpha) / (two.alpha - one.alpha)
        weights = (1.0 - t) * first.weights + t * second.weights
        dual = (1.0 - s) * first.dual + s * second.dual
        return self._certified(one, dual, weights, (1.0 - s) * one.left + s * two.left)

    def _certified(
        self, fit: _Fit[P], dual: FloatArray, weights: FloatArray, left: float
    ) -> _Point[P]:
        """The certificate of the constrained problem, of the kernel as given."""
        problem = replace(fit.problem, radius=self.radius)
        certified = problem.certify(dual, None, problem.within(weights))
        if not certified.dual.any():  # its bound is better, and this is the point of the model
            certified = replace(certified, dual=dual)
        known, size = certified.certificate, problem.norm(problem.link(certified.dual))
        if left > 0.0:
            whole = math.hypot(problem.alpha * size, left)
            lower = known.dual - self.radius * (whole - problem.alpha * size)
            known = replace(known, dual=max(lower, 0.0))  # the point zero has a bound as well
        norm = problem.norm(certified.weights)
        if size > 0.0 and norm > 0.0:  # the dual point stands for a function of that norm
            problem = replace(problem, alpha=problem.alpha * (size / norm))
        return _Point(fit.prepared, problem, replace(certified, certificate=known))

    def _next(self) -> float:
        """Where 1/‖h‖ is expected to be 1/Λ: for squares it is nearly linear in alpha."""
        one, two = self.outside, self.inside
        if one is None or two is None:
            known = two if one is None else one
            assert known is not None
            ratio = (known.norm / self.radius) ** 2
            if one is None:
                return known.alpha * min(max(ratio, 1.0 / _FURTHEST), 0.5)
            return known.alpha * min(max(ratio, 2.0), _FURTHEST)
        if len(self.sides) >= 3 and len(set(self.sides[-3:])) == 1:
            return math.sqrt(one.alpha * two.alpha)
        first, second = 1.0 / one.norm, 1.0 / max(two.norm, _LEAST * self.radius)
        share = (1.0 / self.radius - first) / (second - first)
        return one.alpha + share * (two.alpha - one.alpha)


__all__ = ["TOLERANCE", "solve_in_ball"]

__dir__ = __all__.copy
