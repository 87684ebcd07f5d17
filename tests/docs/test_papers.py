"""The table of what of the papers is where: every place in it exists."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs" / "_extensions"))
papers = importlib.import_module("papers")
sys.path.remove(str(ROOT / "docs" / "_extensions"))
ROWS = papers.read_rows(ROOT / "docs" / "papers.csv")

# How many numbered statements a document has, by the word before the number.
NUMBERED = {
    "textbook": {
        "Theorem": [f"11.{n}" for n in (1, 3, 6, 7, 8, 11, 13, 14, 15, 16)],
        "Proposition": ["11.2"],
        "Definition": ["11.4", "11.5", "11.9", "11.10"],
        "Lemma": ["11.12"],
        "Exercise": [f"11.{n}" for n in range(1, 12)],
        "Figure": ["11.1", "11.2", "11.7", "11.8", "11.9"],
        "Table": ["11.1"],
    },
    "joint": {
        "Theorem": ["4.1", "4.2", "A.3", "A.5"],
        "Proposition": ["A.1", "A.2"],
        "Definition": ["A.1"],
        "Lemma": ["A.4"],
        "Algorithm": ["1"],
        "Figure": ["1", "2"],
        "Table": ["1", "2"],
    },
    "insensitive": {
        "Theorem": ["2"],
        "Proposition": ["1", "4", "5"],
        "Lemma": ["3"],
        "Corollary": ["6"],
        "Algorithm": ["1"],
        "Remark": ["1", "2", "3", "4"],
        "Example": ["1"],
        "Figure": ["3"],
        "Table": ["1", "2"],
    },
    "functional": {
        "Lemma": ["2.1", "A.4", "A.6", "A.7", "A.8", "A.9"],
        "Definition": ["3.1", "4.1", "A.1", "A.2", "A.3", "A.5"],
        "Proposition": ["3.2", "3.3", "3.4", "3.5", "4.2", "4.3", "4.4"],
        "Algorithm": ["1", "2"],
        "Figure": ["1", "2", "3", "4", "5"],
        "Table": ["1", "2", "3", "4", "5"],
    },
    "positive": {
        "Theorem": [str(n) for n in range(1, 7)],
        "Proposition": [str(n) for n in range(1, 6)],
        "Remark": ["1", "2", "3"],
        "Example": ["1", "2"],
        "Figure": ["1"],
    },
}


@cache
def _functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _exists(name: str) -> bool:
    """Whether a dotted name is a module or is in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            spec = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            continue
        if spec is None:
            continue
        found = importlib.import_module(module) if length < len(parts) else spec
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found is not None
    return False


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.document}: {row.place}")
def test_every_place_exists(row) -> None:
    assert row.document in papers.DOCUMENTS
    assert row.state in papers.STATES
    for name in row.code:
        assert _exists(name), name
    for name in row.evidence:
        page = name.removeprefix("results:")
        if page != name:
            assert (ROOT / "experiments" / "results" / page / "page.md").is_file()
        else:
            file, _, function = name.partition("::")
            assert function in _functions(ROOT / file)


def test_states_are_backed() -> None:
    """What is done has a place and evidence, and what is not says no place."""
    for row in ROWS:
        if row.state in ("done", "partly"):
            assert row.code, row.place
            assert row.evidence, row.place
        if row.state == "partly":
            assert row.remark, row.place
        if row.state == "not done":
            assert not row.code, row.place


@pytest.mark.parametrize("document", NUMBERED)
def test_every_numbered_statement_has_a_row(document: str) -> None:
    places = " | ".join(row.place for row in ROWS if row.document == document)
    for word, numbers in NUMBERED[document].items():
        for number in numbers:
            assert re.search(rf"{word}[^|]*(?<![\d.]){re.escape(number)}(?![\d.])", places), (
                f"{word} {number}"
            )


def test_the_page_shows_every_row(tmp_path: Path) -> None:
    (tmp_path / "papers.csv").write_bytes((ROOT / "docs" / "papers.csv").read_bytes())
    papers.write_page(tmp_path)
    text = (tmp_path / "papers.md").read_text(encoding="utf-8")
    for row in ROWS:
        assert f"| {row.place} | {row.what} |" in text
