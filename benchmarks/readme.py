"""``python -m benchmarks.readme``: eight rows of the README from benchmarks/results.json.

The page docs/performance.md has all of them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
_OF = "'s"  # after the name of a peer whose time is told as a ratio
CURVES = "five quantile curves, one column"
# what the README calls a row of results.json, and that row: a case, and one of the lines below it
CHOSEN = (
    (f"{CURVES}, 2000 rows", "data S, n=2000, 5 levels: fit", "Clarabel"),
    (f"{CURVES}, 2000 rows", "data S, n=2000, 5 levels: fit", "CVXOPT"),
    (f"{CURVES}, 1 000 000 rows", "data S, n=1000000: fit", ""),
    ("SVR, ten columns, 10 000 rows, C = 1", "data H, n=10000, SVR, C=1:", "scikit-learn"),
    ("SVR, ten columns, 10 000 rows, C = 1", "data H, n=10000, SVR, C=1:", "Intel extension"),
    ("SVR, ten columns, 10 000 rows, C = 10", "data H, n=10000, SVR, C=10:", "scikit-learn"),
    ("SVR, ten columns, 10 000 rows, C = 100", "data H, n=10000, SVR, C=100:", "scikit-learn"),
    ("Lasso, 500 rows, 5000 columns", "Lasso, 500 rows, 5000 columns:", "scikit-learn's"),
)


def machine_line(results: dict) -> str:
    """On what was measured, and what the names of the data mean."""
    machine = results["machine"]
    packages = machine["packages"]
    return (
        f"One core of an {machine['processor']} processor, Python {machine['python']}, "
        f"scikit-learn {packages['scikit-learn']}, numba {packages['numba']}; relative gap ≤ "
        "1e-6, kernels computed from the rows included; nothing learned (`learn=False`)."
    )


def table(results: dict) -> str:
    """A line for each measured number, with what was measured beside it."""
    lines = [
        machine_line(results),
        "Data S: one feature, smooth kernel, five levels. Data H: ten features, full rank, heavy "
        "tails.",
        "",
        "| case | measured | details |",
        "|---|---|---|",
    ]
    for row in results["rows"]:
        number = f"{row['measured']:.3g} {row['unit']}"
        number = "not run" if row["measured"] != row["measured"] else number
        lines.append(f"| {row['case'].strip()} | {number} | {row['note']} |")
    return "\n".join(lines)


def short_table(results: dict) -> str:
    """The chosen rows: our seconds, and those of the peer."""
    lines = [machine_line(results), "", "| a fit | fenchel | another |", "|---|---|---|"]
    for label, case, peer in CHOSEN:
        ours, theirs = times_of(results["rows"], case, peer)
        beside = f"{_two_digits(theirs)}, {peer.removesuffix(_OF)}" if peer else ""
        lines.append(f"| {label} | {_two_digits(ours)} | {beside} |")
    return "\n".join(lines)


def times_of(rows: list[dict], case: str, peer: str) -> tuple[float, float]:
    """Seconds of a fit here, and of the peer's, which is named in the case or in its note."""
    start = next(k for k, row in enumerate(rows) if row["case"].startswith(case))
    below = next(
        (k for k, row in enumerate(rows) if k > start and not row["case"].startswith(" ")),
        len(rows),
    )
    block = rows[start:below]
    if not peer:
        return block[0]["measured"], float("nan")
    row = next(row for row in block if peer in row["case"] or peer in row["note"])
    ratio, note = row["measured"], row["note"]
    if peer.endswith(_OF):  # our milliseconds are told, and how many times theirs
        ours = float(note.split(" ms")[0]) / 1000.0
        return ours, ours / ratio
    told = re.search(rf"{peer} ([\d.]+) s", note) or re.search(r"([\d.]+) s", note)
    if told is None:
        raise ValueError(f"the note of {row['case']!r} tells no time: {note!r}")
    theirs = float(told[1])
    return theirs / ratio, theirs


def _two_digits(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10.0 else f"{seconds:.0f} s"


def main() -> None:
    """Rewrite what is between the markers."""
    path = HERE.parent / "README.md"
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    results = json.loads((HERE / "results.json").read_text(encoding="utf-8"))
    draft = path.with_suffix(".tmp")
    draft.write_text(f"{before}{BEGIN}\n{short_table(results)}\n{END}{after}", encoding="utf-8")
    draft.replace(path)


if __name__ == "__main__":
    main()
