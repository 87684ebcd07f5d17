"""What the encoder makes of each kind of column, against values written out by hand."""

from __future__ import annotations

import inspect
import json
import sys
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import fenchel
from fenchel import KernelRidge, QuantileRegressor
from fenchel._validation import constraints_of
from fenchel.tables import TableEncoder, table_encoder

GAPS = {
    "area": [50.0, None, 90.0, 70.0, 60.0],
    "town": ["Bonn", "Köln", None, "Bonn", "Köln"],
    "garden": [True, False, True, None, True],
    "sold": ["1969-12-31", "1970-01-02", None, "1970-02-01", "1969-12-31"],
}


def encoded(frame, **options):
    """A fitted encoder, and the table that it makes, with names."""
    encoder = TableEncoder(**options).set_output(transform="pandas")
    return encoder, encoder.fit_transform(frame)


def column(values, **options):
    """What one column becomes beside a column of numbers."""
    encoder, table = encoded(pd.DataFrame({"n": range(len(values)), "c": values}), **options)
    return encoder, table.drop(columns="n")


def test_every_column_of_a_table_with_holes():
    encoder, table = encoded(pd.DataFrame(GAPS))
    month, weekday = 2 * np.pi / 12, 2 * np.pi / 7
    nan = np.nan
    months = np.array([12, 1, nan, 2, 12]) * month
    weekdays = np.array([3, 5, nan, 7, 3]) * weekday  # Wednesday, Friday, Sunday
    expected = {
        "area": [50, 65, 90, 70, 60],
        "sold.days": [0, 2, 1, 32, 0],
        "area=missing": [0, 1, 0, 0, 0],
        "sold=missing": [0, 0, 1, 0, 0],
        "garden": [1, 0, 1, 1, 1],
        "garden=missing": [0, 0, 0, 1, 0],
        "sold.month_sin": np.nan_to_num(np.sin(months)),
        "sold.month_cos": np.nan_to_num(np.cos(months)),
        "sold.weekday_sin": np.nan_to_num(np.sin(weekdays)),
        "sold.weekday_cos": np.nan_to_num(np.cos(weekdays)),
        "town=Bonn": [1, 0, 0, 1, 0],
        "town=Köln": [0, 1, 0, 0, 1],
        "town=missing": [0, 0, 1, 0, 0],
    }
    assert list(table) == list(expected) == list(encoder.get_feature_names_out())
    np.testing.assert_allclose(table, np.column_stack(list(expected.values())), atol=1e-12)
    assert encoder.groups_.tolist() == [-1] * 10 + [0] * 3
    assert encoder.kinds_ == dict(zip(GAPS, ["number", "category", "flag", "date"], strict=True))
    assert list(encoder.description_) == list(GAPS)


def test_polars_and_pandas_are_the_same():
    pandas, polars = pd.DataFrame(GAPS), pl.DataFrame(GAPS)
    one, other = TableEncoder().fit(pandas), TableEncoder().fit(polars)
    np.testing.assert_array_equal(one.transform(pandas), other.transform(polars))
    np.testing.assert_array_equal(one.transform(polars), other.transform(pandas))
    assert one.description_ == other.description_
    made = clone(one).set_output(transform="polars").fit_transform(polars)
    assert made.columns == list(one.get_feature_names_out())


def test_polars_with_its_own_types():
    frame = pl.DataFrame(GAPS).with_columns(
        pl.col("town").cast(pl.Categorical),
        pl.col("sold").str.to_date(),
        pl.col("area").cast(pl.Int32),
    )
    expected = TableEncoder().fit_transform(pd.DataFrame(GAPS))
    np.testing.assert_array_equal(TableEncoder().fit_transform(frame), expected)


