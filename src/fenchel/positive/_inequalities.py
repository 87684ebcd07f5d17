"""Least squares under inequalities between matrices: Theorem 6, for cones of any shape."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from fenchel._typing import FloatArray
from fenchel.certificate import Certificate, Progress, Status

_CHECK = 10
_BALANCE = 10.0
_RELAXED = 1.8
_LIGHTER = 0.1  # weight of the residual in the matrices, which costs less gap


class InequalitySolution(NamedTuple):
    """What :func:`solve_inequalities` found."""

    matrices: FloatArray
    """A_s, (p, r, r), with Σ_s C_ts A_s ⪰ 0 for all t, up to rounding."""
    multipliers: FloatArray
    """Z_t ⪰ 0, (h, r, r)."""
    dual: FloatArray
    """β, (n, p)."""
    certificate: Certificate
    status: Status
    n_iter: int
    history: list[Progress]


class InequalityProblem:
    r"""A regularized least squares fit of several quadratic forms with conic inequalities.

    .. math:: \min_{A_1, \dots, A_p \in S(R^r)}\; \sum_i \frac{c_i}{2}
              \sum_s (y_{is} - \varphi_i^\top A_s \varphi_i)^2
              + \frac{\mathrm{alpha}}{2} \sum_s \|A_s\|_F^2 \quad \text{subject to} \quad
              \sum_s C_{ts} A_s \succeq 0

    Its dual, over β of shape (n, p) and Z_t ⪰ 0:

    .. math:: D = -\sum_i c_i \Bigl(\tfrac12 \|\beta_i\|^2 + \langle \beta_i, y_i\rangle\Bigr)
              - \frac{1}{2\, \mathrm{alpha}} \sum_s \Bigl\|\sum_i c_i \beta_{is}
              \varphi_i \varphi_i^\top - \sum_t C_{ts} Z_t\Bigr\|_F^2

    Any Z ⪰ 0 and any β give a lower bound.

    Parameters
    ----------
    features : ndarray of shape (n, r)
        φ of the rows.
    targets : ndarray of shape (n, p)
        y.
    weight : ndarray of shape (n,)
        Positive; c is this over its sum.
    cone : ndarray of shape (h, p)
        C, rows of length one.
    inner : ndarray of shape (p,)
        A point with C inner >= 1, which makes any matrices feasible.
    alpha : float
        Strength, > 0.
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
        negative = (vectors * np.maximum(-values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
        return np.asarray(matrices + self.inner[:, None, None] * negative.sum(axis=0))


class _Ridge:
    """Solves (alpha + rho d) A + Σ c φφᵀ <φφᵀ, A> = R for each eigenvalue d of CᵀC.

    By the spectrum of Σ c φφᵀ ⊗ φφᵀ, in the coordinates of symmetric matrices or in the rows,
    whichever are fewer.
    """

    def __init__(self, problem: InequalityProblem) -> None:
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


def solve_inequalities(
    problem: InequalityProblem,
    tol: float,
    max_iter: int,
    warm_start: FloatArray | None = None,
) -> InequalitySolution:
    """Alternating directions: a ridge regression, and a projection for each inequality.

    ``warm_start`` are multipliers, (h, r, r).
    """
    started = time.perf_counter()
    h, r = len(problem.cone), problem.features.shape[1]
    ridge = _Ridge(problem)
    fitted = problem.push(problem.targets)
    split = np.zeros((h, r, r))
    force = np.zeros((h, r, r)) if warm_start is None else -warm_start
    rho = problem.alpha + float(ridge.values.sum()) / len(problem.weight)
    history: list[Progress] = []
    best: tuple[float, FloatArray, FloatArray, FloatArray, float, float] | None = None
    for step in range(1, max_iter + 1):
        pulled = np.einsum("ts,tab->sab", problem.cone, rho * split - force)
        matrices = ridge.solve(fitted + pulled, rho)
        combined = problem.combined(matrices)
        before = split
        combined = _RELAXED * combined + (1.0 - _RELAXED) * split
        values, vectors = np.linalg.eigh(combined + force / rho)
        split = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
        force = force + rho * (combined - split)
        if step % _CHECK and step != max_iter:
            continue
        negative = (vectors * np.minimum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
        multipliers = -rho * negative
        good = problem.feasible(matrices)
        primal = problem.primal(good)
        dual = problem.predictions(matrices) - problem.targets
        lower = problem.dual(dual, multipliers)
        gap = (primal - lower) / problem.unit
        history.append(Progress(step, time.perf_counter() - started, primal, lower, gap))
        if best is None or gap < best[0]:
            best = gap, good, multipliers, dual, primal, lower
        if gap <= tol:
            break
        rho = _balanced(rho, combined - split, rho * (split - before), split, force)
    assert best is not None
    gap, good, multipliers, dual, primal, lower = best
    message = f"relative gap of {gap:.1e} after {step} steps"
    if gap > tol:
        message += f" > tol={tol:g}: increase max_iter, alpha, or tol"
    low = float(np.linalg.eigvalsh(problem.combined(good)).min())
    size = max(float(np.abs(good).max()), np.finfo(float).tiny)
    certificate = Certificate(primal, lower, problem.unit, max(0.0, -low / size))
    status = Status(gap <= tol, message)
    return InequalitySolution(good, multipliers, dual, certificate, status, step, history)


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


__all__ = ["InequalityProblem", "InequalitySolution", "solve_inequalities"]
