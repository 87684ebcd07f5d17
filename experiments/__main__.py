"""``python -m experiments [NAME ...]``: the published tables and figures, one after the other.

Each runs in a process of its own and writes into ``experiments/results/NAME``. ``runs.csv`` beside
these folders says from which commit each was run last, when, and how long it took. One that fails
does not end the others, and what was interrupted goes on where it was; the time of the tasks that
were done before is counted too, shared by the processes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pandas as pd

from experiments import harness

PAPERS = {
    "textbook_figures": (),
    "bounds": (),
    "joint_quantiles_figure1": (),
    "joint_quantiles_figure2": (),
    "joint_quantiles_table1": (),
    "joint_quantiles_table2": (),
    "epsilon_figures12": (),
    "epsilon_figure3": (),
    "epsilon_table2": (),
    "epsilon_comparisons": (),
    "functional_figure1": (),
    "functional_figure2": (),
    "functional_figure4": (),
    "functional_figures5to8": (),
    "functional_table2_dti": (),
    "functional_comparisons": (),
    "functional_speech": (),
    "positive_example2": (),
    "positive_figure1": (),
    "positive_density10": (),
    "positive_real": (),
    "positive_quantiles": (),
}
COMPARISONS = {
    "learned_quantiles": (),
    "tables": (),
    "tables_10000": ("tables", "--rows", "10000"),
    "tables_grid": (),
    "first_hour": (),
}
EXPERIMENTS: dict[str, tuple[str, ...]] = {**PAPERS, **COMPARISONS}
"""Folders of results; a module and options where these are not a module of that name."""
GROUPS = {"papers": PAPERS, "comparisons": COMPARISONS}
"""What the five documents have published; the library's own comparisons with other methods."""


def run(name: str, jobs: int, quick: bool, out: Path) -> dict[str, object]:
    """Run one into a folder; what is to be said of it."""
    module, *options = EXPERIMENTS[name] or (name,)
    command = [sys.executable, "-m", f"experiments.{module}", *options, "--jobs", str(jobs)]
    command += ["--out", str(out)] + ["--quick"] * quick
    before, started = harness.seconds_kept(out) / jobs, time.perf_counter()
    code = subprocess.run(command, check=False).returncode
    return {
        "experiment": name,
        "commit": _commit(),
        "date": date.today().isoformat(),
        "jobs": jobs,
        "minutes": round((before + time.perf_counter() - started) / 60.0, 2),
        "ended": "as it should" if code == 0 else f"with code {code}",
    }


def _commit() -> str:
    """Of the checkout; with a mark where more than results has been changed since."""
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":!results")
    return _git("rev-parse", "--short", "HEAD") + "-dirty" * bool(changed)


def _git(*words: str) -> str:
    """What git says of the checkout; nothing where there is none."""
    command = ["git", *words]
    try:
        done = subprocess.run(
            command, cwd=harness.HERE, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the named experiments; 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"all by default; {' or '.join(GROUPS)} for many"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes of each experiment (1)")
    parser.add_argument("--quick", action="store_true", help="small versions, in a minute each")
    parser.add_argument("--out", type=Path, help="folder of their folders (experiments/results)")
    given = parser.parse_args(argv)
    names = [each for name in given.names for each in GROUPS.get(name, [name])]
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        allowed = ", ".join([*GROUPS, *EXPERIMENTS])
        parser.error(f"NAME must be one of {allowed}, got {', '.join(unknown)}")
    out, kind = given.out or harness.HERE / "results", "_quick" if given.quick else ""
    failed = []
    for name in names or EXPERIMENTS:
        print(f"{name} ...", flush=True)
        said = run(name, given.jobs, given.quick, out / f"{name}{kind}")
        print(f"{name}: ended {said['ended']} after {said['minutes']} minutes", flush=True)
        _note(out / f"runs{kind}.csv", said)
        failed += [name] if said["ended"] != "as it should" else []
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _note(path: Path, said: dict[str, object]) -> None:
    """Keep the last run of each, in the order above."""
    rows = [said]
    if path.exists():
        before = pd.read_csv(path, dtype=str).fillna("").to_dict("records")
        rows += [row for row in before if row["experiment"] != said["experiment"]]
    order = {name: number for number, name in enumerate(EXPERIMENTS)}
    rows.sort(key=lambda row: order.get(str(row["experiment"]), len(order)))
    path.parent.mkdir(parents=True, exist_ok=True)  # where the first one has failed early
    harness.write_csv(path, pd.DataFrame(rows))


if __name__ == "__main__":
    sys.exit(main())