@pytest.mark.slow
def test_numbers_without_holes_pass_bit_for_bit():
    rows = np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 1e-200, 1e9]
    frame = pd.DataFrame(rows, columns=list("abc")).assign(same=3, whole=range(40))
    encoder, table = encoded(frame)
    np.testing.assert_array_equal(table, frame)
    assert set(encoder.description_.values()) == {"number"}
    model = KernelRidge().fit(frame, rows[:, 0])
    piped = make_pipeline(table_encoder(), KernelRidge()).fit(frame, rows[:, 0])
    np.testing.assert_array_equal(piped.predict(frame), model.predict(frame))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([None] * 12, "empty"),
        ([np.nan] * 12, "empty"),
        ([7.0] * 12, "the same in every row"),
        (["Bonn"] * 12, "the same in every row"),
        ([True] * 12, "the same in every row"),
        (["2020-01-01"] * 12, "the same in every row"),
        ([pd.Timestamp("2020-01-01")] * 12, "the same in every row"),
        ([f"H{k}" for k in range(12)], "all values differ"),
        ([f"H{k}" for k in range(11)] + [None], "all values differ"),
    ],
)
def test_what_is_left_out_and_why(values, reason):
    words = ["a", "b"] * 6
    encoder, table = encoded(pd.DataFrame({"w": words, "c": values}))
    assert encoder.description_["c"] == f"left out: {reason}"
    assert list(table) == ["w=a", "w=b"]
    encoder.transform(pd.DataFrame({"w": words}))  # is not missed


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([None, None], "empty"),
        (["a", "a"], "the same in every row"),
        ([f"H{k}" for k in range(12)], "all values differ"),
    ],
)
def test_a_table_of_which_nothing_is_left(values, reason):
    with pytest.raises(ValueError, match=rf"^X has no column to learn from: c \({reason}\)$"):
        TableEncoder().fit(pd.DataFrame({"c": values}))


@pytest.mark.parametrize("n", [12, 200])
def test_decimal_numbers_that_are_text_are_refused(n):
    """They would be left out as names of rows, or be words by their letters."""
    words = pd.Series([f"{1.5 * (k % 150)}" for k in range(n)])
    with pytest.raises(ValueError, match=r"'c' of X holds numbers that are text, such as '0.0'"):
        column(words)
    column(words.astype("category"))
    column([str(k % 150) for k in range(n)])  # whole numbers may be codes


def test_one_category_with_a_hole_is_kept():
    encoder, table = column(["a", None, "a"])
    assert table.to_dict("list") == {"c=a": [1, 0, 1], "c=missing": [0, 1, 0]}
    assert encoder.groups_.tolist() == [-1, 0, 0]


def test_unseen_categories_and_new_holes_are_zeros():
    frame = pd.DataFrame({"c": ["a", "b", "a"], "n": [1.0, 2.0, 5.0], "f": [True, False, True]})
    encoder = TableEncoder().fit(frame)
    new = pd.DataFrame({"f": [None, None], "c": ["z", None], "n": [np.nan, 1.0]})
    assert encoder.transform(new).tolist() == [[2, 1, 0, 0], [1, 1, 0, 0]]
    sentences = encoder.notices(new)
    assert sentences == [
        "1 row has no n, which every row of the fit has: they are given its median",
        "2 rows have no f, which every row of the fit has: they are given its more frequent value",
        "1 row has labels of c that the model has not seen (z): they get 0 in the "
        "columns of all categories",
        "1 row has no c, which every row of the fit has: they get 0 in the columns of "
        "all its categories",
    ]
    assert encoder.notices(frame) == []


def test_dates_before_1970_with_hours_and_time_zones():
    times = pd.Series(pd.to_datetime(["1901-03-01 06:00", "1950-07-02 18:00", "2020-01-01 00:00"]))
    encoder, table = column(times)
    days = (times - times[0]).dt.total_seconds() / 86400
    np.testing.assert_allclose(table["c.days"], days, rtol=1e-15)
    np.testing.assert_allclose(table["c.hour_sin"], [1, -1, 0], atol=1e-12)
    assert encoder.description_["c"].startswith("date, as days since 1901-03-01T06:00:00, month")
    there = times.dt.tz_localize("Europe/Berlin")
    expected = there.dt.tz_convert("UTC").dt.tz_localize(None)
    local, abroad = column(there)
    np.testing.assert_array_equal(abroad["c.days"], column(expected)[1]["c.days"])
    cycles = [name for name in table if name.endswith(("_sin", "_cos"))]
    np.testing.assert_array_equal(abroad[cycles], table[cycles])  # those of the clocks there
    elsewhere = pd.DataFrame({"n": range(3), "c": there.dt.tz_convert("America/New_York")})
    again = local.transform(elsewhere).drop(columns="n")
    pd.testing.assert_frame_equal(again, abroad)
    months = pd.Series(pd.date_range("2019-01-01", periods=24, freq="MS", tz="Europe/Berlin"))
    assert column(months)[0].description_["c"].endswith("T23:00:00, month")  # and no weekday
    # hours of the fit are there in rows without, and the other way round
    assert encoder.transform(pd.DataFrame({"n": [1], "c": ["1901-03-02"]})).shape == (1, 8)


