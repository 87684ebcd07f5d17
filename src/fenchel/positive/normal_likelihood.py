"""Negative log-likelihood of normal distributions as a convex loss of natural parameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fenchel._typing import FloatArray
from fenchel.positive.losses import PredictionLoss
from fenchel.positive.problem import LinearPart, PSDPart, PSDProblem, Squares

_STEPS = 200


class NormalLikelihood(PredictionLoss):
    r"""Negative log-likelihood of normal distributions in their natural parameters.

    With θ = 1/v and η = μ/v, and a floor t added to the prediction z of θ:

    .. math:: \ell_i(\eta, z) = \tfrac12\Bigl(\theta y_i^2 - 2 \eta y_i + \frac{\eta^2}{\theta}
              - \log \theta\Bigr), \qquad \theta = z + t

    It is jointly convex, and equals minus the log-likelihood less log √(2π). With
    :math:`a = \beta_\eta + y_i` and :math:`s = \tfrac12 y_i^2 - \beta_z - \tfrac12 a^2 > 0`:

    .. math:: \ell_i^*(\beta) = -\tfrac12 - \tfrac12 \log(2 s) - t \beta_z

    attained at :math:`\theta = 1/(2s)`, η = aθ.

    Parameters
    ----------
    targets : ndarray of shape (n,)
        The targets y.
    floor : float
        The floor t >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import NormalLikelihood
    >>> loss = NormalLikelihood(np.array([1.0]))
    >>> loss.value(np.array([[1.0, 1.0]]))  # of the mean 1 and the variance 1
    array([0.])
    """

    n_outputs = 2
    smooth = True

    def __init__(self, targets: FloatArray, floor: float = 0.0) -> None:
        self.targets = np.asarray(targets, dtype=np.float64)
        self.floor = floor

    def value(self, prediction: FloatArray) -> FloatArray:
        eta, theta = prediction[:, 0], prediction[:, 1] + self.floor
        positive = theta > 0.0
        safe = np.where(positive, theta, 1.0)
        residual = self.targets - eta / safe
        return np.where(positive, 0.5 * (safe * residual**2 - np.log(safe)), np.inf)

    def conjugate(self, dual: FloatArray) -> FloatArray:
        _, s = self._slack(dual)
        inside = s > 0.0
        value = -0.5 - 0.5 * np.log(2.0 * np.where(inside, s, 1.0)) - self.floor * dual[:, 1]
        return np.where(inside, value, np.inf)

    def conjugate_derivatives(self, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        a, s = self._slack(dual)
        theta = 0.5 / s
        gradient = np.stack([a * theta, theta - self.floor], axis=1)
        return gradient, _hessian(a, theta)

    def conjugate_prox(self, point: FloatArray, step: float | FloatArray) -> FloatArray:
        r"""Return the prox of the conjugate, by solving an equation in θ.

        The conditions :math:`\beta + \mathrm{step} \nabla \ell^*(\beta) = p` are equivalent to
        :math:`a = A / (1 + \mathrm{step}\, \theta)` with :math:`A = p_\eta + y`, and

        .. math:: h(\theta) = \mathrm{step}\, \theta - T
                  - \frac{A^2}{2 (1 + \mathrm{step}\, \theta)^2} - \frac{1}{2\theta} = 0, \qquad
                  T = p_z - \tfrac12 y^2 + \mathrm{step}\, t

        h is increasing and concave, so Newton's method from the left converges monotonically.
        """
        steps = np.ravel(step)
        a, theta = self._prox(point, steps)
        return np.stack([a - self.targets, point[:, 1] - steps * (theta - self.floor)], axis=1)

    def conjugate_prox_jacobian(self, point: FloatArray, step: float | FloatArray) -> FloatArray:
        steps = np.ravel(step)
        hessian = _hessian(*self._prox(point, steps))
        return np.asarray(np.linalg.inv(np.eye(2) + steps[:, None, None] * hessian))

    def _slack(self, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A and s."""
        a = dual[:, 0] + self.targets
        # ½y² - ½a² without cancellation
        return a, -0.5 * dual[:, 0] * (self.targets + a) - dual[:, 1]

    def _prox(self, point: FloatArray, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A and θ of the prox."""
        size = point[:, 0] + self.targets
        total = point[:, 1] - 0.5 * self.targets**2 + step * self.floor
        # the root without the term in A², which is to the left of the root
        reach = np.hypot(total, np.sqrt(2.0 * step))
        theta = np.where(
            total > 0.0, (total + reach) / (2.0 * step), 1.0 / (reach + np.abs(total))
        )
        for _ in range(_STEPS):
            shrink = 1.0 / (1.0 + step * theta)
            height = step * theta - total - 0.5 * (size * shrink) ** 2 - 0.5 / theta
            slope = step + size**2 * step * shrink**3 + 0.5 / theta**2
            move = height / slope
            theta = theta - np.minimum(move, 0.5 * theta)
            if np.all(np.abs(move) <= 1e-15 * theta):
                break
        return size / (1.0 + step * theta), theta


def _hessian(a: FloatArray, theta: FloatArray) -> FloatArray:
    """Second derivatives of the conjugate, (n, 2, 2)."""
    curvature = 2.0 * theta**2
    mixed = curvature * a
    first = theta + mixed * a
    return np.stack([first, mixed, mixed, curvature], axis=1).reshape(-1, 2, 2)


class NormalStrengths(NamedTuple):
    """Strengths and floor of a fit of mean and variance."""

    alpha: float
    """Strength of the squared norm of w."""
    own_alpha: float
    """Strength of the squared norm of A."""
    trace_penalty: float
    floor: float
    """Smallest precision, for standardized targets."""


class NormalRows(NamedTuple):
    """Rows with the features of both functions of a normal distribution."""

    features: FloatArray
    """Features of η, (n, r)."""
    own: FloatArray
    """Features of θ, (n, q)."""
    targets: FloatArray
    """Standardized targets, (n,)."""
    weight: FloatArray

    def problem(self, strengths: NormalStrengths, shared: Squares | None = None) -> PSDProblem:
        """Return the problem in w and A for these rows."""
        mean, precision = np.eye(2)
        part = PSDPart(self.own, strengths.own_alpha, strengths.trace_penalty, precision)
        return PSDProblem(
            NormalLikelihood(self.targets, strengths.floor),
            [part],
            self.weight,
            linear=[LinearPart(self.features, strengths.alpha, mean)],
            shared=Squares() if shared is None else shared,
        )
