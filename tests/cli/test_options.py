"""Options of the command line: what is said of numbers that are none, and what help says."""

from __future__ import annotations

import pytest

from fenchel.cli import main

REFUSED = {
    ("fit", "--alpha", "1e"): "a number > 0, got '1e'",
    ("fit", "--alpha", ""): "a number > 0, got ''",
    ("fit", "--tol", "small"): "a number > 0, got 'small'",
    ("fit", "--max-time", "1 h"): "a number > 0, got '1 h'",
    ("fit", "--epsilon", "0,1"): "a number >= 0, got '0,1'",
    ("fit", "--level-gamma", "infinite"): "a number >= 0, or inf, got 'infinite'",
    ("fit", "--coverage", "80%"): "a number strictly between 0 and 1, got '80%'",
    ("compare", "--test-share", "80%"): "a number strictly between 0 and 1, got '80%'",
    ("fit", "--rank", "1.5"): "a whole number >= 1, got '1.5'",
    ("fit", "--cv", "many"): "a whole number >= 2, got 'many'",
    ("fit", "--n-jobs", "all"): "a number of threads, or -1 for all cores, got 'all'",
    ("fit", "--seed", "x"): "a whole number from 0 to 4294967295, got 'x'",
    ("fit", "--seed", "-1"): "a whole number from 0 to 4294967295, got -1",
    ("compare", "--seed", "4294967296"): "a whole number from 0 to 4294967295, got 4294967296",
}


@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_numbers_that_are_none_are_refused_with_what_is_allowed(arguments, capsys):
    command, option, value = arguments
    assert main([command, "engel", option, value]) == 2
    assert capsys.readouterr().err == f"fenchel: {option} must be {REFUSED[arguments]}\n"


def shown(command, capsys, monkeypatch):
    """Help without its frame and line breaks."""
    monkeypatch.setenv("COLUMNS", "200")
    assert main([command, "--help"]) == 0
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "report", "compare"])
def test_help_says_which_commands_read_folders(command, capsys, monkeypatch):
    folders = "a folder of .parquet files" in shown(command, capsys, monkeypatch)
    assert folders == (command in ("fit", "predict", "evaluate"))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("fit", "gaussian or rbf, laplacian"),
        ("fit", "Levels of quantiles or expectiles, between 0 and 1, with commas."),
        ("compare", "Seed of the draw of held-out rows, and of subsamples."),
        ("evaluate", "Column to hold predictions against. [default: (that of the fit)]"),
        ("report", "Column to hold predictions against. [default: (that of the fit)]"),
    ],
)
def test_help_is_of_the_command(command, said, capsys, monkeypatch):
    assert said in shown(command, capsys, monkeypatch)


def test_rbf_is_the_gaussian_kernel(tmp_path, capsys):
    options = ["--no-learn", "--alpha", "0.01", "--json"]
    found = []
    for kernel in ("rbf", "gaussian"):
        assert main(["fit", "engel", *options, "--kernel", kernel]) == 0
        found.append(capsys.readouterr().out.split('"seconds"')[0])
    assert found[0] == found[1]
