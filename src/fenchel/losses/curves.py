"""Losses of residual curves: pointwise, or infimal convolutions with L^p norms."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
import numpy.typing as npt

from fenchel._memory import empty
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import ORDER
from fenchel.losses._clipping import (
    bounded_conjugates,
    bounded_values,
    excess_values,
    insensitive_conjugates,
)
from fenchel.losses._norm_balls import project, project_jacobian
from fenchel.losses.atoms import Huber, check_kappa
from fenchel.losses.base import Loss, check_epsilon
from fenchel.losses.forms import ROUNDING, Step


class _MeasuredLoss(Loss):
    """A loss of curves; residuals are scaled by √μ."""

    measure: FloatArray

    def _set_measure(self, measure: npt.ArrayLike) -> None:
        self.measure = check_measure(measure)
        self.root = np.sqrt(np.atleast_2d(self.measure))
        self.n_outputs = self.measure.shape[-1]

    def at(self, rows: slice | IntArray) -> Self:
        """Return the loss of some of the rows, where each has a measure of its own."""
        if self.measure.ndim == 1:
            return self
        part = copy.copy(self)
        part.measure, part.root = self.measure[rows], self.root[rows]
        return part


class _CurveLoss(_MeasuredLoss):
    """Half the squared L² norm, convolved."""

    smoothness = 1.0

    def __init__(self, norm: float, measure: npt.ArrayLike) -> None:
        self.norm = ORDER(norm, "norm")
        self._set_measure(measure)
        self.radial = self.norm == 2.0

    @property
    def dual_order(self) -> float:
        """The conjugate exponent q, 1/p + 1/q = 1."""
        if self.norm == 1.0:
            return np.inf
        return 1.0 if self.norm == np.inf else self.norm / (self.norm - 1.0)

    def dual_norm(self, dual: FloatArray) -> FloatArray:
        """Norm of L^q of each row, (n,)."""
        q = self.dual_order
        if q == 2.0 and np.isfinite(lengths := np.sqrt(np.einsum("ij,ij->i", dual, dual))).all():
            return np.asarray(lengths)
        values = np.divide(np.abs(dual), self.root, out=np.zeros_like(dual), where=self.root > 0.0)
        largest = values.max(axis=1)
        if q == np.inf:
            return np.asarray(largest)
        unit = np.where(largest > 0.0, largest, 1.0)  # powers of large numbers overflow
        powers = self.root**2 * (values / unit[:, None]) ** q
        return np.asarray(unit * powers.sum(axis=1) ** (1.0 / q))


class CurveHuber(_CurveLoss):
    r"""Huber loss of curves: quadratic for small residuals, linear for large ones.

    .. math:: H_\kappa^p = \tfrac12 \|\cdot\|_{L^2(\mu)}^2 \,\square\, \kappa \|\cdot\|_{L^p(\mu)},
              \qquad (H_\kappa^p)^* = \tfrac12 \|\cdot\|_{L^2(\mu)}^2
              + \chi(\|\cdot\|_{L^q(\mu)} \le \kappa)

    Residuals and dual vectors are in coordinates in which the inner product of L²(μ) is the
    Euclidean one: row i contains :math:`\sqrt{\mu_j}\, \xi_i(\theta_j)`. ``norm=1`` bounds the
    influence of each point of a curve, ``norm=2`` that of each curve.

    Parameters
    ----------
    kappa : float
        κ > 0, in the units of y: the L^q norm of a residual beyond which the loss is linear.
    norm : float
        p in [1, inf]. Projections are in closed form for 1, 2 and inf, and iterative otherwise.
    measure : array-like of shape (m,) or (n, m)
        Weights μ >= 0 of the points, the same for all rows or one set for each row.

    References
    ----------
    Lambert, Bouche, Szabó, d'Alché-Buc (2022), Functional output regression with infimal
    convolution, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import CurveHuber
    >>> spike = np.array([[0.0, 0.0, 0.0, 4.0]])
    >>> for norm in (1, 2):
    ...     loss = CurveHuber(0.5, norm, np.full(4, 0.25))
    ...     print(loss.value(spike * loss.root))
    [0.46875]
    [0.875]
    """

    statistic = "minimizer of the mean Huber loss of curves"

    def __init__(self, kappa: float, norm: float, measure: npt.ArrayLike) -> None:
        super().__init__(norm, measure)
        self.kappa = check_kappa(kappa)
        self.separable = self.norm == 1.0
        self.lipschitz = self.kappa * _widest(self.measure, self.dual_order)

    def output(self, j: int, n_outputs: int) -> Loss | None:
        """Return the scalar Huber loss if there is one point, of weight one."""
        return Huber(self.kappa) if n_outputs == 1 and bool((self.root == 1.0).all()) else None

    def on_curves(self, measure: FloatArray) -> CurveHuber:
        return CurveHuber(self.kappa, self.norm, measure)

    def _arguments(self) -> str:
        return f"kappa={self.kappa:g}, norm={self.norm:g}, measure of {self.n_outputs} points"

    def value(self, residual: FloatArray) -> FloatArray:
        residual = np.asarray(residual, dtype=np.float64)
        if self.separable:
            return bounded_values(residual, self.root, self.kappa)
        if self.radial:
            length = self.dual_norm(residual)
            bounded = np.minimum(length, self.kappa)
            return np.asarray(bounded * (length - 0.5 * bounded))
        dual = project(residual, self.root, self.kappa, self.dual_order).point
        inner, square = (np.einsum("ij,ij->i", dual, each) for each in (residual, dual))
        return np.asarray(inner - 0.5 * square)

    def conjugate(self, dual: FloatArray) -> FloatArray:
        if self.separable:
            return bounded_conjugates(dual, self.root, self.kappa * (1.0 + ROUNDING))
        size = self.dual_norm(dual)
        value = 0.5 * (size**2 if self.radial else np.einsum("ij,ij->i", dual, dual))
        return np.where(size > self.kappa * (1.0 + ROUNDING), np.inf, value)

    def conjugate_prox(self, point: FloatArray, step: Step) -> FloatArray:
        shrunk = np.divide(point, 1.0 + np.asarray(step), out=empty(point.shape))
        return project(shrunk, self.root, self.kappa, self.dual_order).point

    def conjugate_prox_jacobian(self, point: FloatArray, step: Step) -> FloatArray:
        scale = 1.0 + np.asarray(step, dtype=np.float64)
        shrunk = point / scale
        if self.separable:
            return np.where(np.abs(shrunk) < self.kappa * self.root, 1.0, 0.0) / scale
        projected = project(shrunk, self.root, self.kappa, self.dual_order)
        jacobian = project_jacobian(shrunk, projected, self.root, self.dual_order)
        return np.asarray(jacobian / scale.reshape(-1, 1, 1))


class CurveInsensitive(_CurveLoss):
    r"""Insensitive loss of curves: zero for residuals within ε.

    .. math:: \ell_\varepsilon^p = \tfrac12 \|\cdot\|_{L^2(\mu)}^2 \,\square\,
              \chi(\|\cdot\|_{L^p(\mu)} \le \varepsilon), \qquad
              (\ell_\varepsilon^p)^* = \tfrac12 \|\cdot\|_{L^2(\mu)}^2
              + \varepsilon \|\cdot\|_{L^q(\mu)}

    The coordinates are those of :class:`CurveHuber`. Dual vectors have exact zeros: whole rows
    for ``norm=2``, single points for ``norm=inf``.

    Parameters
    ----------
    epsilon : float
        ε >= 0, in the units of y.
    norm, measure
        As in :class:`CurveHuber`.

    References
    ----------
    Lambert, Bouche, Szabó, d'Alché-Buc (2022), Functional output regression with infimal
    convolution, section 4; the thresholds printed in 4.1 lack powers of m.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import CurveInsensitive
    >>> loss = CurveInsensitive(1.0, np.inf, np.full(4, 0.25))
    >>> loss.value(np.array([[0.5, 0.5, -0.5, 3.0]]) * loss.root)
    array([0.5])
    """

    statistic = "minimizer of the mean insensitive loss of curves"

    def __init__(self, epsilon: float, norm: float, measure: npt.ArrayLike) -> None:
        super().__init__(norm, measure)
        self.epsilon = check_epsilon(epsilon)
        self.separable = self.norm == np.inf

    def on_curves(self, measure: FloatArray) -> CurveInsensitive:
        return CurveInsensitive(self.epsilon, self.norm, measure)

    def __repr__(self) -> str:
        return (
            f"CurveInsensitive(epsilon={self.epsilon:g}, norm={self.norm:g}, "
            f"measure of {self.n_outputs} points)"
        )

    def value(self, residual: FloatArray) -> FloatArray:
        residual = np.asarray(residual, dtype=np.float64)
        if self.separable:
            return excess_values(residual, self.root, self.epsilon)
        if self.radial:
            return np.asarray(0.5 * np.maximum(self.dual_norm(residual) - self.epsilon, 0.0) ** 2)
        left = residual - project(residual, self.root, self.epsilon, self.norm).point
        return 0.5 * np.einsum("ij,ij->i", left, left)

    def conjugate(self, dual: FloatArray) -> FloatArray:
        if self.separable:
            return insensitive_conjugates(dual, self.root, self.epsilon)
        size = self.dual_norm(dual)
        square = size**2 if self.radial else np.einsum("ij,ij->i", dual, dual)
        return np.asarray(0.5 * square + self.epsilon * size)

    def conjugate_prox(self, point: FloatArray, step: Step) -> FloatArray:
        scale = 1.0 + np.asarray(step, dtype=np.float64)
        shrunk = np.divide(point, scale, out=empty(point.shape))
        near = project(shrunk, self.root, step / scale * self.epsilon, self.norm).point
        return np.subtract(shrunk, near, out=near)

    def conjugate_prox_jacobian(self, point: FloatArray, step: Step) -> FloatArray:
        scale = 1.0 + np.asarray(step, dtype=np.float64)
        shrunk, radius = point / scale, step / scale * self.epsilon
        if self.separable:
            return np.where(np.abs(shrunk) > radius * self.root, 1.0, 0.0) / scale
        if self.epsilon == 0.0:
            whole = np.broadcast_to(np.eye(point.shape[1]), (*point.shape, point.shape[1]))
            return np.asarray(whole / scale.reshape(-1, 1, 1))
        projected = project(shrunk, self.root, radius, self.norm)
        jacobian = project_jacobian(shrunk, projected, self.root, self.norm)
        return np.asarray((np.eye(point.shape[1]) - jacobian) / scale.reshape(-1, 1, 1))


class Pointwise(_MeasuredLoss):
    r"""Loss of one output, integrated over the points of a curve.

    .. math:: \ell(\xi) = \int \ell_1(\xi(\theta))\, \mathrm{d}\mu(\theta)
              = \sum_j \mu_j\, \ell_1(r_j / \sqrt{\mu_j}), \qquad
              \ell^*(\beta) = \sum_j \mu_j\, \ell_1^*(\beta_j / \sqrt{\mu_j})

    for residuals :math:`r_j = \sqrt{\mu_j}\, \xi(\theta_j)` in the coordinates of
    :class:`CurveHuber`. The prox is that of :math:`\ell_1` with the same step, point by point.
    At points of weight zero the loss and the dual vectors are zero.

    Parameters
    ----------
    loss : Loss
        A loss of one output, or of any number of outputs.
    measure
        As in :class:`CurveHuber`.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Pinball, Pointwise
    >>> loss = Pointwise(Pinball(0.9), np.full(4, 0.25))
    >>> loss.value(np.array([[1.0, 1.0, -1.0, -1.0]]) * loss.root)
    array([0.5])
    """

    def __init__(self, loss: Loss, measure: npt.ArrayLike) -> None:
        if loss.n_outputs not in (None, 1):
            raise ValueError(
                "loss must be of one output to be applied to every point of a curve, got "
                f"{loss!r} of {loss.n_outputs}"
            )
        self.loss = loss.output(0, 1) or loss
        self._set_measure(measure)
        self.epsilon = loss.epsilon
        self.statistic = f"{loss.statistic} at every point"
        self.smoothness = self.loss.smoothness
        largest = float(np.atleast_2d(self.measure).sum(axis=1).max())
        self.lipschitz = self.loss.lipschitz * np.sqrt(largest)

    def __repr__(self) -> str:
        return f"Pointwise({self.loss!r}, measure of {self.n_outputs} points)"

    def on_curves(self, measure: FloatArray) -> Pointwise:
        return Pointwise(self.loss, measure)

    def output(self, j: int, n_outputs: int) -> Loss | None:
        """Return the loss of one output, if the weight of point j is one."""
        return self.loss if bool((self.root[:, j] == 1.0).all()) else None

    def _apart(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """√μ (n, m), and the rows without it as one column; 0 where μ is."""
        rows = np.asarray(rows, dtype=np.float64)
        root = np.broadcast_to(self.root, rows.shape)
        column = np.divide(rows, root, out=np.zeros_like(rows), where=root > 0.0)
        return root, column.reshape(-1, 1)

    def value(self, residual: FloatArray) -> FloatArray:
        root, column = self._apart(residual)
        return np.einsum("ij,ij,ij->i", root, root, self.loss.value(column).reshape(root.shape))

    def conjugate(self, dual: FloatArray) -> FloatArray:
        root, column = self._apart(dual)
        value = np.einsum(
            "ij,ij,ij->i", root, root, self.loss.conjugate(column).reshape(root.shape)
        )
        return np.where(np.any((root == 0.0) & (dual != 0.0), axis=1), np.inf, value)

    def _inside(self, point: FloatArray, step: Step) -> tuple[FloatArray, FloatArray, Step]:
        root, column = self._apart(point)
        if np.ndim(step):
            step = np.broadcast_to(step, root.shape).reshape(-1, 1)
        return root, column, step

    def conjugate_prox(self, point: FloatArray, step: Step) -> FloatArray:
        root, column, step = self._inside(point, step)
        return root * self.loss.conjugate_prox(column, step).reshape(root.shape)

    def conjugate_prox_jacobian(self, point: FloatArray, step: Step) -> FloatArray:
        root, column, step = self._inside(point, step)
        jacobian = self.loss.conjugate_prox_jacobian(column, step).reshape(root.shape)
        return np.where(root > 0.0, jacobian, 0.0)


def check_measure(measure: npt.ArrayLike) -> FloatArray:
    """Return the weights of the points as an array, or raise an error if they are invalid."""
    weights = np.asarray(measure, dtype=np.float64)
    if weights.ndim not in (1, 2) or weights.size == 0:
        raise ValueError(f"measure must be an array (m,) or (n, m), got shape {weights.shape}")
    if not (np.all(np.isfinite(weights)) and np.all(weights >= 0.0) and weights.any()):
        raise ValueError("measure must have finite weights >= 0, not all of them zero")
    return weights


def _widest(measure: FloatArray, order: float) -> float:
    """Largest L² norm in the unit ball of L^r: spread out for r > 2, else at one point."""
    power = 0.5 - (0.0 if order == np.inf else 1.0 / order)
    if power >= 0.0:
        return float(np.atleast_2d(measure).sum(axis=1).max() ** power)
    return float(measure[measure > 0.0].min() ** power)
