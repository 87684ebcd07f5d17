"""What cells may be: decimals are numbers, and others are refused by name and row."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from fenchel import KernelRidge
from fenchel.tables import TableEncoder, table_encoder

GAPS = {
    "area": [50.0, None, 90.0, 70.0, 60.0],
    "town": ["Bonn", "Köln", None, "Bonn", "Köln"],
    "garden": [True, False, True, None, True],
    "sold": ["1969-12-31", "1970-01-02", None, "1970-02-01", "1969-12-31"],
}

DECIMALS = [Decimal("1.1"), None, Decimal("2.35"), Decimal("NaN")]
DECIMAL_COLUMNS = {
    "objects": lambda: pd.DataFrame({"c": DECIMALS}),
    "with other numbers": lambda: pd.DataFrame({"c": [Decimal("1.1"), None, 2.35, None]}),
    "pandas of Arrow": lambda: pd.DataFrame({"c": ["1.1", None, "2.35", None]}).astype(
        {"c": pd.ArrowDtype(pa.decimal128(12, 2))}
    ),
    "polars": lambda: pl.DataFrame({"c": ["1.1", None, "2.35", None]}).cast(pl.Decimal(12, 2)),
}


@pytest.mark.parametrize("kind", DECIMAL_COLUMNS)
def test_decimals_are_numbers(kind):
    frame = DECIMAL_COLUMNS[kind]()
    encoder = TableEncoder()
    table = encoder.fit_transform(frame)
    assert encoder.kinds_ == {"c": "number"}
    filled = (1.1 + 2.35) / 2
    expected = [[1.1, 0], [filled, 1], [2.35, 0], [filled, 1]]
    np.testing.assert_array_equal(table, expected)
    of_floats = TableEncoder().fit(pd.DataFrame({"c": [1.1, np.nan, 2.35, np.nan]}))
    np.testing.assert_array_equal(of_floats.transform(frame), expected)


def test_decimals_as_targets():
    frame = pd.DataFrame({"n": [0.0, 1.0, 2.0], "c": ["a", "b", "a"]})
    model = make_pipeline(table_encoder(), KernelRidge(learn=False))
    decimals = pd.Series([Decimal("1.1"), Decimal("2.35"), Decimal("3")])
    expected = clone(model).fit(frame, [1.1, 2.35, 3.0]).predict(frame)
    np.testing.assert_array_equal(model.fit(frame, decimals).predict(frame), expected)


BAD = {
    "a dash": (
        {"c": ["1", "2", "-", "4"]},
        r"'c' of X holds numbers but for one cell '-' in row 3",
    ),
    "a gap and a dash": ({"c": ["1", None, "-", "4"]}, r"one cell '-' in row 3"),
    "no date": (
        {"c": ["2020-01-01", None, "soon", "2020-01-03"]},
        r"'c' of X holds dates \(%Y-%m-%d\) but for one cell 'soon' in row 3",
    ),
    "no such day": ({"c": ["2020-01-01", "2020-02-30", "2020-01-03"]}, "'2020-02-30' in row 2"),
    "infinite": ({"c": [1.0, np.inf]}, "'c' of X must be finite, and 'inf' in row 2 is not"),
    "lists": (
        {"c": [None, [1]]},
        r"'c' of X holds '\[1\]' in row 2, which is of type list: columns must be numbers, words",
    ),
    "lengths of time": (
        {"c": pd.to_timedelta([1, 2], "D")},
        "'c' of X is of type timedelta.*, with '1 days 00:00:00' in row 1: columns must be.*"
        r"column / np.timedelta64\(1, 'D'\) makes days of durations",
    ),
    "periods": (
        {"c": pd.period_range("2020-01", periods=2, freq="M")},
        r"with '2020-01' in row 1: .*; column.dt.to_timestamp\(\) makes dates of periods",
    ),
    "complex": ({"c": [1j, 2.0]}, "'c' of X is of type complex128, with '1j' in row 1"),
    "a word among numbers": (
        {"c": [1, "x", 2]},
        "'c' of X holds numbers but for one cell 'x' in row 2",
    ),
    "a word among decimals": ({"c": [*DECIMALS, "x", 3]}, "but for one cell 'x' in row 5"),
    "a number as a word": (
        {"c": [None, 1, "2", 3]},
        "must hold one kind of cells, and '2' in row 3 is a word where '1' in row 2 is a number",
    ),
    "a number among words": (
        {"c": ["a", 1, "b"]},
        "and '1' in row 2 is a number where 'a' in row 1 is a word",
    ),
    "a word among dates": (
        {"c": [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02"), "2020-01-03"]},
        "and '2020-01-03' in row 3 is a word where '2020-01-01 00:00:00' in row 1 is a date",
    ),
    "no rows": ({"c": []}, r"X must have a row and a column, got the shape \(0, 1\)"),
}


@pytest.mark.parametrize("name", BAD)
def test_tables_that_are_refused(name):
    columns, sentence = BAD[name]
    encoder = TableEncoder().fit(pd.DataFrame({"c": [1, 2]}))
    before = encoder.get_feature_names_out()
    with pytest.raises(ValueError, match=sentence) as caught:
        encoder.fit(pd.DataFrame(columns))
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(encoder.get_feature_names_out(), before)


@pytest.mark.parametrize("X", [np.ones((3, 2)), [[1.0]], "words", None, pd.Series([1, 2])])
def test_what_is_no_data_frame(X):
    with pytest.raises(TypeError, match=r"^X must be a data frame of pandas or Polars, got"):
        TableEncoder().fit(X)


def test_two_columns_of_one_name():
    with pytest.raises(ValueError, match="different names of columns, got 'a' twice"):
        TableEncoder().fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"area": "large"}, "'area' of X must be a number in every row, and 'large' in row 1"),
        ({"area": np.inf}, "'area' of X must be finite"),
        (
            {"area": [None, "50", "60", "70", "80"]},
            "'area' of X must be a number in every row, and '50' in row 2 is a word",
        ),
        (
            {"area": [50, None, 60, "70", 80]},
            "'area' of X must be a number in every row, and '70' in row 4 is a word",
        ),
        (
            {"area": pd.Categorical([None, 50, 50, 60, 60])},
            "'area' of X must be a number in every row, and '50' in row 2 is a category",
        ),
        ({"area": True}, "'area' of X must be a number in every row, and 'True' in row 1 is not"),
        (
            {"garden": "yes"},
            "'garden' of X must be true or false in every row, and 'yes' in row 1",
        ),
        ({"garden": 1}, "'garden' of X must be true or false in every row, and '1' in row 1"),
        ({"sold": "soon"}, r"'sold' of X must be a date \(%Y-%m-%d\) in every row, and 'soon'"),
        ({"sold": 3}, r"'sold' of X must be a date \(%Y-%m-%d\) in every row, and '3' in row 1"),
    ],
)
def test_rows_that_are_refused(change, sentence):
    frame = pd.DataFrame(GAPS)
    encoder = TableEncoder().fit(frame)
    with pytest.raises(ValueError, match=sentence):
        encoder.transform(frame.assign(**change))
    with pytest.raises(ValueError, match=sentence.replace("of X", "of new")):
        encoder.notices(frame.assign(**change), "new")


@pytest.mark.parametrize("unit", [" %", " €"])
def test_columns_in_which_no_cell_is_written_as_a_number(unit):
    frame = pd.DataFrame({"share": [f"{k}{unit}" for k in range(30)]})
    said = f"holds numbers that are not written as such, '0{unit}' in row 1 being the first: write"
    with pytest.raises(ValueError, match=said):
        TableEncoder().fit(frame)


def test_a_nan_of_arrow_is_a_missing_number():
    column = pd.Series(pd.array(pa.array([1.0, float("nan"), 4.0]), pd.ArrowDtype(pa.float64())))
    expected = TableEncoder().fit_transform(pd.DataFrame({"a": [1.0, np.nan, 4.0]}))
    np.testing.assert_array_equal(
        TableEncoder().fit_transform(pd.DataFrame({"a": column})), expected
    )


@pytest.mark.parametrize("word", ["03.01.21", "10:30", "today", "05/06/07", "2021"])
def test_words_that_are_no_dates_are_not_guessed_where_the_fit_had_dates(word):
    dates = pd.DataFrame({"day": pd.date_range("2020-01-30", periods=40)})
    encoder = TableEncoder().fit(dates)
    with pytest.raises(ValueError, match=f"must be a date in every row, and '{word}' in row 1"):
        encoder.transform(pd.DataFrame({"day": [word]}))
    found = encoder.transform(pd.DataFrame({"day": ["2020-02-10"]}))
    np.testing.assert_array_equal(found, encoder.transform(dates)[11:12])
