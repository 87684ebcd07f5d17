"""The protocol of a loss, and what follows from it alone."""

from __future__ import annotations

from numbers import Real
from typing import NamedTuple

import numpy as np

from fenchel._typing import FloatArray, IntArray


class Envelope(NamedTuple):
    """The proximal dual of a block of rows, see :meth:`Loss.envelope`."""

    dual: FloatArray
    """(n, p): the maximizing dual vectors."""
    value: FloatArray
    """(n,): the maximum, row by row."""
    active: IntArray
    """(m,): the rows whose dual vector moves with the residual."""
    jacobian: FloatArray
    """(m, p) or (m, p, p): generalized Jacobian of the prox on the active rows."""


class Loss:
    r"""A convex loss of residuals in R^p, known by its value and its conjugate.

    .. math:: \ell^*(\beta) = \sup_\xi \langle\beta, \xi\rangle - \ell(\xi)

    A loss of your own subclasses this and defines :meth:`value`, :meth:`conjugate`,
    :meth:`conjugate_prox` and :meth:`conjugate_prox_jacobian`; everything else follows.
    It must be convex with minimum 0 at the residual 0, so that 0 is in the domain of the
    conjugate, and that domain must be solid: shrinking a coordinate towards 0 stays in it.
    A loss that is infinite outside of a ``cone`` is another matter: it also defines
    :meth:`nearest` and :meth:`balanced`.
    :func:`fenchel.testing.check_loss` says what is wrong with a loss.

    Arrays are (n_samples, n_outputs), one row a residual ``y - prediction`` or a dual
    vector. Sample weights never reach a loss: they multiply it outside.

    Attributes
    ----------
    n_outputs : int or None
        Number of outputs that the loss is made for; None if any number is fine.
    separable : bool
        Whether the conjugate is a sum over outputs. Then Jacobians are diagonal, and are
        given as (n, p) arrays instead of (n, p, p).
    statistic : str
        What the constant that minimizes the mean loss is called.
    lipschitz : float
        Smallest L with \|l(a) - l(b)\| <= L \|\|a - b\|\|_2; inf if there is none.
    smoothness : float
        Lipschitz constant of the gradient; inf if the loss has kinks.
    cone : ndarray of shape (m, p) or None
        Vectors g with the loss finite where all <g, residual> >= 0; None if it is everywhere.
    """

    n_outputs: int | None = None
    separable: bool = True
    statistic: str = "minimizer of the mean loss"
    lipschitz: float = np.inf
    smoothness: float = np.inf
    cone: FloatArray | None = None

    def _arguments(self) -> str:
        """What stands between the parentheses of the constructor."""
        return ""

    def __repr__(self) -> str:
        """Show how the loss is made."""
        epsilon = getattr(self, "epsilon", 0.0)
        tube = f".insensitive({epsilon:g})" if epsilon else ""
        return f"{type(self).__name__}({self._arguments()}){tube}"

    def value(self, residual: FloatArray) -> FloatArray:
        """Loss of each row, (n,)."""
        raise NotImplementedError(f"{type(self).__name__} must define value")

    def conjugate(self, dual: FloatArray) -> FloatArray:
        """Conjugate at each row, (n,); inf outside its domain.

        The domain is to be decided up to rounding: points that :meth:`conjugate_prox`
        returns are in it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define conjugate")

    def conjugate_prox(self, point: FloatArray, step: float | FloatArray) -> FloatArray:
        """argmin over beta of step * conjugate(beta) + ||beta - point||²/2, row by row.

        ``step`` is a positive number, or an array (n, 1) with one for each row.
        """
        raise NotImplementedError(f"{type(self).__name__} must define conjugate_prox")

    def conjugate_prox_jacobian(self, point: FloatArray, step: float | FloatArray) -> FloatArray:
        """Return a symmetric generalized Jacobian of :meth:`conjugate_prox` in ``point``.

        Shape (n, p), its diagonal, if the loss is separable, and (n, p, p) otherwise.
        """
        raise NotImplementedError(f"{type(self).__name__} must define conjugate_prox_jacobian")

    def envelope(self, anchor: FloatArray, residual: FloatArray, step: float) -> Envelope:
        """Maximize <beta, residual> - conjugate(beta) - ||beta - anchor||²/(2 step), row by row.

        This is the one call that solvers make in their inner loop; the losses of the
        library compile it.
        """
        point = anchor + step * residual
        dual = self.conjugate_prox(point, step)
        move = dual - anchor
        value = np.einsum("ij,ij->i", dual, residual) - self.conjugate(dual)
        value -= np.einsum("ij,ij->i", move, move) / (2.0 * step)
        jacobian = self.conjugate_prox_jacobian(point, step)
        active = np.flatnonzero(jacobian.reshape(len(jacobian), -1).any(axis=1))
        return Envelope(dual, value, active, jacobian[active])

    def nearest(self, residual: FloatArray) -> FloatArray:
        """Return the nearest residuals where the loss is finite, row by row."""
        return residual

    def balanced(self, dual: FloatArray, weight: FloatArray) -> FloatArray:
        """Return a point of the domain near ``dual`` with Σ weight β = 0 and the same zero rows.

        This default shrinks, output by output, the positive or the negative coordinates,
        which stays in a solid domain; one that is not solid needs a rule of its own.
        """
        magnitude = weight @ np.abs(dual)
        total = weight @ dual
        positive, negative = 0.5 * (magnitude + total), 0.5 * (magnitude - total)
        smaller = np.minimum(positive, negative)
        up = np.divide(smaller, positive, out=np.ones_like(smaller), where=positive > 0)
        down = np.divide(smaller, negative, out=np.ones_like(smaller), where=negative > 0)
        balanced = np.where(dual > 0.0, up, down)
        balanced *= dual
        return balanced

    def minimizing_offset(self, residual: FloatArray, sample_weight: FloatArray) -> FloatArray:
        """Return b in R^p that minimizes the weighted mean of loss(residual - b).

        This default is a proximal Newton method in the p unknowns, good to rounding for
        losses with kinks too; losses with a closed form override it.
        """
        offset = np.average(residual, axis=0, weights=sample_weight)
        centred = residual - offset
        spread = np.sqrt(
            np.average(np.einsum("ij,ij->i", centred, centred), weights=sample_weight)
        )
        scale = np.average(self.value(centred), weights=sample_weight)
        if spread == 0.0 or scale == 0.0:
            return np.asarray(offset)
        step = 10.0 * scale / spread**2
        dual = np.zeros_like(residual)
        for _ in range(40):
            previous = offset
            offset, dual = self._proximal_offset(
                dual, residual, sample_weight, offset, step, scale / spread
            )
            step *= 8.0
            if np.abs(offset - previous).max() > 1e-14 * spread:
                continue
            # it may stand still while the dual grows: optimal only where the two agree
            left = self.value(residual - offset) + self.conjugate(dual)
            left -= np.einsum("ij,ij->i", dual, residual - offset)
            if np.average(left, weights=sample_weight) <= 1e-13 * scale:
                break
        return np.asarray(offset)

    def _proximal_offset(
        self,
        anchor: FloatArray,
        residual: FloatArray,
        sample_weight: FloatArray,
        offset: FloatArray,
        step: float,
        unit: float,
    ) -> tuple[FloatArray, FloatArray]:
        """Minimize the envelope over the offset by Newton; ``unit`` is a typical dual entry."""
        weight = sample_weight / sample_weight.sum()
        envelope = self.envelope(anchor, residual - offset, step)
        objective = weight @ envelope.value
        for _ in range(30):
            gradient = -(weight @ envelope.dual)
            active = weight[envelope.active]
            if self.separable:
                hessian = np.diag(step * (active @ envelope.jacobian))
            else:
                hessian = step * np.einsum("i,ijk->jk", active, envelope.jacobian)
            ridge = 1e-12 * step + 1e-3 * step * np.abs(gradient).max() / unit
            move = np.linalg.solve(hessian + ridge * np.eye(len(offset)), -gradient)
            slope = float(gradient @ move)
            if -slope <= 1e-28 * (abs(objective) + 1e-300):
                break
            size = 1.0
            while size > 1e-9:
                trial = self.envelope(anchor, residual - offset - size * move, step)
                new_objective = weight @ trial.value
                if new_objective <= objective + 1e-4 * size * slope + 1e-15 * abs(objective):
                    break
                size *= 0.5
            offset = offset + size * move
            envelope, objective = trial, new_objective
        return offset, envelope.dual

    def insensitive(self, epsilon: float) -> Loss:
        r"""Return the ε-insensitive version, the infimal convolution with an ℓ2 ball.

        .. math:: \ell_\varepsilon(\xi) = \inf_{\|d\|_2 \le \varepsilon} \ell(\xi - d),
                  \qquad \ell_\varepsilon^* = \ell^* + \varepsilon \|\cdot\|_2

        Rows whose residual is shorter than ε get a dual vector that is exactly zero.

        Parameters
        ----------
        epsilon : float
            Radius of the ball, in the units of y. 0 returns the loss itself.

        References
        ----------
        Sangnier, Fercoq, d'Alché-Buc (2017), section 3.
        """
        from fenchel.losses.infimal import Insensitive  # noqa: PLC0415  (a cycle otherwise)

        return self if check_epsilon(epsilon) == 0.0 else Insensitive(self, epsilon)


def check_epsilon(epsilon: float) -> float:
    """Return epsilon as a float, or say what is allowed."""
    if not isinstance(epsilon, Real) or not 0.0 <= float(epsilon) < np.inf:
        raise ValueError(f"epsilon must be a finite number >= 0, got {epsilon!r}")
    return float(epsilon)
