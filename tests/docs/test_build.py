"""The site is built without a warning, in a folder of its own and without the gallery's runs."""

from __future__ import annotations

import os
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


def test_performance_shows_every_row(built: Path) -> None:
    """As many rows as benchmarks/results.json has."""
    import json

    rows = json.loads((ROOT / "benchmarks" / "results.json").read_text())["rows"]
    text = (built / "performance.html").read_text(encoding="utf-8")
    assert text.count("<tr") == len(rows) + 1


def test_real_classes_are_included(built: Path) -> None:
    """The pages on adding one's own show the source as it is."""
    for page, line in (("loss", "_arguments"), ("solver", "requires"), ("feature_map", "_map")):
        assert f">{line}<" in (built / "extend" / f"{page}.html").read_text(encoding="utf-8")
