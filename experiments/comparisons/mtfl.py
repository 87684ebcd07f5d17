r"""Quantile regression with multi-task feature learning.

Every row has the features ψ(x) = (k(x, x_1), ..., k(x, x_n)), and with ℓ the pinball loss of all
levels one minimizes, jointly convex in W, b and D,

.. math:: \tfrac12 \operatorname{tr}(W^\top D^{-1} W) + C \sum_i \ell(y_i - W^\top \psi(x_i) - b),
          \qquad D \succeq 0, \quad \operatorname{tr} D = 1.

The least value over D is half the square of the trace norm of W, and so is that of
tr(W Ω⁻¹ Wᵀ)/2 over matrices Ω of the levels, one row and column for each, of trace one. With a
dual vector β_i of each row and A = Σ_i ψ(x_i) β_iᵀ, the problem over C is the saddle point

.. math:: \min_{\Omega \succeq 0,\, \operatorname{tr} \Omega = 1} \;
          \max_{\tau - 1 \le \beta_i \le \tau,\, \sum_i \beta_i = 0} \;
          \langle\beta, y\rangle - \tfrac{C}{2} \operatorname{tr}(A \Omega A^\top),

of which W = C A Ω is the primal solution. A primal-dual interior-point method with Mehrotra's
second-order correction finds it. Every β on the way bounds the least objective from below by
C <β, y> - C² ‖A‖²/2, the norm being the spectral one, whose square is conjugate to that of the
trace norm; the gap to it says how far from the optimum W is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fenchel.kernels import DistanceQuantile, Gaussian, resolve
from fenchel.losses import Pinball

_NEGLIGIBLE = 1e-8  # singular values of the features, relative to the largest
_SHORT_OF = 0.95  # the share of the way to the boundary that a step goes
_BLOCKED = 1e-3  # steps so short are those of rounding
_LEAST_CENTERING = 1e-6


@dataclass(frozen=True)
class Learned:
    """The best W that was found, and bounds of the least objective."""

    weights: np.ndarray
    offset: np.ndarray
    objective: float
    """½ ‖W‖² in the trace norm, plus C times the losses."""
    lower: float
    """What no W is below."""
    steps: int

    @property
    def relative_gap(self) -> float:
        """How far above the optimum the objective is at most, as a share of it."""
        return (self.objective - self.lower) / self.objective if self.objective > 0.0 else 0.0

    def predict(self, features: np.ndarray) -> np.ndarray:
        """All levels, (n, p)."""
        return features @ self.weights + self.offset


class _Point(NamedTuple):
    """All variables, or a direction in which they move."""

    weights: np.ndarray
    """W over √C, (r, p)."""
    offset: np.ndarray
    dual: np.ndarray
    """β, (n, p)."""
    metric: np.ndarray
    """Ω, (p, p)."""
    above: np.ndarray
    """Multipliers of β <= τ: the positive parts of residuals, at the solution."""
    below: np.ndarray
    """Multipliers of τ - 1 <= β: the negative parts."""
    slack: np.ndarray
    """The multiplier Z of Ω ⪰ 0."""
    level: float
    """That of tr Ω = 1."""

    def moved(self, direction: _Point, share: float) -> _Point:
        """The point that lies in a direction."""
        return _Point(*(a + share * b for a, b in zip(self, direction, strict=True)))

    def room(self, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far β is from its bounds."""
        return levels - self.dual, self.dual - (levels - 1.0)

    def complementarity(self, levels: np.ndarray) -> float:
        """Mean product of what is to be zero or has a multiplier that is to be."""
        high, low = self.room(levels)
        products = np.vdot(high, self.above) + np.vdot(low, self.below)
        both = products + np.trace(self.metric @ self.slack)
        return float(both) / (2 * self.dual.size + len(levels))

    def longest(self, direction: _Point, levels: np.ndarray) -> float:
        """The share of a direction that is feasible, at most one."""
        high, low = self.room(levels)
        return min(
            1.0,
            _ratio(high, -direction.dual),
            _ratio(low, direction.dual),
            _ratio(self.above, direction.above),
            _ratio(self.below, direction.below),
            _definite(self.metric, direction.metric),
            _definite(self.slack, direction.slack),
        )


def _ratio(values: np.ndarray, moves: np.ndarray) -> float:
    """How many of the moves until a positive value is zero."""
    falling = moves < 0.0
    return float((-values[falling] / moves[falling]).min()) if falling.any() else np.inf


def _definite(matrix: np.ndarray, move: np.ndarray) -> float:
    """How many of the moves until a positive definite matrix is singular."""
    root = np.linalg.cholesky(matrix)
    relative = np.linalg.solve(root, np.linalg.solve(root, move).T)
    least = float(np.linalg.eigvalsh(_symmetrized(relative))[0])
    return -1.0 / least if least < 0.0 else np.inf


