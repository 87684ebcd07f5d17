"""Targets and weights beside tables in files, and which files and columns belong to a table."""

from __future__ import annotations

import re
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from fenchel import KernelRidge
from fenchel.kernels import Gaussian
from fenchel.tables import TableEncoder

pa = pytest.importorskip("pyarrow", reason="tables in files need it")
parquet = pytest.importorskip("pyarrow.parquet")

N = 40
X = np.linspace(0.0, 10.0, N)
Y = X + np.sin(X)
DAYS = np.datetime64("2020-01-01") + np.arange(N)
HIDDEN = np.ma.masked_array(Y + 1.0, mask=X > 5.0)
TABLE = pa.table({"x": X, "y": Y})


def ridge():
    return KernelRidge(kernel=Gaussian(3.0), alpha=1e-2)


@pytest.fixture(params=["memory", "parquet", "npy"])
def rows(request, tmp_path):
    """The same rows in three places."""
    if request.param == "memory":
        return X[:, None]
    if request.param == "npy":
        np.save(tmp_path / "x.npy", X[:, None])
        return tmp_path / "x.npy"
    parquet.write_table(TABLE.select(["x"]), tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


@pytest.mark.parametrize("name", ["y", "sample_weight"])
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (DAYS, "must be an array of numbers, got dates (datetime64"),
        (DAYS - DAYS[0], "must be an array of numbers, got durations (timedelta64"),
        (list(DAYS), "must be an array of numbers, got dates (datetime64"),
        (Y + 1j, "must be an array of numbers: Complex data not supported"),
        (["a"] * N, "must be an array of numbers: could not convert string to float"),
        (HIDDEN, "must have no masked cells, got 20 of them"),
        (np.where(X > 9.0, np.nan, 1.0), "contains NaN"),
    ],
)
def test_values_are_refused_wherever_the_rows_are(rows, name, values, sentence):
    with pytest.raises((TypeError, ValueError), match=re.escape(sentence)) as caught:
        ridge().fit(rows, **{"y": Y, name: values})
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_arrays_that_are_not_there(tmp_path):
    np.save(tmp_path / "x.npy", X[:, None])
    (tmp_path / "no.npy").write_text("1,2,3", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="y must hold numbers, or be the place of a file"):
        ridge().fit(tmp_path / "x.npy", "price")
    with pytest.raises(ValueError, match=r"y: .* cannot be read as an array"):
        ridge().fit(tmp_path / "x.npy", tmp_path / "no.npy")
    with pytest.raises(ValueError, match="one entry for each of the 40 rows of X, got 41"):
        ridge().fit(tmp_path / "x.npy", np.append(Y, 1.0))


def test_links_to_folders_are_followed_and_may_lead_back(tmp_path):
    folder, other = tmp_path / "parts", tmp_path / "elsewhere"
    folder.mkdir()
    other.mkdir()
    parquet.write_table(TABLE.slice(0, 20), folder / "0.parquet")
    parquet.write_table(TABLE.slice(20), other / "1.parquet")
    (folder / "more").symlink_to(other)
    (other / "back").symlink_to(folder)
    expected = ridge().fit(X[:, None], Y).predict(X[:, None])
    model = ridge().fit(folder, "y")
    np.testing.assert_allclose(model.predict(folder), expected, atol=1e-3)


def test_a_folder_that_is_linked_to_twice_is_read_twice(tmp_path):
    folder, other = tmp_path / "parts", tmp_path / "elsewhere"
    folder.mkdir()
    other.mkdir()
    parquet.write_table(TABLE, other / "1.parquet")
    for run in (1, 2):
        (folder / f"run={run}").symlink_to(other)
    (folder / ".kept").mkdir()
    (folder / ".kept" / "0.parquet").write_bytes(b"no table")
    model = ridge().fit(folder, "y")
    assert model.feature_names_in_.tolist() == ["x", "run"]
    assert model.predict(folder).shape == (2 * N,)


def test_folders_that_a_file_is_in_are_no_columns(tmp_path):
    folder = tmp_path / "run=5"
    folder.mkdir()
    parquet.write_table(TABLE, folder / "a.parquet")
    assert ridge().fit(folder / "a.parquet", "y").feature_names_in_.tolist() == ["x"]
    assert ridge().fit(tmp_path, "y").feature_names_in_.tolist() == ["x", "run"]


def test_views_of_strings(tmp_path):
    town = pa.array(["a", "b", None, "b"] * 10, pa.string())
    views, plain = (
        TABLE.append_column("c", town.cast(kind)) for kind in ("string_view", "string")
    )
    tables = [plain, views]
    with suppress(pa.ArrowNotImplementedError):  # of old versions, which write none
        parquet.write_table(views, tmp_path / "t.parquet")
        tables.append(tmp_path / "t.parquet")
    first, *others = (
        make_pipeline(TableEncoder(), ridge()).fit(table, "y").predict(table) for table in tables
    )
    for found in others:
        np.testing.assert_array_equal(found, first)


def test_decimals_in_one_file_and_whole_numbers_in_another(tmp_path):
    parts = (
        pa.array([Decimal(i) / 4 for i in range(20)], pa.decimal128(10, 2)),
        pa.array(range(20), pa.int64()),
    )
    for k, part in enumerate(parts):
        table = TABLE.slice(20 * k, 20).append_column("c", part)
        parquet.write_table(table, tmp_path / f"{k}.parquet")
    whole = TABLE.append_column("c", pa.array([*np.arange(20) / 4, *np.arange(20.0)]))
    model = make_pipeline(TableEncoder(), ridge())
    expected = model.fit(whole, "y").predict(whole)
    np.testing.assert_allclose(model.fit(tmp_path, "y").predict(tmp_path), expected, atol=1e-12)


def test_an_empty_place_is_not_the_folder_where_one_is():
    with pytest.raises(ValueError, match="X must be a Parquet file, a folder of them, or a file"):
        ridge().fit("", "y")


@pytest.mark.parametrize("values", [DAYS, DAYS - DAYS[0], Y + 1j])
def test_parts_of_collections_hold_numbers(values):
    tasks = pytest.importorskip("fenchel.dask._tasks", reason="needs fenchel[dask]")
    for given in ((X[:, None], values, None), (X[:, None], Y, values), (values[:, None], Y, None)):
        with pytest.raises(ValueError, match="must hold numbers, and does not in partition 3"):
            tasks.read(3, *given)
