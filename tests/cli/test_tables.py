"""Tables with words, dates and holes on the command line, from the fit to new rows."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fenchel
from fenchel.cli import main, on_disk
from fenchel.persistence import load_metadata
from fenchel.tables import TableEncoder

SOURCE = Path(fenchel.__file__).parent.parent
FIT = ["fit", "houses.csv", "--target", "price", "--no-learn", "--alpha", "1e-4"]


def table(n=120):
    """Houses; the price depends on their town and their day."""
    random = np.random.default_rng(0)
    days = random.integers(0, 1500, n)
    frame = pd.DataFrame(
        {
            "area": random.uniform(20, 200, n).round(1),
            "town": random.choice(["Köln", "Bonn", "Trier"], n),
            "garden": (random.uniform(size=n) < 0.4).astype(object),
            "sold": (pd.Timestamp("1968-03-01") + pd.to_timedelta(days, "D")).strftime("%d.%m.%Y"),
            "id": [f"H{k}" for k in range(n)],
            "country": "DE",
            "void": np.nan,
        }
    )
    noise = random.standard_normal(n) * frame["area"] / 20
    frame["price"] = frame["area"] + 60 * (frame["town"] == "Köln") + days / 20 + noise
    frame.loc[3:9:3, "area"] = np.nan
    frame.loc[4:5, "garden"] = None
    frame.loc[6, "sold"] = None
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the table, and a model of it that a process fitted; what the process said."""
    place = tmp_path_factory.mktemp("tables")
    table().to_csv(place / "houses.csv", index=False)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "fenchel", *FIT, "--out", "m.skops"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return place, done.stdout


