"""What all experiments share: arguments, data, resumable tasks, files written whole.

An experiment is a module with a ``main(argv=None)``. It writes into ``experiments/results/NAME``
(``--out`` elsewhere): ``results.csv`` with one line for each measurement, ``picture.png``, and
``page.md``, which shows the published numbers beside the measured ones.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import StandardScaler

from fenchel.datasets import load
from fenchel.losses import Pinball

HERE = Path(__file__).parent
_TABLE = "results.csv"
_TASKS = "tasks.jsonl"
DATA_SETS = (
    "caution",
    "ftcollinssnow",
    "highway",
    "heights",
    "sniffer",
    "snowgeese",
    "ufc",
    "birthwt",
    "crabs",
    "GAGurine",
    "geyser",
    "gilgais",
    "topo",
    "BostonHousing",
    "CobarOre",
    "engel",
    "mcycle",
    "BigMac2003",
    "UN3",
    "cpus",
)
"""In the order of the published tables."""


class Variant(NamedTuple):
    """A data set with another target or other features."""

    data_set: str
    target: str
    features: tuple[str, ...]


VARIANTS = {
    "CobarOre, target y": Variant("CobarOre", "y", ("x", "y")),
    "crabs without sp": Variant("crabs", "CW", ("sex", "FL", "RW", "CL", "BD")),
    "UN3, target ModernC": Variant(
        "UN3", "ModernC", ("Change", "PPgdp", "Frate", "Pop", "Fertility", "Purban")
    ),
}
"""Readings of three data sets under which the published losses come out."""


@dataclass(frozen=True)
class Arguments:
    """What was asked for on the command line."""

    splits: int
    jobs: int
    quick: bool
    out: Path
    methods: tuple[str, ...] = ()
    rows: int = 0

    def run(
        self, function: Callable[..., list[dict[str, Any]]], tasks: Iterable[tuple[Any, ...]]
    ) -> pd.DataFrame:
        """Records of all tasks, and those that other methods have left, see :func:`run_tasks`."""
        results, table = run_tasks(function, tasks, self._log, self.jobs), self.out / _TABLE
        if self.methods and table.exists():
            before = pd.read_csv(table)
            results = pd.concat([before[~before["method"].isin(self.methods)], results])
        return results

    def write(self, results: pd.DataFrame, picture: Any, page: str) -> None:
        """Write table, picture and page, and forget which tasks were done."""
        write_csv(self.out / _TABLE, results)
        save_picture(self.out / "picture.png", picture)
        write_text(self.out / "page.md", page)
        self._log.unlink(missing_ok=True)

    @property
    def _log(self) -> Path:
        return self.out / _TASKS


def seconds_kept(out: Path) -> float:
    """Time of the tasks that an interrupted run has left done in a folder, of all processes."""
    return sum(float(entry["seconds"]) for entry in _entries(out / _TASKS))


def _entries(log: Path) -> list[dict[str, Any]]:
    lines = log.read_text().splitlines() if log.exists() else []
    return [json.loads(line) for line in lines if line]


def arguments(
    name: str,
    doc: str | None,
    splits: int,
    argv: Sequence[str] | None,
    methods: tuple[str, ...] = (),
    rows: tuple[int, ...] = (),
) -> Arguments:
    """Parse ``[--splits K] [--jobs J] [--quick] [--out FOLDER]``.

    Where ``methods`` are given, ``--methods`` chooses among them, in their order. Where ``rows``
    are, ``--rows`` chooses one of these sizes, by default the first; others have a folder each.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m experiments.{name}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--splits", type=int, help=f"random splits or data sets ({splits})")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one thread each (1)")
    parser.add_argument("--quick", action="store_true", help="a small version, in seconds")
    parser.add_argument(
        "--out", type=Path, help=f"folder to write to (experiments/results/{name})"
    )
    if methods:
        parser.add_argument(
            "--methods", nargs="+", choices=methods, default=methods, help="what to run (all)"
        )
    if rows:
        parser.add_argument(
            "--rows", type=int, choices=rows, default=rows[0], help=f"to train with ({rows[0]})"
        )
    given = parser.parse_args(argv)
    size = given.rows if rows else 0
    if size in rows[1:]:
        name = f"{name}_{size}"
    wanted = tuple(method for method in methods if method in given.methods)
    chosen = given.splits if given.splits is not None else 2 if given.quick else splits
    if chosen < 1 or given.jobs < 1:
        parser.error(f"--splits and --jobs must be at least 1, got {chosen} and {given.jobs}")
    folder = given.out or HERE / "results" / (f"{name}_quick" if given.quick else name)
    folder.mkdir(parents=True, exist_ok=True)
    return Arguments(chosen, given.jobs, given.quick, folder, wanted, size)


