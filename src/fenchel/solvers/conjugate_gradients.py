"""Conjugate gradients for the squared loss, without an (n, n) array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh

from fenchel._threads import threads_that_pay
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import COUNT, CheckedWhenMade, declared
from fenchel.certificate import Callback, Certified
from fenchel.design import KernelValues, RowBlocks
from fenchel.design.tiled import solve_rows
from fenchel.problem import Problem
from fenchel.solvers.base import (
    Solution,
    WarmStart,
    needs_scalar_kernel,
    needs_squares,
    solution_of,
    threads_for,
)
from fenchel.solvers.loop import Iterate, Loop
from fenchel.solvers.newton import first_of_few

_NOTHING, _FAR_BELOW = 1e-40, 1e-200
_JITTER = 1e-10  # of the largest diagonal entry, so that kernels of landmarks have a factor
_MOST_BETWEEN = 20  # steps before K u is computed anew
_SOLVED = 1e-30  # of its first rᵀP⁻¹r: beyond that a column has rounding errors alone
_TOGETHER = 64  # landmarks
_PARTS = 16  # sums over landmarks that are held at once, however many threads there are


@dataclass(frozen=True)
class ConjugateGradients(CheckedWhenMade):
    r"""Conjugate gradients for kernel ridge regression, with a Nyström preconditioner.

    .. math:: (K + D)\, u = y - b, \qquad D = \mathrm{diag}(1 / (s c)), \qquad
              P = K_{nm} K_{mm}^{-1} K_{mn} + D

    for each eigenvalue s of the coupling, with :math:`\sum_i u_i = 0` for an intercept. Each step
    needs one product with K for all outputs. The products are accumulated, so the certificate of
    each step needs no further one. After 20 steps the product is recomputed to remove rounding
    errors.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Maximum number of steps.
    rank : int
        Number of landmarks m. They are drawn with a fixed seed, with probabilities proportional
        to the weighted residual diagonal of the landmarks before. (n, m) numbers are stored.

    References
    ----------
    Rudi, Carratino, Rosasco (2017), FALKON: an optimal large scale kernel method. Díaz, Epperly,
    Frangella, Tropp, Webber (2023), Robust, randomized preconditioning for kernel ridge
    regression.

    Examples
    --------
    >>> from fenchel import KernelRidge
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.solvers import ConjugateGradients
    >>> X, y = load_engel(return_X_y=True)
    >>> model = KernelRidge(learn=False, features="kernel_rows", solver=ConjugateGradients())
    >>> model.fit(X, y).status_.converged
    True
    """

    constraints = declared(rank=COUNT)

    takes_gram: ClassVar[bool] = True
    tol: float = 1e-6
    max_iter: int = 1000
    rank: int = 1000

    def requires(self, problem: Problem) -> str | None:
        """Return None for the squared loss and a design of kernel values."""
        missing = needs_scalar_kernel(problem)
        if missing is None and problem.design.kernel_values is None:
            missing = "needs kernel values: set features='kernel_rows'"
        return missing or needs_squares(problem)

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the best certified point; see :class:`fenchel.solvers.base.Solver`."""
        loop: Loop[Certified] = Loop(self.tol, callback)
        with threads_for(problem):
            first_of_few(problem, loop)
            if not (loop.stopped or loop.reached):
                loop.run(self._iterates(problem, loop, warm_start))
            return solution_of(loop, loop.status("increase max_iter or alpha"))

    def _iterates(
        self, problem: Problem, loop: Loop[Certified], warm_start: WarmStart | None
    ) -> Iterator[Iterate[Certified]]:
        near = None if warm_start is None else warm_start.dual
        system = loop.in_time(lambda: _System(problem, self.rank, near))
        if system is None:
            return
        yield Iterate(0, system.certified())
        step = system.start()
        for done in range(1, self.max_iter + 1):
            found = loop.in_time(partial(system.advance, step, done % _MOST_BETWEEN == 0))
            if found is None:
                return
            step = found
            yield Iterate(done, system.certified())


def shift_of(weight: FloatArray, value: float, largest: float) -> FloatArray:
    """Return the shift d = 1/(s c) of the diagonal of K, (n,), for weights c and one value s.

    Residuals are d (K + d)⁻¹ (y - b). If s c times the largest diagonal entry is less than 1e-40,
    they are y - b for any such shift, and d is limited so that it does not overflow.
    """
    sizes, least = value * weight, _NOTHING / (largest or 1.0)
    if not sizes.max() > least:
        sizes = weight / weight.max() * least
    return 1.0 / np.maximum(sizes, sizes.max() * _FAR_BELOW)


class _Step(NamedTuple):
    """A direction, and rᵀP⁻¹r of the residuals that it begins with, of each column."""

    direction: FloatArray
    sizes: FloatArray


