"""Which column is what, and what is wrong with that before any table is read as a whole."""

from __future__ import annotations

import csv
import importlib
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from fenchel._folders import PARQUET, tables_within
from fenchel._sentences import listed
from fenchel.cli.errors import InputError
from fenchel.cli.places import place_of

_TABLES = (".csv", ".parquet")
_SHEETS, _PACKED = (".xlsx", ".xls", ".ods"), (".gz", ".zip", ".bz2", ".xz", ".zst")
_FIRST_LINES = 20  # which tell what columns end in
_TAB = "\t"
_MARKS = (",", ";", _TAB)
_NAMED_MARK = re.compile(r'"?sep=(.)"?,*', re.IGNORECASE)  # a first line for spreadsheets
_NO_NAME = "Unnamed: 0"  # what pandas calls a first column without a name
_INDEX = re.compile(r"__index_level_\d+__")  # where pandas keeps labels of rows


@dataclass(frozen=True)
class Roles:
    """Names of columns as they were given: lists with commas, or the same option several times."""

    target: str | None = None
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def markers(self) -> tuple[str, ...]:
        """The words of --missing, which stand for missing values."""
        found = dict.fromkeys(word for text in self.missing for word in text.split(","))
        if "" in found:
            raise InputError(
                "--missing must name words with commas between them, and one is empty"
            )
        return tuple(found)

    def names(self, option: str, known: list[str], label: str) -> list[str]:
        """The columns that an option names; a name with commas is one if the table has it."""
        found: dict[str, None] = {}
        for text in getattr(self, option):
            for name in [text] if text in known else text.split(","):
                _check_known(name, known, label, f"--{option}: ")
                found[name] = None
        return list(found)

    def features(self, known: list[str], targets: list[str], label: str) -> list[str]:
        """The columns to learn from: those of --columns or all, without all others named."""
        columns, drop, ids, groups = (
            self.names(option, known, label) for option in ("columns", "drop", "ids", "groups")
        )
        named = {"--target": targets, "--columns": columns, "--drop": drop, "--ids": ids}
        named["--groups"] = groups
        for one, other in (
            ("--target", "--columns"),
            ("--target", "--drop"),
            ("--target", "--ids"),
            ("--columns", "--drop"),
            ("--columns", "--ids"),
            ("--target", "--groups"),
            ("--columns", "--groups"),
        ):
            both = [name for name in named[one] if name in named[other]]
            if both:
                raise InputError(f"{one} and {other} both name the column {both[0]!r}")
        without = {*targets, *drop, *ids, *groups, *self.labels(known, targets, label)}
        found = [name for name in columns or known if name not in without]
        if not found:
            beside = f" beside the target {', '.join(map(repr, targets))}" if targets else ""
            options = [name for name in ("--drop", "--ids", "--groups") if named[name]]
            names = f" name{'s' * (len(options) == 1)}"
            others = f" and what {' and '.join(options)}{names}" if options else ""
            raise InputError(f"{label} has no column{beside}{others}")
        return found

    def labels(self, known: list[str], targets: list[str], label: str) -> list[str]:
        """The first column, where it has no name: pandas writes labels of rows so.

        It is no feature unless an option names it, or nothing else is left.
        """
        named = {*targets, *self.names("drop", known, label), *self.names("ids", known, label)}
        if self.columns or _NO_NAME in named or len(known) <= 1 + len(targets):
            return []
        return [name for name in known[:1] if name == _NO_NAME]

    def record(
        self, known: list[str], targets: list[str], features: list[str], label: str
    ) -> dict[str, list[str]]:
        """What a model file says of the columns of its table that are no features."""
        ids = self.names("ids", known, label)
        used = {*targets, *features, *ids}
        dropped = [name for name in known if name not in used]
        missing = list(self.markers)
        return {"target": targets, "ids": ids, "dropped": dropped, "missing": missing}

    def targets(self, known: list[str], label: str, own: str | None, many: bool) -> list[str]:
        """The columns to learn: one, or several where there may be ``many``."""
        text = own if self.target is None else self.target
        if text is None:
            raise InputError(f"--target must name the column to learn: one of {listed(known)}")
        names = [text] if not many or text in known else text.split(",")
        for name in names:
            _check_known(name, known, label, "")
        return names


def _check_known(name: str, known: list[str], label: str, start: str) -> None:
    if name not in known:
        raise InputError(f"{start}{label} has no column {name!r}; its columns are {listed(known)}")


@dataclass(frozen=True)
class Heading:
    """The names of a table's columns, None where only reading all of it will tell."""

    label: str
    names: list[str] | None


