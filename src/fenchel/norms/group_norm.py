"""Group norms: value, dual norm, prox."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.norms import _loops as loops

_CODES = {1.0: 1, 2.0: 2, np.inf: 0}
_DUAL = {1.0: np.inf, 2.0: 2.0, np.inf: 1.0}


@dataclass(frozen=True, eq=False)
class GroupNorm:
    r"""The norm L_{q,p}: the p-norm over groups of the q-norms inside of groups.

    .. math:: \|W\|_{q,p} = \Big( \sum_j \|W_j\|_q^p \Big)^{1/p}, \qquad
              \text{dual norm } \|\cdot\|_{q^*, p^*}, \quad \tfrac1q + \tfrac1{q^*} = 1

    W_j are the rows of W (d, outputs) in group j, as one vector.

    Parameters
    ----------
    labels : ndarray of shape (d,)
        Group of each row, 0 to k - 1.
    q, p : {1, 2, inf}
        The norms inside and outside.

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
        """Rows sorted by groups."""
        return np.argsort(self.labels, kind="stable")

    @cached_property
    def back(self) -> IntArray:
        """The inverse permutation."""
        back = np.empty_like(self.order)
        back[self.order] = np.arange(len(back))
        return back

    @cached_property
    def rows_before(self) -> IntArray:
        """Number of rows before each group, and of all."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.labels))]).astype(np.intp)

    @property
    def is_sum(self) -> bool:
        """Whether it is the sum of all absolute values, whatever the groups."""
        return self.q == 1.0 and self.p == 1.0

    @cached_property
    def dual(self) -> GroupNorm:
        """The dual norm, L_{q*,p*} of the same groups."""
        norm = GroupNorm(self.labels, _DUAL[self.q], _DUAL[self.p])
        for name in ("order", "back", "rows_before"):
            norm.__dict__[name] = getattr(self, name)
        return norm

    def lengths(self, W: FloatArray) -> FloatArray:
        """q-norms of the groups, (k,)."""
        starts = self.rows_before * W.shape[1]
        return _lengths(W[self.order].ravel(), starts, _CODES[self.q])

    def value(self, W: FloatArray) -> float:
        """‖W‖."""
        return float(np.linalg.norm(self.lengths(W), self.p))

    def prox(self, W: FloatArray, t: float) -> FloatArray:
        """The minimizer of ½‖U - W‖² + t ‖U‖."""
        if t == 0.0:
            return W
        v = W[self.order].ravel()
        starts = self.rows_before * W.shape[1]
        outer = {1.0: _sum, 2.0: _root_of_squares, np.inf: _maximum}[self.p]
        return outer(v, starts, self.q, t).reshape(W.shape)[self.back]

    def project(self, W: FloatArray, radius: float) -> FloatArray:
        """The nearest point with ‖U‖ <= radius, by Moreau's identity."""
        if self.value(W) <= radius:
            return W
        return W - self.dual.prox(W, radius)


def _sum(v: FloatArray, starts: IntArray, q: float, t: float) -> FloatArray:
    """Prox of t Σ_j ‖v_j‖_q: group by group."""
    if q == 1.0:
        return _soft(v, t)
    if q == np.inf:
        levels = _max_levels(_descending(v, starts), starts, t)
        return _clipped(v, starts, levels)
    return v * _each(starts, _shrunk(_lengths(v, starts, 2), t))


def _root_of_squares(v: FloatArray, starts: IntArray, q: float, t: float) -> FloatArray:
    """Prox of t (Σ_j ‖v_j‖_q²)^½.

    Where it is not zero, with value G, it is that of Σ_j ‖·‖_q² / (2 ν), ν = G / t.
    """
    if q == 2.0:
        length = np.linalg.norm(_lengths(v, starts, 2))
        return v * _shrunk(np.array([length]), t)
    dual_lengths = _lengths(v, starts, 0 if q == 1.0 else 1)
    if np.linalg.norm(dual_lengths) <= t:
        return np.zeros_like(v)
    ordered = _descending(v, starts)
    nu = loops.squared_root(ordered, starts, _CODES[q], t)
    levels, slopes = np.zeros((2, len(starts) - 1))
    loops.squared_levels(ordered, starts, _CODES[q], nu, levels, slopes)
    if q == 1.0:
        return _soft(v, _each(starts, levels))
    return _clipped(v, starts, nu * levels)


def _maximum(v: FloatArray, starts: IntArray, q: float, t: float) -> FloatArray:
    """Prox of t max_j ‖v_j‖_q: what projection on the ball of L_{q*,1} leaves."""
    whole = np.array([0, len(v)], dtype=np.intp)
    if q == np.inf:  # the largest entry of all: a cut
        level = _max_levels(_descending(v, whole), whole, t)
        return _clipped(v, whole, level)
    if q == 2.0:  # the longest group: lengths are cut
        lengths = _lengths(v, starts, 2)
        among = np.array([0, len(lengths)], dtype=np.intp)
        level = _max_levels(_descending(lengths, among), among, t)[0]
        factors = np.divide(level, lengths, out=np.ones_like(lengths), where=lengths > level)
        return v * _each(starts, factors)
    # the group with the largest sum: v - u, u the projection on Σ_j ‖u_j‖_∞ <= t
    ordered = _descending(v, starts)
    if np.sum(_lengths(v, starts, 0)) <= t:
        return np.zeros_like(v)
    threshold = loops.sum_of_maxima_threshold(ordered, starts, t)
    return v - _clipped(v, starts, _max_levels(ordered, starts, threshold))


def _shrunk(lengths: FloatArray, t: float) -> FloatArray:
    """Factors max(0, 1 - t / length)."""
    factors = np.zeros_like(lengths)
    np.divide(lengths - t, lengths, out=factors, where=lengths > t)
    return factors


def _lengths(v: FloatArray, starts: IntArray, code: int) -> FloatArray:
    """Norms of the groups."""
    out = np.zeros(len(starts) - 1)
    loops.lengths(v, starts, code, out)
    return out


def _descending(v: FloatArray, starts: IntArray) -> FloatArray:
    """Absolute values, sorted from large to small inside of groups."""
    out = np.abs(v)
    loops.sort_descending(out, starts)
    return out


def _max_levels(ordered: FloatArray, starts: IntArray, t: float) -> FloatArray:
    """Maxima of the proxes of t‖·‖_∞, group by group."""
    levels = np.empty(len(starts) - 1)
    loops.max_levels(ordered, starts, t, levels)
    return levels


def _each(starts: IntArray, values: FloatArray) -> FloatArray:
    """The value of its group for each entry."""
    return np.repeat(values, np.diff(starts))


def _soft(v: FloatArray, threshold: FloatArray | float) -> FloatArray:
    """Entries brought nearer to zero."""
    return np.asarray(np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0))


def _clipped(v: FloatArray, starts: IntArray, levels: FloatArray) -> FloatArray:
    """Entries of group j cut off at ± levels[j]."""
    level = _each(starts, levels)
    return np.clip(v, -level, level)
