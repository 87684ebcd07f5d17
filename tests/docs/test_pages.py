"""The code on the pages runs, and the start page is what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fenchel

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WRITTEN = [
    path
    for path in sorted([*DOCS.glob("*.md"), *DOCS.glob("guide/*.md"), *DOCS.glob("extend/*.md")])
    if path.name not in ("papers.md", "performance.md")
]
WITH_CODE = [path for path in WRITTEN if "```python" in path.read_text(encoding="utf-8")]
EXAMPLES = sorted((ROOT / "examples").glob("*/plot_*.py"))


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_CODE, ids=_name)
def test_code_of_a_page_runs(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Blocks of a page are run one after the other, as a reader would."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    assert capsys.readouterr().out


def test_start_page_has_ten_lines() -> None:
    """Ten lines, and they leave the picture's display with one curve for each level."""
    pytest.importorskip("matplotlib").use("agg")
    pytest.importorskip("pandas")
    code = (DOCS / "start.py").read_text(encoding="utf-8")
    assert len(code.splitlines()) <= 11
    names: dict[str, object] = {}
    exec(compile(code, "start.py", "exec"), names)
    display, model = names["display"], names["model"]
    assert isinstance(model, fenchel.QuantileRegressor)
    assert model.certificate_.relative_gap < 1e-6  # as the page says
    assert len(display.lines_) == 5  # type: ignore[attr-defined]


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
