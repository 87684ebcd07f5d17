"""Rows to learn from, and their folds, chosen by content.

The choice of rows and folds depends neither on their order nor on their units. Equal rows count as
one row with the sum of their weights, so that a weight counts as repetition for learning too.

Units are positive factors and shifts of columns. If a column changes sign, or is rounded to single
precision, its rows count as different and are assigned to other folds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.design.content import ODD, BoolArray, Keys, distinct_rows, mixed, row_keys
from fenchel.kernels import SparsePoints

_ROUNDING = 1e-9  # of weights
_MANY = 8.0  # times the rows of most features, or an eighth of all, are no sample seen again
_FEWER = 0.75  # different features than cells of a table: most have several targets
_FEW_CELLS = 9  # fewer than which say little of each other, such as three yes or no
_MANY_THERE = 0.2  # of the rows: of few cells, it matters little if all rows are held out
_LOOKED_AT = 20_000  # different rows
_MOST_TIMES = 1e6  # of a row: of more, all folds have the same share
_MOST_THERE = 0.8  # of the whole multiples of a step, where they are codes


@dataclass(frozen=True)
class Rows:
    """Distinct rows, ordered by fold."""

    X: FloatArray
    targets: FloatArray
    weight: FloatArray
    starts: tuple[int, ...]
    """Start of each fold, and the number of rows."""
    codes: bool = False
    """Whether rows with equal features may be in different folds, see :func:`are_codes`."""
    groups: IntArray | None = None
    """Group of each row; the rows of a group are held out together."""
    unit: float | None = None
    """The weight of a single row, of which some are parts; None if it is not known."""

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.starts) - 1

    def at_most(self, n_folds: int) -> int:
        """Return this number of folds, or the number of groups or rows if that is smaller."""
        return min(n_folds, len(self.X if self.groups is None else np.unique(self.groups)))

    def fold(self, k: int) -> slice:
        """Rows of a fold."""
        return slice(self.starts[k], self.starts[k + 1])

    def apart(self) -> tuple[Rows, Rows]:
        """All rows, of which the first third of the folds is one fold that is held out; the rest.

        Of the rest no row is held out.
        """
        k = max(self.n_folds // 3, 1)
        at = self.starts[k]
        groups = None if self.groups is None else self.groups[at:]
        starts = tuple(start - at for start in self.starts[k:])
        known = self.X[at:], self.targets[at:], self.weight[at:]
        rest = Rows(*known, starts, self.codes, groups, self.unit)
        return replace(self, starts=(0, at)), rest

    def first(self, n_rows: int, n_folds: int) -> Rows:
        """About this number of the rows, in this number of folds."""
        known = self.X, self.targets, self.weight
        codes = self.codes or None
        return rows_by_content(*known, n_rows, n_folds, codes, self.groups, self.unit)


def rows_by_content(
    X: FloatArray,
    targets: FloatArray,
    weight: FloatArray,
    n_rows: int,
    n_folds: int,
    codes: bool | None = None,
    groups: IntArray | None = None,
    unit: float | None = None,
) -> Rows:
    """Choose at most ``n_rows`` distinct rows of positive weight, and assign them to folds.

    The rows of a group are in one fold. Without groups, rows with equal features are in one fold,
    unless there are too few different ones or the features are codes.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    targets : ndarray of shape (n, p)
    weight : ndarray of shape (n,)
    n_rows : int
    n_folds : int
    codes : bool, optional
        Result of :func:`are_codes` for all rows, if these are some of them.
    groups : ndarray of shape (n,), optional
        Indices of groups.
    unit : float, optional
        Weight of a single row, if these are parts of rows.

    Returns
    -------
    Rows
    """
    if groups is not None:
        table = np.column_stack([X, groups])
        _, table, targets, weight = distinct_rows(table, targets, weight, n_rows)
        X, groups = np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.intp)
        fold = _dealt(_keys_of(groups), n_folds)
        return _in_folds(Rows(X, targets, weight, (), False, groups), fold, n_folds)
    of_all, unit = X, single_of(weight) if unit is None else unit
    table, X, targets, weight = distinct_rows(X, targets, weight, n_rows)
    times = _repetitions(weight, unit)
    together = _Together.of(table, of_all, times, n_folds, codes)
    if together.repeat(X, targets, times):
        evenly = _single(table[:, 0]) | _of_one_factor(X, in_order=False)
        some, fold, share = _in_parts(times, n_folds, n_rows, evenly)
        X, targets, weight = X[some], targets[some], share * weight[some]
    else:
        fold = _dealt(together.keys, n_folds)
    return _in_folds(Rows(X, targets, weight, (), together.codes, unit=unit), fold, n_folds)


def _in_folds(rows: Rows, fold: IntArray, n_folds: int) -> Rows:
    """Sort rows by fold."""
    order = np.argsort(fold, kind="stable")
    counts = np.bincount(fold, minlength=n_folds)
    starts = tuple(np.concatenate([[0], np.cumsum(counts[counts > 0])]).tolist())
    X, targets, weight = rows.X[order], rows.targets[order], rows.weight[order]
    groups = None if rows.groups is None else rows.groups[order]
    return Rows(X, targets, weight, starts, rows.codes, groups, rows.unit)


def folds_by_content(X: FloatArray | SparsePoints, targets: FloatArray, n_folds: int) -> IntArray:
    """Fold of each row; equal rows and rows with equal features are in the same fold.

    Rows with equal features are separated if too few are different, or if features are codes.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning import folds_by_content
    >>> X = np.array([[1.0], [5.0], [1.0], [2.0], [7.0]])
    >>> fold = folds_by_content(X, X, 2)
    >>> bool(fold[0] == fold[2]), np.bincount(np.unique(fold))
    (True, array([1, 1]))
    """
    return held_out_folds(X, targets, n_folds)[0]


def held_out_folds(
    X: FloatArray | SparsePoints,
    targets: FloatArray,
    n_folds: int,
    weight: FloatArray | None = None,
    groups: IntArray | None = None,
) -> tuple[IntArray, int]:
    """The folds of :func:`folds_by_content`, and the number of distinct rows.

    With groups, the rows of each group are in one fold. All rows are in one fold if they, or many
    of them, are cells of a table with several rows each.
    """
    distinct, place = _distinct(X, targets)
    if groups is not None:
        keys = _keys_of(groups)
        table = np.column_stack([keys, mixed(distinct[place, 1] + ODD * keys)])
        table, place = _unique(table)
        return _dealt(table[:, 0], n_folds)[place], len(distinct)
    weight = np.ones(len(place)) if weight is None else weight
    total = np.bincount(place, weights=weight).astype(np.float64)
    times = _repetitions(total, single_of(weight))
    together = _Together.of(distinct, X, times, n_folds)
    if together.repeat(X, targets[np.unique(place, return_index=True)[1]], times):
        return np.zeros(len(place), dtype=np.intp), len(distinct)
    return _dealt(together.keys, n_folds)[place], len(distinct)


def effective_number(
    X: FloatArray | SparsePoints,
    targets: FloatArray,
    weight: FloatArray,
    groups: IntArray | None = None,
) -> float:
    """Kish's effective number of rows, (Σ s)² / Σ s², after merging equal rows.

    With groups it is the effective number of groups.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning.rows import effective_number
    >>> X = np.array([[1.0], [5.0], [1.0]])
    >>> effective_number(X, X, np.ones(3))  # 3² / (2² + 1²)
    1.8
    """
    place = _distinct(X, targets)[1] if groups is None else groups
    total = np.bincount(place, weights=weight)
    return float(total.sum() ** 2 / (total @ total))


def single_weight(weight: FloatArray) -> float:
    """The weight of one row: whole weights are numbers of repeats.

    Of others it is that of one row in Kish's effective number.
    """
    if np.all(weight == np.rint(weight)):
        return 1.0
    return float(weight @ weight / weight.sum())


def _distinct(X: FloatArray | SparsePoints, targets: FloatArray) -> tuple[Keys, IntArray]:
    """Keys of the distinct rows, and the index of the key of each row."""
    return _unique(row_keys(X.matrix if isinstance(X, SparsePoints) else X, targets))


def _unique(table: Keys) -> tuple[Keys, IntArray]:
    """Distinct rows of a table, and the index of each row among them."""
    distinct, place = np.unique(table, axis=0, return_inverse=True)
    return distinct, place.ravel()  # numpy 2.0 gives it a second axis


def _keys_of(groups: IntArray) -> Keys:
    """Keys of groups, in an order unrelated to their labels."""
    return mixed(groups.astype(np.uint64) + np.uint64(1))


def _repetitions(weight: FloatArray, unit: float) -> FloatArray:
    """Number of repetitions of each row, from its weight and that of a single row."""
    return np.maximum(np.floor((1.0 + _ROUNDING) * weight / unit), 1.0)


def some_dense(
    X: SparsePoints, targets: FloatArray, weight: FloatArray, groups: IntArray | None, n_rows: int
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray | None]:
    """At most ``n_rows`` of the distinct sparse rows as an array, and all else of them."""
    keys = row_keys(X.matrix, targets)
    if groups is not None:
        keys = np.column_stack([keys, groups.astype(np.uint64)])
    _, first, place = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    total = np.bincount(place.ravel(), weight).astype(np.float64)
    first = first[:n_rows]
    own = None if groups is None else groups[first]
    return X[first].toarray(), targets[first], total[:n_rows], own


def has_many_columns(X: FloatArray | SparsePoints, most_rows: int, rows_each: int) -> bool:
    """Whether distinct rows, at most ``most_rows``, are at most ``rows_each`` for each column.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning.rows import has_many_columns
    >>> has_many_columns(np.eye(30), 1000, 5), has_many_columns(np.eye(30)[:, :2], 1000, 1)
    (True, False)
    """
    enough = rows_each * X.shape[1] + 1
    if min(most_rows, len(X)) < enough:
        return True
    none = np.zeros((len(X), 0))
    if isinstance(X, SparsePoints):
        return len(_distinct(X, none)[0]) < enough
    return len(distinct_rows(X, none, np.ones(len(X)), enough)[1]) < enough


def single_of(weight: FloatArray) -> float:
    """The weight of a single row: whole numbers are counts."""
    whole = bool(np.all(weight == np.rint(weight)))
    return 1.0 if whole else float(weight[weight > 0.0].min(initial=np.inf))


class _Together(NamedTuple):
    """Which rows are held out together, by their features."""

    keys: Keys
    """The same for these."""
    codes: bool
    """Whether features are codes, if this was checked."""
    by_rows: bool
    """Whether each row is held out by itself."""
    different: int
    """Number of different features."""

    @classmethod
    def of(
        cls, table: Keys, X: Any, times: FloatArray, n_folds: int, codes: bool | None = None
    ) -> Self:
        """Make it for distinct rows, each of which appears ``times`` times."""
        features, rows = table.T
        _, place, sizes = np.unique(features, return_inverse=True, return_counts=True)
        few = 2 * len(sizes) >= times.sum()  # at most two rows with the same features, on average
        if len(sizes) < 4 * n_folds or sizes.max() * n_folds > len(table):
            if codes is None and len(sizes) > _FEWER * len(table):
                codes = are_codes(X, few)  # which tell pure cells of a table from copies of rows
            return cls(rows, bool(codes), True, len(sizes))
        if len(sizes) == len(table):
            return cls(features, bool(codes), False, len(sizes))
        codes = are_codes(X, few) if codes is None else codes
        many = sizes > _MANY * min(float(np.median(sizes)), len(table) / _MANY**2)
        keys = rows if codes else np.where(many[place], rows, features)
        return cls(keys, codes, codes, len(sizes))

    def repeat(self, X: Any, targets: FloatArray, times: FloatArray) -> bool:
        """Whether rows are cells of a table of factors and few targets, with several rows each.

        The other cells give no information on a cell whose rows are all held out. The cells may
        also be some of the rows, as those of zeros among other amounts, which are all different.
        If nearly all rows of a level have the same target, features have to be codes, and levels
        to share targets: these may otherwise be averages with the numbers of rows as weights. Many
        cells of several factors tell of each other, and weights may be those of a survey.
        """
        cells = len(times)
        if not self.by_rows:
            return False
        n_targets = len(np.unique(targets, axis=0))
        if self.different > _FEWER * cells:
            pure = self.codes and times.sum() >= 2 * cells and 2 * (n_targets - 1) <= cells
            return pure and (self.different < _FEW_CELLS or _of_one_factor(X))
        if times.sum() >= 2 * cells and 2 * n_targets <= cells:
            return True
        several = times > 1.0
        if times[several].sum() < _MANY_THERE * times.sum():
            return False
        return 2 * len(np.unique(targets[several], axis=0)) <= int(np.count_nonzero(several))


def _dealt(keys: Keys, n_folds: int) -> IntArray:
    """Fold of each row: the rows of a key go together, in order, to the smallest fold."""
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    fold_of = np.zeros(len(counts), dtype=np.intp)
    sizes = [0] * n_folds
    for number, count in enumerate(counts.tolist()):
        fold = sizes.index(min(sizes))
        fold_of[number] = fold
        sizes[fold] += count
    return fold_of[place]


def _in_parts(
    times: FloatArray, n_folds: int, n_rows: int, evenly: BoolArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Split rows into at most ``n_rows`` parts: row, fold and share of the weight of each.

    A row that appears several times is in several folds: ``evenly``, or else as often as it is
    dealt to them, so that the means of a level differ between folds as those of new rows do. Were
    they the same, nothing would tell from a model that follows each level.
    """
    parts = np.minimum(times, n_folds).astype(np.intp)
    parts = parts[: max(np.searchsorted(np.cumsum(parts), n_rows, side="right"), 1)]
    sizes, dealt = np.zeros(n_folds), np.zeros((len(parts), n_folds))
    for row, count in enumerate(parts.tolist()):
        chosen = np.argsort(sizes, kind="stable")[:count]
        sizes[chosen] += 1
        dealt[row, chosen] = 1.0
    random, share, drawn = np.random.RandomState(0), np.full(n_folds, 1.0 / n_folds), dealt.copy()
    for row in np.flatnonzero((parts > 1) & ~evenly[: len(parts)]).tolist():
        drawn[row] = random.multinomial(int(min(times[row], _MOST_TIMES)), share)
    if drawn.any(axis=0).all():  # of few rows, a fold may have none
        dealt = drawn
    rows, folds = np.nonzero(dealt)
    return rows, folds, dealt[rows, folds] / dealt.sum(axis=1)[rows]


