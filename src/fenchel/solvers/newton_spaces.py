"""Representations of functions in the Newton solver: feature weights or kernel coefficients.

A function h is a pair of arrays whose cross products are inner products: weights twice over,
or coefficients u (n, p) and the predictions (n, p) that go with them. With
coefficients, a step of few kinks costs a few columns of the Gram matrix instead of a product
with all features: the better choice where the rank is close to the number of rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fenchel._typing import FloatArray
from fenchel.certificate import Certified
from fenchel.problem import Problem
from fenchel.solvers.kept_factor import KeptFactor
from fenchel.solvers.newton_system import Kinks, solve_in_kernel, solve_in_kinks, solve_in_weights
from fenchel.solvers.output_inverses import ByOutputs


class Function(NamedTuple):
    """Coefficients and their image: <a, b> = sum(a.coef * b.image)."""

    coef: FloatArray
    image: FloatArray

    def dot(self, other: Function) -> float:
        """Inner product in the space of the kernel."""
        return float(np.vdot(self.coef, other.image))

    def plus(self, size: float, other: Function) -> Function:
        """Return ``self + size * other``."""
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


class FeatureSpace:
    """Functions as weights; the Newton system is in the smaller of weights and kinks."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def start(self, certified: Certified, scale: float) -> Function:
        """Return ``scale`` times the function of a certified point."""
        return self.function(scale * certified.weights)

    def function(self, weights: FloatArray) -> Function:
        """Return the function with these weights."""
        return Function(weights, weights)

    def weights(self, function: Function) -> FloatArray:
        """Weights of a function, in the form of the design."""
        return function.coef

    def residual(self, function: Function, offset: FloatArray) -> FloatArray | None:
        """Return None: residuals are computed block by block."""
        return None

    def gradient(self, function: Function, dual: FloatArray, pull: FloatArray | None) -> Function:
        """Weights minus those of the function of the dual point."""
        linked = self.problem.link(dual) if pull is None else self.problem.design.weights_of(pull)
        return self.function(function.coef - linked)

    def move(
        self, kinks: Kinks, gradient: Function, offset_gradient: FloatArray, ridge: FloatArray
    ) -> Move:
        """Solve the Newton system."""
        size = gradient.coef.size + (len(ridge) if self.problem.fit_intercept else 0)
        arguments = self.problem, kinks, gradient.coef, offset_gradient, ridge
        found = None if kinks.size < size else solve_in_weights(*arguments)
        weights, offset = solve_in_kinks(*arguments) if found is None else found
        return Move(self.function(weights), offset, None)


class KernelSpace:
    """Functions as coefficients of the rows; the Newton system is in the kinks."""

    def __init__(self, problem: Problem, kept: KeptFactor | None = None) -> None:
        self.problem, self.design, self.kept = problem, problem.design, kept
        self._by_outputs = ByOutputs(problem)
        shape = (problem.n_rows, problem.n_outputs)
        self._pushed = np.zeros(shape)
        self._image = np.zeros(shape)

    def start(self, certified: Certified, scale: float) -> Function:
        """Return ``scale`` times the function of a certified point."""
        coef = self.problem.weight[:, None] * certified.dual
        if certified.source is certified.dual:
            image = self.design.values(certified.weights)
        else:  # the weights are those of another function, such as zero after a failed repair
            image = self.design.image(coef)
        self._pushed, self._image = coef, image
        return Function(scale * coef, scale * image)

    def weights(self, function: Function) -> FloatArray:
        """Weights of a function, in the form of the design."""
        self.design.remember(function.coef, function.image)
        return self.design.link(function.coef)

    def residual(self, function: Function, offset: FloatArray) -> FloatArray | None:
        """Targets minus predictions."""
        return self.problem.targets - function.image - offset

    def gradient(self, function: Function, dual: FloatArray, pull: FloatArray | None) -> Function:
        """Coefficients u - c β and their image, from the rows where c β has changed."""
        coef = self.problem.weight[:, None] * dual
        change = coef - self._pushed
        rows = np.flatnonzero(change.any(axis=1))
        if 2 * len(rows) < len(coef):
            self._image = self._image + self.design.image(change[rows], rows)
        else:
            self._image = self.design.image(coef)
        self._pushed = coef
        return Function(function.coef - coef, function.image - self._image)

    def move(
        self, kinks: Kinks, gradient: Function, offset_gradient: FloatArray, ridge: FloatArray
    ) -> Move:
        """Solve the Newton system."""
        rows, push, offset = solve_in_kernel(
            self.problem,
            kinks,
            gradient.image,
            offset_gradient,
            ridge,
            self.kept,
            self._by_outputs,
        )
        coef, image = -gradient.coef, -gradient.image
        coef[rows] -= push
        image -= self.design.image(push, rows)
        return Move(Function(coef, image), offset, image + offset)


Space = FeatureSpace | KernelSpace
"""Where a Newton solver keeps its function."""


def choose_space(problem: Problem) -> Space:
    """Choose kernel coefficients if there are nearly as many features as dual variables."""
    return KernelSpace(problem) if problem.design.by_rows else FeatureSpace(problem)
