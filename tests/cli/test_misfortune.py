"""What is not the fault of the input: interrupts, standard output, warnings, and links."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pandas as pd
import pytest

import fenchel
from fenchel.cli import commands, fitting, main, models, printing

SOURCE = Path(fenchel.__file__).parent.parent
FIT = ["fit", "engel", "--no-learn", "--alpha", "1e-3", "--out", "m.skops", "--plot", "m.png"]
# Says "started" within ``main``, which imports this module first.
STARTED = """
import signal, sys
from fenchel.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in jobs of the background

class Started:
    def find_spec(name, path, target=None):
        if name == "fenchel.cli.app":
            print("started", flush=True)

sys.meta_path.insert(0, Started)
sys.exit(main())
"""


def process(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(
        [sys.executable, *arguments], env=environment, stderr=subprocess.PIPE, text=True, **options
    )


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("room", "name", "said", "files"),
    [
        (fitting, "fit", "nothing was written", set()),
        (models, "save", "nothing was written", set()),
        (commands, "draw", "m.skops was written", {"m.skops"}),
        (
            printing,
            "print_line",
            "m.skops was written and m.png was written",
            {"m.skops", "m.png"},
        ),
    ],
)
def test_an_interrupt_says_what_is_there(room, name, said, files, here, monkeypatch, capsys):
    monkeypatch.setattr(room, name, interrupt)
    assert main(FIT) == 130
    assert capsys.readouterr().err == f"fenchel: interrupted: {said}\n"
    assert {path.name for path in here.iterdir()} == files


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.0, 0.3, 1.5])
def test_an_interrupted_process_is_one_line(after, here):
    (here / "m.skops").write_bytes(b"old")
    arguments = ["fit", "engel", "--cv", "20", "--out", "m.skops", "--quiet"]
    with process("-c", STARTED, *arguments, stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == "started\n"
        time.sleep(after)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    # Python ends by the signal itself where it interrupted an import: 130 to any shell
    assert running.returncode in (130, -signal.SIGINT)
    assert (out, err) == ("", "fenchel: interrupted: nothing was written\n")
    assert (here / "m.skops").read_bytes() == b"old"
    assert [path.name for path in here.iterdir()] == ["m.skops"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [["datasets"], ["--help"], FIT[:-2]])
def test_a_full_output_is_one_line(arguments, here):
    with Path("/dev/full").open("w") as full:
        running = process("-m", "fenchel", *arguments, stdout=full)
        _, err = running.communicate(timeout=120)
    written = ", but m.skops was written" if arguments[0] == "fit" else ""
    sentence = f"fenchel: standard output cannot be written: No space left on device{written}\n"
    assert (running.returncode, err) == (2, sentence)


def test_a_closed_output_is_one_line_where_it_is_needed(monkeypatch, capsys, here):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["datasets"]) == 2
    assert main([*FIT[:-2], "--quiet"]) == 0
    sentence = "fenchel: standard output cannot be written: Bad file descriptor\n"
    assert capsys.readouterr().err == sentence


@pytest.mark.slow
def test_a_reader_that_has_gone_is_silence():
    reader, writer = os.pipe()
    os.close(reader)
    running = process("-m", "fenchel", "datasets", stdout=writer)
    os.close(writer)
    _, err = running.communicate(timeout=120)
    assert (running.returncode, err) == (1, "")


def test_characters_that_the_output_has_not_are_escaped(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(FIT[:-4]) == 0
    assert b"D\\xb2 in sample" in raw.getvalue()


def test_outputs_follow_links(here):
    (here / "there").mkdir()
    (here / "m.skops").symlink_to("there/m.skops")
    assert main([*FIT[:-2], "--quiet"]) == 0
    assert (here / "m.skops").is_symlink()
    assert type(fenchel.load(here / "there" / "m.skops")[-1]) is fenchel.QuantileRegressor


def _process_err(*arguments):
    running = process("-m", "fenchel", *arguments, stdout=subprocess.PIPE)
    _, err = running.communicate(timeout=120)
    assert running.returncode == 0
    return err


@pytest.mark.slow
def test_warnings_are_sentences_without_source(here):
    """In a process of its own: the tests' filters make errors of warnings."""
    fit = ["engel", "--no-learn", "--alpha", "1e-3", "--coverage", "0.999", "--out", "m.skops"]
    why = (
        "coverage of {} needs at least {} calibration rows, got n_calibration_ = 235; take more "
        "rows or a coverage of at most 0.995\n"
    )
    start = "fenchel: warning: "
    every = f"{start}every interval is infinitely wide: a {why.format(0.999, 999)}"
    assert _process_err("fit", *fit, "--plot", "m.png") == every
    these = f"{start}235 of 235 intervals are infinitely wide: a "
    assert _process_err("evaluate", "m.skops", "engel") == these + why.format(0.999, 999)
    assert _process_err("predict", "m.skops", "engel") == these + why.format(0.999, 999)
    narrow = ["m.skops", "engel", "--interval"]
    assert _process_err("predict", *narrow, "0.9999") == these + why.format(0.9999, 9999)
    assert _process_err("predict", *narrow, "0.8") == ""  # not of a coverage that is not asked for
    assert _process_err("report", "m.skops", "engel", "--out", "m.html") == ""  # the page has it


@pytest.mark.filterwarnings("default")
def test_warnings_of_others_are_sentences_said_once(here, capsys, monkeypatch):
    def warned(*_, **__):
        for number in (1, 2, 1):
            warnings.warn(f"Number {number} is odd. Look\nat it.", UserWarning, stacklevel=1)
        return []

    monkeypatch.setattr(commands, "list_datasets", warned)
    shown = warnings.showwarning
    assert main(["datasets", "--json"]) == 0
    sentences = [f"fenchel: warning: Number {k} is odd; Look at it\n" for k in (1, 2)]
    assert capsys.readouterr().err == "".join(sentences)
    assert warnings.showwarning is shown


def test_few_labels_that_are_numbers_are_labels(here, capsys):
    """Columns of words stay so, whatever some of the words are."""
    table = pd.DataFrame({"a": ["1", "b", "c"] * 5, "y": range(15)})
    table.to_csv("t.csv", index=False)
    assert main(["fit", "t.csv", "--target", "y", "--quiet", "--model", "ridge"]) == 0
    assert capsys.readouterr().err == ""
