"""Closed-form solution for the squared loss, by one linear system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import LinAlgError, eigh, svd

from fenchel._clock import OutOfTime, within
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import BOOLEAN, CheckedWhenMade, declared
from fenchel.certificate import Callback, Certified
from fenchel.design import Factored, RowBlocks
from fenchel.design.tiled import multiplied, weighted_square
from fenchel.problem import Problem
from fenchel.solvers.base import (
    Solution,
    WarmStart,
    needs_plain_features,
    needs_scalar_kernel,
    needs_squares,
    settled,
    threads_for,
)
from fenchel.solvers.conjugate_gradients import ConjugateGradients, shift_of
from fenchel.solvers.loop import Loop, time_left

_ROUNDED = 1e-14  # share of the largest by which eigenvalues differ that are one
_LEAST = 0.1  # seconds that it may take whatever the limit
MOST_FACTORS = 16
"""Values up to which a Cholesky factor for each costs less than one eigendecomposition."""


@dataclass(frozen=True)
class ClosedForm(CheckedWhenMade):
    r"""Closed-form kernel ridge regression, with sample weights and intercept.

    .. math:: \beta = C^{-1/2} (I + s\, C^{1/2} K C^{1/2})^{-1} C^{1/2} (y - b)

    for each eigenvalue s of the coupling, with b such that :math:`\sum_i c_i \beta_i = 0`. The
    system is solved in the smaller of the spaces of features and rows. Outputs are rotated to the
    eigenvectors of the coupling, so that no Kronecker product is formed.

    Parameters
    ----------
    tol : float
        Relative gap below which the solution counts as converged.
    singular_values : bool
        Whether to use a singular value decomposition of the features if the normal equations
        lose too many digits. Only for plain features and independent outputs.
    of_weights : bool
        Whether the model has the weights of the linear system. For small alpha they are more
        precise than the weights of the dual point, Φᵀβ over alpha. If False, they are used only
        if the gap is above ``tol``.

    Examples
    --------
    >>> from fenchel import KernelRidge
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.solvers import ClosedForm
    >>> X, y = load_engel(return_X_y=True)
    >>> model = KernelRidge(learn=False, solver=ClosedForm(tol=1e-9)).fit(X, y)
    >>> model.status_.converged
    True
    """

    constraints = declared(singular_values=BOOLEAN, of_weights=BOOLEAN)

    takes_gram: ClassVar[bool] = True
    tol: float = 1e-6
    singular_values: bool = False
    of_weights: bool = False

    def requires(self, problem: Problem) -> str | None:
        """Return None for the squared loss, else a sentence that says what is missing."""
        missing = needs_scalar_kernel(problem)
        if missing is None and self.singular_values:
            missing = needs_plain_features(problem) or _needs_independence(problem)
        design = problem.design
        if missing is None and design.is_gram and design.gram is None:
            missing = "needs kernel values in memory; solver='conjugate_gradients' needs none"
        return missing or needs_squares(problem)

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the certified solution; ``warm_start`` is ignored.

        If the system would take longer than the time limit, conjugate gradients are used, as
        far as they get.
        """
        by_products, left = ConjugateGradients(self.tol), time_left(callback)
        limited = np.isfinite(left) and by_products.requires(problem) is None
        try:
            with threads_for(problem), within(max(left, _LEAST) if limited else np.inf):
                return self._solve(problem, callback)
        except OutOfTime:
            problem.design.restore()
            return by_products.solve(problem, None, callback)
        finally:
            if not problem.design.spent:
                problem.design.restore()

    def _solve(self, problem: Problem, callback: Callback | None) -> Solution:
        loop: Loop[Certified] = Loop(self.tol, callback)
        how = "solved in closed form; rounding errors dominate; increase alpha"
        certified = None
        try:
            certified = self._certified(problem)
        except LinAlgError:  # not positive definite after rounding
            if not self.singular_values:
                raise ValueError(
                    f"alpha={problem.alpha:g} is too small beside the values of the kernel, up to "
                    f"{problem.design.diagonal().max():.3g}, whose rounding errors it cannot "
                    "outweigh: increase alpha, or rescale the columns of X"
                ) from None
        if not self.singular_values and certified is not None:
            return settled(loop, certified, 1, how)
        if certified is None or certified.certificate.relative_gap > self.tol:
            other = _by_singular_values(problem)
            certified = problem.best_of(other, certified)
            how = how.replace("in closed form", "by singular values")
        return settled(loop, certified, 1, how)

    def _certified(self, problem: Problem) -> Certified:
        residual, weights = _solution(problem)
        certified = problem.certify(residual)
        poor = self.of_weights or certified.certificate.relative_gap > self.tol
        if weights is not None and poor:
            # at tiny alpha the residual has lost the digits that the weights still have
            direct = problem.certify(residual, weights=weights)
            if self.of_weights or direct.certificate.gap < certified.certificate.gap:
                certified = direct
        return certified


