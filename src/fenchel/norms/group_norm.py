"""Group norms, with their dual norms, proximal operators and projections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.norms import loops


@dataclass(frozen=True, eq=False)
class GroupNorm:
    r"""Group norm L_{q,p}: the p-norm over groups of the q-norms within groups.

    .. math:: \|W\|_{q,p} = \Big( \sum_j \|W_j\|_q^p \Big)^{1/p}, \qquad
              \text{dual norm } \|\cdot\|_{q^*, p^*}, \quad \tfrac1q + \tfrac1{q^*} = 1

    W_j is the vector of the rows of W (d, outputs) in group j.

    Parameters
    ----------
    labels : ndarray of shape (d,)
        Group of each row, from 0 to k - 1.
    q, p : float
        Orders of the norms within and over groups, >= 1 or inf.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.5.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.norms import GroupNorm
    >>> norm = GroupNorm(np.array([0, 0, 1]), q=2.0, p=1.0)
    >>> norm.value(np.array([[3.0], [4.0], [2.0]]))
    7.0
    """

    labels: IntArray
    q: float
    p: float

    @cached_property
    def order(self) -> IntArray:
        """Row indices sorted by group."""
        return np.argsort(self.labels, kind="stable")

    @cached_property
    def back(self) -> IntArray:
        """Inverse permutation of ``order``."""
        back = np.empty_like(self.order)
        back[self.order] = np.arange(len(back))
        return back

    @cached_property
    def rows_before(self) -> IntArray:
        """Number of rows before each group, followed by the total."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.labels))]).astype(np.intp)

    @property
    def is_sum(self) -> bool:
        """Whether the norm is the sum of all absolute values, for any groups."""
        return self.q == 1.0 and self.p == 1.0

    @property
    def has_steps_of_rows(self) -> bool:
        """Whether rows of a group may have different steps in :meth:`prox`."""
        return self.p == 1.0 and self.q in (1.0, 2.0)

    @cached_property
    def dual(self) -> GroupNorm:
        """The dual norm, L_{q*,p*} with the same groups."""
        norm = GroupNorm(self.labels, _dual(self.q), _dual(self.p))
        for name in ("order", "back", "rows_before"):
            norm.__dict__[name] = getattr(self, name)
        return norm

    def lengths(self, W: FloatArray) -> FloatArray:
        """Return the q-norms of the groups, (k,)."""
        return _lengths(W[self.order].ravel(), self.rows_before * W.shape[1], self.q)

    def value(self, W: FloatArray) -> float:
        """Return ‖W‖."""
        return float(loops.length(self.lengths(W), self.p))

    def prox(self, W: FloatArray, t: float | FloatArray) -> FloatArray:
        """Return the minimizer U of ½‖U - W‖² + t ‖U‖.

        If p = 1, t may be an array (d, 1) of positive numbers, a step for each row: of
        Σ_i ‖U_i - W_i‖² / (2 t_i) + ‖U‖. Rows of a group have the same unless q is 1 or 2.
        """
        v = W[self.order].ravel()
        starts = self.rows_before * W.shape[1]
        if isinstance(t, np.ndarray):
            steps = np.repeat(t[self.order, 0], W.shape[1])
            if self.q == 2.0:
                loops.with_steps(v, starts, steps, u := np.empty_like(v))
            else:
                u = _sum(v, starts, self.q, steps[starts[:-1]] if self.q > 1.0 else steps)
            return u.reshape(W.shape)[self.back]
        if t == 0.0:
            return W
        return _prox(v, starts, self.q, self.p, t).reshape(W.shape)[self.back]

    def project(self, W: FloatArray, radius: float) -> FloatArray:
        """Return the nearest point U with ‖U‖ <= radius, by Moreau's identity."""
        if self.value(W) <= radius:
            return W
        return W - self.dual.prox(W, radius)


def _dual(q: float) -> float:
    """The q* with 1/q + 1/q* = 1."""
    return np.inf if q == 1.0 else 1.0 if q == np.inf else q / (q - 1.0)


def _prox(v: FloatArray, starts: IntArray, q: float, p: float, t: float) -> FloatArray:
    """Prox of t (Σ_j ‖v_j‖_q^p)^(1/p)."""
    if q == p:  # of all entries, whatever the groups
        starts, p = _whole(v), 1.0
    if p == 1.0:
        return _sum(v, starts, q, t)
    if q == 2.0:  # only lengths change
        lengths = _lengths(v, starts, q)
        shorter = _sum(lengths, _whole(lengths), p, t)
        return v * _each(starts, np.divide(shorter, lengths, where=lengths > 0.0, out=shorter))
    if loops.length(_lengths(v, starts, _dual(q)), _dual(p)) <= t:
        return np.zeros_like(v)
    unit = np.abs(v).max()
    sizes, u = np.abs(v) / unit, np.empty_like(v)
    if p == np.inf:  # what the projection on the ball of the dual norm leaves
        loops.across(sizes, starts, _dual(q), 1.0, t / unit, True, u)
        u = sizes - u
    else:
        loops.across(sizes, starts, q, p, t / unit, False, u)
    return np.copysign(unit * u, v)


def _sum(v: FloatArray, starts: IntArray, q: float, t: float | FloatArray) -> FloatArray:
    """Prox of Σ_j t_j ‖v_j‖_q, group by group; each entry has a t of its own if q = 1."""
    if q == 1.0:
        return np.asarray(np.sign(v) * np.maximum(np.abs(v) - t, 0.0))
    strengths = np.empty(len(starts) - 1)
    strengths[:] = t
    if q == 2.0:
        lengths = _lengths(v, starts, q)
        factors = np.zeros_like(lengths)
        np.divide(lengths - strengths, lengths, out=factors, where=lengths > strengths)
        return v * _each(starts, factors)
    if q == np.inf:
        levels = np.empty(len(strengths))
        loops.max_levels(np.abs(v), starts, strengths, levels)
        level = _each(starts, levels)
        return np.clip(v, -level, level)
    unit = np.abs(v).max(initial=0.0) or 1.0
    u = np.empty_like(v)
    loops.separate(np.abs(v) / unit, starts, q, strengths / unit, u)
    return np.copysign(unit * u, v)


def _whole(v: FloatArray) -> IntArray:
    """All entries as one group."""
    return np.array([0, len(v)], dtype=np.intp)


def _lengths(v: FloatArray, starts: IntArray, q: float) -> FloatArray:
    """Norms of the groups."""
    out = np.empty(len(starts) - 1)
    loops.lengths(v, starts, q, out)
    return out


def _each(starts: IntArray, values: FloatArray) -> FloatArray:
    """The value of its group for each entry."""
    return np.repeat(values, np.diff(starts))
