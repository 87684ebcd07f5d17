"""Tables larger than a share of the free memory: the same model, without reading them whole."""

from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import fenchel
from fenchel import QuantileRegressor
from fenchel.cli import main, on_disk
from fenchel.tables import table_encoder

FIT = ["fit", "trips.parquet", "--target", "fare", "--kernel", "gaussian", "--length-scale", "3"]
FIT += ["--alpha", "1e-4"]


def trips(n=1500):
    """Rides; the fare depends on distance and city."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "ride": [f"R{k}" for k in range(n)],
            "distance": random.exponential(3.0, n),
            "city": random.choice(["Bonn", "NA", "Köln"], n),
            "seats": random.integers(1, 5, n),
        }
    )
    frame.loc[::50, "distance"] = np.nan
    noise = random.exponential(1.0, n)
    return frame.assign(fare=3 + 2 * frame["distance"].fillna(3.0) + noise)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with a table in which nothing fits into memory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(on_disk, "SHARE", 0.0)
    monkeypatch.setattr(on_disk, "_BLOCK_ROWS", 400)
    trips().to_parquet("trips.parquet", row_group_size=400)
    return tmp_path


@pytest.mark.slow
def test_the_fit_is_that_of_the_library_from_disk(here, capsys):
    assert main([*FIT, "--ids", "ride", "--out", "m.skops", "--json"]) == 0
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert err == ""
    assert record["on_disk"]
    assert record["features"] == {
        "numeric": ["distance", "seats"],
        "categorical": ["city"],
        "dates": [],
    }
    X = trips().drop(columns=["ride", "fare"])
    X.assign(fare=trips()["fare"]).to_parquet("some.parquet", row_group_size=400)
    plain = QuantileRegressor([0.1, 0.5, 0.9], kernel=fenchel.kernels.Gaussian(3.0), alpha=1e-4)
    expected = make_pipeline(table_encoder(), plain.set_params(random_state=0))
    expected.fit("some.parquet", "fare")
    np.testing.assert_array_equal(fenchel.load("m.skops").predict(X), expected.predict(X))
    below = trips()["fare"].to_numpy()[:, None] <= expected.predict(X)
    np.testing.assert_allclose([c["coverage"] for c in record["levels"]], below.mean(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_predictions_come_block_by_block(ending, here, capsys, monkeypatch):
    assert main([*FIT, "--ids", "ride", "--out", "m.skops", "--quiet"]) == 0
    new = trips(1300).assign(extra=1)
    new.loc[900, "city"] = "Ulm"
    getattr(new, f"to_{ending}")(f"new.{ending}", index=False)
    sizes = []
    original = on_disk.blocks
    monkeypatch.setattr(
        on_disk, "blocks", lambda *given: (sizes.append(b) or b for b in original(*given))
    )
    capsys.readouterr()
    assert main(["predict", "m.skops", f"new.{ending}", "--out", "p.csv"]) == 0
    err = capsys.readouterr().err
    assert err.count("\n") == 2
    assert "columns that the model does not use: extra" in err
    assert "1 row has labels of city that the model has not seen (Ulm)" in err
    found = pd.read_csv("p.csv")
    assert found["ride"].tolist() == new["ride"].tolist()
    expected = fenchel.load("m.skops").predict(new)
    np.testing.assert_allclose(found[["q0.1", "q0.5", "q0.9"]], expected, rtol=1e-12)
    if ending == "csv":
        assert [len(table.frame) for _, table in sizes] == [400, 400, 400, 100]
    assert {p.name for p in here.iterdir()} == {
        "m.skops",
        f"new.{ending}",
        "p.csv",
        "trips.parquet",
    }
    assert main(["predict", "m.skops", f"new.{ending}"]) == 0
    again = pd.read_csv(io.StringIO(capsys.readouterr().out))
    pd.testing.assert_frame_equal(again, found)


@pytest.mark.slow
def test_a_block_that_is_refused_leaves_no_file(here, capsys):
    assert main([*FIT, "--out", "m.skops", "--quiet"]) == 0
    new = trips(900).astype({"seats": object})
    new.loc[850, "seats"] = "two"
    new.to_csv("new.csv", index=False)
    assert main(["predict", "m.skops", "new.csv", "--out", "p.csv"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "of new.csv must be a number in every row, and 'two' in row 851 is not" in err
    assert not (here / "p.csv").exists()


@pytest.mark.slow
def test_intervals_are_calibrated_on_rows_that_are_left_out(here, capsys):
    coverage = ["--coverage", "0.8", "--out", "c.skops", "--json"]
    assert main([*FIT, "--drop", "ride", *coverage]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["calibration"]["rows"] == 375
    assert abs(record["intervals"]["coverage"] - 0.8) < 0.06
    model = fenchel.load("c.skops")[-1]
    assert model.levels_.tolist() == [0.1, 0.5, 0.9]
    assert np.count_nonzero(np.any(model.estimator_.dual_coef_ != 0.0, axis=1)) <= 1125


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--cv", "3"], "without --cv"),
        (["--model", "normal"], "without --model normal"),
        (["--plot", "p.png"], "without --plot"),
        (["--drop", "city,town"], "has no column 'town'"),
    ],
)
def test_what_needs_memory_is_refused(arguments, sentence, here, capsys):
    base = ["fit", "trips.parquet", "--target", "fare", "--out", "m.skops"]
    assert main([*base, *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err
    assert [p.name for p in here.iterdir()] == ["trips.parquet"]


def test_large_csv_files_are_refused_with_what_to_do(here, capsys):
    trips().to_csv("trips.csv", index=False)
    assert main(["fit", "trips.csv", "--target", "fare"]) == 2
    assert "convert it to Parquet" in capsys.readouterr().err


def with_markers(folder=None):
    """A table whose cells -999 and k.A. are missing, two of them targets, and one target empty."""
    frame = trips(800).drop(columns="ride")
    frame.loc[[3, 500], "city"] = "k.A."
    frame.loc[[7, 90], "seats"] = -999
    frame.loc[[11, 600], "fare"] = -999.0
    frame.loc[750, "fare"] = np.nan
    if folder is None:
        frame.to_parquet("trips.parquet", row_group_size=100)
    else:
        folder.mkdir()
        frame[:300].astype({"seats": "float32"}).to_parquet(folder / "1.parquet")
        frame[300:300].to_parquet(folder / "2.parquet")
        frame[300:].to_parquet(folder / "3.parquet")
    return frame


@pytest.mark.slow
@pytest.mark.parametrize("place", ["trips.parquet", "trips"])
def test_missing_cells_and_targets_are_those_of_a_table_in_memory(
    place, here, capsys, monkeypatch
):
    frame = with_markers(here / "trips" if place == "trips" else None)
    options = ["--missing", "k.A.,-999", "--tol", "1e-9", "--quiet"]
    assert main(["fit", place, *FIT[2:], *options, "--out", "disk.skops"]) == 0
    sentence = f"3 rows, the first of them 12, are left out of {place}: the target is missing"
    assert capsys.readouterr().err == f"fenchel: warning: {sentence}\n"
    assert main(["evaluate", "disk.skops", place, "--json"]) == 0
    of_disk = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(on_disk, "SHARE", 1.0)
    frame.to_parquet("memory.parquet")
    assert main(["fit", "memory.parquet", *FIT[2:], *options, "--out", "memory.skops"]) == 0
    assert main(["evaluate", "memory.skops", "memory.parquet", "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert of_disk["n_rows"] == expected["n_rows"] == 797
    np.testing.assert_allclose(of_disk["d2"], expected["d2"], rtol=1e-6)
    found, other = (fenchel.load(f"{name}.skops") for name in ("disk", "memory"))
    assert found[0].description_ == other[0].description_
    assert "2 missing values filled" in found[0].description_["seats"]
    np.testing.assert_allclose(found.predict(trips()), other.predict(trips()), atol=1e-4)


def test_a_target_without_a_number_is_refused(here, capsys):
    trips().assign(fare=np.nan).to_parquet("trips.parquet")
    assert main([*FIT, "--out", "m.skops"]) == 2
    assert capsys.readouterr().err == "fenchel: trips.parquet has no value in the target fare\n"


def test_a_folder_without_parquet_is_refused(here, capsys):
    (here / "empty").mkdir()
    assert main(["fit", "empty", "--target", "fare"]) == 2
    assert "empty is a folder, and a CSV or Parquet file is needed" in capsys.readouterr().err
    with_markers(here / "trips")
    assert main(["compare", "trips", "--target", "fare"]) == 2
    assert "is a folder, which fit, predict and evaluate read" in capsys.readouterr().err


@pytest.mark.slow
def test_tables_that_cannot_be_predicted_are_one_sentence(here, capsys):
    assert main([*FIT, "--out", "m.skops", "--quiet"]) == 0
    rows = trips(40).drop(columns=["ride", "fare"])
    rows.to_csv("rows.csv", index=False)
    lines = (here / "rows.csv").read_text().splitlines()
    (here / "more.csv").write_text("\n".join([*lines[:20], "1,2.5,Bonn,3", *lines[21:]]))
    (here / "less.csv").write_text("\n".join([*lines[:20], "2.5,Bonn", *lines[21:]]))
    (here / "latin.csv").write_bytes("\n".join(lines).encode("latin-1"))
    for name in ("lacks", "torn"):
        (here / name).mkdir()
        rows.to_parquet(f"{name}/a.parquet")
    rows.drop(columns="distance").to_parquet("lacks/b.parquet")
    (here / "torn" / "b.parquet").write_bytes((here / "torn" / "a.parquet").read_bytes()[:300])
    capsys.readouterr()
    for name, sentence in (
        ("more.csv", "more.csv has more cells in row 20 than the 3 of its header"),
        ("less.csv", "less.csv has fewer cells in row 20 than the 3 of its header"),
        ("latin.csv", "latin.csv cannot be read as a table: it must be text in UTF-8"),
        ("lacks", "lacks/b.parquet has no column 'distance', which other files have"),
        ("torn", "torn cannot be read to its end: Could not open Parquet"),
    ):
        assert main(["predict", "m.skops", name, "--out", "p.csv"]) == 2
        err = capsys.readouterr().err
        assert err.startswith(f"fenchel: {sentence}")
        assert err.count("\n") == 1
        assert not (here / "p.csv").exists()


def test_folders_may_hold_other_files(here, capsys):
    (here / "parts" / "_temporary").mkdir(parents=True)
    trips(100).to_parquet("parts/a.parquet")
    for name in ("README.txt", "predictions.csv", "_temporary/b.parquet"):
        (here / "parts" / name).write_text("no table")
    assert main([*FIT[:1], "parts", *FIT[2:], "--columns", "distance", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_rows"] == 100


@pytest.mark.slow
def test_all_passes_say_how_far_they_are(here, monkeypatch):
    told = {}

    @contextlib.contextmanager
    def shown(**_):
        yield lambda what, done, total: told.setdefault(what.split(":")[0], []).append(
            (done, total)
        )

    monkeypatch.setattr("fenchel.cli.commands.shown", shown)
    monkeypatch.setattr("fenchel.files._arrow.BLOCK_ROWS", 400)
    assert main([*FIT, "--quiet"]) == 0
    for what in ("looking at columns", "reading", "making features", "measuring"):
        assert told[what][-1] == (1500, 1500), what
    assert told["looking at columns"] == [(400, 1500), (800, 1500), (1200, 1500), (1500, 1500)]


def test_small_tables_stay_in_memory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trips(60).to_parquet("trips.parquet")
    assert not on_disk.is_large(tmp_path / "trips.parquet")
    free = on_disk.free_memory()
    monkeypatch.setattr(on_disk, "SHARE", 60 * 5 * 8 / free / 2)
    monkeypatch.setattr(on_disk, "free_memory", lambda: free)
    assert on_disk.is_large(tmp_path / "trips.parquet")
