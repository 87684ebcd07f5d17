"""Tables of Arrow: Parquet files and folders, tables and data sets, read batch by batch."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fenchel._folders import tables_within
from fenchel._threads import threads_allowed
from fenchel._typing import FloatArray
from fenchel.files._numbered import numbered
from fenchel.files._tables import (
    BLOCK_ROWS,
    Passed,
    Piece,
    Table,
    array_in,
    changed,
    file_or_folder,
    size_and_time,
)

_INDEX = re.compile(r"__index_level_\d+__")  # where pandas keeps labels of rows
_READ_ROWS = 2**18
_NUMBERS = ("int", "uint", "float", "double", "halffloat", "decimal", "bool", "null")
_Item = TypeVar("_Item")
_State = list[tuple[int, int]]


@dataclass
class ArrowTable(Table):
    """Fragments of a data set of Arrow: files, or a table in memory.

    ``missing`` are words that stand for missing values, as text or as the number that they are;
    rows without a number in the column ``known`` are left out; ``passed`` is told of all passes.
    """

    fragments: list[Any]
    missing: tuple[str, ...] = ()
    known: str | None = None
    passed: Passed | None = None
    state: _State = field(default_factory=list)
    """Sizes and times of all files, when they were opened."""

    def count(self) -> int:
        """Number of rows, if only reading tells."""
        with self._as_sentences(self.label):
            return sum(fragment.count_rows() for fragment in self.fragments)

    def __post_init__(self) -> None:
        self.state = self.state or self._state()

    @property
    def n_rows(self) -> int | None:
        with self._as_sentences(self.label):
            groups: list[Any] = [getattr(each, "row_groups", None) for each in self.fragments]
        return None if None in groups else sum(group.num_rows for each in groups for group in each)

    def read(self, names: list[str]) -> Iterator[Piece]:
        for piece in self.batches(names, names):
            yield piece._replace(values=numbers_of(piece.values, names))

    def batches(
        self, names: list[str], numbers: list[str], what: str = "reading"
    ) -> Iterator[Piece]:
        """Batches of Arrow with these columns, some of which are to hold numbers."""
        if self._state() != self.state:
            raise changed(self.label)
        own = [self.known] if self.known is not None else []
        wanted, row = [*names, *(each for each in own if each not in names)], 0
        n_rows = None if self.passed is None else self.n_rows
        for batch in _ahead(self._all(wanted, [*numbers, *own])):
            some = _without(batch, self.missing)
            chosen = np.arange(batch.num_rows)
            if self.known is not None:
                chosen = np.flatnonzero(~np.isnan(numbers_of(some, [self.known])[:, 0]))
                some = some.select(names)
                some = some if len(chosen) == len(some) else some.take(arrow().array(chosen))
            chosen, row = chosen + row, row + batch.num_rows
            if len(chosen):
                yield Piece(chosen, row, some)
            if self.passed is not None:
                self.passed(what, row, n_rows)
        if self._state() != self.state:
            raise changed(self.label)

    def _all(self, names: list[str], numbers: list[str]) -> Iterator[Any]:
        for fragment in self.fragments:
            yield from (
                batch for batch in self._batches(fragment, names, numbers) if batch.num_rows
            )

    def _batches(self, fragment: Any, names: list[str], numbers: list[str]) -> Iterator[Any]:
        label = getattr(fragment, "path", None) or self.label
        with self._as_sentences(label):
            schema, of_folder = _schema_of(fragment), _of_folder(fragment)
            for name in names:
                if name in of_folder:
                    kind = str(arrow().scalar(of_folder[name]).type)
                elif name in schema.names:
                    kind = str(schema.field(name).type)
                else:
                    raise ValueError(f"{label} has no column {name!r}, which other files have")
                if name in numbers and not kind.startswith(_NUMBERS):
                    raise ValueError(f"{label} must hold numbers in column {name!r}, got {kind}")
            for part in _parts(fragment):
                for batch in part.to_batches(
                    columns=[name for name in names if name not in of_folder],
                    batch_size=BLOCK_ROWS,
                    batch_readahead=1,
                    use_threads=False,
                ):
                    yield _completed(_with_strings(batch), names, of_folder)
                arrow().default_memory_pool().release_unused()

    @contextmanager
    def _as_sentences(self, label: str) -> Iterator[None]:
        """What Arrow raises, and what is behind it."""
        try:
            yield
        except (OSError, arrow().ArrowException) as error:
            if self._state() != self.state:
                raise changed(self.label) from error
            said = str(error).splitlines()[0]
            raise ValueError(f"{label} cannot be read to its end: {said}") from error

    def _state(self) -> _State:
        return [size_and_time(Path(path)) for each in self.fragments for path in _files_of(each)]


@dataclass
class Encoded(Table):
    """Another table, with columns that are made of its own batch by batch."""

    source: ArrowTable
    made: list[str]
    read_for_them: list[str]
    encode: Callable[[Any], FloatArray]

    def check_name(self, name: str) -> None:
        if name not in self.names:
            self.source.check_name(name)  # says which columns the table has
        super().check_name(name)

    @property
    def features_named(self) -> bool:
        return False  # transformers make arrays of rows in memory, which have no names

    @property
    def features(self) -> list[str]:
        return self.made

    @property
    def n_rows(self) -> int | None:
        return self.source.n_rows

    def read(self, names: list[str]) -> Iterator[Piece]:
        others = [name for name in names if name not in self.made]
        known, wanted = self.source.names, {*self.read_for_them, *others}
        if wanted.issubset(known):  # else whoever encodes says what is missing
            known = [name for name in known if name in wanted]
        for piece in self.source.batches(known, others):
            batch, numbers = piece.values, piece.numbers
            try:
                made = self.encode(numbered(with_index(batch.to_pandas()), numbers))
            except ValueError as error:
                rows = f"rows {numbers[0] + 1} to {numbers[-1] + 1}"
                raise ValueError(f"{self.label}, of {rows}: {error}") from error
            both = np.column_stack([made, numbers_of(batch, others)])
            order = [[*self.made, *others].index(name) for name in names]
            straight = order == list(range(both.shape[1]))
            yield piece._replace(values=both if straight else both[:, order])


def with_index(frame: Any) -> Any:
    """A data frame with all columns of a file: pandas takes those of an index for one again.

    An index that counts in even steps is no column of the file, and none here.

    Examples
    --------
    >>> import pandas as pd
    >>> from fenchel.files import with_index
    >>> frame = pd.DataFrame({"parcel": [7, 3, 4], "area": [1.0, 2.0, 5.0]}).set_index("parcel")
    >>> with_index(frame).columns.tolist()
    ['parcel', 'area']
    """
    named = [name for name in frame.index.names if name is not None]
    in_file = not isinstance(frame.index, importlib.import_module("pandas").RangeIndex)
    return frame.reset_index(named) if named and in_file else frame


def numbers_of(batch: Any, names: list[str]) -> FloatArray:
    """Columns of a batch of Arrow, NaN where they hold nothing."""
    block = np.empty((batch.num_rows, len(names)))
    for j, name in enumerate(names):
        block[:, j] = _doubles(batch.column(name)).to_numpy(zero_copy_only=False)
    return block


def with_doubles(table: Any) -> Any:
    """A table of Arrow, with decimals in double precision: not all of them have a common type."""
    for j, column in enumerate(table.columns):
        if arrow().types.is_decimal(column.type):
            table = table.set_column(j, table.schema.names[j], _doubles(column))
    return table


def _doubles(column: Any) -> Any:
    """Numbers in double precision, decimals as the text of them is read."""
    if arrow().types.is_decimal(column.type):  # whose own cast is off by a bit in one of ten
        column = column.cast("string")
    return column.cast("float64", safe=False)


def _without(batch: Any, missing: tuple[str, ...]) -> Any:
    """A batch without the cells that hold one of these words, or the number that it is."""
    if not missing:
        return batch
    columns = [_unmarked(column, missing) for column in batch.columns]
    return arrow().RecordBatch.from_arrays(columns, names=batch.schema.names)


def _unmarked(column: Any, missing: tuple[str, ...]) -> Any:
    pa, kinds, compute = arrow(), arrow().types, importlib.import_module("pyarrow.compute")
    if kinds.is_dictionary(column.type):
        inner = column.dictionary_decode()
        found = _unmarked(inner, missing) if kinds.is_string(inner.type) else inner
        return found.dictionary_encode()
    if str(column.type).startswith(_NUMBERS):
        numbers = [number for word in missing if (number := _number(word)) is not None]
        cells, marks = _doubles(column), pa.array(numbers, "float64")
    elif kinds.is_string(column.type) or kinds.is_large_string(column.type):
        cells, marks = column, pa.array(missing, column.type)
    else:
        return column
    marked = compute.is_in(cells, value_set=marks)
    return compute.if_else(marked, pa.scalar(None, column.type), column)


def _number(word: str) -> float | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return None if np.isnan(number) else number


def _ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """The same, the next of which is made meanwhile in a thread, where there may be another."""
    if threads_allowed() < 2:
        yield from items
        return
    end = object()
    with ThreadPoolExecutor(1, "fenchel-reads") as executor:
        coming = executor.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = executor.submit(next, items, end)
            yield item  # type: ignore[misc]


def _files_of(part: Any) -> list[str]:
    """The files of a fragment, or of a data set that is read as a whole."""
    if path := getattr(part, "path", None):
        return [path]
    inside = [path for each in getattr(part, "children", ()) for path in _files_of(each)]
    return [*getattr(part, "files", ()), *inside]


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


def _of_folder(fragment: Any) -> dict[str, Any]:
    """Values of the columns that all rows of a file share, from the names of its folders."""
    known = getattr(fragment, "partition_expression", None)
    if known is None:
        return {}
    found: dict[str, Any] = importlib.import_module("pyarrow.dataset").get_partition_keys(known)
    return found


def _with_strings(batch: Any) -> Any:
    """A batch with strings in place of views of them, from which Arrow takes no rows."""
    pa = arrow()
    if not any(str(each.type) == "string_view" for each in batch.schema):
        return batch
    columns = [
        column.cast("string") if str(column.type) == "string_view" else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _completed(batch: Any, names: list[str], of_folder: dict[str, Any]) -> Any:
    """A batch with the columns of its folder beside its own."""
    if not of_folder:
        return batch
    pa = arrow()
    columns = [
        pa.repeat(of_folder[name], batch.num_rows) if name in of_folder else batch.column(name)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _schema_of(fragment: Any) -> Any:
    """The columns of a fragment as they are in its file."""
    own = getattr(fragment, "physical_schema", None)
    return fragment.schema if own is None else own


def arrow() -> Any:
    """The package pyarrow, or a sentence on what it is needed for."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise ImportError("tables in files need pyarrow: pip install 'fenchel[tables]'") from error