def test_only_cycles_that_vary_are_made():
    encoder, table = column(["03.05.2021", "10.05.2021", "17.05.2021"])
    assert table.to_dict("list") == {"c.days": [0, 7, 14]}
    assert encoder.description_["c"] == "date (%d.%m.%Y), as days since 2021-05-03"


@pytest.mark.parametrize("form", ["%Y-%m", "%Y-%m-%d", None])
def test_months_have_no_weekday(form):
    months = pd.Series(pd.date_range("2015-01-01", periods=30, freq="MS"))
    values = months if form is None else months.dt.strftime(form)
    encoder, _ = column(values)
    assert encoder.description_["c"].endswith("as days since 2015-01-01, month")
    days = [*values[:-1], months[29].replace(day=2) if form is None else "2017-06-02"]
    if form != "%Y-%m":
        encoder, _ = column(days)
        assert encoder.description_["c"].endswith("as days since 2015-01-01, month, weekday")


def test_years_of_two_digits_are_no_dates():
    with pytest.warns(UserWarning, match="holds dates such as '03.01.21' in row 1"):
        encoder, _ = column(["03.01.21", "10.01.21", "03.02.22"])
    assert encoder.kinds_["c"] == "category"


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (["03.05.2021", "10.05.2021", "04.05.2021"], "%d.%m.%Y"),
        (["03/05/2021", "10/05/2021", "04/05/2021"], "%m/%d/%Y"),
        (["03/05/2021", "10/05/2021", "14/05/2021"], "%d/%m/%Y"),
        (["05.13.2021", "05.10.2021", "05.04.2021"], "%m.%d.%Y"),
        (["2021-03-05 10:30", "2021-03-05 11:00", None], "%Y-%m-%d %H:%M"),
        (["May 3, 2021", "June 10, 2021", None], "%B %d, %Y"),
    ],
)
def test_which_formats_words_have(values, form):
    encoder, _ = column(values)
    assert encoder.description_["c"].startswith(f"date ({form}), as days since 2021-0")


def test_formats_of_dates_are_those_of_the_fit():
    encoder, _ = column(["13/02/2020", "03/02/2020", "01/03/2020"])
    new = encoder.transform(pd.DataFrame({"n": [0, 0], "c": ["04/02/2020", "12/02/2020"]}))
    assert new["c.days"].tolist() == [1, 9]
    dated = pd.DataFrame({"n": [0], "c": [pd.Timestamp("2020-02-04")]})
    assert encoder.transform(dated)["c.days"].tolist() == [1]
    with pytest.raises(ValueError, match=r"'c' of X must be a date \(%d/%m/%Y\).*'2020-02-05'"):
        encoder.transform(pd.DataFrame({"n": [0], "c": ["2020-02-05"]}))


@pytest.mark.parametrize(
    "values",
    [["10-20", "20-30"] * 6, ["1.5", "2.5"] * 6, ["2019", "2020"] * 6, ["may", "june"] * 6],
)
def test_words_that_are_no_dates(values):
    encoder, _ = column(values)
    assert encoder.kinds_["c"] == "category"


def test_words_of_many_values_tell_by_their_letters():
    random = np.random.default_rng(0)
    streets = [f"{a} lane {b}" for a in ("long", "short") for b in range(40)]
    values = list(random.permutation(streets * 2))
    encoder, table = column(values)
    assert encoder.kinds_["c"] == "text"
    assert list(table) == [f"c.{k}" for k in range(10)]
    assert encoder.groups_.tolist() == [-1] + [0] * 10
    assert encoder.sources_.tolist() == ["n"] + ["c"] * 10
    new = encoder.transform(
        pd.DataFrame({"n": 0, "c": ["long lane 99", "long lane 98", "short lane 99", None]})
    ).to_numpy()[:, 1:]
    assert np.linalg.norm(new[0] - new[1]) < np.linalg.norm(new[0] - new[2])
    np.testing.assert_array_equal(new[3], 0.0)
    assert column(values, max_categories=80)[1].shape == (160, 80)
    assert column(values, n_components=3)[1].shape == (160, 3)
    again = column(values)[1]
    np.testing.assert_array_equal(again, table)


