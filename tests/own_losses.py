"""Losses that are not part of the library, by the four methods of the protocol."""

from __future__ import annotations

import numpy as np

from fenchel.losses import Loss


class LogCosh(Loss):
    r"""A smoothed absolute value, :math:`\ell(\xi) = \sum_j \kappa^2 \log\cosh(\xi_j / \kappa)`.

    Its slope is κ tanh(ξ/κ), so that the conjugate is a binary entropy on the box of size κ.
    Not elicitable by a name: between mean and median.
    """

    statistic = "between mean and median"
    smoothness = 1.0

    def __init__(self, kappa=0.5):
        self.kappa = kappa

    def value(self, residual):
        size = np.abs(residual) / self.kappa
        near = np.log1p(2.0 * np.sinh(0.5 * np.minimum(size, 1.0)) ** 2)
        far = size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0)
        return self.kappa**2 * np.where(size < 1.0, near, far).sum(axis=1)

    def conjugate(self, dual):
        slope = np.abs(dual) / self.kappa
        inside, few = np.minimum(slope, 1.0), np.minimum(slope, 0.5)
        near = few * np.arctanh(few) + 0.5 * np.log1p(-(few**2))  # keeps the digits near zero
        rest = np.where(inside < 1.0, 1.0 - inside, 1.0)
        far = 0.5 * ((1.0 + inside) * np.log1p(inside) + (1.0 - inside) * np.log(rest))
        value = np.where(slope < 0.5, near, far)
        return self.kappa**2 * np.where(slope <= 1.0, value, np.inf).sum(axis=1)

    def conjugate_prox(self, point, step):
        """β = κ tanh(r/κ) with β + step r = point: r by Newton from the left."""
        target = np.abs(point)
        r = np.maximum(target - self.kappa, 0.0) / step
        for _ in range(30):
            slope = np.tanh(r / self.kappa)
            move = (target - self.kappa * slope - step * r) / (step + 1.0 - slope**2)
            r = r + move
        return np.sign(point) * self.kappa * np.tanh(r / self.kappa)

    def conjugate_prox_jacobian(self, point, step):
        curvature = 1.0 - (self.conjugate_prox(point, step) / self.kappa) ** 2
        return curvature / (curvature + step)


class Elastic(Loss):
    r"""Squared and absolute loss in one: :math:`\ell(\xi) = \tfrac12 \xi^2 + \kappa |\xi|`.

    A kink at zero, and no bound on the slope. Its conjugate
    :math:`\tfrac12 (|\beta| - \kappa)_+^2` is finite everywhere.
    """

    statistic = "between mean and median"

    def __init__(self, kappa=0.5):
        self.kappa = kappa

    def value(self, residual):
        size = np.abs(residual)
        return (0.5 * size**2 + self.kappa * size).sum(axis=1)

    def conjugate(self, dual):
        return (0.5 * np.maximum(np.abs(dual) - self.kappa, 0.0) ** 2).sum(axis=1)

    def conjugate_prox(self, point, step):
        far = (point + step * self.kappa * np.sign(point)) / (1.0 + step)
        return np.where(np.abs(point) <= self.kappa, point, far)

    def conjugate_prox_jacobian(self, point, step):
        return np.where(np.abs(point) <= self.kappa, 1.0, 1.0 / (1.0 + step))


def slope(loss, residual):
    """Derivative of the losses above, from their formulas."""
    if isinstance(loss, LogCosh):
        return loss.kappa * np.tanh(residual / loss.kappa)
    return residual + loss.kappa * np.sign(residual)


__all__ = ["Elastic", "LogCosh", "slope"]
