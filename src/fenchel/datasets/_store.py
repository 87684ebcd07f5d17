"""Access to data files: in ``$FENCHEL_DATA``, in the cache, or by download.

The sha256 checksum of each file is verified, wherever it was found.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import urllib.parse
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

_TIMEOUT_SECONDS = 60.0


class Resource(NamedTuple):
    """A file below the data folder, and the sha256 of its content."""

    file: str
    sha256: str


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/fenchel``, or ``~/.cache/fenchel`` where that is unset or relative."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "fenchel"


def fetch(resource: Resource) -> bytes:
    """Return the content of a resource from the first place that has it.

    A damaged file raises an OSError and is never overwritten, because a user may have put it
    there.
    """
    folder = os.environ.get("FENCHEL_DATA", "")
    if folder and (path := Path(folder, resource.file)).is_file():
        return _checked(path, resource, f"FENCHEL_DATA={folder}")
    cached = cache_folder() / resource.file
    if cached.is_file():
        return _checked(cached, resource, f"the cache, {cached}, where it can be deleted,")
    base = os.environ.get("FENCHEL_DATA_URL", "")
    if not base:
        raise FileNotFoundError(_missing(resource, folder, cached))
    _download(base, resource, cached)
    return cached.read_bytes()


def _checked(path: Path, resource: Resource, origin: str) -> bytes:
    content = path.read_bytes()
    if (given := hashlib.sha256(content).hexdigest()) != resource.sha256:
        raise OSError(
            f"{resource.file} from {origin} has sha256 {given}, but must have {resource.sha256}."
        )
    return content


def _missing(resource: Resource, folder: str, cached: Path) -> str:
    given = f"now {folder!r}, which does not hold it" if folder else "now unset"
    return (
        f"{resource.file} (sha256 {resource.sha256}) is not bundled and was not found: either set "
        f"FENCHEL_DATA ({given}) to a folder that holds {resource.file}, or put the file at "
        f"{cached}, or set FENCHEL_DATA_URL (now unset) to a base address that serves "
        f"{resource.file}."
    )


def _download(base: str, resource: Resource, target: Path) -> None:
    """Put the file at ``target``: checked before it gets its name, whole or not at all."""
    if urllib.parse.urlsplit(base).scheme not in {"http", "https", "file"}:
        raise ValueError(f"FENCHEL_DATA_URL must be an http, https or file address, got {base!r}.")
    address = f"{base.rstrip('/')}/{resource.file}"
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as sink:
            try:
                with urllib.request.urlopen(address, timeout=_TIMEOUT_SECONDS) as source:
                    shutil.copyfileobj(source, sink)
            except (OSError, HTTPException) as error:  # URLError is an OSError
                raise OSError(
                    f"{resource.file} could not be downloaded from {address}: {error}."
                ) from error
        _checked(part, resource, address)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
