"""Which column is what: features, targets, names of rows; and words that look like holes."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import fenchel
from fenchel import QuantileRegressor
from fenchel.cli import main
from fenchel.persistence import load_metadata
from fenchel.plotting import FanDisplay
from fenchel.tables import table_encoder

FIT = ["fit", "homes.csv", "--target", "price", "--alpha", "1e-3", "--out", "m.skops"]


def homes(n=90):
    """The price depends on area and alley; None and NA are labels of alley, and holes of area."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "parcel": [f"P{k}" for k in range(n)],
            "owner, last": random.choice(["Ada", "Bob"], n),
            "area": random.uniform(20, 200, n).round(1).astype(object),
            "alley": random.choice(["None", "NA", "gravel", ""], n),
            "year": random.integers(1900, 2000, n),
        }
    )
    area = frame["area"].astype(float)
    frame["price"] = 2 * area + 80 * (frame["alley"] == "None") + 40 * (frame["alley"] == "NA")
    frame.loc[::9, "area"] = "NA"
    return frame


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with the table."""
    monkeypatch.chdir(tmp_path)
    homes().to_csv("homes.csv", index=False)
    return tmp_path


def features(capsys, *arguments):
    assert main([*FIT, *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out)["features"]
    return sorted(found["numeric"] + found["categorical"])


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--columns", "area,year"], ["area", "year"]),
        (["--columns", "area", "--columns", "alley"], ["alley", "area"]),
        (["--columns", "owner, last"], ["owner, last"]),
        (["--drop", "owner, last", "--drop", "year"], ["alley", "area"]),
        (["--ids", "year,parcel", "--drop", "owner, last"], ["alley", "area"]),
    ],
)
def test_columns_that_are_read(options, names, here, capsys):
    assert features(capsys, *options) == names


@pytest.mark.slow
def test_ids_go_before_predictions_and_are_no_features(here, capsys):
    assert "year" not in features(capsys, "--ids", "parcel,year", "--drop", "owner, last")
    known = load_metadata("m.skops")
    assert (known["ids"], known["dropped"]) == (["parcel", "year"], ["owner, last"])
    assert main(["predict", "m.skops", "homes.csv"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = pd.read_csv(io.StringIO(out))
    assert list(found) == ["parcel", "year", "q0.1", "q0.5", "q0.9"]
    assert found["parcel"].tolist() == homes()["parcel"].tolist()
    assert main(["predict", "m.skops", "homes.csv", "--ids", "alley"]) == 0
    assert capsys.readouterr().out.startswith("alley,q0.1,q0.5,q0.9\n")
    homes().drop(columns="parcel").to_csv("less.csv", index=False)
    assert main(["predict", "m.skops", "less.csv"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("year,q0.1,")
    assert err == "fenchel: warning: less.csv lacks the columns of --ids: parcel\n"


def test_a_first_column_without_a_name_is_no_feature_unless_it_is_asked_for(here, capsys):
    """As DataFrame.to_csv writes labels of rows, which follow the order of the table."""
    homes()[["area", "year", "price"]].to_csv("homes.csv")
    assert main([*FIT, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["features"]["numeric"] == ["area", "year"]
    assert err.startswith("fenchel: warning: the first column of homes.csv has no name and is not")
    assert load_metadata("m.skops")["dropped"] == ["Unnamed: 0"]
    assert main(["predict", "m.skops", "homes.csv"]) == 0
    assert capsys.readouterr().err == ""
    assert features(capsys, "--drop", "Unnamed: 0,year") == ["area"]
    assert features(capsys, "--ids", "Unnamed: 0") == ["area", "year"]
    assert features(capsys, "--columns", "Unnamed: 0,year") == ["Unnamed: 0", "year"]


@pytest.mark.slow
def test_none_and_na_are_labels_of_words_and_holes_of_numbers(here, capsys):
    assert main([*FIT, "--columns", "area,alley", "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)["columns"]
    n_empty, n_gaps = (homes()["alley"] == "").sum(), (homes()["area"] == "NA").sum()
    assert lines["alley"].startswith("category of 3 values")
    assert lines["alley"].endswith(f"; {n_empty} missing values as one more category")
    assert f"; {n_gaps} missing values filled with the median" in lines["area"]
    homes().iloc[:2].assign(alley=["None", "NA"]).to_csv("new.csv", index=False)
    assert main(["predict", "m.skops", "new.csv"]) == 0
    out, err = capsys.readouterr()
    assert "has labels" not in err
    frame = homes().iloc[:2].assign(alley=["None", "NA"], area=lambda t: [np.nan, t["area"][1]])
    frame["area"] = frame["area"].astype(float)
    expected = fenchel.load("m.skops").predict(frame)
    np.testing.assert_allclose(pd.read_csv(io.StringIO(out)), expected, rtol=1e-12)


@pytest.mark.slow
def test_the_fit_is_that_of_python_on_a_table_with_words_and_holes(here, capsys):
    """Defaults on both sides, kernel and alpha learned: the same numbers, bit for bit."""
    fit = ["fit", "homes.csv", "--target", "price", "--drop", "parcel,year", "--out", "d.skops"]
    assert main([*fit, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    X = homes().drop(columns=["parcel", "year", "price"])
    X["area"] = X["area"].where(X["area"] != "NA").astype(float)
    X["alley"] = X["alley"].where(X["alley"] != "")
    y = homes()["price"]
    model = make_pipeline(table_encoder(), QuantileRegressor([0.1, 0.5, 0.9])).fit(X, y)
    found = fenchel.load("d.skops")
    assert found[-1].kernel_ == model[-1].kernel_
    assert found[-1].alpha_ == model[-1].alpha_
    np.testing.assert_array_equal(found.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--drop", "town"], "--drop: homes.csv has no column 'town'; its columns are parcel, "),
        (["--columns", "area,,year"], "--columns: homes.csv has no column ''"),
        (["--ids", "price"], "--target and --ids both name the column 'price'"),
        (["--columns", "area,price"], "--target and --columns both name the column 'price'"),
        (["--columns", "area", "--drop", "area"], "--columns and --drop both name the column"),
        (["--columns", "area", "--ids", "area"], "--columns and --ids both name the column"),
        (
            ["--drop", "parcel,area,alley,year", "--ids", "owner, last"],
            "homes.csv has no column beside the target 'price' and what --drop and --ids name",
        ),
    ],
)
def test_roles_that_cannot_be(options, sentence, here, capsys):
    assert main([*FIT, *options]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"fenchel: {sentence}")
    assert not (here / "m.skops").exists()


@pytest.mark.slow
def test_ids_of_the_name_of_a_prediction_are_refused(here, capsys):
    homes().rename(columns={"parcel": "q0.5"}).to_csv("homes.csv", index=False)
    assert main([*FIT, "--ids", "q0.5", "--quiet"]) == 0
    assert main(["predict", "m.skops", "homes.csv"]) == 2
    assert "'q0.5' is the name of a column of predictions" in capsys.readouterr().err


def test_the_picture_is_along_the_number_that_is_read_most(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"number": range(60), "area": random.uniform(20, 200, 60)})
    frame.assign(price=2 * frame["area"]).to_csv("homes.csv", index=False)
    drawn, whole = [], FanDisplay.from_estimator

    def noted(*arguments, feature, **more):
        drawn.append(feature)
        return whole(*arguments, feature=feature, **more)

    monkeypatch.setattr(FanDisplay, "from_estimator", noted)
    fit = [*FIT, "--no-learn", "--plot", "m.png", "--quiet"]
    assert main(fit) == 0
    assert main([*fit, "--plot-feature", "number"]) == 0
    assert drawn == ["area", "number"]
