"""Where the Newton solver keeps its function: weights of features, or kernel coefficients.

A function h is a pair of arrays whose cross products are inner products: weights V (r, q)
twice over, or coefficients u (n, p) and the predictions K u B (n, p) that go with them. With
coefficients, a step of few kinks costs a few columns of the Gram matrix instead of a product
with all features: the better choice where the rank is close to the number of rows.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from fenchel._typing import FloatArray
from fenchel.operator_problem import OperatorProblem
from fenchel.problem import Certified, GramProblem, Problem
from fenchel.solvers.newton_system import (
    Kinks,
    solve_in_kernel,
    solve_in_kinks,
    solve_in_operator_kinks,
    solve_in_weights,
)

_FULL_RANK = 0.75


class Function(NamedTuple):
    """Coefficients and their image: <a, b> = sum(a.coef * b.image)."""

    coef: FloatArray
    image: FloatArray

    def dot(self, other: Function) -> float:
        """Inner product in the space of the kernel."""
        return float(np.vdot(self.coef, other.image))

    def plus(self, size: float, other: Function) -> Function:
        """Return self + size * other."""
        coef = self.coef + size * other.coef
        if self.image is self.coef:
            return Function(coef, coef)
        return Function(coef, self.image + size * other.image)


class Move(NamedTuple):
    """A Newton direction."""

    function: Function
    offset: FloatArray
    prediction: FloatArray | None
    """Change of the predictions (n, p), where it comes without a product of its own."""


class Space(Protocol):
    """What the Newton solver asks of the representation of functions."""

    def start(self, certified: Certified, scale: float) -> Function:
        """Return ``scale`` times the function of a certified point."""
        ...

    def weights(self, function: Function) -> FloatArray:
        """Weights V (r, q) of a function."""
        ...

    def residual(self, function: Function, offset: FloatArray) -> FloatArray | None:
        """Residuals (n, p), or None if they are best computed block by block."""
        ...

    def gradient(self, function: Function, dual: FloatArray, pull: FloatArray | None) -> Function:
        """Return the function minus the one that a dual point stands for."""
        ...

    def move(
        self, kinks: Kinks, gradient: Function, offset_gradient: FloatArray, ridge: FloatArray
    ) -> Move:
        """Solve the Newton system."""
        ...


def choose_space(problem: Problem) -> Space:
    """Kernel coefficients where the features are as many as the dual variables, or nearly."""
    if isinstance(problem, GramProblem):
        return KernelSpace(problem)
    if isinstance(problem, OperatorProblem):
        return OperatorSpace(problem)
    n, rank = problem.features.shape
    full = rank * problem.coupling.shape[1] >= _FULL_RANK * n * problem.n_outputs
    return KernelSpace(problem) if full and problem.gram is not None else FeatureSpace(problem)


class FeatureSpace:
    """Functions by their weights; a Newton system in the smaller of weights and kinks."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def start(self, certified: Certified, scale: float) -> Function:
        """Return ``scale`` times the function of a certified point."""
        return self.function(scale * certified.weights)

    def function(self, weights: FloatArray) -> Function:
        """Return the function with these weights."""
        return Function(weights, weights)

    def weights(self, function: Function) -> FloatArray:
        """Weights V (r, q) of a function."""
        return function.coef

    def residual(self, function: Function, offset: FloatArray) -> FloatArray | None:
        """Best computed block by block."""
        return None

    def gradient(self, function: Function, dual: FloatArray, pull: FloatArray | None) -> Function:
        """V - Φᵀ (c β) S."""
        pull = self.problem.pull(dual) if pull is None else pull
        return self.function(function.coef - pull @ self.problem.coupling)

    def move(
        self, kinks: Kinks, gradient: Function, offset_gradient: FloatArray, ridge: FloatArray
    ) -> Move:
        """Solve the Newton system."""
        size = gradient.coef.size + (len(ridge) if self.problem.fit_intercept else 0)
        solve = solve_in_kinks if kinks.size < size else solve_in_weights
        weights, offset = solve(self.problem, kinks, gradient.coef, offset_gradient, ridge)
        return Move(self.function(weights), offset, None)


class OperatorSpace(FeatureSpace):
    """The same for an operator-valued kernel: weights are vectors (r,)."""

    problem: OperatorProblem

    def gradient(self, function: Function, dual: FloatArray, pull: FloatArray | None) -> Function:
        """w - Σ c_i Φ_iᵀ β_i."""
        pull = self.problem.pull(dual) if pull is None else pull
        return self.function(function.coef - pull)

    def move(
        self, kinks: Kinks, gradient: Function, offset_gradient: FloatArray, ridge: FloatArray
    ) -> Move:
        """Solve the Newton system."""
        size = gradient.coef.size + (len(ridge) if self.problem.fit_intercept else 0)
        solve = solve_in_operator_kinks if kinks.size < size else solve_in_weights
        weights, offset = solve(self.problem, kinks, gradient.coef, offset_gradient, ridge)
        return Move(self.function(weights), offset, None)


class KernelSpace:
    """Functions by their coefficients on the rows; a Newton system in the kinks."""

    def __init__(self, problem: Problem) -> None:
        gram = problem.gram
        assert gram is not None
        self.problem, self.gram = problem, gram
        self.output = problem.coupling @ problem.coupling.T
        shape = (len(gram), problem.n_outputs)
        self._pushed = np.zeros(shape)
        self._product = np.zeros(shape)

    def start(self, certified: Certified, scale: float) -> Function:
        """Return ``scale`` times the function of a certified point."""
        if isinstance(self.problem, GramProblem):
            coef, image = certified.weights, self.problem.image(certified.weights)
        else:
            coef = self.problem.weight[:, None] * certified.dual
            image = self.gram @ coef @ self.output
        if self.problem.n_outputs == 1 and self.output[0, 0] > 0.0:
            self._pushed, self._product = coef, image / self.output
        return Function(scale * coef, scale * image)

    def weights(self, function: Function) -> FloatArray:
        """Weights of a function, as the problem has them."""
        if isinstance(self.problem, GramProblem):
            self.problem.remember(function.coef, function.image)
            return function.coef
        return self.problem.features.T @ function.coef @ self.problem.coupling

    def residual(self, function: Function, offset: FloatArray) -> FloatArray | None:
        """Targets minus predictions."""
        return self.problem.targets - function.image - offset

    def gradient(self, function: Function, dual: FloatArray, pull: FloatArray | None) -> Function:
        """Coefficients u - c β and their image, from the rows where c β has changed."""
        coef = self.problem.weight[:, None] * dual
        change = coef - self._pushed
        rows = np.flatnonzero(change.any(axis=1))
        if 2 * len(rows) < len(coef):
            self._product = self._product + self.gram[rows].T @ change[rows]
        else:
            self._product = self.gram @ coef
        self._pushed = coef
        return Function(function.coef - coef, function.image - self._product @ self.output)

    def move(
        self, kinks: Kinks, gradient: Function, offset_gradient: FloatArray, ridge: FloatArray
    ) -> Move:
        """Solve the Newton system."""
        rows, push, offset = solve_in_kernel(
            self.problem, self.gram, kinks, gradient.image, offset_gradient, ridge
        )
        coef, image = -gradient.coef, -gradient.image
        coef[rows] -= push
        image -= self.gram[rows].T @ (push @ self.output)
        return Move(Function(coef, image), offset, image + offset)
