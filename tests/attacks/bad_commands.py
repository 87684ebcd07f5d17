"""Bad input on the command line: each is answered by one sentence on what is wrong.

It is on stderr and names the parameter, the file, the column or the row; the exit code is 2,
stdout is empty, and no file has changed.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import itertools
import os
import random
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import fenchel
from attacks import Outcome
from attacks._bad_files import models, tables
from fenchel.cli import main

IN_CI = 120
SHARES = 8
IN_FULL = 3000

Case = tuple[list[str], tuple[str, ...]]
"""Arguments, and words of which the sentence must have one."""

_FIT = ["fit", "good.csv", "--target", "y", "--out", "new.skops"]
_NUMBERS = {
    "--alpha": ["", "x", "1,0", "nan", "inf", "-inf", "0", "-1", "1e308", "1e-320", "1e999"],
    "--tol": ["", "x", "nan", "inf", "0", "-1", "1e-320", "1e308"],
    "--epsilon": ["", "x", "nan", "inf", "-1", "1e308"],
    "--level-gamma": ["", "x", "nan", "-1", "-inf"],
    "--length-scale": ["", "x", "nan", "inf", "0", "-1", "q", "q2", "q-1", "qnan", "1e308"],
    "--cv": ["", "x", "1.5", "nan", "0", "1", "-3", "25", "99999999999999999999"],
    "--seed": ["", "x", "0.5", "-1", "4294967296", "99999999999999999999"],
    "--levels": ["", ",", "x", "0.1;0.9", "0,1", "1.1", "nan", "0.5,0.5", "-0.1", "0.1,,0.9"],
    "--kernel": ["", "cosine", "precomputed", "Gaussian", "gaussian "],
    "--model": ["", "lasso", "Quantile", "quantiles"],
    "--target": ["", "q", "Y", "town", "flag", "y.1"],
    "--coverage": ["", "x", "nan", "0", "1", "-0.5", "2", "inf"],
    "--rank": ["", "x", "1.5", "0", "-3"],
    "--n-jobs": ["", "x", "1.5", "0"],
    "--columns": ["", ",", "q", "x,q", "y", "x;town"],
    "--drop": ["", ",", "q", "y"],
    "--ids": ["", ",", "q", "y", "x,y"],
}
_OUTPUTS = [
    "",
    "m.pkl",
    "m",
    "none/m{}",
    "good.csv/m{}",
    "folder",
    "n" * 300 + "{}",
    "a\0{}",
    "full{}",
]
_MODEL_COMMANDS = (["predict"], ["evaluate"], ["report", "--out", "new.html"])
_SHAPES: list[Case] = [
    (["fitt"], ("fitt",)),
    (["fit"], ("DATA",)),
    (["predict"], ("MODEL",)),
    (["predict", "good.skops"], ("DATA",)),
    (["evaluate"], ("MODEL",)),
    (["evaluate", "good.skops"], ("DATA",)),
    (["report", "good.skops", "good.csv"], ("--out",)),
    (["fit", "good.csv"], ("--target",)),
    ([*_FIT, "more"], ("more",)),
    ([*_FIT, "--depth", "3"], ("--depth",)),
    ([*_FIT, "--alpha"], ("--alpha",)),
    ([*_FIT, "--cv"], ("--cv",)),
    ([*_FIT, "--json=3"], ("--json",)),
    ([*_FIT, "-x"], ("-x",)),
    ([*_FIT, "--alpha", "1", "--cv", "3"], ("--alpha",)),
    ([*_FIT, "--model", "ridge", "--levels", "0.5"], ("--levels",)),
    ([*_FIT, "--model", "ridge", "--epsilon", "1"], ("--epsilon",)),
    ([*_FIT, "--model", "svr", "--levels", "0.5"], ("--levels",)),
    ([*_FIT, "--model", "svr", "--level-gamma", "1"], ("--level-gamma",)),
    ([*_FIT, "--kernel", "linear", "--length-scale", "1"], ("--length-scale",)),
    ([*_FIT, "--coverage", "0.8", "--levels", "0.5"], ("--coverage",)),
    ([*_FIT, "--coverage", "0.8", "--cv", "3"], ("--coverage",)),
    ([*_FIT, "--model", "normal", "--coverage", "0.8"], ("--coverage",)),
    ([*_FIT, "--model", "ridge", "--non-crossing"], ("--non-crossing",)),
    ([*_FIT, "--model", "density"], ("--target",)),
    ([*_FIT, "--model", "curves"], ("--target",)),
    ([*_FIT, "--columns", "x", "--ids", "x"], ("--columns",)),
    (["compare"], ("DATA",)),
    (["compare", "good.csv"], ("--target",)),
    (["compare", "good.csv", "--target", "y", "--test-share", "0"], ("--test-share",)),
    (["compare", "good.csv", "--target", "y", "--test-share", "x"], ("--test-share",)),
    (["compare", "good.csv", "--target", "y", "--levels", "2"], ("--levels",)),
    (["compare", "good.csv", "--target", "y", "--out", "m.skops"], ("--out",)),
    (["predict", "good.skops", "good.csv", "--ids", "q"], ("--ids",)),
    ([*_FIT, "--plot-feature", "x"], ("--plot-feature",)),
    ([*_FIT, "--plot", "new.png", "--plot-feature", "town"], ("--plot-feature",)),
    ([*_FIT, "--plot", "new.png", "--plot-feature", "q"], ("--plot-feature",)),
    (["datasets", "engel"], ("engel",)),
    (["datasets", "--out", "x"], ("--out",)),
    (["demo", "--out-dir", "none"], ("--out-dir",)),
    (["demo", "--out-dir", ""], ("--out-dir",)),
    (["demo", "--out-dir", "good.csv"], ("--out-dir",)),
    (["demo", "--out-dir", "d" * 300], ("--out-dir",)),
]


@cache
def _place() -> tuple[tempfile.TemporaryDirectory[str], list[Case]]:
    """The folder, made once, and all cases of the table."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    path = Path(folder.name)
    bad_tables, bad_models = tables(path), models(path)
    for ending in (".skops", ".png", ".csv", ".html"):
        (path / f"full{ending}").symlink_to("/dev/full")
    cases = list(_SHAPES)
    for option, values in _NUMBERS.items():
        cases += [([*_FIT, option, value], (option, f"{value!r}")) for value in values]
    cases += [
        (["predict", "good.skops", "good.csv", "--interval", value], ("--interval",))
        for value in ("", "x", "nan", "0", "1", "-0.5", "2", "inf", "0.5")
    ]
    for command, option, ending in (
        (["fit", "good.csv", "--target", "y"], "--out", ".skops"),
        (["fit", "good.csv", "--target", "y"], "--plot", ".png"),
        (["predict", "good.skops", "good.csv"], "--out", ".csv"),
        (["report", "good.skops", "good.csv"], "--out", ".html"),
    ):
        cases += [([*command, option, o.format(ending)], (option,)) for o in _OUTPUTS]
    cases += [(["fit", name, "--target", "y"], words) for name, words in bad_tables.items()]
    for name, words in bad_tables.items():
        # predict does not look at the target, nor at columns that the model does not read
        commands = _MODEL_COMMANDS[1:] if "target" in name else _MODEL_COMMANDS
        cases += [([*command, "good.skops", name], (*words, "'x'", "z")) for command in commands]
    for name, words in bad_models.items():
        cases += [([*command, name, "good.csv"], words) for command in _MODEL_COMMANDS[:2]]
        cases.append(([*_MODEL_COMMANDS[2], name, "good.csv"], (*words, "--target")))
    cases = [case for case in cases if case[0] not in _GOOD]
    return folder, cases


