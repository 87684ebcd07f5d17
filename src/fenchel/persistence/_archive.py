"""Consistency checks of an archive before any of it is unpacked or built."""

from __future__ import annotations

import copy
import io
import json
import math
import zipfile
from collections.abc import Hashable
from typing import Any

import numpy as np

SCHEMA = "schema.json"
# Sparse matrices are the only compressed part. Deflate makes 1032 bytes of one, and a matrix of
# ones nearly as many: what is small is let through, and what is large must be honest.
_SMALL = 64 * 2**20
_GROWTH = 20
_CHUNK = 2**20
_SHOWN = 80


def check_directory(archive: zipfile.ZipFile, n_bytes: int) -> None:
    """Raise an error if parts are larger than the file: compressed, or overlapping."""
    for info in archive.infolist():
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise ValueError(
                f"its part {info.filename[:_SHOWN]!r} is compressed, which no part of a saved "
                "model is"
            )
    claimed = sum(info.file_size for info in archive.infolist())
    if claimed > n_bytes:
        raise ValueError(f"its parts claim {claimed} bytes, and the file has {n_bytes}")


def check_parts(archive: zipfile.ZipFile) -> None:
    """Raise an error for arrays of another length than stated, and objects that expand to many."""
    for info in archive.infolist():
        content = archive.read(info)
        if content.startswith(b"PK"):  # as NumPy recognizes them, whatever the name
            _check_compressed(info.filename, content)
        elif content.startswith(np.lib.format.MAGIC_PREFIX):
            _check_array(info.filename, content, len(content))
        elif info.filename.endswith(".npy"):
            raise ValueError(f"its array {info.filename[:_SHOWN]!r} is none")
    _check_schema(json.loads(archive.read(SCHEMA)))


def _check_array(name: str, start: bytes, n_bytes: int) -> None:
    """Compare the header of an array, whose first bytes are given, with its length."""
    file = io.BytesIO(start)
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise ValueError(f"its array {name[:_SHOWN]!r} has the unknown version {version}")
    shape, _, dtype = read(file)
    here = n_bytes - file.tell()
    # items without bytes would make arrays of any length
    claimed = math.prod(shape) * max(dtype.itemsize, 1)
    if claimed != here or any(length < 0 for length in shape):
        raise ValueError(
            f"its array {name[:_SHOWN]!r} of shape {shape} claims {claimed} bytes and has {here}"
        )


def _check_compressed(name: str, content: bytes) -> None:
    """Unpack a compressed part step by step, and stop if it is larger than allowed."""
    most = _SMALL + _GROWTH * len(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            honest = copy.copy(info)
            # what is unpacked is not what the directory says; one chunk more than is read
            honest.file_size = most + 2 * _CHUNK
            start, n_bytes = b"", 0
            with archive.open(honest) as file:
                while chunk := file.read(_CHUNK):
                    start, n_bytes = start or chunk, n_bytes + len(chunk)
                    if n_bytes > most:
                        raise ValueError(
                            f"its part {name[:_SHOWN]!r} of {len(content)} bytes unpacks into "
                            f"more than {most}"
                        )
            most -= n_bytes
            _check_array(info.filename, start, n_bytes)


def _check_schema(schema: Any) -> None:
    """Raise an error for references, by which a short file could describe a long object.

    ``save`` writes an object out wherever it occurs, with the same identity. So all of its
    occurrences have the same number of parts, and each array belongs to one object. The object
    that is built is then at most as large as what is written.
    """
    sizes: dict[Hashable, int] = {}
    owners: dict[str, Hashable] = {}

    def size(value: Any) -> int:
        if not isinstance(value, dict | list):
            return 0
        parts = value.values() if isinstance(value, dict) else value
        total = 1 + sum(map(size, parts))
        if isinstance(value, dict):
            known = value.get("__id__") or object()  # without an identity each is an own object
            if sizes.setdefault(known, total) != total:
                raise ValueError("its description refers to objects instead of writing them out")
            file = value.get("file") if "__loader__" in value else None
            if file is not None and owners.setdefault(file, known) != known:
                raise ValueError("its description gives one array to several objects")
        return total

    size(schema)
