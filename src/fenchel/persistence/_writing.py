"""Atomic writing of files."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from uuid import uuid4

from fenchel._folders import keep_mode


def write_whole(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file atomically: its path has the old file or the new one, never a part.

    A symbolic link is followed. An existing file keeps its mode and, if the system allows it, its
    owner; its other hard links keep the old content. On systems with unnamed files (``O_TMPFILE``:
    Linux, on most file systems), a process that is killed leaves nothing behind, except if it is
    killed between two system calls at the very end of a replacement. On other systems it may
    leave ``.fenchel-*.tmp`` beside the file, which can be deleted.

    Raises
    ------
    OSError
        With the path as ``filename``, if the file cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from fenchel.persistence import write_whole
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "notes.txt"), b"all or nothing").read_text()
    'all or nothing'
    """
    path = Path(path)
    try:
        _write(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    return path


def _write(target: Path, content: bytes) -> None:
    try:
        old = target.stat()
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    # the name says nothing of the target's, which may be as long as names can be
    temporary = target.with_name(f".fenchel-{uuid4().hex}.tmp")
    try:
        if not _write_unnamed(target, temporary, content, old):
            with temporary.open("xb") as file:
                _fill(file.fileno(), content, old)
        if temporary.exists():
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _write_unnamed(
    target: Path, temporary: Path, content: bytes, old: os.stat_result | None
) -> bool:
    """Write a file that has no name until it is complete; False if the system has none.

    It then gets the name of the target if that is free, and otherwise that of the temporary file,
    since a link cannot replace a file.
    """
    try:
        unnamed = os.open(target.parent, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except (AttributeError, OSError):  # a folder that is not there speaks up with a name, too
        return False
    try:
        _fill(unnamed, content, old)
        for name in [temporary] if old is not None else [target, temporary]:
            with contextlib.suppress(OSError):
                # src_dir_fd makes it a call that follows the link to the open file
                os.link(f"/proc/self/fd/{unnamed}", name, src_dir_fd=unnamed)
                return True
    finally:
        os.close(unnamed)
    return False


def _fill(file: int, content: bytes, old: os.stat_result | None) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]
    if old is not None:
        keep_mode(file, old)
    os.fsync(file)