def test_words_that_name_rows_are_numbered():
    """Where all else of a row is known by its word; and missing words are one of them."""
    words = [None, *(f"street of {k:02}" for k in range(39))]
    frame = pd.DataFrame({"w": words * 2, "size": np.tile(np.sqrt(np.arange(40.0)), 2)})
    encoder = TableEncoder().fit(frame)
    names = encoder.get_feature_names_out().tolist()
    assert names == ["size", *(f"w.{j}" for j in range(10)), "w.number"]
    assert encoder.sources_.tolist() == ["size", *["w"] * 11]
    assert encoder.groups_.tolist() == [-1, *[0] * 11]
    assert encoder.description_["w"].endswith("as an empty word; numbered in another column")
    assert encoder.transform(frame)[:, -1].tolist() == [*range(40), *range(40)]
    new = pd.DataFrame({"w": ["street of 77"], "size": [1.0]})
    assert encoder.transform(new)[0, -1] == -40.0
    for other in (frame.iloc[:79], frame.assign(size=np.sqrt(np.arange(80.0)))):
        assert "w.number" not in TableEncoder().fit(other).get_feature_names_out()


def test_words_of_many_values_with_few_letters():
    values = [f"{a}{a}{a} {b}{b}{b}" for a in "abcdef" for b in "ghijkl"] * 2
    encoder, table = column(values, n_components=50)
    assert encoder.kinds_["c"] == "text"
    assert table.shape[1] <= 50
    assert np.isfinite(table.to_numpy()).all()


def test_groups_are_those_of_the_names():
    frame = pd.DataFrame({"a": ["x", "y", "x"], "n": [1, 2, 4], "b": ["u", "v", "w"]})
    encoder, table = encoded(frame)
    of = dict(zip(table, encoder.groups_, strict=True))
    assert of["n"] == -1
    assert of["a=x"] == of["a=y"] != of["b=u"] == of["b=v"] == of["b=w"]
    assert min(of["a=x"], of["b=u"]) == 0


def test_names_of_the_output_differ():
    frame = pd.DataFrame({"a=x": [1.0, 2.0], "a": ["x", "y"], "part 0": [True, False]})
    encoder, table = encoded(frame)
    assert list(table) == ["a=x", "part 0", "a=x_", "a=y"]
    assert encoder.sources_.tolist() == ["a=x", "part 0", "a", "a"]
    np.testing.assert_array_equal(table, [[1, 1, 1, 0], [2, 0, 0, 1]])


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_empty_words_are_holes(dtype):
    encoder, table = column(pd.Series(["a", "", "b"], dtype=dtype))
    assert list(table) == ["c=a", "c=b", "c=missing"]
    assert table["c=missing"].tolist() == [0, 1, 0]
    assert encoder.description_["c"].endswith("; 1 missing value as one more category")


def test_numbers_as_categories():
    encoder, table = column(pd.Series([3, 1, 3, None], dtype="category"))
    assert list(table) == ["c=1", "c=3", "c=missing"]
    new = encoder.transform(pd.DataFrame({"n": [0, 0], "c": [1.0, 2.0]}))
    assert new[["c=1", "c=3"]].to_numpy().tolist() == [[1, 0], [0, 0]]


def test_missing_columns_are_named_and_others_ignored():
    frame = pd.DataFrame(GAPS)
    encoder = TableEncoder().fit(frame)
    expected = encoder.transform(frame)
    mixed = frame.assign(more="x")[["more", "sold", "town", "area", "garden"]]
    np.testing.assert_array_equal(encoder.transform(mixed), expected)
    with pytest.raises(ValueError, match=r"X lacks the columns area, sold that the model reads"):
        encoder.transform(frame[["garden", "town"]])


def test_all_cells_of_a_row_may_be_missing():
    frame = pd.DataFrame(GAPS)
    encoder = TableEncoder().fit(frame)
    (row,) = encoder.transform(pd.DataFrame({name: [None] for name in GAPS}))
    expected = [65, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1]
    np.testing.assert_allclose(row, expected)


def test_every_parameter_has_a_constraint():
    assert set(inspect.signature(TableEncoder).parameters) == set(constraints_of(TableEncoder))
    for options in ({"max_categories": 0}, {"n_components": 2.5}):
        (name,) = options
        with pytest.raises((TypeError, ValueError), match=f"^{name} must be an integer >= 1, got"):
            TableEncoder(**options).fit(pd.DataFrame({"a": [1]}))
    assert table_encoder(5, 3).get_params() == {"max_categories": 5, "n_components": 3}


