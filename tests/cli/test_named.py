"""Sentences on tables that name what is wrong, and what to do: columns, targets, places."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from fenchel.cli import main

FIT = ["--no-learn", "--alpha", "0.01", "--quiet"]


def houses():
    """A table of words and numbers."""
    random = np.random.default_rng(0)
    area = random.uniform(20, 200, 60).round(1)
    town = random.choice(["Bonn", "Trier"], 60)
    return pd.DataFrame({"area": area, "town": town, "price": (2 * area + 9).round(1)})


def test_blanks_around_names_are_seen(here, capsys):
    houses().rename(columns={"area": " area", "town": "town "}).to_csv("h.csv", index=False)
    assert main(["fit", "h.csv", "--target", "prize"]) == 2
    said = "h.csv has no column 'prize'; its columns are ' area', 'town ', price"
    assert capsys.readouterr().err == f"fenchel: {said}\n"


def test_names_that_occur_twice_in_parquet(here, capsys):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    cells = arrow.array([1.0, 2.0, 4.0])
    parquet.write_table(arrow.table([cells] * 3, names=["a", "a", "y"]), "h.parquet")
    assert main(["fit", "h.parquet", "--target", "y"]) == 2
    said = "h.parquet has more than one column 'a': rename or delete all but one"
    assert capsys.readouterr().err == f"fenchel: {said}\n"


@pytest.mark.parametrize("mark", [";", "\t", ","])
def test_a_first_line_that_names_the_mark(mark, here, capsys):
    text = houses().to_csv(sep=mark, decimal="." if mark == "," else ",", index=False)
    (here / "h.csv").write_text(f"sep={mark}\n{text}")
    assert main(["fit", "h.csv", "--target", "price"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"begins with {f'sep={mark}'!r}" in err
    if mark == ",":
        assert err.endswith(": delete this line\n")
        return
    start = err.index("pandas.read_csv(")
    call = err[start : err.index(".to_csv(", start)]
    pd.testing.assert_frame_equal(eval(call, {"pandas": pd}), houses())


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_words_among_targets_may_be_missing_values(command, here, capsys):
    frame = houses().astype({"price": object})
    frame.loc[4, "price"] = "n.v."
    frame.to_csv("h.csv", index=False)
    assert main([command, "h.csv", "--target", "price"]) == 2
    hint = "'n.v.' in row 5 is not; --missing names words that stand for missing values\n"
    assert capsys.readouterr().err.endswith(hint)
    assert main([command, "h.csv", "--target", "town"]) == 2
    assert "--missing" not in capsys.readouterr().err


@pytest.mark.parametrize(("command", "column"), [("evaluate", "price"), ("predict", "area")])
def test_new_rows_know_no_option_for_missing_values(command, column, here, capsys):
    houses().to_csv("h.csv", index=False)
    assert main(["fit", "h.csv", "--target", "price", *FIT, "--out", "m.skops"]) == 0
    frame = houses().astype({column: object})
    frame.loc[4, column] = "n.v."
    frame.to_csv("new.csv", index=False)
    assert main([command, "m.skops", "new.csv"]) == 2
    assert capsys.readouterr().err.endswith("'n.v.' in row 5 is not\n")


def test_rows_keep_their_numbers_when_others_are_left_out(here, capsys):
    frame = houses().astype({"town": object})
    frame.loc[:2, "price"] = np.nan
    frame["fee"] = [f"{k % 7} EUR" for k in range(len(frame))]
    frame.to_csv("h.csv", index=False)
    assert main(["fit", "h.csv", "--target", "price", *FIT]) == 0
    assert "numbers with a unit, such as '3 EUR' in row 4" in capsys.readouterr().err


def test_dates_that_rows_without_a_target_tell_apart(here, capsys):
    frame = houses()
    frame["seen"] = [f"{1 + k % 12:02}/{1 + k % 9:02}/2020" for k in range(len(frame))]
    frame.loc[7, ["seen", "price"]] = ["24/12/2020", np.nan]
    frame.to_csv("h.csv", index=False)
    assert main(["fit", "h.csv", "--target", "price", *FIT]) == 2
    err = capsys.readouterr().err
    assert "are %d/%m/%Y in all rows, and would be %m/%d/%Y in those with a target" in err
    frame.loc[8, "seen"] = "25/12/2020"
    frame.to_csv("h.csv", index=False)
    assert main(["fit", "h.csv", "--target", "price", *FIT]) == 0


def test_pipes_are_refused_as_such(here, capsys):
    os.mkfifo("pipe")
    assert main(["fit", "pipe", "--target", "price"]) == 2
    err = capsys.readouterr().err
    assert "pipe is a device or a pipe: write what comes from it to a .csv file first" in err


def test_bytes_are_refused_in_new_rows_as_in_the_fit(here, capsys):
    houses().to_csv("h.csv", index=False)
    assert main(["fit", "h.csv", "--target", "price", *FIT, "--out", "m.skops"]) == 0
    frame = houses()
    frame["town"] = frame["town"].str.encode("utf-8")
    frame.to_parquet("h.parquet")
    said = "the column 'town' of h.parquet holds \"b'Trier'\" in row 1, which is of type bytes"
    for arguments in (
        ["fit", "h.parquet", "--target", "price"],
        ["predict", "m.skops", "h.parquet"],
    ):
        assert main(arguments) == 2
        assert capsys.readouterr().err.startswith(f"fenchel: {said}")
