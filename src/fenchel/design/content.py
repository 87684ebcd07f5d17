"""Keys of rows that depend only on their values, not on order, units or repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable
from scipy.sparse import issparse, sparray

from fenchel._compiling import njit
from fenchel._threads import dot
from fenchel._typing import FloatArray, IntArray
from fenchel.design.rows import RowBlocks

_GRID = 2.0**20  # values are told apart by so many steps of their column's range
_HALF_OF_ALL = 0.5 * np.finfo(float).max
_LOOKED_AT = 4  # times the rows that are asked for, at first
_PARTS = 18  # bits of keys by which parts of them are counted: 2 MiB, more are outside of caches
_SMALL_PARTS = 20  # where few different rows may be in one
ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: Knuth, volume 3, section 6.4

Keys = npt.NDArray[np.uint64]
BoolArray = npt.NDArray[np.bool_]


def row_keys(X: FloatArray | sparray, targets: FloatArray) -> Keys:
    """Return two keys for each row, (n, 2): of its features, and of features and targets.

    They are computed from the ranks of values within columns.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n, d)
        For sparse rows, the non-zero values are used.
    targets : ndarray of shape (n, p)

    Returns
    -------
    ndarray of shape (n, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import row_keys
    >>> X = np.array([[1.0], [5.0], [1.0]])
    >>> keys = row_keys(X, np.array([[0.0], [0.0], [2.0]]))
    >>> bool(keys[0, 0] == keys[2, 0]), bool(keys[0, 1] == keys[2, 1])
    (True, False)
    """
    features = _sparse_keys(X) if issparse(X) else _keys(_ranked(np.asarray(X)))
    of_targets = _keys(_ranked(targets))
    return np.column_stack([features, mixed(features + ODD * of_targets)])


def distinct_rows(
    X: FloatArray, targets: FloatArray, weight: FloatArray, n_rows: int, exact: bool = True
) -> tuple[Keys, FloatArray, FloatArray, FloatArray]:
    """Return at most ``n_rows`` distinct rows and their keys, in a pseudo-random order.

    Rows that differ by less than a millionth of the ranges of the columns can be distinguished
    only by the ranks of values, which requires sorting all values.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    targets : ndarray of shape (n, p)
        p may be 0.
    weight : ndarray of shape (n,)
    n_rows : int
    exact : bool, default=True
        If False, such rows are treated as equal, unless they are most rows; more than one of
        them may be returned.

    Returns
    -------
    keys : ndarray of shape (m, 2)
        See :func:`row_keys`; computed from steps of the columns' ranges if these distinguish
        all rows.
    X : ndarray of shape (m, d)
    targets : ndarray of shape (m, p)
    weight : ndarray of shape (m,)
        Sums of the weights of equal rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import distinct_rows
    >>> X = np.array([[1.0], [5.0], [1.0]])
    >>> _, rows, _, weight = distinct_rows(X, X[:, :0], np.ones(3), 10)
    >>> sorted(zip(rows[:, 0].tolist(), weight.tolist()))
    [(1.0, 2.0), (5.0, 1.0)]
    """
    found = _chosen(X, targets, weight, n_rows, (X, targets))
    keys = np.sort(found[0][:, 1])
    same = np.count_nonzero(keys[1:] == keys[:-1])
    if same > (0 if exact else len(keys) // 2):  # as where a few values are far from all others
        found = _chosen(X, targets, weight, n_rows, (_ranked(X), _ranked(targets)))
    return found


def sample_by_content(X: FloatArray, weight: FloatArray, n_rows: int) -> FloatArray:
    """Choose at most ``n_rows`` rows in proportion to their weights, in a pseudo-random order.

    The order of the rows does not matter, and an integer weight is the same as repeating the row.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    weight : ndarray of shape (n,)
    n_rows : int

    Returns
    -------
    ndarray of shape (m, d)
        All rows, as often as they are there, if these are at most ``n_rows``. The smallest weight
        is that of one row.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning import sample_by_content
    >>> X = np.array([[1.0], [5.0]])
    >>> sorted(sample_by_content(X, np.array([3.0, 1.0]), 10)[:, 0].tolist())
    [1.0, 1.0, 1.0, 5.0]
    """
    keys = _keys(X)
    parts = _parts(keys, _PARTS, weight)
    total = float(parts.sum())
    alike = max(dot(parts, parts) / total**2 - 2.0**-_PARTS, 0.0)  # two rows, but by chance
    share = _LOOKED_AT * n_rows * alike
    if share < 1.0 and parts.max() <= total / n_rows:  # some of so many rows are as good
        part = int(np.searchsorted(np.cumsum(parts), share * total))
        some = np.flatnonzero(keys <= np.uint64((part + 1 << 64 - _PARTS) - 1))
        X, keys, weight = X[some], keys[some], weight[some]
    order = np.argsort(keys)
    same = np.flatnonzero(np.diff(keys[order]) == 0)
    if any((x[order[same]] != x[order[same + 1]]).any() for x in X.T):  # more than a key tells
        keys = _keys(_ranked(X))
        order = np.argsort(keys)
    first = np.unique(keys[order], return_index=True)[1]
    sums = np.add.reduceat(weight[order], first)
    ends = np.cumsum(sums)
    number = int(min(n_rows, np.rint(ends[-1] / sums[sums > 0.0].min())))
    points = (np.arange(number) + 0.5) * (ends[-1] / number)
    chosen = np.minimum(np.searchsorted(ends, points), len(ends) - 1)
    if (np.diff(chosen) == 0).any():  # repeats are not to follow one another
        chosen = np.random.RandomState(0).permutation(chosen)
    return X[order[first[chosen]]]


def _chosen(
    X: FloatArray,
    targets: FloatArray,
    weight: FloatArray,
    n_rows: int,
    told: tuple[FloatArray, FloatArray],
) -> tuple[Keys, FloatArray, FloatArray, FloatArray]:
    """Keys of at most so many rows, and these; keys are of what ``told`` says of each row.

    They are those with the smallest keys of features, and of targets where these are equal; of
    many rows only some are looked at, more of them where they turn out to be repeats. Rows with
    equal features are thinned first, if these are too many to see several of them. Where no part
    of the keys has more rows than that, some rows show it as well as all of them.
    """
    features, of_targets = (_keys(values) for values in told)
    size = _LOOKED_AT * n_rows
    most = 0.5 * _LOOKED_AT * np.sqrt(n_rows)
    spread: bool | None = None  # of rows that are not alone
    while True:
        some = np.arange(len(X))
        if size < len(X):
            some = np.flatnonzero(features <= _least_but(features, size))
        by_features = features[some]
        by_all = mixed(by_features + ODD * of_targets[some])
        order = np.lexsort((by_all, by_features))
        new, count = _counted(by_all[order])
        alone = count[-1] == 1 + np.count_nonzero(np.diff(by_features[order]))
        if not alone and len(some) < len(X) and spread is None:
            spread = bool(_parts(features, _SMALL_PARTS).max() <= most)
        if len(some) == len(X) or ((alone or spread) and count[-1] >= n_rows):
            break
        size = 4 * size if alone or spread else len(X)
    if count[-1] > n_rows and not alone:
        order = order[_thinned(by_features[order], by_all[order], new, n_rows)]
        new, count = _counted(by_all[order])
    order = order[count <= n_rows]
    table, some = np.column_stack([by_features[order], by_all[order]]), some[order]
    return _merged(table, X[some], targets[some], weight[some])


def _counted(keys: Keys) -> tuple[BoolArray, IntArray]:
    """Where the next one of several different keys begins, and how many there are so far."""
    new = np.ones(len(keys), dtype=bool)
    new[1:] = np.diff(keys) != 0
    return new, np.cumsum(new)


def _thinned(features: Keys, rows: Keys, new: BoolArray, n_rows: int) -> BoolArray:
    """Which sorted rows to choose from, so that ``n_rows`` of them have several features.

    All are left where enough different features have room, and otherwise the same share of the
    rows of each, as large as this allows.
    """
    sizes = np.unique(features[new], return_counts=True)[1].astype(np.float64)
    total = sizes.sum()
    typical = float(sizes @ sizes / total)  # rows with the features of a row
    several = min(total / typical, np.sqrt(n_rows))
    share = n_rows / (typical * several)
    if share >= 1.0:
        return np.ones(len(rows), dtype=bool)
    last = int(np.ceil(share * total)) - 1
    return np.asarray(rows <= np.partition(rows[new], last)[last])


def _parts(keys: Keys, bits: int, weight: FloatArray | None = None) -> FloatArray:
    """Number of rows, or their weight, in each of 2^bits equal parts of the range of keys.

    No row with its repeats has more than its part.
    """
    parts = np.zeros(2**bits)
    each = np.require(1.0 if weight is None else weight, np.float64, ["C", "W"])
    _add_to_parts(keys, each.reshape(-1), np.uint64(64 - bits), parts)
    return parts


@njit(cache=True, nogil=True)
def _add_to_parts(keys: Keys, weight: FloatArray, shift: np.uint64, parts: FloatArray) -> None:
    """Add the weight of each key, or one for all, to the part of the key's first bits."""
    single = len(weight) == 1
    for i in range(len(keys)):
        parts[keys[i] >> shift] += weight[0 if single else i]


def _least_but(keys: Keys, number: int) -> np.uint64:
    """The smallest of numbers but so many.

    Those of different rows are spread over all numbers: nearly always, the smallest are among
    twice as many as there would be if they were spread evenly.
    """
    low = keys[keys <= np.uint64(min(2.0 * number / len(keys), 0.5) * 2.0**64)]
    some = low if len(low) > number else keys
    return np.uint64(np.partition(some, number)[number])


def _ranked(values: FloatArray) -> FloatArray:
    """Each value as its number among the different values of its column."""
    ranks = [np.unique(column, return_inverse=True)[1] for column in values.T]
    return np.column_stack([values[:, :0], *ranks]).astype(np.float64)  # there may be no column


def _keys(values: FloatArray) -> Keys:
    """A number for each row that tells what it holds, in units of the columns' ranges.

    Constant columns do not change it.
    """
    low, high = values.min(axis=0), values.max(axis=0)
    part = np.where(0.5 * high - 0.5 * low > _HALF_OF_ALL, 0.5, 1.0)  # ranges may overflow
    low, span = part * low, part * high - part * low
    keys = np.zeros(len(values), dtype=np.uint64)

    def task(rows: slice) -> None:
        _write_keys(values[rows], part, low, span, keys[rows])

    RowBlocks(len(values), values.shape[1]).map(task)
    return keys


@njit(cache=True, nogil=True, error_model="numpy")
def _write_keys(
    values: FloatArray, part: FloatArray, low: FloatArray, span: FloatArray, keys: Keys
) -> None:
    """Hash the steps on the grid of each column's range, column after column."""
    for i in range(len(values)):
        for j in range(values.shape[1]):
            if span[j] > 0.0:
                step = np.uint64(np.rint(_GRID * ((part[j] * values[i, j] - low[j]) / span[j])))
                keys[i] = mixed(keys[i] * ODD + step + np.uint64(1))


def _sparse_keys(X: Any) -> Keys:
    """The same by the values that are not zero, as ranks that go on from column to column."""
    columns = X.tocsc(copy=True)
    columns.eliminate_zeros()
    of = np.repeat(np.arange(columns.shape[1]), np.diff(columns.indptr))
    order = np.lexsort((columns.data, of))
    new = np.ones(len(order), dtype=np.uint64)
    new[1:] = (np.diff(columns.data[order]) != 0) | (np.diff(of[order]) != 0)
    keys = np.zeros(columns.shape[0], dtype=np.uint64)
    np.add.at(keys, columns.indices[order], mixed(np.cumsum(new, dtype=np.uint64)))
    return mixed(keys)


@register_jitable
def mixed(keys: Keys) -> Keys:
    """Hash keys by the finalizer of SplitMix64 (Steele et al., 2014).

    Model files store its results as records of the training rows.
    """
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def _merged(
    table: Keys, X: FloatArray, targets: FloatArray, weight: FloatArray
) -> tuple[Keys, FloatArray, FloatArray, FloatArray]:
    """Equal rows as one, of rows in the order of their keys."""
    if (table[1:] != table[:-1]).any(axis=1).all():
        return table, X, targets, weight
    columns = [*targets.T, *X.T, table[:, 1], table[:, 0]]
    order = np.lexsort(columns)
    table, X, targets, weight = table[order], X[order], targets[order], weight[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (X[1:] != X[:-1]).any(axis=1) | (targets[1:] != targets[:-1]).any(axis=1)
    first = np.flatnonzero(new)
    return table[first], X[first], targets[first], np.add.reduceat(weight, first)