# What only looks bad: a model from Python has reports, of the columns that it names. And what a
# model does not read of a table may be anything.
_GOOD = [["report", "--out", "new.html", "guess.skops", "good.csv"]]


def _random_case(chance: random.Random, cases: list[Case]) -> Case:
    """Two bad things at once, or a bad thing among options that are good."""
    fits = [case for case in cases if case[0][:4] == _FIT[:4] and len(case[0]) > 4]
    (first, words), (second, more) = chance.sample(fits, 2)
    files = [case for case in cases if case[0][:1] == ["fit"] and len(case[0]) == 4]
    head, named = chance.choice([(_FIT[:4], ()), *files])
    good = [["--json"], ["--quiet"], ["--seed", "3"], ["--model", "expectile"]]
    options = [first[4:], second[4:], chance.choice(good)]
    chance.shuffle(options)
    return [*head, *itertools.chain(*options)], (*words, *more, *named, "--")


def _state() -> dict[str, tuple[int, int]]:
    """What lies in the folder."""
    with os.scandir() as found:
        stats = {each.name: each.stat(follow_symlinks=False) for each in found}
    return {name: (each.st_mtime_ns, each.st_ino) for name, each in stats.items()}


def _as_process(arguments: list[str]) -> tuple[int, str, str]:
    source = str(Path(fenchel.__file__).parent.parent)
    command = [sys.executable, "-m", "fenchel", *arguments]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def _here(arguments: list[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


def judged(case: Case, *, process: bool = False) -> str | None:
    """What is wrong with the answer to a case, if anything is."""
    arguments, words = case
    before = _state()
    process = process and not any("\0" in each for each in arguments)
    try:
        code, out, err = (_as_process if process else _here)(arguments)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    sentence = err.removeprefix("fenchel: ").removesuffix("\n")
    wrong = {
        f"exit code {code}": code != 2,
        "stdout is not empty": bool(out),
        "more or less than a line": err.count("\n") != 1 or not err.startswith("fenchel: "),
        "more than a sentence": ". " in sentence,
        "names nothing": not any(word in sentence for word in words),
        "files have changed": _state() != before,
    }
    found = [what for what, is_so in wrong.items() if is_so]
    return f"{', '.join(found)}: {err}" if found else None


def attack(count: int, seed: int) -> Outcome:
    """Three cases of the table in four, as long as there are any, else random ones."""
    outcome, chance = Outcome(), random.Random(seed)
    folder, cases = _place()
    left = chance.sample(cases, len(cases))
    with contextlib.chdir(folder.name):
        for number in range(count):
            of_table = bool(left) and number % 4 != 3
            case = left.pop() if of_table else _random_case(chance, cases)
            process = number % 100 == 50
            wrong = judged(case, process=process)
            kind = "of the table" if of_table else "random"
            outcome.counts[f"{kind}{', as a process' * process}, {case[0][0]}"] += 1
            if wrong is not None:
                outcome.failures.append(f"{case[0]}: {wrong}"[:600].replace("\n", "\\n"))
    return outcome
