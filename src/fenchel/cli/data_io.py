"""Tables in and out: what the columns are, and what is wrong with them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fenchel.cli.errors import InputError, listed, one_line
from fenchel.datasets import list_datasets
from fenchel.datasets import load as load_dataset
from fenchel.persistence import write_whole

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
    path = Path(data)
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
        frame = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    except ImportError as error:
        raise InputError("Parquet needs pyarrow: pip install 'fenchel[cli]'") from error
    except pd.errors.EmptyDataError as error:
        raise InputError(f"{path} is empty") from error
    except Exception as error:  # the readers raise errors of many kinds
        raise InputError(f"{path} cannot be read as a table: {one_line(error)}") from error
    frame.columns = frame.columns.map(str)
    if len(frame) == 0:
        raise InputError(f"{path} has no rows")
    return frame


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
    if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
        raise InputError(f"the target {target!r} must be a number in every row, and is not")
    features = table.frame.drop(columns=[target])
    if features.shape[1] == 0:
        raise InputError(f"{table.label} has no column beside the target {target!r}")
    _check_values(table.frame, table.label)
    return features, column.astype(np.float64)


def columns_of(features: pd.DataFrame) -> Columns:
    """Sort the columns by what they hold."""
    columns = Columns([], [], [])
    for name, column in features.items():
        if _is_number(column):
            columns.numeric.append(str(name))
        elif pd.api.types.is_bool_dtype(column.dtype):
            columns.boolean.append(str(name))
        elif _is_words(column):
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
    for name in columns.numeric:
        if not _is_number(frame[name]):
            raise InputError(
                f"the column {name!r} of {table.label} must be numbers, as it was for the model"
            )
    _check_values(frame[columns.names], table.label)
    for name in columns.boolean:
        if not pd.api.types.is_bool_dtype(frame[name]):
            raise InputError(
                f"the column {name!r} of {table.label} must be true or false, as it was for the "
                "model"
            )
    return prepare(frame, columns)


def _is_number(column: pd.Series[Any]) -> bool:
    kinds, dtype = pd.api.types, column.dtype
    return kinds.is_numeric_dtype(dtype) and not (
        kinds.is_bool_dtype(dtype) or kinds.is_complex_dtype(dtype)
    )


def _is_words(column: pd.Series[Any]) -> bool:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return True
    if pd.api.types.is_object_dtype(dtype):
        return all(isinstance(value, (str, bool, np.bool_)) for value in column)
    return pd.api.types.is_string_dtype(dtype)


def _check_values(frame: pd.DataFrame, label: str) -> None:
    missing = frame.isna().sum()
    found = [f"{name} ({count})" for name, count in missing.items() if count]
    if found:
        raise InputError(
            f"{label} has missing values in {listed(found)}: fill them or leave out these rows"
        )
    infinite = [
        str(name)
        for name, column in frame.items()
        if _is_number(column) and not np.isfinite(column.to_numpy(dtype=np.float64)).all()
    ]
    if infinite:
        raise InputError(f"{label} has infinite values in {listed(infinite)}")


def check_output(path: str | None, option: str, endings: tuple[str, ...]) -> Path | None:
    """Refuse, before any work is done, a place that cannot be written to."""
    if path is None:
        return None
    chosen = Path(path)
    if chosen.suffix.lower() not in endings:
        raise InputError(f"{option} must end in {' or '.join(endings)}, got {path}")
    if chosen.is_dir():
        raise InputError(f"{option} must be a file, and {path} is a folder")
    check_folder(chosen.parent, option)
    return chosen


def check_folder(folder: Path, option: str) -> Path:
    """Refuse a folder that is not there or not to be written to."""
    if not folder.is_dir():
        raise InputError(f"{option}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{option}: the folder {folder} cannot be written to")
    return folder


def write_output(path: Path, content: bytes) -> None:
    """Write a whole file, or say why not."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
