"""``fenchel report``: from files to a page, and the page in a browser."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fenchel
from fenchel.cli import main
from fenchel.positive import NonNegativeRegressor

CHROMIUM = Path("/usr/bin/chromium")
SCRIPT = "<script>document.title='owned'</script>"
FORMULA = "$x_{"
IMAGE = '"><img src=http://127.0.0.1:9/x onerror=document.title=1>'
LONG = "z" * 3000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables whose names and values want to be something else, and a model of each kind."""
    place = tmp_path_factory.mktemp("reports")
    random = np.random.default_rng(0)
    n = 240
    frame = pd.DataFrame(
        {
            SCRIPT: random.uniform(0, 10, n),
            FORMULA: random.choice([IMAGE, "=1+1", "größe 漢字"], n),
            LONG: random.uniform(size=n) < 0.5,
        }
    )
    frame["</title>&amp;"] = frame[SCRIPT] ** 2 + 5 * random.standard_normal(n)
    frame[:160].to_csv(place / "old.csv", index=False)
    frame[160:].to_csv(place / "<b>new.csv", index=False)
    for kind in ("quantile", "expectile", "svr", "ridge"):
        arguments = ["--target", "</title>&amp;", "--model", kind, "--quiet"]
        arguments += [] if kind == "quantile" else ["--no-learn", "--alpha", "1e-3"]
        assert main(["fit", str(place / "old.csv"), *arguments, "--out", _model(place, kind)]) == 0
    return place


def _model(place, kind):
    return str(place / f"{kind}.skops")


