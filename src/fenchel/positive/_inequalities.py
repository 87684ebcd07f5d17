"""Fits under inequalities between matrices (Theorem 6), for any polyhedral cone and loss."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

from fenchel._clock import check_time
from fenchel._typing import FloatArray
from fenchel.certificate import Callback, Certificate
from fenchel.design.base import DECOMPOSED
from fenchel.positive._in_time import TOL_OF_FEW, time_of_few
from fenchel.positive._solution import PSDSolution
from fenchel.positive.losses import PredictionLoss
from fenchel.positive.problem import Model
from fenchel.solvers.loop import Iterate, Loop, Watch

# Steps in all for 15 fits of several cones, 6 of them with random strengths: 2790 as it is.
_CHECK = 10  # steps between certificates: 3275 with 5, 2060 with 20
_BALANCE = 10.0  # 1980 with 2, 2800 with 100
_RELAXED = 1.8  # 5850 with 1, 2620 with 1.9; below 2 it converges
# Weight of the residual in the matrices, which costs less gap: 5530 with 0.01, 1800 with 1.
_LIGHTER = 0.1


class _Found(NamedTuple):
    """A certified point."""

    matrices: FloatArray
    """A_s, (p, r, r), with Σ_s C_ts A_s ⪰ 0 for all t, up to rounding."""
    multipliers: FloatArray
    """Z_t ⪰ 0, (h, r, r)."""
    dual: FloatArray
    """β, (n, p)."""
    certificate: Certificate


class InequalitySplitting:
    r"""Alternating direction method for quadratic forms with inequalities between them.

    .. math:: \min_{A_1, \dots, A_p \in S(R^r)}\; \sum_i c_i\,
              \ell_i\bigl((\varphi_i^\top A_s \varphi_i)_s\bigr)
              + \sum_s \Bigl(\lambda \|A_s\|_* + \frac{\mathrm{alpha}}{2} \|A_s\|_F^2\Bigr)
              \quad \text{subject to} \quad \sum_s C_{ts} A_s \succeq 0

    Its dual, over β of shape (n, p) and Z_t ⪰ 0, with eigenvalues shrunk by λ towards zero:

    .. math:: D = -\sum_i c_i\, \ell_i^*(\beta_i)
              - \frac{1}{2\, \mathrm{alpha}} \sum_s \|(|G_s| - \lambda)_+\|_F^2, \qquad
              G_s = \sum_i c_i \beta_{is} \varphi_i \varphi_i^\top - \sum_t C_{ts} Z_t

    Any Z ⪰ 0 and any β give a lower bound. A step is a ridge regression, a prox of the loss and
    one of the nuclear norm, and a projection for each inequality. A quadratic loss is a part of
    the ridge regression instead. C is ``cone`` with rows of length one, c is ``weight`` over its
    sum, and C times ``inner`` is at least one, which makes any matrices feasible.
    """

    def __init__(
        self,
        features: FloatArray,
        loss: PredictionLoss,
        weight: FloatArray,
        cone: FloatArray,
        inner: FloatArray,
        strengths: tuple[float, float],
        targets: FloatArray | None = None,
    ) -> None:
        """``strengths`` are alpha and λ; with ``targets`` the loss is ½‖z - targets‖²."""
        self.features, self.loss, self.cone, self.inner = features, loss, cone, inner
        self.weight, self.targets = weight / weight.sum(), targets
        self.alpha, self.trace_penalty = strengths

    @property
    def size(self) -> int:
        """Unknowns of the linear systems."""
        n, r = self.features.shape
        return min(n, r * (r + 1) // 2)

    def predictions(self, matrices: FloatArray) -> FloatArray:
        """φᵀ A_s φ, (n, p)."""
        columns = [np.einsum("ij,ij->i", self.features @ a, self.features) for a in matrices]
        return np.stack(columns, axis=1)

    def push(self, dual: FloatArray) -> FloatArray:
        """Σ_i c_i β_is φ_i φ_iᵀ, (p, r, r)."""
        weighted = self.weight[:, None] * dual
        return np.stack([(self.features.T * column) @ self.features for column in weighted.T])

    def primal(self, matrices: FloatArray) -> float:
        """Objective."""
        loss = float(self.weight @ self.loss.value(self.predictions(matrices)))
        if self.trace_penalty:
            loss += self.trace_penalty * float(np.abs(np.linalg.eigvalsh(matrices)).sum())
        return loss + 0.5 * self.alpha * float(np.vdot(matrices, matrices))

    def dual(self, dual: FloatArray, multipliers: FloatArray) -> float:
        """Dual objective."""
        left = self.push(dual) - np.einsum("ts,tab->sab", self.cone, multipliers)
        square = float(np.vdot(left, left))
        if self.trace_penalty:
            sizes = np.abs(np.linalg.eigvalsh(left)) - self.trace_penalty
            square = float(np.square(np.maximum(sizes, 0.0)).sum())
        return -float(self.weight @ self.loss.conjugate(dual)) - square / (2.0 * self.alpha)

    def combined(self, matrices: FloatArray) -> FloatArray:
        """Σ_s C_ts A_s, (h, r, r)."""
        return np.einsum("ts,sab->tab", self.cone, matrices)

    def feasible(self, matrices: FloatArray) -> FloatArray:
        """Matrices near the given ones that meet the inequalities."""
        values, vectors = np.linalg.eigh(self.combined(matrices))
        negative = _of_spectra(np.maximum(-values, 0.0), vectors)
        return np.asarray(matrices + self.inner[:, None, None] * negative.sum(axis=0))

    def certified(self, matrices: FloatArray, multipliers: FloatArray, dual: FloatArray) -> _Found:
        """Certify matrices, after they are moved to meet the inequalities, and a dual point."""
        good, unit = self.feasible(matrices), self.loss.unit
        certificate = Certificate(self.primal(good), self.dual(dual, multipliers), unit)
        return _Found(good, multipliers, dual, certificate)

    def solve(
        self,
        tol: float,
        max_iter: int,
        start: FloatArray | None = None,
        callback: Callback | None = None,
        few: InequalitySplitting | None = None,
    ) -> PSDSolution:
        """Return the best certified point, from multipliers (h, r, r) where their shape fits.

        ``few`` is the problem of some of the rows, whose matrices are the first point.
        """
        loop = Loop[_Found](tol, callback)
        iterates = self._iterates(loop, max_iter, start, few)
        matrices, multipliers, dual, certificate = loop.run(iterates)
        low = float(np.linalg.eigvalsh(self.combined(matrices)).min())
        size = max(float(np.abs(matrices).max()), np.finfo(float).tiny)
        return PSDSolution(
            Model(list(matrices), [], [], np.zeros(0)),
            dual,
            multipliers,
            replace(certificate, feasibility=max(0.0, -low / size)),
            loop.status("increase max_iter, alpha, or tol"),
            loop.count,
            loop.history,
        )

    def of_few(self, max_iter: int, seconds: float) -> FloatArray:
        """Matrices (p, r, r) for few rows, from the features that these span."""
        basis = qr(self.features.T, mode="economic")[0]
        inside = copy(self)
        inside.features = self.features @ basis
        limit = Watch("", max_time=seconds)
        found = np.array(inside.solve(TOL_OF_FEW, max_iter, None, limit).model.matrices)
        return np.asarray(basis @ found @ basis.T)

    def _iterates(
        self,
        loop: Loop[_Found],
        max_iter: int,
        start: FloatArray | None,
        few: InequalitySplitting | None,
    ) -> Iterator[Iterate[_Found]]:
        r, p = self.features.shape[1], self.cone.shape[1]
        if few is not None:
            matrices = few.of_few(max_iter, time_of_few(loop.seconds_left))
            none = np.zeros((len(self.cone), r, r)), np.zeros((len(self.weight), p))
            yield Iterate(0, self.certified(matrices, *none))
        ridge, fit = loop.in_time(lambda: _Ridge(self)), _Fit(self)
        if ridge is None:
            return
        split = force = np.zeros((len(self.cone), r, r))
        if start is not None and start.shape == force.shape:
            force = -start
        low_rank, pull = np.zeros((2, p, r, r))
        rho = self.alpha + fit.curvature * float(ridge.values.sum()) / len(self.weight)
        for step in range(1, max_iter + 1):
            right = fit.curvature * self.push(fit.goal)
            right += np.einsum("ts,tab->sab", self.cone, rho * split - force)
            if self.trace_penalty:
                right += rho * low_rank - pull
            matrices = ridge.solve(right, rho, fit.curvature)
            fit.update(self.predictions(matrices))
            before = split
            combined = _relaxed(self.combined(matrices), split)
            values, vectors = np.linalg.eigh(combined + force / rho)
            split = _of_spectra(np.maximum(values, 0.0), vectors)
            force = force + rho * (combined - split)
            if self.trace_penalty:
                mixed = _relaxed(matrices, low_rank)
                low_rank = _shrunk(mixed + pull / rho, self.trace_penalty / rho)
                pull = pull + rho * (mixed - low_rank)
            if step % _CHECK == 0 or step == max_iter:
                multipliers = _of_spectra(np.maximum(-rho * values, 0.0), vectors)
                yield Iterate(step, self.certified(matrices, multipliers, fit.dual))
                fit.balance()
                rho = _balanced(rho, combined - split, rho * (split - before), split, force)


class _Fit:
    """The loss of the predictions z: a part of the ridge regression, or split off by its prox.

    A ridge regression is towards ``goal``, with ``curvature`` times the weights of the rows.
    """

    def __init__(self, problem: InequalitySplitting) -> None:
        self.loss, self.targets = problem.loss, problem.targets
        shape = len(problem.weight), problem.cone.shape[1]
        self.curvature = 1.0 if self.targets is not None else self.loss.step
        self.z = self.miss = self.drift = np.zeros(shape)
        self._set_dual(np.zeros(shape))

    def _set_dual(self, point: FloatArray) -> None:
        """The prox at a point v of predictions: β, z = v - β / curvature, and the next goal."""
        if self.targets is not None:
            self.dual, self.goal = point - self.targets, self.targets
            return
        shape, kappa = point.shape, self.curvature
        self.dual = np.reshape(self.loss.conjugate_prox(kappa * point, kappa), shape)
        before, self.z = self.z, point - self.dual / kappa
        self.drift = kappa * (self.z - before)
        self.goal = self.z - self.dual / kappa

    def update(self, values: FloatArray) -> None:
        """Take the predictions of the matrices."""
        if self.targets is not None:
            self._set_dual(values)
            return
        self.miss = values - self.z
        self._set_dual(_relaxed(values, self.z) + self.dual / self.curvature)

    def balance(self) -> None:
        """Choose the curvature by the residuals of both sides."""
        if self.targets is None:
            kappa = self.curvature
            self.curvature = _balanced(kappa, self.miss, self.drift, self.z, self.dual)
            self.goal = self.z - self.dual / self.curvature


class _Ridge:
    """Solves (alpha + rho d) A + κ Σ c φφᵀ <φφᵀ, A> = R for each eigenvalue d of CᵀC.

    With a nuclear norm it is d + 1.

    By the spectrum of Σ c φφᵀ ⊗ φφᵀ, in the coordinates of symmetric matrices or in the rows,
    whichever are fewer.
    """

    def __init__(self, problem: InequalitySplitting) -> None:
        self.problem, features = problem, problem.features
        n, r = features.shape
        self.root = np.sqrt(problem.weight)
        self.triangle = np.triu_indices(r)
        self.scale = np.where(self.triangle[0] == self.triangle[1], 1.0, np.sqrt(2.0))
        self.in_rows = n < len(self.scale)
        check_time(DECOMPOSED * float(problem.size) ** 3)
        if self.in_rows:
            gram = np.square(features @ features.T) * (self.root[:, None] * self.root)
        else:
            first, second = self.triangle
            products = features[:, first] * features[:, second]
            products *= self.root[:, None] * self.scale
            gram = products.T @ products
        values, self.vectors = np.linalg.eigh(gram)
        self.values = np.maximum(values, 0.0)
        spread, self.turn = np.linalg.eigh(problem.cone.T @ problem.cone)
        self.spread = np.maximum(spread, 0.0) + bool(problem.trace_penalty)

    def solve(self, right: FloatArray, rho: float, kappa: float) -> FloatArray:
        """A for a right-hand side (p, r, r)."""
        turned = np.einsum("sk,sab->kab", self.turn, right)
        strength = self.problem.alpha + rho * self.spread
        # of both sides over κ
        solved = (self._by_rows if self.in_rows else self._by_products)(
            turned / kappa, strength / kappa
        )
        return np.asarray(np.einsum("sk,kab->sab", self.turn, solved))

    def _by_rows(self, turned: FloatArray, strength: FloatArray) -> FloatArray:
        values = self.root[:, None] * self.problem.predictions(turned)
        inner = (self.vectors.T @ values) / (self.values[:, None] + strength)
        dual = (self.vectors @ inner) / self.root[:, None]
        return np.asarray((turned - self.problem.push(dual)) / strength[:, None, None])

    def _by_products(self, turned: FloatArray, strength: FloatArray) -> FloatArray:
        first, second = self.triangle
        inner = ((turned[:, first, second] * self.scale) @ self.vectors) / (
            self.values + strength[:, None]
        )
        solved = np.empty_like(turned)
        solved[:, first, second] = solved[:, second, first] = (inner @ self.vectors.T) / self.scale
        return solved


def _of_spectra(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Symmetric matrices of eigenvalues (h, r) and eigenvectors (h, r, r)."""
    return np.asarray((vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1))


def _shrunk(matrices: FloatArray, size: float) -> FloatArray:
    """Symmetric matrices with their eigenvalues moved towards zero: the nuclear norm's prox."""
    values, vectors = np.linalg.eigh(matrices)
    return _of_spectra(np.sign(values) * np.maximum(np.abs(values) - size, 0.0), vectors)


def _relaxed(new: FloatArray, old: FloatArray) -> FloatArray:
    """A step that goes beyond what is new."""
    return _RELAXED * new + (1.0 - _RELAXED) * old


def _balanced(
    rho: float, miss: FloatArray, drift: FloatArray, split: FloatArray, force: FloatArray
) -> float:
    """The next weight of the splitting, from relative residuals of both sides."""
    tiny = np.finfo(float).tiny
    primal = _LIGHTER * float(np.linalg.norm(miss)) / max(float(np.linalg.norm(split)), tiny)
    dual = float(np.linalg.norm(drift)) / max(float(np.linalg.norm(force)), tiny)
    if primal > _BALANCE * dual:
        return 2.0 * rho
    if dual > _BALANCE * primal:
        return 0.5 * rho
    return rho
