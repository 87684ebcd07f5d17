"""What is said while a fit runs, and Ctrl-C that keeps the best so far."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fenchel
from fenchel.cli import commands, fitting, main, progress
from fenchel.cli.interrupts import Wish, held

SOURCE = Path(fenchel.__file__).parent.parent
HEAVY = ("numpy", "pandas", "sklearn", "scipy", "numba")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty working folder, and Ctrl-C as in the foreground."""
    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield tmp_path
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["fit", "--help"], 0),
        (["fit", "none.csv", "--target", "y"], 2),
        (["fit", "t.csv", "--target", "z"], 2),
        (["fit", "t.csv", "--target", "y", "--levels", "0"], 2),
        (["fit", "t.csv", "--target", "y", "--out", "none/m.skops"], 2),
        (["fit", "t.csv", "--depth", "3"], 2),
        (["predict", "none.skops", "t.csv"], 2),
        (["compare", "t.csv", "--target", "z"], 2),
    ],
)
def test_errors_and_help_import_nothing_heavy(arguments, code, here):
    (here / "t.csv").write_text("x,y\n1,2\n")
    script = (
        "import sys; from fenchel.cli import main; code = main(sys.argv[1:]); "
        f"print([name for name in {HEAVY} if name in sys.modules]); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code
    assert done.stdout.splitlines()[-1] == "[]"
    assert done.stderr.count("\n") == (code == 2)


def interrupted_at(wanted, monkeypatch):
    """Ctrl-C at the first step that is wanted."""
    original, sent = fitting._Steps.__call__, []

    def call(self, step):
        if wanted(step) and not sent:
            sent.append(step)
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, step)

    monkeypatch.setattr(fitting._Steps, "__call__", call)
    return sent


def test_an_interrupt_of_learning_keeps_what_was_learned(here, capsys, monkeypatch):
    sent = interrupted_at(lambda step: step.is_learning and step.iteration == 4, monkeypatch)
    assert main(["fit", "engel", "--out", "m.skops"]) == 130
    out, err = capsys.readouterr()
    assert len(sent) == 1
    model = fenchel.load("m.skops")[-1]
    assert len(model.learned_.history) == 4
    assert model.learned_.message == "stopped after 4 evaluations: interrupted"
    gap = model.certificate_.relative_gap
    assert model.tol < gap < 0.1
    lines = err.splitlines()
    assert lines[1].startswith(
        "fenchel: stopping with the best so far; Ctrl-C again stops at once"
    )
    assert lines[-1] == (
        f"fenchel: interrupted: the best model so far, at a relative gap of {gap:.1e}, was kept "
        "and m.skops was written"
    )
    assert "Quantiles of foodexp" in out
    assert model.callback is None


def test_an_interrupt_of_the_fit_keeps_the_best_so_far(here, capsys, monkeypatch):
    interrupted_at(lambda step: not step.is_learning and step.relative_gap < 0.5, monkeypatch)
    fixed = ["--no-learn", "--alpha", "1e-5", "--tol", "1e-12"]
    assert main(["fit", "engel", *fixed, "--out", "m.skops", "--quiet"]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert "was kept and m.skops was written" in err
    assert "m.skops" in [p.name for p in here.iterdir()]
    assert not fenchel.load("m.skops")[-1].status_.converged


def test_a_second_interrupt_keeps_nothing(here, capsys, monkeypatch):
    original = fitting._Steps.__call__

    def twice(self, step):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, step)

    monkeypatch.setattr(fitting._Steps, "__call__", twice)
    assert main(["fit", "engel", "--out", "m.skops"]) == 130
    assert capsys.readouterr().err.endswith("fenchel: interrupted: nothing was written\n")
    assert list(here.iterdir()) == []


def test_an_interrupt_of_several_models_keeps_nothing(here, capsys, monkeypatch):
    interrupted_at(lambda step: step.iteration == 3, monkeypatch)
    assert main(["fit", "engel", "--coverage", "0.8", "--out", "m.skops"]) == 130
    assert capsys.readouterr().err.endswith("fenchel: interrupted: nothing was written\n")
    assert list(here.iterdir()) == []


def test_without_out_it_is_said_that_nothing_is_kept(capsys, monkeypatch):
    interrupted_at(lambda step: step.is_learning, monkeypatch)
    assert main(["fit", "engel"]) == 130
    assert "was shown, and not kept without --out" in capsys.readouterr().err


def test_interrupts_are_handled_as_before_afterwards(capsys):
    before = signal.getsignal(signal.SIGINT)
    with Wish().listening():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
    done = []

    def interrupted():
        with held():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) == before


def test_lines_come_late_and_ever_later(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.shown(hidden=False) as show:
        for second in range(61):
            now[0] = 100.0 + second
            show("searching", second, 120)
    err = capsys.readouterr().err
    assert err.splitlines() == [
        "fenchel: searching, 17 % after 20 s, about 1 min 40 s left",
        "fenchel: searching, 42 % after 50 s, about 1 min 10 s left",
    ]


def test_the_limit_on_time_is_the_most_that_is_left(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.shown(hidden=False, max_time=30.0) as show:
        now[0] = 22.0
        show("learning: held-out loss 0.5", 7, None)
    assert capsys.readouterr().err == (
        "fenchel: learning: held-out loss 0.5 after 22 s, at most 8 s left\n"
    )


def test_a_hint_comes_once_where_it_takes_long(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.shown(hidden=False, hint="try less") as show:
        for second in range(80):
            now[0] = float(second)
            show("fitting", 1, None)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["fenchel: fitting after 20 s", "fenchel: try less", lines[2]]


def test_rough_fits_of_many_rows_have_a_hint(here, capsys, monkeypatch):
    hints = []
    original = commands.shown
    monkeypatch.setattr(
        commands, "shown", lambda **given: hints.append(given["hint"]) or original(**given)
    )
    monkeypatch.setattr(commands, "_MANY_ROWS", 235)
    fixed = ["fit", "engel", "--alpha", "1e-3", "--length-scale", "100", "--quiet", "--kernel"]
    assert main([*fixed, "matern32"]) == 0
    assert main([*fixed, "matern32", "--rank", "50"]) == 0
    assert main([*fixed, "gaussian"]) == 0
    assert hints == [commands._HINT.format(235), "", ""]


@pytest.mark.slow
def test_models_of_folds_are_counted(capsys):
    X, y = fenchel.datasets.load_engel(return_X_y=True, as_frame=True)
    seen = []
    settings = fitting.Settings(coverage=0.8, model="ridge")
    fitted = fitting.fit(settings, X, y, lambda *told: seen.append(told))
    counted = [done for what, done, total in seen if total == 6]
    assert list(dict.fromkeys(counted)) == [0, 1, 2, 3, 4, 5]
    assert counted == sorted(counted)
    assert all(model.callback is None for model in fitted.pipeline[-1].models_)


def test_the_time_that_is_left_is_that_of_the_present_count(capsys, monkeypatch):
    """Rows are read after those of the target were, and take longer."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.shown(hidden=False) as show:
        for second in range(10):
            now[0] = float(second)
            show("reading fare", 10 * (second + 1), 100)
        for second in range(10, 32):
            now[0] = float(second)
            show("reading", second - 9, 40)
    assert capsys.readouterr().err == "fenchel: reading, 28 % after 20 s, about 26 s left\n"
