"""The site is built without a warning, in a folder of its own and without the gallery's runs."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = (
    "matplotlib",
    "myst_parser",
    "numpydoc",
    "pydata_sphinx_theme",
    "sphinx",
    "sphinx_gallery",
    "ziamath",
)
# what pages are made from
READ = ("src", "examples", "experiments", "benchmarks", "CONTRIBUTING.md", "CHANGELOG.md")
# written while the site is built
MADE = ("gallery", "generated", "results", "papers.md", "performance.md")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages; what Sphinx says otherwise goes into the failure."""
    for module in NEEDED:
        pytest.importorskip(module, reason="the site is built with it")
    folder = tmp_path_factory.mktemp("site")
    ignored = shutil.ignore_patterns(*MADE, "__pycache__")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=ignored)
    for name in (
        "src",
        "examples",
        "experiments",
        "benchmarks",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ):
        (folder / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "-D", "plot_gallery=0"]
    done = subprocess.run(
        [*command, str(folder / "docs"), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "agg"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "html"


@pytest.mark.slow
def test_pages_are_built_without_a_warning(built: Path) -> None:
    """A warning is an error of the build; what it made is complete."""
    for page in ("index", "choose", "guide/index", "reference/index", "results/index"):
        assert (built / f"{page}.html").stat().st_size > 5000


def test_results_of_all_experiments_are_shown(built: Path) -> None:
    """A page for each folder of results, with its picture."""
    for page in sorted((ROOT / "experiments" / "results").glob("*/page.md")):
        shown = built / "results" / page.parent.name / "page.html"
        title = page.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        assert title.split("ε")[-1][:20] in shown.read_text(encoding="utf-8")
        assert "<img" in shown.read_text(encoding="utf-8")


def test_runs_are_listed_with_their_commits(built: Path) -> None:
    """Those that ended as they should, each with its page."""
    file = ROOT / "experiments" / "results" / "runs.csv"
    with file.open(encoding="utf-8", newline="") as lines:
        runs = [run for run in csv.DictReader(lines) if run["ended"] == "as it should"]
    text = (built / "results" / "index.html").read_text(encoding="utf-8")
    rows = re.findall(r"<tr.*?</tr>", text, re.DOTALL)
    assert runs
    assert len(rows) == len(runs) + 1
    for run, row in zip(runs, rows[1:], strict=True):
        assert f'href="{run["experiment"]}/page.html"' in row
        assert run["commit"] in row
        assert run["minutes"] in row


def test_performance_shows_every_row(built: Path) -> None:
    """As many rows as benchmarks/results.json has."""
    rows = json.loads((ROOT / "benchmarks" / "results.json").read_text())["rows"]
    text = (built / "performance.html").read_text(encoding="utf-8")
    assert text.count("<tr") == len(rows) + 1


def test_real_classes_are_included(built: Path) -> None:
    """The pages on adding one's own show the source as it is."""
    for page, line in (("loss", "_arguments"), ("solver", "requires"), ("feature_map", "_map")):
        assert f">{line}<" in (built / "extend" / f"{page}.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_name_of_the_library_is_a_link(built: Path) -> None:
    """Wherever a page refers to a class or function, under whichever of its names."""
    plain = {}
    for page in built.glob("**/*.html"):
        outside = re.sub(r"<a .*?</a>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        found = re.findall(r'<code class="xref py[^>]*>(.*?)</code>', outside, re.DOTALL)
        names = {re.sub(r"<.*?>", "", each) for each in found}
        plain[page.name] = {name for name in names if not name.startswith("sklearn.")}
    assert not {page: names for page, names in plain.items() if names - {"object"}}


def test_excerpts_of_a_search_need_no_server(built: Path) -> None:
    """The texts of all pages are in a script, which the page of the search loads."""
    script = (built / "_static" / "texts.js").read_text(encoding="utf-8")
    texts = json.loads(script.removeprefix("const TEXTS = ").removesuffix(";\n"))
    assert "categorical" in texts["guide/tables"]
    assert "LightGBM" in texts["convert"]
    assert {page.stem for page in (built / "guide").glob("*.html")} <= {
        name.rpartition("/")[2] for name in texts
    }
    assert "<code" not in texts["guide/tables"]
    assert "excerpts.js" in (built / "search.html").read_text(encoding="utf-8")
    assert "excerpts.js" not in (built / "index.html").read_text(encoding="utf-8")


def test_long_names_may_be_split_after_dots_and_brackets(built: Path) -> None:
    """And short ones nowhere."""
    choose = (built / "choose.html").read_text(encoding="utf-8")
    assert "NonNegativeRegressor(<wbr/>loss=...)" in choose
    assert ">QuantileRegressor<" in choose
