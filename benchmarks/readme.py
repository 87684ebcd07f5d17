"""``python -m benchmarks.readme``: the table of the README from benchmarks/results.json."""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


def table(results: dict) -> str:
    """Machine, and a line for each measured number beside the one that was asked for."""
    machine = results["machine"]
    packages = machine["packages"]
    lines = [
        f"One core of an {machine['processor']} processor, Python {machine['python']}, "
        f"scikit-learn {packages['scikit-learn']}, numba {packages['numba']}; relative gap ≤ "
        "1e-6, length scales and feature map included. Data S: one feature, smooth kernel, five "
        "levels. Data H: ten features, full rank, heavy tails.",
        "",
        "| case | measured | asked for |",
        "|---|---|---|",
    ]
    for row in results["rows"]:
        note = f" ({row['note']})" if row["note"] else ""
        missed = " **missed**" if row["reached"] is False else ""
        number = f"{row['measured']:.3g} {row['unit']}{missed}"
        number = "not run" if row["measured"] != row["measured"] else number
        lines.append(f"| {row['case'].strip()}{note} | {number} | {row['target']} |")
    return "\n".join(lines)


def main() -> None:
    """Rewrite what is between the markers."""
    path = HERE.parent / "README.md"
    text = path.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    results = json.loads((HERE / "results.json").read_text())
    draft = path.with_suffix(".tmp")
    draft.write_text(f"{before}{BEGIN}\n{table(results)}\n{END}{after}")
    draft.replace(path)


if __name__ == "__main__":
    main()
