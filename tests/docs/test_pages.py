"""The code on the pages runs, and the start page is what it says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = ("papers.md", "performance.md")
PAGES = [*DOCS.glob("*.md"), *DOCS.glob("guide/*.md"), *DOCS.glob("extend/*.md")]
WRITTEN = [ROOT / "README.md", *(page for page in sorted(PAGES) if page.name not in MADE)]
WITH_CODE = [path for path in WRITTEN if "```python" in path.read_text(encoding="utf-8")]
EXAMPLES = sorted((ROOT / "examples").glob("*/plot_*.py"))


def _module(name: str) -> ModuleType:
    """One of the scripts beside the pages."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


outputs = _module("outputs")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=_name)
def test_code_of_a_page_runs_and_prints_what_is_shown(page: Path) -> None:
    """Blocks of a page are run one after the other, as a reader would."""
    blocks = outputs.blocks_of(page.read_text(encoding="utf-8"))
    printed = list(outputs.printed_by(blocks, _name(page)))
    assert any(printed)
    for block, said in zip(blocks, printed, strict=True):
        assert outputs.agree(block.shown, said), f"shown: {block.shown}\nprinted: {said}"


def test_outputs_that_differ_are_seen() -> None:
    """Words must be the same, and numbers nearly."""
    assert outputs.agree("gap 1.00e-07, 3 rows\n", "gap  1.01e-07, 3 rows")
    assert not outputs.agree("gap 1.00e-07", "gap 1.10e-07")
    assert not outputs.agree("3 rows", "4 rows")
    assert not outputs.agree("[1.0 2.0]", "[1.0 2.0 3.0]")
    assert not outputs.agree("fitted", "not fitted")
    shown = "```python\nprint(6 * 7)\n```\n\n```text\n41\n```\nend\n"
    assert outputs.with_outputs(shown, "page") == shown.replace("41", "42")


def test_each_picture_of_a_page_is_drawn_by_the_script() -> None:
    """Nothing is shown that draw_pictures.py does not draw, and nothing is drawn for no page."""
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    pytest.importorskip("sphinx", reason="the style is that of the gallery")
    drawn = {draw.__name__ for draw in _module("draw_pictures").PICTURES}
    shown = set()
    for page in [ROOT / "README.md", *DOCS.glob("**/*.md")]:
        text = page.read_text(encoding="utf-8")
        shown |= set(re.findall(r"_static/guide/(\w+)\.png", text))
    assert shown == drawn == {path.stem for path in (DOCS / "_static" / "guide").glob("*.png")}


def test_the_start_page_is_the_readme() -> None:
    """The same sentence, picture and code."""
    start, readme = (
        path.read_text(encoding="utf-8") for path in (DOCS / "index.md", ROOT / "README.md")
    )
    head = start[: start.index("- {doc}")].replace("_static", "docs/_static").strip()
    assert readme.startswith(head)


def test_the_guide_says_of_small_samples_what_the_experiment_says() -> None:
    """The ratio of losses, the tables that are lower, and the share of the time."""
    guide = " ".join((DOCS / "guide" / "learning.md").read_text(encoding="utf-8").split())
    page = ROOT / "experiments" / "results" / "learned_quantiles" / "page.md"
    measured = page.read_text(encoding="utf-8")
    row = re.search(r"\| JQR \| (\d+) .*\| ([\d.]+) \| [^|]* \|\n", measured)
    share = re.search(r"median ([\d.]+)", measured)
    assert row is not None
    assert share is not None
    assert f"the loss is {row[2]} of that of a search" in guide
    assert f"lower on {row[1]} data sets" in guide
    assert f"takes {100 * float(share[1]):.0f} % of the time" in guide


@pytest.mark.parametrize("example", EXAMPLES, ids=_name)
def test_examples_are_short(example: Path) -> None:
    """At most 40 lines of code, a title, and a section of prose."""
    text = example.read_text(encoding="utf-8")
    code = re.sub(r'^""".*?"""', "", text, flags=re.DOTALL).splitlines()
    lines = [line for line in code if line.strip() and not line.lstrip().startswith("#")]
    assert len(lines) <= 40
    assert text.startswith('"""\n')
    assert "\n# %%\n" in text


@pytest.mark.parametrize("page", WRITTEN, ids=_name)
def test_nothing_is_left_to_write(page: Path) -> None:
    """No page is a placeholder."""
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"\b(TODO|TBD|FIXME|coming soon)\b", text, re.IGNORECASE)
    assert len(text) > 120 or "{include}" in text
