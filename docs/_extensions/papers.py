"""The page that says what of the five documents is where, made from ``papers.csv``.

A row of the table is a statement, table, figure or method of a document: where it stands there,
what it is, names in the code, the test or the page of results that shows it, its state, and a
remark. Several names are parted by semicolons. A page of results is ``results:NAME``.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # the table is tested without Sphinx
    from sphinx.application import Sphinx

DOCUMENTS = {
    "textbook": "Foundations of Machine Learning, chapter 11 (Mohri et al. 2018)",
    "joint": "Joint quantile regression (Sangnier, Fercoq, d'Alché-Buc 2016)",
    "insensitive": "ε-insensitive losses (Sangnier, Fercoq, d'Alché-Buc 2017)",
    "functional": "Functional output regression (Lambert, Bouche, Szabó, d'Alché-Buc 2022)",
    "positive": "Non-negative functions (Marteau-Ferey, Bach, Rudi 2020)",
}

STATES = {
    "done": "the code does it, and the test or page shows it",
    "partly": "as the remark says",
    "not done": "not in the library",
    "statement": "a definition, remark or step of a proof with nothing to compute",
}

PAGE = """# What of the papers is where

Every definition, theorem, algorithm, table and figure of the five documents, and every method
that they compare with: where it is in the library, and the test or page that shows it.

{states}

| document | {names} |
|---|{rule}|
{counts}

{parts}
"""


class Row(NamedTuple):
    """One row of the table."""

    document: str
    place: str
    what: str
    code: tuple[str, ...]
    evidence: tuple[str, ...]
    state: str
    remark: str


def read_rows(file: Path) -> list[Row]:
    """The table."""
    with file.open(encoding="utf-8", newline="") as lines:
        return [
            Row(
                row["document"],
                row["place"],
                row["what"],
                _names(row["code"]),
                _names(row["evidence"]),
                row["state"],
                row["remark"],
            )
            for row in csv.DictReader(lines)
        ]


def _names(cell: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in cell.split(";") if name.strip())


def _code(name: str) -> str:
    """A link to the reference, where the name is in it."""
    return f"{{py:obj}}`~{name}`" if name.startswith("fenchel.") else f"`{name}`"


def _evidence(name: str) -> str:
    page = name.removeprefix("results:")
    if page != name:
        return f"{{doc}}`results/{page}/page`"
    return f"`{name.partition('::')[2]}`"


def write_page(source: Path) -> None:
    """The page, by document."""
    rows = read_rows(source / "papers.csv")
    found = Counter((row.document, row.state) for row in rows)
    counts = "\n".join(
        f"| {title} | {' | '.join(str(found[key, state]) for state in STATES)} |"
        for key, title in DOCUMENTS.items()
    )
    parts = []
    for key, title in DOCUMENTS.items():
        lines = [
            f"## {title}",
            "",
            "| place | what | code | test or page | state |",
            "|---|---|---|---|---|",
        ]
        for row in rows:
            if row.document == key:
                state = f"{row.state}: {row.remark}" if row.remark else row.state
                code = ", ".join(map(_code, row.code))
                evidence = ", ".join(map(_evidence, row.evidence))
                lines.append(f"| {row.place} | {row.what} | {code} | {evidence} | {state} |")
        parts.append("\n".join(lines))
    text = PAGE.format(
        states="\n".join(f"- *{name}*: {meaning}." for name, meaning in STATES.items()),
        names=" | ".join(STATES),
        rule="|".join("---" for _ in STATES),
        counts=counts,
        parts="\n\n".join(parts),
    )
    path = source / "papers.md"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the page before sources are collected."""
    app.connect("builder-inited", lambda app: write_page(Path(app.srcdir)), priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
