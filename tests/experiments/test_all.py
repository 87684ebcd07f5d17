"""``python -m experiments``: all experiments are listed, and what one said is kept."""

from __future__ import annotations

import sys

import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from experiments import __main__ as everything
from experiments import harness


def test_every_experiment_is_listed():
    files = harness.HERE.glob("*.py")
    modules = {path.stem for path in files if "\ndef main(" in path.read_text()}
    listed = {(command or (name,))[0] for name, command in everything.EXPERIMENTS.items()}
    assert listed == modules - {"__main__"}
    folders = [path.name for path in (harness.HERE / "results").iterdir() if path.is_dir()]
    assert {name for name in folders if not name.endswith("_quick")} == set(everything.EXPERIMENTS)


def test_one_that_fails_does_not_end_the_others(tmp_path, monkeypatch, capsys):
    script = tmp_path / "python"
    script.write_text('#!/bin/sh\ncase "$2" in *bounds) exit 3;; esac\n')
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    out = tmp_path / "new"
    quick = ["--quick", "--out", str(out)]
    assert everything.main(["tables_10000", "bounds", "first_hour", *quick]) == 1
    assert "failed: bounds" in capsys.readouterr().err
    runs = pd.read_csv(out / "runs_quick.csv")
    assert list(runs["experiment"]) == ["bounds", "tables_10000", "first_hour"]
    assert list(runs["ended"]) == ["with code 3", "as it should", "as it should"]
    assert everything.main(["first_hour", "--jobs", "3", *quick]) == 0
    runs = pd.read_csv(out / "runs_quick.csv")
    assert list(runs["experiment"]) == ["bounds", "tables_10000", "first_hour"]
    assert list(runs["jobs"]) == [1, 1, 3]


def test_names_that_are_none_are_refused(capsys):
    with pytest.raises(SystemExit):
        everything.main(["table"])
    assert "NAME must be one of textbook_figures" in capsys.readouterr().err
