r"""Quantile regression with multi-task feature learning.

Every row has the features ψ(x) = (k(x, x_1), ..., k(x, x_n)), and with ℓ the pinball loss of all
levels one minimizes, jointly convex in W, b and D,

.. math:: \tfrac12 \operatorname{tr}(W^\top D^{-1} W) + C \sum_i \ell(y_i - W^\top \psi(x_i) - b),
          \qquad D \succeq 0, \quad \operatorname{tr} D = 1.

Given D this is quantile regression with the kernel <ψ, D ψ'> and independent levels; given W the
best D is (WWᵀ)^{1/2} over its trace, which leaves half the square of the sum of the singular
values of W. As D would be singular from then on, and directions once left out would stay out,
WWᵀ + εI takes the place of WWᵀ (Argyriou, Evgeniou, Pontil 2008), and ε decreases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fenchel.design import Plain
from fenchel.kernels import DistanceQuantile, Gaussian, resolve
from fenchel.losses import Pinball
from fenchel.problem import Problem
from fenchel.solvers import Newton, WarmStart

_NEGLIGIBLE = 1e-8  # singular values of the features, relative to the largest


class Metric(NamedTuple):
    """D = ``rest`` I + U diag(``values`` - ``rest``) Uᵀ with orthonormal ``directions`` U."""

    directions: np.ndarray
    values: np.ndarray
    rest: float

    @classmethod
    def flat(cls, size: int) -> Metric:
        """The identity over its trace."""
        return cls(np.zeros((size, 0)), np.zeros(0), 1.0 / size)

    @classmethod
    def of(cls, weights: np.ndarray, epsilon: float) -> Metric:
        """(WWᵀ + εI)^{1/2} over its trace."""
        directions, singular, _ = np.linalg.svd(weights, full_matrices=False)
        values, rest = np.sqrt(singular**2 + epsilon), np.sqrt(epsilon)
        trace = values.sum() + (len(weights) - len(values)) * rest
        return cls(directions, values / trace, float(rest / trace))

    def times_root(self, rows: np.ndarray) -> np.ndarray:
        """Rows times D^{1/2}."""
        change = np.sqrt(self.values) - np.sqrt(self.rest)
        return (rows @ self.directions * change) @ self.directions.T + np.sqrt(self.rest) * rows

    def inverse_trace(self) -> float:
        """tr D⁻¹."""
        others = len(self.directions) - len(self.values)
        return float((1.0 / self.values).sum() + (others / self.rest if others else 0.0))

    def matrix(self) -> np.ndarray:
        """D itself."""
        root = self.times_root(np.eye(len(self.directions)))
        return root @ root


@dataclass(frozen=True)
class Learned:
    """Where the alternation ended."""

    weights: np.ndarray
    offset: np.ndarray
    metric: Metric
    """The one that W was learned with."""
    objectives: list[float]
    """Of the perturbed problem, after each step in (W, b)."""
    start: WarmStart
    """For a similar strength."""

    def predict(self, features: np.ndarray) -> np.ndarray:
        """All levels, (n, p)."""
        return features @ self.weights + self.offset


def learn(
    features: np.ndarray,
    targets: np.ndarray,
    levels: tuple[float, ...],
    strength: float,
    start: WarmStart | None = None,
    *,
    tol: float = 1e-6,
    stop: float = 1e-3,
    max_iter: int = 100,
    perturbation: float = 1e-2,
    shrink: float = 0.8,
) -> Learned:
    """Alternate between (W, b) and D, from D = I/n on, until a round gains a share < ``stop``.

    ``strength`` is C, ``tol`` the tolerance of the steps in (W, b), ``start`` the dual vectors of
    a similar problem. With the sum of the singular values of W as unit, sqrt(ε) times the number
    of features falls from 1 to ``perturbation`` by the factor ``shrink`` from round to round:
    with a small ε from the start, directions that W did not have at first come in very slowly.
    """
    n, size = features.shape
    p = len(levels)
    metric, epsilon, share = Metric.flat(size), np.inf, 1.0
    objectives: list[float] = []
    for _ in range(max_iter):
        problem = Problem(
            loss=Pinball(levels),
            design=Plain(metric.times_root(features), np.eye(p)),
            targets=targets[:, None],
            sample_weight=np.ones(n),
            alpha=1.0 / (strength * n),
        )
        solution = Newton(tol=tol).solve(problem, start)
        start = WarmStart(solution.dual, solution.offset, problem.alpha)
        weights = metric.times_root(solution.weights.T).T
        unit = float(np.linalg.norm(weights, "nuc")) / size
        if not objectives:
            epsilon = unit**2
        primal = solution.certificate.primal / problem.alpha
        objectives.append(primal + 0.5 * epsilon * metric.inverse_trace())
        last = share <= perturbation and objectives[-2] - objectives[-1] <= stop * objectives[-1]
        if last or epsilon == 0.0:
            break
        share = max(share * shrink, perturbation)
        epsilon = min(epsilon, (share * unit) ** 2)
        metric = Metric.of(weights, epsilon)
    return Learned(weights, solution.offset, metric, objectives, start)


def row_features(rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The map ψ for these training rows, in an orthonormal basis of the span of its values.

    The regularizer does not depend on the basis, and an optimal W has no part outside the span.
    """
    kernel = resolve(Gaussian(DistanceQuantile(0.7)), rows)
    values, vectors = np.linalg.eigh(kernel(rows))
    basis = vectors[:, values > _NEGLIGIBLE * values[-1]]
    return lambda X: kernel(X, rows) @ basis
