"""``fenchel compare``: several methods on rows that none of them has seen."""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from fenchel import QuantileRegressor
from fenchel.cli import compare, main
from fenchel.tables import TableEncoder

LEVELS = [0.1, 0.5, 0.9]


def towns(n=160):
    """Prices by area and town; some towns are missing."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "area": random.uniform(20, 200, n),
            "town": random.choice(["Köln", "Bonn", "Trier"], n).astype(object),
            "id": np.arange(n),
        }
    )
    frame["price"] = frame["area"] + 40 * (frame["town"] == "Köln") + random.normal(size=n)
    frame.loc[::20, "town"] = None
    return frame


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A working folder with the table, and no LightGBM, which may be there or not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compare, "find_spec", lambda name: None)
    towns().to_csv("towns.csv", index=False)
    return tmp_path


def compared(capsys, *options):
    command = ["compare", "towns.csv", "--target", "price", "--drop", "id", "--json", *options]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert err == ""
    record = json.loads(out)
    return record, {each["method"]: each for each in record["methods"]}


@pytest.mark.slow
def test_losses_are_those_of_the_methods_on_held_out_rows(capsys):
    record, found = compared(capsys, "--seed", "4")
    assert list(found) == ["fenchel", "linear", "HistGradientBoosting"]
    X, y = towns()[["area", "town"]], towns()["price"].to_numpy()
    train, test = train_test_split(np.arange(160), test_size=0.25, random_state=4)
    assert (record["n_rows"], record["n_test_rows"]) == (120, 40)
    ours = make_pipeline(TableEncoder(), QuantileRegressor(LEVELS, random_state=4))
    ours.fit(X.iloc[train], y[train])
    trees = X.assign(town=X["town"].astype(pd.CategoricalDtype(["Bonn", "Köln", "Trier"])))
    boosted = [
        HistGradientBoostingRegressor(
            loss="quantile",
            quantile=level,
            categorical_features="from_dtype",
            random_state=0,
        ).fit(trees.iloc[train], y[train])
        for level in LEVELS
    ]
    predictions = {
        "fenchel": ours.predict(X.iloc[test]),
        "HistGradientBoosting": np.column_stack([m.predict(trees.iloc[test]) for m in boosted]),
    }
    for name, prediction in predictions.items():
        residual = y[test, None] - prediction
        losses = np.maximum(LEVELS * residual, (np.array(LEVELS) - 1) * residual).mean(axis=0)
        np.testing.assert_allclose(found[name]["losses"], losses, rtol=1e-6)
        inside = (prediction[:, 0] <= y[test]) & (y[test] <= prediction[:, 2])
        assert found[name]["coverage"] == pytest.approx(inside.mean())
        assert found[name]["loss"] == pytest.approx(losses.sum())
    assert found["fenchel"]["loss"] < found["HistGradientBoosting"]["loss"]


@pytest.mark.slow
def test_held_out_rows_play_no_part(capsys):
    """Targets of the rows that are held out change the losses, and none of the predictions."""
    frame = towns()
    _, test = train_test_split(np.arange(160), test_size=0.25, random_state=0)
    seen = []
    original = compare._result
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "_result", lambda *given: seen.append(given[2]) or original(*given))
        compared(capsys)
        frame.loc[test, "price"] = 1e3
        frame.to_csv("towns.csv", index=False)
        compared(capsys)
    for one, other in zip(seen[:3], seen[3:], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_the_table_fits_on_a_screen(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["compare", "towns.csv", "--target", "price"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert len(lines) <= 24
    assert "…" not in out
    assert "120 rows to learn from, 40 held out" in out
    assert lines[1].split() == [
        *["method", "10", "%", "50", "%", "90", "%", "sum", "covered", "crossing", "seconds"]
    ]
    assert lines[2].startswith("fenchel ")
    assert "LightGBM is compared with where it is installed" in out


@pytest.mark.slow
def test_many_levels_have_their_sum_alone(capsys):
    levels = ",".join(f"{level / 10:g}" for level in range(1, 10))
    assert main(["compare", "towns.csv", "--target", "price", "--levels", levels]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        *["method", "sum", "covered", "crossing", "seconds"]
    ]


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("lightgbm"), reason="LightGBM is not installed")
def test_lightgbm_takes_part_where_it_is_installed(capsys, monkeypatch):
    monkeypatch.setattr(compare, "find_spec", find_spec)
    _, found = compared(capsys, "--levels", "0.5")
    assert found["LightGBM"]["loss"] > 0.0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["towns.csv"], "--target must name the column to learn"),
        (
            ["towns.csv", "--target", "price", "--test-share", "1"],
            "--test-share must lie strictly",
        ),
        (["none.csv", "--target", "price"], "there is no file none.csv"),
        (["towns.csv", "--target", "price", "--levels", "2"], "--levels must lie strictly"),
        (["towns.csv", "--target", "town"], "'town' of towns.csv must be a number"),
    ],
)
def test_bad_input(arguments, sentence, capsys):
    assert main(["compare", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err
