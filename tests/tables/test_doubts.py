"""Words that may be meant as numbers or dates are warned of, and months are dates."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from fenchel.cli import main
from fenchel.tables import TableEncoder

N = 60
AREA = np.linspace(1.0, 9.0, N)
UNITS = {
    "5 EUR": [f"{k % 7} EUR" for k in range(N)],
    "1.5 km/h": [f"{k / 4} km/h" for k in range(N)],
    "2,5kg": [f"{k},5kg" for k in range(N)],
    "CHF 5": [f"CHF {k}" for k in range(N)],
    "3 m²": [f"{k} m²" for k in range(N)],
    "nearly all": ["unknown", None, *(f"{k % 9} km" for k in range(N - 2))],
}
NO_DOUBTS = {
    "streets": [f"{k} {'Main' if k % 2 else 'High'} St" for k in range(N)],
    "house numbers": [f"{k}{'abc'[k % 3]}" for k in range(N)],
    "types": [f"Typ {k % 5}" for k in range(N)],
    "half": [f"{k % 9} km" if k % 2 else "far" for k in range(N)],
    "two values": ["1 km" if k % 2 else "2 km" for k in range(N)],
    "versions": [f"{1 + k % 3}.{k % 60}.{60 + k % 40}" for k in range(N)],
    "quarters alone": [f"Q{1 + k % 4}" for k in range(N)],
    "rooms": [f"Room {k}" for k in range(N)],
    "codes": [f"ABC{k}" for k in range(N)],
    "scales": [f"1/{1000 * (1 + k % 5)}" for k in range(N)],
}
ODD_NUMBERS = {
    "5-": [f"{k}.5-" if k % 2 else f"{k}-" for k in range(N)],
    "(5)": [f"({k}.5)" for k in range(N)],
    "minus": [f"\u2212{k}" for k in range(N)],
    "half of them": [f"{k}" if k % 2 else f"({k})" for k in range(N)],
    "underscores": [f"1_{k:03}" for k in range(N)],
    "spaces": [f"{1 + k % 9} {k:03},5" for k in range(N)],
    "times of day": [f"{k % 24}:{k % 60:02}" for k in range(N)],
    "durations of pandas": [str(pd.Timedelta(minutes=61 * (k - 2))) for k in range(N)],
    "durations of Python": [f"{k % 3 + 2} days, {k % 24}:{k:02}:05.25" for k in range(N)],
    "Fortran": [f"{k}.25D0" for k in range(N)],
}
DAYS = pd.Timestamp("2018-01-05") + pd.to_timedelta(31 * np.arange(N), "D")
SHORT_DATES = {
    "day first": DAYS.strftime("%d.%m.%y"),
    "month first": DAYS.strftime("%m/%d/%y"),
    "year first": DAYS.strftime("%y-%m-%d"),
    "with hours": DAYS.strftime("%d.%m.%y 08:30"),
    "month in letters": DAYS.strftime("%d-%b-%y"),
    "months": DAYS.strftime("%b %Y"),
    "whole names of months": DAYS.strftime("%B %Y"),
    "quarters": [f"{day.year}-Q{day.quarter}" for day in DAYS],
}


def encoded(words):
    return TableEncoder().fit(pd.DataFrame({"area": AREA, "word": words}))


@pytest.mark.parametrize("name", UNITS)
def test_numbers_with_a_unit_are_warned_of(name):
    row = 3 if name == "nearly all" else 1
    said = (
        f"the column 'word' holds numbers with a unit, such as '.*' in row {row}, and is not read"
    )
    with pytest.warns(UserWarning, match=said):
        encoder = encoded(UNITS[name])
    assert encoder.kinds_.get("word") != "number"


@pytest.mark.parametrize("name", ODD_NUMBERS)
def test_numbers_that_are_written_in_an_odd_way_are_warned_of(name):
    words = ODD_NUMBERS[name]
    said = f"the column 'word' holds numbers such as {words[0]!r} in row 1, and is not read as"
    with pytest.warns(UserWarning, match=re.escape(said)):
        encoded(words)


@pytest.mark.parametrize("name", SHORT_DATES)
def test_dates_without_a_day_or_a_whole_year_are_warned_of(name):
    words = list(SHORT_DATES[name])
    said = f"the column 'word' holds dates such as {words[0]!r} in row 1, and is not read as dates"
    with pytest.warns(UserWarning, match=re.escape(said)):
        assert encoded(words).kinds_.get("word") != "date"


@pytest.mark.parametrize(("one", "other"), [("Bonn", "Bonn "), ("yes", "Yes"), (" a", "A")])
def test_labels_that_may_be_the_same_are_warned_of(one, other):
    words = [one if k % 3 else "x" if k % 2 else other for k in range(N)]
    said = f"the column 'word' holds {words[0]!r} and {one!r}, which are different labels"
    with pytest.warns(UserWarning, match=re.escape(said)):
        assert encoded(words).kinds_["word"] == "category"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoded([f"{word} {k % 50}" for k, word in enumerate(words)])  # read by their letters
        encoded([f"{'Rr'[k % 2]}{k // 2}" for k in range(N)])  # names of rows


@pytest.mark.skipif(int(pd.__version__.split(".")[0]) < 3, reason="pandas 2 has years from 1677")
def test_dates_may_be_years_apart():
    words = ["0001-01-01", "9999-12-31", "2020-01-01"] * 20
    assert encoded(words).kinds_["word"] == "date"


@pytest.mark.parametrize("name", NO_DOUBTS)
def test_other_words_are_not(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encoded(NO_DOUBTS[name]).kinds_.get("word", "category") in ("category", "text")
        encoded(pd.Series(UNITS["5 EUR"], dtype="category"))


def test_dates_in_several_formats_are_warned_of():
    days = [f"2020-{k % 12 + 1:02}-15" if k % 2 else f"15.{k % 12 + 1:02}.2020" for k in range(N)]
    said = "several formats, such as '15.01.2020' in row 1 and '2020-02-15' in row 2, and is not"
    with pytest.warns(UserWarning, match=said):
        assert encoded(days).kinds_["word"] == "category"


@pytest.mark.parametrize("form", ["{m:02}/{y}", "{m}/{y}", "{m:02}-{y}", "{y}-{m:02}"])
def test_months_are_dates(form):
    months = [(2015 + k // 12, k % 12 + 1) for k in range(N)]
    encoder = encoded([form.format(m=m, y=y) for y, m in months])
    assert encoder.kinds_["word"] == "date"
    new = pd.DataFrame({"area": [1.0, 1.0], "word": [form.format(m=m, y=2030) for m in (3, 4)]})
    names = list(encoder.get_feature_names_out())
    days = encoder.transform(new)[:, names.index("word.days")]
    first = pd.Timestamp("2015-01-01")
    expected = [(pd.Timestamp(f"2030-0{m}-01") - first).days for m in (3, 4)]
    assert days.tolist() == expected


def test_a_few_words_among_months_are_named():
    months = [f"{k % 12 + 1:02}/{2015 + k // 12}" for k in range(N)]
    with pytest.raises(
        ValueError, match=r"holds dates \(%m/%Y\) but for one cell 'soon' in row 5"
    ):
        encoded([*months[:4], "soon", *months[5:]])


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_the_command_line_says_so_once(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"area": AREA, "price": UNITS["5 EUR"], "rent": AREA})
    frame.to_csv("flats.csv", index=False)
    options = ["--no-learn"] if command == "fit" else []
    assert main([command, "flats.csv", "--target", "rent", *options, "--quiet"]) == 0
    said = "warning: the column 'price' holds numbers with a unit, such as '0 EUR' in row 1"
    assert capsys.readouterr().err.count(said) == 1
