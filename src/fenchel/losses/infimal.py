"""The ε-insensitive version of any loss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fenchel._typing import FloatArray
from fenchel.losses.base import Loss, check_epsilon

_BISECTIONS = 70


class Insensitive(Loss):
    r"""Infimal convolution of any loss with the indicator of an ℓ2 ball.

    .. math:: \ell_\varepsilon = \ell \,\square\, \chi(\|\cdot\|_2 \le \varepsilon), \qquad
              \ell_\varepsilon^* = \ell^* + \varepsilon \|\cdot\|_2

    Made from the prox of the given loss alone: with the length ρ of the result known, the
    prox and the exact primal value are one prox of the given loss with another step; ρ
    is found by bisection. The losses of the library have faster forms of their own, which
    ``loss.insensitive(epsilon)`` returns.

    Parameters
    ----------
    loss : Loss
        The loss to make insensitive, finite everywhere.
    epsilon : float
        Radius of the ball, in the units of y.

    References
    ----------
    Sangnier, Fercoq, d'Alché-Buc (2017), sections 3 and 6.2.
    """

    separable = False

    def __init__(self, loss: Loss, epsilon: float) -> None:
        if loss.cone is not None:
            raise ValueError(
                f"{type(loss).__name__} has no ε-insensitive version: that would allow residuals "
                "outside of its cone by ε"
            )
        self.loss = loss
        self.epsilon = check_epsilon(epsilon)
        self.n_outputs = loss.n_outputs
        self.lipschitz = loss.lipschitz
        self.smoothness = loss.smoothness

    def __repr__(self) -> str:
        """Show how the loss is made."""
        return f"{self.loss!r}.insensitive({self.epsilon:g})"

    def insensitive(self, epsilon: float) -> Insensitive:
        """Return the infimal convolution with a further ball: the radii add up."""
        return Insensitive(self.loss, self.epsilon + check_epsilon(epsilon))

    def conjugate(self, dual: FloatArray) -> FloatArray:  # noqa: D102
        return self.loss.conjugate(dual) + self.epsilon * np.linalg.norm(dual, axis=1)

    def conjugate_prox(self, point: FloatArray, step: float | FloatArray) -> FloatArray:  # noqa: D102
        step = np.broadcast_to(np.asarray(step, float), (len(point), 1))
        threshold = step * self.epsilon
        length = np.linalg.norm(point, axis=1, keepdims=True)

        def dual_of_length(rho: FloatArray) -> FloatArray:
            scale = rho / (rho + threshold)
            return self.loss.conjugate_prox(point * scale, step * scale)

        dual = _fixed_length(dual_of_length, np.where(length > threshold, length, 1.0))
        return np.where(length > threshold, dual, 0.0)

    def conjugate_prox_jacobian(  # noqa: D102
        self, point: FloatArray, step: float | FloatArray
    ) -> FloatArray:
        step = np.broadcast_to(np.asarray(step, float), (len(point), 1))
        dual = self.conjugate_prox(point, step)
        p = dual.shape[1]
        rho = np.linalg.norm(dual, axis=1, keepdims=True)
        alive = rho[:, 0] > 0.0
        pull = step * self.epsilon / np.where(rho > 0.0, rho, 1.0)
        inner = self.loss.conjugate_prox_jacobian(point - pull * dual, step)
        if self.loss.separable:
            inner = inner[:, :, None] * np.eye(p)
        unit = dual / np.where(rho > 0.0, rho, 1.0)
        bend = pull[:, :, None] * (np.eye(p) - unit[:, :, None] * unit[:, None, :])
        jacobian = np.linalg.solve(np.eye(p) + inner @ bend, inner)
        jacobian = 0.5 * (jacobian + jacobian.transpose(0, 2, 1))
        return np.where(alive[:, None, None], jacobian, 0.0)

    def value(self, residual: FloatArray) -> FloatArray:  # noqa: D102
        if self.epsilon == 0.0:
            return self.loss.value(residual)
        length = np.linalg.norm(residual, axis=1, keepdims=True)

        def dual_of_length(rho: FloatArray) -> FloatArray:
            return self.loss.conjugate_prox(residual * (rho / self.epsilon), rho / self.epsilon)

        high = np.ones((len(residual), 1))
        for _ in range(600):  # doubling from 1: covers the range of floating-point numbers
            grow = np.linalg.norm(dual_of_length(high), axis=1, keepdims=True) > high
            if not grow.any():
                break
            high = np.where(grow, 2.0 * high, high)
        dual = _fixed_length(dual_of_length, high)
        value = np.einsum("ij,ij->i", dual, residual) - self.conjugate(dual)
        return np.where(length[:, 0] > self.epsilon, np.maximum(value, 0.0), 0.0)


def _fixed_length(
    dual_of_length: Callable[[FloatArray], FloatArray], high: FloatArray
) -> FloatArray:
    """Find, row by row, the dual vector whose length is the one that it was made with."""
    low = np.zeros_like(high)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        too_short = np.linalg.norm(dual_of_length(middle), axis=1, keepdims=True) > middle
        low = np.where(too_short, middle, low)
        high = np.where(too_short, high, middle)
    # what has shrunk all the way down to 0 is 0, exactly
    return np.where(low > 0.0, dual_of_length(0.5 * (low + high)), 0.0)
