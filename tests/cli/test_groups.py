"""``--groups``: a column says which rows depend on each other."""

from __future__ import annotations

import json
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold

import fenchel
from fenchel import KernelRidge, QuantileRegressor
from fenchel.cli import compare, main, on_disk
from fenchel.model_selection import ConformalQuantileRegressor, PathSearchCV
from fenchel.persistence import load_metadata

FIT = ["fit", "visits.csv", "--target", "y", "--groups", "person", "--out", "m.skops", "--quiet"]


def visits(n_persons=40, each=5, seed=0):
    """A level of each person that no other column tells."""
    random = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_persons), each)
    base, level = random.normal(size=(2, n_persons))
    time = random.uniform(size=len(person))
    y = (base + 1.5 * level)[person] + np.sin(3.0 * time) + 0.3 * random.normal(size=len(person))
    table = pd.DataFrame({"person": person, "base": base[person], "time": time, "y": y})
    return table.round(6)  # as pandas 2 reads more digits with rounding errors


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with the table, in whose second row the target is missing."""
    monkeypatch.chdir(tmp_path)
    table = visits()
    table.loc[1, "y"] = np.nan
    table.to_csv("visits.csv", index=False)
    return table.drop(index=1)


def test_groups_of_one_label_are_refused(here, capsys):
    here.assign(person="a").to_csv("visits.csv", index=False)
    assert main([*FIT, "--coverage", "0.8"]) == 2
    said = "--groups must name a column with two labels or more, and 'person' of visits.csv has "
    assert capsys.readouterr().err == f"fenchel: {said}only 'a'\n"


def test_the_fit_is_that_of_the_library(here):
    assert main(FIT) == 0
    model = fenchel.load("m.skops")
    X = here[["base", "time"]]
    expected = QuantileRegressor([0.1, 0.5, 0.9]).fit(
        X.to_numpy(), here["y"], groups=here["person"]
    )
    np.testing.assert_array_equal(model.feature_names_in_, ["base", "time"])
    np.testing.assert_allclose(model.predict(X), expected.predict(X.to_numpy()), rtol=1e-9)
    assert load_metadata("m.skops")["dropped"] == ["person"]


def test_intervals_are_calibrated_on_whole_groups(here):
    assert main([*FIT, "--coverage", "0.8"]) == 0
    model = fenchel.load("m.skops")
    X = here[["base", "time"]]
    expected = ConformalQuantileRegressor(
        QuantileRegressor(), method="cv+", cv=GroupKFold(5), coverage=0.8, random_state=0
    ).fit(X.to_numpy(), here["y"].to_numpy(), groups=here["person"].to_numpy())
    new = visits(100, seed=1)
    found = model[-1].predict_interval(model[:-1].transform(new[["base", "time"]]))
    np.testing.assert_allclose(
        found, expected.predict_interval(new[["base", "time"]].to_numpy()), rtol=1e-6
    )
    held = np.mean((found[:, 0] <= new["y"]) & (found[:, 1] >= new["y"]))
    assert 0.7 < held < 0.95


def test_cross_validation_is_by_groups(here, capsys):
    command = [each for each in FIT if each != "--quiet"]
    given = ["--model", "ridge", "--kernel", "linear", "--cv", "4", "--json"]
    assert main([*command, *given]) == 0
    found = json.loads(capsys.readouterr().out)["cv"]
    model = KernelRidge(kernel="linear")
    search = PathSearchCV(model, model.default_grid(), cv=GroupKFold(4), refit=False)
    X, y = here[["base", "time"]].to_numpy(), here["y"].to_numpy()
    search.fit(X, y, groups=here["person"].to_numpy())
    assert found["folds"] == 4
    np.testing.assert_allclose(found["scores"], [search.cv_results_["mean_test_score"]], rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--groups", "y"], "--target and --groups both name the column 'y'"),
        (["--columns", "person"], "--columns and --groups both name the column 'person'"),
        (["--groups", "base"], "--groups must name one column, got"),
        (["--groups", "nobody"], "--groups: visits.csv has no column 'nobody'"),
        (["--model", "normal"], "--groups has no meaning for --model normal"),
        (["--non-crossing"], "--groups has no meaning for --non-crossing"),
        (["--drop", "base,time"], "beside the target 'y' and what --drop and --groups name"),
    ],
)
def test_what_is_refused(here, capsys, options, said):
    assert main([*FIT, *options]) == 2
    assert said in capsys.readouterr().err


def test_missing_labels_are_refused(here, capsys):
    here["person"] = here["person"].astype(object)
    here.iloc[3, 0] = None
    here.to_csv("visits.csv", index=False)
    assert main(FIT) == 2
    said = "the column 'person' of --groups must have a label in each row of visits.csv, and row 4"
    assert said in capsys.readouterr().err


COMPARE = ["compare", "visits.csv", "--target", "y", "--json", "--quiet"]


def test_methods_are_compared_on_persons_that_none_has_seen(here, capsys, monkeypatch):
    seen = []
    monkeypatch.setattr(compare, "run", lambda task, y, show: seen.append((task, y)) or [])
    assert main([*COMPARE, "--groups", "person", "--test-share", "0.3", "--seed", "2"]) == 0
    ((task, y),) = seen
    assert "person" not in task.X
    held_out = here.person[task.new.index]
    assert held_out.nunique() == 12 == here.person.nunique() - len(np.unique(task.groups))
    assert not set(held_out) & set(task.groups)
    np.testing.assert_array_equal(here.person[task.X.index], task.groups)
    np.testing.assert_array_equal(here.y[task.new.index], y)
    assert json.loads(capsys.readouterr().out)["n_test_rows"] == len(y)


def test_ours_and_linear_quantiles_learn_by_groups(here, capsys, monkeypatch):
    given = []
    fit = QuantileRegressor.fit

    def noted(self, X, y, groups=None, **options):
        given.append(groups)
        return fit(self, X, y, groups=groups, **options)

    noted.__signature__ = signature(fit)
    monkeypatch.setattr(QuantileRegressor, "fit", noted)
    monkeypatch.setattr(compare, "find_spec", lambda name: None)
    assert main([*COMPARE, "--groups", "person", "--levels", "0.5"]) == 0
    assert [len(np.unique(each)) for each in given] == [30, 30]


def test_a_share_that_leaves_no_group_to_fit_is_refused(here, capsys):
    assert main([*COMPARE, "--groups", "person", "--test-share", "0.99"]) == 2
    said = "--test-share=0.99 leaves none of the 40 groups of visits.csv to fit"
    assert said in capsys.readouterr().err


def test_words_that_pandas_takes_for_missing_are_labels(here, capsys):
    country = np.array(["NA", "None", "ZA", "BW", "ZM"])  # Namibia is one of them
    here["person"] = country[here["person"] % 5]
    here.to_csv("visits.csv", index=False)
    options = ["--model", "ridge", "--no-learn", "--cv", "5"]
    assert main([*FIT, *options]) == 0
    here.to_parquet("visits.parquet")
    assert main([*FIT[:1], "visits.parquet", *FIT[2:6], "--out", "p.skops", *options]) == 0
    of_csv, of_parquet = (fenchel.load(name)[-1] for name in ("m.skops", "p.skops"))
    np.testing.assert_array_equal(of_csv.dual_coef_, of_parquet.dual_coef_)


def test_tables_on_disk_have_no_groups(here, capsys, monkeypatch):
    here.to_parquet("visits.parquet")
    monkeypatch.setattr(on_disk, "SHARE", 0.0)
    assert main(["fit", "visits.parquet", *FIT[2:]]) == 2
    assert "is fitted from disk, without --groups" in capsys.readouterr().err