@pytest.fixture
def here(folder, monkeypatch, tmp_path):
    """An empty working folder, with the model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.skops").write_bytes((folder[0] / "m.skops").read_bytes())
    return tmp_path


@pytest.mark.slow
def test_lines_on_the_columns(folder):
    place, out = folder
    lines = [
        "area      number; 3 missing values filled with the median ",
        "town      category of 3 values, a column for each; unseen values get 0 in all",
        "garden    true or false, as 1 and 0; 2 missing values filled with false and marked in ",
        "sold      date (%d.%m.%Y), as days since 1968-03-0",
        "left out  id (all values differ), country (the same in every row), void (empty)",
    ]
    places = [out.index(f"  {line}") for line in lines]
    assert places == sorted(places)
    assert len(out.splitlines()) <= 24
    assert "Quantiles of price on 4 columns: houses.csv, 120 rows" in out
    assert load_metadata(place / "m.skops")["target"] == "price"


@pytest.mark.slow
def test_the_encoder_is_in_the_file(folder):
    frame = table()
    X, y = frame.drop(columns="price"), frame["price"].to_numpy()
    model = fenchel.load(folder[0] / "m.skops")
    encoder = TableEncoder().fit(X)
    assert model[0].description_ == encoder.description_
    plain = fenchel.QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-4, learn=False)
    expected = plain.fit(encoder.transform(X), y).predict(encoder.transform(X))
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9)


@pytest.mark.slow
def test_predict_meets_what_the_fit_has_not_seen(here, capsys):
    new = table().iloc[:6].drop(columns=["price", "id", "void", "country"])
    new["town"] = ["Aachen", "Ulm", "Aachen", "Bonn", None, "Köln"]
    new["more"], new["sold"] = 1, new["sold"].where(new.index > 1)
    new[["more", "sold", "garden", "town", "area"]].to_csv("new.csv", index=False)
    assert main(["predict", "m.skops", "new.csv"]) == 0
    out, err = capsys.readouterr()
    assert err.splitlines() == [
        "fenchel: warning: 3 rows have labels of town that the model has not seen (Aachen, Ulm): "
        "they get 0 in the columns of all categories",
        "fenchel: warning: 1 row has no town, which every row of the fit has: they get 0 in the "
        "columns of all its categories",
        "fenchel: warning: new.csv has columns that the model does not use: more",
    ]
    expected = fenchel.load("m.skops").predict(new)
    np.testing.assert_allclose(pd.read_csv(io.StringIO(out)), expected, rtol=1e-12)
    assert np.isfinite(expected).all()


def test_what_is_left_out_is_not_missed(here, capsys):
    frame = table()
    frame.to_csv("all.csv", index=False)
    frame[["price", "area", "town", "garden", "sold"]].to_csv("some.csv", index=False)
    records = []
    for name in ("all.csv", "some.csv"):
        assert main(["evaluate", "m.skops", name, "--json"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        records.append({**json.loads(out), "data": ""})
    assert records[0] == records[1]
    assert records[0]["d2"] > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("on", ["memory", "disk"])
def test_decimals_of_a_database_are_numbers(on, here, capsys, monkeypatch):
    """In the columns, in the target, and where a number stands for a missing one."""
    frame = table()[["area", "town", "price"]].round(1)
    frame.loc[7, "area"], frame.loc[8, "price"] = -99.9, np.nan
    exact = frame.copy()
    for name in ("area", "price"):
        cells = [None if np.isnan(x) else Decimal(str(x)) for x in frame[name]]
        exact[name] = pd.Series(cells, dtype=object)
    frame.to_parquet("floats.parquet")
    exact.to_parquet("decimals.parquet")
    if on == "disk":
        monkeypatch.setattr(on_disk, "SHARE", 0.0)
    options = ["--target", "price", "--no-learn", "--alpha", "1e-4", "--missing", "-99.9"]
    said = []
    for name in ("floats", "decimals"):
        assert main(["fit", f"{name}.parquet", *options, "--out", "m.skops"]) == 0
        lines, left_out = capsys.readouterr()
        assert left_out.count("row 9 is left out") == 1
        assert main(["predict", "m.skops", f"{name}.parquet"]) == 0
        lines = [line for line in lines.splitlines() if "seconds" not in line][1:]
        said.append([lines, capsys.readouterr().out])
    assert said[0] == said[1]
    assert "4 missing values filled with the median" in "".join(said[1][0])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"town": "drop"}, "new.csv lacks the column town that the model reads; its columns are "),
        (
            {"sold": "soon"},
            "the column 'sold' of new.csv must be a date (%d.%m.%Y) in every row, and 'soon' in "
            "row 1 is not",
        ),
        ({"garden": "yes"}, "the column 'garden' of new.csv must be true or false in every row"),
        ({"area": "-"}, "the column 'area' of new.csv must be a number in every row, and '-' in "),
        ({"area": np.inf}, "new.csv has infinite values in area, first in row 1"),
    ],
)
@pytest.mark.parametrize("command", [["predict"], ["evaluate"], ["report", "--out", "r.html"]])
def test_new_rows_that_are_refused(command, change, sentence, here, capsys):
    ((name, value),) = change.items()
    frame = table()
    frame = frame.drop(columns=name) if value == "drop" else frame.assign(**change)
    frame.to_csv("new.csv", index=False)
    assert main([*command, "m.skops", "new.csv"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"fenchel: {sentence}")
    assert not (here / "r.html").exists()


@pytest.mark.parametrize(
    ("name", "row", "cell", "sentence"),
    [
        ("area", 3, "-", "'area' of bad.csv holds numbers but for one cell '-' in row 4"),
        ("sold", 8, "?", "'sold' of bad.csv holds dates (%d.%m.%Y) but for one cell '?' in row 9"),
    ],
)
def test_tables_that_are_refused(name, row, cell, sentence, here, capsys):
    frame = table().astype({name: object})
    frame.loc[row, name] = cell
    frame.to_csv("bad.csv", index=False)
    assert main(["fit", "bad.csv", "--target", "price", "--out", "new.skops"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err
    assert err.endswith("; --missing names words that stand for missing values\n")
    assert not (here / "new.skops").exists()


@pytest.mark.slow
def test_rows_without_a_target_are_left_out_and_told_of(here, capsys):
    frame = table().astype({"price": object})
    frame.loc[[2, 50], "price"] = ""
    frame.to_csv("holes.csv", index=False)
    frame.drop(index=[2, 50]).to_csv("whole.csv", index=False)
    told = []
    for name in ("holes.csv", "whole.csv"):
        assert main(["fit", name, *FIT[2:], "--json"]) == 0
        out, err = capsys.readouterr()
        found = json.loads(out)
        told.append((found["levels"], found["certificate"], found["n_rows"], err))
    assert told[0][:3] == told[1][:3]
    sentence = "2 rows, the first of them 3, are left out of holes.csv: the target is missing"
    assert told[0][3] == f"fenchel: warning: {sentence}\n"
    assert told[1][3] == ""
    assert main(["fit", "whole.csv", *FIT[2:], "--out", "m.skops", "--quiet"]) == 0
    for command in (["evaluate"], ["report", "--out", "r.html"]):
        assert main([command[0], "m.skops", "holes.csv", *command[1:]]) == 0
        assert sentence in capsys.readouterr().err
    frame["price"] = ""
    frame.to_csv("empty.csv", index=False)
    assert main(["fit", "empty.csv", "--target", "price"]) == 2
    assert capsys.readouterr().err == "fenchel: empty.csv has no value in the target price\n"


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_words_that_stand_for_missing_values(ending, here, capsys):
    frame = table()
    gaps = frame.astype({"area": object, "town": object})
    gaps.loc[[3, 7], "area"] = None
    gaps.loc[5, "town"] = None
    marked = frame.copy()
    marked.loc[[3, 7], "area"] = -999.0
    marked["town"] = frame["town"].mask(frame.index == 5, "k.A.")
    for name, one in (("gaps", gaps.astype({"area": float})), ("marked", marked)):
        one.to_csv(f"{name}.csv", index=False)
        one.to_parquet(f"{name}.parquet")
    told = []
    for name, more in (("gaps", []), ("marked", ["--missing", "k.A.,-999"])):
        fit = ["fit", f"{name}.{ending}", *FIT[2:], *more, "--out", f"{name}.skops", "--json"]
        assert main(fit) == 0
        told.append(json.loads(capsys.readouterr().out))
        assert (
            main(["predict", f"{name}.skops", f"{name}.{ending}", "--out", f"{name}.out.csv"]) == 0
        )
    keys = ("columns", "levels", "certificate", "kernel")
    assert [told[0][key] for key in keys] == [told[1][key] for key in keys]
    assert "4 missing values" in told[1]["columns"]["area"]
    assert (here / "gaps.out.csv").read_text() == (here / "marked.out.csv").read_text()
    assert load_metadata("marked.skops")["missing"] == ["k.A.", "-999"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b,y\n1,u,2\n\n 3\n4,,5\n", "t.csv has fewer cells in row 2 than the 3 of its header"),
        ('a,b,y\n"1\n2",u,2\n3,4\n', "t.csv has fewer cells in row 2 than the 3 of its header"),
        ("a,b,y\n1,u,2\n3,,\n", "X has no column to learn from"),
        ("\n  \na,b,y\n1,u,\n \n", "t.csv has no value in the target y"),
    ],
)
def test_rows_that_end_early_have_no_holes(text, sentence, here, capsys):
    (here / "t.csv").write_text(text, encoding="utf-8")
    assert main(["fit", "t.csv", "--target", "y"]) == 2
    assert capsys.readouterr().err.startswith(f"fenchel: {sentence}")


@pytest.mark.slow
def test_json_parquet_search_picture_and_report(here, capsys):
    frame = table().assign(sold=lambda t: pd.to_datetime(t["sold"], format="%d.%m.%Y"))
    frame.to_parquet("houses.parquet")
    fit = ["fit", "houses.parquet", "--target", "price", "--cv", "2", "--tol", "1e-4"]
    assert main([*fit, "--out", "p.skops", "--plot", "p.png", "--json"]) == 0
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert err == ""
    assert record["features"] == {
        "numeric": ["area"],
        "categorical": ["town", "garden"],
        "dates": ["sold"],
    }
    assert record["columns"]["sold"].startswith("date, as days since 1968-03-0")
    assert record["columns"]["void"] == "left out: empty"
    assert (here / "p.png").read_bytes().startswith(b"\x89PNG")
    assert main(["report", "p.skops", "houses.parquet", "--out", "r.html", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    page = (here / "r.html").read_text(encoding="utf-8")
    assert "all 120 were in the fit" in page


def test_a_table_of_numbers_says_nothing_of_columns(here, capsys):
    fit = ["fit", "engel", "--no-learn", "--alpha", "1e-3"]
    assert main(fit) == 0
    assert "\n columns\n" not in capsys.readouterr().out
    assert main([*fit, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["columns"] == {"income": "number"}


@pytest.mark.slow
def test_quiet_is_quiet(folder, here, capsys):
    (here / "houses.csv").write_bytes((folder[0] / "houses.csv").read_bytes())
    assert main([*FIT, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