def are_codes(X: Any, few: bool = False) -> bool:
    """Whether equal features mean the same category, rather than the same unit seen again.

    True if a column that is different for each distinct row takes nearly all whole multiples of a
    step between its ends, such as codes and hours of the day. Also true, unless ``few`` rows are
    equal, if each column has at most half as many different values as there are distinct rows, as
    in a table of factors. A measured number is seldom the same for two units.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning.rows import are_codes
    >>> are_codes(np.arange(24.0)[:, None]), are_codes(np.sqrt(np.arange(24.0))[:, None])
    (True, False)
    """
    if isinstance(X, SparsePoints):
        return not few
    X = np.asarray(X, dtype=np.float64)
    rows = distinct_rows(X, X[:, :0], np.ones(len(X)), _LOOKED_AT, exact=False)[1]
    columns = [np.unique(column) for column in rows.T]
    if any(len(column) == len(rows) and _nearly_all_multiples(column) for column in columns):
        return True
    return not few and max(len(column) for column in columns) <= 0.5 * len(rows)


def _of_one_factor(X: Any, in_order: bool = True) -> bool:
    """Whether levels share no values, except for the one that nearly all have, such as 0.

    They may also be numbers that are all different, if these may be ``in_order``.
    """
    if isinstance(X, SparsePoints):
        return bool(np.diff(X.indptr).max(initial=0) <= 1)
    rows = distinct_rows(X, X[:, :0], np.ones(len(X)), _LOOKED_AT, exact=False)[1]
    most = [np.unique(column, return_counts=True)[1].max() for column in rows.T]
    return all((in_order and count == 1) or count >= len(rows) - 1 for count in most)


def _single(keys: Keys) -> BoolArray:
    """Whether a key is there once."""
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.asarray(counts[place] == 1)


def _nearly_all_multiples(values: FloatArray) -> bool:
    """Whether sorted numbers are nearly all whole multiples of their smallest difference."""
    steps = (values - values[0]) / np.diff(values).min(initial=np.inf)
    whole = np.abs(steps - np.rint(steps)) <= 1e-6 * np.maximum(steps, 1.0)
    return bool(whole.all() and len(values) >= _MOST_THERE * (steps[-1] + 1.0))
