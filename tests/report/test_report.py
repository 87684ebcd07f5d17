"""Reports: every number on the page against its definition, and whose rows they are of."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm
from sklearn.base import clone
from sklearn.compose import ColumnTransformer as SomeColumns
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression as SomeoneElses
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import SVR, ExpectileRegressor, KernelRidge, Lasso, QuantileRegressor, Ridge
from fenchel.kernels import Gaussian, Laplacian
from fenchel.metrics import total_effects
from fenchel.model_selection import ConformalQuantileRegressor
from fenchel.online import OnlineRidge, OnlineSVR
from fenchel.positive import HeteroscedasticRegressor, NonCrossingQuantileRegressor
from fenchel.report import Training, make_report
from fenchel.tables import TableEncoder
from report_pages import Page, draw, measured, table

LEVELS = [0.9, 0.1, 0.5]


@pytest.fixture(scope="module")
def rows():
    return draw(150, 0), draw(120, 1)


@pytest.fixture(scope="module")
def quantiles(rows):
    return QuantileRegressor(LEVELS, alpha=1e-3, learn=False).fit(*rows[0])


@pytest.fixture(scope="module")
def held_out(quantiles, rows):
    report = make_report(quantiles, *rows[1], training=rows[0], data_name="new.csv")
    return report, Page(report.html)


def pinball(r, level):
    return np.maximum(level * r, (level - 1) * r)


@pytest.mark.slow
def test_scores_are_mean_losses_beside_constants_of_the_fit(held_out, quantiles, rows):
    _, page = held_out
    (_, past), (X, y) = rows
    scores = table(page, "Scores on 120 held-out rows")
    for j, level in enumerate(LEVELS):
        (model,), (constant,), (explained,), (gain, error), (value,) = scores[
            f"pinball loss at {100 * level:g} %"
        ]
        mine = pinball(y - quantiles.predict(X)[:, j], level)
        assert np.mean(past <= value) >= level - 1e-12  # a quantile of the rows of the fit
        assert np.mean(past < value) <= level + 1e-12
        theirs = pinball(y - value, level)
        assert model == pytest.approx(mine.mean(), rel=1e-12)
        assert constant == pytest.approx(theirs.mean(), rel=1e-12)
        assert gain == pytest.approx(theirs.mean() - mine.mean(), rel=1e-9)
        assert error == pytest.approx(np.std(theirs - mine, ddof=1) / np.sqrt(120), rel=1e-9)
        assert explained == pytest.approx(1 - mine.mean() / theirs.mean(), rel=1e-9)


def test_pictures_are_along_the_columns_that_are_read_most():
    X = np.random.default_rng(0).normal(size=(60, 5))
    y = X[:, 4] + 0.5 * X[:, 2]
    model = KernelRidge(kernel=Gaussian(3.0), alpha=1e-3).fit(X, y)
    page = Page(make_report(model, X, y).html)
    along = re.findall(r"along (x\d), over", " ".join(image["alt"] for image in page.images))
    assert along[:2] == ["x4", "x2"]
    assert len(along) == 3


def test_calibration_is_shares_with_the_binomial_band(held_out, quantiles, rows):
    _, page = held_out
    X, y = rows[1]
    shares = table(page, "Shares of 120 held-out rows")
    assert list(shares) == ["10 %", "50 %", "90 %"]
    for level in LEVELS:
        observed, band, _ = shares[f"{100 * level:g} %"]
        assert observed == [np.mean(y <= quantiles.predict(X)[:, LEVELS.index(level)])]
        assert band == list(binom.ppf([0.025, 0.975], 120, level) / 120)


@pytest.mark.parametrize("shift", [5.0, 0.0, -0.4])
def test_quantiles_outside_the_band_are_warned_of(quantiles, rows, shift):
    X, y = rows[1]
    page = Page(measured(quantiles, X, y + shift, training=rows[0]).html)
    shares = np.mean((y + shift).to_numpy()[:, None] <= quantiles.predict(X), axis=0)
    low, high = (binom.ppf(q, 120, LEVELS) / 120 for q in (0.025, 0.975))
    outside = {f"{100 * t:g} %" for t in np.array(LEVELS)[(shares < low) | (shares > high)]}
    assert shift == 0.0 or outside
    items = [item for item in page.items if item.startswith("Not calibrated")]
    assert set(re.findall(r"(\d+ %) \(is", "".join(items))) == outside
    beaten = any(item.startswith("The model is no better than a constant") for item in page.items)
    assert beaten == (shift == 5.0)


@pytest.mark.slow
def test_crossings_are_counted(rows):
    model = QuantileRegressor([0.4, 0.45, 0.5], alpha=1e-6, level_gamma=np.inf).fit(*rows[0])
    X, y = rows[1]
    curves = model.predict(X)
    count = int(np.sum(np.any(np.diff(curves, axis=1) < 0, axis=1)))
    assert 0 < count < 120
    page = Page(measured(model, X, y, training=rows[0]).html)
    found, share, largest = page.numbers["crossings"]
    assert (found, share) == (count, count / 120)
    assert largest == pytest.approx(-np.diff(curves, axis=1).min())
    assert "This model does not prevent crossings" in page.sections["crossings"]
    assert any(f"cross at {count} of 120 rows" in item for item in page.items)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"level_gamma": 0.0}, "cross nowhere"),
        ({"non_crossing": "train"}, "guaranteed at the rows of the fit"),
    ],
)
def test_what_forbids_crossing_is_said(rows, parameters, sentence):
    model = QuantileRegressor([0.2, 0.5, 0.8], alpha=1e-3, **parameters).fit(*rows[0])
    page = Page(measured(model, *rows[0], training=rows[0]).html)
    assert page.numbers["crossings"][0] == 0
    assert sentence in page.sections["crossings"]


def test_families_that_cannot_cross_are_known(rows):
    model = NonCrossingQuantileRegressor([0.2, 0.5, 0.8], learn=False).fit(*rows[0])
    page = Page(measured(model, *rows[1], training=rows[0]).html)
    assert page.numbers["crossings"][0] == 0
    assert "cannot be negative, so that the curves cross nowhere" in page.sections["crossings"]
    assert "levels of its quantiles" in page.facts


def test_certificate_in_words_is_no_smaller_than_the_gap(held_out, quantiles):
    _, page = held_out
    text = page.sections["certificate"]
    parts = float(re.search(r"at most one part in ([\d,]+) of", text)[1].replace(",", ""))
    gap = quantiles.certificate_.relative_gap
    assert gap <= 1 / parts <= 1.2 * gap
    assert page.numbers["certificate"][0] == gap
    assert page.numbers["certificate"][2:] == [
        quantiles.certificate_.primal,
        quantiles.certificate_.dual,
    ]


def test_far_rows_are_those_beyond_the_spacing_of_kept_rows(rows):
    model = KernelRidge(kernel=Gaussian(length_scale=[0.05, 1.0]), alpha=1e-4).fit(*rows[0])
    X, y = rows[1]
    moved = X.copy()
    moved.iloc[:40, 0] += 10.0
    page = Page(measured(model, moved, y, training=rows[0]).html)
    scale, kept = np.array([0.05, 1.0]), model.feature_map_.landmarks_

    def distance(Z, k):
        near = NearestNeighbors(n_neighbors=k).fit(kept / scale).kneighbors(Z / scale)[0][:, -1]
        return np.sqrt(2.0 - 2.0 * np.exp(-0.5 * near**2))

    threshold = np.quantile(distance(kept, 2), 0.99, method="higher")
    expected = np.mean(distance(moved.to_numpy(), 1) > threshold)
    assert expected >= 40 / 120
    assert page.numbers["extrapolation"] == [expected]
    assert any(item.startswith("Extrapolation") for item in page.items)


def test_rows_that_were_measured_twice_do_not_make_all_others_far():
    random = np.random.default_rng(0)
    X, new = random.normal(size=(100, 2)), random.normal(size=(60, 2))
    y, kernel = random.normal(size=200), Laplacian(length_scale=1.0)
    twice = KernelRidge(kernel=kernel, alpha=1e-2).fit(np.vstack([X, X]), y)
    once = KernelRidge(kernel=kernel, alpha=1e-2).fit(X, y[:100])
    of_twice, of_once = (measured(model, new, y[:60]).facts.far for model in (twice, once))
    assert of_twice == of_once
    assert of_once.share < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("as_array", [True, False])
def test_rows_of_the_fit_are_recognized(quantiles, rows, as_array):
    (X, y), (new, targets) = rows
    if as_array:
        X, y, new = X.to_numpy(), y.to_numpy(), new.to_numpy()
        quantiles = QuantileRegressor(LEVELS, alpha=1e-3).fit(X, y)
    record = Training.from_dict(Training.of(quantiles, X, y, "old.csv").to_dict())
    order = np.random.default_rng(0).permutation(150)
    shuffled = measured(
        quantiles,
        pd.DataFrame(X).iloc[order] if not as_array else X[order],
        np.asarray(y)[order],
        training=record,
    )
    assert (shuffled.facts.kind_of_rows, shuffled.facts.n_seen) == ("training", 150)
    assert not shuffled.facts.same_rows
    same = make_report(quantiles, X, y, training=record)
    assert same.facts.same_rows
    page = Page(same.html)
    assert "not held-out" in page.sections[""]
    assert any("the support vectors marked" in image["alt"] for image in page.images)
    other_target = measured(quantiles, X, np.asarray(y) + 1e-9, training=record)
    assert other_target.facts.kind_of_rows == "held-out"
    unknown = measured(quantiles, new, targets)
    assert unknown.facts.kind_of_rows == "unknown"
    assert any("not known" in item for item in Page(unknown.html).items)


def test_scores_are_of_unseen_rows_where_some_were_seen(quantiles, rows):
    (X, y), (new, targets) = rows
    both = pd.concat([X[:50], new]), pd.concat([y[:50], targets])
    report = measured(quantiles, *both, training=rows[0])
    assert (report.facts.n_seen, report.facts.kind_of_rows) == (50, "held-out")
    alone = measured(quantiles, new, targets, training=rows[0])
    assert report.facts.scores == alone.facts.scores
    assert report.facts.calibration == alone.facts.calibration
    few = pd.concat([X[:1], new[:5]]), pd.concat([y[:1], targets[:5]])
    mixed = measured(quantiles, *few, training=rows[0])
    assert mixed.facts.kind_of_rows == "mixed"
    assert "Not held-out: the fit has seen 1 of the 6 rows." in Page(mixed.html).items
    assert "Scores on 6 rows, 1 of them of the fit" in mixed.html


def test_levels_beyond_the_rows_are_warned_of(rows):
    model = QuantileRegressor([0.05, 0.5, 0.95], alpha=1e-3).fit(*rows[0])  # 150 · 0.05 = 7.5
    page = Page(measured(model, *rows[1], training=rows[0]).html)
    assert any(item.startswith("Levels 5 %, 95 %: the fit has 150 rows") for item in page.items)
    enough = QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-3).fit(*rows[0])
    page = Page(measured(enough, *rows[1], training=rows[0]).html)
    assert not any(item.startswith("Level") for item in page.items)


@pytest.mark.slow
def test_unfinished_and_truncated_fits_are_warned_of(rows):
    X, y = rows[0]
    with pytest.warns(UserWarning, match="leaves out"):
        model = KernelRidge(kernel=Gaussian(0.1), rank=5, features="fourier").fit(X, y)
    page = Page(measured(model, X, y).html)
    assert any(item.startswith("The kernel was truncated") for item in page.items)
    assert not any(item.startswith("The solver stopped") for item in page.items)
    with pytest.warns(UserWarning, match="leave out a part of the kernel"):
        model = KernelRidge(kernel=Gaussian(0.1), rank=5, features="cholesky").fit(X, y)
    page = Page(measured(model, X, y).html)
    assert any("5 features leave out a part of the kernel" in item for item in page.items)
    with pytest.warns(UserWarning, match="gap"):
        model = SVR(alpha=1e-9, max_iter=1, tol=1e-12).fit(X, y)
    page = Page(measured(model, X, y).html)
    assert any(item.startswith("The solver stopped before") for item in page.items)


MODELS = [
    ExpectileRegressor([0.2, 0.8], alpha=1e-2),
    SVR(epsilon=0.1, alpha=1e-2),
    KernelRidge(alpha=1e-2),
    make_pipeline(StandardScaler(), QuantileRegressor(0.3, alpha=1e-2)),
    ConformalQuantileRegressor(QuantileRegressor([0.05, 0.5, 0.95])),
    HeteroscedasticRegressor(),
    GridSearchCV(KernelRidge(), {"alpha": [1e-3, 1e-1]}, cv=2),
    KernelRidge(alpha=1e-2, features="fourier", rank=40),
    Ridge(alpha=1e-2),
    Lasso(alpha=1e-2),
    OnlineRidge(),
    OnlineSVR(),
    SomeoneElses(),
    RandomForestRegressor(5, random_state=0),
]


@pytest.mark.slow
def test_models_of_a_distribution_show_what_they_maximize(rows):
    """The mean log-likelihood of the rows that are scored, here all of them."""
    model = HeteroscedasticRegressor().fit(*rows[0])
    X, y = rows[1]
    mean, deviation = model.predict(X, return_std=True)
    html = make_report(model, *rows[1], training=rows[0]).html
    (found,) = re.findall(r'less a penalty: <data value="([^"]+)"', html)
    assert float(found) == pytest.approx(norm.logpdf(y, mean, deviation).mean(), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_other_models_get_what_applies(rows, model):
    model.fit(*rows[0])
    page = Page(make_report(model, *rows[1], training=rows[0]).html)
    X, y = rows[1]
    residual = np.asarray(y) - np.asarray(model.predict(X)).reshape(len(y), -1).T
    last = model[-1] if hasattr(model, "steps") else model
    scores = table(page, "Scores on 120 held-out rows")
    if isinstance(last, ExpectileRegressor):
        expected = [
            np.mean(np.abs(t - (r < 0)) * r**2) for t, r in zip([0.2, 0.8], residual, strict=True)
        ]
        ratio = [row[0][0] / value for row, value in zip(scores.values(), expected, strict=True)]
        assert ratio == pytest.approx([ratio[0]] * 2)  # up to the factor that losses agree on
    elif isinstance(last, QuantileRegressor):
        assert scores["pinball loss at 30 %"][0] == [pytest.approx(pinball(residual, 0.3).mean())]
    else:
        assert scores["squared error"][0] == [pytest.approx(np.mean(residual**2))]
        assert scores["absolute error"][0] == [pytest.approx(np.mean(np.abs(residual)))]
        assert scores["squared error"][4] == [pytest.approx(rows[0][1].mean())]
        assert scores["absolute error"][4] == [pytest.approx(np.median(rows[0][1]))]
    assert ("calibration" in page.sections) == isinstance(last, QuantileRegressor)
    assert ("crossings" in page.sections) == isinstance(last, ExpectileRegressor)
    inside = getattr(last, "best_estimator_", getattr(last, "estimator_", last))
    assert ("certificate" in page.sections) == hasattr(inside, "certificate_")
    assert ("intervals" in page.sections) == (
        hasattr(last, "predict_interval") and not isinstance(last, QuantileRegressor)
    )
    assert page.images


@pytest.mark.slow
def test_what_a_model_reads(rows):
    X, y = rows[0]
    X = X.assign(lane=np.random.default_rng(0).choice(["north", "south"], len(X)))
    y = y + 2.0 * (X["lane"] == "north")
    model = make_pipeline(TableEncoder(), QuantileRegressor()).fit(X, y)
    learned, made = model[-1].learned_, len(model[0].get_feature_names_out())
    shares = model[-1].importances_of_groups([[0], [1], range(2, made)])
    page = Page(make_report(model, X, y).html)
    expected = dict(zip(("dose", "age", "lane"), shares, strict=True))
    read = {name: share for name, share in expected.items() if share >= 1e-3}
    found = table(page, "Importances")
    assert list(found) == sorted(read, key=lambda name: -read[name])
    assert {name: row[0][0] for name, row in found.items()} == pytest.approx(read)
    idle = [name for name in expected if name not in read]
    assert all(
        f"With less than a thousandth: {', '.join(idle)}." in page.sections["importances"]
        for _ in idle[:1]
    )
    assert page.facts["learned"] == f"from {learned.n_rows} rows of the fit"
    assert learned.criterion == page.numbers["fitted"][-4]
    assert page.facts["alpha"] == f"{model[-1].alpha_:.4g}"
    assert page.images[0]["alt"].startswith(f"importances of {len(read)} features")


def test_importances_are_shares_of_a_sum_and_pictures_are_along_the_largest():
    X = np.random.default_rng(0).normal(size=(300, 5))
    model = KernelRidge(kernel=Gaussian(2.0), alpha=1e-3).fit(X, X[:, 3] * X[:, 4])
    effects = total_effects(model.predict, X)
    assert effects[3:].min() > 0.8  # of what both do together each has all
    page = Page(make_report(model, X, X[:, 3] * X[:, 4]).html)
    assert "as a share of the sum over all features" in page.sections["importances"]
    shares = {name: row[0][0] for name, row in table(page, "Importances").items()}
    assert [shares["x3"], shares["x4"]] == pytest.approx([0.5, 0.5], abs=0.05)
    assert "Along the most important 3 of 5 features" in page.sections["pictures"]
    assert "along x4" in page.images[1]["alt"] + page.images[2]["alt"]
    renamed = make_pipeline(SomeColumns([("z", StandardScaler(), list("edcba"))]), clone(model))
    frame = pd.DataFrame(X, columns=list("abcde"))  # of z__e nobody knows where it comes from
    page = Page(make_report(renamed.fit(frame, X[:, 3]), frame, X[:, 3]).html)
    assert "Along the first 3 of 5 features" in page.sections["pictures"]


def test_one_feature_has_no_importances(rows):
    X, y = rows[0]
    page = Page(make_report(KernelRidge().fit(X[["dose"]], y), X[["dose"]], y).html)
    assert "importances" not in page.sections


@pytest.mark.slow
def test_several_targets_and_pictures_of_many_columns(rows):
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.standard_normal((60, 40)), columns=[f"c{j}" for j in range(40)])
    Y = X.to_numpy()[:, :2] + 0.1 * random.standard_normal((60, 2))
    page = Page(make_report(KernelRidge(alpha=1e-3).fit(X, Y), X, Y).html)
    assert len(table(page, "Scores")) == 4
    assert "first 30 of 40" in next(c for c in page.tables if c.startswith("Numbers"))
    assert "the most important 3 of 40" in page.sections["pictures"]


HOSTILE = [
    "<script>document.title='owned'</script>",
    '"><img src=x onerror=alert(1)>',
    "'; DROP TABLE x; --",
    "$x_{",
    "$\\frac{1}{$",
    '=HYPERLINK("http://evil.example")',
    "\u202eright to left",
    "\ud800",
    "größe µm² 漢字 🙂",
    "nul\x00and\nlines",
    "&amp;&lt;",
    "x" * 5000,
    "_hidden",
]


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name[:14]))
def test_hostile_names_and_values_are_text(name):
    random = np.random.default_rng(0)
    words = np.array([name] * 30 + ["b"] * 30, dtype=object)  # strings of Arrow know no halves
    X = pd.DataFrame({0: random.uniform(size=60), 1: pd.Series(words, dtype=object)})
    X.columns = pd.Index([name, f"{name}2"], dtype=object)
    y = pd.Series(random.standard_normal(60), name=name)

    class Model(SomeoneElses):
        def fit(self, X, y):
            return super().fit(X.iloc[:, [0]].to_numpy(), y)

        def predict(self, X):
            return super().predict(X.iloc[:, [0]].to_numpy())

    model = Model().fit(X, y)
    made = make_report(
        model, X, y, training=Training.of(model, X, y, name), data_name=name, warnings=[name]
    )
    made.html.encode("utf-8")
    page = Page(made.html)
    assert set(page.tags) <= {
        *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "ul", "li"),
        *("dl", "div", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td"),
        *("data", "figure", "figcaption", "img"),
    }
    assert page.facts["report on"] == page.facts["fitted on"]
    kept = "".join(letter for letter in name if letter.isprintable())
    if len(kept) == len(name) < 60:
        assert page.facts["report on"] == page.facts["target"] == name
        assert name in page.items
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in page.images)


@pytest.mark.slow
def test_same_input_gives_the_same_page(quantiles, rows):
    first, second = (make_report(quantiles, *rows[1], training=rows[0]).html for _ in range(2))
    assert first == second


def test_notebooks_show_the_page_in_a_frame(held_out):
    report, _ = held_out
    shown = report._repr_html_()
    assert shown.startswith('<iframe srcdoc="')
    assert "<style" not in shown
    assert 'sandbox=""' in shown


def test_bad_input_is_one_sentence(quantiles, rows):
    X, y = rows[1]
    for arguments, message in [
        ((StandardScaler().fit(X), X, y), "must have a method predict"),
        ((quantiles, X, y[:-1]), "a target for each of the 120 rows"),
        ((quantiles, X, y.where(y < 1)), "y must be finite"),
        ((quantiles, X, np.column_stack([y, y])), "y must have as many columns"),
        ((quantiles, X["dose"], y), "X must be a table"),
    ]:
        with pytest.raises(ValueError, match=message):
            make_report(*arguments)
    other = Training.of(KernelRidge(), X, y)
    with pytest.raises(ValueError, match="training must be the record of this model"):
        make_report(quantiles, X, y, training=other)
    for record in ({}, {"data": "x", "constants": ["a"], "rows": ""}, {"rows": "!"}):
        with pytest.raises(ValueError, match="damaged"):
            Training.from_dict(record)


@pytest.mark.parametrize("clock", ["", " 08:30:00", " 08:30:00.250"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_are_the_same_as_they_are_written(clock, unit):
    if unit == "s" and "." in clock:
        pytest.skip("the unit is too long")
    words = pd.Series(["2020-01-05", "2021-12-31", None])
    words[:2] += clock
    y = np.arange(3.0)
    stored = pd.DataFrame({"sold": pd.to_datetime(words).astype(f"datetime64[{unit}]")})
    record = Training.of(KernelRidge(), stored, y)
    assert record.same(pd.DataFrame({"sold": words.where(words.notna(), np.nan)}), y[:, None])


def test_columns_of_polars_need_no_type_in_common():
    polars = pytest.importorskip("polars")
    days = pd.date_range("2020-01-01", periods=20).to_numpy()
    table = polars.DataFrame({"a": np.arange(20.0), "town": ["x", "y"] * 10, "day": days})
    y = np.arange(20.0) % 7
    model = make_pipeline(TableEncoder(), KernelRidge(learn=False)).fit(table, y)
    assert measured(model, table, y, training=(table, y)).facts.kind_of_rows == "training"


def test_categories_that_are_numbers_have_no_quantiles():
    X = pd.DataFrame({"kind": pd.Categorical([1, 4] * 10), "a": np.arange(20.0)})
    model = make_pipeline(TableEncoder(), KernelRidge(learn=False)).fit(X, X["a"])
    kind, a = measured(model, X, X["a"]).facts.columns
    assert (kind.numbers, kind.n_labels, a.numbers) == (None, 2, (0.0, 9.5, 19.0))
