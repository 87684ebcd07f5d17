"""Model files that are not what they say, made from one that is."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

Members = dict[str, bytes]
BOMB = 150 * 2**20  # bytes that a small file would like to become


def members_of(content: bytes) -> Members:
    """Parts of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members: Members, compression: int = zipfile.ZIP_STORED) -> bytes:
    """Archive of parts, with checksums that are right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def npy(array: Any, shape: tuple[int, ...] | None = None) -> bytes:
    """Array as NumPy writes it, if need be with a shape that it does not have."""
    buffer = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array)
    if shape is not None:
        header["shape"] = shape
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + array.tobytes()


def changed(members: Members, **parts: Callable[[Any], Any]) -> bytes:
    """Archive with other JSON in ``fenchel`` or ``schema``."""
    new = dict(members)
    for part, change in parts.items():
        name = f"{part}.json"
        new[name] = json.dumps(change(json.loads(new[name]))).encode()
    return archive_of(new)


def with_metadata(members: Members, **metadata: Any) -> bytes:
    """Archive with other metadata: None deletes."""

    def change(record: dict[str, Any]) -> dict[str, Any]:
        for name, value in metadata.items():
            record["metadata"][name] = value
            if value is None:
                del record["metadata"][name]
        return record

    return changed(members, fenchel=change)


def with_schema(members: Members, old: str, new: str) -> bytes:
    """Archive with other words in the description of its objects."""
    text = members["schema.json"].decode()
    if old not in text:
        raise ValueError(f"the schema has no {old}")
    return archive_of({**members, "schema.json": text.replace(old, new).encode()})


def with_arrays(members: Members, change: Callable[[Any], Any]) -> bytes:
    """Archive with other arrays."""
    new = {
        name: npy(change(np.load(io.BytesIO(part)))) if name.endswith(".npy") else part
        for name, part in members.items()
    }
    return archive_of(new)


def with_object(members: Members, state: Any, **more: bytes) -> bytes:
    """Archive of another object than a model."""
    other = {"fenchel.json": members["fenchel.json"], **more}
    other["schema.json"] = json.dumps({**state, "protocol": 2}).encode()
    return archive_of(other)


def node(loader: str, of: str, **more: Any) -> dict[str, Any]:
    """State of an object as skops writes it."""
    module, _, name = of.rpartition(".")
    return {"__class__": name, "__module__": module, "__loader__": loader, **more}


def bombs(members: Members) -> dict[str, bytes]:
    """Small files that describe much."""
    zeros = np.zeros(BOMB // 8)
    array = node("NdArrayNode", "numpy.ndarray", type="numpy", file="1.npy", __id__=1)
    buffer = io.BytesIO()
    sparse.save_npz(buffer, sparse.csr_array((zeros, zeros.astype(np.int32), [0, len(zeros)])))
    matrix = node("SparseMatrixNode", "scipy.sparse._csr.csr_array", type="scipy", file="1.npz")
    number = node("JsonNode", "builtins.int", content="1")
    # each level holds the one below ten times: by reference, and by its identity alone
    laughs: Any = node("ListNode", "builtins.list", content=[number] * 10, __id__=1)
    for level in range(2, 9):
        again = [{"__id__": level - 1}] * 9
        laughs = node("ListNode", "builtins.list", content=[laughs, *again], __id__=level)
    shape = node("TupleNode", "builtins.tuple", content=[number, number])
    object_array = node(
        "NdArrayNode", "numpy.ndarray", type="json", content=laughs["content"], shape=shape
    )
    one = npy(np.zeros(2**17))
    many = [{**array, "__id__": k} for k in range(1, BOMB // 2**20)]
    return {
        "compressed": archive_of({**members, "0.npy": npy(zeros)}, zipfile.ZIP_DEFLATED),
        "claimed shape": with_object(
            members, array, **{"1.npy": npy(np.zeros(3), shape=(BOMB // 8,))}
        ),
        "no bytes an item": with_object(
            members, array, **{"1.npy": npy(np.zeros(1, dtype="V0"), shape=(10**12,))}
        ),
        "negative shape": with_object(members, array, **{"1.npy": npy(np.zeros(6), (-2, -3))}),
        "sparse": with_object(members, matrix, **{"1.npz": buffer.getvalue()}),
        "an archive as array": with_object(members, array, **{"1.npy": buffer.getvalue()}),
        "references": with_object(members, object_array),
        "one array often": with_object(
            members, node("ListNode", "builtins.list", content=many), **{"1.npy": one}
        ),
    }


def hostile(members: Members) -> dict[str, bytes]:
    """Archives that are whole, and of something else."""
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    nested: Any = node("JsonNode", "builtins.int", content="1")
    for _ in range(300):
        nested = node("ListNode", "builtins.list", content=[nested])
    schema = json.loads(members["schema.json"])
    without = {name: part for name, part in members.items() if not name.endswith(".npy")}
    system = node("FunctionNode", "os.system", content="os.system")
    return {
        "nothing": archive_of({}),
        "no record": archive_of({"schema.json": members["schema.json"]}),
        "no schema": archive_of({"fenchel.json": members["fenchel.json"]}),
        "no arrays": archive_of(without),
        "deep record": archive_of({**members, "fenchel.json": deep}),
        "deep schema": archive_of({**members, "schema.json": deep}),
        "nested objects": with_object(members, nested),
        "record of words": archive_of({**members, "fenchel.json": b'"words"'}),
        "record of bytes": archive_of({**members, "fenchel.json": b"\xff\xfe"}),
        "versions": changed(members, fenchel=lambda r: {**r, "versions": {"fenchel": 1}}),
        "metadata": changed(members, fenchel=lambda r: {**r, "metadata": [["a", 1]]}),
        "format": changed(members, fenchel=lambda r: {**r, "format": "two"}),
        "schema of words": archive_of({**members, "schema.json": b'["words"]'}),
        "protocol": changed(members, schema=lambda s: {**s, "protocol": 99}),
        "loader": changed(members, schema=lambda s: {**s, "__loader__": "NoNode"}),
        "foreign function": with_object(members, system),
        "foreign class": changed(
            members, schema=lambda s: {**s, "__class__": "Popen", "__module__": "subprocess"}
        ),
        "no such class": changed(members, schema=lambda s: {**s, "__class__": "SVRR"}),
        "no class": changed(members, schema=lambda s: {k: v for k, v in s.items() if k[2] != "c"}),
        "content": changed(members, schema=lambda s: {**s, "content": 3}),
        "pickles": archive_of(
            {n: b"\x80\x04K\x01." if n.endswith("npy") else p for n, p in members.items()}
        ),
        "version of arrays": archive_of(
            {n: p[:6] + b"\x09\x00" + p[8:] for n, p in members.items() if n.endswith("npy")}
            | without
        ),
        "itself": with_object(members, {**schema, "content": {"__id__": schema["__id__"]}}),
        "bzip2": archive_of(members, zipfile.ZIP_BZIP2),
    }
