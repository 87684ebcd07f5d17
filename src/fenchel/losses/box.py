"""Losses whose conjugate is a quadratic on a box, and their ε-insensitive versions."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
import numpy.typing as npt

from fenchel._threads import in_threads
from fenchel._typing import FloatArray
from fenchel.losses import compiled
from fenchel.losses.base import Loss, check_epsilon
from fenchel.losses.forms import ROUNDING, Box, ConicParts, Envelope, Local, Step, at_end
from fenchel.losses.quantiles import middle_quantiles

_MANY = 20_000  # rows: milliseconds for each output


class BoxQuadratic(Loss):
    r"""Loss whose conjugate is a quadratic on a box; its methods are compiled.

    .. math:: \ell^*(\beta) = \sum_j \tfrac{q_j^\pm}{2} \beta_j^2
              + \chi(l_j \le \beta_j \le u_j) + \varepsilon \|\beta\|_2

    with :math:`q_j^-` for negative and :math:`q_j^+` for positive :math:`\beta_j`. The loss is the
    conjugate of this function: its slopes are ``lower`` and ``upper`` for large residuals, and its
    curvature is 1/q near 0.

    Parameters
    ----------
    lower, upper : array-like of shape (n_outputs,) or float
        Bounds of the dual vector, ``lower < 0 < upper``; infinite for no bound.
    below, above : array-like of shape (n_outputs,) or float
        Curvatures :math:`q^-, q^+ \ge 0` of the conjugate; positive where unbounded.
    epsilon : float
        Radius of insensitivity.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import BoxQuadratic
    >>> loss = BoxQuadratic(lower=-1.0, upper=3.0, below=1.0, above=0.0)
    >>> loss.value(np.array([[-0.5], [-2.0], [2.0]]))
    array([0.125, 1.5  , 6.   ])
    """

    def __init__(
        self,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        below: npt.ArrayLike,
        above: npt.ArrayLike,
        epsilon: float = 0.0,
    ) -> None:
        arrays = np.broadcast_arrays(*(np.asarray(a, float) for a in (lower, upper, below, above)))
        self.n_outputs = len(arrays[0]) if arrays[0].ndim else None
        lo, hi, qlo, qhi = (np.atleast_1d(a).copy() for a in arrays)
        self._parameters = lo, hi, qlo, qhi
        self.epsilon = check_epsilon(epsilon)
        if not (np.all(lo < 0) and np.all(hi > 0) and np.all(qlo >= 0) and np.all(qhi >= 0)):
            raise ValueError("a box loss needs lower < 0 < upper and curvatures >= 0")
        if np.any(np.isinf(lo) & (qlo == 0)) or np.any(np.isinf(hi) & (qhi == 0)):
            raise ValueError("a box loss needs a positive curvature where it has no bound")
        many = self.n_outputs is None  # no number is right for all sizes: it grows as sqrt(p)
        self.lipschitz = np.inf if many else float(np.linalg.norm(np.maximum(-lo, hi)))
        flattest = min(qlo.min(), qhi.min())
        self.smoothness = float(1.0 / flattest) if flattest > 0 else np.inf

    def _arguments(self) -> str:
        if type(self) is not BoxQuadratic:
            return ""
        names = ("lower", "upper", "below", "above")
        pairs = zip(names, self._parameters, strict=True)
        return ", ".join(f"{name}={values.tolist()}" for name, values in pairs)

    @property
    def separable(self) -> bool:  # type: ignore[override]  # the base has an attribute
        """Whether the loss is a sum over outputs: true if ε is 0 or there is one output."""
        return self.epsilon == 0.0 or self.n_outputs == 1

    def insensitive(self, epsilon: float) -> Self:
        """Return the infimal convolution with another ball: the radii are added."""
        new = copy.copy(self)
        new.epsilon = self.epsilon + check_epsilon(epsilon)
        return new

    def parameters(self, n_outputs: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return lower, upper, below and above, with one entry for each output."""
        p = n_outputs
        lower, upper, below, above = self._parameters
        if len(lower) == p:
            return self._parameters
        return np.full(p, lower), np.full(p, upper), np.full(p, below), np.full(p, above)

    @property
    def bounded(self) -> bool:
        """Whether the box is bounded."""
        lower, upper, _, _ = self._parameters
        return bool(np.all(np.isfinite(lower)) and np.all(np.isfinite(upper)))

    @property
    def radial(self) -> bool:  # type: ignore[override]  # the base has an attribute
        """Whether the loss is a multiple of the squared length, or its ε-insensitive version."""
        lower, upper, below, above = self._parameters
        alike = np.all(below == below[0]) and np.all(above == below[0])
        return bool(np.all(np.isinf(lower)) and np.all(np.isinf(upper)) and alike)

    def box(self, n_outputs: int) -> Box:
        """Return the box, with one entry for each output."""
        return Box(*self._sides(n_outputs))

    def _sides(self, n_outputs: int) -> compiled.Sides:
        return (*self.parameters(n_outputs), self.epsilon)

    def conic_parts(self, n_outputs: int) -> ConicParts:
        """Return the box and the ball."""
        return ConicParts(box=self.box(n_outputs)._replace(epsilon=0.0), epsilon=self.epsilon)

    def output(self, j: int, n_outputs: int) -> BoxQuadratic | None:
        """Return the loss of output j; None with ε > 0 and several outputs."""
        if self.epsilon > 0.0 and n_outputs > 1:
            return None
        lower, upper, below, above = (v[[j]] for v in self.parameters(n_outputs))
        return BoxQuadratic(lower, upper, below, above, self.epsilon)

    def local(self, reach: FloatArray) -> Local:
        """Exact for one output or without ε; otherwise slopes are an upper bound.

        The bound is the slope at a residual that is shorter in every coordinate.
        """
        p = len(reach)
        reach = np.maximum(reach - self.epsilon, 0.0) if p == 1 else reach
        lower, upper, below, above = self.parameters(p)
        down, up = at_end(reach, -lower, below), at_end(reach, upper, above)
        slopes = np.maximum(down[0], up[0])
        most = float(np.maximum(down[1], up[1]).sum())
        if self.epsilon == 0.0 or p == 1:
            return Local(slopes, True, most)
        return Local(np.array([np.linalg.norm(slopes)]), False, most)

    def rescaled(self, scale: float) -> Self:
        """Return a loss of the same class with other parameters."""
        new = copy.copy(self)
        lower, upper, below, above = self._parameters
        if self.degree == 2:
            new._parameters = lower / scale, upper / scale, below, above
            new.lipschitz = self.lipschitz / scale
        else:
            new._parameters = lower, upper, below / scale, above / scale
        new.epsilon = self.epsilon / scale
        return new

    def _uncoupled(self, array: FloatArray) -> bool:
        return self.epsilon == 0.0 or array.shape[1] == 1

    def value(self, residual: FloatArray) -> FloatArray:
        uncoupled = self._uncoupled(residual)
        run = compiled.value_separable if uncoupled else compiled.value_coupled
        value = np.empty(len(residual))
        residual = np.ascontiguousarray(residual)
        run(residual, self._sides(residual.shape[1]), value)
        return value

    def conjugate(self, dual: FloatArray) -> FloatArray:
        value, slack = np.empty(len(dual)), 1.0 + ROUNDING
        dual = np.ascontiguousarray(dual)
        compiled.conjugate(dual, self._sides(dual.shape[1]), slack, value)
        return value

    def _prox_and_jacobian(self, point: FloatArray, step: Step) -> tuple[FloatArray, FloatArray]:
        """Prox and Jacobian, ``step`` a number or one for each row."""
        point = np.ascontiguousarray(point)
        n, p = point.shape
        dual = np.empty((n, p))
        uncoupled = self._uncoupled(point)
        jacobian = np.empty((n, p) if uncoupled else (n, p, p))
        prox = compiled.prox_separable if uncoupled else compiled.prox_coupled
        steps = np.broadcast_to(np.asarray(step, float), (n, 1))[:, 0].copy()
        prox(point, steps, self._sides(p), dual, jacobian)
        if not uncoupled or self.separable:
            return dual, jacobian
        return dual, jacobian[:, :, None]  # one output of a loss for any number of them

    def conjugate_prox(self, point: FloatArray, step: Step) -> FloatArray:
        return self._prox_and_jacobian(point, step)[0]

    def conjugate_prox_jacobian(self, point: FloatArray, step: Step) -> FloatArray:
        return self._prox_and_jacobian(point, step)[1]

    def envelope(self, anchor: FloatArray, residual: FloatArray, step: float) -> Envelope:
        n, p = residual.shape
        uncoupled = self.epsilon == 0.0 or p == 1
        run = compiled.envelope_separable if uncoupled else compiled.envelope_coupled
        room = Envelope.room(n, (p,) if uncoupled else (p, p))
        found = Envelope.of(room, run(anchor, residual, step, self._sides(p), *room))
        if uncoupled and self.epsilon > 0.0 and self.n_outputs != 1:
            return found._replace(jacobian=found.jacobian[:, :, None])
        return found

    def minimizing_offset(self, residual: FloatArray, sample_weight: FloatArray) -> FloatArray:
        """Exact for each output if the loss is separable; Newton's method otherwise."""
        if not self._uncoupled(residual):
            return super().minimizing_offset(residual, sample_weight)
        lower, upper, below, above = self.parameters(residual.shape[1])
        linear = self.epsilon == 0.0 and not (below.any() or above.any())
        if linear and sample_weight.min() == sample_weight.max():
            return middle_quantiles(residual, upper / (upper - lower))
        ends = zip(lower, upper, below, above, strict=True)
        columns = list(zip(residual.T, ends, strict=True))

        def least(column: tuple[FloatArray, tuple[float, float, float, float]]) -> float:
            return _offset(column[0], sample_weight, (*column[1], self.epsilon))

        if len(residual) < _MANY:
            return np.array([least(column) for column in columns])
        return np.array(in_threads(least, columns))