def heading_of(data: str) -> Heading:
    """Look at a file, without reading it; say if there is none."""
    path = place_of(data, "DATA")
    if path.is_dir():
        if not tables_within(path):
            raise InputError(
                f"{data} is a folder, and a CSV or Parquet file is needed, or a folder with files "
                f"{' or '.join(PARQUET)} in it"
            )
        return Heading(path.name, _names_in(path, ".parquet"))
    if not path.is_file():
        if path.exists():
            raise InputError(
                f"DATA must be a file, a folder or the name of a data set, and {data} is a device "
                "or a pipe: write what comes from it to a .csv file first"
            )
        if path.suffix:
            raise InputError(f"there is no file {data}")
        return Heading(data, None)
    suffix = path.suffix.lower()
    if suffix not in _TABLES:
        raise InputError(
            f"{path} must end in {' or '.join(_TABLES)}, and ends in {suffix!r}"
            f"{_converted(path, suffix)}"
        )
    if suffix == ".csv":
        _check_commas(path)
    return Heading(path.name, _names_in(path, suffix))


def _check_commas(path: Path) -> None:
    """Refuse a file whose columns end in something else than commas, or that says so itself.

    There are none in its heading; or its lines have as many of something else, and commas in
    numbers that change, or no more of them.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = list(itertools.islice((line for line in file if line.strip()), _FIRST_LINES))
        commas, *others = ([len(row) for row in csv.reader(lines, delimiter=m)] for m in _MARKS)
    except (OSError, ValueError, csv.Error):  # whoever reads all of it says what is wrong
        return
    named = _NAMED_MARK.fullmatch(lines[0].rstrip("\r\n")) if lines else None
    if named is not None:
        convert = f"; {_to_commas(path, named[1], skipped=1)}" if named[1] != "," else ""
        raise InputError(
            f"{path} must begin with the names of its columns and have commas between them, and "
            f"begins with {named[0]!r}{convert or ': delete this line'}"
        )
    for mark, counts in zip(_MARKS[1:], others, strict=True):  # but for marks within quotes
        plain = commas[:1] == [1] and all(mark in line for line in lines[1:2])
        even = len(set(counts)) == 1 < len(lines) and (
            len(set(commas)) > 1 or counts[0] >= commas[0]
        )
        if counts and counts[0] > 1 and (plain or even):
            raise InputError(
                f"{path} must have commas between its columns, and has "
                f"{'tabs' if mark == _TAB else repr(mark)}; {_to_commas(path, mark)}"
            )


def _converted(path: Path, suffix: str) -> str:
    """How to make a table that is read of a file of another kind, where pandas can."""
    if suffix == ".tsv":
        return f"; {_to_commas(path, _TAB)}"
    reader = "read_excel" * (suffix in _SHEETS) or "read_csv" * (suffix in _PACKED)
    code = f"pandas.{reader}({str(path)!r}).to_csv('new.csv', index=False)"
    return f"; in Python, {code} converts it" if reader else ""


def _to_commas(path: Path, mark: str, skipped: int = 0) -> str:
    """How to make of a file one that is read."""
    skip = f", skiprows={skipped}" if skipped else ""
    return (
        f"in Python, pandas.read_csv({str(path)!r}, sep={mark!r}, decimal=','{skip})"
        ".to_csv('new.csv', index=False) converts it, with decimal='.' if its numbers have points"
    )


def check_different(names: list[str], path: Path) -> None:
    """Refuse names of columns that occur twice."""
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        of_text = path.suffix.lower() == ".csv"
        more = ", or add a first line with the names of the columns if there is none" * of_text
        raise InputError(
            f"{path} has more than one column {twice!r}: rename or delete all but one{more}"
        )


def _names_in(path: Path, suffix: str) -> list[str] | None:
    try:
        if suffix == ".parquet":
            if path.is_dir():  # what reads folders takes a while to import
                known = importlib.import_module("fenchel.files").parquet_in(path).schema.names
            else:
                known = importlib.import_module("pyarrow.parquet").read_schema(path).names
            names = [name for name in known if not _INDEX.fullmatch(name)]
            check_different(names, path)
        else:
            with path.open(encoding="utf-8-sig", newline="") as file:
                row = next(row for row in csv.reader(file) if "".join(row).strip())
                names = [name or f"Unnamed: {k}" for k, name in enumerate(row)]  # as pandas does
    except InputError:
        raise
    except Exception:  # whoever reads all of it says what is wrong
        return None
    return names if len(set(names)) == len(names) else None
