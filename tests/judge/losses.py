"""Losses from their formulas: value, conjugate, nearest point of its domain, steepness.

Arrays are rows of residuals or of dual vectors, (n, p), in the arithmetic of the judge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judge.findings import Wide, wide

_BISECTIONS = 90  # of an interval of 2e4: to the last bit


@dataclass(frozen=True)
class Box:
    """Output by output, slopes from ``low`` to ``high``, curvature 1/``below``, 1/``above``.

    The conjugate is below/2 β² for negative and above/2 β² for positive β, between low and high,
    plus ``epsilon`` times the length of β.
    """

    low: np.ndarray
    high: np.ndarray
    below: np.ndarray
    above: np.ndarray
    epsilon: float = 0.0

    def slope(self, residual: np.ndarray) -> np.ndarray:
        """A subgradient: the β that attains ⟨β, ξ⟩ - ℓ*(β)."""
        inner = residual
        if self.epsilon > 0:
            size = np.sqrt((residual**2).sum(axis=1))
            if residual.shape[1] == 1:
                length = np.maximum(size - self.epsilon, 0)[:, None]
                inner = np.sign(residual) * length
            else:
                return self._slope_outside_ball(residual, size)
        return self._clipped(inner, 0)

    def _clipped(self, residual: np.ndarray, extra: object) -> np.ndarray:
        """Of each output, argmax of β ξ - (q + extra)/2 β² over the interval."""
        curvature = np.where(residual < 0, self.below, self.above) + extra
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            beta = np.where(residual == 0, 0, residual / curvature)
        return np.clip(beta, self.low, self.high)

    def _slope_outside_ball(self, residual: np.ndarray, size: np.ndarray) -> np.ndarray:
        """With v the part of the residual inside of the ball, v = β / ν and its length ε."""
        least, most = np.full(len(size), -1e4, Wide), np.full(len(size), 1e4, Wide)
        for _ in range(_BISECTIONS):
            middle = (least + most) / 2
            extra = np.exp(-middle)[:, None]  # 1 / ν
            beta = self._clipped(residual, extra)
            outside = np.sqrt(((beta * extra) ** 2).sum(axis=1)) > self.epsilon
            least, most = np.where(outside, middle, least), np.where(outside, most, middle)
        beta = self._clipped(residual, np.exp(-most)[:, None])
        return np.where((size > self.epsilon)[:, None], beta, 0)

    def value(self, residual: np.ndarray) -> np.ndarray:
        """ℓ(ξ), as the largest of ⟨β, ξ⟩ - ℓ*(β)."""
        beta = self.slope(residual)
        return (beta * residual).sum(axis=1) - self.conjugate(beta)

    def conjugate(self, beta: np.ndarray) -> np.ndarray:
        """ℓ*(β) of β in the domain."""
        curvature = np.where(beta < 0, self.below, self.above)
        squares = (curvature * beta**2).sum(axis=1) / 2
        return squares + self.epsilon * np.sqrt((beta**2).sum(axis=1))

    def nearest(self, beta: np.ndarray) -> np.ndarray:
        """The nearest point of the domain."""
        return np.clip(beta, self.low, self.high)

    def steepness(self, residual: np.ndarray, move: np.ndarray) -> np.ndarray:
        """The most that the loss may change if ξ moves by this much, (n,)."""
        ends = [np.abs(self._clipped(residual + sign * move, 0)) for sign in (-1, 0, 1)]
        return (np.max(ends, axis=0) * move).sum(axis=1)


@dataclass(frozen=True)
class Length:
    """A function of the length: the conjugate is curvature/2 ‖β‖² + ε ‖β‖ up to ``most``."""

    curvature: float
    most: float
    epsilon: float = 0.0

    def slope(self, residual: np.ndarray) -> np.ndarray:
        """A subgradient."""
        size = np.sqrt((residual**2).sum(axis=1))
        return residual * (self._steep(size) / np.where(size > 0, size, 1))[:, None]

    def _steep(self, size: np.ndarray) -> np.ndarray:
        left = np.maximum(size - self.epsilon, 0)
        if self.curvature > 0:
            return np.minimum(left / wide(self.curvature), self.most)
        return np.where(left > 0, wide(self.most), 0)

    def value(self, residual: np.ndarray) -> np.ndarray:
        """ℓ(ξ)."""
        size = np.sqrt((residual**2).sum(axis=1))
        steep = self._steep(size)
        return steep * np.maximum(size - self.epsilon, 0) - self.curvature * steep**2 / 2

    def conjugate(self, beta: np.ndarray) -> np.ndarray:
        """ℓ*(β) of β in the domain."""
        size = np.sqrt((beta**2).sum(axis=1))
        return self.curvature * size**2 / 2 + self.epsilon * size

    def nearest(self, beta: np.ndarray) -> np.ndarray:
        """The nearest point of the domain."""
        size = np.sqrt((beta**2).sum(axis=1))
        shrink = np.where(size > self.most, self.most / np.where(size > 0, size, 1), wide(1))
        return beta * shrink[:, None]

    def steepness(self, residual: np.ndarray, move: np.ndarray) -> np.ndarray:
        """The most that the loss may change if ξ moves by this much, (n,)."""
        by = np.sqrt((move**2).sum(axis=1))
        return self._steep(np.sqrt((residual**2).sum(axis=1)) + by) * by


@dataclass(frozen=True)
class DeadZone:
    """½ Σ max(|ξ_j| - ε_j, 0)²; the conjugate is ½‖β‖² + Σ ε_j |β_j|."""

    epsilon: np.ndarray

    def slope(self, residual: np.ndarray) -> np.ndarray:
        """The gradient."""
        return np.sign(residual) * np.maximum(np.abs(residual) - self.epsilon, 0)

    def value(self, residual: np.ndarray) -> np.ndarray:
        """ℓ(ξ)."""
        return (self.slope(residual) ** 2).sum(axis=1) / 2

    def conjugate(self, beta: np.ndarray) -> np.ndarray:
        """ℓ*(β)."""
        return (beta**2 / 2 + self.epsilon * np.abs(beta)).sum(axis=1)

    def nearest(self, beta: np.ndarray) -> np.ndarray:
        """Every point is in the domain."""
        return beta

    def steepness(self, residual: np.ndarray, move: np.ndarray) -> np.ndarray:
        """The most that the loss may change if ξ moves by this much, (n,)."""
        return (np.abs(self.slope(np.abs(residual) + move)) * move).sum(axis=1)


@dataclass(frozen=True)
class Ordered:
    """Sum of pinball losses of levels in any order, infinite where curves cross.

    Its conjugate is zero where the sums of β over the lowest levels are at most, and those over
    the highest at least, what the pinball losses allow.
    """

    levels: np.ndarray
    rounding: float

    def _sorted(self, array: np.ndarray) -> np.ndarray:
        return array[:, np.argsort(self.levels)]

    def _pinball(self) -> Box:
        return pinball(self.levels)

    def slope(self, residual: np.ndarray) -> np.ndarray:
        """A subgradient where no curves cross."""
        return self._pinball().slope(residual)

    def value(self, residual: np.ndarray) -> np.ndarray:
        """ℓ(ξ)."""
        crossing = np.diff(self._sorted(residual), axis=1).max(axis=1) > self.rounding
        return np.where(crossing, np.inf, self._pinball().value(residual))

    def conjugate(self, beta: np.ndarray) -> np.ndarray:
        """Zero in the domain."""
        return np.zeros(len(beta), Wide)

    def nearest(self, beta: np.ndarray) -> np.ndarray:
        """The largest multiple, up to the whole, in the domain."""
        levels = np.sort(wide(self.levels))
        sums = np.cumsum(self._sorted(beta), axis=1)
        back = np.cumsum(self._sorted(beta)[:, ::-1], axis=1)
        share = np.ones(len(beta), Wide)
        for found, most in ((sums, np.cumsum(levels)), (-back, np.cumsum((1 - levels)[::-1]))):
            over = found > most
            within = np.where(over, most / np.where(over, found, 1), 1)
            share = np.minimum(share, within.min(axis=1))
        return beta * share[:, None]

    def steepness(self, residual: np.ndarray, move: np.ndarray) -> np.ndarray:
        """The most that the loss may change if ξ moves by this much, (n,)."""
        return self._pinball().steepness(residual, move)


@dataclass(frozen=True)
class LogCosh:
    """Σ κ² log cosh(ξ/κ), a loss that is not of the library."""

    kappa: float

    def slope(self, residual: np.ndarray) -> np.ndarray:
        """The gradient."""
        return self.kappa * np.tanh(residual / wide(self.kappa))

    def value(self, residual: np.ndarray) -> np.ndarray:
        """ℓ(ξ)."""
        size = np.abs(residual) / wide(self.kappa)
        far = size + np.log1p(np.exp(-2 * size)) - np.log(wide(2))
        near = np.log1p(2 * np.sinh(np.minimum(size, 1) / 2) ** 2)
        return self.kappa**2 * np.where(size < 1, near, far).sum(axis=1)

    def conjugate(self, beta: np.ndarray) -> np.ndarray:
        """ℓ*(β): half of a binary entropy."""
        share = np.abs(beta) / wide(self.kappa)
        near = np.minimum(share, 0.5)
        few = near * np.arctanh(near) + np.log1p(-(near**2)) / 2
        rest = np.where(share < 1, 1 - share, 1)
        many = ((1 + share) * np.log1p(share) + (1 - share) * np.log(rest)) / 2
        value = np.where(share < 0.5, few, many)
        return self.kappa**2 * value.sum(axis=1)

    def nearest(self, beta: np.ndarray) -> np.ndarray:
        """The nearest point of the domain."""
        return np.clip(beta, -wide(self.kappa), wide(self.kappa))

    def steepness(self, residual: np.ndarray, move: np.ndarray) -> np.ndarray:
        """The most that the loss may change if ξ moves by this much, (n,)."""
        return (np.abs(self.slope(np.abs(residual) + move)) * move).sum(axis=1)


def box(low: object, high: object, below: object, above: object, epsilon: float = 0.0) -> Box:
    return Box(*(np.atleast_1d(wide(part)) for part in (low, high, below, above)), epsilon)


def pinball(levels: object, epsilon: float = 0.0) -> Box:
    """Σ max(τ ξ, (τ - 1) ξ)."""
    levels = wide(levels)
    return box(levels - 1, levels, 0 * levels, 0 * levels, epsilon)


def squared_pinball(levels: object, epsilon: float = 0.0) -> Box:
    """½ Σ |τ - 1(ξ < 0)| ξ²."""
    levels = wide(levels)
    infinite = np.full(levels.shape, np.inf)
    return box(-infinite, infinite, 1 / (1 - levels), 1 / levels, epsilon)


def absolute() -> Box:
    """Σ |ξ|."""
    return box(-1, 1, 0, 0)


def huber_by_output(kappa: float) -> Box:
    """½ξ² up to κ, then linear, output by output."""
    return box(-kappa, kappa, 1, 1)


def named(loss: str, epsilon: float = 0.0, kappa: float = 1.0, level: float = 0.5) -> Box | Length:
    """The loss of a name, of lengths where the table says so."""
    return {
        "squared": lambda: Length(1.0, np.inf),
        "absolute": absolute,
        "epsilon_insensitive": lambda: Length(0.0, 1.0, epsilon),
        "squared_epsilon_insensitive": lambda: Length(1.0, np.inf, epsilon),
        "huber": lambda: Length(1.0, kappa),
        "pinball": lambda: pinball(level),
        "squared_pinball": lambda: squared_pinball(level),
    }[loss]()
