"""Convex losses of prediction vectors, for fits of non-negative models."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import xlogy

from fenchel._typing import FloatArray
from fenchel.losses import ConvexFunction, Loss
from fenchel.positive._loops import (
    barrier_conjugate,
    barrier_derivatives,
    middle_of_falls,
    steps_to_border,
)

_NOISE = 64 * np.finfo(np.float64).eps  # residuals of this size, beside targets, are rounding


class PredictionLoss(ConvexFunction):
    r"""Convex losses :math:`\ell_i(z_i)` of prediction vectors, one for each row.

    .. math:: \ell_i^*(\beta) = \sup_z \langle\beta, z\rangle - \ell_i(z)

    The four methods are those of :class:`fenchel.losses.Loss`. In contrast to a loss of residuals,
    this loss holds its targets, need not depend on target minus prediction, and need not have a
    minimum. :class:`Residual` converts a loss of residuals. If the conjugate is twice
    differentiable inside its domain, subclasses also define :meth:`conjugate_derivatives` and set
    ``smooth = True``.

    Attributes
    ----------
    n_outputs : int
        Length p of a prediction vector.
    smooth : bool
        Whether :meth:`conjugate_derivatives` is defined.
    unit : float
        Denominator of relative duality gaps, for weights that sum to one: the mean loss of a
        constant, or 1 for a logarithm.
    step : float
        Typical ratio of a dual entry to a prediction, used to initialize iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import Poisson, PredictionLoss
    >>> loss: PredictionLoss = Poisson([3.0, 0.0])
    >>> loss.value(np.array([[3.0], [2.0]]))
    array([0., 2.])
    """

    n_outputs: int = 1
    smooth: bool = False
    unit: float = 1.0
    step: float = 1.0

    def conjugate_derivatives(self, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient (n, p) and Hessian, (n, p) if diagonal or (n, p, p), of the conjugate."""
        raise NotImplementedError

    def reach(self, dual: FloatArray, change: FloatArray) -> float:
        """Return the step, at most one, with which a search along a dual change begins."""
        return 1.0

    def interior(self, barrier: float) -> Interior | None:
        """Return the loss with a barrier if its conjugate lives on a box; None otherwise."""
        return None

    def best_move(self, prediction: FloatArray, along: FloatArray, weight: FloatArray) -> float:
        """Return the t, (p,), that minimizes the weighted loss of prediction + t · along.

        The default implementation is a line search. It returns zero if nothing better is found.
        """
        reach = 0.01 * np.sqrt(self.unit / self.step) if self.unit > 0.0 else 1.0

        def objective(move: float) -> float:
            return float(weight @ self.value(prediction + move * along))

        found = minimize_scalar(objective, bracket=(-reach, reach), method="brent", tol=1e-10)
        return float(found.x) if found.fun < objective(0.0) else 0.0

    def balanced(self, dual: FloatArray, weight: FloatArray, offsets: FloatArray) -> FloatArray:
        """Return a dual point near ``dual`` in the domain with Σ weight_i offsetsᵀ dual_i = 0.

        ``offsets`` is (p, m). The default implementation adds the same smallest shift to all rows.
        """
        total = offsets.T @ (weight @ dual)
        shift = np.linalg.lstsq(offsets.T @ offsets, total / weight.sum(), rcond=None)[0]
        return dual - offsets @ shift


