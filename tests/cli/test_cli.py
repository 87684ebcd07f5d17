"""The command line: as a process where that matters, and otherwise through ``main``."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

import fenchel
from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.cli import fitting, main
from fenchel.datasets import load_engel
from fenchel.model_selection import PathSearchCV
from fenchel.persistence import load_metadata

SOURCE = Path(fenchel.__file__).parent.parent


def run(*arguments, cwd):
    """Run the command as a process: exit code, stdout, stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "fenchel", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def houses():
    """A table with words, true and false, and numbers; price depends on all of them."""
    random = np.random.default_rng(0)
    n = 90
    frame = pd.DataFrame(
        {
            "area": random.uniform(20, 200, n).round(1),
            "town": random.choice(["Köln", "Bonn", "Trier"], n),
            "garden": random.uniform(size=n) < 0.4,
            "rooms": random.integers(1, 6, n),
        }
    )
    noise = random.standard_normal(n) * frame["area"] / 10
    frame["price"] = 2 * frame["area"] + 50 * (frame["town"] == "Köln") + noise
    return frame


@pytest.fixture(scope="module")
def model(houses, tmp_path_factory):
    """A model of the houses, fitted by a process on a CSV file."""
    folder = tmp_path_factory.mktemp("houses")
    houses.to_csv(folder / "houses.csv", index=False)
    code, out, err = run(
        *("fit", "houses.csv", "--target", "price", "--levels", "0.9,0.1,0.5"),
        *("--out", "m.skops", "--plot", "m.png", "--json", "--no-learn", "--alpha", "1e-4"),
        cwd=folder,
    )
    assert (code, err) == (0, "")
    assert sorted(p.name for p in folder.iterdir()) == ["houses.csv", "m.png", "m.skops"]
    assert (folder / "m.png").read_bytes().startswith(b"\x89PNG")
    return folder / "m.skops", json.loads(out)


@pytest.mark.slow
def test_fit_reports_what_the_model_does(model, houses):
    path, record = model
    pipeline = fenchel.load(path)
    X, y = houses.drop(columns="price"), houses["price"].to_numpy()
    prediction = pipeline.predict(X)
    for j, (row, level) in enumerate(zip(record["levels"], [0.9, 0.1, 0.5], strict=True)):
        assert row["level"] == level
        assert row["coverage"] == pytest.approx(np.mean(y <= prediction[:, j]))
        assert abs(row["coverage"] - level) < 0.15
        residual = y - prediction[:, j]
        pinball = np.maximum(level * residual, (level - 1) * residual).mean()
        assert row["loss"] == pytest.approx(pinball)
    ordered = prediction[:, [1, 2, 0]]
    crossing = np.maximum(ordered[:, :-1] - ordered[:, 1:], 0).mean(axis=0).sum()
    assert record["crossing_loss"] == pytest.approx(crossing)
    assert record["alpha"] == pipeline[-1].alpha == 1e-4
    assert record["n_rows"] == 90
    assert record["n_support"] == len(pipeline[-1].support_)
    assert record["rank"] == pipeline[-1].feature_map_.rank_
    assert record["features"]["numeric"] == ["area", "rooms"]
    assert record["features"]["categorical"] == ["town", "garden"]
    assert record["certificate"]["relative_gap"] <= 1e-6
    assert record["converged"] is True
    assert record["warnings"] == []
    assert load_metadata(path)["target"] == "price"


