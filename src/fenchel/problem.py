"""A regularized regression problem and the certificate of any dual point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.optimize import nnls

from fenchel._typing import FloatArray, IntArray
from fenchel.blocks import Block, RowBlocks
from fenchel.losses import Loss

_REPAIRS = 10  # rounds in which a moved function may leave the cone at further rows
_MOST_CONSTRAINTS = 1000  # violated at once, beyond which a model is not worth moving


@dataclass(frozen=True)
class Certificate:
    """A rigorous bound on how far a fit is from the optimum.

    Attributes
    ----------
    primal : float
        Objective of the fitted model, with its own offset.
    dual : float
        Objective of a feasible dual point: no model can go below it.
    gap : float
        ``primal - dual``. The fitted model's objective is at most this far from optimal.
    relative_gap : float
        Gap over the objective of the best constant model; 0 where that is 0, hence optimal.
    feasibility : float
        What is left of the constraint sum(dual) = 0 after projection, relative to the sum
        of absolute values: rounding only.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    feasibility: float


@dataclass(frozen=True)
class Certified:
    """A feasible dual point, the model that it stands for, and their certificate."""

    dual: FloatArray
    weights: FloatArray
    offset: FloatArray
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class Problem:
    r"""Data, loss, coupling and strength; no algorithm.

    .. math:: P(V, b) = \tfrac12 \|V\|_F^2
              + \sum_i c_i\, \ell(y_i - S V^\top \varphi_i - b), \qquad
              c_i = \frac{s_i}{\alpha \sum_k s_k}

    .. math:: D(\beta) = \sum_i c_i \left(\langle \beta_i, y_i\rangle - \ell^*(\beta_i)\right)
              - \tfrac12 \|V\|_F^2, \qquad
              V = \sum_i c_i \varphi_i \beta_i^\top S, \quad \sum_i c_i \beta_i = 0

    This is (1/alpha) times the regularized mean loss. Dual vectors β are in units of the
    subgradient of the loss, so they do not depend on weights or strength; the usual dual
    coefficients are :math:`c_i \beta_i`. The constraint is there only with an intercept.

    Parameters
    ----------
    loss : Loss
        Loss of the residual vectors.
    features : ndarray of shape (n, r)
        Feature vectors of the rows.
    targets : ndarray of shape (n, p) or (n, 1)
        A single column is used for every output.
    coupling : ndarray of shape (p, q)
        S, with S Sᵀ the output matrix of the kernel.
    sample_weight : ndarray of shape (n,)
        Positive weights.
    alpha : float
        Strength of the regularization.
    fit_intercept : bool
        Whether b is free or zero.
    """

    loss: Loss
    features: FloatArray
    targets: FloatArray
    coupling: FloatArray
    sample_weight: FloatArray
    alpha: float
    fit_intercept: bool = True

    @property
    def n_outputs(self) -> int:
        """Number of outputs p."""
        return len(self.coupling)

    @property
    def separable(self) -> bool:
        """Whether the losses of different outputs do not interact."""
        return self.loss.separable or self.n_outputs == 1

    @cached_property
    def weight(self) -> FloatArray:
        """The weights c of the losses, (n,)."""
        return self.sample_weight / (self.alpha * self.sample_weight.sum())

    @cached_property
    def rows(self) -> RowBlocks:
        """The rows in blocks."""
        return RowBlocks(self.features, self.targets, self.weight)

    @cached_property
    def gram(self) -> FloatArray | None:
        """Gram matrix (n, n) of the features where it is no larger than a few of them."""
        n, rank = self.features.shape
        return self.features @ self.features.T if n <= min(2 * rank, 6000) else None

    @cached_property
    def best_constant(self) -> FloatArray:
        """Offset of the best constant model; zero without intercept."""
        if not self.fit_intercept:
            return np.zeros(self.n_outputs)
        targets = np.broadcast_to(self.targets, (len(self.targets), self.n_outputs))
        return self.loss.minimizing_offset(targets, self.sample_weight)

    @cached_property
    def baseline(self) -> float:
        """Objective of the best constant model: the unit of relative gaps.

        Exactly zero where all targets are that constant up to rounding.
        """
        largest = np.abs(self.targets).max()
        if np.abs(self.targets - self.best_constant).max() <= 64 * np.finfo(float).eps * largest:
            return 0.0
        return self.primal(self.no_weights(), self.best_constant)

    def kernel_among(self, rows: IntArray) -> FloatArray:
        """Scalar kernel between some of the rows."""
        features = self.features[rows]
        return features @ features.T

    def gram_among(self, rows: IntArray, vectors: FloatArray) -> FloatArray:
        """Inner products of the functions K(·, x_i) v, a row i and a vector v of each."""
        mixed = vectors @ self.coupling
        return self.kernel_among(rows) * (mixed @ mixed.T)

    def no_weights(self) -> FloatArray:
        """Weights of the function zero."""
        return np.zeros((self.features.shape[1], self.coupling.shape[1]))

    def primal(self, weights: FloatArray, offset: FloatArray) -> float:
        """Objective of the model ``x -> S Vᵀ φ(x) + b`` with ``weights`` V of shape (r, q)."""
        predicted = self._predictor(weights)

        def task(block: Block) -> tuple[float]:
            residual = block.targets - (predicted(block) + offset)
            if self.loss.cone is not None:
                nearest = self.loss.nearest(residual)
                rounded = np.abs(nearest - residual).max(axis=1) <= self.rounding
                residual[rounded] = nearest[rounded]
            return (float(block.weight @ self.loss.value(residual)),)

        return 0.5 * self.squared_norm(weights) + float(self.rows.sum(task)[0])

    @cached_property
    def rounding(self) -> float:
        """How far residuals may be out of the cone of a loss before they count as outside."""
        return 1e-12 * float(np.abs(self.targets).max())

    def _predictor(self, weights: FloatArray) -> Callable[[Block], FloatArray]:
        """Predictions of a block of rows, without offset."""
        directions = self.directions(weights)
        return lambda block: block.features @ directions

    def directions(self, weights: FloatArray) -> FloatArray:
        """What features are multiplied with to predict, (r, p)."""
        return weights @ self.coupling.T

    def squared_norm(self, weights: FloatArray) -> float:
        """‖h‖² of the function with these weights."""
        return float(np.vdot(weights, weights))

    def pull(self, dual: FloatArray) -> FloatArray:
        """Φᵀ (c β), (r, p)."""

        def task(block: Block) -> tuple[FloatArray]:
            return (self.pulled(block, block.weight[:, None] * dual[block.rows]),)

        return self.rows.sum(task)[0]

    def pulled(self, block: Block, push: FloatArray) -> FloatArray:
        """Φᵀ times a push (m, p) on the rows of a block."""
        return block.features.T @ push

    def link(self, dual: FloatArray) -> FloatArray:
        """Weights V = Φᵀ (c β) S of a dual point, (r, q)."""
        return self.pull(dual) @ self.coupling

    def dual(self, dual: FloatArray) -> float:
        """Objective of a feasible dual point, -inf outside the domain of the conjugate."""
        return self._dual(dual, self.link(dual))

    def _dual(self, dual: FloatArray, linked: FloatArray) -> float:
        def task(block: Block) -> tuple[float]:
            beta = dual[block.rows]
            earned = np.einsum("ij,ij->i", beta, np.broadcast_to(block.targets, beta.shape))
            return (float(block.weight @ (earned - self.loss.conjugate(beta))),)

        return float(self.rows.sum(task)[0]) - 0.5 * self.squared_norm(linked)

    def feasible(self, dual: FloatArray) -> FloatArray:
        """Return a feasible point near ``dual``, with the same zeros.

        The domain of the conjugate is met by projection, the constraint of the intercept by
        the rule of the loss: shrinking, output by output, the positive or the negative
        coordinates, where the domain is solid.
        """
        outside = ~np.isfinite(self.loss.conjugate(dual))
        if outside.any():
            dual = dual.copy()
            dual[outside] = self.loss.conjugate_prox(dual[outside], np.finfo(float).tiny)
        return self._balanced(dual)

    def _balanced(self, dual: FloatArray) -> FloatArray:
        """Meet the constraint Σ c_i β_i = 0 of the intercept."""
        return self.loss.balanced(dual, self.weight) if self.fit_intercept else dual

    def subset(self, rows: IntArray) -> Problem:
        """Return the problem of some of the rows, with the same strength."""
        return replace(
            self,
            features=self.features[rows],
            targets=self.targets[rows],
            sample_weight=self.sample_weight[rows],
        )

    def certify(
        self,
        dual: FloatArray,
        offset: FloatArray | None = None,
        weights: FloatArray | None = None,
    ) -> Certified:
        """Certificate of a dual point after projection on the feasible set.

        The primal value is that of the model with the given weights and offset: those that
        the projected point stands for, and the minimizing ones, where they are None. Where the
        loss has a cone, the model is first moved into it.
        """
        balanced = self._balanced(dual)
        linked = self.link(balanced)
        lower = self._dual(balanced, linked)
        if not np.isfinite(lower):
            balanced = self.feasible(dual)
            linked = self.link(balanced)
            lower = self._dual(balanced, linked)
        own = weights is None
        weights = linked if weights is None else weights
        offset = self.minimizing_offset(weights) if offset is None else offset
        if self.loss.cone is not None:
            offset, push = repair(self, self.loss.cone, weights, offset)
            if push is not None:
                weights = weights + self.link(push)
                if own:  # the point with these multipliers is the better one, and feasible
                    balanced = balanced + push
                    lower = self._dual(balanced, weights)
        primal = self.primal(weights, offset)
        certificate = self._certificate(primal, lower, balanced)
        return Certified(balanced, weights, offset, certificate)

    def minimizing_offset(self, weights: FloatArray) -> FloatArray:
        """Offset that minimizes the objective for these weights; zero without intercept."""
        if not self.fit_intercept:
            return np.zeros(self.n_outputs)
        residual = self.targets - self.features @ self.directions(weights)
        return self.loss.minimizing_offset(residual, self.sample_weight)

    def _certificate(self, primal: float, lower: float, dual: FloatArray) -> Certificate:
        gap = primal - lower
        unit = self.baseline
        feasibility = 0.0
        if self.fit_intercept:
            total = self.weight @ np.abs(dual)
            left = np.abs(self.weight @ dual)
            feasibility = float(np.max(np.divide(left, total, out=left, where=total > 0)))
        return Certificate(primal, lower, gap, gap / unit if unit > 0.0 else 0.0, feasibility)


