"""``python -m experiments``: all experiments are listed, and what one said is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from shutil import which

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


def test_groups_stand_for_their_experiments(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "executable", "true")
    quick = ["--quick", "--out", str(tmp_path)]
    assert everything.main(["comparisons", "bounds", *quick]) == 0
    runs = pd.read_csv(tmp_path / "runs_quick.csv")
    assert set(runs["experiment"]) == {"bounds", *everything.COMPARISONS}
    both = [*everything.PAPERS, *everything.COMPARISONS]
    assert both == list(everything.EXPERIMENTS)
    with pytest.raises(SystemExit):
        everything.main(["papers", "paper", *quick])
    assert "NAME must be one of papers, comparisons, " in capsys.readouterr().err


def test_time_before_an_interruption_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "true")
    out = tmp_path / "bounds_quick"
    out.mkdir()
    (out / "tasks.jsonl").write_text(
        '{"task": [0], "seconds": 150.0, "records": []}\n'
        '{"task": [1], "seconds": 90.0, "records": []}\n'
    )
    assert everything.main(["bounds", "--jobs", "2", "--quick", "--out", str(tmp_path)]) == 0
    assert pd.read_csv(tmp_path / "runs_quick.csv")["minutes"].item() == pytest.approx(2, abs=0.1)


@pytest.mark.skipif(which("git") is None, reason="git is not installed")
def test_results_are_no_change_of_what_made_them(tmp_path, monkeypatch):
    def git(*words):
        who = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    page, code = tmp_path / "experiments" / "results" / "page.md", tmp_path / "code.py"
    page.parent.mkdir(parents=True)
    page.write_text("before")
    code.write_text("1")
    monkeypatch.setattr(harness, "HERE", tmp_path / "experiments")
    git("init")
    git("add", ".")
    git("commit", "-m", "a first one")
    commit = everything._commit()
    page.write_text("after")
    assert everything._commit() == commit != ""
    code.write_text("2")
    assert everything._commit() == f"{commit}-dirty"


def test_names_that_are_none_are_refused(capsys):
    with pytest.raises(SystemExit):
        everything.main(["table"])
    assert "NAME must be one of papers, comparisons, textbook_figures" in capsys.readouterr().err


@pytest.mark.slow
def test_functions_that_keep_results_run_in_workers(tmp_path):
    (tmp_path / "kept.py").write_text(
        "import sys\n"
        "from functools import cache\n"
        "from pathlib import Path\n"
        "from experiments.harness import run_tasks\n"
        "@cache\n"
        "def double(x):\n"
        "    return 2 * x\n"
        "def task(x):\n"
        "    return [{'double': double(x)}]\n"
        "if __name__ == '__main__':\n"
        "    print(run_tasks(task, [(1,), (3,)], Path(sys.argv[1]), 2)['double'].sum())\n"
    )
    paths = os.pathsep.join([str(tmp_path), str(harness.HERE.parent)])
    done = subprocess.run(
        [sys.executable, "-m", "kept", str(tmp_path / "tasks.jsonl")],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[-1] == "8"
