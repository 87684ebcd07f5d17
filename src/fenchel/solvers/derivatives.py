r"""Derivatives of predictions with respect to the inputs of a fit, with error bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel.design import Design
from fenchel.kernels import KernelFunctions, parameter_gradient
from fenchel.losses import Loss
from fenchel.problem import Problem
from fenchel.solvers.base import Solution, needs_scalar_kernel
from fenchel.solvers.newton_system import cholesky_of, solve_cholesky
from fenchel.solvers.sensitivity import System, stiffness, system_of
from fenchel.solvers.smoothed import Smoothed, unit_step

_BLOCK = 1024  # rows against as many: 8 MB of kernel values
_NUDGE = 1e-3  # in log θ, of the differences that bounds are made of
_NOTHING = 1e-12  # eigenvalues of P', between 0 and 1, that are rounding errors


def sensitivity_of(
    problem: Problem,
    fit: Solution | Smoothed,
    new: FloatArray,
    gradient: FloatArray,
    smoothing: float | None = None,
) -> Sensitivity:
    """Differentiate a smooth function L of predictions at new rows through a fit.

    Parameters
    ----------
    problem : Problem
        A problem with features (n, r) or a Gram matrix, and outputs coupled by a matrix.
    fit : Solution or Smoothed
        The solution. The smaller its gap, the more accurate the derivatives.
    new : ndarray of shape (m, r) or (m, n)
        Features of the new rows. For a Gram matrix, their kernel values with the rows.
    gradient : ndarray of shape (m, p)
        Derivatives of L with respect to the predictions, at the predictions of the fit.
    smoothing : float, optional
        Step t of the smoothed loss, if a smoothed loss was fitted.

    Returns
    -------
    Sensitivity

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.solvers import Newton, sensitivity_of
    >>> from fenchel.testing import small_problems
    >>> problem = small_problems()[0]
    >>> solution = Newton(tol=1e-10).solve(problem)
    >>> new = np.ones((1, 4))  # one row
    >>> sensitivity = sensitivity_of(problem, solution, new, gradient=np.ones((1, 1)))
    >>> sensitivity.push.shape  # derivatives of the prediction in the targets
    (30, 1)
    """
    if (missing := needs_scalar_kernel(problem)) is not None:
        raise ValueError(f"problem cannot be differentiated: it {missing}")
    smoothed = smoothing is not None
    step = unit_step(problem) if smoothing is None else smoothing
    coef = problem.weight[:, None] * fit.dual
    residual = problem.targets - problem.design.image(coef) - fit.offset
    point = step * residual if smoothed else fit.dual + step * residual
    jacobian = problem.loss.conjugate_prox_jacobian(point, step)
    system = system_of(problem, stiffness(problem, jacobian, step, smoothed=smoothed))
    across = _across(problem.design, new, gradient)
    total = gradient.sum(axis=0)
    push, offset = system.solve(across @ problem.design.output_matrix, total)
    gap = np.nan
    if isinstance(fit, Solution):
        rounding = 4.0 * np.finfo(float).eps * abs(fit.certificate.primal)
        gap = max(fit.certificate.gap, rounding)
    return Sensitivity(
        problem,
        coef,
        gradient,
        push,
        offset,
        across - _among(problem.design, push),
        gap,
        _Piece(fit.dual, point, step, jacobian, system),
    )


def _across(design: Design, new: FloatArray, push: FloatArray) -> FloatArray:
    """Values on the rows of Σ k(·, x_v) push_v over new rows."""
    pulled = new.T @ push
    return pulled if design.features is None else design.features @ pulled


def _among(design: Design, push: FloatArray) -> FloatArray:
    """Values on the rows of Σ k(·, x_i) push_i."""
    features = design.features
    if features is None:
        return np.asarray(design.kernel_values.times(push))
    return features @ (features.T @ push)


@dataclass(frozen=True)
class _Piece:
    """Where the fit is on the prox P: β = P(point), and the Jacobian there."""

    dual: FloatArray
    point: FloatArray
    step: float
    jacobian: FloatArray
    system: System


@dataclass(frozen=True)
class Sensitivity:
    r"""Derivatives of a smooth function L of the predictions of a fit.

    With :math:`g_v = \nabla_v L` and dual coefficients :math:`a_i = c_i \beta_i`, U and w solve
    the system of :mod:`fenchel.solvers.sensitivity`, and

    .. math:: e = \sum_v k(\cdot, x_v)\, g_v - \sum_i k(\cdot, x_i)\, U_i, \qquad
              Q_i = e(x_i) B - w .

    A change of :math:`a` by :math:`\dot a` changes L by :math:`\langle Q, \dot a \rangle`. A
    change of the predictions at fixed dual vectors by :math:`\dot f` changes L by
    :math:`-\langle U, \dot f \rangle`, in addition to its direct effect. Therefore

    .. math:: \frac{\mathrm{d} L}{\mathrm{d} \log\alpha} = -\langle Q, a \rangle, \quad
              \frac{\mathrm{d} L}{\mathrm{d} B} = \sum_i e(x_i)^\top a_i, \quad
              \frac{\mathrm{d} L}{\mathrm{d} y} = U, \quad
              \frac{\mathrm{d} L}{\mathrm{d} \theta} = \sum_i \langle \dot e(x_i) B, a_i \rangle

    where :math:`\dot e` is e with the derivatives of k in place of k. These formulas are valid if
    no dual vector is at the boundary of its piece of the prox; at a boundary the derivatives are
    one-sided. For fits on features, the kernel is that of the features.

    **Error.** All derivatives are linear in a: :math:`\langle T, a \rangle`. With the pieces of
    the prox given, D the block diagonal of :math:`c_i J_i` and a gap G of the objective, the
    coefficients of the solution are within

    .. math:: \langle \delta, K \delta B \rangle + \langle \delta, D^{-1} \delta \rangle
              \le 2 G / \alpha, \qquad \sum_i \delta_i = 0,

    by strong concavity of the dual objective on a piece. The largest
    :math:`\langle T, \delta \rangle` on this ellipsoid is
    :math:`\sqrt{\langle T, u \rangle\, 2G / \alpha}`, where u is the solution of the same system
    for values T and total 0. For dual vectors outside the range of D, the distance from their prox
    is known and is added. The methods ``error_of_`` return this sum. It is a bound on the error of
    the derivatives, with g as given, if

    - the prox is piecewise affine: squares, pinball losses, their thresholds, and insensitive
      versions of one output;
    - all dual vectors of the fit, and their prox, are on the same pieces as those of the solution.

    For other losses it is an estimate. If a piece changes, derivatives jump, and no bound of this
    kind exists.

    Attributes
    ----------
    problem : Problem
        The fitted problem.
    coef : ndarray of shape (n, p)
        a.
    gradient : ndarray of shape (m, p)
        g.
    push : ndarray of shape (n, p)
        U, the derivatives of L with respect to the targets.
    offset : ndarray of shape (p,)
        w.
    values : ndarray of shape (n, p)
        e on the rows.
    gap : float
        G; NaN for a smoothed loss, for which there is no error bound.

    References
    ----------
    Bertrand, Klopfenstein, Massias, Blondel, Vaiter, Gramfort, Salmon (2022), Implicit
    differentiation for fast hyperparameter selection in non-smooth convex learning.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.solvers import Newton, sensitivity_of
    >>> from fenchel.testing import small_problems
    >>> problem = small_problems()[0]
    >>> solution = Newton(tol=1e-10).solve(problem)
    >>> sensitivity = sensitivity_of(problem, solution, np.ones((1, 4)), np.ones((1, 1)))
    >>> round(sensitivity.alpha(), 3)  # of the prediction, in log alpha
    -0.303
    """

    problem: Problem
    coef: FloatArray
    gradient: FloatArray
    push: FloatArray
    offset: FloatArray
    values: FloatArray
    gap: float
    piece: _Piece = field(repr=False)

    @cached_property
    def _pull(self) -> FloatArray:
        """Q, (n, p)."""
        return self.values @ self.problem.design.output_matrix - self.offset

    def alpha(self) -> float:
        """Derivative with respect to log alpha."""
        return -float(np.vdot(self._pull, self.coef))

    def sample_weight(self) -> FloatArray:
        """Derivative with respect to the weight of each row, (n,)."""
        weight = self.problem.sample_weight
        earned = np.einsum("ij,ij->i", self._pull, self.coef)
        return np.asarray(earned / weight - earned.sum() / weight.sum())

    def coupling(self) -> FloatArray:
        """Derivative with respect to B = S Sᵀ, symmetric (p, p), to be multiplied by a change."""
        found = self.values.T @ self.coef
        return np.asarray(0.5 * (found + found.T))

    def loss(self, lower: Loss, upper: Loss, width: float) -> float:
        """Derivative with respect to a parameter of the loss, by a difference of two losses.

        ``lower`` and ``upper`` are the losses with a slightly smaller and larger parameter, and
        ``width`` is the difference of the two. Only their prox is used.

        Examples
        --------
        >>> import numpy as np
        >>> from fenchel.design import Plain
        >>> from fenchel.losses import Absolute
        >>> from fenchel.problem import Problem
        >>> from fenchel.solvers import Newton, sensitivity_of
        >>> x = np.array([[-1.0], [1.0], [2.0]])
        >>> tube = Absolute().insensitive
        >>> problem = Problem(tube(0.5), Plain(x, np.eye(1)), 2 * x, np.ones(3), 0.1, False)
        >>> found = sensitivity_of(problem, Newton(1e-12).solve(problem), x[2:], np.ones((1, 1)))
        >>> round(found.loss(tube(0.4), tube(0.6), 0.2), 6)  # the row 2 is on the tube
        -1.0
        """
        piece = self.piece
        change = upper.conjugate_prox(piece.point, piece.step)
        change = (change - lower.conjugate_prox(piece.point, piece.step)) / width
        outside, inside = _parts(piece.jacobian, change)
        moved = np.vdot(self.push, inside) / piece.step
        return float(moved + np.vdot(self._pull, self.problem.weight[:, None] * outside))

    def kernel(
        self, kernel: Any, X: FloatArray, X_new: FloatArray, landmarks: FloatArray | None = None
    ) -> FloatArray:
        r"""Derivatives with respect to the open parameters ``theta`` of the kernel, (n_dims,).

        With landmarks Z, the kernel of the fit is
        :math:`k(x, Z)\, k(Z, Z)^{-1} k(Z, x')`, that of Nyström and Cholesky features, and it is
        differentiated at fixed landmarks. Otherwise it is k, or features accurate enough to
        stand for k.

        Parameters
        ----------
        kernel : kernel
        X : ndarray of shape (n, d)
            The rows.
        X_new : ndarray of shape (m, d)
            The new rows.
        landmarks : ndarray of shape (l, d), optional

        Returns
        -------
        ndarray of shape (n_dims,)
        """
        mixed = self.coef @ self.problem.design.output_matrix
        if landmarks is None:
            direct = _contracted(kernel, X_new, X, self.gradient, mixed)
            return direct - _contracted(kernel, X, X, self.push, mixed)
        solved = self._at_landmarks(kernel, landmarks, X, X_new)
        inner = _at(kernel, landmarks, _values(kernel, landmarks, X, mixed))
        found = _contracted(kernel, X_new, landmarks, self.gradient, inner)
        found -= _contracted(kernel, X, landmarks, self.push, inner)
        found += _contracted(kernel, X, landmarks, mixed, solved)
        return found - _contracted(kernel, landmarks, landmarks, solved, inner)

    def _at_landmarks(
        self, kernel: Any, landmarks: FloatArray, X: FloatArray, X_new: FloatArray
    ) -> FloatArray:
        """Coefficients of e at landmarks."""
        values = _values(kernel, landmarks, X_new, self.gradient)
        values -= _values(kernel, landmarks, X, self.push)
        return _at(kernel, landmarks, values)

    def error_of_alpha(self) -> float:
        """Bound on the error of :meth:`alpha`."""
        return self._error(-self._pull)

    def error_of_coupling(self, change: FloatArray) -> float:
        """Bound on the error of the derivative for a change of B, (p, p)."""
        return self._error(self.values @ change)

    def error_of_kernel(
        self, kernel: Any, X: FloatArray, X_new: FloatArray, landmarks: FloatArray | None = None
    ) -> FloatArray:
        """Bounds on the errors of :meth:`kernel`, (n_dims,); each takes two kernel evaluations."""
        output, theta = self.problem.design.output_matrix, kernel.theta
        errors = []
        for move in _NUDGE * np.eye(len(theta)):
            high, low = (
                self._function(kernel.clone_with_theta(theta + side), X, X_new, landmarks)
                for side in (move, -move)
            )
            errors.append(self._error((high - low) @ output / (2.0 * _NUDGE)))
        return np.array(errors)

    def _function(
        self, kernel: Any, X: FloatArray, X_new: FloatArray, landmarks: FloatArray | None
    ) -> FloatArray:
        """e on the rows, for another kernel."""
        if landmarks is not None:
            solved = self._at_landmarks(kernel, landmarks, X, X_new)
            return _values(kernel, X, landmarks, solved)
        return _values(kernel, X, X_new, self.gradient) - _values(kernel, X, X, self.push)

    def _error(self, values: FloatArray) -> float:
        """Bound on |<T, a - a*>|."""
        still = np.zeros(self.problem.n_outputs)
        solved, _ = self.piece.system.solve(values, still)
        square = max(float(np.vdot(values, solved)), 0.0)
        known = abs(float(np.vdot(values, self._short)))
        return known + float(np.sqrt(square * 2.0 * self.gap / self.problem.alpha))

    @cached_property
    def _short(self) -> FloatArray:
        """What coefficients are known to have too much: the least that their known parts allow."""
        piece, problem = self.piece, self.problem
        beyond = piece.dual - problem.loss.conjugate_prox(piece.point, piece.step)
        outside = problem.weight[:, None] * _parts(piece.jacobian, beyond)[0]
        image = problem.design.image(outside)
        return outside + piece.system.solve(-image, -outside.sum(axis=0))[0]


def _parts(jacobian: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What vectors have outside of the range of P', and P'⁺ times what they have inside."""
    if jacobian.ndim == 2:
        inside = jacobian > _NOTHING
        return (
            np.where(inside, 0.0, vectors),
            np.divide(vectors, jacobian, out=np.zeros_like(vectors), where=inside),
        )
    values, bases = np.linalg.eigh(jacobian)
    along = np.einsum("ijk,ij->ik", bases, vectors)
    inside = values > _NOTHING
    inverted = np.divide(along, values, out=np.zeros_like(along), where=inside)
    outside = np.where(inside, 0.0, along)
    return tuple(np.einsum("ijk,ik->ij", bases, each) for each in (outside, inverted))


