"""Files: damaged, hostile, and written where writing fails or ends in the middle.

What is read is the model that was written, bit by bit, or one sentence with the name of the file;
what lies at a path is the file of before or the one of after.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fenchel
from attacks import Outcome
from attacks._archives import archive_of, bombs, hostile, members_of, npy
from fenchel.persistence import load_metadata, write_whole

IN_CI = 160
IN_FULL = 20_000

_MOST_MEMORY = 100 * 2**20  # for files of at most a few megabytes
_ROWS = np.random.default_rng(0).uniform(size=(30, 2))
_WRITER = Path(fenchel.persistence.__file__).with_name("_writing.py")
_KILLED = """
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # else ignored in the background
write = runpy.run_path(sys.argv[1])["write_whole"]
print("ready", flush=True)
while True:
    for letter in b"ab":
        write(sys.argv[2], bytes([letter]) * int(sys.argv[3]))
"""


class _Found(Exception):
    """What no try may come to."""


@cache
def _model() -> tuple[Any, bytes]:
    """A fitted model and the file of it."""
    y = np.sin(6 * _ROWS[:, 0])
    model = fenchel.QuantileRegressor([0.2, 0.8], alpha=1e-2).fit(_ROWS, y)
    with tempfile.TemporaryDirectory() as folder:
        return model, fenchel.save(model, Path(folder) / "m.skops").read_bytes()


def _same(found: Any, model: Any) -> bool:
    return (
        type(found) is type(model)
        and found.certificate_ == model.certificate_
        and found.get_params() == model.get_params()
        and np.array_equal(found.predict(_ROWS), model.predict(_ROWS))
    )


def _read(path: Path, whole: bool) -> str:
    """Load a file; what its checksums do not vouch for need not be the model."""
    model, _ = _model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of another version of scikit-learn, say
        try:
            found = fenchel.load(path)
            load_metadata(path)
        except (ValueError, OSError) as error:
            words = str(error)
            if path.name not in words or "\n" in words:
                raise _Found(f"the sentence {words!r}") from error
            return "refused"
    if whole:
        return "another whole archive was read"
    if not _same(found, model):
        raise _Found("a model that is not the one of the file")
    return "intact"


def _damaged(chance: random.Random, path: Path) -> str:
    """Bits flipped, blocks overwritten, cut off, put in or put before."""
    content = bytearray(_model()[1])
    kind = chance.choice(["flip", "block", "cut", "insert", "before", "behind", "swap"])
    at, length = chance.randrange(len(content)), chance.choice([1, 4, 100, 5000])
    if kind == "flip":
        for _ in range(chance.choice([1, 1, 2, 8])):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif kind == "block":
        new = chance.choice([bytes(length), chance.randbytes(length)])
        content[at : at + length] = new[: len(content) - at]
    elif kind == "cut":
        del content[at:]
    elif kind == "insert":
        content[at:at] = chance.randbytes(length)
    elif kind == "before":
        content[:0] = chance.randbytes(length)
    elif kind == "behind":
        content += chance.randbytes(length)
    else:
        other = chance.randrange(len(content))
        content[at : at + length], content[other : other + length] = (
            content[other : other + length],
            content[at : at + length],
        )
    path.write_bytes(content)
    return f"{kind}: {_read(path, whole=False)}"


def _directory(chance: random.Random, path: Path) -> str:
    """One bit of what the archive says of its parts, which no checksum covers."""
    content = bytearray(_model()[1])
    start = content.index(b"PK\x01\x02")
    content[chance.randrange(start, len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return f"directory: {_read(path, whole=False)}"


def _rewritten(chance: random.Random, path: Path) -> str:
    """A byte of a part changed, or a part another, with checksums that are right."""
    members = members_of(_model()[1])
    name = chance.choice(sorted(members))
    part = bytearray(members[name])
    if chance.random() < 0.2:
        shape = tuple(chance.choice([0, 1, 3, 10**9]) for _ in range(chance.randrange(4)))
        part = bytearray(npy(np.zeros(3), shape=shape))
    elif chance.random() < 0.3:
        part = bytearray(members[chance.choice(sorted(members))])
    else:
        for _ in range(chance.choice([1, 3])):
            part[chance.randrange(len(part))] = chance.choice(b'{}[]":,019-eE \\x') or 0
    path.write_bytes(archive_of({**members, name: bytes(part)}))
    return f"rewritten: {_read(path, whole=True)}"


@cache
def _hostile_archives() -> tuple[tuple[str, bytes], ...]:
    members = members_of(_model()[1])
    return tuple((bombs(members) | hostile(members)).items())


def _archive(chance: random.Random, path: Path) -> str:
    """Archives that unfold, or are of something else."""
    name, content = chance.choice(_hostile_archives())
    path.write_bytes(content)
    tracemalloc.start()
    try:
        said = _read(path, whole=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if peak > _MOST_MEMORY:
        raise _Found(f"{name}: {peak} bytes for a file of {len(content)}")
    return f"{name}: {said}"


def _full_disk(chance: random.Random, path: Path) -> str:
    """A file that may not become as long as it should."""
    model, content = _model()
    old = chance.choice([None, b"old"])
    if old is not None:
        path.write_bytes(old)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (chance.randrange(len(content)), hard))
    try:
        fenchel.save(model, path)
    except OSError as error:
        if str(path) not in str(error):
            raise _Found(f"the sentence {error}") from error
    else:
        raise _Found("no error on a full disk")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    if (path.read_bytes() if path.exists() else None) != old:
        raise _Found("another file after a full disk")
    return "full disk: as before"


def _no_place(chance: random.Random, path: Path) -> str:
    """Folders that take no files, even from root, and things that are no files."""
    path.write_bytes(b"old")
    link = path.with_name("link.skops")
    link.symlink_to("/dev/full")
    places = [path / "m.skops", path.parent / "none" / "m.skops", path.parent, link]
    places += [Path("/proc/m.skops")] * Path("/proc").is_dir()
    place = chance.choice(places)
    try:
        fenchel.save(_model()[0], place)
    except OSError as error:
        if str(place) not in str(error):
            raise _Found(f"the sentence {error}") from error
    else:
        raise _Found(f"no error for {place}")
    finally:
        link.unlink()
    if path.read_bytes() != b"old" or not stat.S_ISCHR(Path("/dev/full").stat().st_mode):
        raise _Found(f"another file after writing to {place}")
    return "no place: as before"


def _replaced(chance: random.Random, path: Path) -> str:
    """Modes and links stay as they were."""
    target = path.with_name("target.skops")
    mode = chance.choice([0o600, 0o640, 0o644, 0o666, 0o700])
    linked, there = chance.random() < 0.5, chance.random() < 0.7
    if there:
        target.write_bytes(b"old")
        target.chmod(mode)
    if linked:
        path.symlink_to(target)
    fenchel.save(_model()[0], path if linked else target)
    umask = os.umask(0)
    os.umask(umask)
    if linked and not path.is_symlink():
        raise _Found("a link was replaced")
    found = stat.S_IMODE(target.stat().st_mode)
    if found != (mode if there else 0o666 & ~umask):
        raise _Found(f"mode {found:o} where it was {mode:o}")
    return f"replaced: {_read(target, whole=False)}"


def _killed(chance: random.Random, path: Path) -> str:
    """A process that is killed while it writes, again and again."""
    size = chance.choice([10**3, 10**6, 10**7])
    if chance.random() < 0.5:
        path.write_bytes(b"a" * size)
    command = [sys.executable, "-I", "-c", _KILLED, str(_WRITER), str(path), str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        if process.stdout is None or process.stdout.readline() != b"ready\n":
            raise _Found("the writer did not start")
        time.sleep(chance.uniform(0.0, 0.05))
        process.send_signal(chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
        try:
            process.wait(60.0)
        finally:
            process.kill()
    files = [f for f in path.parent.iterdir() if f.stat().st_size]
    for file in files:
        if file.read_bytes() not in (b"a" * size, b"b" * size):
            raise _Found(f"a part of a file at {file.name}")
    left = [f for f in path.parent.iterdir() if f != path]
    if len(left) > 1 or any(f.name == path.name for f in left):
        raise _Found(f"left behind: {left}")
    return f"killed: whole, {len(left)} whole temporary files left"


_KINDS: list[tuple[int, Callable[[random.Random, Path], str]]] = [
    (8, _damaged),
    (4, _directory),
    (6, _rewritten),
    (4, _archive),
    (2, _full_disk),
    (2, _no_place),
    (2, _replaced),
    (1, _killed),
]


def attack(count: int, seed: int) -> Outcome:
    """Read and write files of every kind of misfortune."""
    outcome, chance = Outcome(), random.Random(seed)
    weights, kinds = zip(*_KINDS, strict=True)
    for number in range(count):
        (kind,) = chance.choices(kinds, weights)
        own = random.Random(f"{seed} {number}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.skops"
            write_whole(path.with_name("probe"), b"")
            path.with_name("probe").unlink()
            try:
                outcome.counts[kind(own, path)] += 1
            except Exception as error:  # whatever is raised is what was looked for
                outcome.counts["FAILED"] += 1
                what = f"{type(error).__name__}: {error}"
                outcome.failures.append(f"try {number}, {kind.__name__}: {what}"[:400])
    return outcome
