"""Kernel width of a density by leave-one-out likelihood."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
from fenchel.learning.rows import Rows, rows_by_content, single_weight

_LEAST_ROWS = 12
# Fewer values than this that hold nine tenths of the rows are cells: a density misses a cell that
# is left out whole. A normal sample rounded to 0.3 standard deviations has 11.
_MOST = 0.9
# Steps between values. At all multiples of a step, normal densities with deviations of 0.6 steps,
# length scales of 1.2, have a sum that is constant to 0.2 %, and of 0.425 to 6 %: narrower ones
# are spikes. Beside other columns 1.2 costs conditional densities at a value more than it gains.
_CELL_STEPS, _COLUMN_STEPS = 1.2, 0.85
# Beside other columns 0.5 has normal densities of 60 to 1000 rows as near to the truth in each of
# two classes as 0.85, and keeps the classes apart where these are far from each other.
_CLASS_STEPS = 0.5
# Beside one value that holds 30 % of the rows, or half, other rows need 2.4 deviations over the
# effective number of values. For evenly spaced values of a normal sample that is 0.7 steps.
_OVER_NUMBER = 2.4
_CELL_WIDTHS = 16
# Nats that a narrower width must gain over all rows where these are cells: with 2 a normal sample
# of 30 rows is 0.01 nats a row worse, with 5 a uniform one of 100 gains little.
_WORTH = 3.0
_SELDOM = 3.0  # with 1 heavy tails count for too little, 6 makes no difference
_COARSE, _FINE = np.geomspace(2.0, 1e-3, 24), np.geomspace(0.75, 1.35, 7)
# A positive model of one width has at least the functions of a kernel density of 1/√2 of it, and
# narrower ones, so that it follows the rows more closely. In one and two columns 2.8 is better
# than 2: for simulated columns of 30 to 1000 rows in all cases, for held-out rows of 139 real
# columns and 55 pairs of columns by a mean of more than 0.07 nats. Half of the columns are worse,
# by a median of 0.03 and at most 0.21. Models of three and more columns have few features: for 27
# choices of four columns 2.8 is worse by a mean of 0.03 and a median of 0.08 nats. Cells keep 2,
# as their floor is in length scales.
_OVER_BANDWIDTH, _OVER_OF_FEW = 2.0, 2.8
FEW_COLUMNS = 2
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
    alphas: tuple[float, float],
    watch: Callback | None,
) -> Learned | None:
    r"""Learn what multiplies the length scales of a rule, by the likelihood of rows left out.

    .. math:: \max_h\; \sum_i s_i \log \Bigl((1 - \eta) \sum_{j \ne i} \frac{s_j}{1 - s_i}
              k_h(x_i - x_j) + \eta\, g(x_i)\Bigr)

    over different rows, each with the sum of the weights of its repeats, :math:`\sum s = 1`, but
    not those with more than a twelfth of all, such as zeros among amounts. The
    normal kernel has bandwidths of 1/2.8 or half of the length scales. g is a Cauchy density
    around the median and η is n^-3, so that a row far from all others costs little. First h is one
    multiple for all columns, then one for each, at most four times more or less, with
    :math:`\frac8n \sum_j (\log h_j - \overline{\log h})^2` taken off: few rows say little of
    many widths. No width is below :func:`_least_scales`, since values that repeat in one of
    several columns are left out one by one.

    Rows that are cells, fewer than 12 of which hold nine tenths of the weight, are left out one
    repeat at a time. Their width is the largest multiple, up to 1, whose likelihood is within 3
    nats of the highest. None for fewer than 12 different rows that are no cells, or fewer than 12
    in all. ``alphas`` go with fewer than 12 different rows, and with more.
    """
    none = np.zeros((len(X), 1))
    rows = rows_by_content(X, none, weight, options.most_rows, 1)
    single = _weight_of_one(rows, weight)
    unit_of_all, rows = rule(rows.X, rows.weight), rows if single is not None else _light(rows)
    n, d = rows.X.shape
    if single is None and n < _LEAST_ROWS:
        return None
    varies = np.ptp(rows.X, axis=0) > 0.0  # the narrower in a constant column, the likelier
    unit = rule(rows.X, rows.weight)
    least = _least_scales(rows, single is not None)
    left_out = _LeftOut.of(rows.X[:, varies], rows.weight, unit[varies], least[varies], single)
    end = EarlyEnd(watch)
    if single is not None:
        best, criterion = _widest_of(left_out, end)
    else:
        best, criterion = _best_of(left_out, _COARSE, end)
        if not end.reached:
            best, criterion = _best_of(left_out, best * _FINE, end)
    multiples = np.full(d, best)
    width = rule(X, weight) * (unit / unit_of_all)
    if single is None and np.count_nonzero(varies) > 1 and not end.reached:
        multiples[varies], criterion = _one_each(left_out, best, end)
    ended = f", stopped: {end.reason}" if end.reached else ""
    return Learned(
        kernel=settled(Gaussian(np.maximum(multiples * width, least))),
        alpha=alphas[int(n >= _LEAST_ROWS)],
        criterion=criterion,
        history=left_out.history,
        n_rows=n,
        message=f"the likelihood of rows left out{ended}",
        in_nats=True,
    )


def _light(rows: Rows) -> Rows:
    """Rows without those that hold more than a twelfth of all, such as zeros among amounts.

    A value of many repeats, left out whole, would be far from all others, and the likeliest width
    a wide one.
    """
    light = rows.weight <= rows.weight.sum() / _LEAST_ROWS
    X, targets, weight = rows.X[light], rows.targets[light], rows.weight[light]
    return replace(rows, X=X, targets=targets, weight=weight, starts=(0, len(X)))


def _weight_of_one(rows: Rows, weight: FloatArray) -> float | None:
    """The weight of one repeat of rows that are cells; None for other rows."""
    single = single_weight(weight)
    if rows.weight.sum() < single * max(_LEAST_ROWS, 2 * len(rows.X)):
        return None
    most = np.cumsum(np.sort(rows.weight)[::-1])
    n_most = 1 + int(np.searchsorted(most, _MOST * most[-1]))
    return single if n_most < _LEAST_ROWS else None


def _least_scales(rows: Rows, cells: bool) -> FloatArray:
    """Length scales below which values that repeat in a column are spikes.

    These are 0.85 times the median distance of a row to the next values, 1.2 times that of cells,
    or 2.4 standard deviations over the effective number of values if that is more. Zero where
    nothing repeats. The two values of a class are no rounded numbers, and half of their distance
    is enough: of a column that is narrower the others get spikes, as widths are alike.
    """
    steps = _CELL_STEPS if cells else _COLUMN_STEPS
    least = np.zeros(rows.X.shape[1])
    for j, column in enumerate(rows.X.T):
        values, which = np.unique(column, return_inverse=True)
        if len(values) < 2 or (len(values) == len(column) and not cells):
            continue
        if len(values) == 2 and not cells:
            least[j] = _CLASS_STEPS * (values[1] - values[0])
            continue
        share = np.bincount(which, rows.weight) / rows.weight.sum()
        apart = np.diff(values)
        step = 0.5 * (np.append(apart[0], apart) + np.append(apart, apart[-1]))
        order = np.argsort(step, kind="stable")
        middle = step[order][np.searchsorted(np.cumsum(share[order]), 0.5)]
        deviation = np.sqrt(share @ np.square(values - share @ values))
        least[j] = max(steps * middle, _OVER_NUMBER * deviation * float(share @ share))
    return least


@dataclass(frozen=True)
class _LeftOut:
    """Minus the mean log-likelihood of rows left out, in nats.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Rows in units of the rule.
    share : ndarray of shape (n,)
    least : ndarray of shape (d,)
        Multiples below which widths do not get narrower.
    left : ndarray of shape (n,)
        Share of each row that is left out.
    rarity : float
        η.
    others : ndarray of shape (n, n)
        Logarithms of the weights of all rows where one is left out.
    broad : ndarray of shape (n,)
        Logarithm of η g.
    volume : float
        Logarithm of the unit of volume.
    over : float
        Length scales over bandwidths.
    """

    Z: FloatArray
    share: FloatArray
    least: FloatArray
    left: FloatArray
    rarity: float
    others: FloatArray
    broad: FloatArray
    volume: float
    over: float
    history: list[float] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        X: FloatArray,
        weight: FloatArray,
        unit: FloatArray,
        least: FloatArray | None = None,
        single: float | None = None,
    ) -> _LeftOut:
        """That of rows in such units, left out whole or by a single weight."""
        total = float(weight.sum())
        n = len(X) if single is None else total / single
        least = np.zeros(len(unit)) if least is None else least / unit
        # about the middle: slopes are differences of squares, which large numbers would cancel
        share, Z = weight / total, (X - np.median(X, axis=0)) / unit
        left = share if single is None else np.minimum(share, single / total)
        spread = np.where(Z.std(axis=0) > 1e-6, Z.std(axis=0), 1.0)  # of columns that vary
        away = Z / spread
        broad = -np.log(np.pi * spread * (1.0 + away**2)).sum(axis=1) - _SELDOM * np.log(n)
        rest, rarity = np.maximum(1.0 - left, np.finfo(float).tiny), float(n**-_SELDOM)
        with np.errstate(divide="ignore"):  # weights that vanish beside others
            others = np.log(share / rest[:, None] * (1.0 - rarity))
            np.fill_diagonal(others, np.log((share - left) / rest * (1.0 - rarity)))
        volume = float(np.log(unit).sum())
        few = single is None and len(unit) <= FEW_COLUMNS
        over = _OVER_OF_FEW if few else _OVER_BANDWIDTH
        return cls(Z, share, least, left, rarity, others, broad, volume, over)

    @cached_property
    def _squares(self) -> FloatArray:
        """Squared distances of pairs of rows."""
        return np.asarray(pdist(self.Z, "sqeuclidean"))

    def common(self, multiple: float) -> float:
        """The value of one multiple for all columns, in a third of the time of any others."""
        d, width = self.Z.shape[1], multiple / self.over
        if np.any(self.least > multiple):
            return self(np.full(d, multiple))[0]
        near = squareform(np.exp(self._squares * (-0.5 / width**2)))
        sums = near @ self.share + (self.share - self.left)
        constant = d * float(np.log(np.sqrt(2.0 * np.pi) * width))
        small = sums < _SMALL
        if np.any(small & (np.log(_SMALL) - constant > self.broad - _BESIDE)):
            return self(np.full(d, multiple))[0]
        rest = np.maximum(1.0 - self.left, np.finfo(float).tiny)
        with np.errstate(divide="ignore"):
            near = np.log((1.0 - self.rarity) * sums / rest)
        return self._noted(np.logaddexp(near - constant, self.broad))

    def _noted(self, whole: FloatArray) -> float:
        """The value for such logarithms of densities, which the history gets."""
        value = -float(self.share @ whole) + self.volume
        self.history.append(value)
        return value

    def __call__(self, multiples: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The value, and how much each row counts in the density at another, and at each."""
        widths = np.maximum(multiples, self.least) / self.over
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
        Z = self.Z * (self.over / multiples)
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


