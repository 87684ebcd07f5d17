"""What ``fenchel fit`` learns, what it says of that, and which columns the model reads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fenchel
from fenchel import KernelRidge, QuantileRegressor
from fenchel.cli import fitting, main
from fenchel.datasets import load_engel
from fenchel.inspection import importances_of
from fenchel.kernels import Gaussian, Matern, is_open

SOURCE = Path(fenchel.__file__).parent.parent
LEVELS = [0.1, 0.5, 0.9]


@pytest.fixture
def towns(here):
    """A table in which the price depends on a column of words and one of numbers of three."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "noise": random.normal(size=100),
            "town": random.choice(["Köln", "Bonn", "Trier"], 100),
            "area": random.uniform(20, 200, 100),
        }
    )
    frame["price"] = frame["area"] + 40 * (frame["town"] == "Köln")
    frame.to_csv("towns.csv", index=False)
    return frame


def fit_json(capsys, *arguments):
    assert main(["fit", *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


@pytest.mark.slow
def test_what_is_learned_is_told(here, capsys):
    record = fit_json(capsys, "engel", "--out", "m.skops")
    model = fenchel.load("m.skops")[-1]
    assert (model.alpha, model.kernel, model.callback) == (None, None, None)
    assert record["alpha"] == model.alpha_ == model.learned_.alpha
    assert record["learned"] == {
        "criterion": model.learned_.criterion,
        "evaluations": len(model.learned_.history),
        "rows": model.learned_.n_rows,
        "message": model.learned_.message,
    }
    assert 0.0 < record["learned"]["criterion"] < 1.0
    assert record["importances"] == {"income": 1.0}
    assert main(["fit", "engel"]) == 0
    out = capsys.readouterr().out
    loss = record["learned"]["criterion"]
    assert f"held-out loss     {loss:.3f} of the best constant's" in out
    assert f"from {record['learned']['rows']} rows" in out
    assert "importances" not in out  # there is one column


@pytest.mark.parametrize(
    ("options", "parameters", "learns"),
    [
        (["--no-learn"], {"learn": False}, False),
        (["--no-learn", "--kernel", "matern52"], {"learn": False, "kernel": "matern52"}, False),
        (["--kernel", "matern52"], {"kernel": "matern52"}, True),
        (["--kernel", "linear", "--alpha", "0.1"], {"kernel": "linear", "alpha": 0.1}, False),
        (["--alpha", "1e-5"], {"alpha": 1e-5}, True),
        (["--length-scale", "500"], {"kernel": Gaussian(500.0)}, True),
        (
            ["--length-scale", "500", "--alpha", "1e-5"],
            {"kernel": Gaussian(500.0), "alpha": 1e-5},
            False,
        ),
        (
            ["--kernel", "matern32", "--length-scale", "median"],
            {"kernel": Matern("median", 1.5)},
            True,
        ),
    ],
)
def test_options_say_what_is_learned(options, parameters, learns, here, capsys):
    record = fit_json(capsys, "engel", *options, "--out", "m.skops")
    X, y = load_engel(return_X_y=True)
    expected = QuantileRegressor(LEVELS, **parameters).fit(X, y)
    model = fenchel.load("m.skops")[-1]
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert (record["learned"] is not None) == (model.learned_ is not None) == learns
    assert not is_open(model.kernel_)


@pytest.mark.slow
def test_cross_validation_takes_the_place_of_learning(here, capsys):
    record = fit_json(capsys, "engel", "--cv", "2", "--model", "ridge", "--out", "m.skops")
    assert record["learned"] is None
    assert record["alpha"] == record["cv"]["alpha"] == fenchel.load("m.skops")[-1].alpha_
    assert record["kernel"].startswith("Gaussian(")


def test_alpha_by_rule_is_said_to_be(here, capsys):
    assert main(["fit", "engel", "--no-learn"]) == 0
    assert ", by rule: nothing was learned" in capsys.readouterr().out
    pd.DataFrame({"a": range(2), "y": range(2)}).to_csv("few.csv", index=False)
    assert main(["fit", "few.csv", "--target", "y"]) == 0
    assert ", by rule: nothing was learned" in capsys.readouterr().out
    assert main(["fit", "engel", "--alpha", "1e-5", "--length-scale", "500"]) == 0
    assert "by rule" not in capsys.readouterr().out


@pytest.mark.slow
def test_importances_are_of_the_columns_of_the_table(towns, capsys):
    record = fit_json(capsys, "towns.csv", "--target", "price", "--out", "m.skops")
    pipeline = fenchel.load("m.skops")
    made, names = pipeline[0].get_feature_names_out(), ("noise", "town", "area")
    assert len(made) == 5  # a column for each town
    groups = [[j for j, each in enumerate(made) if each.partition("=")[0] == n] for n in names]
    shares = pipeline[-1].importances_of_groups(groups)
    expected = dict(zip(names, shares, strict=True))
    assert record["importances"] == pytest.approx(expected)
    assert sum(expected.values()) == pytest.approx(1.0)
    assert expected["area"] > expected["town"] > 0.05
    assert expected["noise"] < 1e-3
    assert main(["fit", "towns.csv", "--target", "price"]) == 0
    out = capsys.readouterr().out
    assert f"area {expected['area']:.2f}, town {expected['town']:.2f}" in out
    assert record["idle"] == ["noise"]
    assert re.search(r"idle +noise *\n", out)


@pytest.mark.slow
def test_many_columns_do_not_flood_the_terminal(here, capsys):
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 40))
    frame = pd.DataFrame(X, columns=[f"a column with the number {j}" for j in range(40)])
    frame.assign(y=X[:, 0] + X[:, 1]).to_csv("wide.csv", index=False)
    assert main(["fit", "wide.csv", "--target", "y", "--model", "ridge"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) < 35
    assert "…" in out
    found = importances_of(KernelRidge().fit(frame, X[:, 0] + X[:, 1]))
    assert out.count(" 0.") < 20 < len(found.names)


def test_progress_tells_of_learning_and_then_of_the_solver():
    X, y = load_engel(return_X_y=True, as_frame=True)
    seen = []
    done = fitting.fit(fitting.Settings(), X, y, lambda *what: seen.append(what))
    history = done.model.learned_.history
    learning = [f"learning: held-out loss {value:.3f}" for value in history]
    assert seen[: len(history)] == [(what, k + 1, None) for k, what in enumerate(learning)]
    rest = seen[len(history) : -1]
    assert [step for _, step, _ in rest] == [each.iteration for each in done.model.history_]
    assert all(what.startswith("fitting: relative gap ") for what, _, _ in rest)
    assert seen[-1] == ("fitting", 1, 1)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals")
def test_a_terminal_shows_the_evaluations(here):
    reader, writer = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fenchel", "fit", "engel", "--out", "m.skops"],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "TERM": "xterm", "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=writer,
    )
    os.close(writer)
    said = b""
    while True:
        try:
            part = os.read(reader, 4096)
        except OSError:  # Linux's end of file
            break
        if not part:
            break
        said += part
    os.close(reader)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"learning: held-out loss 0." in said
    assert b"learning" not in out
