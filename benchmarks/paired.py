"""``python -m benchmarks.paired OTHER [CASE ...]``: this checkout against another one, in turn.

Each case runs in a fresh process of the one and of the other checkout, several times in turn,
so that a machine whose speed drifts slows both. Rows of the same name are compared: the median
over rounds of the ratio of this checkout to the other, and its range. Compiled code is cached
in a folder of each checkout's own and warmed up by a round that does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.cases import CASES

TIMES = {"s", "ms", "min"}


def run(checkout: Path, case: str, folder: Path) -> dict[str, float]:
    """Times of the rows of one case in one checkout."""
    out = folder / "rows.json"
    environment = os.environ | {
        "PYTHONPATH": str(checkout / "src"),
        "NUMBA_CACHE_DIR": str(folder / f"numba-{abs(hash(str(checkout)))}"),
    }
    command = [sys.executable, "-m", "benchmarks", case, "--out", str(out)]
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{case} fails in {checkout}: {done.stderr.strip()[-500:]}")
    rows = json.loads(out.read_text(encoding="utf-8"))["rows"]
    known: dict[str, float] = {}
    for number, row in enumerate(rows):
        if row["unit"] in TIMES:
            name = row["case"].strip()
            known[name if name not in known else f"{name} ({number})"] = row["measured"]
    return known


def compare(other: Path, cases: list[str], rounds: int) -> list[tuple[str, float, float, float]]:
    """Median, least and largest ratio of each row."""
    here = Path(__file__).resolve().parent.parent
    ratios: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            for number in range(rounds + 1):
                ours, theirs = (run(each, case, Path(folder)) for each in (here, other))
                for name in ours.keys() & theirs.keys() if number else ():
                    ratios.setdefault(f"{case}: {name}", []).append(ours[name] / theirs[name])
    return [(name, median(all_), min(all_), max(all_)) for name, all_ in sorted(ratios.items())]


def main() -> int:
    """Parse, run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paired", description=__doc__)
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("cases", nargs="*", help=f"some of {', '.join(CASES)}; all by default")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each that count")
    arguments = parser.parse_args()
    rows = compare(arguments.other.resolve(), arguments.cases or list(CASES), arguments.rounds)
    width = max((len(name) for name, *_ in rows), default=0)
    print(f"{'this checkout / the other':{width}}  median    min    max")
    for name, middle, low, high in rows:
        print(f"{name:{width}}  {middle:6.3f} {low:6.3f} {high:6.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
