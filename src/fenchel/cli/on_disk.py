"""Tables larger than a share of the free memory: fitted, measured and predicted from disk."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fenchel._typing import FloatArray, IntArray
from fenchel.cli import fitting, measures
from fenchel.cli.data_io import Table, check_lines, marked, without_target
from fenchel.cli.errors import InputError, as_input_errors
from fenchel.cli.progress import Show
from fenchel.cli.roles import heading_of
from fenchel.cli.settings import EXPECTILE, QUANTILE, RIDGE, SUPPORT, Settings, option
from fenchel.files import n_rows_of, numbered, only, read_frames, read_known
from fenchel.tables.describing import Notice

SHARE = 0.1
"""Of the free memory: kernels make of a row many times the numbers that it has."""
CONVERT = (
    f"is larger than {100.0 * SHARE:g} % of the free memory: convert it to Parquet, with "
    "pyarrow.csv and pyarrow.parquet for instance, and it is read from disk"
)
_KNOWN = Path("/proc/meminfo")
_BLOCK_ROWS = 2**16
_CALIBRATION_SHARE, _MOST_CALIBRATION = 0.25, 20_000


def free_memory() -> float:
    """Bytes that may be had, infinite where the system does not say."""
    try:
        for line in _KNOWN.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, AttributeError):
        return float("inf")


def is_large(path: Path) -> bool:
    """Whether a table is too large to be read as a whole, or in several files."""
    if not path.is_file():
        return path.is_dir()
    size = float(path.stat().st_size)
    if path.suffix.lower() == ".parquet":
        try:
            known = importlib.import_module("pyarrow.parquet").read_metadata(path)
        except Exception:  # whoever reads it says what is wrong
            return False
        size = max(size, 8.0 * known.num_rows * known.num_columns)
    return size > SHARE * free_memory()


def names_in(path: Path) -> list[str]:
    """The columns of a table."""
    heading = heading_of(str(path))
    if heading.names is None:
        if path.suffix.lower() == ".csv":
            check_lines(path)
        n_rows_in(path)  # says why a file is no table
        raise InputError(
            f"{path} cannot be read as a table: its columns must have names, all of them different"
        )
    return heading.names


def n_rows_in(path: Path) -> int | None:
    """Number of rows of a table, None where only reading it will tell."""
    with as_input_errors():
        return None if path.suffix.lower() == ".csv" else n_rows_of(str(path))


def check_fit(path: Path, settings: Settings, plot: str | None, groups: tuple[str, ...]) -> None:
    """Refuse what needs all rows in memory."""
    large = f"{path.name} is larger than {100.0 * SHARE:g} % of the free memory"
    start = f"{path.name} is a folder" if path.is_dir() else large
    if not path.is_dir() and path.suffix.lower() != ".parquet":
        raise InputError(f"{path.name} {CONVERT}")
    refused = [option(name) for name in ("cv", "non_crossing") if settings.given(name)]
    refused += ["--plot"] * (plot is not None) + ["--groups"] * bool(groups)
    if settings.model not in (QUANTILE, EXPECTILE, SUPPORT, RIDGE):
        refused = [f"--model {settings.model}"]
    if refused:
        raise InputError(f"{start} and is fitted from disk, without {refused[0]}")


class Rows(NamedTuple):
    """The rows of a table whose target is known."""

    table: Any
    """The columns that are read."""
    targets: FloatArray
    notices: list[str]
    """On those that are left out."""


def rows_of(
    path: Path, names: list[str], target: str, markers: tuple[str, ...], show: Show
) -> Rows:
    """Rows of some columns and a target, in which cells with one of the markers are empty."""
    with as_input_errors():
        columns = [*names, target]
        table = only(str(path), columns, known=target, missing=markers, passed=show)
        y, numbers, read = read_known(table, target)
    n_rows = n_rows_in(path) or read
    if n_rows == 0:
        raise InputError(f"{path} has no rows")
    if len(y) == 0:
        raise InputError(f"{path.name} has no value in the target {target}")
    notices = []
    if len(y) < n_rows:
        first = int(np.argmax(np.append(numbers, -1) != np.arange(len(y) + 1)))
        left_out = Notice(n_rows - len(y), *without_target(path.name), first=first + 1)
        notices = [str(left_out)]
    return Rows(table, y, notices)


def fit(settings: Settings, rows: Rows, target: str, show: Show) -> fitting.Fit:
    """Fit to Parquet files, without the rows whose target is missing."""
    with as_input_errors():
        if settings.coverage is None:
            found = fitting.fit(settings, rows.table, target, show)
        else:
            found = _calibrated(settings, rows, target, show)
    return replace(found, warnings=[*rows.notices, *found.warnings], on_disk=True)


def measured(pipeline: Any, rows: Rows, show: Show) -> measures.Measures:
    """What a model is worth on these rows."""

    def passed(_: str, done: int, total: int | None) -> None:
        show("measuring", done, total)

    table = only(rows.table, rows.table.names, passed=passed)
    return measures.measure(pipeline, table, rows.targets)


def _calibrated(settings: Settings, found_rows: Rows, target: str, show: Show) -> fitting.Fit:
    """Intervals calibrated on some rows, which are left out of the fit."""
    table, y = found_rows.table, found_rows.targets
    coverage = float(settings.coverage or 0.0)
    size = max(1, min(int(_CALIBRATION_SHARE * len(y)), _MOST_CALIBRATION))
    random = np.random.RandomState(settings.seed)
    chosen = np.sort(random.choice(len(y), size, replace=False))
    weight = np.ones(len(y))
    weight[chosen] = 0.0
    ends = [0.5 * (1.0 - coverage), 0.5, 0.5 * (1.0 + coverage)]
    plain = replace(settings, coverage=None)
    if settings.model in (QUANTILE, EXPECTILE):
        plain = replace(plain, levels=",".join(f"{round(end, 12)!r}" for end in ends))
    found = fitting.fit(plain, table, target, show, weight)
    pipeline = found.pipeline
    wrapper = fitting.calibrated(settings, pipeline[-1], len(y)).set_params(
        method="split", cv="prefit", learn_share=None
    )
    rows = pipeline[:-1].transform(_rows(table, chosen))
    wrapper.fit(rows, y[chosen])
    pipeline.steps[-1] = (pipeline.steps[-1][0], wrapper)
    return found


def _rows(table: Any, numbers: IntArray) -> pd.DataFrame:
    """Some rows of a table, which is read through for them."""
    found, start = [], 0
    for frame in read_frames(table, list(table.names)):
        here = numbers[(numbers >= start) & (numbers < start + len(frame))]
        found.append(frame.iloc[here - start])
        start += len(frame)
    return pd.concat(found)


def blocks(
    path: Path, names: list[str], written: list[str], missing: tuple[str, ...]
) -> Iterator[tuple[int, Table]]:
    """Some columns of a table, block by block: the number of the first row, and a table.

    Cells of the columns ``written`` are kept as text as well, where they are.
    """
    start = 0
    of_csv = path.suffix.lower() == ".csv"
    if of_csv:
        check_lines(path)
    read = (
        _of_csv(path, names, written, missing)
        if of_csv
        else ((marked(frame, missing), None) for frame in read_frames(str(path), names))
    )
    with as_input_errors():
        for frame, text in read:
            numbers = np.arange(start, start + len(frame))
            known = None if text is None else numbered(text, numbers)
            rows = numbered(frame, numbers)
            if len(rows):
                yield start, Table(rows, path.name, missing=missing, text=known)
            start += len(rows)
    if start == 0:
        raise InputError(f"{path} has no rows")


def known_blocks(rows: Rows, label: str) -> Iterator[Table]:
    """The columns of the rows whose target is known, block by block."""
    with as_input_errors():
        for frame in read_frames(rows.table, list(rows.table.names)):
            yield Table(frame, label)


def _of_csv(
    path: Path, names: list[str], written: list[str], missing: tuple[str, ...]
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame | None]]:
    read_csv = partial(pd.read_csv, path, chunksize=_BLOCK_ROWS)
    with contextlib.ExitStack() as files:
        options = {"usecols": names, "low_memory": False, "na_values": list(missing)}
        frames = files.enter_context(read_csv(**options))
        if not written:
            yield from ((frame, None) for frame in frames)
            return
        as_text: Any = {"usecols": written, "dtype": str, "keep_default_na": False}
        yield from zip(frames, files.enter_context(read_csv(**as_text)), strict=True)
