"""Numbers of a table: read once and kept on disk, or passed over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import check_magnitude, check_weights, shown, targets_of
from fenchel.files._arrow import opened
from fenchel.files._tables import Table, Told
from fenchel.spool import Spool


class Columns(NamedTuple):
    """Rows of positive weight of a table, as they were read."""

    rows: Spool
    targets: FloatArray
    """(n, 1)."""
    weight: FloatArray
    kept: IntArray
    """Their numbers among all rows."""
    n_rows: int
    """Number of all rows."""
    names: list[str] | None
    """Names of the columns, where they have some."""


def is_table(X: Any) -> bool:
    """Whether X is the place of a table, or a table or data set of Arrow."""
    placed = isinstance(X, (str, os.PathLike, Table))
    return placed or (hasattr(X, "to_batches") and hasattr(X, "schema"))


def names_of(X: Any) -> list[str]:
    """Names of the columns of a table; in an array they are numbers."""
    return opened(X).names


def n_rows_of(X: Any) -> int | None:
    """Number of rows of a table, where it is known before they are read."""
    return opened(X).n_rows


def read_columns(X: Any, y: Any, sample_weight: Any = None, told: Told | None = None) -> Columns:
    """Read a table once, and keep its numbers on disk.

    Parameters
    ----------
    X : str, path, pyarrow.Table or pyarrow.dataset.Dataset
        A Parquet file, a folder of them, or an array (n, d) in a file .npy.
    y : str or array-like of shape (n,)
        Name of the column to learn; for an array, the targets or their file .npy.
    sample_weight : str or array-like of shape (n,), optional
        Name of the column of weights, or the weights.
    told : callable, optional
        Called after each block.
    """
    table = opened(X)
    if isinstance(y, str) and isinstance(sample_weight, str) and y == sample_weight:
        raise ValueError(f"sample_weight must be another column than y, got {shown(y)} for both")
    beside = [each for each in (y, sample_weight) if isinstance(each, str) and table.named]
    names = [name for name in table.features if name not in beside or not table.named]
    if not names:
        raise ValueError(f"{table.label} must have a column beside {' and '.join(beside)}")
    for name in beside:
        if not table.features_named and name in table.features:
            raise ValueError(
                f"sample_weight must not be a column that an encoder makes a feature of, got "
                f"{name!r}: give the weights as an array or .npy, and a table without this column"
            )
        table.check_name(name)
    targets, weights = _given(y, "y", table), _given(sample_weight, "sample_weight", table)
    spool, n = Spool(len(names)), 0
    kept: list[IntArray] = []
    of_rows: tuple[list[FloatArray], list[FloatArray]] = [], []
    for block in table.blocks([*names, *beside], told):
        rows = slice(n, n + len(block))
        y_here = block[:, len(names)] if targets is None else _some(targets, rows, "y")
        chosen = np.arange(len(block))
        if sample_weight is not None:
            mine = block[:, -1] if weights is None else _some(weights, rows, "sample_weight")
            _check_not_negative(mine)
            chosen = np.flatnonzero(mine)
            of_rows[1].append(mine.copy())
        kept.append(chosen + n)
        of_rows[0].append(y_here[chosen])
        features = block[chosen, : len(names)]
        if len(features):
            check_magnitude(features, "X")
        spool.append(features)
        n += len(block)
    for given, name in ((targets, "y"), (weights, "sample_weight")):
        if given is not None and len(given) != n:
            raise _wrong_length(name, len(given), n)
    if n == 0:
        raise ValueError(f"{table.label} must have at least one row, got an empty table")
    numbers, weight = np.concatenate(kept), np.broadcast_to(1.0, n)  # one number in memory
    if of_rows[1]:
        weight = check_weights(np.empty((n, 0)), np.concatenate(of_rows[1]))[numbers]
    found = np.concatenate(of_rows[0])[:, None]
    known = list(names) if table.features_named else None
    return Columns(spool, found, weight, numbers, n, known)


def _some(values: FloatArray, rows: slice, name: str) -> FloatArray:
    if len(values) < rows.stop:
        raise _wrong_length(name, len(values), None)
    return values[rows]


def _wrong_length(name: str, length: int, n_rows: int | None) -> ValueError:
    number = "row" if n_rows is None else f"of the {n_rows} rows"
    return ValueError(f"{name} must have one entry for each {number} of X, got {length}")


def read_blocks(X: Any, names: list[str] | None, n_columns: int) -> Iterator[FloatArray]:
    """Rows of the named columns of a table, block by block; in an array there are no names."""
    table = opened(X)
    if names is None and table.named and not table.features_named:
        names = table.features
    if table.named != (names is not None):
        kind = "columns with names" if names is not None else "an array without names"
        raise ValueError(f"X must be {kind}, as in the fit, got {table.label}")
    for name in names or []:
        table.check_name(name)
    if names is None and len(table.names) != n_columns:
        raise ValueError(f"X has {len(table.names)} features, and the fit had {n_columns}")
    return table.blocks(list(table.names) if names is None else names)


def _given(values: Any, name: str, table: Table) -> FloatArray | None:
    """Values that are not a column of the table."""
    if values is None and name == "y":
        raise ValueError("y must be the name of the column to learn, or hold its values, got None")
    if values is None or (isinstance(values, str) and table.named):
        return None
    if isinstance(values, (str, os.PathLike)):
        values = _loaded(Path(values), name)
    several = isinstance(values, (list, tuple)) and len(values) > 0
    if several and all(isinstance(each, str) and each in table.names for each in values):
        raise ValueError(
            f"{name} must be the name of one column, or numbers of shape (n,), got {shown(values)}"
        )
    if len(shape := np.shape(values)) != 1:
        raise ValueError(
            f"{name} must be the name of a column, or numbers of shape (n,), got shape {shape}"
        )
    if name == "y":
        return targets_of("fit", values, len(values))
    return check_weights(np.empty((len(values), 0)), values, all_zero=True)


def _loaded(path: Path, name: str) -> AnyArray:
    """The array in a file .npy."""
    if not path.is_file():
        raise FileNotFoundError(
            f"{name} must hold numbers, or be the place of a file .npy where X has no names of "
            f"columns, got {shown(str(path))}: there is no such file"
        )
    try:
        return np.asarray(np.load(path))
    except (OSError, ValueError) as error:
        raise ValueError(f"{name}: {path} cannot be read as an array: {error}") from error


def _check_not_negative(weights: FloatArray) -> None:
    if weights.min(initial=0.0) < 0.0:
        raise ValueError(f"sample_weight must not be negative, got {weights.min():g}")


def read_known(X: Any, name: str) -> tuple[FloatArray, IntArray, int]:
    """Numbers of a column where it has some, of which rows these are, and how many there are."""
    table = opened(X)
    table.check_name(name)
    values, numbers, n_rows = [np.empty(0)], [np.empty(0, dtype=np.intp)], 0
    for piece in table.read([name]):
        here = np.flatnonzero(~np.isnan(piece.values[:, 0]))
        values.append(piece.values[here, 0])
        numbers.append(piece.numbers[here])
        n_rows = piece.stop
    return np.concatenate(values), np.concatenate(numbers), n_rows


def sample_of(n_rows: int, size: int, random: Any) -> AnyArray:
    """Numbers of at most so many rows, in their order."""
    if n_rows <= size:
        return np.arange(n_rows)
    return np.sort(random.choice(n_rows, size, replace=False))
