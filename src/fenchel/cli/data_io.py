"""Tables: what their columns are, and what is wrong with them.

Rows are counted from 1, without the header.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import shlex
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fenchel._sentences import listed
from fenchel._typing import FloatArray
from fenchel._validation import check_magnitude
from fenchel.cli.errors import InputError, as_input_errors, one_line, one_sentence
from fenchel.cli.places import place_of
from fenchel.cli.roles import check_different, heading_of
from fenchel.datasets import list_datasets
from fenchel.datasets import load as load_dataset
from fenchel.files import numbered, row_number, with_index
from fenchel.tables import TableEncoder
from fenchel.tables.cells import floats_of, holes, is_number, numbers_of, words_of
from fenchel.tables.dates import format_of
from fenchel.tables.describing import Notice
from fenchel.tables.encoder import noticed
from fenchel.tables.parts import CATEGORY, DATE, FLAG, NUMBER, TEXT, OddCellsError, TableError
from fenchel.tables.reading import frame_of, kinds_of

_LABELS = ("None", "NA")  # words that pandas takes for holes, and that are labels among words


@dataclass(frozen=True)
class Table:
    """A table and what is known of it."""

    frame: pd.DataFrame
    label: str
    target: str | None = None
    path: Path | None = None
    missing: tuple[str, ...] = ()
    text: pd.DataFrame | None = None
    """Some cells of a block of a CSV file, as they are written."""

    @property
    def names(self) -> list[str]:
        """Of all columns."""
        return [str(name) for name in self.frame.columns]

    @property
    def is_text(self) -> bool:
        """Whether cells are text, of which pandas makes numbers, holes, true and false."""
        of_csv = self.path is not None and self.path.suffix.lower() == ".csv"
        return of_csv or self.text is not None

    def as_written(self, names: list[str]) -> pd.DataFrame:
        """Some columns, their cells as they are written where they are text."""
        if self.text is not None:
            return self.text[names]
        if self.path is None or not names:
            return self.frame[names]
        if self.is_text:
            options: Any = {"dtype": str, "keep_default_na": False}
            return pd.read_csv(self.path, usecols=names, **options)[names]
        if not self.frame[names].isna().any(axis=None):
            return self.frame[names]
        # whole numbers beside holes are floats without this
        return _read_parquet(self.path, dtype_backend="numpy_nullable")[names]

    def with_labels(self, words: list[str]) -> Table:
        """The same table, where columns of words hold what is written in a CSV file.

        Of 01 and of true pandas makes a number and a flag, if all of a column are such, and of
        None and NA holes.
        """
        frame = self.frame
        read = [name for name in words if frame[name].isna().any() or not _is_text(frame[name])]
        if not read or not self.is_text:
            return self
        return replace(self, frame=labelled(frame, self.as_written(read), self.missing))


def _is_text(column: pd.Series[Any]) -> bool:
    """Whether cells that are no holes are text: pandas reads a column in one way or another."""
    return isinstance(column.dtype, pd.StringDtype) or bool(column.dtype == object)


def labelled(
    frame: pd.DataFrame, written: pd.DataFrame, missing: tuple[str, ...] = ()
) -> pd.DataFrame:
    """A frame with some columns as they are written, but for the holes.

    None and NA are labels, unless these are missing.
    """
    found = frame.copy(deep=False)
    labels = [word for word in _LABELS if word not in missing]
    for name, words in written.items():
        holes = frame[name].isna().to_numpy() & ~words.isin(labels).to_numpy()
        cells = words.to_numpy(dtype=object)
        found[name] = pd.Series(np.where(holes, np.nan, cells), frame.index, dtype=object)
    return found


@dataclass(frozen=True)
class Columns:
    """Which columns a model reads, and what each of them holds."""

    kinds: dict[str, str]
    doubts: tuple[str, ...] = ()
    """What a fit says of columns of words that may be meant as others."""
    formats: dict[str, str | None] = field(default_factory=dict)
    """Of columns of dates."""

    @property
    def names(self) -> list[str]:
        """All of them."""
        return list(self.kinds)

    @property
    def numeric(self) -> list[str]:
        """Columns of numbers."""
        return self._of(NUMBER)

    @property
    def dates(self) -> list[str]:
        """Columns of dates."""
        return self._of(DATE)

    @property
    def words(self) -> list[str]:
        """Columns of words."""
        return self._of(CATEGORY, TEXT)

    @property
    def categorical(self) -> list[str]:
        """Columns of words, and of true and false."""
        return [*self.words, *self._of(FLAG)]

    def _of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind in kinds]


def read_data(data: str, missing: tuple[str, ...] = ()) -> Table:
    """Read a CSV or Parquet file, or a bundled data set by its name.

    Cells that hold one of the words ``missing`` are missing.
    """
    label = heading_of(data).label
    path = place_of(data, "DATA")
    if path.is_dir():
        raise InputError(
            f"{data} is a folder, which fit, predict and evaluate read block by block"
        )
    if path.is_file():
        frame = _with_numbers(_read_file(path, missing))
        return Table(frame, label, path=path, missing=missing)
    names = [info.name for info in list_datasets()]
    if data not in names:
        raise InputError(
            f"there is no file {data}, nor a data set of that name: those are {listed(names, 99)}"
        )
    try:
        bunch = load_dataset(data, as_frame=True)
    except OSError as error:
        raise InputError(one_line(error)) from error
    return Table(_with_numbers(marked(bunch.frame, missing)), data, bunch.target_name)


def _with_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose rows keep their numbers when others are left out."""
    return numbered(frame, np.arange(len(frame)))


