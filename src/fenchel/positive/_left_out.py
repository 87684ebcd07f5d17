"""Kernel width of a density by leave-one-out likelihood."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform
from scipy.special import logsumexp

from fenchel._typing import FloatArray
from fenchel.certificate import Callback
from fenchel.kernels import Gaussian, settled
from fenchel.learning import EarlyEnd, Learned, Learning
from fenchel.learning.descent import Stopped
from fenchel.learning.rows import rows_by_content

_LEAST_ROWS = 12
_SELDOM = 3.0  # with 1 heavy tails count for too little, 6 makes no difference
_COARSE, _FINE = np.geomspace(2.0, 1e-3, 24), np.geomspace(0.75, 1.35, 7)
# A positive model of one width has at least the functions of a kernel density of 1/√2 of it, and
# narrower ones. For 20 columns with 45 to 1375 rows the mean likelihood of held-out rows is the
# same with 2.4, and lower with 1, 1.4 and 2.8; in ten dimensions it is lower with 1.4 and 2.8.
_OVER_BANDWIDTH = 2.0
# Nats, of all rows together, for the squared deviations of log widths from their mean. Without it
# held-out rows of 15 tables of two columns, 31 to 150 rows, are on average 0.01 nats worse.
_ALIKE = 8.0
_MOST_APART = 4.0  # times wider or narrower than the common width: repeated values are no modes
_STEPS = 512.0  # in log widths: far above rounding, far below what matters
_SMALL, _BESIDE = 1e-280, 40.0  # sums that may underflow; nats by which they are nothing then
_MOST_CALLS, _LITTLE = 20, 1e-5

Rule = Callable[[FloatArray, FloatArray], FloatArray]


def learned_width(
    X: FloatArray,
    weight: FloatArray,
    rule: Rule,
    options: Learning,
    alpha: float,
    watch: Callback | None,
) -> Learned | None:
    r"""Learn what multiplies the length scales of a rule, by the likelihood of rows left out.

    .. math:: \max_h\; \sum_i s_i \log \Bigl((1 - \eta) \sum_{j \ne i} \frac{s_j}{1 - s_i}
              k_h(x_i - x_j) + \eta\, g(x_i)\Bigr)

    over different rows, each with the sum of the weights of its repeats, :math:`\sum s = 1`. The
    normal kernel has half of the length scales as bandwidths. g is a Cauchy density around the
    median and η is n^-3, so that a row far from all others costs little. First h is one multiple
    for all columns, then one for each, at most four times more or less, with
    :math:`\frac8n \sum_j (\log h_j - \overline{\log h})^2` taken off: few rows say little of
    many widths.
    None for fewer than 12 different rows. ``alpha`` is what goes with it.
    """
    none = np.zeros((len(X), 1))
    rows = rows_by_content(X, none, weight, options.most_rows, 1)
    n, d = rows.X.shape
    if n < _LEAST_ROWS:
        return None
    varies = np.ptp(rows.X, axis=0) > 0.0  # the narrower in a constant column, the likelier
    unit = rule(rows.X, rows.weight)[varies]
    left_out = _LeftOut.of(rows.X[:, varies], rows.weight, unit)
    end = EarlyEnd(watch)
    best, criterion = _best_of(left_out, _COARSE, end)
    if not end.reached:
        best, criterion = _best_of(left_out, best * _FINE, end)
    multiples = np.full(d, best)
    if np.count_nonzero(varies) > 1 and not end.reached:
        multiples[varies], criterion = _one_each(left_out, best, end)
    ended = f", stopped: {end.reason}" if end.reached else ""
    return Learned(
        kernel=settled(Gaussian(multiples * rule(X, weight))),
        alpha=alpha,
        criterion=criterion,
        history=left_out.history,
        n_rows=n,
        message=f"the likelihood of rows left out{ended}",
        in_nats=True,
    )


@dataclass(frozen=True)
class _LeftOut:
    """Minus the mean log-likelihood of rows left out, in nats.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Rows in units of the rule.
    share : ndarray of shape (n,)
    others : ndarray of shape (n, n)
        Logarithms of the weights of all rows where one is left out.
    broad : ndarray of shape (n,)
        Logarithm of η g.
    volume : float
        Logarithm of the unit of volume.
    """

    Z: FloatArray
    share: FloatArray
    others: FloatArray
    broad: FloatArray
    volume: float
    history: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, X: FloatArray, weight: FloatArray, unit: FloatArray) -> _LeftOut:
        """That of rows, in such units."""
        n = len(X)
        # about the middle: slopes are differences of squares, which large numbers would cancel
        share, Z = weight / weight.sum(), (X - np.median(X, axis=0)) / unit
        spread = np.where(Z.std(axis=0) > 1e-6, Z.std(axis=0), 1.0)  # of columns that vary
        away = Z / spread
        broad = -np.log(np.pi * spread * (1.0 + away**2)).sum(axis=1) - _SELDOM * np.log(n)
        rest = np.maximum(1.0 - share, np.finfo(float).tiny)
        with np.errstate(divide="ignore"):  # weights that vanish beside others
            others = np.log(share / rest[:, None] * (1.0 - n**-_SELDOM))
        np.fill_diagonal(others, -np.inf)
        return cls(Z, share, others, broad, float(np.log(unit).sum()))

    @cached_property
    def _squares(self) -> FloatArray:
        """Squared distances of pairs of rows."""
        return np.asarray(pdist(self.Z, "sqeuclidean"))

    def common(self, multiple: float) -> float:
        """The value of one multiple for all columns, in a third of the time of any others."""
        (n, d), width = self.Z.shape, multiple / _OVER_BANDWIDTH
        sums = squareform(np.exp(self._squares * (-0.5 / width**2))) @ self.share
        constant = d * float(np.log(np.sqrt(2.0 * np.pi) * width))
        small = sums < _SMALL
        if np.any(small & (np.log(_SMALL) - constant > self.broad - _BESIDE)):
            return self(np.full(d, multiple))[0]
        rest = np.maximum(1.0 - self.share, np.finfo(float).tiny)
        with np.errstate(divide="ignore"):
            near = np.log((1.0 - n**-_SELDOM) * sums / rest)
        return self._noted(np.logaddexp(near - constant, self.broad))

    def _noted(self, whole: FloatArray) -> float:
        """The value for such logarithms of densities, which the history gets."""
        value = -float(self.share @ whole) + self.volume
        self.history.append(value)
        return value

    def __call__(self, multiples: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The value, and how much each row counts in the density at another, and at each."""
        widths = multiples / _OVER_BANDWIDTH
        parts = self.others - 0.5 * squareform(pdist(self.Z / widths, "sqeuclidean"))
        near = logsumexp(parts, axis=1)
        constant = float(np.log(np.sqrt(2.0 * np.pi) * widths).sum())
        whole = np.logaddexp(near - constant, self.broad)
        return self._noted(whole), parts, near - constant - whole

    def with_slopes(self, multiples: FloatArray) -> tuple[float, FloatArray]:
        """Value, and its derivatives in the logarithms of the multiples."""
        value, parts, of_near = self(multiples)
        counts = self.share * np.exp(of_near)
        parts -= logsumexp(parts, axis=1, keepdims=True)
        parts = counts[:, None] * np.exp(parts)
        Z = self.Z * (_OVER_BANDWIDTH / multiples)
        among = np.einsum("ij,ij->j", Z, parts @ Z)
        squares = (counts + parts.sum(axis=0)) @ Z**2 - 2.0 * among
        return value, np.asarray(counts.sum() - squares)


