"""Regularized regression problems, and certificates of dual points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fenchel._memory import empty
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import shown
from fenchel.certificate import Certificate, Certified, FeasiblePoint
from fenchel.design import Design, multiply_rows, row_products, subtract_from
from fenchel.losses import Loss
from fenchel.repair import Repair


@dataclass(frozen=True, eq=False)
class Problem:
    r"""Regularized regression problem: data, loss, space of functions and strength.

    .. math:: P(h, b) = \frac{\alpha}{2} \|h\|^2
              + \sum_i \bar s_i\, \ell(y_i - h(x_i) - b), \qquad
              \bar s_i = \frac{s_i}{\sum_k s_k}

    .. math:: D(\beta) = \sum_i \bar s_i \left(\langle \beta_i, y_i\rangle
              - \ell^*(\beta_i)\right) - \frac{\alpha}{2} \|h_\beta\|^2, \qquad
              h_\beta = \sum_i c_i K(\cdot, x_i) \beta_i, \quad c_i = \bar s_i / \alpha, \quad
              \sum_i c_i \beta_i = 0

    With a ``radius`` Λ the norm has a bound in place of a penalty,

    .. math:: P(h, b) = \sum_i \bar s_i\, \ell(y_i - h(x_i) - b)
              \quad\text{where}\quad \|h\| \le \Lambda, \qquad
              D(\beta) = \sum_i \bar s_i \left(\langle \beta_i, y_i\rangle
              - \ell^*(\beta_i)\right) - \Lambda \alpha \|h_\beta\|,

    This does not depend on alpha, because :math:`\alpha h_\beta` does not. Here alpha is the
    multiplier of the bound: it determines the size of the function :math:`h_\beta` of a dual
    point. A problem with a radius computes certificates only. Solvers require the penalty.

    Dual vectors β are in units of the subgradient of the loss, so they do not depend on weights or
    strength. The usual dual coefficients are :math:`c_i \beta_i`. The constraint
    :math:`\sum_i c_i \beta_i = 0` applies only with an intercept.

    Parameters
    ----------
    loss : Loss
        Loss of the residual vectors.
    design : Design
        The design, which computes values and norms of the functions h.
    targets : ndarray of shape (n, p) or (n, 1)
        Targets y. A single column is used for every output.
    sample_weight : ndarray of shape (n,)
        Weights s, all positive.
    alpha : float
        Strength of the regularization.
    fit_intercept : bool
        Whether to fit the offset b. If False, b is zero.
    radius : float, optional
        The bound Λ on the norm.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Plain
    >>> from fenchel.losses import Pinball
    >>> from fenchel.problem import Problem
    >>> from fenchel.solvers import Newton
    >>> x = np.linspace(-1.0, 1.0, 30)[:, None]
    >>> design = Plain(np.hstack([x, x**2]), np.eye(1))
    >>> problem = Problem(Pinball(0.5), design, np.exp(x), np.ones(30), alpha=0.01)
    >>> solution = Newton().solve(problem)
    >>> solution.status.converged
    True
    >>> predictions = design.values(solution.weights) + solution.offset
    >>> predictions.shape
    (30, 1)
    """

    loss: Loss
    design: Design
    targets: FloatArray
    sample_weight: FloatArray
    alpha: float
    fit_intercept: bool = True
    radius: float | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if the strength is so small that weights of the losses overflow."""
        if not np.isfinite(1.0 / np.float64(self.alpha)):
            raise ValueError(
                f"alpha must be large enough that 1 / alpha is finite, got {shown(self.alpha)}"
            )

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return self.design.n_rows

    @property
    def n_outputs(self) -> int:
        """Number of outputs p."""
        return self.design.n_outputs

    @property
    def separable(self) -> bool:
        """Whether the loss is a sum over outputs."""
        return self.loss.separable or self.n_outputs == 1

    @cached_property
    def weight(self) -> FloatArray:
        """The weights c of the losses, relative to ½‖h‖², (n,)."""
        return _divided(self.share, self.alpha)

    @cached_property
    def share(self) -> FloatArray:
        """The sample weights divided by their sum, (n,)."""
        return _divided(self.sample_weight, float(self.sample_weight.sum()))

    @cached_property
    def best_constant(self) -> FloatArray:
        """Offset of the best constant model; zero without intercept."""
        if not self.fit_intercept:
            return np.zeros(self.n_outputs)
        targets = np.broadcast_to(self.targets, (self.n_rows, self.n_outputs))
        return self.loss.minimizing_offset(targets, self.sample_weight)

    @cached_property
    def baseline(self) -> float:
        """Objective of the best constant model, its mean loss: the unit of relative gaps.

        Exactly zero if all targets equal that constant, or are in a tube around it, up to
        rounding.
        """
        lowest, highest = self._range
        away = np.maximum(highest - self.best_constant, self.best_constant - lowest)
        if away.max() <= self._noise + self._tube:
            return 0.0
        return self._losses_at(self.best_constant[None])

    @cached_property
    def _parallel(self) -> bool:
        """Whether levels of a target have one function, and differ by offsets only."""
        coupling, each = self.design.coupling, self.loss.n_targets
        if coupling is None or not self.fit_intercept:
            return False
        levels = coupling.reshape(-1, each, coupling.shape[1])
        if not np.all(levels == levels[0]):
            return False
        targets = self.targets
        return targets.shape[1] == 1 or bool(np.all(targets[:, each:] == targets[:, :-each]))

    @cached_property
    def _range(self) -> tuple[FloatArray, FloatArray]:
        """Least and largest target of each column."""
        return self.targets.min(axis=0), self.targets.max(axis=0)

    @property
    def _largest(self) -> float:
        lowest, highest = self._range
        return float(max(highest.max(), -lowest.min()))

    @property
    def _noise(self) -> float:
        """Residuals of this size are rounding errors of the targets."""
        return 64 * np.finfo(float).eps * self._largest

    @property
    def _tube(self) -> float:
        """Residuals of this size have no loss, where there is one output."""
        return self.loss.epsilon if self.n_outputs == 1 else 0.0

    @property
    def rounding(self) -> float:
        """Tolerance for rounding errors in the constraint that residuals are in a loss's cone."""
        return 1e-12 * self._largest

    def primal(self, weights: FloatArray, offset: FloatArray) -> float:
        """Return the objective of the model with these weights and this offset."""
        design = self.design
        directions = design.directions(weights)
        p = self.n_outputs

        def predict(rows: slice) -> FloatArray:
            return design.predict(rows, directions, out=empty((rows.stop - rows.start, p)))

        losses = self._losses(predict, offset)
        return self.penalty(weights) + losses

    def objective(self, weights: FloatArray, values: FloatArray) -> float:
        """Return the objective for known predictions (n, p), which include the offset."""
        return self.penalty(weights) + self._losses_at(values)

    def penalty(self, weights: FloatArray) -> float:
        """Return the penalty term of the objective."""
        if self.radius is not None:
            return 0.0
        return 0.5 * self.alpha * self.design.squared_norm(weights)

    def norm(self, weights: FloatArray) -> float:
        """Return ‖h‖ for the function with these weights."""
        return math.sqrt(max(self.design.squared_norm(weights), 0.0))

    def within(self, weights: FloatArray) -> FloatArray:
        """Return the weights, projected on the ball if there is a radius."""
        if self.radius is None:
            return weights
        size = self.norm(weights)
        return weights * (self.radius / size) if size > self.radius else weights

    def paid(self, square: float) -> float:
        """Return what the dual objective loses for ‖h‖² of the function of its point."""
        if self.radius is None:
            return 0.5 * self.alpha * square
        return self.radius * self.alpha * math.sqrt(max(square, 0.0))

    def _losses(self, predict: Callable[[slice], FloatArray], offset: FloatArray) -> float:
        """Weighted mean of the losses of predictions and offset, block by block."""

        def left(rows: slice) -> FloatArray:
            residual = predict(rows)  # whose memory is used for residuals
            subtract_from(self.targets[rows], offset, residual)
            return residual

        return self._mean_loss(left)

    def _mean_loss(self, left: Callable[[slice], FloatArray]) -> float:
        """Weighted mean of the losses of residuals, which may be changed."""

        def task(rows: slice) -> tuple[float]:
            residual, loss = left(rows), self.loss.at(rows)
            if loss.cone is not None:
                nearest = loss.nearest(residual)
                rounded = np.abs(nearest - residual).max(axis=1) <= self.rounding
                residual[rounded] = nearest[rounded]
            return (float(np.dot(self.share[rows], loss.value(residual))),)

        return float(self.design.blocks.sum(task)[0])

    def _losses_at(self, values: FloatArray) -> float:
        """The same of predictions that are known, (n, p), or (1, p) if all are alike."""

        def left(rows: slice) -> FloatArray:
            mine = values if len(values) == 1 else values[rows]
            out = empty((rows.stop - rows.start, values.shape[1]))
            return np.subtract(self.targets[rows], mine, out=out)

        return self._mean_loss(left)

    def link(self, dual: FloatArray) -> FloatArray:
        """Return the weights of the function of a dual point."""
        push = np.multiply(self.weight[:, None], dual, out=empty(dual.shape))
        return self.design.link(push)

    def dual(self, dual: FloatArray) -> float:
        """Return the objective of a feasible dual point; -inf outside the conjugate's domain."""
        return self._linked(dual)[1]

    def _linked(self, dual: FloatArray) -> tuple[FloatArray, float]:
        """The function that a dual point stands for, and the objective there, in one pass."""

        def task(rows: slice) -> tuple[FloatArray, float]:
            push = _copy(dual[rows])
            multiply_rows(push, self.weight[rows])
            return self.design.pull(rows, push), self._earned(rows, dual[rows])

        pulled, earned = self.design.blocks.sum(task)
        linked = self.design.weights_of(pulled)
        return linked, float(earned) - self.paid(self.design.squared_norm(linked))

    def earned(self, dual: FloatArray) -> float:
        """Return what the dual objective has of a point beside the norm of its function."""
        return float(self.design.blocks.sum(lambda rows: (self._earned(rows, dual[rows]),))[0])

    def _dual(self, dual: FloatArray, linked: FloatArray) -> float:
        return self.earned(dual) - self.paid(self.design.squared_norm(linked))

    def _earned(self, rows: slice, beta: FloatArray) -> float:
        """What the dual objective has of some rows beside the norm."""
        earned = np.empty(len(beta))
        row_products(beta, self.targets[rows], earned)
        earned -= self.loss.at(rows).conjugate(beta)
        return float(np.dot(self.share[rows], earned))

    def feasible(self, dual: FloatArray) -> FloatArray:
        """Return a feasible point near ``dual``, with the same zeros.

        The point is projected on the domain of the conjugate. The constraint of the intercept is
        then satisfied by ``balanced`` of the loss, which shrinks the positive or the negative
        coordinates of each output if the domain is solid.
        """
        outside = np.flatnonzero(~np.isfinite(self.loss.conjugate(dual)))
        if len(outside):
            dual = dual.copy()
            nearest = self.loss.at(outside).conjugate_prox(dual[outside], np.finfo(float).tiny)
            dual[outside] = nearest
        return self._balanced(dual)

    def _balanced(self, dual: FloatArray) -> FloatArray:
        """Meet the constraint Σ c_i β_i = 0 of the intercept."""
        return self.loss.balanced(dual, self.weight) if self.fit_intercept else dual

    def subset(self, rows: IntArray) -> Problem:
        """Return the problem of some of the rows, with the same strength."""
        return replace(
            self,
            loss=self.loss.at(rows),
            design=self.design.subset(rows),
            targets=self.targets.take(rows, axis=0),  # in a sixth of the time of indexing
            sample_weight=self.sample_weight[rows],
        )

    def certify(
        self, dual: FloatArray, offset: FloatArray | None = None, weights: FloatArray | None = None
    ) -> Certified:
        """Project a dual point on the feasible set and return it with its certificate.

        The primal value is that of the model with the given weights and offset. By default, the
        weights are those of the projected point, and the offset minimizes the objective. If the
        loss has a cone, the model is first moved into it. Offsets of outputs with one function
        are sorted by their levels, which does not increase the loss.
        """
        return self.with_offset(self.feasible_point(dual), offset, weights)

    def feasible_point(self, dual: FloatArray) -> FeasiblePoint:
        """Return a feasible point near ``dual``, with its function and lower bound."""
        balanced = self._balanced(dual)
        linked, lower = self._linked(balanced)
        if not np.isfinite(lower):
            balanced = self.feasible(dual)
            linked, lower = self._linked(balanced)
        if lower < 0.0:
            balanced, linked, lower = self._shortened(balanced, linked, lower)
        return FeasiblePoint(balanced, linked, lower)

    def constant(self) -> Certified:
        """Return the best constant and the dual point zero, in less time than :meth:`certify`."""
        dual, offset = empty((self.n_rows, self.n_outputs)), self.best_constant

        def conjugate(rows: slice) -> tuple[float]:
            dual[rows] = 0.0
            return (float(np.dot(self.share[rows], self.loss.at(rows).conjugate(dual[rows]))),)

        lower = 0.0 - float(self.design.blocks.sum(conjugate)[0])
        if self.loss.cone is not None or not 0.0 <= lower < np.inf:
            return self.certify(dual, offset)
        certificate = self.certificate(self.baseline, lower, dual)
        return Certified(dual, self.design.zero(), offset, certificate, dual)

    def with_offset(
        self, point: FeasiblePoint, offset: FloatArray | None, weights: FloatArray | None = None
    ) -> Certified:
        """Return a feasible point with a model and its certificate, see :meth:`certify`."""
        balanced, linked, lower = point
        source = balanced if weights is None else None
        weights = linked if weights is None else weights
        residual = None
        if offset is None and self.fit_intercept and self.loss.cone is None:
            residual = self.residuals(weights)
            offset = self.loss.minimizing_offset(residual, self.sample_weight)
        offset = self.minimizing_offset(weights) if offset is None else offset
        if self.loss.cone is not None:
            repair = Repair(self.loss.cone, self.design, self.targets, self.rounding)
            if self.fit_intercept:
                offset = repair.of_offset(weights, offset)
            elif (push := repair.of_function(weights, offset)) is not None:
                moved = weights + self.design.link(push)
                weights, push = self.within(moved), push / self.weight[:, None]
                if source is not None:  # with these multipliers it is better, and feasible
                    source = balanced = balanced + push
                    lower = self._dual(balanced, moved)
        if self._parallel:
            offset = self.loss.rearranged(offset)
        if residual is None:
            primal = self.primal(weights, offset)
        else:
            primal = self.penalty(weights) + self._mean_loss(_less(residual, offset))
        if self.loss.cone is not None and not np.isfinite(primal):
            # beyond repair: the best constant satisfies the constraint
            weights, offset, source = self.design.zero(), self.best_constant, None
            primal = self.primal(weights, offset)
        certificate = self.certificate(primal, lower, balanced)
        return Certified(balanced, weights, offset, certificate, source)

    def with_model(self, dual: FloatArray, lower: float, source: FloatArray) -> Certified:
        """Return a dual point with its objective and the model of ``source``, no intercept."""
        weights, offset = self.link(source), np.zeros(self.n_outputs)
        certificate = self.certificate(self.primal(weights, offset), lower, dual)
        return Certified(dual, weights, offset, certificate, source)

    def estimate(self, source: FloatArray, values: FloatArray) -> float:
        """Return the objective of the function of a point with known values, no intercept.

        ``values`` (n, p) determine the precision. No kernel product is needed.
        """
        losses = self._losses_at(values)
        if self.radius is not None:
            return losses
        square = float(self.weight @ np.einsum("ij,ij->i", source, values))
        return losses + 0.5 * self.alpha * square

    def _shortened(
        self, dual: FloatArray, linked: FloatArray, lower: float
    ) -> tuple[FloatArray, FloatArray, float]:
        """The multiple t of a dual point, t <= 1, that bounds best, if it does.

        With e its linear part, D(t β) is at least t e - t² α/2 ‖h_β‖², by concavity where a
        residual of zero costs nothing, and that is largest at t = e / (α ‖h_β‖²).
        """
        if self.radius is not None:  # the point zero, whose bound is zero, is feasible as well
            return np.zeros_like(dual), self.design.zero(), 0.0
        square = self.alpha * self.design.squared_norm(linked)
        t = max(lower + 0.5 * square, 0.0) / square if square > 0.0 else 1.0
        if not t < 1.0:
            return dual, linked, lower
        value = self._dual(t * dual, t * linked)
        return (t * dual, t * linked, value) if value > lower else (dual, linked, lower)

    def best_of(self, one: Certified, other: Certified | None) -> Certified:
        """Return the better model of two points, with the better bound of the two."""
        if other is None:
            return one
        model = min(one, other, key=lambda point: point.certificate.primal)
        bound = max(one, other, key=lambda point: point.certificate.dual)
        if model is bound:
            return model
        primal, lower = model.certificate.primal, bound.certificate.dual
        certificate = self.certificate(primal, lower, bound.dual)
        return replace(model, dual=bound.dual, certificate=certificate)

    def minimizing_offset(self, weights: FloatArray) -> FloatArray:
        """Return the offset that minimizes the objective for these weights, or zero."""
        if not self.fit_intercept:
            return np.zeros(self.n_outputs)
        return self.loss.minimizing_offset(self.residuals(weights), self.sample_weight)

    def residuals(self, weights: FloatArray) -> FloatArray:
        """Return residuals of all rows for these weights, before any offset, (n, p)."""
        design, none = self.design, np.zeros(self.n_outputs)
        residual, directions = empty((self.n_rows, len(none))), design.directions(weights)

        def task(rows: slice) -> None:
            design.predict(rows, directions, out=residual[rows])
            subtract_from(self.targets[rows], none, residual[rows])

        design.blocks.map(task)
        return residual

    def certificate(self, primal: float, lower: float, dual: FloatArray) -> Certificate:
        """Return the certificate of known objectives, with the violation of Σ c β = 0."""
        feasibility = 0.0
        if self.fit_intercept:
            total, left = self.design.blocks.sizes_and_sums(self.weight, dual)
            left = np.abs(left)
            feasibility = float(np.max(np.divide(left, total, out=left, where=total > 0)))
        if self.baseline == 0.0:  # rounding errors of the targets are no loss
            noise = np.full((self.n_rows, self.n_outputs), self._noise + self._tube)
            most = float(self.share @ self.loss.value(noise))
            primal, lower = (0.0 if abs(value) <= most else value for value in (primal, lower))
        if np.isnan(lower):  # where terms overflow there is no bound
            lower = -np.inf
        return Certificate(primal, lower, self.baseline, feasibility)


def _less(values: FloatArray, offset: FloatArray) -> Callable[[slice], FloatArray]:
    return lambda rows: values[rows] - offset


def _copy(values: FloatArray) -> FloatArray:
    copied = empty(values.shape)
    copied[...] = values
    return copied


def _divided(weights: FloatArray, total: float) -> FloatArray:
    """Weights over a number; equal ones that are a single number in memory stay one."""
    if weights.strides == (0,):
        return np.broadcast_to(weights[:1] / total, weights.shape)
    return weights / total


__all__ = ["Problem"]

__dir__ = __all__.copy
