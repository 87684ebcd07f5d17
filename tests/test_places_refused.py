"""Places of tables and names of columns, where only numbers will do: one sentence each."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fenchel import (
    SVR,
    ConeRegressor,
    ConformalQuantileRegressor,
    ConformalRegressor,
    DensityEstimator,
    FunctionalRegressor,
    GroupLasso,
    HeteroscedasticRegressor,
    KernelRidge,
    Lasso,
    LinearRegression,
    NonCrossingQuantileRegressor,
    NonNegativeRegressor,
    QuantileRegressor,
    Ridge,
)
from fenchel.metrics import d2_pinball_score
from fenchel.online import OnlineLasso, OnlineRidge

IN_MEMORY = [
    Lasso(),
    GroupLasso([0, 1]),
    LinearRegression(),
    Ridge(),
    ConeRegressor(),
    FunctionalRegressor(),
    HeteroscedasticRegressor(),
    NonCrossingQuantileRegressor(),
    NonNegativeRegressor(),
    DensityEstimator(),
    ConformalRegressor(),
    ConformalQuantileRegressor(),
    OnlineLasso(),
    OnlineRidge(),
]
READ = (
    "read the table, as by pandas.read_parquet; QuantileRegressor, ExpectileRegressor, SVR and "
    "KernelRidge fit and predict tables in files"
)
COLUMN = "give its values; names of columns are for fits of tables in files"


@pytest.fixture
def table(tmp_path):
    """The place of a table."""
    X = np.random.default_rng(0).uniform(size=(40, 2))
    place = tmp_path / "rows.parquet"
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": X.sum(axis=1)}).to_parquet(place)
    return place


def says(name, given, remedy):
    sentence = f"{name} must be an array of numbers, got {given!r}: {remedy}"
    return pytest.raises(TypeError, match=f"^{re.escape(sentence)}$")


def rows():
    X = np.random.default_rng(0).uniform(size=(40, 2))
    return X, X.sum(axis=1)


@pytest.mark.parametrize("model", IN_MEMORY, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("kind", [str, Path])
def test_fits_of_rows_in_memory_refuse_places(model, kind):
    with says("X", "rows.parquet", READ):
        model.fit(kind("rows.parquet"), "y")


@pytest.mark.parametrize("model", [Lasso(), QuantileRegressor(), SVR(), ConformalRegressor()])
def test_names_of_columns_are_not_targets_of_arrays(model):
    X, y = rows()
    with says("y", "price", COLUMN):
        model.fit(X, "price")
    with says("sample_weight", "size", COLUMN):
        model.fit(X, y, "size")


@pytest.mark.parametrize("model", [QuantileRegressor(learn=False), KernelRidge(learn=False)])
def test_scores_want_the_targets_themselves(model, table):
    model.set_params(alpha=0.01).fit(table, "y")
    with says("y", "y", COLUMN):
        model.score(table, "y")
    assert model.score(table, pd.read_parquet(table)["y"]) > 0.5


def test_predictions_and_metrics_refuse_places():
    X, y = rows()
    model = Lasso(alpha=0.01).fit(X, y)
    with says("X", "rows.parquet", READ):
        model.predict("rows.parquet")
    with says("y_true", "y", COLUMN):
        d2_pinball_score("y", y[:, None], levels=[0.5])
    held_out = ConformalRegressor(KernelRidge(alpha=0.01, learn=False), method="cv+").fit(X, y)
    with says("X", "rows.parquet", READ):
        held_out.predict_interval(Path("rows.parquet"))


def test_weights_are_another_column_than_the_target(table):
    sentence = "^sample_weight must be another column than y, got 'y' for both$"
    with pytest.raises(ValueError, match=sentence):
        KernelRidge(alpha=0.01, learn=False).fit(table, "y", "y")


UNITS = {
    "datetime64[us]": ("dates", "days since the first"),
    "timedelta64[us]": ("durations", "y / np.timedelta64(1, 'D')"),
}


@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("wrap", [np.asarray, pd.Series, lambda y: pd.DataFrame({"y": y})])
def test_dates_and_durations_are_no_targets(kind, wrap):
    """They would be counts of microseconds or of nanoseconds, as they happen to be stored."""
    given, such_as = UNITS[kind]
    y = wrap(np.arange(40).astype(kind))
    sentence = (
        f"y must be an array of numbers, got {given} ({kind}): give them as numbers in a unit of "
        f"your choice, such as {such_as}"
    )
    for model in (KernelRidge(), QuantileRegressor(), Lasso(), NonNegativeRegressor()):
        with pytest.raises(TypeError, match=f"^{re.escape(sentence)}$"):
            model.fit(rows()[0], y)


ENCODER = (
    "; fenchel.tables.TableEncoder, as the first step of a pipeline, makes numbers of words, "
    "dates and missing values"
)


@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("beside", [True, False])
def test_dates_and_durations_are_no_features(kind, beside):
    """Beside numbers or alone, in a fit and in predictions."""
    X = pd.DataFrame({"when": np.arange(40).astype(kind)})
    if beside:
        X.insert(0, "a", np.arange(40.0))
    given, such_as = UNITS[kind]
    unit = f": give them as numbers in a unit of your choice, such as {such_as}"
    remedy = ENCODER if given == "dates" else unit.replace(" y ", " column ")
    said = f"X must be an array of numbers, got {given} ({kind}){remedy}"
    y = np.arange(40.0)
    for model in (KernelRidge(), Lasso()):
        with pytest.raises(TypeError) as found:
            model.fit(X, y)
        assert str(found.value) == said
    model = KernelRidge(learn=False).fit(X.apply(lambda column: column.astype("int64")), y)
    with pytest.raises(TypeError) as found:
        model.predict(X)
    assert str(found.value) == said


@pytest.mark.parametrize("kind", [object, "period[D]", "datetime64[us, UTC]"])
def test_dates_in_other_forms_want_an_encoder(kind):
    when = pd.Series(pd.date_range("2024-01-01", periods=40))
    if kind == "period[D]":
        when = when.dt.to_period("D")
    else:
        when = when.dt.tz_localize("UTC") if "UTC" in str(kind) else when.astype(kind)
    with pytest.raises(TypeError, match=r"^X must be an array of numbers, got dates") as found:
        KernelRidge().fit(pd.DataFrame({"a": np.arange(40.0), "when": when}), np.arange(40.0))
    assert str(found.value).endswith(ENCODER)


@pytest.mark.parametrize("durations", [pd.to_timedelta, pd.Series])
def test_durations_that_are_objects_want_a_unit(durations):
    """An encoder refuses them too."""
    given = durations([timedelta(days=k) for k in range(40)]).astype(object)
    X = pd.DataFrame({"a": np.arange(40.0), "lasted": given})
    said = "{} must be an array of numbers, got durations: give them as numbers in a unit of your "
    said += "choice, such as {} / np.timedelta64(1, 'D')"
    with pytest.raises(TypeError, match=f"^{re.escape(said.format('X', 'column'))}$"):
        KernelRidge().fit(X, np.arange(40.0))
    with pytest.raises(TypeError, match=f"^{re.escape(said.format('y', 'y'))}$"):
        KernelRidge().fit(X[["a"]], np.asarray(given))
    words = pd.DataFrame({"unit": ["timedelta"] * 40})  # the word is no duration
    with pytest.raises(ValueError, match=r"^X must be .* 'timedelta'.*; fenchel.tables.Table"):
        KernelRidge().fit(words, np.arange(40.0))


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("kind", ["Date", "Datetime", "Duration"])
def test_dates_and_durations_of_polars_are_refused(kind, alone):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    days = polars.Series("when", np.arange(40)).cast(polars.Int32).cast(polars.Date)
    when = days - days[0] if kind == "Duration" else days.cast(getattr(polars, kind))
    X = polars.DataFrame({"when": when} if alone else {"a": np.arange(40.0), "when": when})
    given = "durations" if kind == "Duration" else "dates"
    with pytest.raises(TypeError, match=rf"^X must be an array of numbers, got {given} \({kind}"):
        KernelRidge().fit(X, np.arange(40.0))
    with pytest.raises(TypeError, match=rf"^y must be an array of numbers, got {given} \({kind}"):
        KernelRidge().fit(np.arange(40.0)[:, None], when)


def test_names_of_columns_that_repeat_are_named():
    X = pd.DataFrame(np.arange(80.0).reshape(40, 2), columns=["a", "a"])
    with pytest.raises(ValueError, match=r"^X must be an array of numbers: .* 'a' 2 times$"):
        KernelRidge().fit(X, np.arange(40.0))
