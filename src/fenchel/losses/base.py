"""The base classes of losses, and the insensitive and the rescaled version of any loss."""

from __future__ import annotations

import numpy as np

from fenchel._memory import empty
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import NOT_NEGATIVE
from fenchel.design import RowBlocks
from fenchel.losses._lengths import fixed_length
from fenchel.losses._offset import minimizing_offset
from fenchel.losses.compiled import scale_by_sign
from fenchel.losses.forms import Box, ConicParts, Envelope, Local, Step

# of a residual: the slope of a smooth loss to the square root of rounding, at least
_SECANT = 1e-4


class ConvexFunction:
    r"""Convex function of each row, defined by its value and its conjugate.

    .. math:: f^*(\beta) = \sup_z \langle\beta, z\rangle - f(z)

    This is the part of a loss that solvers use. :class:`Loss` is a function of residuals, the
    same for all rows. :class:`fenchel.positive.PredictionLoss` is a function of predictions and
    contains its targets. Arrays are (n_samples, n_outputs), with a point or a dual vector in each
    row. Sample weights are not passed to it: the caller multiplies its values by them.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Squared
    >>> Squared().value(np.array([[2.0]])) + Squared().conjugate(np.array([[2.0]]))  # 2 · 2
    array([4.])
    """

    def value(self, residual: FloatArray) -> FloatArray:
        """Return the value at each row, (n,)."""
        raise NotImplementedError(f"{type(self).__name__} must define value")

    def conjugate(self, dual: FloatArray) -> FloatArray:
        """Return the conjugate at each row, (n,); inf outside its domain.

        The domain includes a tolerance for rounding: it must contain the points that
        :meth:`conjugate_prox` returns.
        """
        raise NotImplementedError(f"{type(self).__name__} must define conjugate")

    def conjugate_prox(self, point: FloatArray, step: Step) -> FloatArray:
        """argmin over beta of step * conjugate(beta) + ||beta - point||²/2, row by row.

        ``step`` is a positive number, or an array (n, 1) with one for each row.
        """
        raise NotImplementedError(f"{type(self).__name__} must define conjugate_prox")

    def conjugate_prox_jacobian(self, point: FloatArray, step: Step) -> FloatArray:
        """Return a symmetric generalized Jacobian of :meth:`conjugate_prox` in ``point``.

        Shape (n, p), its diagonal, where outputs do not interact, and (n, p, p) otherwise.
        """
        raise NotImplementedError(f"{type(self).__name__} must define conjugate_prox_jacobian")


