"""Labels: the same for a number of any type, and nothing else where the fit has seen words."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fenchel import KernelRidge
from fenchel.tables import TableEncoder

NUMBERS = np.arange(6.0)
WORDS = pd.DataFrame({"n": NUMBERS, "w": list("xyxyxy")})
CODES = pd.DataFrame({"n": NUMBERS, "w": pd.Series([1, 2] * 3, dtype="category")})
DAYS = pd.date_range("2020-01-01", periods=6)


def table(cells):
    return pd.DataFrame({"n": NUMBERS, "w": cells})


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (DAYS, "must hold words, as in the fit, and '2020-01-01 00:00:00' in row 1 is a date"),
        (pd.Categorical(DAYS), "must hold words, as in the fit, and '2020-01-01 .* is a date"),
        (
            ["x", None, datetime.date(2020, 1, 1), "y", "x", "y"],
            "must hold words, as in the fit, and '2020-01-01' in row 3 is a date",
        ),
        (
            pd.to_timedelta(NUMBERS, "D"),
            "is of type timedelta64.* with '0 days 00:00:00' in row 1",
        ),
        (pd.period_range("2020", periods=6, freq="M"), "is of type period.M., with '2020-01' in"),
        (
            NUMBERS + 1j,
            "is of type complex128, with '1j' in row 1: columns must be numbers, words",
        ),
        (["x", "y", 1j, "x", "y", "x"], "holds '1j' in row 3, which is of type complex: columns"),
    ],
)
def test_new_cells_that_cannot_be_labels_are_refused(cells, said):
    encoder = TableEncoder().fit(WORDS)
    with pytest.raises(ValueError, match=f"^the column 'w' of X {said}"):
        encoder.transform(table(cells))


@pytest.mark.parametrize("cells", [[True] * 6, [1] * 6, [None] * 6, list("xyzxyz")])
def test_new_cells_that_may_be_labels(cells):
    assert TableEncoder().fit(WORDS).transform(table(cells)).shape == (6, 3)


@pytest.mark.parametrize(
    "kind",
    [
        *("int64", "float32", "Float32", "Float64", "Int64", "longdouble"),
        *(pd.ArrowDtype(pa.float32()), pd.ArrowDtype(pa.decimal128(5, 2))),
    ],
)
def test_whole_numbers_are_the_same_labels_in_all_types(kind):
    encoder = TableEncoder().fit(CODES)
    codes = pd.Series([Decimal(1), Decimal(2)] * 3)
    if not isinstance(kind, pd.ArrowDtype):
        codes = codes.astype("int64")
    new = table(codes.astype(kind))
    np.testing.assert_array_equal(encoder.transform(new), encoder.transform(CODES))


def test_decimals_are_labels_as_other_numbers():
    cells = [Decimal("1.0"), Decimal("2.50"), Decimal("1E+1"), Fraction(4, 1), True, True]
    names = TableEncoder().fit(table(pd.Categorical(cells))).get_feature_names_out()
    assert set(names[1:]) == {"w=1", "w=2.5", "w=10", "w=4"}


@pytest.mark.skipif(int(pd.__version__.split(".")[0]) < 3, reason="pandas 2 takes no such numbers")
def test_numbers_that_are_too_large_are_labels():
    names = TableEncoder().fit(table(pd.Categorical([1, 2, 10**400] * 2))).get_feature_names_out()
    assert set(names[1:]) == {"w=1", "w=2", f"w={10**400}"}


@pytest.mark.parametrize("labels", [list("xy"), [1, 2]])
def test_dictionaries_of_arrow_are_categories(labels):
    stored = pa.array(labels * 3).dictionary_encode()
    cells = pd.Series(pd.arrays.ArrowExtensionArray(stored))
    encoder = TableEncoder().fit(table(cells))
    plain = table(pd.Categorical(labels * 3))
    assert encoder.kinds_ == {"n": "number", "w": "category"}
    np.testing.assert_array_equal(
        encoder.transform(table(cells)), TableEncoder().fit_transform(plain)
    )


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (10**400, f"'1{'0' * 59}…'"),
        (-(10**400), f"'-1{'0' * 58}…'"),
        ("10**5000", "a number of thousands of digits"),
        (Fraction(10**400), f"'1{'0' * 59}…'"),
    ],
)
def test_numbers_that_are_too_large_are_named(cell, shown):
    said = f"^the column 'n' of X must be finite, and {shown} in row 2 is not$"
    cell = 10**5000 if cell == "10**5000" else cell  # which has no name as a parameter
    with pytest.raises(ValueError, match=said):
        TableEncoder().fit(pd.DataFrame({"n": pd.Series([1, cell, 2], dtype=object)}))


def test_long_doubles_that_are_too_large_are_named():
    cells = np.array([1, 2, 3], dtype=np.longdouble)
    cells[1] *= np.longdouble(10) ** 400
    with pytest.raises(ValueError, match=r"'n' of X must be finite, and .* in row 2 is not$"):
        TableEncoder().fit(pd.DataFrame({"n": cells}))


@pytest.mark.skipif(pd.__version__ < "3", reason="words are objects there, and stay so")
def test_lone_surrogates_are_no_text():
    cells = pd.Series(["y", "\ud800", *"xyxy"], dtype=object)
    said = r"^the column 'w' of X must be text, and '\\ud800' in row 2 has half of a character"
    for encoder in (TableEncoder(), TableEncoder().fit(WORDS)):
        with pytest.raises(ValueError, match=said):
            (encoder.transform if hasattr(encoder, "kinds_") else encoder.fit)(table(cells))


def test_tables_of_polars_that_pandas_cannot_take():
    wide = pl.DataFrame({"n": [1, 2, 3], "w": pl.Series([1, 2, 3], dtype=pl.Int128)})
    said = "^the column 'w' of X must be of a type that pandas has, got Int128: cast it"
    with pytest.raises(ValueError, match=said):
        TableEncoder().fit(wide)
    lazy = wide.lazy()
    for fit in (TableEncoder().fit, lambda X: KernelRidge().fit(X, NUMBERS[:3])):
        with pytest.raises(TypeError, match=r"^X must be a table, got a LazyFrame: X\.collect\("):
            fit(lazy)


@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
@pytest.mark.parametrize("dtype", [bool, "boolean", object])
def test_true_and_false_are_the_words_of_the_fit(case, dtype):
    """Without the third word pandas reads a CSV file as true and false."""
    words = [case(word) for word in ("true", "false")]
    encoder = TableEncoder().fit(table([*words, "unknown"] * 2))
    flags = np.array([True, False] * 3)
    expected = encoder.transform(table([words[0], words[1]] * 3))
    np.testing.assert_array_equal(encoder.transform(table(flags).astype({"w": dtype})), expected)
    assert not encoder.notices(table(flags).astype({"w": dtype}))
    assert expected.sum() == NUMBERS.sum() + 6