@pytest.fixture(scope="module")
def houses():
    """A table with all kinds of columns and holes, and prices that depend on them."""
    random = np.random.default_rng(0)
    n = 80
    frame = pd.DataFrame(
        {
            "area": random.uniform(20, 200, n).round(1),
            "town": random.choice(["Köln", "Bonn", "Trier"], n),
            "garden": random.uniform(size=n) < 0.4,
            "sold": pd.Timestamp("1969-01-01") + pd.to_timedelta(random.integers(0, 900, n), "D"),
            "street": [f"{k} long lane" for k in random.integers(0, 60, n)],
            "id": [f"H{k}" for k in range(n)],
        }
    )
    price = 2 * frame["area"] + 50 * (frame["town"] == "Köln") + random.normal(size=n)
    frame.loc[:9, "area"] = np.nan
    frame.loc[5:12, "town"] = None
    return frame, price


@pytest.mark.slow
def test_pipeline_grid_search_and_weights(houses):
    frame, price = houses
    model = make_pipeline(table_encoder(), KernelRidge(learn=False))
    grid = {"tableencoder__max_categories": [2, 30], "kernelridge__alpha": [1e-4, 1e-2]}
    search = GridSearchCV(model, grid, cv=3).fit(frame, price)
    assert search.best_params_["tableencoder__max_categories"] == 30
    assert cross_val_score(clone(search.best_estimator_), frame, price, cv=3).min() > 0.5
    weight = np.tile([1, 2], 40)
    weighted = make_pipeline(table_encoder(), QuantileRegressor([0.5], tol=1e-9))
    whole = frame.drop(columns=["street", "id"]).ffill().bfill()
    weighted.fit(whole, price, quantileregressor__sample_weight=weight)
    rows = np.repeat(np.arange(80), weight)
    repeated = clone(weighted).fit(whole.iloc[rows], price.to_numpy()[rows])
    np.testing.assert_allclose(weighted.predict(whole), repeated.predict(whole), rtol=1e-4)


@pytest.mark.slow
def test_a_model_file_is_the_model(houses, tmp_path):
    frame, price = houses
    model = make_pipeline(table_encoder(), QuantileRegressor([0.1, 0.9])).fit(frame, price)
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    new = frame.assign(town="Aachen", area=np.nan)
    for rows in (frame, new):
        np.testing.assert_array_equal(same.predict(rows), model.predict(rows))
    for name in ("description_", "kinds_"):
        assert getattr(same[0], name) == getattr(model[0], name)
    np.testing.assert_array_equal(same[0].groups_, model[0].groups_)
    assert same[0].notices(new) == model[0].notices(new) != []
    json.dumps(same[0].description_)


def test_files_with_other_types_in_them_are_refused(houses, tmp_path):
    """Of skrub two classes are built; the others, and functions, are refused by name."""
    path = fenchel.save(TableEncoder().fit(houses[0]), tmp_path / "m.skops")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    text = members["schema.json"].decode()
    for module, name in (("skrub._llm_encoder", "LLMEncoder"), ("posix", "system")):
        new = text.replace('"ToStr"', f'"{name}"').replace('"skrub._to_str"', f'"{module}"')
        assert new != text
        with zipfile.ZipFile(path, "w") as archive:
            for member, content in members.items():
                archive.writestr(member, new if member == "schema.json" else content)
        with pytest.raises(ValueError, match=rf"types that fenchel does not know \({module}"):
            fenchel.load(path)


@pytest.mark.parametrize(
    ("module", "columns", "sentence"),
    [
        (
            "skrub",
            {"c": ["2020-01-01", "2020-01-02"]},
            "dates, and words of many values, need skr",
        ),
        ("skrub", {"c": [f"a {k}" for k in range(40)]}, r"need skrub: pip install 'fenchel\[tab"),
        ("fenchel.tables.reading", {"c": [1]}, r"tables need pandas: pip install 'fenchel\[table"),
    ],
)
def test_missing_packages_are_named(module, columns, sentence, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    if module != "skrub":
        monkeypatch.delattr("fenchel.tables.reading", raising=False)
    with pytest.raises(ImportError, match=sentence):
        TableEncoder().fit(pd.DataFrame(columns))


def test_categories_alone_do_not_need_skrub(monkeypatch):
    monkeypatch.setitem(sys.modules, "skrub", None)
    assert column(["a", "b", "a"])[1].shape == (3, 2)


def test_values_of_a_target_beside_an_arrow_table():
    """They are not the name of a column, and no column is left out for them."""
    pa = pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": np.arange(30.0), "w": list("xyz") * 10})
    y = frame["a"].to_numpy() + 1.0
    found = TableEncoder().fit(pa.table(frame), y)
    np.testing.assert_array_equal(
        TableEncoder().fit(frame).transform(frame), found.transform(frame)
    )
