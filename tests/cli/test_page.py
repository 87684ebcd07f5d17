"""The commands on the page about the command line run, one after the other."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fenchel.cli import compare, main

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "command_line.md"


def houses(n):
    """The table of the page, smaller."""
    random = np.random.default_rng(0)
    day = random.integers(0, 1500, n)
    frame = pd.DataFrame(
        {
            "parcel": [f"P{k}" for k in range(n)],
            "area": random.uniform(20, 200, n).round(),
            "town": random.choice(["Bonn", "Köln", "Trier"], n),
            "garden": random.uniform(size=n) < 0.4,
            "sold": (pd.Timestamp("2019-03-01") + pd.to_timedelta(day, "D")).strftime("%d.%m.%Y"),
        }
    )
    noise = frame["area"] / 10 * random.normal(size=n)
    frame["price"] = 2 * frame["area"] + 60 * (frame["town"] == "Köln") + day / 20 + noise
    frame.loc[::20, "area"] = np.nan
    return frame


@pytest.mark.slow
@pytest.mark.skipif(not PAGE.exists(), reason="there is no documentation beside the tests")
def test_commands_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compare, "find_spec", lambda name: None)
    houses(60).to_csv("houses.csv", index=False)
    houses(40).to_csv("new.csv", index=False)
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL)
    commands = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert len(commands) >= 6
    for command in commands:
        assert command[0] == "fenchel"
        assert main(command[1:]) == 0, command
    assert "warning" not in capsys.readouterr().err
    predictions = pd.read_csv("predictions.csv")
    assert list(predictions) == ["parcel", "q0.1", "q0.5", "q0.9"]


def test_options_of_the_page_are_there(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    told = ""
    for command in ("fit", "predict", "compare", "evaluate", "report"):
        assert main([command, "--help"]) == 0
        told += capsys.readouterr().out
    options = set(re.findall(r"`(--[a-z-]+)", PAGE.read_text(encoding="utf-8")))
    assert len(options) > 15
    assert [name for name in sorted(options) if name not in told] == []
