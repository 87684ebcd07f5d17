"""Pages that are made from other files of the project while the site is built.

The results of the experiments and the table of the benchmarks. Neither is kept in git.
"""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

from benchmarks.readme import table
from sphinx.application import Sphinx

RESULTS = """# Published results

Each page sets the numbers that a paper prints beside those measured here, and says where they
differ and why. The command on a page makes it anew; `experiments/results` holds the numbers behind
it as CSV files. The table below the list says from which commit each page was made last by
`python -m experiments`, and how long that took; the others are of earlier commits.

```{toctree}
:maxdepth: 1

"""

PERFORMANCE = """# Performance

`make bench` measures these on your machine; `benchmarks/results.json` holds the numbers of this
page with versions and hardware. Measured {date} with NumPy {numpy} and SciPy {scipy}. Where a line
says "faster than", the number is how many times; the times of the Intel extension are those that
it states.

{table}
"""


def _write(path: Path, text: str) -> None:
    """Write only what has changed, so that Sphinx reads it again only then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_results(source: Path, results: Path) -> list[str]:
    """A page for each folder of results, with its picture, and their index."""
    names = sorted(page.parent.name for page in results.glob("*/page.md"))
    for former in (source / "results").glob("*/page.md"):
        if former.parent.name not in names:
            shutil.rmtree(former.parent)
    for name in names:
        text = (results / name / "page.md").read_text(encoding="utf-8")
        title = text.splitlines()[0].lstrip("# ")
        text = text.replace("![](", f"![{title}](")
        _write(source / "results" / name / "page.md", text)
        for picture in (results / name).glob("*.png"):
            shutil.copy2(picture, source / "results" / name)
    entries = "\n".join(f"{name}/page" for name in names)
    index = f"{RESULTS}{entries}\n```\n{_runs(results / 'runs.csv')}"
    _write(source / "results" / "index.md", index)
    return names


def _runs(file: Path) -> str:
    """A table of the runs that ended as they should; nothing where there is no file of them."""
    if not file.exists():
        return ""
    with file.open(encoding="utf-8", newline="") as lines:
        runs = [run for run in csv.DictReader(lines) if run["ended"] == "as it should"]
    rows = ["| page | commit | date | minutes | processes |", "| --- | --- | --- | --- | --- |"]
    for run in runs:
        page = f"{{doc}}`{run['experiment']} <{run['experiment']}/page>`"
        rows.append(
            f"| {page} | {run['commit']} | {run['date']} | {run['minutes']} | {run['jobs']} |"
        )
    return "\n" + "\n".join(rows) + "\n"


def write_performance(source: Path, file: Path) -> None:
    """The page of the benchmarks."""
    results = json.loads(file.read_text(encoding="utf-8"))
    machine = results["machine"]
    text = PERFORMANCE.format(date=machine["date"], table=table(results), **machine["packages"])
    _write(source / "performance.md", text)


def _build(app: Sphinx) -> None:
    source, root = Path(app.srcdir), Path(app.config.fenchel_root)
    write_results(source, root / "experiments" / "results")
    write_performance(source, root / "benchmarks" / "results.json")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before sources are collected."""
    app.add_config_value("fenchel_root", "", "env")
    app.connect("builder-inited", _build, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
