"""Intervals on the page of a report: against their definitions, and what is warned of."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom, binom
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import SVR, KernelRidge, QuantileRegressor
from fenchel.model_selection import ConformalQuantileRegressor, ConformalRegressor
from fenchel.positive import HeteroscedasticRegressor
from fenchel.report import make_report
from report_pages import Page, draw, measured, table

RIDGE = KernelRidge(alpha=1e-2, learn=False)


@pytest.fixture(scope="module")
def rows():
    return draw(200, 0), draw(120, 1)


def outside(page):
    return [item for item in page.items if item.startswith("Intervals for")]


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_calibrated_quantiles_are_held_against_their_coverage(rows, method):
    inside = QuantileRegressor(alpha=1e-3, learn=False)
    wrapper = ConformalQuantileRegressor(inside, method=method, coverage=0.8)
    model = make_pipeline(StandardScaler(), wrapper).fit(*rows[0])
    page, (X, y) = Page(measured(model, *rows[1], training=rows[0]).html), rows[1]
    Z = model[:-1].transform(X)
    (low, high), m = wrapper.predict_interval(Z).T, wrapper.n_calibration_
    held = np.mean((low <= y) & (y <= high))
    (shares,) = table(page, "Share of 120 held-out rows").values()
    rank = {50: 41, 200: 161}[m]  # 0.8 (m + 1), rounded up
    chance = betabinom(120, rank, m + 1 - rank).ppf([0.025, 0.975]) / 120
    assert shares[0] == [held]
    assert shares[1] == pytest.approx(chance)
    assert page.facts["calibrated by"] == method
    assert page.facts["rows that calibrate"] == str(m) == {"split": "50", "cv+": "200"}[method]
    far = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    for value in (np.mean(high - low), np.mean(high - low + far / 0.1)):
        assert any(value == pytest.approx(number) for number in page.numbers["intervals"])
    levels = table(page, "Levels of the model inside")
    curves = wrapper.estimator_.predict(Z)
    for level, curve in zip((0.1, 0.5, 0.9), curves.T, strict=True):
        (observed,), (loss,) = levels[f"{100 * level:g} %"]
        residual = y - curve
        expected = np.mean(np.maximum(level * residual, (level - 1) * residual))
        assert (observed, loss) == (np.mean(y <= curve), pytest.approx(expected))
    assert page.title == "Calibrated intervals of effect"
    assert page.facts["around"] == "QuantileRegressor"
    assert "which intervals were calibrated around" in page.sections["certificate"]
    assert "importances" in page.sections
    assert outside(page) == []


@pytest.mark.slow
def test_pictures_say_that_there_are_intervals(rows):
    model = ConformalRegressor(RIDGE, coverage=0.7).fit(*rows[0])
    page = Page(make_report(model, *rows[1], training=rows[0]).html)
    of_dose = [image["alt"] for image in page.images if " along dose" in image["alt"]]
    assert of_dose == [
        "predictions of effect along dose, 70 % intervals as a band, over the rows as points"
    ]


@pytest.mark.parametrize(("shift", "than"), [(0.0, None), (5.0, "fewer"), (None, "more")])
def test_coverage_outside_the_band_is_warned_of(rows, shift, than):
    model = ConformalRegressor(RIDGE, coverage=0.8).fit(*rows[0])
    X, y = rows[1]
    y = model.predict(X) if shift is None else y + shift
    page = Page(measured(model, X, y, training=rows[0]).html)
    warned = outside(page)
    assert len(warned) == (than is not None)
    if than is not None:
        assert warned[0].endswith(f"of these rows, {than} than chance explains.")
    own = Page(measured(model, rows[0][0], model.predict(rows[0][0]), training=rows[0]).html)
    assert len(outside(own)) == 1
    training = rows[0][0], model.predict(rows[0][0])
    assert outside(Page(measured(model, *training, training=training).html)) == []


@pytest.mark.slow
def test_predicted_deviations_have_intervals_that_were_not_calibrated(rows):
    model = HeteroscedasticRegressor().fit(*rows[0])
    page = Page(measured(model, *rows[1], training=rows[0]).html)
    (shares,) = table(page, "Share of 120 held-out rows").values()
    low, high = model.predict_interval(rows[1][0], 0.8).T
    assert shares[0] == [np.mean((low <= rows[1][1]) & (rows[1][1] <= high))]
    assert shares[1] == pytest.approx(binom(120, 0.8).ppf([0.025, 0.975]) / 120)
    assert "they were not calibrated" in page.sections["intervals"]
    assert "rows that calibrate" not in page.facts


@pytest.mark.slow
@pytest.mark.parametrize(("side", "level", "column"), [("lower", 0.2, 0), ("upper", 0.8, 1)])
def test_one_end_has_a_pinball_loss_and_no_width(rows, side, level, column):
    model = ConformalRegressor(SVR(learn=False), coverage=0.8, side=side).fit(*rows[0])
    page = Page(make_report(model, *rows[1], training=rows[0]).html)
    residual = rows[1][1] - model.predict_interval(rows[1][0])[:, column]
    loss = np.mean(np.maximum(level * residual, (level - 1) * residual))
    assert float(page.facts[f"pinball loss of the {side} end"]) == pytest.approx(loss, rel=1e-3)
    assert "mean width" not in page.facts
    assert all("infinite" not in item for item in page.items)
    assert any("80 % intervals as one end" in image["alt"] for image in page.images)


@pytest.mark.slow
def test_infinite_intervals_are_a_warning(rows):
    model = ConformalRegressor(RIDGE, coverage=0.999)
    with pytest.warns(UserWarning, match="every interval is infinitely wide"):
        model.fit(*rows[0])
    page = Page(make_report(model, *rows[1], training=rows[0]).html)
    (found,) = [item for item in page.items if item.startswith("Intervals of")]
    assert found == (
        "Intervals of 120 of 120 rows are infinitely wide: a coverage of 99.9 % needs more "
        "calibration rows than 50."
    )


def test_scores_of_intervals_are_of_unseen_rows(rows):
    X, y = (np.concatenate([np.asarray(a), np.asarray(b)]) for a, b in zip(*rows, strict=True))
    model = ConformalRegressor(RIDGE, coverage=0.8).fit(X[:200], y[:200])
    page = Page(measured(model, X, y, training=(X[:200], y[:200])).html)
    (shares,) = table(page, "Share of 120 held-out rows").values()
    low, high = model.predict_interval(X[200:]).T
    assert shares[0] == [np.mean((low <= y[200:]) & (y[200:] <= high))]


@pytest.mark.slow
def test_intervals_that_cannot_be_measured_are_said_to_be_so(rows):
    (X, y), new = rows
    weighted = ConformalRegressor(RIDGE).fit(X, y, sample_weight=np.ones(len(y)))
    transformed = TransformedTargetRegressor(
        ConformalRegressor(RIDGE), func=np.sinh, inverse_func=np.arcsinh
    ).fit(X, y)
    for model in (weighted, transformed):
        page = Page(make_report(model, *new, training=rows[0]).html)
        assert "intervals" not in page.sections
        assert sum("are not measured" in item for item in page.items) == 1


def test_no_likelihood_of_a_transformed_target_in_the_units_of_another(rows):
    (X, y), new = rows
    inside = HeteroscedasticRegressor(learn=False, alpha=1e-2)
    model = TransformedTargetRegressor(inside, func=np.arcsinh, inverse_func=np.sinh).fit(X, y)
    report = measured(model, *new, training=rows[0])
    assert report.facts.log_likelihood is None
    assert "log-likelihood" not in report.html
    assert measured(model.regressor_, *new).facts.log_likelihood is not None


def test_models_of_others_inside(rows):
    trees = HistGradientBoostingRegressor(loss="quantile", max_iter=5)
    model = ConformalQuantileRegressor(trees, coverage=0.8).fit(*rows[0])
    page = Page(measured(model, *rows[1], training=rows[0]).html)
    assert list(table(page, "Levels of the model inside")) == ["10 %", "50 %", "90 %"]
    assert "certificate" not in page.sections
