"""Timing, the machine, and the table."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
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
    for _ in range(warm_up):
        result = function()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - started)
    return median(seconds), result


def in_process(code: str) -> dict[str, float]:
    """Run code in a fresh interpreter; it prints one JSON object as its last line."""
    run = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=os.environ
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
