r"""Quantile regression with multi-task feature learning.

Every row has the features ψ(x) = (k(x, x_1), ..., k(x, x_n)), and with ℓ the pinball loss of all
levels one minimizes, jointly convex in W, b and D,

.. math:: \tfrac12 \operatorname{tr}(W^\top D^{-1} W) + C \sum_i \ell(y_i - W^\top \psi(x_i) - b),
          \qquad D \succeq 0, \quad \operatorname{tr} D = 1.

The least value over D is half the square of the trace norm of W, and so is that of
tr(W Ω⁻¹ Wᵀ)/2 over matrices Ω of the levels, one row and column for each, of trace one. Given Ω
this is joint quantile regression with the kernel <ψ, ψ'> Ω. Its value is convex in Ω, and a dual
point β, with A = C Σ_i ψ(x_i) β_iᵀ, bounds it below for every Ω,

.. math:: h(\Omega) \ge C \langle\beta, y\rangle - \tfrac12 \operatorname{tr}(A \Omega A^\top),

so that few such bounds are a model of h: the level method of Lemaréchal, Nemirovskii, Nesterov
(1995) takes the nearest Ω at which the model is low enough. As the conjugate of half the squared
trace norm is half the squared spectral norm, C <β, y> - ‖A‖²/2 is a bound for the problem itself,
and the gap to it says how far from the optimum W is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import clarabel
import numpy as np
from scipy import sparse

from fenchel.design import Plain
from fenchel.kernels import DistanceQuantile, Gaussian, resolve
from fenchel.losses import Pinball
from fenchel.problem import Problem
from fenchel.solvers import Newton, WarmStart

_NEGLIGIBLE = 1e-8  # singular values of the features, relative to the largest
_LEVEL = 0.7  # of the way from the lower to the upper bound; 0.3 and 0.5 took more rounds
_FLOOR = 1e-5  # least eigenvalue of Ω: its inverse must exist
_INNER = 0.1  # of the tolerance: that of the regressions
_COARSEST = 1e-3  # tolerance of the regressions
_SQRT2 = np.sqrt(2.0)


@dataclass(frozen=True)
class Learned:
    """The best W that was found, and bounds of the least objective."""

    weights: np.ndarray
    offset: np.ndarray
    metric: np.ndarray
    """Ω, (p, p), of the last round."""
    objective: float
    """½ ‖W‖² in the trace norm, plus C times the losses."""
    lower: float
    """What no W is below."""
    rounds: int
    start: WarmStart
    """For a similar strength."""

    @property
    def relative_gap(self) -> float:
        """How far above the optimum the objective is at most, as a share of it."""
        return (self.objective - self.lower) / self.objective if self.objective > 0.0 else 0.0

    def predict(self, features: np.ndarray) -> np.ndarray:
        """All levels, (n, p)."""
        return features @ self.weights + self.offset


@dataclass
class _Model:
    """The largest of the bounds that are known of h, as a function of Ω."""

    order: int
    earned: list[float] = field(default_factory=list)
    """C <β, y> of each bound."""
    images: list[np.ndarray] = field(default_factory=list)
    """A of each bound."""
    squares: list[np.ndarray] = field(default_factory=list)
    """AᵀA of each bound, its upper triangle."""

    def add(self, earned: float, image: np.ndarray) -> None:
        """Take in what a dual point says."""
        self.earned.append(earned)
        self.images.append(image)
        self.squares.append(_triangle(image.T @ image))

    def lower_bound(self) -> float:
        """What the best average of the dual points says of the problem itself."""
        size, many = len(self.squares[0]), len(self.earned)
        unit = np.abs(self.earned).max() or 1.0
        heights = -np.ones((many, 1))
        slopes = np.hstack([-0.5 * np.array(self.squares) / unit, heights])
        rows = [np.append(_triangle(np.eye(self.order)), 0.0), slopes, -np.eye(size, size + 1)]
        limits = np.concatenate([[1.0], -np.array(self.earned) / unit, np.zeros(size)])
        found = self._solve(np.zeros((size + 1, size + 1)), np.eye(size + 1)[-1], rows, limits)
        shares = np.maximum(np.nan_to_num(found.z)[1 : 1 + many], 0.0)
        if not shares.any():
            shares[-1] = 1.0
        shares /= shares.sum()
        image = np.tensordot(shares, self.images, 1)
        return float(shares @ self.earned) - 0.5 * float(np.linalg.norm(image, 2)) ** 2

    def nearest(self, metric: np.ndarray, level: float) -> np.ndarray:
        """The Ω that is nearest to ``metric`` among those where no bound is above ``level``."""
        size = len(self.squares[0])
        unit = np.abs(self.earned).max() or 1.0
        rows = [_triangle(np.eye(self.order)), -0.5 * np.array(self.squares) / unit, -np.eye(size)]
        limits = np.concatenate([[1.0], (level - np.array(self.earned)) / unit, np.zeros(size)])
        found = self._solve(np.eye(size), -_triangle(metric), rows, limits)
        return _symmetric(np.array(found.x), self.order)

    def _solve(
        self, quadratic: np.ndarray, linear: np.ndarray, rows: list[np.ndarray], limits: np.ndarray
    ) -> clarabel.DefaultSolution:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        cones = [
            clarabel.ZeroConeT(1),
            clarabel.NonnegativeConeT(len(self.earned)),
            clarabel.PSDTriangleConeT(self.order),
        ]
        return clarabel.DefaultSolver(
            sparse.csc_matrix(quadratic),
            linear,
            sparse.csc_matrix(np.vstack(rows)),
            limits,
            cones,
            settings,
        ).solve()


def _triangle(matrix: np.ndarray) -> np.ndarray:
    """The upper triangle by columns, scaled so that products are those of the matrices."""
    columns, rows = np.tril_indices(len(matrix))
    return np.where(rows == columns, 1.0, _SQRT2) * matrix[rows, columns]


def _symmetric(triangle: np.ndarray, order: int) -> np.ndarray:
    """The matrix of a triangle."""
    columns, rows = np.tril_indices(order)
    matrix = np.zeros((order, order))
    matrix[rows, columns] = matrix[columns, rows] = np.where(
        rows == columns, triangle, triangle / _SQRT2
    )
    return matrix


def _root(metric: np.ndarray) -> np.ndarray:
    """A root S of a positive definite Ω = S Sᵀ of trace one that is near to a metric."""
    values, vectors = np.linalg.eigh(metric)
    values = np.maximum(values, _FLOOR)
    return vectors * np.sqrt(values / values.sum())


def learn(
    features: np.ndarray,
    targets: np.ndarray,
    levels: tuple[float, ...],
    strength: float,
    start: Learned | None = None,
    *,
    tol: float = 1e-3,
    max_iter: int = 100,
) -> Learned:
    """Solve to a relative gap of ``tol``, or as far as ``max_iter`` regressions lead.

    ``strength`` is C, ``start`` what was learned for a similar one.
    """
    n, order = len(features), len(levels)
    loss, model = Pinball(levels), _Model(order)
    root = _root(np.eye(order) / order if start is None else start.metric)
    warm = None if start is None else start.start
    best, lower, rounds = (np.inf, np.zeros((features.shape[1], order)), np.zeros(order)), 0.0, 0
    while True:
        rounds += 1
        problem = Problem(
            loss=loss,
            design=Plain(features, root),
            targets=targets[:, None],
            sample_weight=np.ones(n),
            alpha=1.0 / (strength * n),
        )
        solution = Newton(tol=min(_INNER * tol, _COARSEST)).solve(problem, warm)
        warm = WarmStart(solution.dual, solution.offset, problem.alpha)
        weights = solution.weights.reshape(-1, order) @ root.T
        lost = loss.value(targets[:, None] - features @ weights - solution.offset).sum()
        objective = 0.5 * float(np.linalg.norm(weights, "nuc")) ** 2 + strength * float(lost)
        if objective < best[0]:
            best = objective, weights, solution.offset
        earned = strength * float((solution.dual * targets[:, None]).sum())
        model.add(earned, strength * features.T @ solution.dual)
        lower = max(lower, model.lower_bound())
        if best[0] - lower <= tol * best[0] or rounds == max_iter:
            return Learned(best[1], best[2], root @ root.T, best[0], lower, rounds, warm)
        level = lower + _LEVEL * (best[0] - lower)
        root = _root(model.nearest(root @ root.T, level))


def row_features(rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The map ψ for these training rows, in an orthonormal basis of the span of its values.

    The regularizer does not depend on the basis, and an optimal W has no part outside the span.
    """
    kernel = resolve(Gaussian(DistanceQuantile(0.7)), rows)
    values, vectors = np.linalg.eigh(kernel(rows))
    basis = vectors[:, values > _NEGLIGIBLE * values[-1]]
    return lambda X: kernel(X, rows) @ basis
