"""Reading numeric files block by block."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import COUNT, shown
from fenchel.files import names_of, read_blocks

_ENDINGS = (".csv", ".parquet")
_Blocks = Iterator[tuple[FloatArray, FloatArray]]


def stream(
    path: str | os.PathLike[str],
    target: str,
    *,
    features: Sequence[str] | None = None,
    block_rows: int = 10_000,
) -> _Blocks:
    r"""Read a numeric file block by block, for files that do not fit into memory.

    Parameters
    ----------
    path : str or path
        A CSV file separated by commas, with column names in the first line, or a Parquet file
        (needs pyarrow). The format is determined by the file extension.
    target : str
        Name of the target column.
    features : sequence of str, optional
        Columns of X, in this order; by default all but the target. Other columns may contain
        anything but line breaks.
    block_rows : int, default=10_000
        Maximum number of rows of a block, >= 1.

    Returns
    -------
    iterator of (X, y)
        Arrays of shape (n, n_features) and (n,) with 1 <= n <= ``block_rows``. Rows are in the
        order of the file. Blocks of Parquet files also end at row group boundaries.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ImportError
        If the file is a Parquet file and pyarrow is not installed.
    ValueError
        Immediately if a column does not exist. While reading if a value is missing or not a finite
        number, or if a line has more or fewer values than the first line. The message contains the
        position.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fenchel.datasets import stream
    >>> from fenchel.online import WidrowHoff
    >>> model = WidrowHoff()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "line.csv"
    ...     _ = file.write_text("x,y\n" + "1,3\n2,5\n3,7\n" * 1000)
    ...     for X, y in stream(file, target="y", block_rows=1000):
    ...         model = model.partial_fit(X, y)
    >>> model.coef_.round(3), round(model.intercept_, 3)
    (array([2.]), 1.0)
    """
    path = Path(path)
    COUNT(block_rows, "block_rows")
    if path.suffix.lower() not in _ENDINGS:
        raise ValueError(f"path must end in {' or '.join(_ENDINGS)}, got {str(path)!r}.")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    if path.suffix.lower() == ".csv":
        chosen = _chosen(path, _header(path)[0], target, features)
        return _csv_blocks(path, chosen, int(block_rows))
    chosen = _chosen(path, names_of(path), target, features)
    return _parquet_blocks(path, chosen, int(block_rows))


def _chosen(
    path: Path, names: Sequence[str], target: str, features: Sequence[str] | None
) -> list[str]:
    """Names of the features and, last, of the target."""
    if isinstance(features, str):
        raise TypeError(f"features must be a sequence of names, got {shown(features)}.")
    wanted = [name for name in names if name != target] if features is None else list(features)
    if not wanted:
        raise ValueError(f"features must name at least one column beside the target {target!r}.")
    if target in wanted:
        raise ValueError(f"features must not hold the target {target!r}.")
    chosen = [*wanted, target]
    for name in chosen:
        if names.count(name) != 1 or chosen.count(name) != 1:
            many = "no column" if name not in names else "more than one column"
            if many != "no column" and names.count(name) == 1:
                raise ValueError(
                    f"features must not name a column twice, got {shown(name)} twice."
                )
            raise ValueError(f"{path} has {many} {name!r}; its columns are {', '.join(names)}.")
    return chosen


def _header(path: Path) -> tuple[list[str], int]:
    """Names of the columns, and the number of lines that they take."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        names = next(reader, None)
        if not names:
            raise ValueError(f"{path} must have the names of its columns in its first line.")
        return [name.strip() for name in names], reader.line_num


def _csv_blocks(path: Path, chosen: list[str], block_rows: int) -> _Blocks:
    names, line = _header(path)
    columns = [names.index(name) for name in chosen]
    with path.open(encoding="utf-8-sig") as file:
        for _ in range(line):
            next(file)
        while lines := list(islice(file, block_rows)):
            values = _parsed(lines, len(names), columns)
            if values is None:
                raise ValueError(_first_fault(path, lines, line + 1, names, columns))
            line += len(lines)
            if len(values):
                yield np.ascontiguousarray(values[:, :-1]), values[:, -1].copy()


def _parsed(lines: list[str], n_cells: int, columns: list[int]) -> FloatArray | None:
    """Values of the columns; None if any is not a finite number, or a line has other cells."""
    if any(_n_cells(line) != n_cells for line in lines if line.strip()):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of blocks of empty lines
            values = np.loadtxt(
                lines, delimiter=",", usecols=columns, ndmin=2, comments=None, quotechar='"'
            )
    except (ValueError, IndexError):
        return None
    return values if np.all(np.isfinite(values)) else None


def _n_cells(line: str) -> int:
    return len(next(csv.reader([line]))) if '"' in line else line.count(",") + 1


def _first_fault(
    path: Path, lines: list[str], start: int, names: list[str], columns: list[int]
) -> str:
    """Sentence on the first value that is not a finite number."""
    for number, line in enumerate(lines, start):
        if not line.strip():
            continue
        cells = next(csv.reader([line]))
        where = f"{path}, line {number}"
        if len(cells) != len(names):
            return f"{where}: a line must have {len(names)} values, got {len(cells)}."
        for column in columns:
            try:
                finite = bool(np.isfinite(float(cells[column])))
            except ValueError:
                finite = False
            if not finite:
                given = "none" if not cells[column].strip() else repr(cells[column])
                return f"{where}: {names[column]!r} must be a finite number, got {given}."
    return f"{path}, lines {start} to {start + len(lines) - 1} cannot be read as numbers."


def _parquet_blocks(path: Path, chosen: list[str], block_rows: int) -> _Blocks:
    for block in read_blocks(path, chosen, len(chosen)):
        for start in range(0, len(block), block_rows):
            values = block[start : start + block_rows]
            yield np.ascontiguousarray(values[:, :-1]), values[:, -1].copy()