class Loss(ConvexFunction):
    r"""Convex loss of residuals in R^p, defined by its value and its conjugate.

    .. math:: \ell^*(\beta) = \sup_\xi \langle\beta, \xi\rangle - \ell(\xi)

    To write your own loss, subclass this class and define :meth:`value`, :meth:`conjugate`,
    :meth:`conjugate_prox` and :meth:`conjugate_prox_jacobian`. All other methods have defaults.
    The loss must be convex with minimum 0 at the residual 0, so that 0 is in the domain of the
    conjugate. That domain must be solid: it contains each of its points also with a coordinate
    shrunk towards 0. A loss that is infinite outside a ``cone`` need not have a solid domain, but
    must also define :meth:`nearest` and :meth:`balanced`.
    :func:`fenchel.testing.check_loss` checks a loss.

    Rows are residuals ``y - prediction``, or dual vectors. Solvers never ask for the type of a
    loss. They use the attributes, and :meth:`box`, :meth:`conic_parts`, :meth:`output` and
    :meth:`local`, whose defaults are correct for any loss.

    Attributes
    ----------
    n_outputs : int or None
        Number of outputs of the loss; None if it takes any number.
    n_targets : int
        Number of targets, if the outputs are several levels for each target. Each group of
        ``n_targets`` consecutive outputs is one level.
    separable : bool
        Whether the conjugate is a sum over outputs, by default True. If so, Jacobians are
        diagonal and stored as (n, p) arrays instead of (n, p, p).
    statistic : str
        Name of the constant that minimizes the mean loss.
    lipschitz : float
        Smallest L with \|l(a) - l(b)\| <= L \|\|a - b\|\|_2; inf if no such L exists.
    smoothness : float
        Lipschitz constant of the gradient; inf if the loss has kinks.
    cone : ndarray of shape (m, p) or None
        Vectors g: the loss is finite where all <g, residual> >= 0. None if finite everywhere.
    epsilon : float
        Radius within which residuals have zero loss, in the norm of the loss. If positive,
        small residuals have dual vectors that are exactly zero.
    radial : bool
        Whether the loss depends only on the length of the residual.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Pinball
    >>> Pinball(0.9).insensitive(0.5).value(np.array([[1.0], [-1.0]]))
    array([0.45, 0.05])
    """

    n_outputs: int | None = None
    n_targets: int = 1
    separable: bool = True
    statistic: str = "minimizer of the mean loss"
    lipschitz: float = np.inf
    smoothness: float = np.inf
    cone: FloatArray | None = None
    epsilon: float = 0.0
    radial: bool = False

    def _arguments(self) -> str:
        """What stands between the parentheses of the constructor."""
        return ""

    def __repr__(self) -> str:
        tube = f".insensitive({self.epsilon:g})" if self.epsilon else ""
        return f"{type(self).__name__}({self._arguments()}){tube}"

    @property
    def bounded(self) -> bool:
        """Whether each coordinate of a dual vector is bounded separately."""
        return self.separable and bool(np.isfinite(self.lipschitz))

    @property
    def degree(self) -> int:
        """Degree d: losses have the unit of residuals to the power d. 2 if smooth, else 1."""
        return 2 if np.isfinite(self.smoothness) else 1

    @property
    def unconstrained(self) -> Loss:
        """The loss without the constraint that residuals are in the ``cone``."""
        return self

    def box(self, n_outputs: int) -> Box | None:
        """Return the box if the conjugate is a quadratic on a box, else None.

        Coordinate descent solvers and the closed form use it.
        """
        return None

    def conic_parts(self, n_outputs: int) -> ConicParts | None:
        """Return the parts of the loss for a conic program, or None if there is no such form."""
        return None

    def output(self, j: int, n_outputs: int) -> Loss | None:
        """Return the loss of output j of ``n_outputs`` alone; None if outputs interact.

        This default is correct for separable losses that are the same for each output. For a
        loss with a fixed number of outputs it returns None.
        """
        return self if self.separable and self.n_outputs is None else None

    def local(self, reach: FloatArray) -> Local:
        """Bound slopes and values for residuals of size at most ``reach`` (p,) per coordinate.

        Derivatives of a convex loss are largest at the ends of an interval. For one output, this
        default uses secants beyond the two ends, which are steeper than all slopes between them.
        For several outputs it uses ``lipschitz``; slopes are inf if that is.
        """
        if len(reach) > 1:
            length = float(np.linalg.norm(reach))
            return Local(np.array([self.lipschitz]), False, self.lipschitz * length)
        step = _SECANT * float(reach[0])
        ends = np.array([1.0, -1.0])[:, None] * reach
        values = self.value(ends)
        beyond = (self.value(ends * (1.0 + _SECANT)) - values) / step if step else np.zeros(2)
        return Local(np.minimum([beyond.max()], self.lipschitz), True, float(values.max()))

    def on_curves(self, measure: FloatArray) -> Loss | None:
        """Return the loss of residual curves that are scaled by the root of a measure.

        The length of a scaled curve is its L² norm, so a loss that depends only on the length is
        returned unchanged. None means that the loss applies pointwise, see :func:`curve_loss`.
        """
        return self if self.radial else None

    def rescaled(self, scale: float) -> Loss:
        r"""Return the loss of residuals in units ``scale`` times larger.

        .. math:: \ell_s(\xi) = \ell(s \xi) / s^d, \qquad
                  \ell_s^*(\beta) = \ell^*(s^{d-1} \beta) / s^d

        where d is the ``degree``. The squared, absolute and pinball losses do not change.
        Thresholds are divided by s.
        """
        return self if scale == 1.0 else Rescaled(self, scale)

    def envelope(self, anchor: FloatArray, residual: FloatArray, step: float) -> Envelope:
        """Maximize <beta, residual> - conjugate(beta) - ||beta - anchor||²/(2 step), row by row.

        Solvers call this method in their inner loop. It is compiled for the losses of the
        library.
        """
        point = anchor + step * residual
        dual, jacobian = self._prox_and_jacobian(point, step)
        move = dual - anchor
        value = np.einsum("ij,ij->i", dual, residual) - self.conjugate(dual)
        value -= np.einsum("ij,ij->i", move, move) / (2.0 * step)
        active = np.flatnonzero(jacobian.reshape(len(jacobian), -1).any(axis=1))
        return Envelope(dual, value, active, jacobian[active])

    def _prox_and_jacobian(self, point: FloatArray, step: Step) -> tuple[FloatArray, FloatArray]:
        """Prox and its Jacobian, for losses that find both with less work than one by one."""
        return self.conjugate_prox(point, step), self.conjugate_prox_jacobian(point, step)

    def at(self, rows: slice | IntArray) -> Loss:
        """Return the loss for some rows; differs from this loss only if parameters vary by row."""
        return self

    def nearest(self, residual: FloatArray) -> FloatArray:
        """Return the nearest residuals at which the loss is finite, row by row."""
        return residual

    def balanced(self, dual: FloatArray, weight: FloatArray) -> FloatArray:
        """Return a point of the domain near ``dual`` with Σ weight β = 0 and the same zero rows.

        This default shrinks the positive or the negative coordinates of each output. The result
        is in the domain if that is solid. Losses with another domain must override this method.
        """
        blocks = RowBlocks(*dual.shape)
        magnitude, total = blocks.sizes_and_sums(weight, dual)
        positive, negative = 0.5 * (magnitude + total), 0.5 * (magnitude - total)
        smaller = np.minimum(positive, negative)
        up = np.divide(smaller, positive, out=np.ones_like(smaller), where=positive > 0)
        down = np.divide(smaller, negative, out=np.ones_like(smaller), where=negative > 0)
        balanced = empty(dual.shape)
        blocks.map(lambda rows: scale_by_sign(dual[rows], up, down, balanced[rows]))
        return balanced

    def minimizing_offset(self, residual: FloatArray, sample_weight: FloatArray) -> FloatArray:
        """Return b in R^p that minimizes the weighted mean of loss(residual - b).

        This default is a proximal Newton method in the p unknowns. It is accurate to rounding,
        also for losses with kinks. Losses with a closed form override it.
        """
        return minimizing_offset(self, residual, sample_weight)

    def offset_for_new_rows(
        self, residual: FloatArray, sample_weight: FloatArray, n_rows: float
    ) -> FloatArray:
        """Return the offset b in R^p for new rows, from the residuals of ``n_rows`` rows.

        This default is the offset that minimizes the loss of the given residuals.
        """
        return self.minimizing_offset(residual, sample_weight)

    def rearranged(self, offset: FloatArray) -> FloatArray:
        """Return offsets (p,) reordered so that the loss of no row increases, for any target.

        Used for levels of one target (or of each of ``n_targets``) that share one function and
        differ only by their offsets. This default returns the offsets unchanged.
        """
        return offset

    def insensitive(self, epsilon: float) -> Loss:
        r"""Return the ε-insensitive version, the infimal convolution with an ℓ2 ball.

        .. math:: \ell_\varepsilon(\xi) = \inf_{\|d\|_2 \le \varepsilon} \ell(\xi - d),
                  \qquad \ell_\varepsilon^* = \ell^* + \varepsilon \|\cdot\|_2

        Rows whose residual is shorter than ε have a dual vector that is exactly zero.

        Parameters
        ----------
        epsilon : float
            Radius of the ball, in the units of y. 0 returns the loss itself.

        References
        ----------
        Sangnier, Fercoq, d'Alché-Buc (2017), section 3.
        """
        return self if check_epsilon(epsilon) == 0.0 else Insensitive(self, epsilon)


