"""Tables in files, block by block: Parquet files and folders, Arrow tables, arrays of NumPy."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import check_magnitude, check_weights
from fenchel.spool import Spool

_INDEX = re.compile(r"__index_level_\d+__")  # where pandas keeps labels of rows
_BLOCK_ROWS = 2**16
_READ_ROWS = 2**18
_NUMBERS = ("int", "uint", "float", "double", "halffloat", "decimal")
_ENDINGS = "X must be a Parquet file, a folder of them, or a file .npy, got {!r}"


Told = Callable[[int, "int | None"], object]
"""Is told how many rows were read, and of how many, None where that is not known."""


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
    placed = isinstance(X, (str, os.PathLike, _Table))
    return placed or (hasattr(X, "to_batches") and hasattr(X, "schema"))


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
    table = _opened(X)
    beside = [each for each in (y, sample_weight) if isinstance(each, str) and table.named]
    names = [name for name in table.features if name not in beside or not table.named]
    if not names:
        raise ValueError(f"{table.label} must have a column beside {' and '.join(beside)}")
    for name in beside:
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
            raise _wrong_length(name, len(given))
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
        raise _wrong_length(name, len(values))
    return values[rows]


def _wrong_length(name: str, length: int) -> ValueError:
    return ValueError(f"{name} must have one entry for each row of X, got {length}")


def read_blocks(
    X: Any, names: list[str] | None, n_columns: int, told: Told | None = None
) -> Iterator[FloatArray]:
    """Rows of the named columns of a table, block by block; in an array there are no names."""
    table = _opened(X)
    if names is None and table.named and not table.features_named:
        names = table.features
    if table.named != (names is not None):
        kind = "columns with names" if names is not None else "an array without names"
        raise ValueError(f"X must be {kind}, as in the fit, got {table.label}")
    for name in names or []:
        table.check_name(name)
    if names is None and len(table.names) != n_columns:
        raise ValueError(f"X has {len(table.names)} features, and the fit had {n_columns}")
    return table.blocks(list(table.names) if names is None else names, told)


def _given(values: Any, name: str, table: _Table) -> FloatArray | None:
    """Values that are not a column of the table."""
    if values is None and name == "y":
        raise ValueError("y must name the column to learn, or hold its values, and is None")
    if values is None or (isinstance(values, str) and table.named):
        return None
    if isinstance(values, (str, os.PathLike)):
        values = np.load(values)
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ValueError(f"{name} must be the name of a column, or finite numbers of shape (n,)")
    return found


def _check_not_negative(weights: FloatArray) -> None:
    if weights.min(initial=0.0) < 0.0:
        raise ValueError(f"sample_weight must not be negative, got {weights.min():g}")


@dataclass
class _Table:
    """What all tables share."""

    label: str
    names: list[str]
    named = True

    @property
    def features_named(self) -> bool:
        """Whether models know the features by name, as they know those of a data frame."""
        return self.named

    @property
    def features(self) -> list[str]:
        """Columns that are features, unless they are the target or the weights."""
        return self.names

    def check_name(self, name: str) -> None:
        """Refuse the name of a column that is not there once."""
        if self.names.count(name) != 1:
            number = "no column" if name not in self.names else "more than one column"
            raise ValueError(f"{self.label} has {number} {name!r}; its columns are {self.names}")

    @property
    def n_rows(self) -> int | None:
        """Number of rows, where it is known before they are read."""
        return None

    def blocks(self, names: list[str], told: Told | None = None) -> Iterator[FloatArray]:
        """Numbers of some columns, (m, k), block by block."""
        row, n_rows = 0, None if told is None else self.n_rows
        for block in self._read(names):
            finite = np.isfinite(block)
            if not finite.all():
                i, j = np.argwhere(~finite)[0]
                given = "nothing" if np.isnan(block[i, j]) else f"{block[i, j]:g}"
                raise ValueError(
                    f"{self.label} must hold a finite number in column {names[j]!r} of row "
                    f"{row + i + 1}, and has {given} there"
                )
            row += len(block)
            yield block
            if told is not None:
                told(row, n_rows)

    def _read(self, names: list[str]) -> Iterator[FloatArray]:
        raise NotImplementedError


@dataclass
class _Arrow(_Table):
    """Fragments of a data set of Arrow: files, or a table in memory."""

    fragments: list[Any]

    @property
    def n_rows(self) -> int | None:
        groups: list[Any] = [getattr(fragment, "row_groups", None) for fragment in self.fragments]
        return None if None in groups else sum(group.num_rows for each in groups for group in each)

    def _read(self, names: list[str]) -> Iterator[FloatArray]:
        for batch in self.batches(names, names):
            yield numbers_of(batch, names)

    def batches(self, names: list[str], numbers: list[str]) -> Iterator[Any]:
        """Batches of Arrow with these columns, some of which are to hold numbers."""
        before = self._state()
        for fragment in self.fragments:
            yield from (
                batch for batch in self._batches(fragment, names, numbers) if batch.num_rows
            )
        if self._state() != before:
            raise ValueError(f"{self.label} must not change while it is read, and has changed")

    def _batches(self, fragment: Any, names: list[str], numbers: list[str]) -> Iterator[Any]:
        label = getattr(fragment, "path", None) or self.label
        try:
            schema = fragment.physical_schema
            for name in names:
                if name not in schema.names:
                    raise ValueError(f"{label} has no column {name!r}, which other files have")
                kind = str(schema.field(name).type)
                if name in numbers and not kind.startswith(_NUMBERS):
                    raise ValueError(f"{label} must hold numbers in column {name!r}, got {kind}")
            for part in _parts(fragment):
                yield from part.to_batches(
                    columns=names, batch_size=_BLOCK_ROWS, batch_readahead=1, use_threads=False
                )
                _arrow().default_memory_pool().release_unused()
        except (OSError, _arrow().ArrowException) as error:
            said = str(error).splitlines()[0]
            raise ValueError(f"{label} cannot be read to its end: {said}") from error

    def _state(self) -> list[tuple[int, int] | None]:
        """Sizes and times of all files."""
        paths = [getattr(fragment, "path", None) for fragment in self.fragments]
        return [_size_and_time(Path(path)) if path else None for path in paths]


@dataclass
class _Encoded(_Table):
    """Another table, with columns that are made of its own batch by batch."""

    source: _Arrow
    made: list[str]
    encode: Callable[[Any], FloatArray]

    @property
    def features_named(self) -> bool:
        return False  # transformers make arrays of rows in memory, which have no names

    @property
    def features(self) -> list[str]:
        return self.made

    @property
    def n_rows(self) -> int | None:
        return self.source.n_rows

    def _read(self, names: list[str]) -> Iterator[FloatArray]:
        others = [name for name in names if name not in self.made]
        row = 0
        for batch in self.source.batches(self.source.names, others):
            try:
                made = self.encode(batch.to_pandas())
            except ValueError as error:
                rows = f"rows {row + 1} to {row + batch.num_rows}"
                raise ValueError(f"{self.label}, of {rows}: {error}") from error
            both = np.column_stack([made, numbers_of(batch, others)])
            yield both[:, [[*self.made, *others].index(name) for name in names]]
            row += batch.num_rows


def numbers_of(batch: Any, names: list[str]) -> FloatArray:
    """Columns of a batch of Arrow, NaN where they hold nothing."""
    block = np.empty((batch.num_rows, len(names)))
    for j, name in enumerate(names):
        column = batch.column(name).cast("float64", safe=False)
        block[:, j] = column.to_numpy(zero_copy_only=False)
    return block


def encoded(X: Any, made: list[str], encode: Callable[[Any], FloatArray]) -> Any:
    """A table whose columns ``made`` come from data frames of the rows of another one."""
    source = _with_columns(X)
    others = [name for name in source.names if name not in made]
    return _Encoded(source.label, [*made, *others], source, made, encode)


def sample_frame(X: Any, target: Any, size: int) -> Any:
    """A data frame of at most so many rows at equal steps, without the target."""
    source = _with_columns(X)
    names = [name for name in source.names if name != target]
    steps = max(1, -(-sum(fragment.count_rows() for fragment in source.fragments) // size))
    chosen, row = [], 0
    for batch in source.batches(names, []):
        some = np.arange(-row % steps, batch.num_rows, steps)
        chosen.append(batch.take(_arrow().array(some)))
        row += batch.num_rows
    if not chosen:
        raise ValueError(f"{source.label} must have at least one row, got an empty table")
    return _arrow().Table.from_batches(chosen).to_pandas()


def only(X: Any, names: list[str]) -> Any:
    """The same table with some of its columns alone."""
    source = _with_columns(X)
    for name in names:
        source.check_name(name)
    return replace(source, names=list(names))


def read_frames(X: Any, names: list[str]) -> Iterator[Any]:
    """Data frames of some columns of a table, block by block."""
    for batch in only(X, names).batches(names, []):
        yield batch.to_pandas()


def names_of(X: Any) -> list[str]:
    """Names of the columns of a table; in an array they are numbers."""
    return _opened(X).names


def n_rows_of(X: Any) -> int | None:
    """Number of rows of a table, where it is known before they are read."""
    return _opened(X).n_rows


def _with_columns(X: Any) -> _Arrow:
    source = _opened(X)
    if not isinstance(source, _Arrow):
        raise ValueError(f"X must be a table of columns with names, got {source.label}")
    return source


@dataclass
class _Npy(_Table):
    """An array in a file of NumPy."""

    path: Path
    dtype: Any
    shape: tuple[int, int]
    offset: int
    named = False

    @property
    def n_rows(self) -> int | None:
        return self.shape[0]

    def _read(self, names: list[str]) -> Iterator[FloatArray]:
        before = _size_and_time(self.path)
        with self.path.open("rb") as file:
            file.seek(self.offset)
            left, d = self.shape
            while left:
                m = min(left, _BLOCK_ROWS)
                values = np.fromfile(file, self.dtype, m * d)
                if len(values) < m * d or _size_and_time(self.path) != before:
                    raise ValueError(
                        f"{self.label} must not change while it is read, and has changed"
                    )
                yield values.reshape(m, d).astype(np.float64)
                left -= m


def _parts(fragment: Any) -> Iterator[Any]:
    """Row groups of a file, some of them together if they are small: Arrow reads ahead in each."""
    groups = getattr(fragment, "row_groups", None)
    if not groups:
        yield fragment
        return
    chosen, n_rows = [], 0
    for k, group in enumerate(groups):
        chosen.append(k)
        n_rows += group.num_rows
        if n_rows >= _READ_ROWS or k == len(groups) - 1:
            yield fragment.subset(row_group_ids=chosen)
            chosen, n_rows = [], 0


def _size_and_time(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns


def _arrow() -> Any:
    try:
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise ImportError("tables in files need pyarrow: pip install 'fenchel[tables]'") from error


def _opened(X: Any) -> _Table:
    if isinstance(X, _Table):
        return X
    if not isinstance(X, (str, os.PathLike)):
        return _of_arrow(X, "X")
    path = Path(X)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix.lower() == ".npy":
        return _of_array(path)
    if not path.is_dir() and path.suffix.lower() not in (".parquet", ".pq"):
        raise ValueError(_ENDINGS.format(str(path)))
    _arrow()
    data = importlib.import_module("pyarrow.dataset")
    try:
        source = data.dataset(path, format="parquet")
    except Exception as error:  # pyarrow raises errors of many kinds
        said = str(error).splitlines()[0]
        raise ValueError(f"{path} cannot be read as a table: {said}") from error
    return _of_arrow(source, str(path))


def _of_arrow(source: Any, label: str) -> _Arrow:
    names = [name for name in map(str, source.schema.names) if not _INDEX.fullmatch(name)]
    if not hasattr(source, "get_fragments"):
        source = importlib.import_module("pyarrow.dataset").dataset(source)
    return _Arrow(label, names, list(source.get_fragments()))


def _of_array(path: Path) -> _Npy:
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, by_columns, dtype = read(file)
        except ValueError as error:
            raise ValueError(f"{path} cannot be read as an array: {error}") from error
        offset = file.tell()
    if len(shape) != 2 or by_columns or dtype.kind not in "iuf":
        order = "columns after columns" if by_columns else "rows after rows"
        raise ValueError(
            f"{path} must hold an array of numbers (n, d), rows after rows, got shape {shape} of "
            f"{dtype}, {order}"
        )
    return _Npy(str(path), [str(j) for j in range(shape[1])], path, dtype, shape, offset)


def sample_of(n_rows: int, size: int, random: Any) -> AnyArray:
    """Numbers of at most so many rows, in their order."""
    if n_rows <= size:
        return np.arange(n_rows)
    return np.sort(random.choice(n_rows, size, replace=False))
