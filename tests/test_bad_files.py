"""Folders of files that do not go together: a fit, or one sentence, in Python and the terminal."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from fenchel import QuantileRegressor, files
from fenchel.cli import main, on_disk
from fenchel.kernels import Gaussian
from fenchel.tables import TableEncoder

pa = pytest.importorskip("pyarrow", reason="tables on disk need Arrow")
ds = pytest.importorskip("pyarrow.dataset", reason="tables on disk need Arrow")
parquet = pytest.importorskip("pyarrow.parquet", reason="tables on disk need Arrow")

N = 60
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "a": RNG.uniform(size=N),
        "b": RNG.integers(0, 9, N).astype(float),
        "town": RNG.choice(["north", "south"], N),
        "y": RNG.standard_normal(N),
    }
)
ONE, TWO = FRAME[:30], FRAME[30:]
WORDS = ["low", "high"] * 15
MODEL = QuantileRegressor(0.5, kernel=Gaussian(1.0), alpha=1e-2)
FIT = ["fit", "parts", "--target", "y", "--kernel", "gaussian", "--length-scale", "1"]
FIT += ["--alpha", "1e-2", "--quiet"]
REFUSED = {
    "column lacks": (ONE, TWO.drop(columns="b"), "1.parquet has no column 'b', which other files"),
    "target lacks": (ONE, TWO.drop(columns="y"), "1.parquet has no column 'y', which other files"),
    "words": (
        ONE,
        TWO.assign(b=WORDS),
        "must hold the same in column 'b' of all files, got double",
    ),
    "target of words": (ONE, TWO.assign(y=WORDS), "1.parquet must hold numbers in column 'y'"),
    "no bytes": (ONE, b"", "parts cannot be read to its end"),
    "infinite": (ONE, TWO.assign(b=np.inf), "must be finite, and 'inf' in row 31 is not"),
}
FITTED = {
    "whole numbers": (ONE, TWO.assign(b=np.arange(30))),
    "no rows": (FRAME[:0], ONE, TWO),
    "empty column": (ONE.assign(town=None, b=None), TWO),
    "new words": (ONE, TWO.assign(town="west")),
    "more columns": (ONE, TWO.assign(c=1.0)),
    "words and categories": (ONE.assign(town=ONE.town.astype("category")), TWO),
    "flags": (ONE.assign(b=True), TWO.assign(b=False)),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to work in, where tables are too large for memory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(on_disk, "SHARE", 0.0)
    return tmp_path


def written(folder, parts):
    folder.mkdir()
    for k, part in enumerate(parts):
        if isinstance(part, bytes):
            (folder / f"{k}.parquet").write_bytes(part)
        else:
            part.to_parquet(folder / f"{k}.parquet", index=False)
    return folder


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_refused(name, here, capsys):
    *parts, sentence = REFUSED[name]
    folder = written(here / "parts", parts)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        make_pipeline(TableEncoder(), MODEL).fit(folder, "y")
    assert main(FIT) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", FITTED)
def test_what_goes_together_is_the_table_of_all(name, here, capsys):
    folder = written(here / "parts", FITTED[name])
    known = [part.dropna(axis=1, how="all") for part in FITTED[name] if len(part)]
    whole = pd.concat(known, ignore_index=True)[list(FITTED[name][-1])]
    model = make_pipeline(TableEncoder(), MODEL)
    expected = model.fit(whole.drop(columns="y"), whole["y"]).predict(whole)
    if name == "more columns":  # which the first file, whose columns are read, has not
        expected = model.fit(FRAME.drop(columns="y"), FRAME["y"]).predict(FRAME)
    found = model.fit(folder, "y").predict(folder)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert main([*FIT, "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_columns_may_be_names_of_folders(here):
    parquet.write_to_dataset(pa.Table.from_pandas(FRAME), here / "parts", partition_cols=["town"])
    model = make_pipeline(TableEncoder(), MODEL).fit(here / "parts", "y")
    assert model[0].kinds_ == {"a": "number", "b": "number", "town": "category"}
    turned = FRAME.sort_values("town", kind="stable")
    np.testing.assert_allclose(model.predict(here / "parts"), model.predict(turned), atol=1e-10)


def test_a_file_that_changes_between_passes(here):
    folder = written(here / "parts", [ONE, TWO])
    table = files.only(folder, ["a", "y"])
    assert len(files.read_known(table, "y")[0]) == N
    ONE.to_parquet(folder / "1.parquet")
    with pytest.raises(ValueError, match="must not change while it is read, and has changed"):
        MODEL.fit(table, "y")


@pytest.mark.parametrize(
    "opened",
    [
        lambda folder: folder,
        lambda folder: ds.dataset(folder).filter(ds.field("y").is_valid()),
        lambda folder: ds.dataset([ds.dataset(folder)]).filter(ds.field("y").is_valid()),
    ],
    ids=["folder", "filtered", "filtered union"],
)
def test_files_that_change_while_they_are_read_are_refused(opened, tmp_path):
    """Of a filtered data set, rows of before and after were fitted together."""

    def write(number, value):
        rows = {"a": np.linspace(0.0, 1.0, 70_000), "y": np.full(70_000, value)}
        parquet.write_table(pa.table(rows), tmp_path / f"{number:02d}.parquet")

    def told(done, total):
        if not calls:
            for number in range(10, 20):
                write(number, 1.0)
        calls.append(done)

    for number in range(20):
        write(number, 0.0)
    calls = []
    with pytest.raises(ValueError, match="must not change while it is read, and has changed"):
        files.read_columns(opened(tmp_path), "y", told=told)


def test_a_table_without_rows_has_no_predictions(tmp_path):
    for number, rows in enumerate([FRAME[["a", "b", "y"]], FRAME[["a", "b", "y"]][:0]]):
        rows.to_parquet(tmp_path / f"{number}.parquet")
    for levels, shape in ((0.5, (0,)), ([0.1, 0.9], (0, 2))):
        model = QuantileRegressor(levels, kernel=Gaussian(1.0), alpha=1e-2)
        model.fit(tmp_path / "0.parquet", "y")
        assert model.predict(tmp_path / "1.parquet").shape == shape


def test_names_that_are_there_twice_or_several_targets_get_one_sentence(tmp_path):
    twice = pa.table([FRAME.a, FRAME.b, FRAME.b, FRAME.y], names=["a", "b", "b", "y"])
    with pytest.raises(ValueError, match="X has more than one column 'b'; its columns are a, b"):
        MODEL.fit(twice, "y")
    FRAME.to_parquet(tmp_path / "0.parquet")
    with pytest.raises(ValueError, match=r"y must be the name of one column, .* got \['y', 'b'\]"):
        MODEL.fit(tmp_path / "0.parquet", ["y", "b"])
