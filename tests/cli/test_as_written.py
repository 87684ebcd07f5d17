"""Cells are read as they are written, whichever other cells are beside them."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from fenchel.cli import main, on_disk
from fenchel.tables import TableEncoder

IDS = pd.DataFrame(
    {
        "land": ["00003", "00041", "12345"],
        "word": ["NA", "n/a", "x"],
        "many": ["9007199254740993", "", "7"],
        "price": ["1.50", "2.00", "10.25"],
    }
)


def table(n=60):
    """Codes and flags that are words, as one of each is."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": random.normal(size=n).round(3),
            "garden": random.choice(["true", "false", "unknown"], n),
            "code": random.choice(["01", "A1", "B1", "None"], n),
        }
    )
    noise = 0.1 * random.normal(size=n)
    frame["y"] = frame["x"] + 5.0 * (frame["garden"] == "true") + 3.0 * (frame["code"] == "01")
    return frame.assign(y=(frame["y"] + noise).round(3))


def predicted(capsys, *arguments):
    capsys.readouterr()
    assert main(["predict", *arguments]) == 0
    shown = capsys.readouterr()
    return pd.read_csv(io.StringIO(shown.out), dtype=str, keep_default_na=False), shown.err


@pytest.fixture
def model(here):
    """Fitted to a CSV file."""
    table().to_csv("h.csv", index=False)
    fit = ["fit", "h.csv", "--target", "y", "--no-learn", "--alpha", "1e-3", "--out", "m.skops"]
    assert main(fit) == 0
    return "m.skops"


@pytest.mark.slow
def test_labels_are_the_same_whichever_rows_are_in_the_file(model, capsys):
    frame = table()
    alone = (frame["garden"] == "true") & (frame["code"] == "01")
    frame[alone].to_csv("some.csv", index=False)
    some, said = predicted(capsys, model, "some.csv")
    whole, _ = predicted(capsys, model, "h.csv")
    expected = whole[alone.to_numpy()].reset_index(drop=True)
    np.testing.assert_allclose(some.astype(float), expected.astype(float), rtol=1e-12)
    assert "not seen" not in said


def test_labels_are_the_same_block_by_block(model, capsys, monkeypatch):
    whole, _ = predicted(capsys, model, "h.csv")
    monkeypatch.setattr(on_disk, "SHARE", 0.0)
    monkeypatch.setattr(on_disk, "_BLOCK_ROWS", 1)
    blocks, said = predicted(capsys, model, "h.csv")
    np.testing.assert_allclose(blocks.astype(float), whole.astype(float), rtol=1e-12)
    assert "not seen" not in said


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.0], ids=["in memory", "block by block"])
def test_ids_are_written_as_they_are(model, capsys, monkeypatch, share):
    pd.concat([IDS, table(3)], axis=1).to_csv("new.csv", index=False)
    monkeypatch.setattr(on_disk, "SHARE", share)
    monkeypatch.setattr(on_disk, "_BLOCK_ROWS", 1)
    found, _ = predicted(capsys, model, "new.csv", "--ids", ",".join(IDS))
    pd.testing.assert_frame_equal(found[[*IDS]], IDS, check_dtype=False)


def test_whole_numbers_of_parquet_stay_whole_beside_holes(model, capsys):
    ids = pd.DataFrame({"parcel": pd.array([9007199254740993, None, 7], dtype="Int64")})
    pd.concat([ids, table(3)], axis=1).to_parquet("new.parquet")
    found, _ = predicted(capsys, model, "new.parquet", "--ids", "parcel")
    assert found["parcel"].tolist() == ["9007199254740993", "", "7"]


@pytest.mark.parametrize("where", ["file", "folder"])
def test_an_index_with_a_name_is_a_column(here, capsys, where):
    frame = table().assign(parcel=range(60)).drop(columns=["garden", "code"])
    place = "p.parquet"
    if where == "folder":
        (here / "folder").mkdir()
        place = "folder/p.parquet"
    frame.set_index("x").to_parquet(place)
    data = place if where == "file" else "folder"
    fit = ["fit", data, "--target", "y", "--drop", "parcel", "--no-learn", "--out", "m.skops"]
    assert main(fit) == 0
    found, _ = predicted(capsys, "m.skops", data, "--ids", "x")
    np.testing.assert_array_equal(found["x"].astype(float), frame["x"])


def test_levels_that_are_alike_have_columns_of_their_own(here, capsys):
    table().to_csv("h.csv", index=False)
    levels = ["--levels", "0.5,0.5000001,0.9", "--no-learn", "--columns", "x"]
    assert main(["fit", "h.csv", "--target", "y", *levels, "--out", "m.skops"]) == 0
    found, _ = predicted(capsys, "m.skops", "h.csv")
    assert list(found) == ["q0.5", "q0.5000001", "q0.9"]


@pytest.mark.slow
def test_columns_that_only_all_rows_would_leave_out(here):
    """The encoder sees those with a target: numbers without holes, and few of them."""
    frame = table().assign(k=1.0, z=np.arange(60.0))[["x", "z", "k", "y"]]
    frame.loc[5, ["z", "y"]] = np.nan
    frame.to_csv("a.csv", index=False)
    fit = ["--no-learn", "--out", "m.skops"]
    assert main(["fit", "a.csv", "--target", "y", *fit]) == 0
    assert main(["fit", "a.csv", "--model", "density", *fit]) == 0
    few = pd.DataFrame({"name": [f"E{k}" for k in range(13)], "x": np.arange(13.0)})
    few["y"] = few["x"].where(few["x"] > 3)
    few.to_csv("b.csv", index=False)
    assert main(["fit", "b.csv", "--target", "y", *fit]) == 0


@pytest.mark.parametrize("cells", ["{}.688,10", "1,234,{}", "6'{}", "{} %", "€{}", "{}.5 €"])
def test_numbers_in_another_notation_are_no_labels(here, capsys, cells):
    frame = table().assign(p=[cells.format(100 + k) for k in range(60)])
    frame.to_csv("h.csv", index=False)
    assert main(["fit", "h.csv", "--target", "y", "--no-learn"]) == 2
    assert (
        "the column 'p' of h.csv holds numbers that are not written as such"
        in capsys.readouterr().err
    )


def test_categories_may_have_names_like_numbers():
    shares = pd.Series(["10 %", "20 %", "50 %"] * 20, dtype="category")
    encoder = TableEncoder().fit(pd.DataFrame({"share": shares}))
    assert encoder.transform(pd.DataFrame({"share": shares})).shape == (60, 3)


def test_a_test_share_that_leaves_no_row_to_fit(here, capsys):
    table().to_csv("h.csv", index=False)
    assert main(["compare", "h.csv", "--target", "y", "--test-share", "0.999"]) == 2
    assert "leaves none of the 60 rows of h.csv to fit" in capsys.readouterr().err