@dataclass(frozen=True, eq=False)
class GramProblem(Problem):
    r"""A problem whose features are the Gram matrix K itself.

    Functions are given by coefficients u (n, p): predictions :math:`K u B`, norm
    :math:`\langle u, K u B\rangle`, and a dual point stands for :math:`u = c \beta`. The
    objectives are those of :class:`Problem` for any factor of K.
    """

    _images: list[tuple[FloatArray, FloatArray]] = field(
        default_factory=list, init=False, repr=False
    )

    @property
    def gram(self) -> FloatArray:
        """The features themselves."""
        return self.features

    @cached_property
    def output(self) -> FloatArray:
        """The matrix B = S Sᵀ."""
        return self.coupling @ self.coupling.T

    def kernel_among(self, rows: IntArray) -> FloatArray:
        """A part of the features."""
        return self.features[np.ix_(rows, rows)]

    def no_weights(self) -> FloatArray:
        """Coefficients of the function zero."""
        return np.zeros((len(self.features), self.n_outputs))

    def link(self, dual: FloatArray) -> FloatArray:
        """Coefficients c β of a dual point, (n, p)."""
        return self.weight[:, None] * dual

    def directions(self, weights: FloatArray) -> FloatArray:
        """What the rows of K are multiplied with to predict, (n, p)."""
        return weights @ self.output

    def _predictor(self, weights: FloatArray) -> Callable[[Block], FloatArray]:
        image = self.image(weights)
        return lambda block: image[block.rows]

    def squared_norm(self, weights: FloatArray) -> float:
        """<u, K u B>."""
        return float(np.vdot(weights, self.image(weights)))

    def image(self, weights: FloatArray) -> FloatArray:
        """K u B, kept for the last two arrays that were asked for: a product costs n² p."""
        for known, image in self._images:
            if known is weights:
                return image
        directions = self.directions(weights)
        nothing = not directions.any()
        image = np.zeros_like(directions) if nothing else self.features @ directions
        self.remember(weights, image)
        return image

    def remember(self, weights: FloatArray, image: FloatArray) -> None:
        """Take note of a product that is there already."""
        self._images[:] = [(weights, image), *self._images[:1]]

    def subset(self, rows: IntArray) -> Problem:
        """Return the problem of some of the rows, with the same strength."""
        part = super().subset(rows)
        return replace(part, features=self.features[np.ix_(rows, rows)])


