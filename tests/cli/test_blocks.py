"""Tables read block by block: what is said of them is what is said of the same in memory."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from fenchel.cli import main, on_disk

N = 400


def trips():
    """Rides; the fare depends on the distance."""
    random = np.random.default_rng(0)
    distance = random.exponential(3.0, N)
    return pd.DataFrame(
        {
            "ride": np.arange(N),
            "distance": distance,
            "city": random.choice(["Bonn", "Köln"], N),
            "seats": random.integers(1, 5, N),
            "fare": 3 + 2 * distance + random.exponential(1.0, N),
        }
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of the fare."""
    place = tmp_path_factory.mktemp("trips")
    trips().to_csv(place / "trips.csv", index=False)
    options = ["--drop", "ride", "--no-learn", "--alpha", "1e-3", "--quiet"]
    out = str(place / "m.skops")
    assert main(["fit", str(place / "trips.csv"), "--target", "fare", *options, "--out", out]) == 0
    return out


@pytest.fixture
def in_blocks(here, monkeypatch):
    """Reads tables in blocks of 100 rows once it is called."""

    def start():
        monkeypatch.setattr(on_disk, "SHARE", 0.0)
        monkeypatch.setattr(on_disk, "_BLOCK_ROWS", 100)

    return start


def changed(column, cells):
    """The table with other cells in some rows of a column."""
    frame = trips().astype({column: object})
    for row, cell in cells.items():
        frame.loc[row, column] = cell
    return frame.infer_objects()


TABLES = {
    "a word": changed("seats", {250: "two"}),
    "infinite": changed("distance", {250: np.inf}),
    "too large": changed("distance", {350: 1e200}),
    "unseen": changed("city", {50: "Ulm", 250: "Ulm", 251: "Rom", 350: "Linz", 351: "Wien"}),
    "holes": changed("seats", {10: np.nan, 300: np.nan}),
    "unused": trips().assign(extra=1),
}
AS_PARQUET = [name for name in TABLES if name != "a word"]  # of which a column has one kind


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize(
    ("name", "ending"),
    [(name, "csv") for name in TABLES] + [(name, "parquet") for name in AS_PARQUET],
)
def test_messages_are_those_of_a_table_in_memory(
    name, ending, command, model, here, in_blocks, capsys
):
    frame = TABLES[name]
    if ending == "csv":
        frame.to_csv("new.csv", index=False)
    else:
        frame.to_parquet("new.parquet", row_group_size=100)
    code = main([command, model, f"new.{ending}"])
    expected = capsys.readouterr()
    assert expected.err.startswith("fenchel: ")
    in_blocks()
    assert main([command, model, f"new.{ending}"]) == code
    assert capsys.readouterr() == expected


def test_a_first_column_without_a_name_is_left_out(model, here, in_blocks, capsys):
    trips().to_csv("new.csv")
    assert main(["predict", model, "new.csv"]) == 0
    expected = capsys.readouterr()
    in_blocks()
    assert main(["predict", model, "new.csv"]) == 0
    assert capsys.readouterr() == expected
    assert "does not use: Unnamed: 0" in expected.err


def test_tables_without_rows_are_refused(model, here, in_blocks, capsys):
    (here / "empty").mkdir()
    trips()[:0].to_parquet("empty/a.parquet")
    trips()[:0].to_csv("empty.csv", index=False)
    in_blocks()
    for arguments in (
        ["predict", model, "empty"],
        ["predict", model, "empty.csv"],
        ["evaluate", model, "empty"],
        ["fit", "empty", "--target", "fare"],
    ):
        assert main(arguments) == 2
        place = next(each for each in arguments if each.startswith("empty"))
        assert capsys.readouterr() == ("", f"fenchel: {place} has no rows\n")


def test_rows_of_a_fit_are_counted_in_the_file(here, in_blocks, capsys):
    frame = changed("seats", {250: "two"}).astype({"seats": str})
    frame.loc[20, "fare"] = np.nan
    frame.to_parquet("new.parquet", row_group_size=100)
    in_blocks()
    assert main(["fit", "new.parquet", "--target", "fare"]) == 2
    assert "but for one cell 'two' in row 251:" in capsys.readouterr().err


def test_what_a_fit_meets_later_names_its_row_once(here, in_blocks, capsys):
    frame = trips()[:300].drop(columns="ride")
    frame["day"] = "2024-05-01"
    frame.loc[::2, "day"] = "2024-06-01"
    frame.loc[20, "fare"] = np.nan
    frame.to_parquet("new.parquet", row_group_size=100)
    in_blocks()
    options = ["--no-learn", "--alpha", "1e-2", "--quiet", "--out", "m.skops"]
    assert main(["fit", "new.parquet", "--target", "fare", *options]) == 0
    frame.loc[250, "day"] = "soon"
    frame.to_parquet("new.parquet", row_group_size=100)
    capsys.readouterr()
    assert main(["evaluate", "m.skops", "new.parquet"]) == 2
    said = "the column 'day' of new.parquet must be a date (%Y-%m-%d) in every row, and 'soon'"
    assert capsys.readouterr().err == f"fenchel: {said} in row 251 is not\n"


def test_whole_numbers_beside_holes_are_written_as_such(model, here, in_blocks, capsys):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rides = arrow.array([None if row == 150 else row + 2**60 for row in range(N)])
    table = arrow.Table.from_pandas(trips().drop(columns="ride")).append_column("ride", rides)
    parquet.write_table(table, "new.parquet", row_group_size=100)
    in_blocks()
    assert main(["predict", model, "new.parquet", "--ids", "ride", "--out", "p.csv"]) == 0
    written = pd.read_csv("p.csv", dtype=str, keep_default_na=False)["ride"]
    assert written.tolist() == ["" if row == 150 else str(row + 2**60) for row in range(N)]


def test_rows_without_a_target_are_counted_to_the_end(model, here, in_blocks, capsys):
    changed("fare", dict.fromkeys([7, *range(300, N)], np.nan)).to_parquet(
        "new.parquet", row_group_size=100
    )
    in_blocks()
    assert main(["evaluate", model, "new.parquet"]) == 0
    said = "101 rows, the first of them 8, are left out of new.parquet: the target is missing"
    assert said in capsys.readouterr().err


def test_evaluation_is_the_same(model, here, in_blocks, capsys):
    trips().to_parquet("new.parquet", row_group_size=100)
    assert main(["evaluate", model, "new.parquet", "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    in_blocks()
    assert main(["evaluate", model, "new.parquet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["d2"] == pytest.approx(expected["d2"], rel=1e-12)
