"""Generalized linear models and Nadaraya–Watson, to compare with non-negative models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from scipy.stats import norm
from sklearn.base import BaseEstimator

from experiments.comparisons.positive import (
    CONSTANT_STRENGTH,
    FLOOR,
    MAX_STD,
    Basis,
    NormalMixin,
    QuantileMixin,
)

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]
STEPS = 500
LARGEST = 30.0
"""Of the exponents of exp: line searches try wild points."""


def from_starts(objective: Objective, size: int, starts: int) -> tuple[np.ndarray, np.ndarray]:
    """Best of several runs of L-BFGS, the first from zero, and all their values in order."""
    random = np.random.default_rng(0)
    found = []
    for k in range(starts):
        start = np.zeros(size) if k == 0 else random.normal(size=size)
        found.append(
            minimize(
                objective,
                start,
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": STEPS, "ftol": 1e-12},
            )
        )
    values = np.array([run.fun for run in found])
    return np.asarray(found[int(values.argmin())].x), np.sort(values)


@dataclass(eq=False, repr=False)
class ExponentialDensity(BaseEstimator):
    r"""The density exp(wᵀφ(x) - log Z) on a box, by penalized maximum likelihood (GLM).

    Convex, but Z has no closed form: it is a Monte Carlo mean over ``draws`` points of the box,
    and the integral is one only up to its error. The points are uniform, or with ``near=True``
    half of them normal, with the mean of the rows and 1.5 times their deviations.
    """

    length_scale: float = 1.0
    alpha: float = 1e-3
    box: tuple[float, float] = (-4.0, 4.0)
    draws: int = 1000
    near: bool = False
    n_centres: int | None = None

    def fit(self, X: np.ndarray, y: object = None) -> Self:
        self.basis_ = Basis.of(X, self.length_scale, True, self.n_centres)
        self.centre_, self.width_ = X.mean(axis=0), 1.5 * X.std(axis=0)
        points, logs = self.points(self.draws, 0)
        drawn = self.basis_.values(points)
        middle = self.basis_.values(X).mean(axis=0)

        def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
            heights = drawn @ w - logs
            normalizer = logsumexp(heights)
            value = normalizer - middle @ w + 0.5 * self.alpha * w @ w
            share = np.exp(heights - normalizer)
            return float(value), share @ drawn - middle + self.alpha * w

        self.weights_, _ = from_starts(objective, len(middle), 1)
        self.normalizer_ = float(logsumexp(drawn @ self.weights_ - logs))
        return self

    def points(self, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Points of the box, and the logarithms of their densities times their number."""
        random, (low, high), d = np.random.default_rng(seed), self.box, len(self.centre_)
        points = random.uniform(low, high, (number, d))
        logs = np.full(number, -d * np.log(high - low))
        if self.near:
            half = self.centre_ + self.width_ * random.standard_normal((number // 2, d))
            points[: number // 2] = half
            normal = norm.logpdf(points, self.centre_, self.width_).sum(axis=1)
            logs = np.logaddexp(logs, normal) - np.log(2.0)
            inside = np.all((low <= points) & (points <= high), axis=1)
            points, logs = points[inside], logs[inside]
        return points, logs + np.log(number)

    def integral(self, number: int = 100_000) -> float:
        """An estimate of ∫ f from points of its own."""
        points, logs = self.points(number, 1)
        exponents = self.basis_.values(points) @ self.weights_ - self.normalizer_ - logs
        return float(np.exp(logsumexp(exponents)))

    def density(self, X: np.ndarray) -> np.ndarray:
        inside = np.all((self.box[0] <= X) & (self.box[1] >= X), axis=1)
        return inside * np.exp(self.basis_.values(X) @ self.weights_ - self.normalizer_)

    def score(self, X: np.ndarray, y: object = None) -> float:
        return float(np.log(np.maximum(self.density(X), FLOOR)).mean())


@dataclass(eq=False, repr=False)
class ExponentialPrecision(NormalMixin, BaseEstimator):
    r"""Mean and variance with the precision θ = max_std⁻² + exp(uᵀφ(x) + b) (GLM).

    Not convex: the best of several starts. ``values_`` are the objectives at their ends.
    """

    length_scale: float = 1.0
    alpha: float = 1e-3
    starts: int = 3
    precision_length_scale: float | None = None
    precision_strength: float = 1.0

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        self.shift_, self.scale_ = float(y.mean()), float(y.std())
        y = (y - self.shift_) / self.scale_
        self.basis_ = Basis.of(X, self.length_scale, True)
        self.own_ = Basis.of(X, self.precision_length_scale or self.length_scale, True)
        values, own, n = self.basis_.values(X), self.own_.values(X), len(X)
        r, strength = values.shape[1], self.alpha * self.precision_strength

        def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
            w, u, b = point[:r], point[r:-1], point[-1]
            exponential = np.exp(np.minimum(own @ u + b, LARGEST))
            theta, eta = exponential + MAX_STD**-2, values @ w
            value = 0.5 * (theta * y**2 - 2.0 * eta * y + eta**2 / theta - np.log(theta))
            slope_eta = (eta / theta - y) / n
            slope = 0.5 * (y**2 - (eta / theta) ** 2 - 1.0 / theta) * exponential / n
            penalty = 0.5 * self.alpha * w @ w + 0.5 * strength * u @ u
            gradient = [slope_eta @ values + self.alpha * w, slope @ own + strength * u]
            return float(value.mean() + penalty), np.concatenate([*gradient, [slope.sum()]])

        found, self.values_ = from_starts(objective, r + own.shape[1] + 1, self.starts)
        self.mean_weights_, self.weights_, self.offset_ = found[:r], found[r:-1], found[-1]
        return self

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = self.basis_.values(X)
        exponent = np.minimum(self.own_.values(X) @ self.weights_ + self.offset_, LARGEST)
        theta = np.exp(exponent) + MAX_STD**-2
        mean = values @ self.mean_weights_ / theta
        return self.shift_ + self.scale_ * mean, self.scale_ / np.sqrt(theta)


@dataclass(eq=False, repr=False)
class ExponentialGaps(QuantileMixin, BaseEstimator):
    r"""Three quantiles: a linear median, and distances exp(uᵀφ(x) + c) (GLM).

    Neither convex nor differentiable: the pinball loss is rounded over ``rounding`` times the
    mean distance from the median, and the best of several starts is kept.
    """

    levels: tuple[float, ...] = (0.25, 0.5, 0.75)
    length_scale: float = 1.0
    alpha: float = 1e-3
    rounding: float = 0.02
    starts: int = 3
    gap_length_scale: float | None = None
    gap_strength: float = 1.0

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        self.shift_ = float(np.median(y))
        self.scale_ = float(np.abs(y - self.shift_).mean())
        y = (y - self.shift_) / self.scale_
        self.basis_ = Basis.of(X, self.length_scale, True)
        self.own_ = Basis.of(X, self.gap_length_scale or self.length_scale, True)
        values, own, n = self.basis_.values(X), self.own_.values(X), len(X)
        r, width, strength = values.shape[1], self.rounding, self.alpha * self.gap_strength

        def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
            w, u, b, c = point[:r], point[r:-3].reshape(2, -1), point[-3], point[-2:]
            gaps = np.exp(np.minimum(own @ u.T + c, LARGEST))
            median = values @ w + b
            curves = np.stack([median - gaps[:, 0], median, median + gaps[:, 1]], axis=1)
            residual = y[:, None] - curves
            # τ ξ + softplus(-ξ)
            value = residual * self.levels + width * np.logaddexp(0.0, -residual / width)
            slope = (expit(-residual / width) - self.levels) / n  # of the curves
            low, high = -slope[:, 0] * gaps[:, 0], slope[:, 2] * gaps[:, 1]
            common = slope.sum(axis=1)
            penalty = 0.5 * (
                self.alpha * w @ w + strength * np.sum(u**2) + CONSTANT_STRENGTH * c @ c
            )
            gradient = [
                common @ values + self.alpha * w,
                low @ own + strength * u[0],
                high @ own + strength * u[1],
                [common.sum()],
                np.array([low.sum(), high.sum()]) + CONSTANT_STRENGTH * c,
            ]
            return float(value.sum() / n + penalty), np.concatenate(gradient)

        size = r + 2 * own.shape[1] + 3
        found, self.values_ = from_starts(objective, size, self.starts)
        self.weights_, self.offset_ = found[:r], found[-3]
        self.gap_weights_, self.gap_offsets_ = found[r:-3].reshape(2, -1), found[-2:]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        values = self.basis_.values(X)
        median = values @ self.weights_ + self.offset_
        exponents = self.own_.values(X) @ self.gap_weights_.T + self.gap_offsets_
        gaps = np.exp(np.minimum(exponents, LARGEST))
        curves = np.stack([median - gaps[:, 0], median, median + gaps[:, 1]], axis=1)
        return self.shift_ + self.scale_ * curves


def kernel_shares(X: np.ndarray, rows: np.ndarray, bandwidth: float) -> np.ndarray:
    """Weights of training rows at X, (len(X), n), of sum one also far away from all of them."""
    squares = ((X[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)
    exponents = -0.5 * squares / bandwidth**2
    return np.exp(exponents - logsumexp(exponents, axis=1, keepdims=True))


@dataclass(eq=False, repr=False)
class KernelMoments(NormalMixin, BaseEstimator):
    """Nadaraya–Watson for the mean, and for the squares of leave-one-out residuals."""

    bandwidth: float = 0.1
    variance_bandwidth: float = 0.1

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        self.rows_, self.targets_ = X, y
        shares = kernel_shares(X, X, self.bandwidth)
        own = np.minimum(np.diag(shares), 1.0 - 1e-12)
        self.squares_ = ((y - shares @ y) / (1.0 - own)) ** 2
        self.least_ = 1e-4 * float(y.var())
        return self

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        variance = kernel_shares(X, self.rows_, self.variance_bandwidth) @ self.squares_
        mean = kernel_shares(X, self.rows_, self.bandwidth) @ self.targets_
        return mean, np.sqrt(np.maximum(variance, self.least_))


@dataclass(eq=False, repr=False)
class KernelQuantiles(QuantileMixin, BaseEstimator):
    """Quantiles of the targets, weighted by the kernel: Nadaraya–Watson of their distribution."""

    levels: tuple[float, ...] = (0.25, 0.5, 0.75)
    bandwidth: float = 0.1

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        order = np.argsort(y)
        self.rows_, self.targets_ = X[order], y[order]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        below = np.cumsum(kernel_shares(X, self.rows_, self.bandwidth), axis=1)
        places = np.stack([(below < level - 1e-12).sum(axis=1) for level in self.levels], axis=1)
        return self.targets_[np.minimum(places, len(self.targets_) - 1)]