class Interior(PredictionLoss):
    r"""A loss whose conjugate is quadratic on a box, with a barrier that keeps duals inside.

    .. math:: \ell^*(\beta) - \mu \sum_j \bigl(\log(\beta_j - l_j) + \log(u_j - \beta_j)\bigr)

    On the central path the barrier adds 2 p μ to the gap.
    """

    smooth = True

    def __init__(
        self,
        loss: Residual,
        lower: FloatArray,
        upper: FloatArray,
        curvature: FloatArray,
        barrier: float,
    ) -> None:
        self.loss, self.lower, self.upper, self.curvature = loss, lower, upper, curvature
        self.barrier, self.n_outputs = barrier, loss.n_outputs
        self.unit, self.step = loss.unit, loss.step

    def conjugate(self, dual: FloatArray) -> FloatArray:
        value = np.empty(len(dual))
        barrier_conjugate(np.ascontiguousarray(dual), *self.parameters, value)
        return value

    def conjugate_derivatives(self, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        slope, hessian = np.empty(dual.shape), np.empty(dual.shape)
        barrier_derivatives(np.ascontiguousarray(dual), *self.parameters, slope, hessian)
        return slope, hessian

    def reach(self, dual: FloatArray, change: FloatArray) -> float:
        """Return the step, at most one, that goes 99.5 % of the way to the boundary."""
        dual, change = np.ascontiguousarray(dual), np.ascontiguousarray(change)
        return min(1.0, 0.995 * steps_to_border(dual, change, self.lower, self.upper))

    @property
    def parameters(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]:
        """Arguments of the compiled loops."""
        return self.loss.targets, self.lower, self.upper, self.curvature, self.barrier


class LogLikelihood(PredictionLoss):
    r"""Negative log-likelihood of a density s z, with z the prediction.

    .. math:: \ell(z) = -\log(s z), \qquad
              \ell^*(\beta) = -1 - \log(-\beta) + \log s \quad (\beta < 0)

    The prox of the conjugate is the negative root of
    :math:`\beta^2 - v\beta - \mathrm{step} = 0`.

    Parameters
    ----------
    scale : float, default=1.0
        The factor s > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import LogLikelihood
    >>> LogLikelihood().value(np.array([[0.5], [0.25]])).round(3)
    array([0.693, 1.386])
    """

    smooth = True

    def __init__(self, scale: float = 1.0) -> None:
        self.shift = float(np.log(scale))

    def value(self, prediction: FloatArray) -> FloatArray:
        z = prediction[:, 0]
        return -np.log(z, out=np.full(len(z), -np.inf), where=z > 0.0) - self.shift

    def conjugate(self, dual: FloatArray) -> FloatArray:
        beta = -dual[:, 0]
        logarithm = np.log(beta, out=np.full(len(beta), -np.inf), where=beta > 0.0)
        return self.shift - 1.0 - logarithm

    def conjugate_prox(self, point: FloatArray, step: float | FloatArray) -> FloatArray:
        root = np.hypot(point, 2.0 * np.sqrt(step))
        # the form without cancellation
        positive = np.maximum(point, 0.0)
        direct = 0.5 * (np.minimum(point, 0.0) - root)
        return np.where(point > 0.0, -2.0 * step / (root + positive), direct)

    def conjugate_prox_jacobian(self, point: FloatArray, step: float | FloatArray) -> FloatArray:
        beta = self.conjugate_prox(point, step)
        squares = beta * beta
        return squares / (squares + step)

    def conjugate_derivatives(self, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -1.0 / dual, 1.0 / (dual * dual)


class Poisson(PredictionLoss):
    r"""Negative Poisson log-likelihood of counts with mean z, up to a constant.

    .. math:: \ell_i(z) = z - y_i \log z - (y_i - y_i \log y_i) \ge 0

    .. math:: \ell_i^*(\beta) = -y_i \log(1 - \beta) \quad (\beta < 1,\ \beta \le 1
              \text{ if } y_i = 0)

    Parameters
    ----------
    targets : array-like of shape (n,)
        Counts y >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import Poisson
    >>> Poisson([3, 0, 1]).value(np.array([[2.0], [2.0], [2.0]])).round(3)
    array([0.216, 2.   , 0.307])
    """

    def __init__(self, targets: npt.ArrayLike, weight: FloatArray | None = None) -> None:
        self.targets = np.asarray(targets, dtype=np.float64)[:, None]
        self.smooth = bool(np.all(self.targets > 0.0))
        mean = float(np.average(self.targets[:, 0], weights=weight))
        if mean <= 0.0:
            self.unit = self.step = 1.0
            return
        constant = np.full_like(self.targets, mean)
        deviance = float(np.average(self.value(constant), weights=weight))
        self.unit = deviance if deviance > 0.0 else mean
        self.step = 1.0 / mean

    def value(self, prediction: FloatArray) -> FloatArray:
        y, z = self.targets, prediction
        logarithm = np.log(z, out=np.full_like(z, -np.inf), where=z > 0.0)
        earned = np.where(y > 0.0, y * np.where(y > 0.0, logarithm, 0.0), 0.0)
        loss = z - earned - y + xlogy(y, y)
        # for y = 0 the domain z >= 0 is what the model guarantees
        return np.where((y == 0.0) & (z < 0.0), np.inf, loss)[:, 0]

    def conjugate(self, dual: FloatArray) -> FloatArray:
        y, rest = self.targets, 1.0 - dual
        inside = (rest > 0.0) | ((y == 0.0) & (rest >= 0.0))
        return np.where(inside, -xlogy(y, np.where(rest > 0.0, rest, 1.0)), np.inf)[:, 0]

    def conjugate_prox(self, point: FloatArray, step: float | FloatArray) -> FloatArray:
        # with g = 1 - beta > 0: g² - (1 - point) g - step y = 0
        v, product = 1.0 - point, step * self.targets
        root = np.hypot(v, 2.0 * np.sqrt(product))
        negative = root - np.minimum(v, 0.0)
        low = np.divide(2.0 * product, negative, out=np.zeros_like(v), where=negative > 0.0)
        return 1.0 - np.where(v > 0.0, 0.5 * (v + root), low)

    def conjugate_prox_jacobian(self, point: FloatArray, step: float | FloatArray) -> FloatArray:
        rest = 1.0 - self.conjugate_prox(point, step)
        squares = rest * rest
        total = squares + step * self.targets
        return np.divide(squares, total, out=np.zeros_like(squares), where=total > 0.0)

    def conjugate_derivatives(self, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        rest = 1.0 - dual
        return self.targets / rest, self.targets / (rest * rest)


class Residual(PredictionLoss):
    r"""A loss of residuals from :mod:`fenchel.losses`, as a loss of predictions.

    .. math:: \ell_i(z) = \ell(y_i - z), \qquad
              \ell_i^*(\beta) = \langle\beta, y_i\rangle + \ell^*(-\beta)

    The ``unit`` of relative gaps is the mean loss of the best constant. For constant targets it is
    the loss of the prediction zero, because penalties may prevent an exact fit. For targets that
    are all zero it is 1.

    Parameters
    ----------
    loss : Loss
        The loss of residual vectors.
    targets : ndarray of shape (n, p)
        The targets; one column is used for all ``n_outputs``.
    weight : ndarray of shape (n,), optional
        Sample weights, used only for the unit of relative gaps.
    n_outputs : int, optional
        Number of outputs p; by default the number of columns of ``targets``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Pinball
    >>> from fenchel.positive import Residual
    >>> loss = Residual(Pinball(0.9), np.array([[3.0], [1.0]]))
    >>> loss.value(np.array([[2.0], [2.0]]))
    array([0.9, 0.1])
    """

    def __init__(
        self,
        loss: Loss,
        targets: FloatArray,
        weight: FloatArray | None = None,
        n_outputs: int | None = None,
    ) -> None:
        self.loss = loss
        self.n_outputs = n_outputs or loss.n_outputs or targets.shape[1]
        targets = np.broadcast_to(targets, (len(targets), self.n_outputs))
        self.targets = np.ascontiguousarray(targets)
        weight = np.ones(len(targets)) if weight is None else weight
        constant = loss.minimizing_offset(self.targets, weight)
        residual = self.targets - constant
        mean = float(np.average(loss.value(residual), weights=weight))
        if np.abs(residual).max() <= _NOISE * np.abs(self.targets).max():
            mean = 0.0  # the constant is rounded
        spread = float(np.average(np.square(residual).mean(axis=1), weights=weight))
        self.unit = mean or float(np.average(loss.value(self.targets), weights=weight)) or 1.0
        self.step = mean / spread if spread > 0.0 and mean > 0.0 else 1.0

    def value(self, prediction: FloatArray) -> FloatArray:
        return self.loss.value(self.targets - prediction)

    def conjugate(self, dual: FloatArray) -> FloatArray:
        earned = np.einsum("ij,ij->i", dual, self.targets)
        return earned + self.loss.conjugate(-dual)

    def conjugate_prox(self, point: FloatArray, step: float | FloatArray) -> FloatArray:
        return -self.loss.conjugate_prox(step * self.targets - point, step)

    def conjugate_prox_jacobian(self, point: FloatArray, step: float | FloatArray) -> FloatArray:
        return self.loss.conjugate_prox_jacobian(step * self.targets - point, step)

    def interior(self, barrier: float) -> Interior | None:
        box = self.loss.box(self.n_outputs)
        if box is None or box.epsilon > 0.0 or not np.all(box.below == box.above):
            return None
        if not np.all(np.isfinite(box.lower) & np.isfinite(box.upper)):
            return None
        return Interior(self, -box.upper, -box.lower, box.above, barrier)

    def best_move(self, prediction: FloatArray, along: FloatArray, weight: FloatArray) -> float:
        """Minimize along the line; exact for a piecewise linear loss, by a weighted quantile."""
        box = self.loss.box(self.n_outputs)
        if box is None or box.epsilon > 0.0 or box.below.any() or box.above.any():
            return super().best_move(prediction, along, weight)
        if not np.all((along == 0.0) | (along == 1.0)):
            return super().best_move(prediction, along, weight)
        chosen = np.flatnonzero(along)
        residual = np.ascontiguousarray((self.targets - prediction)[:, chosen])
        order = np.argsort(residual, axis=None)
        sides = box.lower[chosen], box.upper[chosen]
        return float(middle_of_falls(residual, order, weight, *sides))

    def balanced(self, dual: FloatArray, weight: FloatArray, offsets: FloatArray) -> FloatArray:
        """Shrink the positive or the negative coordinates that share an offset, to balance it."""
        dual = dual.copy()
        for column in offsets.T:
            if not np.all((column == 0.0) | (column == 1.0)):
                return super().balanced(dual, weight, offsets)
            chosen = np.flatnonzero(column)
            part = dual[:, chosen].reshape(-1, 1)
            shared = np.repeat(weight, len(chosen))
            dual[:, chosen] = self.loss.balanced(part, shared).reshape(len(dual), -1)
        return dual