class _System:
    """Columns (K + D_j) u_j = y_j, and behind these the same for constants."""

    def __init__(self, problem: Problem, rank: int, near: FloatArray | None = None) -> None:
        self.problem, self.kernel = problem, problem.design.kernel_values
        n, p = problem.n_rows, problem.n_outputs
        values, self.basis = problem.design.output_spectrum
        right = np.broadcast_to(problem.targets, (n, p)) @ self.basis
        copies = 2 if problem.fit_intercept else 1
        self.right = np.hstack([right, np.ones((n, p))])[:, : copies * p]
        largest = float(self.kernel.diagonal.max())
        shift = [shift_of(problem.weight, float(s), largest) for s in values]
        self.shift = np.column_stack(shift * copies)
        self.values = np.tile(values, copies)
        self.solution, self.image = np.zeros(self.right.shape), np.zeros(self.right.shape)
        self.preconditioned = _Preconditioner(self.kernel, self.shift, self.values, rank)
        self.enough = _SOLVED * _inner(self.right, self.preconditioned(self.right))
        if near is not None:  # of the right-hand sides y - b: those of y are near it, of small b
            self.solution[:, :p] = (near @ self.basis) / self.shift[:, :p]
            self.renew()

    @property
    def residual(self) -> FloatArray:
        """What is left of each column."""
        return self.right - self.image - self.shift * self.solution

    def start(self) -> _Step:
        """The direction of the present residual."""
        residual = self.residual
        direction = self.preconditioned(residual)
        return _Step(direction, self._sizes(residual, direction))

    def _sizes(self, residual: FloatArray, turned: FloatArray) -> FloatArray:
        """Their rᵀP⁻¹r, zero of columns that are solved."""
        sizes = _inner(residual, turned)
        return np.where(sizes > self.enough, sizes, 0.0)

    def renew(self) -> None:
        """Compute K u of the present point."""
        self.image = self.kernel.times(self.solution)

    def advance(self, step: _Step, anew: bool = False) -> _Step:
        """Take a step along the direction, and return the next one, that of K u ``anew``."""
        direction, sizes = step
        image = self.kernel.times(direction)
        length = _ratio(sizes, _inner(direction, image + self.shift * direction))
        self.solution += length * direction
        self.image += length * image
        if anew:
            self.renew()
            return self.start()
        residual = self.residual
        turned = self.preconditioned(residual)
        after = self._sizes(residual, turned)
        return _Step(turned + _ratio(after, sizes) * direction, after)

    def _offset(self) -> FloatArray:
        """Offset of each output in the basis, for which coefficients add up to zero."""
        p = self.problem.n_outputs
        if not self.problem.fit_intercept:
            return np.zeros(p)
        sums = self.solution.sum(axis=0)
        return _ratio(sums[:p], sums[p:])

    def certified(self) -> Certified:
        """Certificate of the present point."""
        problem, p = self.problem, self.problem.n_outputs
        point, values = self.shift[:, :p] * self.solution[:, :p], self.image[:, :p]
        if problem.fit_intercept:
            offset = self._offset()
            point = point - offset * self.shift[:, p:] * self.solution[:, p:]
            values = values - offset * self.image[:, p:]
        dual = point @ self.basis.T
        problem.design.remember(problem.link(dual), values @ self.basis.T)
        return problem.certify(dual)


class _Preconditioner:
    """P⁻¹ of residuals, by the formula of Woodbury.

    Landmarks are drawn by what those before leave out of the rows, times the rows' weights.
    """

    def __init__(
        self, kernel: KernelValues, shift: FloatArray, values: FloatArray, rank: int
    ) -> None:
        self.kernel, self.shift = kernel, shift
        most = int(np.argmax(values))
        self.features = np.empty((kernel.size, min(rank, kernel.size)))
        root = 1.0 / np.sqrt(shift[:, most])
        self._choose(root**2 / root.max() ** 2)

        def square(rows: slice) -> tuple[FloatArray]:
            scaled = root[rows, None] * self.features[rows]
            return (scaled.T @ scaled,)

        (inner,) = RowBlocks(*self.features.shape, _PARTS).sum(square)
        with threads_that_pay(0):
            sizes, self.vectors = eigh(inner, overwrite_a=True, check_finite=False)
        share = values / (values[most] or 1.0)
        self.shrink = 1.0 / (1.0 + np.maximum(sizes, 0.0)[:, None] * share)

    def _choose(self, weight: FloatArray) -> None:
        """Cholesky factorization with random pivots, some at a time, until nothing is left."""
        left, random = self.kernel.diagonal.copy(), np.random.default_rng(0)
        least = _JITTER * float(left.max())
        done, width = 0, self.features.shape[1]
        while done < width and left.max() > least:
            odds = left * weight
            drawn = random.choice(len(left), min(_TOGETHER, width - done), p=odds / odds.sum())
            pivots = np.unique(drawn)
            self._add(pivots, done, left, least)
            done += len(pivots)
        self.features = self.features[:, :done]

    def _add(self, pivots: IntArray, done: int, left: FloatArray, least: float) -> None:
        """Features of some more landmarks, behind those that are there."""
        features, kernel = self.features, self.kernel
        known, columns = features[pivots, :done], slice(done, done + len(pivots))
        among = np.array(kernel.block(pivots, pivots), np.float64) - known @ known.T
        np.einsum("ii->i", among)[:] += least
        factor = cholesky(among, lower=True, check_finite=False)

        def task(rows: slice) -> None:
            values = kernel.block(np.arange(rows.start, rows.stop), pivots)
            more = solve_rows(factor, values - features[rows, :done] @ known.T)
            features[rows, columns] = more
            left[rows] = np.maximum(left[rows] - np.einsum("ij,ij->i", more, more), 0.0)

        RowBlocks(kernel.size, len(pivots)).map(task)

    def __call__(self, residual: FloatArray) -> FloatArray:
        divided = residual / self.shift
        with threads_that_pay(0):  # and so the same sums for any number of threads
            pulled = self.vectors.T @ (self.features.T @ divided)
            found = self.features @ (self.vectors @ (self.shrink * pulled))
        return divided - found / self.shift


def _inner(one: FloatArray, other: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->j", one, other)


def _ratio(one: FloatArray, other: FloatArray) -> FloatArray:
    """One over the other, zero where that is zero: columns that are solved."""
    return np.divide(one, other, out=np.zeros_like(one), where=other != 0.0)
