"""The README says what was measured, and fits its screen."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from benchmarks.readme import BEGIN, CHOSEN, END, short_table, table, times_of

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))
MEASURED = (ROOT / "experiments" / "results" / "tables" / "page.md").read_text(encoding="utf-8")


def test_first_screen_is_short() -> None:
    """A sentence, a picture and five lines of code stand before all else."""
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code is not None
    lines = [line for line in code[1].splitlines() if line.strip()]
    assert len(lines) == 5
    assert README[: code.start()].count("\n") < 9
    assert README[: code.start()].count("![") == 1


def test_speed_is_what_was_measured() -> None:
    """Between the markers stand the chosen rows of benchmarks/results.json."""
    shown = README.split(BEGIN)[1].split(END)[0].strip()
    assert shown == short_table(RESULTS)
    assert shown.count("\n| ") == len(CHOSEN) + 1 == 9


def test_times_of_peers_are_read_off_their_rows() -> None:
    """By hand, from three rows of different form."""
    rows = [
        {"case": "A: fit", "measured": 2.0, "note": ""},
        {"case": "  faster than Peer", "measured": 10.0, "note": "Peer 20 s (one run)"},
        {"case": "B: faster than sk", "measured": 3.0, "note": "0.5 s, gap 1; sk 1.5 s, gap 2"},
        {"case": "  than Other", "measured": 4.0, "note": "2.0 s, its stated time"},
        {"case": "C: fit / sk's", "measured": 2.0, "note": "300.0 ms, gap 7e-07"},
    ]
    assert times_of(rows, "A", "") == (2.0, pytest.approx(float("nan"), nan_ok=True))
    assert times_of(rows, "A", "Peer") == (2.0, 20.0)
    assert times_of(rows, "B", "sk") == (0.5, 1.5)
    assert times_of(rows, "B", "Other") == (0.5, 2.0)
    assert times_of(rows, "C", "sk's") == (0.3, 0.15)


def test_comparisons_are_those_of_the_experiment() -> None:
    """Each number of "why this and not" is on its page, rounded."""
    start = README.index("| why this and not")
    rows = README[start : README.index("\n\n", start)].splitlines()[2:]
    assert len(rows) == 4
    known = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", MEASURED)}
    for row in rows:
        numbers = re.findall(r"\d+(?:\.\d+)?", row)
        assert numbers, row
        for number in numbers:
            digits = len(number.partition(".")[2])
            assert float(number) in {round(each, digits) for each in known}, (row, number)


def test_nothing_is_said_of_aims() -> None:
    """Numbers stand beside those of others, and not beside what was wished."""
    for text in (README, table(RESULTS)):
        assert not re.search(r"\basked for\b|\bmissed\b", text)


def test_links_lead_somewhere() -> None:
    """Files and folders of the project."""
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(links) > 8
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert not missing
