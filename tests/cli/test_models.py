"""Models beyond quantiles on the command line: what they predict, what is said, and saved."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

import fenchel
from fenchel import (
    DensityEstimator,
    FunctionalRegressor,
    HeteroscedasticRegressor,
    NonCrossingQuantileRegressor,
    QuantileRegressor,
)
from fenchel.cli import fitting, main, settings
from fenchel.cli.errors import InputError
from fenchel.datasets import load_engel, make_sine_quantiles
from fenchel.kernels import ALIASES
from fenchel.model_selection import ConformalQuantileRegressor
from fenchel.persistence import load, load_metadata, save


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A working folder with two tables of a noisy sine, of which one is to be held out."""
    monkeypatch.chdir(tmp_path)
    X, y, _ = make_sine_quantiles(800, random_state=0)
    frame = pd.DataFrame({"x": X[:, 0], "y": y})
    old, new = train_test_split(frame, test_size=500, random_state=0)
    old.to_csv("old.csv", index=False)
    new.to_csv("new.csv", index=False)
    return tmp_path


# Where nothing is said of learning, for its time.
FIXED = ["--no-learn", "--alpha", "1e-3"]


def fit_json(capsys, *arguments):
    assert main(["fit", *arguments, "--out", "m.skops", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def predicted(capsys, data, *options):
    assert main(["predict", "m.skops", data, *options]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return pd.read_csv(io.StringIO(out))


@pytest.mark.parametrize(
    ("fit", "ways"),
    [
        (["expectile", "--target", "y"], ["fenchel fit --coverage 0.8", "predict_distribution"]),
        (["ridge", "--target", "y"], ["fenchel fit --coverage 0.8"]),
        (["density"], ["predict_distribution"]),
        (["curves", "--target", "x,y", "--columns", "z"], []),
    ],
)
def test_models_without_intervals_say_where_there_are_some(fit, ways, capsys):
    """And what they point to is there."""
    table = pd.read_csv("old.csv").assign(z=lambda frame: frame["x"] ** 2)
    table.to_csv("three.csv", index=False)
    fit_json(capsys, "three.csv", "--model", *fit, "--no-learn", "--alpha", "0.1")
    assert main(["predict", "m.skops", "three.csv", "--interval", "0.8"]) == 2
    said = capsys.readouterr().err
    assert re.search("--interval: a .* has no interval of its own", said)
    for way in ("fenchel fit --coverage 0.8", "predict_distribution"):
        assert (way in said) == (way in ways)
    assert hasattr(fenchel.load("m.skops")[-1], "predict_distribution") == (
        "predict_distribution" in ways
    )


def test_names_of_kernels_are_those_of_the_library():
    assert sorted({*settings.KERNELS, "precomputed"}) == sorted(ALIASES)


@pytest.mark.slow
def test_calibrated_intervals_cover_held_out_rows(capsys):
    fit = ["old.csv", "--target", "y", "--coverage", "0.8", *FIXED]
    record = fit_json(capsys, *fit)
    assert record["calibration"]["method"] == "cv+"
    assert record["calibration"]["rows"] == 300
    found, new = predicted(capsys, "new.csv"), pd.read_csv("new.csv")
    assert list(found) == ["lower", "q0.5", "upper"]
    inside = (found["lower"] <= new["y"]) & (new["y"] <= found["upper"])
    assert (
        abs(inside.mean() - 0.8) < 0.06
    )  # 300 rows calibrate: less than two standard errors, with those of 500
    assert main(["evaluate", "m.skops", "new.csv", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["intervals"]["coverage"] == inside.mean()
    width = (found["upper"] - found["lower"]).mean()
    assert measured["intervals"]["mean_width"] == pytest.approx(width)
    wider = predicted(capsys, "new.csv", "--interval", "0.9")
    assert (wider["upper"] - wider["lower"]).mean() > width
    assert main(["fit", *fit]) == 0
    assert "for 80 %, on 300 rows in folds" in capsys.readouterr().out


def test_rows_that_calibrate():
    anew, once = ("cv+", 5, None), ("cv+", 10, 0.5)
    wanted = {3: ("cv+", 3, None), 499: anew, 500: once, 3999: once}
    wanted |= dict.fromkeys((4000, 10**6), ("split", 0.25, None))
    in_time = {499: anew, 500: ("split", 0.5, None), 2500: ("split", 0.4, None)}
    for sizes, given in ((wanted, {}), (in_time, {"max_time": 1.0})):
        settings = fitting.Settings(coverage=0.8, **given)
        for n, how in sizes.items():
            model = fitting.calibrated(settings, QuantileRegressor(), n)
            assert (model.method, model.cv, model.learn_share) == how
    settings = fitting.Settings(coverage=0.8, learn=False)
    assert fitting.calibrated(settings, QuantileRegressor(learn=False), 500).learn_share is None


@pytest.mark.parametrize(
    ("limits", "method", "cv"),
    [((301, 302), "cv+", 5), ((300, 301), "cv+", 10), ((200, 300), "split", 0.5)],
)
def test_calibrated_intervals_are_those_of_the_library(limits, method, cv, capsys, monkeypatch):
    for name, limit in zip(("_ENOUGH_TO_LEARN", "_ENOUGH_TO_SPLIT"), limits, strict=True):
        monkeypatch.setattr(fitting, name, limit)
    fit_json(capsys, "old.csv", "--target", "y", "--coverage", "0.7", "--seed", "3", *FIXED)
    old, new = pd.read_csv("old.csv"), pd.read_csv("new.csv")
    plain = QuantileRegressor(alpha=1e-3, learn=False, random_state=3)
    how = {"coverage": 0.7, "method": method, "cv": cv, "random_state": 3}
    model = ConformalQuantileRegressor(plain, **how)
    ends = model.fit(old[["x"]].to_numpy(), old["y"]).predict_interval(new[["x"]].to_numpy())
    found = predicted(capsys, "new.csv")
    np.testing.assert_allclose(found[["lower", "upper"]], ends, rtol=1e-12)


@pytest.mark.slow
def test_intervals_whose_parameters_are_learned_once(capsys, monkeypatch):
    monkeypatch.setattr(fitting, "_ENOUGH_TO_LEARN", 300)
    record = fit_json(capsys, "old.csv", "--target", "y", "--coverage", "0.8")
    assert record["calibration"]["rows"] == record["learned"]["rows"] == 150
    old, new = pd.read_csv("old.csv"), pd.read_csv("new.csv")
    how = {"method": "cv+", "cv": 10, "learn_share": 0.5, "random_state": 0}
    model = ConformalQuantileRegressor(QuantileRegressor(random_state=0), coverage=0.8, **how)
    ends = model.fit(old[["x"]].to_numpy(), old["y"]).predict_interval(new[["x"]].to_numpy())
    found = predicted(capsys, "new.csv")
    np.testing.assert_allclose(found[["lower", "upper"]], ends, rtol=1e-12)
    assert main(["fit", "old.csv", "--target", "y", "--coverage", "0.8"]) == 0
    told = capsys.readouterr().out
    assert "learned from 150 rows" in told
    assert "on 150 rows in folds" in told


@pytest.mark.parametrize("model", ["expectile", "svr", "ridge"])
def test_other_models_are_calibrated_too(model, capsys):
    fit_json(capsys, "old.csv", "--target", "y", "--coverage", "0.8", "--model", model, *FIXED)
    found = predicted(capsys, "new.csv")
    assert list(found)[1] == ("e0.5" if model == "expectile" else "prediction")
    y = pd.read_csv("new.csv")["y"]
    assert abs(((found["lower"] <= y) & (y <= found["upper"])).mean() - 0.8) < 0.06


@pytest.mark.slow
def test_curves_that_never_cross(capsys):
    record = fit_json(capsys, "engel", "--non-crossing", "--levels", "0.2,0.5,0.8")
    X, y = load_engel(return_X_y=True)
    plain = NonCrossingQuantileRegressor([0.2, 0.5, 0.8], random_state=0)
    expected = plain.fit(X, y).predict(X)
    found = predicted(capsys, "engel")
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert record["crossing_loss"] == 0.0
    pd.DataFrame({"income": [-1e4, 0.0, 1e5]}).to_csv("far.csv", index=False)
    far = predicted(capsys, "far.csv")
    assert (np.diff(far, axis=1) >= 0.0).all()


@pytest.mark.slow
def test_mean_and_standard_deviation(capsys):
    record = fit_json(capsys, "engel", "--model", "normal")
    X, y = load_engel(return_X_y=True)
    model = HeteroscedasticRegressor(random_state=0).fit(X, y)
    mean, deviation = model.predict(X, return_std=True)
    found = predicted(capsys, "engel", "--interval", "0.8")
    np.testing.assert_allclose(found["std"], deviation, rtol=1e-12)
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-12)
    np.testing.assert_allclose(
        found["upper"] - found["mean"], 1.2815515655446004 * deviation, rtol=1e-9
    )
    loss = 0.5 * np.log(2 * np.pi * deviation**2) + 0.5 * ((y - mean) / deviation) ** 2
    assert record["levels"][0]["loss"] == pytest.approx(loss.mean())


@pytest.mark.slow
def test_densities_have_no_target(capsys):
    record = fit_json(capsys, "old.csv", "--model", "density")
    old, new = pd.read_csv("old.csv"), pd.read_csv("new.csv")
    expected = DensityEstimator(random_state=0).fit(old.to_numpy())
    found = predicted(capsys, "new.csv")
    np.testing.assert_allclose(
        np.log(found["density"]), expected.score_samples(new.to_numpy()), rtol=1e-9
    )
    assert record["target"] == []
    assert main(["evaluate", "m.skops", "new.csv", "--json"]) == 0
    loss = json.loads(capsys.readouterr().out)["levels"][0]["loss"]
    assert loss == pytest.approx(-expected.score(new.to_numpy()))
    assert main(["fit", "old.csv", "--model", "density", *FIXED]) == 0
    assert "Density on 2 columns: old.csv, 300 rows" in capsys.readouterr().out


@pytest.mark.slow
def test_densities_are_of_rows_without_missing_values(capsys):
    whole = pd.read_csv("old.csv")[:40]
    holes = whole.astype(object)
    holes.loc[40] = ["", 0.5]
    holes.loc[41] = [0.5, ""]
    holes.to_csv("holes.csv", index=False)
    whole.to_csv("whole.csv", index=False)
    said = "2 rows, the first of them 41, are left out of holes.csv: a value is missing"
    assert main(["fit", "holes.csv", "--model", "density", "--out", "m.skops", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == f"fenchel: warning: {said}\n"
    found, expected = json.loads(out), fit_json(capsys, "whole.csv", "--model", "density")
    assert found["n_rows"] == 40
    assert found["levels"] == expected["levels"]
    assert main(["evaluate", "m.skops", "holes.csv", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == f"fenchel: warning: {said}\n"
    assert json.loads(out)["levels"] == expected["levels"]
    assert main(["predict", "m.skops", "holes.csv"]) == 0
    out, err = capsys.readouterr()
    assert err == f"fenchel: warning: {said.replace('left out of', 'without a density in')}\n"
    density = pd.read_csv(io.StringIO(out))["density"]
    assert density.isna().to_numpy().nonzero()[0].tolist() == [40, 41]
    pd.DataFrame({"x": [1.0, None], "y": [None, 2.0]}).to_csv("none.csv", index=False)
    for command in (
        ["fit", "none.csv", "--model", "density"],
        ["evaluate", "m.skops", "none.csv"],
    ):
        assert main(command) == 2
        assert "none.csv has no row without missing values" in capsys.readouterr().err
    assert main(["predict", "m.skops", "none.csv"]) == 0
    assert "2 rows, the first of them 1, are without a density" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "cells",
    [["red", "blue"], ["true", "false"], ["2020-01-01", "2020-02-03"], ["only", "only"]],
    ids=["words", "flags", "dates", "one word"],
)
def test_densities_are_of_numbers(cells, capsys):
    frame = pd.read_csv("old.csv")[:40]
    frame["other"] = cells * 20
    frame.to_csv("mixed.csv", index=False)
    assert main(["fit", "mixed.csv", "--model", "density"]) == 2
    assert capsys.readouterr().err == (
        "fenchel: the column 'other' of mixed.csv is no number, and --model density is of "
        "numbers: leave it out with --drop, or name the columns with --columns\n"
    )
    for options in (["--drop", "other"], ["--columns", "x,y"]):
        assert main(["fit", "mixed.csv", "--model", "density", *FIXED, *options]) == 0
        assert "Density on 2 columns" in capsys.readouterr().out


@pytest.mark.slow
def test_curves_have_several_targets(capsys):
    random = np.random.default_rng(0)
    x, days = random.uniform(size=60), np.array([1.0, 2.0, 4.0, 8.0])
    frame = pd.DataFrame(np.sin(x[:, None] + days / 3), columns=[f"day{d:g}" for d in days])
    frame.insert(0, "x", x)
    frame.to_csv("growth.csv", index=False)
    names = ",".join(frame.columns[1:])
    record = fit_json(capsys, "growth.csv", "--target", names, "--model", "curves")
    assert record["target"] == names.split(",")
    found = predicted(capsys, "growth.csv")
    assert list(found) == names.split(",")
    Y = frame.iloc[:, 1:].to_numpy()
    expected = FunctionalRegressor(random_state=0).fit(x[:, None], Y, days).predict(x[:, None])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)  # of curves of size one
    assert main(["evaluate", "m.skops", "growth.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["r2"] > 0.99


@pytest.mark.slow
def test_curves_at_a_level(capsys):
    """In kelvin as in degrees Celsius; held out, the model is compared with a constant curve."""
    random = np.random.default_rng(0)
    x, noise = random.uniform(size=(60, 1)), random.standard_normal((60, 12))
    curves = 20.0 + x * np.sin(np.linspace(0.0, 6.0, 12)) + 0.2 * noise
    names, found = [f"t{k}" for k in range(12)], {}
    for level in (0.0, 273.0):
        pd.DataFrame(curves + level, columns=names).assign(x=x).to_csv("level.csv", index=False)
        assert main(["fit", "level.csv", "--target", ",".join(names), "--model", "curves"]) == 0
        pattern = r"held-out loss +(0\.\d+) of the best constant curve's"
        found[level] = float(re.search(pattern, capsys.readouterr().out)[1])
    assert found[0.0] == found[273.0]
    assert 0.2 < found[0.0] < 0.8


def test_points_of_curves_are_read_off_names():
    np.testing.assert_array_equal(fitting.curve_points(["t-1", "t0.5", "t2"]), [-1.0, 0.5, 2.0])
    np.testing.assert_array_equal(fitting.curve_points(["h-1", "h-2", "h-8"]), [1.0, 2.0, 8.0])
    np.testing.assert_array_equal(fitting.curve_points(["a1", "b1", "c1"]), [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(fitting.curve_points(["a", "b", "c"]), [0.0, 0.5, 1.0])


def test_points_of_curves_in_another_order_are_refused():
    with pytest.raises(InputError, match="in, t1,t2,t3, got t2,t1,t3"):
        fitting.curve_points(["t2", "t1", "t3"])


@pytest.mark.slow
def test_rank_and_threads(capsys, monkeypatch):
    asked = []
    original = fitting.threadpool_limits
    monkeypatch.setattr(
        fitting, "threadpool_limits", lambda number: asked.append(number) or original(number)
    )
    options = ["--rank", "7", "--n-jobs", "2", "--kernel", "gaussian", "--length-scale", "0.01"]
    assert main(["fit", "old.csv", "--target", "y", *options, "--out", "m.skops"]) == 0
    assert fenchel.load("m.skops")[-1].feature_map_.rank_ == 7
    assert asked == [2]
    assert "above tol=1e-06" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--coverage", "1.5"], "--coverage must lie strictly between 0 and 1, got 1.5"),
        (["--coverage", "0.8", "--levels", "0.5"], "--coverage and --levels exclude each other"),
        (["--coverage", "0.8", "--cv", "3"], "--coverage and --cv exclude each other"),
        (
            ["--coverage", "0.8", "--model", "normal"],
            "--coverage has no meaning for --model normal",
        ),
        (
            ["--non-crossing", "--model", "ridge"],
            "--non-crossing has no meaning for --model ridge",
        ),
        (["--non-crossing", "--level-gamma", "1"], "--non-crossing and --level-gamma exclude"),
        (["--rank", "0"], "--rank must be a whole number >= 1, got 0"),
        (["--n-jobs", "0"], "--n-jobs must be a number of threads"),
        (["--model", "density"], "--target has no meaning for --model density"),
        (["--model", "curves"], "--model curves needs as --target the columns of the curve"),
        (["--model", "normal", "--levels", "0.5"], "--levels has no meaning for --model normal"),
    ],
)
def test_what_does_not_go_together(options, sentence, here, capsys):
    assert main(["fit", "old.csv", "--target", "y", "--out", "new.skops", *options]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"fenchel: {sentence}")
    assert not (here / "new.skops").exists()


@pytest.mark.slow
@pytest.mark.parametrize("model", [[], ["--coverage", "0.8"], ["--non-crossing"]])
def test_tables_fit_on_a_screen(model, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {f"column {j}": random.choice(list("abcdefg")[: j % 5 + 2], 80) for j in range(20)}
    )
    frame["a number"] = random.normal(size=80)
    frame.assign(y=frame["a number"] ** 2).to_csv("wide.csv", index=False)
    fixed = ["--alpha", "1e-3", "--kernel", "gaussian", "--length-scale", "3"]
    many = (
        [] if "--coverage" in model else ["--levels", ",".join(f"{j / 20}" for j in range(1, 20))]
    )
    save = ["--out", "w.skops", "--plot", "w.png"]
    assert main(["fit", "wide.csv", "--target", "y", *fixed, *many, *model, *save]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", ["predict", "evaluate", "report"])
@pytest.mark.parametrize("changes", [{"x": "none"}, {"x": "category"}], ids=str)
def test_an_encoder_that_does_not_fit_its_columns(command, changes, here, capsys):
    """A sentence that names the model, not the error of a list without the column."""
    fit_json(capsys, "old.csv", "--target", "y", *FIXED)
    model, metadata = load("m.skops"), load_metadata("m.skops")
    model[0].kinds_ |= changes
    save(model, "damaged.skops", metadata=metadata)
    out = ["--out", "new.html"] * (command == "report")
    assert main([command, "damaged.skops", "new.csv", *out]) == 2
    said = "damaged.skops fails on new.csv: its encoder is damaged: nothing encodes x\n"
    assert capsys.readouterr().err.endswith(said)
    assert not (here / "new.html").exists()