def _blocks(array: FloatArray) -> Iterator[slice]:
    """Rows a thousand at a time."""
    for start in range(0, len(array), _BLOCK):
        yield slice(start, start + _BLOCK)


def _contracted(
    kernel: Any, X: FloatArray, Z: FloatArray, left: FloatArray, right: FloatArray
) -> FloatArray:
    """Σ <left_i, right_j> ∂k(x_i, z_j)/∂θ, from rows that are not zero."""
    mine, theirs = left.any(axis=1), right.any(axis=1)
    X, left, Z, right = X[mine], left[mine], Z[theirs], right[theirs]
    found = np.zeros(kernel.n_dims)
    for a in _blocks(X):
        for b in _blocks(Z):
            found += parameter_gradient(kernel, X[a], Z[b], left[a] @ right[b].T)
    return found


def _values(kernel: Any, X: FloatArray, Z: FloatArray, coef: FloatArray) -> FloatArray:
    """Σ k(x, z_j) coef_j on rows."""
    kept = coef.any(axis=1)
    return KernelFunctions(kernel, Z[kept]).combined(X, coef[kept])


def _at(kernel: Any, landmarks: FloatArray, values: FloatArray) -> FloatArray:
    """Coefficients at landmarks of the function with these values there."""
    return solve_cholesky(cholesky_of(kernel(landmarks)), values)
