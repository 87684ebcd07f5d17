"""Check of a solver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fenchel._typing import FloatArray
from fenchel.design import Plain
from fenchel.losses import Absolute, Huber, L2Norm, Loss, Pinball, Squared, SquaredPinball
from fenchel.problem import Problem
from fenchel.solvers import Progress, Solution, Solver, WarmStart
from fenchel.testing._saying import about, require, require_shape

_ROUNDING = 1e-9
_FEW_STEPS = 10


def small_problems(random_state: int = 0) -> list[Problem]:
    """Return small random problems with several losses, 1 and 3 outputs, weights and intercepts.

    Parameters
    ----------
    random_state : int
        Seed of the data.

    Returns
    -------
    list of Problem
        Problems with 30 rows and 4 features each.

    Examples
    --------
    >>> from fenchel.testing import small_problems
    >>> len(small_problems())
    36
    """
    return list(_problems(np.random.default_rng(random_state)))


def _problems(random: np.random.Generator) -> Iterator[Problem]:
    levels = [0.1, 0.5, 0.8]
    single: list[Loss] = [Squared(), Absolute(), Huber(0.3), Pinball(0.7), SquaredPinball(0.2)]
    several: list[Loss] = [Squared(), Pinball(levels), SquaredPinball(levels), L2Norm()]
    several += [Pinball(levels).insensitive(0.2), Huber(0.3).insensitive(0.1)]
    single += [Absolute().insensitive(0.2), Squared().insensitive(0.2), Pinball(0.3)]
    several += [SquaredPinball(levels).insensitive(0.3), Absolute()]
    cases = [(1, loss) for loss in single] + [(3, loss) for loss in several]
    rough = [(3, L2Norm().insensitive(0.3)), (1, L2Norm())]
    for p, loss in cases + rough:
        for fit_intercept in (True, False):
            features = random.standard_normal((30, 4))
            noise = random.standard_normal((30, p)) * (0.3 + np.abs(features[:, :1]))
            targets = np.sin(features[:, :1]) + 0.5 * features[:, 1:2] + 0.3 + noise
            weighted = random.random() < 0.5
            weight = random.integers(1, 5, 30) / 2.0 if weighted else np.ones(30)
            coupling = np.eye(p) + 0.5 * np.tril(random.standard_normal((p, p)), -1)
            alpha = float(10.0 ** random.uniform(-2.5, 0.0))
            design = Plain(features, coupling)
            yield Problem(loss, design, targets, weight, alpha, fit_intercept)


def check_solver(solver: Solver, problems: Sequence[Problem] | None = None) -> None:
    r"""Check the solutions and certificates of a solver on the problems that it accepts.

    The following are checked for each problem:

    - a refusal is a sentence;
    - the primal and dual objective of the solution, recomputed, are those of its certificate;
    - the dual point is feasible;
    - the gap is non-negative, and at most ``tol`` if the solver reports convergence;
    - neither the zero model nor the best constant model is better by more than the gap;
    - the offset is zero without an intercept, for any start;
    - the callback receives each line of the history;
    - started from its own solution, the solver ends in a few steps with the same objective;
    - the problem does not change.

    Parameters
    ----------
    solver : Solver
        The solver to check.
    problems : sequence of Problem, optional
        By default :func:`small_problems`.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from fenchel.solvers import Newton
    >>> from fenchel.testing import check_solver
    >>> check_solver(Newton())
    >>> class Optimist(Newton):
    ...     def solve(self, problem, warm_start=None, callback=None):
    ...         solution = super().solve(problem, warm_start, callback)
    ...         return replace(solution, dual=0.9 * solution.dual)
    >>> check_solver(Optimist())
    Traceback (most recent call last):
        ...
    AssertionError: Optimist on ...: certificate.dual is ..., and the objective of the dual ...
    """
    cases = small_problems() if problems is None else problems
    refusals = []
    for problem in cases:
        with about(f"{type(solver).__name__} on {_describe(problem)}"):
            missing = solver.requires(problem)
            if missing is None:
                _check(solver, problem)
            else:
                require(
                    isinstance(missing, str) and len(missing.split()) >= 3,
                    "requires(problem) must return None or a sentence that goes on after 'it', "
                    f"such as 'needs the squared loss', got {missing!r}",
                )
                refusals.append(missing)
    require(
        len(refusals) < len(cases),
        f"{type(solver).__name__} refuses all problems; the last time: {refusals[-1:]}",
    )


def _describe(problem: Problem) -> str:
    loss = type(problem.loss).__name__
    if epsilon := getattr(problem.loss, "epsilon", 0.0):
        loss += f".insensitive({epsilon:g})"
    weights = "equal" if np.ptp(problem.sample_weight) == 0.0 else "different"
    intercept = "an intercept" if problem.fit_intercept else "no intercept"
    return (
        f"{loss} with {problem.n_outputs} output(s), {intercept}, {weights} weights and "
        f"alpha={problem.alpha:.3g}"
    )


def _check(solver: Solver, problem: Problem) -> None:
    copies = [a.copy() for a in _arrays(problem)]
    seen: list[Progress] = []
    solution = solver.solve(problem, callback=seen.append)
    _check_solution(solver, problem, solution)
    require(
        len(seen) > 0 and len(solution.history) > 0,
        "the callback must be called, and the history kept, at least once",
    )
    # the start of a problem with an intercept has an offset, which has no place without one
    shift = 0.0 if problem.fit_intercept else float(np.abs(problem.targets).max())
    start = WarmStart(solution.dual, solution.offset + shift, problem.alpha)
    again = solver.solve(problem, warm_start=start)
    _check_solution(solver, problem, again)
    require(
        again.status.converged or not solution.status.converged,
        f"started from its own solution, it does not converge: {again.status.message}",
    )
    gaps = solution.certificate.gap + again.certificate.gap
    moved = abs(again.certificate.primal - solution.certificate.primal)
    unit = _unit(problem)
    require(
        moved <= gaps + _ROUNDING * unit,
        f"started from its own solution, its primal objective moves by {moved:.3g}, more than "
        f"the gaps of {gaps:.3g}",
    )
    require(
        again.n_iter <= max(_FEW_STEPS, solution.n_iter),
        f"started from its own solution, it takes {again.n_iter} steps, and {solution.n_iter} "
        "without",
    )
    require(
        all(np.array_equal(a, b) for a, b in zip(copies, _arrays(problem), strict=True)),
        "solve changes the arrays of the problem",
    )


def _arrays(problem: Problem) -> list[FloatArray]:
    design = problem.design
    own = (design.features, design.coupling, problem.targets, problem.sample_weight)
    return [array for array in own if array is not None]


def _unit(problem: Problem) -> float:
    """Size of the objectives, for rounding."""
    zero = problem.design.zero()
    return abs(problem.primal(zero, np.zeros(problem.n_outputs)))


def _check_solution(solver: Solver, problem: Problem, solution: Solution) -> None:
    n, p = problem.n_rows, problem.n_outputs
    require_shape(solution.dual, (n, p), "dual")
    require_shape(solution.weights, problem.design.zero().shape, "weights")
    require_shape(solution.offset, (p,), "offset")
    certificate, unit = solution.certificate, _unit(problem)
    rounding = _ROUNDING * unit
    _check_feasible(problem, solution.dual)
    require(
        problem.fit_intercept or not solution.offset.any(),
        f"the offset must be exactly zero without an intercept, got {solution.offset!r}",
    )
    for name, claimed, found in (
        ("primal", certificate.primal, problem.primal(solution.weights, solution.offset)),
        ("dual", certificate.dual, problem.dual(solution.dual)),
    ):
        point = "weights and offset" if name == "primal" else "dual vectors"
        require(
            abs(claimed - found) <= rounding,
            f"certificate.{name} is {claimed:.12g}, and the objective of the {point} is "
            f"{found:.12g}",
        )
    require(certificate.gap >= -rounding, f"the gap is negative: {certificate.gap:.3g}")
    baseline = problem.baseline
    relative = certificate.gap / baseline if baseline > 0.0 else 0.0
    require(
        abs(relative - certificate.relative_gap) <= _ROUNDING * max(1.0, abs(relative)),
        f"certificate.relative_gap is {certificate.relative_gap:.3g}, and the gap over the "
        f"objective of the best constant model is {relative:.3g}",
    )
    _check_others(problem, certificate.dual + rounding)
    status = solution.status
    tol = getattr(solver, "tol", 1e-6)
    require(
        not status.converged or certificate.relative_gap <= tol,
        f"it says that it converged, with a relative gap of {certificate.relative_gap:.3g} > "
        f"tol={tol:g}",
    )
    require(
        isinstance(status.message, str) and len(status.message.split()) >= 3,
        f"status.message must be a sentence, got {status.message!r}",
    )


def _check_feasible(problem: Problem, dual: FloatArray) -> None:
    finite = np.isfinite(problem.loss.conjugate(dual))
    require(
        finite.all(),
        f"the dual point is not feasible: the conjugate is infinite in {np.sum(~finite)} row(s)",
    )
    if problem.fit_intercept:
        left = np.abs(problem.weight @ dual)
        size = problem.weight @ np.abs(dual)
        require(
            np.all(left <= _ROUNDING * size),
            "the dual point is not feasible: with an intercept, its weighted sum must be zero "
            f"for each output, and is {left!r}",
        )


def _check_others(problem: Problem, lowest: float) -> None:
    """No model goes below the dual objective."""
    random = np.random.default_rng(0)
    zero = problem.design.zero()
    for size in (0.0, 0.1, 1.0):
        weights = zero + size * random.standard_normal(zero.shape)
        value = problem.primal(weights, problem.minimizing_offset(weights))
        require(
            value >= lowest - 2.0 * _ROUNDING * abs(value),
            f"a model with objective {value:.12g} beats the dual objective of the certificate",
        )
