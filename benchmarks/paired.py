"""``python -m benchmarks.paired OTHER [CASE ...]``: this checkout against another one, in turn.

Each case runs in a fresh process of the one and of the other checkout, several times in turn,
so that a machine whose speed drifts slows both. Rows of the same name are compared: the median
over rounds of the ratio of this checkout to the other, and its range. Rows of times are, and those
of times over that of a peer in the same process, "fit / scikit-learn's". Compiled code is cached
in a folder of each checkout's own and warmed up by a round that does not count. What a case has
shown is printed at its end, as some take minutes.
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
        "PYTHONDONTWRITEBYTECODE": "",  # an installation has what Python compiles as well
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
        name = row["case"].strip()
        if row["unit"] in TIMES or " / " in name:
            known[name if name not in known else f"{name} ({number})"] = row["measured"]
    return known


def compare(other: Path, case: str, rounds: int, folder: Path) -> dict[str, list[float]]:
    """The ratios of each row of a case."""
    here = Path(__file__).resolve().parent.parent
    ratios: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        ours, theirs = (run(each, case, folder) for each in (here, other))
        for name in ours.keys() & theirs.keys() if number else ():
            ratios.setdefault(f"{case}: {name}", []).append(ours[name] / theirs[name])
    return ratios


def main() -> int:
    """Parse, run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paired", description=__doc__)
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("cases", nargs="*", help=f"some of {', '.join(CASES)}; all by default")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each that count")
    arguments = parser.parse_args()
    print("median    min    max  this checkout / the other")
    with tempfile.TemporaryDirectory() as folder:
        for case in arguments.cases or list(CASES):
            other = arguments.other.resolve()
            for name, all_ in sorted(compare(other, case, arguments.rounds, Path(folder)).items()):
                numbers = f"{median(all_):6.3f} {min(all_):6.3f} {max(all_):6.3f}"
                print(f"{numbers}  {name}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