def _offset(residual: FloatArray, weight: FloatArray, curve: compiled.Curve) -> float:
    """Minimize the weighted sum of one output's loss(residual - b) over b, exactly."""
    lower, upper, below, above, epsilon = curve
    if below == above == 0.0:
        return _weighted_breakpoint(residual, weight, lower, upper, epsilon)
    if below == above and -lower == upper == np.inf and epsilon == 0.0:
        return float(np.average(residual, weights=weight))
    curve = lower, upper, max(below, 1e-300), max(above, 1e-300), epsilon
    low, high = float(residual.min()), float(residual.max())
    offset = float(np.average(residual, weights=weight))
    for _ in range(200):
        total, slope = compiled.weighted_dual_sum(residual, weight, offset, curve)
        if total > 0.0:
            low = offset
        elif total < 0.0:
            high = offset
        else:
            break
        new = offset + total / slope if slope > 0.0 else np.inf
        if not low < new < high:
            new = 0.5 * (low + high)
        if new in (offset, low, high):
            break
        offset = new
    return offset


def _weighted_breakpoint(
    residual: FloatArray, weight: FloatArray, lower: float, upper: float, epsilon: float
) -> float:
    """Minimize a piecewise linear loss: a weighted quantile of its breakpoints.

    The slope falls by weight * upper at residual - epsilon and by -weight * lower at
    residual + epsilon. Where it is zero on an interval, the middle is returned.
    """
    if epsilon == 0.0:
        points, jumps = residual, weight * (upper - lower)
    else:
        points = np.concatenate([residual - epsilon, residual + epsilon])
        jumps = np.concatenate([weight * upper, -weight * lower])
    order = np.argsort(points, kind="stable")
    points = points[order]
    slope = upper * weight.sum() - np.cumsum(jumps[order])
    tolerance = 1e-12 * (upper - lower) * weight.sum()
    first = min(int(np.searchsorted(-slope, -tolerance)), len(points) - 1)
    if abs(slope[first]) > tolerance:
        return float(points[first])
    last = min(int(np.searchsorted(-slope, tolerance, side="right")), len(points) - 1)
    return float(0.5 * (points[first] + points[last]))