@pytest.mark.slow
def test_predict_and_evaluate_as_processes(model, houses, here):
    path, _ = model
    new = (
        houses.iloc[:5]
        .drop(columns="price")
        .assign(extra="x")[["extra", "garden", "rooms", "town", "area"]]
    )
    new.to_parquet("new.parquet")
    houses.iloc[50:].to_csv("held.csv", index=False)
    code, out, err = run("predict", path, "new.parquet", "--interval", "0.8", cwd=here)
    assert code == 0
    assert re.fullmatch(r"fenchel: warning: new\.parquet has columns .* not use: extra\n", err)
    table = pd.read_csv(io.StringIO(out))
    assert list(table) == ["q0.9", "q0.1", "q0.5", "lower", "upper"]
    expected = fenchel.load(path).predict(houses.iloc[:5].drop(columns="price"))
    np.testing.assert_allclose(table[["q0.9", "q0.1", "q0.5"]], expected, rtol=1e-12)
    np.testing.assert_array_equal(table["lower"], table["q0.1"])
    np.testing.assert_array_equal(table["upper"], table["q0.9"])

    code, out, err = run("evaluate", path, "held.csv", cwd=here)
    assert (code, err) == (0, "")
    assert "Quantiles of price: held.csv, 40 rows" in out
    assert "pinball loss" in out
    assert sorted(p.name for p in here.iterdir()) == ["held.csv", "new.parquet"]