def _widest_of(left_out: _LeftOut, end: EarlyEnd) -> tuple[float, float]:
    """The largest multiple, up to 1, that costs little of the likelihood, and its value."""
    least = min(float(left_out.least.min(initial=1.0)), 1.0)
    multiples = np.geomspace(1.0, least, _CELL_WIDTHS)
    values: list[float] = []
    for multiple in multiples:
        values.append(left_out.common(float(multiple)))
        if end(values[-1]):
            break
    enough = min(values) + _WORTH * float(left_out.left.max())
    first = int(np.argmax(np.array(values) <= enough))
    return float(multiples[first]), values[first]


def _one_each(left_out: _LeftOut, start: float, end: EarlyEnd) -> tuple[FloatArray, float]:
    """The best multiple for each column, and its value."""
    cost = _ALIKE / len(left_out.Z)
    with np.errstate(divide="ignore"):
        low = np.maximum(-np.log(_MOST_APART), np.log(left_out.least / start))
    high = np.maximum(np.log(_MOST_APART), low)
    best = np.inf, np.inf, np.maximum(low, 0.0)

    def objective(apart: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        value, slopes = left_out.with_slopes(start * np.exp(apart))
        away = apart - apart.mean()
        # in units of the rule: the descent ends by a share of the value
        whole = value - left_out.volume + cost * float(away @ away)
        if whole < best[0]:
            best = whole, value, apart.copy()
        if end(value):
            raise Stopped
        return whole, slopes + 2.0 * cost * away

    bounds = np.column_stack([low, high])
    options = {"maxfun": _MOST_CALLS, "ftol": _LITTLE}
    with suppress(Stopped):
        minimize(objective, best[2], jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(start * np.exp(np.rint(_STEPS * best[2]) / _STEPS)), best[1]
