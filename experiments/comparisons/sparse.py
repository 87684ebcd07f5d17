"""Earlier ways to data sparsity: Park & Kim (2011), Lim et al. (2014), Zhang et al. (2016)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from fenchel.losses import Loss, Pinball

_ROUNDING = 1e-12
_NONE = 1e-9  # of the largest coefficient: as small is zero


class ParkKim(Loss):
    r"""The ε-insensitive pinball loss of Park and Kim (2011), for one level.

    .. math:: \ell(\xi) = \max(0, \rho_\tau(\xi) - \varepsilon), \qquad
              \ell^*(\beta) = \chi(\tau - 1 \le \beta \le \tau)
              + \varepsilon \max(\beta / \tau, \beta / (\tau - 1))

    Its tube goes from -ε/(1 - τ) to ε/τ. At the median it is the loss of Sangnier et al.
    (2017) with twice the ε.
    """

    n_outputs = 1
    statistic = "quantile, if ε = 0"

    def __init__(self, level: float, epsilon: float) -> None:
        self.level = float(level)
        self.width = float(epsilon)
        self.lipschitz = max(self.level, 1.0 - self.level)

    def _arguments(self) -> str:
        return f"{self.level:g}, {self.width:g}"

    def _penalty(self, sign_of: np.ndarray) -> np.ndarray:
        """Slope of the conjugate on the side of each entry."""
        return self.width / np.where(sign_of > 0.0, self.level, 1.0 - self.level)

    def value(self, residual: np.ndarray) -> np.ndarray:
        pinball = np.maximum(self.level * residual, (self.level - 1.0) * residual)
        return np.maximum(pinball - self.width, 0.0)[:, 0]

    def conjugate(self, dual: np.ndarray) -> np.ndarray:
        slack = 1.0 + _ROUNDING
        inside = (slack * (self.level - 1.0) <= dual) & (dual <= slack * self.level)
        return np.where(inside, self._penalty(dual) * np.abs(dual), np.inf)[:, 0]

    def conjugate_prox(self, point: np.ndarray, step: float | np.ndarray) -> np.ndarray:
        size = np.maximum(np.abs(point) - step * self._penalty(point), 0.0)
        return np.clip(np.sign(point) * size, self.level - 1.0, self.level)

    def conjugate_prox_jacobian(self, point: np.ndarray, step: float | np.ndarray) -> np.ndarray:
        dual = self.conjugate_prox(point, step)
        free = (self.level - 1.0 < dual) & (dual < self.level)
        if self.width > 0.0:
            free &= dual != 0.0
        return free.astype(float)


class SparseRidge(NamedTuple):
    """Coefficients of h(x) = 1/(λn) Σ_i k(x, x_i) c_i, and their exact duality gap.

    The relative gap is in units of what the objective gains from c = 0 to the best at ε = 0.
    """

    coefficients: np.ndarray
    gap: float
    relative_gap: float


def sparse_ridge(
    gram: np.ndarray,
    y: np.ndarray,
    strength: float,
    epsilon: float,
    start: np.ndarray | None = None,
    tol: float = 1e-6,
    max_iter: int = 20_000,
) -> SparseRidge:
    r"""Representer-restricted sparse ridge regression of Lim et al. (2014), without intercept.

    .. math:: \min_c\; \tfrac{\lambda}{2} \|h\|^2 + \tfrac{1}{2n} \sum_i \|y_i - h(x_i)\|^2
              + \tfrac{\varepsilon}{\lambda n^2} \sum_i \|c_i\|

    with ``strength`` C = 1/(λn); n/C times this is, up to a constant, ½<c, A c> - <K y, c> +
    ε Σ ||c_i|| with A = K + C K². FISTA with restart (O'Donoghue, Candès, 2015), stopped at a
    relative duality gap of ``tol``.
    """
    quadratic = gram + strength * gram @ gram
    linear = gram @ y
    ridge = np.linalg.solve(np.eye(len(gram)) + strength * gram, y)  # the minimizer for ε = 0
    span = 0.5 * float(np.vdot(ridge, linear))
    step = 1.0 / np.linalg.eigvalsh(quadratic)[-1]
    point = np.zeros_like(y) if start is None else start.copy()
    ahead, momentum, gap = point, 1.0, np.inf
    for k in range(max_iter):
        if k % 20 == 0:
            gap = _gap(quadratic, linear, ridge, epsilon, point)
            if gap <= tol * span:
                break
        moved = ahead - step * (quadratic @ ahead - linear)
        length = np.linalg.norm(moved, axis=1, keepdims=True)
        new = moved * np.maximum(1.0 - step * epsilon / np.maximum(length, 1e-300), 0.0)
        if np.vdot(ahead - new, new - point) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = new + (momentum - 1.0) / following * (new - point)
        point, momentum = new, following
    return SparseRidge(point, gap, gap / span)


def _gap(
    quadratic: np.ndarray,
    linear: np.ndarray,
    ridge: np.ndarray,
    epsilon: float,
    point: np.ndarray,
) -> float:
    """Primal minus dual, the dual point being the gradient shrunk until all rows are <= ε."""
    gradient = quadratic @ point - linear
    lengths = np.linalg.norm(point, axis=1)
    primal = 0.5 * np.vdot(point, gradient - linear) + epsilon * lengths.sum()
    largest = np.linalg.norm(gradient, axis=1).max()
    shrink = min(1.0, epsilon / largest) if largest > 0.0 else 1.0
    mixed = shrink * point + (1.0 - shrink) * ridge
    return float(primal + 0.5 * np.vdot(mixed, quadratic @ mixed))


class SparseQuantile(NamedTuple):
    """Coefficients and offset of h(x) = Σ_j k(x, x_j) c_j + b, and the gap of the program.

    The relative gap is in units of the loss of the best constant.
    """

    coefficients: np.ndarray
    offset: float
    relative_gap: float


def sparse_quantile(
    gram: np.ndarray, y: np.ndarray, level: float, penalty: float
) -> SparseQuantile:
    r"""Quantile regression with the data sparsity constraint of Zhang, Liu, Wu (2016).

    .. math:: \min_{c, b}\; \tfrac1n \sum_i \rho_\tau\big(y_i - b - (Kc)_i\big)
              + \lambda \sum_j |c_j|

    A bound on Σ \|c_j\| with its multiplier λ, in the place of the squared norm of h: a linear
    program, and not the problem with another weight or another loss.
    """
    n = len(y)
    one = sparse.identity(n)
    equal = sparse.hstack([gram, -gram, np.ones((n, 1)), -np.ones((n, 1)), one, -one])
    costs = [np.full(2 * n, penalty), np.zeros(2), np.full(n, level / n)]
    cost = np.concatenate([*costs, np.full(n, (1.0 - level) / n)])
    found = linprog(cost, A_eq=equal, b_eq=y, bounds=(0.0, None), method="highs")
    if found.status != 0:
        raise RuntimeError(f"the linear program ended early: {found.message}")
    coefficients = found.x[:n] - found.x[n : 2 * n]
    coefficients[np.abs(coefficients) <= _NONE * np.abs(coefficients).max()] = 0.0
    offset = float(found.x[2 * n] - found.x[2 * n + 1])
    residual = (y - gram @ coefficients - offset)[:, None]
    loss = Pinball(level)
    primal = loss.value(residual).mean() + penalty * np.abs(coefficients).sum()
    dual = float(found.eqlin.marginals @ y)  # feasible up to the tolerance of the program
    constant = loss.minimizing_offset(y[:, None], np.ones(n))
    unit = loss.value(y[:, None] - constant).mean()
    return SparseQuantile(coefficients, offset, float((primal - dual) / unit))


def largest_penalty(gram: np.ndarray, y: np.ndarray, level: float) -> float:
    """The λ of :func:`sparse_quantile` from which on the best constant is a solution.

    Where one row alone has the quantile.
    """
    order = np.argsort(y)
    at = int(np.ceil(level * len(y))) - 1
    dual = np.empty(len(y))
    dual[order[:at]], dual[order[at + 1 :]] = level - 1.0, level
    dual[order[at]] = -dual[np.delete(order, at)].sum()
    return float(np.abs(gram @ dual).max() / len(y))