def test_evaluate_json(model, houses, here, capsys):
    path, _ = model
    held = houses.iloc[50:].rename(columns={"price": "cost"})
    held.to_csv("held.csv", index=False)
    assert main(["evaluate", str(path), "held.csv", "--target", "cost", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    pipeline = fenchel.load(path)
    X, y = houses.iloc[50:].drop(columns="price"), held["cost"].to_numpy()
    assert record["d2"] == pytest.approx(pipeline.score(X, y))
    found = [row["coverage"] for row in record["levels"]]
    np.testing.assert_allclose(found, (y[:, None] <= pipeline.predict(X)).mean(axis=0))
    assert record["target"] == "cost"


def test_predictions_in_a_file(model, houses, here, capsys):
    path, _ = model
    houses.to_csv("in.csv", index=False)
    assert main(["predict", str(path), "in.csv", "--out", "out.csv"]) == 0
    assert capsys.readouterr() == ("", "")
    assert list(pd.read_csv("out.csv")) == ["q0.9", "q0.1", "q0.5"]
    assert len(pd.read_csv("out.csv")) == 90
    assert sorted(p.name for p in here.iterdir()) == ["in.csv", "out.csv"]


def test_new_labels_are_named(model, houses, here, capsys):
    path, _ = model
    houses.iloc[:4].assign(town=["Aachen", "Bonn", "Aachen", "Trier"]).to_csv("n.csv", index=False)
    assert main(["predict", str(path), "n.csv"]) == 0
    out, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert "2 rows have labels of town that the model has not seen (Aachen)" in err
    assert len(out.splitlines()) == 5


def test_demo(here):
    code, out, err = run("demo", cwd=here)
    assert (code, err) == (0, "")
    assert sorted(p.name for p in here.iterdir()) == ["fenchel-demo.png", "fenchel-demo.skops"]
    assert (here / "fenchel-demo.png").stat().st_size > 20_000
    for expected in ("10 %", "90 %", "relative gap", "fenchel-demo.png", "fenchel predict"):
        assert expected in out
    model = fenchel.load(here / "fenchel-demo.skops")
    X, y = load_engel(return_X_y=True, as_frame=True)
    assert model[-1].certificate_.relative_gap <= 1e-6
    moved = model[-1].offset_ - model[-1].certified_offset_  # to levels of held-out rows
    coverage = (y.to_numpy()[:, None] <= model.predict(X) - moved).mean(axis=0)
    np.testing.assert_allclose(coverage, [0.1, 0.25, 0.5, 0.75, 0.9], atol=0.03)
    assert (moved[[0, -1]] * [-1, 1] > 0).all()


@pytest.mark.slow
def test_datasets_as_a_process(here):
    code, out, err = run("datasets", "--json", cwd=here)
    assert (code, err) == (0, "")
    names = {info["name"]: info for info in json.loads(out)}
    assert names["engel"]["target"] == "foodexp"
    assert names["engel"]["bundled"] is True


def test_datasets_table(capsys):
    assert main(["datasets"]) == 0
    assert "foodexp" in capsys.readouterr().out


def fit_json(capsys, *arguments):
    assert main(["fit", *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    return json.loads(out), err


@pytest.mark.slow
def test_cross_validation_takes_the_best_score(capsys):
    arguments = ["engel", "--cv", "3", "--length-scale", "1000", "--levels", "0.5"]
    record, err = fit_json(capsys, *arguments)
    cv = record["cv"]
    assert (cv["score"], cv["folds"], len(cv["alphas"])) == ("d2", 3, 20)
    assert cv["widths"] == [1.0]
    assert record["alpha"] == cv["alpha"] == cv["alphas"][int(np.argmax(cv["scores"][0]))]
    assert err == ""
    again, _ = fit_json(capsys, *arguments, "--seed", "1")
    assert again["cv"]["scores"] != cv["scores"]


@pytest.mark.slow
def test_cross_validation_agrees_with_scikit_learn(capsys):
    X, y = load_engel(return_X_y=True)
    record, _ = fit_json(capsys, "engel", "--cv", "4", "--model", "ridge", "--seed", "5")
    cv = record["cv"]
    i = cv["widths"].index(3.0)
    kernel = fenchel.kernels.resolve(fenchel.kernels.Gaussian(), X)
    kernel.length_scale = 3.0 * kernel.length_scale
    folds = KFold(4, shuffle=True, random_state=5)
    for j in (0, 9):
        model = fenchel.KernelRidge(alpha=cv["alphas"][j], kernel=kernel)
        scores = cross_val_score(model, X, y, cv=folds)
        assert cv["scores"][i][j] == pytest.approx(scores.mean(), rel=1e-6)
    best = divmod(int(np.argmax(cv["scores"])), len(cv["alphas"]))
    assert (record["alpha"], cv["width"]) == (cv["alphas"][best[1]], cv["widths"][best[0]])


PLAIN = {
    "quantile": QuantileRegressor([0.1, 0.5, 0.9]),
    "expectile": ExpectileRegressor([0.1, 0.5, 0.9]),
    "svr": SVR(),
    "ridge": KernelRidge(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAIN)
def test_the_fit_is_that_of_the_library(name, here, capsys):
    """Without options the estimator's own defaults, with --cv what the search finds."""
    X, y = load_engel(return_X_y=True, as_frame=True)
    rows, targets = X.to_numpy(), y.to_numpy()
    assert main(["fit", "engel", "--model", name, "--out", "plain.skops", "--quiet"]) == 0
    plain = PLAIN[name].fit(rows, targets)
    np.testing.assert_array_equal(fenchel.load("plain.skops").predict(X), plain.predict(rows))

    given = ["--cv", "3", "--length-scale", "median", "--tol", "1e-4"]
    assert main(["fit", "engel", "--model", name, *given, "--out", "cv.skops", "--quiet"]) == 0
    estimator = clone(PLAIN[name]).set_params(
        kernel=fenchel.kernels.Gaussian("median"), tol=1e-4, random_state=0
    )
    folds = KFold(3, shuffle=True, random_state=0)
    search = PathSearchCV(estimator, cv=folds).fit(rows, targets)
    found = fenchel.load("cv.skops")
    np.testing.assert_array_equal(found.predict(X), search.predict(rows))
    assert found[-1].alpha_ == search.alpha_
    capsys.readouterr()


@pytest.mark.slow
def test_progress_counts_the_paths_of_the_search():
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")
    X, y = load_engel(return_X_y=True, as_frame=True)
    seen = []
    settings = fitting.Settings(model="ridge", cv=3)
    fitting.fit(settings, X, y, lambda *done: seen.append(done))
    parts = [done for done in seen if done[2] is not None]
    counted = [("searching", k, 16) for k in range(16)]  # 5 widths, 3 folds, and the last fit
    assert list(dict.fromkeys(parts)) == [*counted, ("fitting", 16, 16)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "columns", "score"),
    [
        ("expectile", ["e0.25", "e0.75"], "d2"),
        ("svr", ["prediction"], "r2"),
        ("ridge", ["prediction"], "r2"),
    ],
)
def test_other_models(model, columns, score, here, capsys):
    levels = ["--levels", "0.25,0.75"] if model == "expectile" else []
    plot = ["--no-learn", "--alpha", "1e-3", "--out", "m.skops", "--plot", "m.pdf"]
    record, err = fit_json(capsys, "engel", "--model", model, *levels, *plot)
    assert err == ""
    assert record["converged"]
    X, y = load_engel(return_X_y=True, as_frame=True)
    assert record[score] == pytest.approx(fenchel.load("m.skops").score(X, y))
    assert (here / "m.pdf").read_bytes().startswith(b"%PDF")
    assert main(["predict", "m.skops", "engel"]) == 0
    assert list(pd.read_csv(io.StringIO(capsys.readouterr().out))) == columns
    assert main(["evaluate", "m.skops", "engel"]) == 0
    assert "foodexp" in capsys.readouterr().out


def test_options_reach_the_estimator(here, capsys):
    options = ["--levels", "0.3,0.6", "--alpha", "0.01", "--level-gamma", "inf", "--epsilon", "99"]
    options += ["--kernel", "matern52", "--length-scale", "q0.7", "--seed", "4", "--tol", "1e-5"]
    record, _ = fit_json(capsys, "engel", *options, "--out", "m.skops")
    model = fenchel.load("m.skops")[-1]
    assert model.levels == [0.3, 0.6]
    assert (model.alpha, model.level_gamma, model.epsilon) == (0.01, np.inf, 99.0)
    assert (model.random_state, model.tol) == (4, 1e-5)
    assert model.kernel == fenchel.kernels.Matern(fenchel.kernels.DistanceQuantile(0.7), nu=2.5)
    assert record["level_gamma"] == "inf"
    assert record["n_support"] < 235


def test_an_early_stop_is_a_warning_and_a_field(here, capsys):
    fixed = ["--no-learn", "--alpha", "1e-3"]
    record, err = fit_json(capsys, "engel", *fixed, "--tol", "1e-15", "--out", "m.skops")
    assert record["converged"] is False
    assert len(record["warnings"]) == 1
    assert err == f"fenchel: warning: {record['warnings'][0]}\n"
    assert (here / "m.skops").exists()


def test_a_limit_on_the_seconds(here, capsys):
    record, err = fit_json(capsys, "engel", "--max-time", "1e-9")
    assert record["converged"] is False
    assert "max_time=1e-09 s were reached" in err


def test_quiet(here, capsys):
    assert main(["fit", "engel", "--no-learn", "--quiet", "--out", "m.skops"]) == 0
    assert capsys.readouterr() == ("", "")


def test_help_names_the_commands(capsys):
    for arguments in ([], ["--help"]):
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert all(name in out for name in ("fit", "predict", "evaluate", "datasets", "demo"))


# --- bad input: exit code 2 and one sentence ----------------------------------------------


@pytest.fixture
def bad(here, houses):
    """A folder with one good table and many bad ones."""
    good = houses.iloc[:30]
    good.to_csv("good.csv", index=False)
    good.iloc[:0].to_csv("header.csv", index=False)
    (here / "empty.csv").write_text("")
    (here / "torn.csv").write_text('a,b\n1,2\n1,2,3\n"')
    (here / "bytes.csv").write_bytes(b"a,b\n\xff\xfe\x00,2\n")
    (here / "fake.parquet").write_text("no parquet")
    (here / "table.xlsx").write_text("a,b")
    (here / "text.skops").write_text("no model")
    (here / "folder").mkdir()
    good[["price"]].to_csv("lonely.csv", index=False)
    good.assign(when=pd.Timedelta("1h")).to_parquet("times.parquet")
    good.assign(price=np.nan).to_csv("gaps.csv", index=False)
    good.assign(area=np.inf).to_csv("infinite.csv", index=False)
    good.drop(columns=["area", "town"]).to_csv("short.csv", index=False)
    good.assign(area="large").to_csv("words.csv", index=False)
    good.assign(garden="yes").to_csv("yes.csv", index=False)
    good[["town", "price"]].to_csv("town.csv", index=False)
    fenchel.save(fenchel.SVR(), "bare.skops")
    return here


FIT = ["fit", "good.csv", "--target", "price", "--out", "new.skops", "--plot", "new.png"]

BAD = {
    "no file": (["fit", "none.csv", "--target", "y"], "there is no file none.csv"),
    "no data set": (["fit", "engle"], "nor a data set of that name: those are .*engel"),
    "folder": (["fit", "folder", "--target", "y"], "folder is a folder"),
    "ending": (
        ["fit", "table.xlsx", "--target", "a"],
        r"must end in \.csv or \.parquet.*'\.xlsx'",
    ),
    "empty": (["fit", "empty.csv", "--target", "a"], r"empty\.csv is empty"),
    "header": (["fit", "header.csv", "--target", "price"], r"header\.csv has no rows"),
    "torn": (["fit", "torn.csv", "--target", "a"], r"torn\.csv cannot be read as a table"),
    "bytes": (["fit", "bytes.csv", "--target", "a"], r"bytes\.csv cannot be read as a table"),
    "parquet": (["fit", "fake.parquet", "--target", "a"], r"fake\.parquet cannot be read"),
    "target left out": (["fit", "good.csv"], "--target must name .* area, town"),
    "target": (["fit", "good.csv", "--target", "cost"], "no column 'cost'; its columns are area"),
    "words": (["fit", "good.csv", "--target", "town"], "'town' .* a number .* in row 1 is"),
    "true": (["fit", "good.csv", "--target", "garden"], "'garden' .* a number .* in row 1"),
    "lonely": (["fit", "lonely.csv", "--target", "price"], "no column beside the target"),
    "times": (["fit", "times.parquet", "--target", "price"], "'when' .* is of type timedelta"),
    "gaps": (["fit", "gaps.csv", "--target", "price"], "has no value in the target"),
    "infinite": (["fit", "infinite.csv", "--target", "price"], "infinite values in area"),
    "model": ([*FIT, "--model", "lasso"], "--model must be one of quantile, expectile, svr"),
    "kernel": ([*FIT, "--kernel", "cosine"], "--kernel must be one of gaussian"),
    "precomputed": ([*FIT, "--kernel", "precomputed"], "--kernel must be one of gaussian"),
    "levels": ([*FIT, "--levels", "0.1;0.9"], "--levels must be numbers with commas"),
    "outside": ([*FIT, "--levels", "0.1,1"], "strictly between 0 and 1, got 0.1,1"),
    "nan": ([*FIT, "--levels", "nan"], "strictly between 0 and 1, got nan"),
    "repeated": ([*FIT, "--levels", "0.5,0.50"], "must not repeat a level"),
    "no levels": ([*FIT, "--model", "ridge", "--levels", "0.5"], "no meaning for --model ridge"),
    "alpha": ([*FIT, "--alpha", "0"], "--alpha must be a number > 0, got 0"),
    "alpha < 0": ([*FIT, "--alpha", "-1"], "--alpha must be a number > 0, got -1"),
    "alpha word": ([*FIT, "--alpha", "low"], "--alpha must be a number > 0, got 'low'$"),
    "both": ([*FIT, "--alpha", "1", "--cv", "3"], "--alpha and --cv exclude each other"),
    "epsilon": ([*FIT, "--epsilon", "-1"], "--epsilon must be a number >= 0"),
    "gamma": ([*FIT, "--level-gamma", "-1"], "--level-gamma must be >= 0"),
    "width": ([*FIT, "--length-scale", "wide"], "--length-scale must be a number > 0"),
    "width 0": ([*FIT, "--length-scale", "0"], "--length-scale must be a number > 0"),
    "no width": ([*FIT, "--kernel", "linear", "--length-scale", "1"], "no meaning for the linear"),
    "tol": ([*FIT, "--tol", "0"], "--tol must be a number > 0"),
    "max_time": ([*FIT, "--max-time", "-1"], "--max-time must be a number > 0"),
    "one fold": ([*FIT, "--cv", "1"], "--cv must be between 2 and the number of rows, 30, got 1"),
    "folds": ([*FIT, "--cv", "31"], "--cv must be between 2 and"),
    "option": ([*FIT, "--depth", "3"], r"No such option.* \(see fenchel fit --help\)"),
    "command": (["fitt", "engel"], r"No such command.* \(see fenchel --help\)"),
    "argument": (["fit"], "Missing argument 'DATA'"),
    "out folder": (["fit", "engel", "--out", "none/m.skops"], "there is no folder none"),
    "out is a folder": (["predict", "m", "engel", "--out", "folder"], r"--out must end in \.csv"),
    "out ending": (["fit", "engel", "--out", "m.pkl"], r"--out must end in \.skops, got m\.pkl"),
    "plot ending": (["fit", "engel", "--plot", "m.bmp"], r"--plot must end in \.png"),
    "plot feature": ([*FIT, "--plot-feature", "town"], "one of area, rooms, got town"),
    "nothing to plot": (
        ["fit", "town.csv", "--target", "price", "--plot", "new.png"],
        "along a column that is a number, and there is none",
    ),
    "demo": (["demo", "--out-dir", "none"], "--out-dir: there is no folder none"),
    "no model": (["predict", "none.skops", "engel"], r"there is no model file none\.skops"),
    "not a model": (["predict", "text.skops", "engel"], r"text\.skops is not a model"),
    "model folder": (["evaluate", "folder", "engel"], "folder is a folder"),
    "bare": (["predict", "bare.skops", "engel"], r"bare\.skops was not written by fenchel fit"),
    "columns": (["predict", "MODEL", "short.csv"], r"short\.csv lacks the columns area, town"),
    "type": (["predict", "MODEL", "words.csv"], r"'area' of words\.csv .*'large' in row 1"),
    "type of flag": (["predict", "MODEL", "yes.csv"], r"'garden' of yes\.csv must be true or"),
    "gaps in new": (["evaluate", "MODEL", "gaps.csv"], "has no value in the target"),
    "interval": (["predict", "MODEL", "good.csv", "--interval", "1"], "--interval must lie"),
    "interval not fitted": (
        ["predict", "MODEL", "good.csv", "--interval", "0.5"],
        r"--interval 0\.5 needs the levels 0\.25 and 0\.75.*; 'fenchel fit --coverage 0\.5' fits "
        r"a calibrated one, and predict_distribution\(X\)\.interval\(0\.5\) in Python has one",
    ),
    "no target": (["evaluate", "MODEL", "town.csv", "--target", "y"], "no column 'y'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name, bad, model, capsys):
    arguments, sentence = BAD[name]
    before = sorted(p.name for p in bad.rglob("*"))
    code = main([str(model[0]) if a == "MODEL" else a for a in arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert_one_sentence(err, sentence)
    assert sorted(p.name for p in bad.rglob("*")) == before


def assert_one_sentence(err, sentence):
    assert err.startswith("fenchel: ")
    assert err.count("\n") == 1
    assert re.search(sentence, err), err


@pytest.mark.parametrize("name", ["no file", "option", "levels"])
def test_bad_input_as_a_process(name, bad):
    arguments, sentence = BAD[name]
    code, out, err = run(*arguments, cwd=bad)
    assert (code, out) == (2, "")
    assert_one_sentence(err, sentence)


def test_errors_of_estimators_are_sentences(here, capsys, monkeypatch):
    def refuse(*_):
        raise ValueError("y must be\nkind")

    monkeypatch.setattr(fitting, "make_pipeline", refuse)
    assert main(["fit", "engel"]) == 2
    assert capsys.readouterr().err == "fenchel: y must be kind\n"


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("typer", ["datasets"], "cli"),
        ("pandas", ["datasets"], "cli"),
        ("skops.io", ["fit", "engel", "--out", "m.skops"], "io"),
        ("matplotlib", ["fit", "engel", "--plot", "m.png"], "plot"),
    ],
)
def test_missing_package(module, arguments, extra, here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(arguments) == 2
    assert_one_sentence(capsys.readouterr().err, rf"needs .*: pip install 'fenchel\[{extra}\]'")


def test_a_disk_that_fails_leaves_no_half_files(here, capsys, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert main(["fit", "engel", "--out", "m.skops", "--plot", "m.png"]) == 2
    assert_one_sentence(capsys.readouterr().err, "m.skops cannot be written: No space left")
    assert list(here.iterdir()) == []