def opened(X: Any) -> Table:
    """A table that can be read again and again."""
    if isinstance(X, Table):
        return X
    if not isinstance(X, (str, os.PathLike)):
        return _of_arrow(X, "X")
    path = file_or_folder(X)
    if path.suffix.lower() == ".npy" and not path.is_dir():
        return array_in(path)
    arrow()  # says what is missing
    try:
        source = parquet_in(path)
    except Exception as error:  # pyarrow raises errors of many kinds
        said = str(error).splitlines()[0]
        raise ValueError(f"{path} cannot be read as a table: {said}") from error
    return _of_arrow(source, str(path))


def parquet_in(path: Path) -> Any:
    """A Parquet file or those of a folder, whatever else is in it, as a data set of Arrow.

    Examples
    --------
    >>> from pathlib import Path
    >>> from fenchel.files import parquet_in
    >>> parquet_in(Path("no_such_folder"))
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    data = importlib.import_module("pyarrow.dataset")
    if not path.is_dir():  # folders above what is given are no columns
        return data.dataset(path, format="parquet")
    options: dict[str, Any] = {"format": "parquet", "partitioning": "hive"}
    if files := tables_within(path):
        options["partitioning"] = _partitions(path, files)
        return data.dataset([*map(str, files)], partition_base_dir=str(path), **options)
    return data.dataset(path, **options)


def _partitions(path: Path, files: list[Path]) -> Any:
    """Columns that are read from names of folders, such as k=1; files that have them know better.

    As other programs do, Polars among them, some write these columns into the files as well.
    """
    data, parquet = (importlib.import_module(f"pyarrow.{name}") for name in ("dataset", "parquet"))
    found: dict[str, list[str]] = {}
    for file in files:
        for part in file.relative_to(path).parts[:-1]:
            name, is_one, value = part.partition("=")
            if is_one:
                found.setdefault(name, []).append(value)
    own = {name for name in found if name in parquet.read_schema(files[0]).names}
    if not own:
        return "hive"
    others = {name: values for name, values in found.items() if name not in own}
    numbers = {name for name, values in others.items() if all(map(str.isdecimal, values))}
    schema = [(name, "int32" if name in numbers else "string") for name in others]
    return data.partitioning(arrow().schema(schema), flavor="hive")


def _of_arrow(source: Any, label: str) -> ArrowTable:
    names = [name for name in map(str, source.schema.names) if not _INDEX.fullmatch(name)]
    if not hasattr(source, "get_fragments"):
        source = importlib.import_module("pyarrow.dataset").dataset(source)
    try:
        fragments = list(source.get_fragments())
    except ValueError:  # rows are filtered, which only the whole can do
        fragments = [source]
    table = ArrowTable(label, names, fragments)
    if len(set(names)) < len(names):
        for name in names:
            table.check_name(name)
    return table
