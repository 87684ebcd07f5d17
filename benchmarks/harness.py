"""Timing, the machine, and the table."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

PACKAGES = ("fenchel", "numpy", "scipy", "scikit-learn", "numba", "clarabel", "cvxopt")


@dataclass(frozen=True)
class Row:
    """One measured number beside the one that was asked for."""

    case: str
    measured: float
    unit: str
    target: str
    reached: bool | None
    note: str = ""


def timed(function: Callable[[], Any], repeats: int = 5, warm_up: int = 1) -> tuple[float, Any]:
    """Median wall-clock seconds of several calls, and what the last one returned."""
    calls = [_timed_once(function) for _ in range(warm_up + repeats)]
    return median(seconds for seconds, _ in calls[warm_up:]), calls[-1][1]


def in_turn(calls: Sequence[Callable[[], Any]], repeats: int) -> list[list[float]]:
    """Seconds of calls that take turns, each time of each."""
    rounds = [[_timed_once(call)[0] for call in calls] for _ in range(repeats)]
    return [list(own) for own in zip(*rounds, strict=True)]


def _timed_once(function: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = function()
    return time.perf_counter() - started, result


def in_process(code: str) -> dict[str, float]:
    """Run code in a fresh interpreter; it prints one JSON object as its last line.

    Like an installation it has its modules compiled, even where the environment forbids it.
    """
    run = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""},
    )
    return dict(json.loads(run.stdout.strip().splitlines()[-1]))


def machine() -> dict[str, Any]:
    """Hardware, Python and package versions."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads_used": 1,
        "python": platform.python_version(),
        "packages": versions,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def table(rows: list[Row]) -> str:
    """Plain text table."""
    head = ("case", "measured", "asked for", "reached", "note")
    cells = [head]
    for row in rows:
        reached = {True: "yes", False: "NO", None: "-"}[row.reached]
        cells.append((row.case, f"{row.measured:.4g} {row.unit}", row.target, reached, row.note))
    widths = [max(len(line[k]) for line in cells) for k in range(len(head))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in cells]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(line.rstrip() for line in lines)


def write(rows: list[Row], path: Path) -> None:
    """Write the results with versions and hardware, whole or not at all."""
    content = {"machine": machine(), "rows": [asdict(row) for row in rows]}
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    draft.replace(path)
