"""Least squares under inequalities between matrices: Theorem 6, for cones of any shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fenchel._typing import FloatArray
from fenchel.certificate import Callback, Certificate
from fenchel.positive._solution import PSDSolution
from fenchel.positive.problem import Model
from fenchel.solvers.loop import Iterate, Loop

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
    r"""Alternating directions for several quadratic forms with inequalities between them.

    .. math:: \min_{A_1, \dots, A_p \in S(R^r)}\; \sum_i \frac{c_i}{2}
              \sum_s (y_{is} - \varphi_i^\top A_s \varphi_i)^2
              + \frac{\mathrm{alpha}}{2} \sum_s \|A_s\|_F^2 \quad \text{subject to} \quad
              \sum_s C_{ts} A_s \succeq 0

    Its dual, over β of shape (n, p) and Z_t ⪰ 0:

    .. math:: D = -\sum_i c_i \Bigl(\tfrac12 \|\beta_i\|^2 + \langle \beta_i, y_i\rangle\Bigr)
              - \frac{1}{2\, \mathrm{alpha}} \sum_s \Bigl\|\sum_i c_i \beta_{is}
              \varphi_i \varphi_i^\top - \sum_t C_{ts} Z_t\Bigr\|_F^2

    Any Z ⪰ 0 and any β give a lower bound. A step is a ridge regression, and a projection for each
    inequality. C is ``cone`` with rows of length one, c is ``weight`` over its sum, and C times
    ``inner`` is at least one, which makes any matrices feasible.
    """

    def __init__(
        self,
        features: FloatArray,
        targets: FloatArray,
        weight: FloatArray,
        cone: FloatArray,
        inner: FloatArray,
        alpha: float,
    ) -> None:
        self.features, self.targets, self.cone, self.inner = features, targets, cone, inner
        self.weight, self.alpha = weight / weight.sum(), alpha
        centred = targets - self.weight @ targets
        unit = 0.5 * float(self.weight @ np.einsum("ij,ij->i", centred, centred))
        self.unit = unit or 0.5 * float(self.weight @ np.einsum("ij,ij->i", targets, targets)) or 1

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
        residual = self.targets - self.predictions(matrices)
        loss = 0.5 * float(self.weight @ np.einsum("ij,ij->i", residual, residual))
        return loss + 0.5 * self.alpha * float(np.vdot(matrices, matrices))

    def dual(self, dual: FloatArray, multipliers: FloatArray) -> float:
        """Dual objective."""
        left = self.push(dual) - np.einsum("ts,tab->sab", self.cone, multipliers)
        rows = 0.5 * np.einsum("ij,ij->i", dual, dual)
        rows += np.einsum("ij,ij->i", dual, self.targets)
        return -float(self.weight @ rows) - float(np.vdot(left, left)) / (2.0 * self.alpha)

    def combined(self, matrices: FloatArray) -> FloatArray:
        """Σ_s C_ts A_s, (h, r, r)."""
        return np.einsum("ts,sab->tab", self.cone, matrices)

    def feasible(self, matrices: FloatArray) -> FloatArray:
        """Matrices near the given ones that meet the inequalities."""
        values, vectors = np.linalg.eigh(self.combined(matrices))
        negative = _of_spectra(np.maximum(-values, 0.0), vectors)
        return np.asarray(matrices + self.inner[:, None, None] * negative.sum(axis=0))

    def certified(self, matrices: FloatArray, multipliers: FloatArray) -> _Found:
        """Certify matrices, after they are moved to meet the inequalities, and multipliers."""
        good = self.feasible(matrices)
        dual = self.predictions(matrices) - self.targets
        certificate = Certificate(self.primal(good), self.dual(dual, multipliers), self.unit)
        return _Found(good, multipliers, dual, certificate)

    def solve(
        self,
        tol: float,
        max_iter: int,
        start: FloatArray | None = None,
        callback: Callback | None = None,
    ) -> PSDSolution:
        """Return the best certified point, from multipliers (h, r, r) where their shape fits."""
        loop = Loop[_Found](tol, callback)
        matrices, multipliers, dual, certificate = loop.run(self._iterates(max_iter, start))
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

    def _iterates(self, max_iter: int, start: FloatArray | None) -> Iterator[Iterate[_Found]]:
        r = self.features.shape[1]
        ridge = _Ridge(self)
        fitted = self.push(self.targets)
        split = force = np.zeros((len(self.cone), r, r))
        if start is not None and start.shape == force.shape:
            force = -start
        rho = self.alpha + float(ridge.values.sum()) / len(self.weight)
        for step in range(1, max_iter + 1):
            pulled = np.einsum("ts,tab->sab", self.cone, rho * split - force)
            matrices = ridge.solve(fitted + pulled, rho)
            before = split
            combined = _RELAXED * self.combined(matrices) + (1.0 - _RELAXED) * split
            values, vectors = np.linalg.eigh(combined + force / rho)
            split = _of_spectra(np.maximum(values, 0.0), vectors)
            force = force + rho * (combined - split)
            if step % _CHECK == 0 or step == max_iter:
                multipliers = _of_spectra(np.maximum(-rho * values, 0.0), vectors)
                yield Iterate(step, self.certified(matrices, multipliers))
                rho = _balanced(rho, combined - split, rho * (split - before), split, force)


class _Ridge:
    """Solves (alpha + rho d) A + Σ c φφᵀ <φφᵀ, A> = R for each eigenvalue d of CᵀC.

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
        if self.in_rows:
            gram = np.square(features @ features.T) * (self.root[:, None] * self.root)
        else:
            first, second = self.triangle
            products = features[:, first] * features[:, second]
            products *= self.root[:, None] * self.scale
            gram = products.T @ products
        values, self.vectors = np.linalg.eigh(gram)
        self.values = np.maximum(values, 0.0)
        self.spread, self.turn = np.linalg.eigh(problem.cone.T @ problem.cone)

    def solve(self, right: FloatArray, rho: float) -> FloatArray:
        """A for a right-hand side (p, r, r)."""
        turned = np.einsum("sk,sab->kab", self.turn, right)
        strength = self.problem.alpha + rho * np.maximum(self.spread, 0.0)
        solved = (self._by_rows if self.in_rows else self._by_products)(turned, strength)
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