def _report(folder, kind, data, out):
    return main(["report", _model(folder, kind), str(folder / data), "--out", str(out)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["quantile", "expectile", "svr", "ridge"])
def test_each_kind_of_model_gets_a_page(folder, kind, tmp_path, capsys):
    assert _report(folder, kind, "<b>new.csv", tmp_path / "r.html") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "report written to" in out
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "none of the 80 rows was in the fit" in page
    assert "Content-Security-Policy" in page
    assert not re.search(r"<script|<b>|<img src=http|</title>&amp;amp;<h1", page)
    assert page.count("</title>") == 1
    assert html.escape(SCRIPT, quote=True) in page
    assert ("Calibration" in page) == (kind == "quantile")
    model = fenchel.load(_model(folder, kind))
    new = pd.read_csv(folder / "<b>new.csv")
    y = new.pop("</title>&amp;")
    prediction = model.predict(new)
    if kind in ("svr", "ridge"):
        assert f'<data value="{np.mean((y - prediction) ** 2)!s}">' in page
    else:
        level, r = 0.1, y - prediction[:, 0]
        loss = np.maximum(level * r, (level - 1) * r)
        if kind == "quantile":
            (value,) = re.findall(r'pinball loss at 10 %</th><td><data value="([^"]*)"', page)
            assert float(value) == pytest.approx(loss.mean(), rel=1e-12)


@pytest.mark.slow
def test_the_file_knows_the_rows_of_its_fit(folder, tmp_path):
    assert _report(folder, "quantile", "old.csv", tmp_path / "r.html") == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "These rows are not held-out: all 160 were in the fit" in page
    new = pd.concat([pd.read_csv(folder / "old.csv"), pd.read_csv(folder / "<b>new.csv")])
    new.to_parquet(tmp_path / "both.parquet")
    data, out = str(tmp_path / "both.parquet"), str(tmp_path / "b.html")
    assert main(["report", _model(folder, "quantile"), data, "--out", out]) == 0
    page = Path(out).read_text(encoding="utf-8")
    assert "160 of the 240 rows equal rows of the fit" in page
    assert "Scores on 80 held-out rows" in page


def test_columns_that_the_encoder_leaves_out_do_not_hide_the_rows_of_the_fit(tmp_path):
    table = pd.DataFrame({"a": np.arange(40.0), "u": 0.0, "y": np.arange(40.0) % 7, "c": "x"})
    table.loc[::2, "c"] = "y"
    table.loc[3, ["u", "y"]] = 1.0, np.nan  # u is the same in all rows with a target
    data, model, out = (str(tmp_path / name) for name in ("t.csv", "m.skops", "r.html"))
    table.to_csv(data, index=False)
    options = ["--model", "ridge", "--no-learn", "--quiet"]
    assert main(["fit", data, "--target", "y", "--out", model, *options]) == 0
    assert main(["report", model, data, "--out", out, "--quiet"]) == 0
    page = Path(out).read_text(encoding="utf-8")
    assert "These rows are not held-out: all 39 were in the fit" in page


@pytest.mark.slow
def test_labels_new_to_the_model_are_a_warning_on_the_page(folder, tmp_path, capsys):
    new = pd.read_csv(folder / "<b>new.csv")
    new[FORMULA] = "<i>never seen</i>"
    new.to_csv(tmp_path / "n.csv", index=False)
    data, out = str(tmp_path / "n.csv"), str(tmp_path / "r.html")
    assert main(["report", _model(folder, "ridge"), data, "--out", out, "--quiet"]) == 0
    assert "80 rows have labels of $x_{" in capsys.readouterr().err
    page = Path(out).read_text(encoding="utf-8")
    assert "(&lt;i&gt;never seen&lt;/i&gt;)" in page


@pytest.mark.slow
def test_calibrated_intervals_are_those_of_evaluate(folder, tmp_path, capsys):
    model, data = str(tmp_path / "c.skops"), str(folder / "<b>new.csv")
    fit = ["fit", str(folder / "old.csv"), "--target", "</title>&amp;", "--no-learn", "--quiet"]
    assert main([*fit, "--alpha", "1e-3", "--coverage", "0.8", "--out", model]) == 0
    assert main(["evaluate", model, data, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["report", model, data, "--out", str(tmp_path / "c.html"), "--quiet"]) == 0
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    numbers = [float(value) for value in re.findall(r'<data value="([^"]*)"', page)]
    for name in ("coverage", "mean_width", "score"):
        assert any(found["intervals"][name] == pytest.approx(number) for number in numbers)
    for level in found["levels"]:
        assert any(level["loss"] == pytest.approx(number) for number in numbers)
    assert '<h2 id="certificate">' in page
    assert "80 % intervals as a band" in page


@pytest.mark.slow
@pytest.mark.parametrize("with_names", [True, False])
def test_models_saved_from_python_need_a_target_only(tmp_path, with_names):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.uniform(size=(60, 2)), columns=["a", "b"])
    frame["y"] = frame["a"] + 0.1 * random.uniform(size=60)
    X = frame[["a", "b"]] if with_names else frame[["a", "b"]].to_numpy()
    frame.to_csv(tmp_path / "d.csv", index=False)
    for model in (fenchel.Ridge(alpha=1e-2), NonNegativeRegressor(alpha=1e-3)):
        place = fenchel.save(model.fit(X, frame["y"]), tmp_path / "m.skops")
        out = tmp_path / "r.html"
        arguments = ["report", str(place), str(tmp_path / "d.csv"), "--out", str(out)]
        assert main([*arguments, "--target", "y"]) == 0
        page = out.read_text(encoding="utf-8")
        assert "It is not known whether the rows are held-out" in page
        error = np.mean((frame["y"] - model.predict(X)) ** 2)
        (value,) = re.findall(r'squared error</th><td><data value="([^"]*)"', page)
        assert float(value) == pytest.approx(error, rel=1e-12)


def test_bad_input_is_one_sentence(folder, tmp_path, capsys):
    old, model, out = str(folder / "old.csv"), _model(folder, "ridge"), str(tmp_path / "r.html")
    pd.DataFrame({"a": [1.0]}).to_csv(tmp_path / "other.csv", index=False)
    for arguments, sentence in [
        ((model, old, "--out", "r.txt"), "--out must end in .html or .htm"),
        ((model, old, "--out", str(tmp_path / "no" / "r.html")), "there is no folder"),
        ((str(tmp_path / "no.skops"), old, "--out", out), "there is no model file"),
        ((old, old, "--out", out), "is not a model that fenchel saved"),
        ((model, "nowhere.csv", "--out", out), "there is no file nowhere.csv"),
        ((model, str(tmp_path / "other.csv"), "--out", out), "has no column"),
        ((model, old, "--target", "nope", "--out", out), "has no column 'nope'"),
        ((model, old), "Missing option"),
    ]:
        assert main(["report", *arguments]) == 2
        written, error = capsys.readouterr()
        assert written == ""
        assert sentence in error
        assert error.count("\n") == 1
    assert not Path(out).exists()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    with playwright.sync_playwright() as running:
        made = running.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        yield made
        made.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("width", [1280, 360])
def test_page_in_a_browser(folder, browser, scripts, width):
    """Nothing runs, nothing is loaded or blocked, all pictures show, nothing sticks out."""
    out = folder / "r.html"
    if not out.exists():
        assert _report(folder, "quantile", "old.csv", out) == 0
    context = browser.new_context(
        java_script_enabled=scripts, offline=True, viewport={"width": width, "height": 800}
    )
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(out.as_uri())
    assert page.title() == "Quantiles of </title>&amp;"
    assert page.locator("h1").inner_text() == "Quantiles of </title>&amp;"
    assert page.locator("script, iframe, b, i").count() == 0
    assert [url for url in asked if not url.startswith("data:")] == [out.as_uri()]
    images = page.locator("img").all()
    assert len(images) == 5
    for image in images:
        assert image.get_attribute("alt")
        box = image.bounding_box()
        assert box["width"] > 200
        assert box["height"] > 150
        assert box["x"] + box["width"] <= width
    body = page.locator("body").bounding_box()
    assert body["width"] <= width
    if scripts:
        loaded = page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
        assert loaded
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        styled = page.evaluate("getComputedStyle(document.querySelector('table')).borderCollapse")
        assert styled == "collapse"  # the policy lets its own style through
    assert said == []
    context.close()


@pytest.mark.slow
def test_a_report_on_one_row_with_a_hole(here, capsys):
    """It has no standard error, no point in pictures along the hole, and no number is made up."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random.uniform(size=40), "b": random.uniform(size=40)})
    frame["y"] = frame["a"] + 0.1 * random.normal(size=40)
    frame.to_csv("rows.csv", index=False)
    (here / "one.csv").write_text("a,b,y\n0.5,,0.4\n")
    fit = ["fit", "rows.csv", "--target", "y", "--no-learn", "--out", "m.skops", "--quiet"]
    assert main(fit) == 0
    assert main(["report", "m.skops", "one.csv", "--out", "r.html"]) == 0
    assert "All-NaN" not in capsys.readouterr().err
    page = (here / "r.html").read_text(encoding="utf-8")
    assert "one.csv, one row" in page
    assert "the row was not in the fit" in page
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)


@pytest.mark.slow
def test_captions_count_the_rows_that_are_points(here):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random.uniform(size=40), "b": random.uniform(size=40)})
    frame["y"] = frame["a"] + 0.1 * random.normal(size=40)
    frame.loc[:6, "a"] = np.nan
    frame.to_csv("rows.csv", index=False)
    fit = ["fit", "rows.csv", "--target", "y", "--no-learn", "--out", "m.skops", "--quiet"]
    assert main(fit) == 0
    assert main(["report", "m.skops", "rows.csv", "--out", "r.html", "--quiet"]) == 0
    page = (here / "r.html").read_text(encoding="utf-8")
    assert "Along a: 3 quantiles as curves, and all 40 rows but 7 without a number as" in page
    assert "Along b: 3 quantiles as curves, and all 40 rows as points" in page