def _solution(problem: Problem) -> tuple[FloatArray, FloatArray | None]:
    """Residuals (n, p) of the solution and, where they come along, its weights (r, q)."""
    design = problem.design
    values, basis = design.output_spectrum
    targets = np.broadcast_to(problem.targets, (problem.n_rows, problem.n_outputs))
    columns = targets @ basis
    if problem.fit_intercept:
        columns, values = np.hstack([columns, np.ones(columns.shape)]), np.tile(values, 2)
    solved, pulled = _solver_of(problem, values).solve(columns)
    residual = solved[:, : problem.n_outputs]
    if problem.fit_intercept:
        # the same for a constant: the offset makes Σ c r vanish
        constant = solved[:, problem.n_outputs :]
        offset = problem.share @ residual / (problem.share @ constant)
        residual = residual - constant * offset
        if pulled is not None:
            pulled = pulled[:, : problem.n_outputs] - pulled[:, problem.n_outputs :] * offset
    weights = None
    if pulled is not None and design.coupling is not None:
        weights = pulled @ basis.T @ design.coupling
    return residual @ basis.T, weights


def _solver_of(problem: Problem, values: FloatArray) -> _InRows | _InSpectrum | _InFeatures:
    """What solves for columns with these values s, of which a few cost less than a spectrum."""
    design, groups = problem.design, groups_of(values)
    if design.features is not None and problem.n_rows > design.width:
        return _InFeatures(problem, design.features, values)
    once = design.spent and len(groups) <= MOST_FACTORS
    if len(groups) == 1 or once:
        return _InRows(problem, groups)
    return _InSpectrum(problem, values)


class _InRows:
    """(I + s K c)⁻¹ y for columns y with a value s each, from a factor for each value."""

    def __init__(self, problem: Problem, groups: list[tuple[float, IntArray]]) -> None:
        self.problem, self.groups = problem, groups

    def solve(self, y: FloatArray) -> tuple[FloatArray, None]:
        design, solved = self.problem.design, np.empty_like(y)
        largest = float(design.diagonal().max())
        for value, columns in self.groups:
            shift = shift_of(self.problem.weight, value, largest)
            solved[:, columns] = shift[:, None] * design.factored(shift).solve(y[:, columns])
        if len(self.groups) > 1:  # else the factor is of use to leave-one-out residuals
            design.restore()
        return solved, None


class _InSpectrum:
    """The same for several values s, from the spectrum of the kernel, kept for all strengths."""

    def __init__(self, problem: Problem, values: FloatArray) -> None:
        spectrum, self.vectors = problem.design.spectrum(problem.sample_weight)
        self.shrink = 1.0 / (1.0 + np.outer(spectrum / problem.alpha, values))
        self.root = np.sqrt(problem.weight)[:, None]

    def solve(self, y: FloatArray) -> tuple[FloatArray, None]:
        pulled = (self.vectors.T @ (self.root * y)) * self.shrink
        return self.vectors @ pulled / self.root, None


class _InFeatures:
    """The same from the smaller matrix Φᵀ c Φ, with Φᵀ c of the result."""

    def __init__(self, problem: Problem, features: FloatArray, values: FloatArray) -> None:
        self.features, self.values, self.weight = features, values, problem.weight[:, None]
        self.square = weighted_square(features, problem.weight)

    def solve(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        features, scaled = self.features, self.weight * y
        blocks = RowBlocks(*features.shape)
        pulled = blocks.sum(lambda rows: (np.dot(features[rows].T, scaled[rows]),))[0]
        groups = groups_of(self.values)
        if len(groups) <= MOST_FACTORS:
            for value, columns in groups:
                factored = Factored(value * self.square).factor(np.ones(len(pulled)))
                pulled[:, columns] = factored.solve(pulled[:, columns])
        else:
            spectrum, vectors = eigh(self.square)
            shrink = 1.0 + np.outer(np.maximum(spectrum, 0.0), self.values)
            pulled = vectors @ ((vectors.T @ pulled) / shrink)
        return y - multiplied(features, pulled * self.values), pulled


def _needs_independence(problem: Problem) -> str | None:
    """Say what is missing where outputs are coupled."""
    coupling = problem.design.coupling
    assert coupling is not None
    if np.array_equal(coupling, np.eye(len(coupling))):
        return None
    return "needs independent outputs; singular_values=False takes any coupling"


def _by_singular_values(problem: Problem) -> Certified:
    """The solution from the singular values of the rows, centred where there is an intercept."""
    features = problem.design.features
    assert features is not None
    targets = np.broadcast_to(problem.targets, (problem.n_rows, problem.n_outputs))
    root = np.sqrt(problem.weight)[:, None]
    if problem.fit_intercept:
        share = problem.weight / problem.weight.sum()
        features, targets = features - share @ features, targets - share @ targets
    left, values, right = svd(root * features, full_matrices=False, check_finite=False)
    factors = (values / (1.0 + values**2))[:, None]
    weights = right.T @ (factors * (left.T @ (root * targets)))
    return problem.certify(targets - features @ weights, weights=weights)


def groups_of(values: FloatArray) -> list[tuple[float, IntArray]]:
    """Return the distinct values, up to rounding, each with its indices.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.solvers.closed_form import groups_of
    >>> [(value, places.tolist()) for value, places in groups_of(np.array([2.0, 1.0, 2.0]))]
    [(1.0, [1]), (2.0, [0, 2])]
    """
    order = np.argsort(values, kind="stable")
    ends = np.flatnonzero(np.diff(values[order]) > _ROUNDED * values.max()) + 1
    return [(float(values[places[-1]]), places) for places in np.split(order, ends)]
