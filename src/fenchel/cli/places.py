"""Files and folders: whether they can be, and what became of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fenchel._folders import files_within, keep_mode
from fenchel.cli.errors import InputError


def place_of(text: str, name: str) -> Path:
    """Path of what may or may not be there, if the system can have a file of that name."""
    if not text:
        raise InputError(f"{name} must not be empty")
    try:
        Path(text).stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # too long, a circle of links, a zero byte
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{name} {text!r} cannot be a file: {reason}") from error
    return Path(text)


def check_output(path: str | None, option: str, endings: tuple[str, ...]) -> Path | None:
    """Refuse, before any work is done, a place that cannot be written to."""
    if path is None:
        return None
    chosen = place_of(path, option)
    if chosen.suffix.lower() not in endings:
        raise InputError(f"{option} must end in {' or '.join(endings)}, got {path}")
    if chosen.exists() and not chosen.is_file():
        kind = "folder" if chosen.is_dir() else "device or a pipe"
        raise InputError(f"{option} must be a file, and {path} is a {kind}")
    target = Path(os.path.realpath(chosen)) if chosen.is_symlink() else chosen
    check_folder(target.parent, option)
    return chosen


def check_not_read(path: str | None, option: str, **read: str) -> None:
    """Refuse an output that would replace what the command reads: files, or those of a folder."""
    if path is None or not Path(path).is_file():
        return
    for what, text in read.items():
        place = Path(text)
        files = files_within(place) if place.is_dir() else [place]
        if any(file.is_file() and file.samefile(path) for file in files):
            raise InputError(
                f"{option} must be another file than the {what} that is read, got {path}"
            )


def check_folder(folder: Path, option: str) -> Path:
    """Refuse a folder that is not there or not to be written to."""
    if not folder.is_dir():
        raise InputError(f"{option}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{option}: the folder {folder} cannot be written to")
    return folder


def write_output(path: Path, content: bytes) -> None:
    """Write a whole file, or say why not."""
    from fenchel.persistence import write_whole  # noqa: PLC0415  (which imports all models)

    try:
        write_whole(path, content)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


@contextlib.contextmanager
def written_whole(path: Path | None) -> Iterator[IO[str]]:
    """A file for text that takes its place, or goes to standard output, once it is complete.

    The only :class:`OSError` of what is done meanwhile is to be of this file.
    """
    where = tempfile.gettempdir() if path is None else Path(os.path.realpath(path)).parent
    what = f"a temporary file in {where}" if path is None else str(path)
    try:
        with tempfile.TemporaryDirectory(prefix=".fenchel-", dir=where) as folder:
            part = Path(folder) / "part"
            with part.open("w", encoding="utf-8", newline="") as file:
                yield file
                if path is not None and path.exists():
                    keep_mode(file.fileno(), path.stat())
            if path is not None:
                part.replace(os.path.realpath(path))
                return
            with part.open(encoding="utf-8", newline="") as file:
                shutil.copyfileobj(file, sys.stdout)
    except BrokenPipeError:  # of standard output
        raise
    except OSError as error:
        raise InputError(f"{what} cannot be written: {error.strerror or error}") from error


@contextlib.contextmanager
def noting_files(*places: Path | None) -> Iterator[None]:
    """Whatever is raised inside says as its notes which of the files were written by then."""
    before = [_state(place) for place in places]
    try:
        yield
    except BaseException as error:
        for place, old in zip(places, before, strict=True):
            if _state(place) != old:
                error.add_note(f"{place} was written")
        raise


def _state(place: Path | None) -> object:
    """Something that is another one where the file is another one."""
    if place is None:
        return None
    try:
        found = place.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