def _best_of(left_out: _LeftOut, multiples: FloatArray, end: EarlyEnd) -> tuple[float, float]:
    """The best multiple for all columns, and its value."""
    found, least = float(multiples[0]), np.inf
    for multiple in multiples:
        value = left_out.common(float(multiple))
        if value < least:
            found, least = float(multiple), value
        if end(value):
            break
    return found, least


def _one_each(left_out: _LeftOut, start: float, end: EarlyEnd) -> tuple[FloatArray, float]:
    """The best multiple for each column, and its value."""
    n, d = left_out.Z.shape
    cost = _ALIKE / n
    most = np.full(d, np.log(_MOST_APART))
    best = np.inf, np.inf, np.zeros(d)

    def objective(apart: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        value, slopes = left_out.with_slopes(start * np.exp(apart))
        away = apart - apart.mean()
        whole = value + cost * float(away @ away)
        if whole < best[0]:
            best = whole, value, apart.copy()
        if end(value):
            raise Stopped
        return whole, slopes + 2.0 * cost * away

    bounds = np.column_stack([-most, most])
    options = {"maxfun": _MOST_CALLS, "ftol": _LITTLE}
    with suppress(Stopped):
        minimize(objective, best[2], jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(start * np.exp(np.rint(_STEPS * best[2]) / _STEPS)), best[1]
