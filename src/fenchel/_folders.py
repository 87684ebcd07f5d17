"""Files and folders, before anything that reads tables is imported."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

PARQUET = (".parquet", ".pq")
"""Endings of Parquet files."""


def files_within(folder: Path, above: tuple[str, ...] = ()) -> Iterator[Path]:
    """All files of a folder and of those in it, links that do not lead back included.

    Without what other programs keep beside the rows, as Arrow does by itself.
    """
    own = os.path.realpath(folder)
    if own in above:
        return
    for place in folder.iterdir():
        if place.name.startswith(("_", ".")):
            continue
        if place.is_dir():
            yield from files_within(place, (*above, own))
        else:
            yield place


def tables_within(folder: Path) -> list[Path]:
    """The Parquet files among them, in order of their names."""
    return sorted(place for place in files_within(folder) if place.suffix.lower() in PARQUET)


def keep_mode(file: int, old: os.stat_result) -> None:
    """Give an open file the mode and, if the system allows it, the owner of one it replaces."""
    if hasattr(os, "fchmod"):
        with contextlib.suppress(PermissionError):
            os.fchown(file, old.st_uid, old.st_gid)
        os.fchmod(file, stat.S_IMODE(old.st_mode))