def marked(frame: pd.DataFrame, missing: tuple[str, ...]) -> pd.DataFrame:
    """A frame without the cells that hold one of these words."""
    if not missing:
        return frame
    return frame.mask(frame.apply(_is_marker, markers=missing))


def _read_file(path: Path, missing: tuple[str, ...]) -> pd.DataFrame:
    is_csv = path.suffix.lower() == ".csv"
    try:
        frame = _read_csv(path, missing) if is_csv else marked(_read_parquet(path), missing)
    except InputError:
        raise
    except ImportError as error:
        raise InputError("Parquet needs pyarrow: pip install 'fenchel[cli]'") from error
    except pd.errors.EmptyDataError as error:
        raise InputError(f"{path} is empty") from error
    except Exception as error:  # the readers raise errors of many kinds
        raise InputError(f"{path} cannot be read as a table: {one_sentence(error)}") from error
    check_different(list(frame.columns), path)
    if len(frame) == 0:
        raise InputError(f"{path} has no rows")
    return frame


def _read_csv(path: Path, missing: tuple[str, ...]) -> pd.DataFrame:
    _check_text(path)
    # pandas would number names that occur twice
    names = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0]
    check_different([name for name in names if name], path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:  # without index_col, a column too many would be one of labels of rows
            frame = pd.read_csv(path, low_memory=False, na_values=list(missing), index_col=False)
        except pd.errors.ParserWarning as error:
            raise InputError(
                f"{path} has rows with more cells than the {len(names)} of its header"
            ) from error
    frame.columns = frame.columns.map(str)
    if frame.shape[1] > 1 and frame.iloc[:, -1].isna().any():
        _check_whole_rows(path, len(names))
    return frame


def _read_parquet(path: Path, **options: Any) -> pd.DataFrame:
    frame = with_index(pd.read_parquet(path, **options))
    return frame.set_axis(frame.columns.map(str), axis=1)


def check_lines(path: Path) -> None:
    """Refuse a CSV file that is not UTF-8, or whose rows have not all as many cells."""
    _check_text(path)
    _check_whole_rows(path, None)


def _check_whole_rows(path: Path, n_cells: int | None) -> None:
    """Refuse rows that end early, whose last cells pandas would take for holes.

    Without a number they must all have as many cells as the first.
    """
    with path.open(encoding="utf-8-sig", newline="") as file, contextlib.suppress(csv.Error):
        rows = (row for row in csv.reader(file) if "".join(row).strip() or len(row) > 1)
        whole = n_cells
        for number, row in enumerate(rows):
            whole = len(row) if whole is None else whole
            if len(row) < whole or (n_cells is None and len(row) > whole):
                raise InputError(
                    f"{path} has {'fewer' if len(row) < whole else 'more'} cells in row {number} "
                    f"than the {whole} of its header"
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
                f"{encoding} -t UTF-8 {shlex.quote(str(path))} > new.csv"
            )


def target_values(table: Table, targets: list[str], of_fit: bool = False) -> Any:
    """The numbers of the targets, NaN where they are missing: of one target a series.

    A frame of several, and None where there is none. A fit has --missing for words among them.
    """
    with sentences_of_tables() if of_fit else as_input_errors():
        values = {name: _target_of(table.frame[name], table.label) for name in targets}
    if not targets:
        return None
    frame = pd.DataFrame(values, index=table.frame.index)
    return frame if len(targets) > 1 else frame[targets[0]]


def _target_of(column: pd.Series[Any], label: str) -> FloatArray:
    """The numbers of a target, NaN where they are missing."""
    values = numbers_of(column, f"the target {column.name!r} of {label}")
    if np.isnan(values).all():
        raise InputError(f"{label} has no value in the target {column.name}")
    return values


def _is_marker(column: pd.Series[Any], markers: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which cells hold one of these words, or the number that it is."""
    found = column.astype(object).isin(markers).to_numpy(dtype=np.bool_)
    if is_number(column):
        numbers = pd.to_numeric(pd.Series(markers, dtype=object), errors="coerce").dropna()
        found = found | np.isin(floats_of(column), numbers.to_numpy(dtype=np.float64))
    return found


def _check_values(frame: pd.DataFrame, label: str) -> None:
    """Refuse infinite and overflowing values, and say where."""
    for name, column in frame.items():
        if not is_number(column):
            continue
        values = column[~holes(column)].to_numpy(dtype=np.float64)
        infinite = ~np.isfinite(values)
        if infinite.any():
            position = int(np.flatnonzero(~holes(column))[np.argmax(infinite)])
            row = row_number(column, position)
            raise InputError(f"{label} has infinite values in {name}, first in row {row}")
        with as_input_errors():
            check_magnitude(np.append(values, 0.0), f"the column {str(name)!r} of {label}")


def with_targets(X: pd.DataFrame, y: Any, label: str) -> tuple[Any, Any, list[str]]:
    """The rows whose targets are known, and what is to be said of the others."""
    gaps = without_targets(y)
    if gaps.all():
        raise InputError(f"{label} has no row in which all targets are known")
    return X[~gaps], y[~gaps], [str(each) for each in notices(y, gaps, *without_target(label))]


def without_targets(y: Any) -> NDArray[np.bool_]:
    """In which rows a target is missing, (n,)."""
    gaps: NDArray[np.bool_] = y.isna().to_numpy()
    return gaps if gaps.ndim == 1 else np.asarray(gaps.any(axis=1))


def groups_of(table: Table, names: list[str], y: Any) -> Any:
    """The labels of the groups of rows whose targets are known; None without a column of them."""
    if not names:
        return None
    if len(names) > 1:
        raise InputError(f"--groups must name one column, got {listed(names)}")
    of_one = table.frame[names[0]][~without_targets(y)].dropna().unique()
    if len(of_one) == 1:
        raise InputError(
            f"--groups must name a column with two labels or more, and {names[0]!r} of "
            f"{table.label} has only {str(of_one[0])!r}"
        )
    if _is_text(table.frame[names[0]]):  # in which None and NA are labels
        table = table.with_labels(names)
    labels, known = table.frame[names[0]], ~without_targets(y)
    lacking = np.flatnonzero(labels.isna() & known)
    if len(lacking):
        raise InputError(
            f"the column {names[0]!r} of --groups must have a label in each row of {table.label}, "
            f"and row {lacking[0] + 1} has none"
        )
    labels = labels[known]
    return (labels.astype(str) if labels.dtype == object else labels).to_numpy()


def whole_rows(X: pd.DataFrame, names: list[str], label: str) -> tuple[Any, list[str]]:
    """The rows in which nothing is missing of some columns, and what is to be said of the others.

    A density takes no others: a value that is filled in is no observation.
    """
    gaps = has_gaps(X[names])
    if gaps.all():
        raise InputError(f"{label} has no row without missing values")
    said = notices(X, gaps, f"left out of {label}", "a value is missing")
    return X[~gaps], [str(each) for each in said]


def has_gaps(X: pd.DataFrame) -> NDArray[np.bool_]:
    """In which rows a value is missing, (n,)."""
    return np.asarray(X.isna().to_numpy().any(axis=1))


def notices(X: pd.DataFrame, gaps: NDArray[np.bool_], what: str, why: str) -> list[Notice]:
    """What rows with gaps are, and why, if there are any."""
    if not gaps.any():
        return []
    return [Notice(int(gaps.sum()), what, why, first=row_number(X, int(np.argmax(gaps))))]


def without_target(label: str) -> tuple[str, str]:
    """What rows without a target are, and why."""
    return f"left out of {label}", "the target is missing"


def check_numbers(table: Table, names: list[str]) -> None:
    """Refuse columns whose density has no meaning: all that are no numbers."""
    others = [name for name in names if not is_number(table.frame[name])]
    if others:
        raise InputError(
            f"the column {others[0]!r} of {table.label} is no number, and --model density is of "
            "numbers: leave it out with --drop, or name the columns with --columns"
        )


def features_of(table: Table, names: list[str]) -> tuple[pd.DataFrame, Columns]:
    """The columns to learn from, checked, and what each of them holds."""
    _check_values(table.frame[names], table.label)
    columns = columns_of(table.frame[names], table.label)
    found = table.with_labels(columns.words)
    if found is not table:
        columns = columns_of(found.frame[names], table.label)
    return prepare(found.frame[names], columns), columns


def columns_of(features: pd.DataFrame, label: str) -> Columns:
    """Sort the columns by what they hold, as an encoder does that is fitted on them."""
    with sentences_of_tables():
        kinds = kinds_of(frame_of(features), TableEncoder().max_categories, label)
    formats = {name: calendar["format"] for name, calendar in kinds.dates.items()}
    return Columns(kinds.read, tuple(kinds.doubts), formats)


def check_formats(X: pd.DataFrame, columns: Columns, label: str) -> None:
    """Refuse dates whose format is another one in the rows that are not left out."""
    for name, of_all in columns.formats.items():
        form = of_all and format_of(words_of(X[name]), f"the column {name!r} of {label}")
        if form and form != of_all:
            raise InputError(
                f"the dates of the column {name!r} of {label} are {of_all} in all rows, and "
                f"would be {form} in those with a target: write them like 2021-12-24"
            )


@contextlib.contextmanager
def sentences_of_tables() -> Iterator[None]:
    """Pass on what is wrong with a table, or not installed; and nothing else."""
    try:
        yield
    except OddCellsError as error:
        hint = "--missing names words that stand for missing values"
        raise InputError(f"{one_line(error)}; {hint}") from error
    except (TableError, ImportError) as error:
        raise InputError(one_line(error)) from error


def prepare(features: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Numbers as floats, labels as words: the form in which encoders and pictures read a table."""
    made: dict[Any, Any] = dict(features.items())
    for name in columns.numeric:
        made[name] = numbers_of(features[name], name)
    for name in columns.words:
        made[name] = words_of(features[name])
    return pd.DataFrame(made, index=features.index, columns=features.columns)


def select(
    table: Table, encoder: TableEncoder, whole: bool = False
) -> tuple[pd.DataFrame, list[Notice]]:
    """Return the columns that a model reads, whatever their order, and what to say of them.

    With ``whole`` nothing is said of rows with missing values, which are not used.
    """
    columns = Columns(encoder.kinds_)
    read = [name for name in columns.names if name in table.frame.columns]
    table = table.with_labels([name for name in columns.words if name in read])
    _check_values(table.frame[read], table.label)
    gaps = has_gaps(table.frame[read]) & whole
    with as_input_errors():
        found = noticed(encoder, table.frame[~gaps | gaps.all()], table.label)
    return prepare(table.frame[columns.names], columns), [] if gaps.all() else found
