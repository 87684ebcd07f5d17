"""What all tables share, and arrays of NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fenchel._folders import PARQUET
from fenchel._sentences import listed
from fenchel._typing import FloatArray, IntArray

BLOCK_ROWS = 2**16
_ENDINGS = "X must be a Parquet file, a folder of them, or a file .npy, got {!r}"
_HOLES = (
    "; leave out the rows without a target, as by dataset(place).filter(field({!r}).is_valid()) "
    "of pyarrow.dataset, and fill other holes by fenchel.tables.table_encoder() in a pipeline"
)

Told = Callable[[int, "int | None"], object]
"""Is told how many rows were read, and of how many, None where that is not known."""
Passed = Callable[[str, int, "int | None"], object]
"""The same, of a pass with this name."""


class Piece(NamedTuple):
    """Some rows of a table."""

    numbers: IntArray
    """Of the rows, among all of the table."""
    stop: int
    """How many rows were read up to here."""
    values: Any
    """A batch of Arrow, or an array."""


def are_finite(values: FloatArray) -> bool:
    """Whether all of them are, in one pass for almost all arrays."""
    with np.errstate(all="ignore"):
        total = values.sum()
    return bool(np.isfinite(total)) or bool(np.isfinite(values).all())


@dataclass
class Table:
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
            raise ValueError(
                f"{self.label} has {number} {name!r}; its columns are {listed(self.names)}"
            )

    @property
    def n_rows(self) -> int | None:
        """Number of rows, where it is known before they are read."""
        return None

    def blocks(self, names: list[str], told: Told | None = None) -> Iterator[FloatArray]:
        """Numbers of some columns, (m, k), block by block."""
        n_rows = None if told is None else self.n_rows
        for piece in self.read(names):
            block: FloatArray = piece.values
            if not are_finite(block):
                self._refuse(piece, names)
            yield block
            if told is not None:
                told(piece.stop, n_rows)

    def _refuse(self, piece: Piece, names: list[str]) -> None:
        """Say which cell of a piece is not finite."""
        i, j = np.argwhere(~np.isfinite(piece.values))[0]
        value = piece.values[i, j]
        given, remedy = f"{value:g}", ""
        if np.isnan(value):
            given, remedy = "nothing", _HOLES.format(names[j]) * self.named
        raise ValueError(
            f"{self.label} must hold a finite number in column {names[j]!r} of row "
            f"{piece.numbers[i] + 1}, and has {given} there{remedy}"
        )

    def read(self, names: list[str]) -> Iterator[Piece]:
        """Numbers of some columns piece by piece, NaN where they hold nothing."""
        raise NotImplementedError


@dataclass
class Npy(Table):
    """An array in a file of NumPy."""

    path: Path
    dtype: Any
    shape: tuple[int, int]
    offset: int
    named = False

    @property
    def n_rows(self) -> int | None:
        return self.shape[0]

    def read(self, names: list[str]) -> Iterator[Piece]:
        before = size_and_time(self.path)
        with self.path.open("rb") as file:
            file.seek(self.offset)
            row, (n_rows, d) = 0, self.shape
            while row < n_rows:
                m = min(n_rows - row, BLOCK_ROWS)
                values = np.fromfile(file, self.dtype, m * d)
                if len(values) < m * d or size_and_time(self.path) != before:
                    raise changed(self.label)
                block = values.reshape(m, d).astype(np.float64)
                yield Piece(np.arange(row, row + m), row + m, block)
                row += m


def array_in(path: Path) -> Npy:
    """The array in a file, of which only the head is read."""
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
        order = "column by column" if by_columns else "row by row"
        raise ValueError(
            f"{path} must hold an array of numbers (n, d), stored row by row, got shape {shape} "
            f"of {dtype}, {order}"
        )
    needed, size = offset + shape[0] * shape[1] * dtype.itemsize, path.stat().st_size
    if size < needed:
        raise ValueError(
            f"{path} must have {needed} bytes for its array of shape {shape}, and has {size}: it "
            "is not whole"
        )
    return Npy(str(path), [str(j) for j in range(shape[1])], path, dtype, shape, offset)


def file_or_folder(X: str | os.PathLike[str]) -> Path:
    """A place where there may be a table."""
    path = Path(X)
    if str(X) == "":
        raise ValueError(_ENDINGS.format(""))
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if not path.is_dir() and path.suffix.lower() not in (*PARQUET, ".npy"):
        raise ValueError(_ENDINGS.format(str(path)))
    return path


def size_and_time(path: Path) -> tuple[int, int]:
    """What differs where a file has changed."""
    try:
        status = path.stat()
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns


def changed(label: str) -> ValueError:
    """A table is not what it was."""
    return ValueError(f"{label} must not change while it is read, and has changed")