def _symmetrized(matrix: np.ndarray) -> np.ndarray:
    return 0.5 * (matrix + matrix.T)


def _symmetric_basis(order: int) -> np.ndarray:
    """An orthonormal basis of the symmetric matrices, (order (order + 1) / 2, order, order)."""
    rows, columns = np.tril_indices(order)
    basis = np.zeros((len(rows), order, order))
    place = np.arange(len(rows))
    basis[place, rows, columns] = np.where(rows == columns, 1.0, np.sqrt(0.5))
    basis[place, columns, rows] = basis[place, rows, columns]
    return basis


class _System:
    """Newton's equations at a point.

    The move of Ω is that which makes Ω Z = μ I to first order, symmetrized, as in the method of
    Helmberg et al., Kojima et al. and Monteiro. What remains is, with the features F = √C Ψ and
    D from the bounds, (D + F N Fᵀ) Δβ = r under few linear constraints, where N adds a matrix of
    rank p (p + 1)/2 to I ⊗ Ω. Only matrices of order r p are factored. Moves of W and A are read
    off that factor, as products of Fᵀ with Δβ would have lost all digits where D is small.
    """

    def __init__(
        self, features: np.ndarray, targets: np.ndarray, levels: np.ndarray, point: _Point
    ):
        self.features, self.levels, self.point = features, levels, point
        n, self.r, self.p = *features.shape, len(levels)
        self.high, self.low = point.room(levels)
        self.image = features.T @ point.dual  # A
        residuals = targets[:, None] - features @ point.weights - point.offset
        self.missed = residuals - point.above + point.below
        self.missed_weights = self.image @ point.metric - point.weights
        stationary = point.level * np.eye(self.p) - 0.5 * self.image.T @ self.image
        self.missed_slack = stationary - point.slack
        self.inverse_slack = _symmetrized(np.linalg.inv(point.slack))
        self.inverse_box = 1.0 / (point.above / self.high + point.below / self.low)
        self._factor()
        self.of_one = self.shrunk(np.eye(self.p))
        constraints = np.zeros((n, self.p, self.p + 1))
        constraints[:, np.arange(self.p), np.arange(self.p)] = 1.0
        constraints[:, :, -1] = -features @ (self.image @ self.of_one)
        self.constraints = constraints
        self.moves = self._solve(constraints)
        self.small = np.einsum("njk,njl->kl", constraints, self.moves[0])
        self.small[-1, -1] -= np.trace(self.of_one)

    def shrunk(self, matrix: np.ndarray) -> np.ndarray:
        """What a move of Z takes from Ω."""
        return _symmetrized(self.point.metric @ matrix @ self.inverse_slack)

    def _factor(self) -> None:
        r, p, features = self.r, self.p, self.features
        basis = _symmetric_basis(p)
        shrunk = np.array([self.shrunk(matrix) for matrix in basis])
        shrunk = basis.reshape(len(basis), -1) @ shrunk.reshape(len(basis), -1).T
        images = np.einsum("rj,kjl->klr", self.image, basis).reshape(len(basis), p * r).T
        self.inverse = _symmetrized(np.linalg.inv(self.point.metric))
        self.turned = (self.inverse @ images.reshape(p, -1)).reshape(p * r, -1)
        inner = np.linalg.inv(_symmetrized(shrunk)) + images.T @ self.turned
        self.core = _symmetrized(np.linalg.inv(inner))
        matrix = -(self.turned @ self.core) @ self.turned.T
        blocks = matrix.reshape(p, r, p, r)
        place = np.arange(r)
        for j in range(p):
            blocks[:, place, j, place] += self.inverse[:, j, None]
            blocks[j, :, j] += features.T @ (features * self.inverse_box[:, j, None])
        self.factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

    def _unmapped(self, moved: np.ndarray) -> np.ndarray:
        """N⁻¹ times a vector."""
        kept = (self.inverse @ moved.reshape(self.p, self.r)).ravel()
        return kept - self.turned @ (self.core @ (self.turned.T @ moved))

    def _solve(self, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Moves of β (n, p, k) for right-hand sides, and N Fᵀ times these, (p r, k)."""
        scaled = self.inverse_box[..., None] * right
        mapped = self.features.T @ scaled.transpose(1, 0, 2)
        found = cho_solve(self.factor, mapped.reshape(self.p * self.r, -1), check_finite=False)
        back = found.reshape(self.p, self.r, -1)
        fitted = (self.features @ back).transpose(1, 0, 2)
        return scaled - self.inverse_box[..., None] * fitted, found

    def direction(self, target: float, before: _Point | None = None) -> _Point:
        """Towards the point where all products are ``target``, in second order by a direction."""
        point = self.point
        above = target / self.high - point.above
        below = target / self.low - point.below
        metric = target * self.inverse_slack - point.metric
        if before is not None:
            above = above + before.dual * before.above / self.high
            below = below - before.dual * before.below / self.low
            metric = metric - _symmetrized(before.metric @ before.slack @ self.inverse_slack)
        metric = metric - self.shrunk(self.missed_slack)
        features, image = self.features, self.image
        right = self.missed - above + below
        right = right - features @ (image @ metric + self.missed_weights)
        moved, mapped = self._solve(right[..., None])
        wanted = np.einsum("njk,nj->k", self.constraints, moved[..., 0])
        wanted[-1] -= np.trace(metric) + np.trace(point.metric) - 1.0
        multipliers = np.linalg.solve(self.small, wanted)
        offset, level = multipliers[:-1], float(multipliers[-1])
        dual = moved[..., 0] - self.moves[0] @ multipliers
        mapped = mapped[:, 0] - self.moves[1] @ multipliers
        turned = self._unmapped(mapped).reshape(self.p, self.r).T  # the move of A
        curved = _symmetrized(turned.T @ image)
        metric = metric - level * self.of_one
        weights = mapped.reshape(self.p, self.r).T + image @ metric + self.missed_weights
        return _Point(
            weights,
            offset,
            dual,
            metric + self.shrunk(curved),
            above + point.above / self.high * dual,
            below - point.below / self.low * dual,
            self.missed_slack + level * np.eye(self.p) - curved,
            level,
        )


def _start(targets: np.ndarray, levels: np.ndarray, r: int) -> _Point:
    """Quantiles of the targets, β = 0 and Ω = I/p, and multipliers of their size."""
    p = len(levels)
    offset = np.quantile(targets, levels)
    residuals = targets[:, None] - offset
    unit = np.abs(residuals).mean()
    above, below = np.maximum(residuals, 0.0) + unit, np.maximum(-residuals, 0.0) + unit
    mean = float((levels * above + (1.0 - levels) * below).mean())
    dual = np.zeros(residuals.shape)
    slack = p * mean * np.eye(p)
    return _Point(np.zeros((r, p)), offset, dual, np.eye(p) / p, above, below, slack, p * mean)


def _next(system: _System, point: _Point, levels: np.ndarray) -> tuple[_Point, float]:
    """The point after a step, and the share of the direction that was feasible."""
    mean = point.complementarity(levels)
    straight = system.direction(0.0)
    reached = point.moved(straight, point.longest(straight, levels)).complementarity(levels)
    centering = max((reached / mean) ** 3, _LEAST_CENTERING)
    direction = system.direction(centering * mean, straight)
    share = min(1.0, _SHORT_OF * point.longest(direction, levels))
    return point.moved(direction, share), share


def learn(
    features: np.ndarray,
    targets: np.ndarray,
    levels: tuple[float, ...],
    strength: float,
    *,
    tol: float = 1e-3,
    max_iter: int = 60,
) -> Learned:
    """Solve to a relative gap of ``tol``, or as far as ``max_iter`` steps or rounding lead.

    ``strength`` is C.
    """
    scaled, tau = np.sqrt(strength) * features, np.asarray(levels)
    loss = Pinball(levels)
    point = best = _start(targets, tau, features.shape[1])
    least, lower, steps, share = np.inf, 0.0, 0, 1.0
    while True:
        lost = loss.value(targets[:, None] - scaled @ point.weights - point.offset).sum()
        primal = 0.5 * float(np.linalg.norm(point.weights, "nuc")) ** 2 + float(lost)
        if primal < least:
            least, best = primal, point
        norm = float(np.linalg.norm(scaled.T @ point.dual, 2))
        lower = max(lower, float(targets @ point.dual.sum(axis=1)) - 0.5 * norm**2)
        if least - lower <= tol * least or steps == max_iter or share < _BLOCKED:
            break
        try:
            point, share = _next(_System(scaled, targets, tau, point), point, tau)
        except LinAlgError:  # rounding: matrices that are definite were not found to be
            break
        steps += 1
    weights = np.sqrt(strength) * best.weights
    return Learned(weights, best.offset, strength * least, strength * lower, steps)


def row_features(rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The map ψ for these training rows, in an orthonormal basis of the span of its values.

    The regularizer does not depend on the basis, and an optimal W has no part outside the span.
    """
    kernel = resolve(Gaussian(DistanceQuantile(0.7)), rows)
    values, vectors = np.linalg.eigh(kernel(rows))
    basis = vectors[:, values > _NEGLIGIBLE * values[-1]]
    return lambda X: kernel(X, rows) @ basis