def repair(
    problem: Problem, cone: FloatArray, weights: FloatArray, offset: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """Move a model into the cone of its loss, on all rows: return offset and a dual point.

    With an intercept by the least change of the offset. Without, by the least change of the
    function: what the returned dual point stands for, to be added. A model too far out is left.
    """
    outside = _outside(problem, cone, weights, offset)
    if outside.max() <= 0.0:
        return offset, None
    if problem.fit_intercept:
        wanted = outside.max(axis=0) + 0.5 * problem.rounding
        multipliers = _least_distance(cone @ cone.T, wanted)
        return offset - multipliers @ cone, None
    first, chosen, push = outside, outside > 0.0, None
    for _ in range(_REPAIRS):
        rows, which = np.nonzero(chosen)
        if outside.max() <= problem.rounding or len(rows) > _MOST_CONSTRAINTS:
            break
        gram = problem.gram_among(rows, cone[which])
        multipliers = np.zeros_like(outside)
        multipliers[rows, which] = _least_distance(gram, first[rows, which])
        push = -(multipliers @ cone) / problem.weight[:, None]
        outside = _outside(problem, cone, weights + problem.link(push), offset)
        chosen |= outside > 0.0
    return (offset, push) if outside.max() <= problem.rounding else (offset, None)


def _outside(
    problem: Problem, cone: FloatArray, weights: FloatArray, offset: FloatArray
) -> FloatArray:
    """By how much residuals violate each constraint, (n, m)."""
    prediction = problem.features @ problem.directions(weights) + offset
    return (prediction - problem.targets) @ cone.T


def _least_distance(gram: FloatArray, wanted: FloatArray) -> FloatArray:
    """Multipliers u >= 0 of the shortest x = Gᵀu with G x >= wanted, given G Gᵀ."""
    unit, size = float(np.einsum("ii->i", gram).max()), float(np.abs(wanted).max())
    if unit == 0.0:
        return np.zeros_like(wanted)
    values, vectors = np.linalg.eigh(gram / unit)
    factor = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    system = np.vstack([factor, wanted / size])
    u = nnls(system, np.append(np.zeros(len(wanted)), 1.0))[0]
    left = 1.0 - float(u @ wanted) / size
    return u * (size / unit / left) if left > 0.0 else np.zeros_like(wanted)
