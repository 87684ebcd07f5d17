"""``python -m benchmarks [--slow] [CASE ...]``: one core, table and JSON."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def main() -> int:
    """Parse, run, print and write."""
    if any(os.environ.get(name) != "1" for name in THREADS):
        os.environ.update(dict.fromkeys(THREADS, "1"))  # read when the libraries are loaded
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]])
    from benchmarks.cases import CASES, run
    from benchmarks.harness import table, write

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"some of {', '.join(CASES)}; all by default")
    parser.add_argument("--slow", action="store_true", help="also peers that take minutes")
    parser.add_argument(
        "--out", type=Path, help="JSON to write; of all cases benchmarks/results.json by default"
    )
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        parser.error(f"unknown case {sorted(unknown)[0]!r}, must be one of {list(CASES)}")
    rows = run(arguments.cases or list(CASES), arguments.slow)
    print(table(rows))
    out = arguments.out
    if out is None and not arguments.cases:  # the rows of some would take the place of all
        out = Path("benchmarks/results.json")
    if out is not None:
        write(rows, out)
        print(f"\nwritten: {out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
