"""Files in blocks: the same numbers as of the whole, and a sentence on what is wrong."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from fenchel.datasets import stream
from fenchel.online import OnlineSVR, WidrowHoff


@pytest.fixture
def frame():
    random = np.random.default_rng(0)
    values = random.standard_normal((1234, 3)) * [1.0, 1e-7, 1e9]
    return pd.DataFrame(values, columns=["a", "b, c", "y"])


def write(frame, path):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, row_group_size=300)
    return path


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("block_rows", [1, 100, 1234, 10_000])
def test_blocks_are_the_file(ending, block_rows, frame, tmp_path):
    path = write(frame, tmp_path / f"data{ending}")
    blocks = list(stream(path, "y", block_rows=block_rows))
    assert all(1 <= len(X) == len(y) <= block_rows for X, y in blocks)
    least = -(-1234 // block_rows)  # blocks of Parquet also end where its groups of rows do
    assert len(blocks) == least if ending == ".csv" else len(blocks) >= least
    X, y = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    np.testing.assert_array_equal(X, frame[["a", "b, c"]])
    np.testing.assert_array_equal(y, frame["y"])
    X, y = blocks[0]
    assert X.flags.c_contiguous
    assert X.dtype == y.dtype == np.float64
    assert y.shape == (len(X),)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_chosen_features_in_their_order(ending, frame, tmp_path):
    frame.insert(1, "words", "x, y")
    frame.insert(0, "empty", np.nan)
    path = write(frame, tmp_path / f"data{ending}")
    X, y = next(stream(str(path), "a", features=["y", "b, c"], block_rows=50))
    np.testing.assert_array_equal(X, frame[["y", "b, c"]][:50])
    np.testing.assert_array_equal(y, frame["a"][:50])


@pytest.mark.parametrize("model", [WidrowHoff(), OnlineSVR(kernel="linear")], ids=repr)
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_model_learns_from_a_file(model, ending, tmp_path):
    model = clone(model)
    X = np.random.default_rng(1).standard_normal((3000, 2))
    table = pd.DataFrame({"u": X[:, 0], "y": X @ [1.0, 2.0] + 1.0, "v": X[:, 1]})
    path = write(table, tmp_path / f"data{ending}")
    for rows, target in stream(path, "y", block_rows=700):
        model.partial_fit(rows, target)
    assert model.t_ == 3000
    assert model.score(X, table["y"]) > 0.99


@pytest.mark.slow
def test_memory_is_that_of_a_block(tmp_path):
    path = tmp_path / "long.csv"
    line = ",".join(f"{v:.17g}" for v in np.random.default_rng(0).standard_normal(10)) + "\n"
    path.write_text(",".join("abcdefghij") + "\n" + line * 50_000, encoding="utf-8")
    tracemalloc.start()
    n = sum(len(y) for _, y in stream(path, "j", block_rows=500))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n == 50_000
    assert path.stat().st_size > 5e6
    assert peak < 1e6


CSV = "a,b,y\n1,2,3\n4,5,6\n{}\n7,8,9\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,two,3", "line 4: 'b' must be a finite number, got 'two'"),
        ("1,,3", "line 4: 'b' must be a finite number, got none"),
        ("1,2,nan", "line 4: 'y' must be a finite number, got 'nan'"),
        ("inf,2,3", "line 4: 'a' must be a finite number, got 'inf'"),
        ("1,2", "line 4: a line must have 3 values, got 2"),
        ("1,2,3,4", "line 4: a line must have 3 values, got 4"),
        ('1,"2,5",3', "line 4: 'b' must be a finite number, got '2,5'"),
        ("1,True,3", "line 4: 'b' must be a finite number, got 'True'"),
    ],
)
@pytest.mark.parametrize("block_rows", [1, 2, 100])
def test_what_is_wrong_in_a_line(line, message, block_rows, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(CSV.format(line), encoding="utf-8")
    found = []
    with pytest.raises(ValueError, match=message) as caught:  # noqa: PT012  (blocks before it are read)
        for X, _ in stream(path, "y", block_rows=block_rows):
            found.append(X)
    assert "data.csv" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(found) == (2 // block_rows)


@pytest.mark.parametrize(
    "text",
    [
        "a,b,y\n1,2,3\n\n4,5,6\n\n\n7,8,9",
        "\ufeffa,b,y\r\n1,2,3\r\n4,5,6\r\n7,8,9\r\n",
        '"a","b",y\n"1",2,3\n 4 ,5,"6"\n7,8,9\n',
        ' a,"b",y \n1e0,+2,3.\n4,5,6\n7,8,9\n',
    ],
)
@pytest.mark.parametrize("block_rows", [1, 2, 100])
def test_dialects(text, block_rows, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode())
    X, y = (np.concatenate(p) for p in zip(*stream(path, "y", block_rows=block_rows), strict=True))
    np.testing.assert_array_equal(X, [[1, 2], [4, 5], [7, 8]])
    np.testing.assert_array_equal(y, [3, 6, 9])


def test_a_file_without_rows(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,y\n", encoding="utf-8")
    assert list(stream(path, "y")) == []
    path.write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="must have the names of its columns in its first line"):
        stream(path, "y")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"target": "z"}, ValueError, "has no column 'z'; its columns are a, b, c, y"),
        ({"features": ["a", "q"]}, ValueError, "has no column 'q'"),
        ({"features": ["a", "a"]}, ValueError, "must not name a column twice, got 'a' twice"),
        ({"features": ["a", "y"]}, ValueError, "features must not hold the target 'y'"),
        ({"features": []}, ValueError, "features must name at least one column beside"),
        ({"features": "a"}, TypeError, "features must be a sequence of names, got 'a'"),
        ({"block_rows": 0}, ValueError, "block_rows must be an integer >= 1, got 0"),
        ({"block_rows": 1.5}, TypeError, r"block_rows must be an integer .*, got 1\.5"),
    ],
)
def test_arguments_are_checked_at_once(ending, arguments, error, message, frame, tmp_path):
    path = write(frame, tmp_path / f"data{ending}")
    with pytest.raises(error, match=message):
        stream(path, **({"target": "y"} | arguments))


def test_columns_of_one_name(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,a,y\n1,2,3\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has more than one column 'a'"):
        stream(path, "y")


def test_paths(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.csv"):
        stream(tmp_path / "none.csv", "y")
    with pytest.raises(ValueError, match=r"path must end in \.csv or \.parquet, got '.*\.txt'"):
        stream(tmp_path / "data.txt", "y")
    (tmp_path / "bad.parquet").write_bytes(b"no")
    with pytest.raises(ValueError, match=r"bad\.parquet cannot be read as a table"):
        stream(tmp_path / "bad.parquet", "y")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["x", "y", "z"], "must hold numbers in column 'a', got"),
        (["2020-01-01"] * 3, "must hold numbers in column 'a', got"),
        ([1.0, None, 2.0], "a finite number in column 'a' of row 2, and has nothing"),
        ([1.0, 2.0, np.inf], "a finite number in column 'a' of row 3, and has inf"),
    ],
)
def test_what_is_wrong_in_a_column(values, message, tmp_path):
    path = tmp_path / "data.parquet"
    pd.DataFrame({"a": values, "y": [1, 2, 3]}).to_parquet(path)
    with pytest.raises(ValueError, match=message):
        list(stream(path, "y", block_rows=2))


def test_true_and_false_are_numbers(tmp_path):
    """As they are in memory."""
    path = tmp_path / "data.parquet"
    pd.DataFrame({"a": [True, False, True], "y": [1, 2, 3]}).to_parquet(path)
    blocks = list(stream(path, "y", block_rows=2))
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in blocks]), [[1], [0], [1]])


def test_integers_of_parquet(tmp_path):
    path = tmp_path / "data.parquet"
    pd.DataFrame({"a": np.array([1, 2], np.uint8), "y": np.float32([0.5, 1])}).to_parquet(path)
    ((X, y),) = stream(path, "y")
    np.testing.assert_array_equal(X, [[1.0], [2.0]])
    np.testing.assert_array_equal(y, [0.5, 1.0])


def test_labels_of_rows_are_no_feature(tmp_path):
    path = tmp_path / "data.parquet"
    pd.DataFrame({"a": [1.0, 2.0], "y": [3.0, 4.0]}, index=[7, 9]).to_parquet(path)
    ((X, y),) = stream(path, "y")
    np.testing.assert_array_equal(X, [[1.0], [2.0]])
    np.testing.assert_array_equal(y, [3.0, 4.0])


def test_without_pyarrow(frame, tmp_path, monkeypatch):
    path = write(frame, tmp_path / "data.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"need pyarrow: pip install 'fenchel\[tables\]'"):
        stream(path, "y")