def published(name: str) -> pd.DataFrame:
    """Numbers as printed in a paper, see ``experiments/published``."""
    return pd.read_csv(HERE / "published" / f"{name}.csv")


def own_name(name: str) -> str:
    """The data set that a variant is made from; its own name for any other."""
    return VARIANTS[name].data_set if name in VARIANTS else name


def standardized(name: str) -> tuple[np.ndarray, np.ndarray]:
    """X and y of a data set or variant, all columns with mean zero and variance one."""
    data = load(own_name(name))
    X, y = np.asarray(data.data, dtype=float), np.asarray(data.target, dtype=float)
    if name in VARIANTS:
        columns = {**dict(zip(data.feature_names, X.T, strict=True)), data.target_name: y}
        X = np.column_stack([columns[feature] for feature in VARIANTS[name].features])
        y = columns[VARIANTS[name].target]
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def split(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows for training (0.7) and test (0.3) of the k-th random split."""
    return next(ShuffleSplit(1, test_size=0.3, random_state=k).split(np.zeros((n, 1))))


def pinball(y: np.ndarray, curves: np.ndarray, levels: Sequence[float] | np.ndarray) -> float:
    """Mean over rows of the pinball losses of all levels together."""
    return float(Pinball(levels).value(y[:, None] - curves).mean())


def options(splits: int, usual: int) -> str:
    """What to add to the command of an experiment for another number of splits."""
    return "" if splits == usual else f" --splits {splits}"


def run_tasks(
    function: Callable[..., list[dict[str, Any]]],
    tasks: Iterable[tuple[Any, ...]],
    path: Path,
    jobs: int,
) -> pd.DataFrame:
    """Records of all tasks, those of an earlier, interrupted run included.

    ``function(*task)`` returns records for the table. Each finished task is one line of
    ``path``; a task found there is not run again, so that nothing is lost by stopping.
    """
    done = {json.dumps(entry["task"]): entry for entry in _entries(path)}
    tasks = list(tasks)
    todo = [task for task in tasks if json.dumps(list(task)) not in done]
    started = time.perf_counter()
    limit = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    os.environ.update(limit)  # read by the worker processes
    function = _importable(function)
    results = Parallel(n_jobs=jobs, return_as="generator_unordered")(
        delayed(_run_one)(function, task) for task in todo
    )
    with path.open("a") as log:
        for k, entry in enumerate(results, start=1):
            done[json.dumps(entry["task"])] = entry
            log.write(json.dumps(entry) + "\n")
            log.flush()
            spent = time.perf_counter() - started
            print(f"[{k}/{len(todo)}, {spent:.0f} s] {entry['task']}: {entry['seconds']:.1f} s")
    wanted = [done[json.dumps(list(task))] for task in tasks]
    return pd.DataFrame.from_records([record for entry in wanted for record in entry["records"]])


def _importable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function by a name under which worker processes find it.

    ``python -m`` calls its module ``__main__``, which is copied to them piece by piece: functions
    that keep what they have computed before can't be.
    """
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if function.__module__ != "__main__" or spec is None:
        return function
    found: Callable[..., Any] = getattr(import_module(spec.name), function.__name__)
    return found


def _run_one(
    function: Callable[..., list[dict[str, Any]]], task: tuple[Any, ...]
) -> dict[str, Any]:
    started = time.perf_counter()
    records = function(*task)
    return {
        "task": list(task),
        "seconds": round(time.perf_counter() - started, 3),
        "records": records,
    }


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    draft = path.with_name(f".{path.name}.part")
    draft.write_text(text)
    draft.replace(path)


def write_csv(path: Path, frame: pd.DataFrame) -> None:
    """Write a table whole or not at all."""
    write_text(path, frame.to_csv(index=False, float_format="%.6g"))


def save_picture(path: Path, figure: Any) -> None:
    """Write a figure as PNG, whole or not at all."""
    draft = path.with_name(f".{path.name}.part")
    figure.savefig(draft, format="png", dpi=130, bbox_inches="tight")
    draft.replace(path)


def markdown_table(frame: pd.DataFrame) -> str:
    """Pipe table of a frame whose cells are ready to print."""
    rows = [list(frame.columns), ["---"] * frame.shape[1], *frame.astype(str).to_numpy().tolist()]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)