class Insensitive(Loss):
    r"""ε-insensitive version of any loss: infimal convolution with an ℓ2 ball.

    .. math:: \ell_\varepsilon = \ell \,\square\, \chi(\|\cdot\|_2 \le \varepsilon), \qquad
              \ell_\varepsilon^* = \ell^* + \varepsilon \|\cdot\|_2

    It uses only the prox of the given loss. If the length ρ of the result is known, the prox and
    the exact primal value are each one prox of the given loss with another step. ρ is found by
    the ITP method. The losses of the library have faster versions, which
    ``loss.insensitive(epsilon)`` returns.

    Parameters
    ----------
    loss : Loss
        The given loss, finite everywhere.
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
        self.radial = loss.radial
        self.lipschitz = loss.lipschitz
        self.smoothness = loss.smoothness

    def __repr__(self) -> str:
        return f"{self.loss!r}.insensitive({self.epsilon:g})"

    def at(self, rows: slice | IntArray) -> Insensitive:
        part = self.loss.at(rows)
        return self if part is self.loss else Insensitive(part, self.epsilon)

    def insensitive(self, epsilon: float) -> Insensitive:
        """Return the infimal convolution with another ball: the radii are added."""
        return Insensitive(self.loss, self.epsilon + check_epsilon(epsilon))

    def on_curves(self, measure: FloatArray) -> Loss | None:
        """Return the ε-insensitive version of the given loss on curves."""
        own = self.loss.on_curves(measure)
        return None if own is None else own.insensitive(self.epsilon)

    def conjugate(self, dual: FloatArray) -> FloatArray:
        return self.loss.conjugate(dual) + self.epsilon * np.linalg.norm(dual, axis=1)

    def conjugate_prox(self, point: FloatArray, step: Step) -> FloatArray:
        step = np.broadcast_to(np.asarray(step, float), (len(point), 1))
        threshold = step * self.epsilon
        length = np.linalg.norm(point, axis=1, keepdims=True)

        def dual_of_length(rho: FloatArray) -> FloatArray:
            scale = rho / (rho + threshold)
            return self.loss.conjugate_prox(point * scale, step * scale)

        dual = fixed_length(dual_of_length, np.where(length > threshold, length, 1.0))
        return np.where(length > threshold, dual, 0.0)

    def conjugate_prox_jacobian(self, point: FloatArray, step: Step) -> FloatArray:
        return self._prox_and_jacobian(point, step)[1]

    def _prox_and_jacobian(self, point: FloatArray, step: Step) -> tuple[FloatArray, FloatArray]:
        """One search of lengths serves both."""
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
        return dual, np.where(alive[:, None, None], jacobian, 0.0)

    def value(self, residual: FloatArray) -> FloatArray:
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
        dual = fixed_length(dual_of_length, high)
        value = np.einsum("ij,ij->i", dual, residual) - self.conjugate(dual)
        return np.where(length[:, 0] > self.epsilon, np.maximum(value, 0.0), 0.0)


class Rescaled(Loss):
    r"""Loss of residuals in other units, see :meth:`Loss.rescaled`.

    Parameters
    ----------
    loss : Loss
        The loss in the units of y.
    scale : float
        s > 0, by which residuals have been divided.
    """

    def __init__(self, loss: Loss, scale: float) -> None:
        self.loss = loss
        self.scale = float(scale)
        self._divisor = self.scale**loss.degree
        self._ratio = self._divisor / self.scale  # of dual vectors: those inside to those here
        self.n_outputs = loss.n_outputs
        self.separable = loss.separable
        self.radial = loss.radial
        self.statistic = loss.statistic
        self.cone = loss.cone
        self.epsilon = loss.epsilon / self.scale
        self.lipschitz = loss.lipschitz * self.scale / self._divisor
        self.smoothness = loss.smoothness * self.scale**2 / self._divisor

    def __repr__(self) -> str:
        return f"{self.loss!r}.rescaled({self.scale:g})"

    def at(self, rows: slice | IntArray) -> Rescaled:
        part = self.loss.at(rows)
        return self if part is self.loss else Rescaled(part, self.scale)

    def value(self, residual: FloatArray) -> FloatArray:
        return self.loss.value(self.scale * residual) / self._divisor

    def conjugate(self, dual: FloatArray) -> FloatArray:
        return self.loss.conjugate(dual * self._ratio) / self._divisor

    def _inside(self, point: FloatArray, step: Step) -> tuple[FloatArray, Step]:
        """Point and step of the prox of the loss itself."""
        return point * self._ratio, step * (self._ratio / self.scale)

    def conjugate_prox(self, point: FloatArray, step: Step) -> FloatArray:
        return self.loss.conjugate_prox(*self._inside(point, step)) / self._ratio

    def conjugate_prox_jacobian(self, point: FloatArray, step: Step) -> FloatArray:
        return self.loss.conjugate_prox_jacobian(*self._inside(point, step))

    def _prox_and_jacobian(self, point: FloatArray, step: Step) -> tuple[FloatArray, FloatArray]:
        dual, jacobian = self.loss._prox_and_jacobian(*self._inside(point, step))
        return dual / self._ratio, jacobian

    def nearest(self, residual: FloatArray) -> FloatArray:
        if self.cone is None:
            return residual
        return self.loss.nearest(self.scale * residual) / self.scale

    def balanced(self, dual: FloatArray, weight: FloatArray) -> FloatArray:
        return self.loss.balanced(dual * self._ratio, weight) / self._ratio

    def minimizing_offset(self, residual: FloatArray, sample_weight: FloatArray) -> FloatArray:
        return self.loss.minimizing_offset(self.scale * residual, sample_weight) / self.scale

    def on_curves(self, measure: FloatArray) -> Loss | None:
        """Return the given loss on curves, in these units."""
        own = self.loss.on_curves(measure)
        return None if own is None else own.rescaled(self.scale)

    def rescaled(self, scale: float) -> Loss:
        """Return the loss in other units again: the scales are multiplied."""
        return self.loss.rescaled(self.scale * scale)


def check_epsilon(epsilon: float) -> float:
    """Return epsilon as a float, or raise an error that says what is allowed."""
    return NOT_NEGATIVE(epsilon, "epsilon")
