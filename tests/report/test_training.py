"""The record by which reports recognize rows of the fit, and what they say of these."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer as SomeColumns
from sklearn.pipeline import make_pipeline

from fenchel import KernelRidge, QuantileRegressor
from fenchel.report import Training
from fenchel.tables import TableEncoder
from report_pages import Page, draw, measured


def test_rows_are_recognized_by_what_the_model_reads():
    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.normal(size=40), "town": ["x", "y"] * 20, "same": 1})
    X["flag"] = np.where(X["a"] > 0, True, None)
    X.loc[:5, "a"] = np.nan
    y = pd.Series(random.normal(size=40))
    model = make_pipeline(TableEncoder(), KernelRidge(learn=False)).fit(X, y)
    record = Training.from_dict(Training.of(model, X, y).to_dict())
    other = X[["flag", "town", "a"]].assign(more=2.0)  # as the encoder takes it
    other["flag"] = X["flag"].astype("boolean")
    other["a"] = X["a"].mask(X["a"].isna(), -np.float64("nan"))  # that of 0 / 0
    assert measured(model, other, y, training=record).facts.kind_of_rows == "training"
    shuffled = measured(model, other[::-1], y[::-1], training=record).facts
    assert (shuffled.n_seen, shuffled.same_rows) == (40, False)
    regrouped = make_pipeline(SomeColumns([("a", "passthrough", ["a"])]), KernelRidge(learn=False))
    whole, y = X.fillna({"a": 0.0}), y.to_numpy()
    record = Training.of(regrouped.fit(whole, y), whole, y)
    facts = measured(regrouped, whole[["a"]], y, training=record).facts
    assert (facts.kind_of_rows, facts.same_rows) == ("unknown", False)  # as columns are missing


def test_a_part_of_the_training_rows_is_recognized_by_its_dates():
    days = pd.date_range("2021-01-01", periods=40, freq="12h")
    X = pd.DataFrame({"a": np.arange(40.0), "day": days})
    y = np.sin(X["a"].to_numpy())
    model = make_pipeline(TableEncoder(), KernelRidge(learn=False)).fit(X, y)
    record = Training.of(model, X, y)
    assert record.seen(X, y).all()
    assert record.seen(X[::2], y[::2]).all()  # all of them midnights
    assert record.seen(X.assign(day=days.as_unit("ns")), y).all()
    assert record.seen(X.assign(day=days.strftime("%Y-%m-%dT%H:%M:%S.000")), y).all()
    late = X.assign(day=[*days[:-1], days[-1] + pd.Timedelta("2ms")])
    assert record.seen(late, y).tolist() == [True] * 39 + [False]


@pytest.mark.parametrize(("offsets", "there"), [("held_out", "too far apart"), (None, "better")])
def test_calibration_on_training_rows_says_how_it_differs(offsets, there):
    X, y = draw(150, 0)
    model = QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-5, refit_offsets=offsets).fit(X, y)
    page = Page(measured(model, X, y, training=(X, y)).html)
    (said,) = re.findall(r"Training rows do not show this: ([^.]*)", page.sections["calibration"])
    assert there in said
    shares = np.mean(y.to_numpy()[:, None] <= model.predict(X), axis=0)
    assert (np.ptp(shares) > 0.83) == (offsets == "held_out")  # where 0.8 is right
