"""Quantiles of real tables: defaults of the library beside tuned trees.

The levels 0.1, 0.5 and 0.9 on 18 real tables and two generators, from 1000 training rows (0.7 of
smaller tables), or from 10 000 with ``--rows 10000`` on those that are large enough. LightGBM and
XGBoost are tuned by 25 settings in one fold and the best 5 of them in three, scikit-learn's
HistGradientBoosting and the quantile regression forest have their defaults, linear quantile
regression a penalty by three folds, and `QuantileRegressor` its defaults. All see the same rows,
on one core each.

With ``--methods``, what other methods have left in results.csv stays there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments import harness, tables_data, tables_measures, tables_page
from experiments.tables_methods import METHODS, missing

NAME = "tables"
SPLITS = 3
QUICK_TABLES = ("diabetes", "Sacramento")


def one_task(name: str, k: int, method: str, rows: int, quick: bool) -> list[dict[str, Any]]:
    """Measures of one method on one split; but in the quick form, in a process of its own."""
    run = tables_measures.measure if quick else tables_measures.in_fresh_process
    return [run(tables_measures.split(name, k, rows, quick), method)]


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is asked for and write table, picture and page."""
    sizes = tables_data.ENOUGH_FOR
    asked = harness.arguments(NAME, __doc__, SPLITS, argv, tuple(METHODS), tuple(sizes))
    absent = missing(asked.methods)
    if absent:
        raise SystemExit(
            f"--methods needs {', '.join(absent)}, which is not installed: "
            'pip install "fenchel[experiments]", or name other methods'
        )
    names = QUICK_TABLES if asked.quick else tables_data.for_training(asked.rows)
    tasks = [
        (name, k, method, asked.rows, asked.quick)
        for k in range(asked.splits)
        for name in names
        for method in asked.methods
    ]
    results = asked.run(one_task, tasks)
    asked.write(results, tables_page.picture(results), tables_page.page(results, asked.quick))


if __name__ == "__main__":
    main()
