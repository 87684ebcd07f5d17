"""Tables: what their columns are, and what is wrong with them."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fenchel.cli import cells
from fenchel.cli.errors import InputError, listed, one_line, one_sentence
from fenchel.cli.places import place_of
from fenchel.datasets import list_datasets
from fenchel.datasets import load as load_dataset

TABLES = (".csv", ".parquet")


@dataclass(frozen=True)
class Table:
    """A table and what is known of it."""

    frame: pd.DataFrame
    label: str
    target: str | None = None


@dataclass(frozen=True)
class Columns:
    """Which columns a model reads: numbers, words, and true or false."""

    numeric: list[str]
    words: list[str]
    boolean: list[str]

    @property
    def categorical(self) -> list[str]:
        """Columns that are one-hot encoded."""
        return [*self.words, *self.boolean]

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [*self.numeric, *self.categorical]


def read_data(data: str) -> Table:
    """Read a CSV or Parquet file, or a bundled data set by its name."""
    path = place_of(data, "DATA")
    if path.is_dir():
        raise InputError(f"{data} is a folder, and a CSV or Parquet file is needed")
    if path.is_file():
        return Table(_read_file(path), path.name)
    names = [info.name for info in list_datasets()]
    if data in names:
        try:
            bunch = load_dataset(data, as_frame=True)
        except OSError as error:
            raise InputError(one_line(error)) from error
        return Table(bunch.frame, data, bunch.target_name)
    if path.suffix:
        raise InputError(f"there is no file {data}")
    raise InputError(
        f"there is no file {data}, nor a data set of that name: those are {listed(names, 99)}"
    )


def _read_file(path: Path) -> pd.DataFrame:
    suffix = path.suffix.lower()
    if suffix not in TABLES:
        raise InputError(f"{path} must end in {' or '.join(TABLES)}, and ends in {suffix!r}")
    try:
        frame = _read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    except InputError:
        raise
    except ImportError as error:
        raise InputError("Parquet needs pyarrow: pip install 'fenchel[cli]'") from error
    except pd.errors.EmptyDataError as error:
        raise InputError(f"{path} is empty") from error
    except Exception as error:  # the readers raise errors of many kinds
        raise InputError(f"{path} cannot be read as a table: {one_sentence(error)}") from error
    frame.columns = frame.columns.map(str)
    _check_names(frame.columns, path)
    if len(frame) == 0:
        raise InputError(f"{path} has no rows")
    return frame


def _read_csv(path: Path) -> pd.DataFrame:
    _check_text(path)
    # pandas would number names that occur twice, and take a column too many for labels of rows
    names = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0]
    _check_names(names[names != ""], path)
    frame = pd.read_csv(path, low_memory=False)
    if not isinstance(frame.index, pd.RangeIndex):
        raise InputError(f"{path} has rows with more cells than the {len(names)} of its header")
    return frame


def _check_names(names: Any, path: Path) -> None:
    twice = list(names[names.duplicated()])
    if twice:
        raise InputError(
            f"{path} has more than one column {twice[0]!r}: rename or delete all but one"
        )


def _check_text(path: Path) -> None:
    """Refuse what is not UTF-8, and say how to make it so."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
                at = line.index(0) if 0 in line else None
            except UnicodeDecodeError as error:
                at = error.start
            if at is None:
                continue
            wide = line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or 0 in line
            encoding = "UTF-16" if wide else "WINDOWS-1252"
            raise InputError(
                f"{path} cannot be read as a table: it must be text in UTF-8, and line {number} "
                f"has the byte 0x{line[at]:02x}; convert it, if it is {encoding} by iconv -f "
                f"{encoding} -t UTF-8 {path} > new.csv"
            )


def target_of(table: Table, target: str | None) -> str:
    """Name of the target: as given, or as the data set says."""
    names = list(table.frame.columns)
    name = table.target if target is None else target
    if name is None:
        raise InputError(f"--target must name the column to learn: one of {listed(names)}")
    if name not in names:
        raise InputError(f"{table.label} has no column {name!r}; its columns are {listed(names)}")
    return name


def split_target(table: Table, target: str) -> tuple[pd.DataFrame, pd.Series[float]]:
    """Features and target, both checked."""
    column = table.frame[target]
    cells.check_number(column, f"the target {target!r} of {table.label}")
    features = table.frame.drop(columns=[target])
    if features.shape[1] == 0:
        raise InputError(f"{table.label} has no column beside the target {target!r}")
    cells.check_values(table.frame, table.label)
    return features, column.astype(np.float64)


def columns_of(features: pd.DataFrame, label: str) -> Columns:
    """Sort the columns by what they hold."""
    columns = Columns([], [], [])
    for name, column in features.items():
        if cells.is_number(column):
            columns.numeric.append(str(name))
        elif pd.api.types.is_bool_dtype(column.dtype):
            columns.boolean.append(str(name))
        elif cells.is_words(column):
            cells.check_words(column, f"the column {name!r} of {label}")
            columns.words.append(str(name))
        else:
            raise InputError(
                f"the column {name!r} is of type {column.dtype}: columns must be numbers, words "
                "or true and false"
            )
    return columns


def prepare(features: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Numbers as floats, labels as words: the form in which a model reads a table."""
    data: dict[str, Any] = {}
    for name in columns.numeric:
        data[name] = features[name].to_numpy(dtype=np.float64)
    for name in columns.words:
        data[name] = features[name].astype(str).astype(object)
    for name in columns.boolean:
        data[name] = features[name].to_numpy(dtype=np.bool_)
    return pd.DataFrame(data, index=features.index, columns=columns.names)


def select(table: Table, columns: Columns) -> pd.DataFrame:
    """Return the columns that a model reads, in any order in the table, others ignored."""
    frame = table.frame
    missing = [name for name in columns.names if name not in frame.columns]
    if missing:
        raise InputError(
            f"{table.label} lacks the column{'s' * (len(missing) > 1)} {listed(missing)} that the "
            f"model reads; its columns are {listed(list(frame.columns))}"
        )
    cells.check_values(frame[columns.names], table.label)
    for name in columns.numeric:
        cells.check_number(frame[name], f"the column {name!r} of {table.label}")
    for name in columns.boolean:
        cells.check_flag(frame[name], f"the column {name!r} of {table.label}")
    return prepare(frame, columns)
