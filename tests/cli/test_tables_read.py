"""Files that the command line reads: their commas, and that no output takes their place."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fenchel
from fenchel.cli import main


@pytest.fixture(scope="module")
def houses():
    """A table of words and numbers."""
    random = np.random.default_rng(0)
    area = random.uniform(20, 200, 60).round(1)
    town = random.choice(["Köln", "Bonn", "Trier"], 60)
    price = (2 * area + 60 * (town == "Köln") + random.normal(size=60)).round(2)
    return pd.DataFrame({"area": area, "town": town, "price": price})


@pytest.fixture(scope="module")
def model(houses, tmp_path_factory):
    """A model of the houses."""
    place = tmp_path_factory.mktemp("houses")
    houses.to_csv(place / "houses.csv", index=False)
    options = ["--no-learn", "--alpha", "1e-4", "--quiet", "--out", str(place / "m.skops")]
    assert main(["fit", str(place / "houses.csv"), "--target", "price", *options]) == 0
    return place / "m.skops"


def assert_one_sentence(err, sentence):
    assert err.startswith(f"fenchel: {sentence}")
    assert err.count("\n") == 1


SEMICOLONS = ("semi.csv", "must have commas between its columns, and has ';'; in Python, pandas.")
TABS = ("tabs.csv", "must have commas between its columns, and has tabs; in Python, pandas.")
TSV = ("tabs.tsv", "must end in .csv or .parquet, and ends in '.tsv'; in Python, pandas.read_csv(")


@pytest.mark.parametrize(("name", "sentence"), [SEMICOLONS, TABS, TSV])
def test_marks_that_are_no_commas_are_named(name, sentence, here, houses, model, capsys):
    mark = ";" if name == "semi.csv" else "\t"
    houses.to_csv(name, sep=mark, index=False, encoding="utf-8-sig")
    for command in (["fit", "--target", "price"], ["compare", "--target", "price"]):
        assert main([*command, name]) == 2
        assert_one_sentence(capsys.readouterr().err, f"{name} {sentence}")
    for command in (["predict"], ["evaluate"], ["report", "--out", "r.html"]):
        assert main([*command, str(model), name]) == 2
        assert_one_sentence(capsys.readouterr().err, f"{name} {sentence}")


def test_tables_are_converted_as_the_error_says(here, houses, capsys):
    houses.to_csv("semi.csv", sep=";", decimal=",", index=False)
    houses.to_csv("tabs.tsv", sep="\t", index=False)
    for name in ("semi.csv", "tabs.tsv"):
        assert main(["fit", name, "--target", "price"]) == 2
        code = re.search(r"pandas\.(read_csv.*False\)) converts", capsys.readouterr().err)[1]
        if name == "tabs.tsv":
            code = code.replace("decimal=','", "decimal='.'")
        eval(code, dict(vars(pd)))
        pd.testing.assert_frame_equal(pd.read_csv("new.csv"), houses)


def test_packed_tables_and_sheets_are_converted_as_the_error_says(here, houses, capsys):
    houses.to_csv("houses.csv.gz", index=False)
    assert main(["fit", "houses.csv.gz", "--target", "price"]) == 2
    code = re.search(r"pandas\.(read_csv.*False\)) converts", capsys.readouterr().err)[1]
    eval(code, dict(vars(pd)))
    pd.testing.assert_frame_equal(pd.read_csv("new.csv"), houses)
    (here / "houses.xlsx").write_bytes(b"PK")
    assert main(["fit", "houses.xlsx", "--target", "price"]) == 2
    said = "houses.xlsx must end in .csv or .parquet, and ends in '.xlsx'; in Python, pandas.read_"
    assert_one_sentence(capsys.readouterr().err, f"{said}excel('houses.xlsx').to_csv(")


def test_marks_are_named_where_the_heading_has_commas_of_its_own(here, capsys):
    rows = [f"{x};{x / 2:.2f}".replace(".", ",") for x in range(30)]
    (here / "semi.csv").write_text("\n".join(["area, m2;price", *rows]))
    assert main(["fit", "semi.csv", "--target", "price"]) == 2
    assert_one_sentence(capsys.readouterr().err, " ".join(SEMICOLONS))


def test_one_column_may_have_a_semicolon_in_its_name(here, capsys):
    values = np.random.default_rng(0).normal(size=30)
    for heading in ("a;b", '"a;b"'):
        (here / "one.csv").write_text("\n".join([heading, *map(str, values)]))
        assert main(["fit", "one.csv", "--model", "density", "--no-learn", "--alpha", "1e-2"]) == 0
        assert "a;b" in capsys.readouterr().out


@pytest.mark.parametrize("way", ["the same", "another path", "a link", "a hard link"])
def test_what_is_read_is_not_replaced(way, here, houses, model, capsys):
    places = {
        ("predict", "MODEL", "TABLE", "--out", "OUT"): "p.csv",
        ("report", "MODEL", "TABLE", "--out", "OUT"): "r.html",
        ("fit", "TABLE", "--target", "price", "--out", "OUT"): "m.skops",
        ("fit", "TABLE", "--target", "price", "--plot", "OUT"): "p.png",
    }
    houses.to_csv("homes.csv", index=False)
    before = Path("homes.csv").read_bytes()
    for words, out in places.items():
        place = here / out
        if way in ("the same", "another path"):
            if not out.endswith(".csv"):
                continue
            place = here / "homes.csv" if way == "another path" else "homes.csv"
        else:
            place.symlink_to("homes.csv") if way == "a link" else os.link("homes.csv", place)
        named = {"MODEL": model, "TABLE": "homes.csv", "OUT": place}
        assert main([str(named.get(word, word)) for word in words]) == 2
        sentence = f"{words[-2]} must be another file than the table that is read, got "
        assert_one_sentence(capsys.readouterr().err, f"{sentence}{place}\n")
        assert Path("homes.csv").read_bytes() == before


def test_neither_the_model_nor_files_of_a_folder_are_replaced(here, houses, model, capsys):
    (here / "homes").mkdir()
    houses.to_parquet("homes/1.parquet")
    (here / "p.csv").symlink_to("homes/1.parquet")
    (here / "m.csv").write_bytes(model.read_bytes())
    for used, out, what in ((model, "p.csv", "table"), ("m.csv", "m.csv", "model")):
        assert main(["predict", str(used), "homes", "--out", out]) == 2
        sentence = f"--out must be another file than the {what} that is read, got {out}"
        assert_one_sentence(capsys.readouterr().err, sentence)


def test_a_table_without_names_is_told_to_name_its_columns(here, capsys):
    (here / "bare.csv").write_text("1,1,2\n3,4,5\n")
    assert main(["fit", "bare.csv", "--target", "y"]) == 2
    assert_one_sentence(
        capsys.readouterr().err,
        "bare.csv has more than one column '1': rename or delete all but one, or add a first "
        "line with the names of the columns if there is none",
    )


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"fenchel {fenchel.__version__}\n"


def numbered_from_one(mark):
    """Whole prices, with a mark between thousands that the comma separates."""
    rows = [f"{k},{k}{mark}{200 + 7 * k % 50},{50 + 3 * k % 40}" for k in range(1, 41)]
    return "id,price,area\n" + "\n".join(rows) + "\n"


def test_one_cell_too_many_is_not_a_label_of_rows(here, capsys):
    """Labels from one on are as good as none to pandas, and all columns would be shifted."""
    Path("t.csv").write_text(numbered_from_one(","))
    assert main(["fit", "t.csv", "--target", "price", "--ids", "id"]) == 2
    sentence = "t.csv has rows with more cells than the 3 of its header"
    assert_one_sentence(capsys.readouterr().err, sentence)


def test_commas_at_the_ends_of_rows_change_nothing(here, capsys):
    text, fit = numbered_from_one(""), ["--target", "price", "--ids", "id", "--no-learn", "--json"]
    outs, (header, rows) = [], text.split("\n", 1)
    for name, written in (("t.csv", text), ("c.csv", header + "\n" + rows.replace("\n", ",\n"))):
        Path(name).write_text(written)
        assert main(["fit", name, *fit]) == 0
        said = json.loads(capsys.readouterr().out)
        outs.append({key: said[key] for key in ("features", "certificate", "n_rows")})
    assert outs[0] == outs[1]
